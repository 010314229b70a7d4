//! `telearm selftest`.

use std::io::{self, Write};

use anyhow::{Context, bail};
use clap::Args;

use super::Outcome;
use crate::selftest::{self, Fault, Options, Row};

/// Play the fault suite: lost links, broken packets, stops, dead motors, broken buses, and what comes of each.
///
/// The program runs between an emulated hand and an emulated arm, in processes of its own; a running daemon is not touched.
#[derive(Debug, Args)]
pub(super) struct SelftestArgs {
    /// Only the faults whose name contains this; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Name the faults and what is expected of each
    #[arg(long)]
    list: bool,
    /// A JSON array of rows
    #[arg(long)]
    json: bool,
    /// Parts at a time [default: two for each processor, six at most]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    jobs: Option<u8>,
}

impl SelftestArgs {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let faults: Vec<&Fault> = selftest::cases::all()
            .into_iter()
            .filter(|f| self.only.is_empty() || self.only.iter().any(|o| f.name.contains(&**o)))
            .collect();
        if faults.is_empty() {
            bail!("no fault has such a name; `telearm selftest --list` names them");
        }
        let mut out = io::stdout().lock();
        if self.list {
            for fault in faults {
                writeln!(out, "{:20} {}; {}", fault.name, fault.what, fault.expected)?;
            }
            return Ok(Outcome::Good);
        }
        drop(out);
        let options = Options {
            exe: std::env::current_exe().context("cannot find this program's own file")?,
            jobs: self.jobs.map(usize::from),
        };
        let rows = selftest::play(&options, &faults, |row| {
            if !self.json {
                // A closed pipe shows at the summary.
                let _ = writeln!(io::stdout(), "{}", line(row));
            }
        });
        self.conclude(&rows)
    }

    fn conclude(&self, rows: &[Row]) -> anyhow::Result<Outcome> {
        let mut out = io::stdout().lock();
        let failed: Vec<&Row> = rows.iter().filter(|r| !r.passed).collect();
        if self.json {
            writeln!(out, "{}", serde_json::to_string_pretty(rows)?)?;
        } else {
            for row in &failed {
                writeln!(
                    out,
                    "\n{}: {}\n  expected: {}\n  happened: {}",
                    row.name,
                    row.what,
                    row.expected,
                    row.happened.replace('\n', "\n    ")
                )?;
            }
            writeln!(
                out,
                "{} passed, {} failed",
                rows.len() - failed.len(),
                failed.len()
            )?;
        }
        Ok(Outcome::of(failed.is_empty()))
    }
}

/// A row of the table: fault, expected, happened, verdict.
fn line(row: &Row) -> String {
    format!(
        "{} {:20} {:>4.1} s  {}; expected: {}; happened: {}",
        if row.passed { "pass" } else { "FAIL" },
        row.name,
        row.took_ms as f64 / 1e3,
        row.what,
        row.expected,
        row.happened.lines().next().unwrap_or("")
    )
}
