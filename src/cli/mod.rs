//! The command line: one file per command. Exit status 0 good, 1 refused or failed with one clear sentence, 2 usage.

mod act;
mod bench;
mod calibrate;
mod can;
mod check;
mod decode;
mod demo;
mod doctor;
mod emulate;
mod frame_check;
mod home;
mod latency;
mod log_pipe;
mod run;
mod selftest;
mod soak;
mod status;
mod track;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::app::socket::{Client, Reply, Request};
use crate::config::{self, LoadError, Loaded, Strictness};

/// Drives robot arms from an operator's hand, in real time.
///
/// This software is not a safety function: a hard-wired emergency stop must be within reach. Start with `telearm demo`: it needs no
/// hardware and no root.
#[derive(Debug, Parser)]
#[command(name = "telearm", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::DemoArgs),
    Run(run::RunArgs),
    Check(check::CheckArgs),
    Doctor(doctor::DoctorArgs),
    Status(status::StatusArgs),
    Watch(status::WatchArgs),
    Engage(act::EngageArgs),
    Disengage(act::DisengageArgs),
    Stop(act::StopArgs),
    Reset(act::ResetArgs),
    Recover(act::RecoverArgs),
    Home(home::HomeArgs),
    Quit(act::QuitArgs),
    Latency(latency::LatencyArgs),
    #[command(subcommand)]
    Emulate(emulate::EmulateCommand),
    Decode(decode::DecodeArgs),
    #[command(subcommand)]
    Can(can::CanCommand),
    #[command(subcommand)]
    Calibrate(calibrate::CalibrateCommand),
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    Selftest(selftest::SelftestArgs),
    #[command(hide = true)]
    Soak(soak::SoakArgs),
}

/// How a command ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Exit status 0.
    Good,
    /// Exit status 1; the command has said why.
    Refused,
}

impl Outcome {
    const fn of(good: bool) -> Self {
        if good { Self::Good } else { Self::Refused }
    }
}

/// Parses the arguments, runs the command, gives the exit status: 0 good, 1 refused or failed, 2 usage.
#[must_use]
pub fn main() -> ExitCode {
    start_log();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => {
            // Help and version come this way too; clap knows which is which. A closed pipe is not worth a complaint.
            let _ = usage.print();
            return ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(2));
        }
    };
    let outcome = match cli.command {
        Command::Demo(args) => args.run(),
        Command::Run(args) => args.run(),
        Command::Check(args) => args.run(),
        Command::Doctor(args) => args.run(),
        Command::Status(args) => args.run(),
        Command::Watch(args) => args.run(),
        Command::Engage(args) => args.run(),
        Command::Disengage(args) => args.run(),
        Command::Stop(args) => args.run(),
        Command::Reset(args) => args.run(),
        Command::Recover(args) => args.run(),
        Command::Home(args) => args.run(),
        Command::Quit(args) => args.run(),
        Command::Latency(args) => args.run(),
        Command::Emulate(command) => command.run(),
        Command::Decode(args) => args.run(),
        Command::Can(command) => command.run(),
        Command::Calibrate(command) => command.run(),
        Command::Bench(command) => command.run(),
        Command::Selftest(args) => args.run(),
        Command::Soak(args) => args.run(),
    };
    log_pipe::flush();
    match outcome {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Refused) => ExitCode::from(1),
        // Whoever read our output has enough of it.
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "telearm: {error:#}");
            ExitCode::from(1)
        }
    }
}

fn start_log() {
    use std::io::IsTerminal;
    let mut log =
        env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("info"));
    if std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        log.write_style(env_logger::WriteStyle::Always);
    }
    log.target(env_logger::Target::Pipe(Box::new(log_pipe::LogPipe)))
        .init();
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Where the running daemon listens.
#[derive(Debug, Args)]
struct SocketArgs {
    /// Control socket of the daemon [default: $XDG_RUNTIME_DIR/telearm.sock, then /run/telearm.sock]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

impl SocketArgs {
    fn connect(&self) -> anyhow::Result<Client> {
        Ok(Client::connect(self.socket.as_deref())?)
    }

    /// One request, its reply printed.
    fn ask(&self, request: &Request) -> anyhow::Result<Outcome> {
        say(&self.connect()?.ask(request)?)
    }
}

/// Prints a reply: what was asked for on standard output, a refusal on standard error.
fn say(reply: &Reply) -> anyhow::Result<Outcome> {
    match reply {
        Reply::Ok(text) => {
            let mut out = std::io::stdout().lock();
            out.write_all(text.as_bytes())?;
            if !text.is_empty() && !text.ends_with('\n') {
                writeln!(out)?;
            }
            Ok(Outcome::Good)
        }
        Reply::Refused(why) => {
            writeln!(std::io::stderr(), "telearm: refused: {why}")?;
            Ok(Outcome::Refused)
        }
    }
}

/// Reads a plan and prints its warnings.
fn load_plan(path: &Path, lenient: bool) -> anyhow::Result<Loaded> {
    let strictness = if lenient {
        Strictness::Lenient
    } else {
        Strictness::Strict
    };
    let loaded = config::load(path, strictness).map_err(|error| match error {
        // The report starts with file, line and column: on a line of its own, editors can jump to it.
        LoadError::Refused { .. } => anyhow::anyhow!("the plan is refused\n{error}"),
        LoadError::Read { .. } => anyhow::Error::from(error),
    })?;
    if loaded.warnings.warnings() > 0 {
        write!(std::io::stderr(), "{}", loaded.warnings)?;
    }
    Ok(loaded)
}
