//! What the command line asks of a run, and what a run says at its end.

use std::path::PathBuf;
use std::time::Duration;

/// How to run a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunOptions {
    /// Everything but sending to the arms.
    pub dry_run: bool,
    /// Refuse without real-time rights. The plan can ask for it too.
    pub require_rt: bool,
    /// The control socket; `None`: the plan's, else the default place.
    pub socket: Option<PathBuf>,
    /// A run that cannot open its default control socket goes on without one (the demo).
    pub socket_optional: bool,
    /// End after this long; `None`: run until told.
    pub time_limit: Option<Duration>,
    /// Show the live view on the terminal.
    pub live_view: bool,
    /// Start the emulated operator and arm that the plan names (the demo).
    pub emulate: bool,
}

/// What a run says at its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExitReport {
    /// The run did what it was asked; false gives exit status 1.
    pub good: bool,
    /// Latency report and counters, for the terminal.
    pub text: String,
}
