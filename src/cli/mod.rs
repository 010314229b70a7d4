//! Command line.

use std::process::ExitCode;

/// Parses the arguments, runs the command, gives the exit status: 0 good, 1 refused or failed, 2 usage.
#[must_use]
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
