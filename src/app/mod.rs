//! A plan becomes threads.

pub mod options;
pub mod socket;
pub mod status;

pub use options::{ExitReport, RunOptions};

use crate::config::Plan;

/// Runs a plan until a signal, a `quit`, the time limit, or a failure.
///
/// # Errors
/// One clear sentence: why it could not start, or why it had to end.
pub fn run(plan: Plan, options: RunOptions) -> anyhow::Result<ExitReport> {
    let _ = (plan, options);
    anyhow::bail!(
        "this build has no control loop yet: `telearm run` and `telearm demo` cannot work"
    )
}
