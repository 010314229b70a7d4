//! `telearm emulate`: devices and arms made of software.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};

use super::Outcome;
use crate::arm::can::{CanAddress, LocalBus};
use crate::arm::registry;
use crate::operator::registry::{self as devices, Device};

/// Emulate an operator device or an arm, with faults.
///
/// The devices' subcommands come from their registry, so a new device needs no line here.
#[derive(Debug)]
pub(super) enum EmulateCommand {
    /// An operator device with its own arguments.
    Device(&'static dyn Device, ArgMatches),
    /// A Piper on a CAN interface.
    Piper(ArmArgs),
}

/// An emulated arm.
#[derive(Debug, Args)]
pub(super) struct ArmArgs {
    /// Bus: a CAN interface like vcan0, or local:@NAME, which is then made; a plan names the same under `can`
    #[arg(long, value_name = "BUS", default_value = "local:@telearm-piper")]
    can: String,
    /// A fault from the start; may be repeated (`--fault help` lists them)
    #[arg(long = "fault", value_name = "NAME")]
    faults: Vec<String>,
    /// Stop after this long; otherwise on Ctrl-C
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
}

impl Subcommand for EmulateCommand {
    fn augment_subcommands(command: Command) -> Command {
        let devices = devices::DEVICES.iter().map(|d| d.emulator());
        let piper = Command::new("piper").about(
            "A Piper on a CAN interface (a virtual one, say) or on a bus inside this machine",
        );
        command
            .about("Emulate an operator device or an arm, with faults")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommands(devices)
            .subcommand(ArmArgs::augment_args(piper))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        name == "piper" || devices::find(name).is_some()
    }
}

impl FromArgMatches for EmulateCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let missing = || clap::Error::new(clap::error::ErrorKind::MissingSubcommand);
        let (name, arguments) = matches.subcommand().ok_or_else(missing)?;
        match devices::find(name) {
            Some(device) => Ok(Self::Device(device, arguments.clone())),
            None => Ok(Self::Piper(ArmArgs::from_arg_matches(arguments)?)),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl EmulateCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        match self {
            Self::Device(device, arguments) => operator(device, &arguments),
            Self::Piper(args) => arm("piper", &args),
        }
    }
}

fn operator(device: &'static dyn Device, arguments: &ArgMatches) -> anyhow::Result<Outcome> {
    let quit = quit_on_signal()?;
    writeln!(
        std::io::stderr(),
        "Emulating a {}. Ctrl-C ends it.",
        device.name()
    )?;
    let report = device.emulate(arguments, &quit)?;
    writeln!(std::io::stderr(), "{report}.")?;
    Ok(Outcome::Good)
}

fn arm(kind: &str, args: &ArmArgs) -> anyhow::Result<Outcome> {
    let Some(kind) = registry::find(kind) else {
        bail!("this build has no arm named {kind}");
    };
    if args.faults.iter().any(|f| f == "help") {
        println!("{}", kind.emulator_faults().join("\n"));
        return Ok(Outcome::Good);
    }
    let bus: CanAddress = args.can.parse()?;
    let quit = quit_on_signal()?;
    let until = length(args.seconds)?.map(|l| Instant::now() + l);
    let _bus = if bus.is_local() {
        Some(LocalBus::start(&bus).with_context(|| format!("cannot make the bus {}", args.can))?)
    } else {
        None
    };
    let emulator = kind.emulate(&bus).map_err(anyhow::Error::msg)?;
    for fault in &args.faults {
        emulator
            .set_fault(fault, true)
            .map_err(anyhow::Error::msg)?;
    }
    writeln!(
        std::io::stderr(),
        "An emulated {} is on {}; a plan reaches it with can = \"{}\". Ctrl-C ends it.",
        kind.name(),
        args.can,
        args.can
    )?;
    while !quit.load(Ordering::Acquire) && until.is_none_or(|end| Instant::now() < end) {
        thread::sleep(Duration::from_millis(50));
    }
    let joints: Vec<_> = emulator
        .joints()
        .iter()
        .map(|q| format!("{:.1}", q.to_degrees()))
        .collect();
    writeln!(
        std::io::stderr(),
        "Joints at the end: {} deg.",
        joints.join(" ")
    )?;
    Ok(Outcome::Good)
}

fn quit_on_signal() -> anyhow::Result<Arc<AtomicBool>> {
    let quit = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&quit))?;
    }
    Ok(quit)
}

fn length(seconds: Option<f64>) -> anyhow::Result<Option<Duration>> {
    seconds
        .map(Duration::try_from_secs_f64)
        .transpose()
        .context("--seconds")
}
