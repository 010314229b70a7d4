//! `telearm bench wake`.

use clap::Args;

use super::Common;
use super::runs::Runs;
use crate::cli::Outcome;
use crate::rt::measure::{WAKE_BAR, WakeSetup, wake};

/// Wake-up of the cycle wait, beside a bare loop and cyclictest if it is installed.
#[derive(Debug, Args)]
pub(in crate::cli) struct WakeArgs {
    /// Cycles per second
    #[arg(long, value_name = "HZ", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(30..=1000))]
    rate: u32,
    #[command(flatten)]
    common: Common,
    /// Core for all loops [default: the last one]
    #[arg(long)]
    cpu: Option<usize>,
}

impl WakeArgs {
    pub(super) fn run(&self) -> anyhow::Result<Outcome> {
        let mut runs = Runs::new("wake-up", Some(WAKE_BAR));
        for rotation in 0..self.common.runs {
            let run = wake(&WakeSetup {
                rate_hz: self.rate,
                seconds: self.common.seconds.into(),
                cpu: self.cpu,
                rotation,
                ..WakeSetup::default()
            })?;
            let (name, baseline) = match &run.cyclictest {
                Ok(histogram) => ("cyclictest", histogram),
                Err(why) => {
                    runs.note(format!("cyclictest: {why}; judged against the bare loop"));
                    ("bare loop", &run.bare)
                }
            };
            runs.add(&run.ours, name, baseline);
            runs.refusals(&run.refusals);
            runs.note(format!("{} deadlines missed", run.missed));
        }
        runs.finish("wake", self.common.json)
    }
}
