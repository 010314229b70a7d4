//! `telearm run`.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{Outcome, load_plan};
use crate::app::{self, RunOptions};

/// Run a plan: the daemon. Ends on SIGINT, SIGTERM, SIGHUP or `telearm quit`.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The plan; examples are in rt-config/
    plan: PathBuf,
    /// Do everything but send to the arms
    #[arg(long)]
    dry_run: bool,
    /// Refuse to run without real-time rights (scripts/rt_host_setup gives them)
    #[arg(long)]
    require_rt: bool,
    /// Control socket [default: the plan's, else $XDG_RUNTIME_DIR/telearm.sock, else /run/telearm.sock]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// End after this many seconds
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..))]
    seconds: Option<u32>,
    /// Show the live view
    #[arg(long)]
    watch: bool,
    /// Unknown keys in the plan are warnings, not errors
    #[arg(long)]
    lenient: bool,
}

impl RunArgs {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let plan = load_plan(&self.plan, self.lenient)?.plan;
        let options = RunOptions {
            dry_run: self.dry_run,
            require_rt: self.require_rt || plan.control.require_rt,
            socket: self.socket,
            time_limit: self.seconds.map(|s| Duration::from_secs(s.into())),
            live_view: self.watch,
            ..RunOptions::default()
        };
        finish(plan, options)
    }
}

/// Runs, and prints what the run says at its end.
pub(super) fn finish(plan: crate::config::Plan, options: RunOptions) -> anyhow::Result<Outcome> {
    let report = app::run(plan, options)?;
    std::io::stdout().write_all(report.text.as_bytes())?;
    Ok(Outcome::of(report.good))
}
