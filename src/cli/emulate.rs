//! `telearm emulate`: devices and arms made of software.

use std::io::Write;
use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};

use super::Outcome;
use crate::arm::can::{CanAddress, LocalBus};
use crate::arm::registry;
use crate::operator::rctp::emulate::{self, EmulateArgs, Sent};

/// Emulate an operator device or an arm, with faults.
#[derive(Debug, Subcommand)]
pub(super) enum EmulateCommand {
    /// A Quest hand: RCTP packets over UDP, 50 a second
    Rctp(EmulateArgs),
    /// A Piper on a CAN interface (a virtual one, say) or on a bus inside this machine
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

impl EmulateCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        match self {
            Self::Rctp(args) => rctp(&args),
            Self::Piper(args) => arm("piper", &args),
        }
    }
}

fn rctp(args: &EmulateArgs) -> anyhow::Result<Outcome> {
    let to = args
        .to
        .to_socket_addrs()
        .ok()
        .and_then(|mut addresses| addresses.next())
        .with_context(|| format!("{:?} is not an address like 192.168.1.5:8888", args.to))?;
    let quit = quit_on_signal()?;
    let length = length(args.seconds)?;
    let sent = Sent::default();
    writeln!(
        std::io::stderr(),
        "Sending a {:?} hand to UDP {to}, 50 packets a second. Ctrl-C ends it.",
        args.script
    )?;
    emulate::run(to, args.config(), length, &quit, &sent)?;
    writeln!(
        std::io::stderr(),
        "{} datagrams sent, {} refused by the network.",
        sent.datagrams.load(Ordering::Relaxed),
        sent.refused.load(Ordering::Relaxed)
    )?;
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
