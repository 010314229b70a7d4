//! `telearm soak`: for developers, behind `scripts/soak`; not in the help.

use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use clap::Args;

use super::Outcome;
use crate::selftest::soak::{self, Options};

/// Run for minutes or hours with random faults, and look whether anything grows, leaks or moves
#[derive(Debug, Args)]
pub(super) struct SoakArgs {
    /// How long
    #[arg(long, value_name = "N", default_value_t = 30.0)]
    minutes: f64,
    /// Where everything random comes from [default: the time]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
}

impl SoakArgs {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let seed = self.seed.unwrap_or_else(|| {
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(1, |t| t.as_secs())
        });
        let length = Duration::try_from_secs_f64(self.minutes * 60.0)
            .ok()
            .filter(|l| *l > Duration::ZERO)
            .context("--minutes must be positive")?;
        let options = Options {
            exe: std::env::current_exe().context("cannot find this program's own file")?,
            length,
            seed,
        };
        println!("soak: {} minutes, seed {seed}", self.minutes);
        let (record, rows) =
            soak::run(&options, |text| println!("  {text}")).map_err(anyhow::Error::msg)?;
        let mut out = std::io::stdout().lock();
        let played: Vec<_> = record
            .played
            .iter()
            .map(|(name, n)| format!("{name} {n}"))
            .collect();
        writeln!(out, "  {:.0} s: {}", record.length_s, played.join(", "))?;
        for text in record.failures.iter().chain(&record.complaints.1) {
            writeln!(out, "  {}", text.replace('\n', "\n    "))?;
        }
        for row in &rows {
            writeln!(
                out,
                "{} {:48} {:>24}   bar: {}",
                if row.passed { "pass" } else { "FAIL" },
                row.what,
                row.measured,
                row.bar
            )?;
        }
        writeln!(
            out,
            "longest wait of a thread that only sleeps: {:.1} ms",
            record.starved_ms
        )?;
        let failed = rows.iter().filter(|r| !r.passed).count();
        writeln!(
            out,
            "soak with seed {seed}: {} passed, {failed} failed",
            rows.len() - failed
        )?;
        Ok(Outcome::of(failed == 0))
    }
}
