//! `telearm doctor`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::{Outcome, load_plan};
use crate::doctor::live::WakeTest;
use crate::doctor::rights::Granted;
use crate::doctor::{Host, LiveTest, Subject, examine};
use crate::rt::sched;

/// Is this computer ready? Measured, with a line that helps under whatever is not. Changes nothing; exit status 1 if a must fails.
#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Judge the buses, ports, core and rate of this plan [default: whatever is there]
    plan: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Length of the live test, seconds; 0: none
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=3600))]
    seconds: u32,
    /// Unknown keys of the plan are warnings, not errors
    #[arg(long)]
    lenient: bool,
}

impl DoctorArgs {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let subject = match &self.plan {
            Some(path) => Subject::of(&load_plan(path, self.lenient)?.plan, sched::affinity()),
            None => Subject::anything(sched::affinity()),
        };
        let live = WakeTest {
            seconds: self.seconds.into(),
        };
        if self.seconds > 0 && !self.json {
            eprintln!(
                "Looking, with a live test of {} s (--seconds) ...\n",
                self.seconds
            );
        }
        let report = examine(
            &Host::this(),
            &Granted::probe(),
            &subject,
            (self.seconds > 0).then_some(&live as &dyn LiveTest),
        );
        let text = if self.json {
            serde_json::to_string_pretty(&report)? + "\n"
        } else {
            report.text()
        };
        std::io::stdout().write_all(text.as_bytes())?;
        Ok(Outcome::of(report.is_ready()))
    }
}
