//! `telearm bench instructions`: for `scripts/bench_instructions`, which runs it under callgrind.

use clap::Args;

use crate::app::bench::Work;
use crate::cli::Outcome;

/// Do a piece of work so many times, for an instruction counter.
#[derive(Debug, Args)]
pub(in crate::cli) struct InstructionsArgs {
    /// Which
    #[arg(value_enum)]
    work: Work,
    /// How often
    #[arg(long)]
    turns: u32,
}

impl InstructionsArgs {
    pub(super) fn run(&self) -> anyhow::Result<Outcome> {
        self.work.run(self.turns)?;
        Ok(Outcome::Good)
    }
}
