//! `telearm bench`: each loop beside a bare one in the same milliseconds; what is judged is the ratio.

use std::fmt::Write as _;
use std::io::Write;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::Outcome;
use super::track::TrackArgs;
use crate::rt::histogram::LatencyHistogram;
use crate::rt::measure::{
    Bar, Ratios, STOP_BAR, StopSetup, WAKE_BAR, WakeSetup, stop as measure_stop,
    wake as measure_wake,
};
use crate::rt::report::{Named, table};

/// Measure this machine and this program, each figure beside a baseline of the same run. Exit status 1 on a missed bar.
#[derive(Debug, Subcommand)]
pub(super) enum BenchCommand {
    Wake(WakeArgs),
    Stop(StopArgs),
    Track(TrackArgs),
}

/// Wake-up of the cycle wait, beside a bare loop and cyclictest if it is installed.
#[derive(Debug, Args)]
pub(super) struct WakeArgs {
    #[command(flatten)]
    common: Common,
    /// Core for all loops [default: the last one]
    #[arg(long)]
    cpu: Option<usize>,
}

/// Packet with a stop bit in, first stop frame out, beside a bare receive and write.
#[derive(Debug, Args)]
pub(super) struct StopArgs {
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
struct Common {
    /// Cycles per second
    #[arg(long, value_name = "HZ", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(30..=1000))]
    rate: u32,
    /// Length of each run, seconds
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Runs; the median of their ratios is judged
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    runs: u32,
    /// As JSON
    #[arg(long)]
    json: bool,
}

impl BenchCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        match self {
            Self::Wake(args) => wake(&args),
            Self::Stop(args) => stop(&args),
            Self::Track(args) => args.run(),
        }
    }
}

fn wake(args: &WakeArgs) -> anyhow::Result<Outcome> {
    let mut runs = Runs::new("wake", "wake-up", WAKE_BAR);
    for rotation in 0..args.common.runs {
        let run = measure_wake(&WakeSetup {
            rate_hz: args.common.rate,
            seconds: args.common.seconds.into(),
            cpu: args.cpu,
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
    runs.finish(args.common.json)
}

fn stop(args: &StopArgs) -> anyhow::Result<Outcome> {
    let mut runs = Runs::new("stop", "packet to stop frame", STOP_BAR);
    for _ in 0..args.common.runs {
        let run = measure_stop(&StopSetup {
            rate_hz: args.common.rate,
            seconds: args.common.seconds.into(),
            ..StopSetup::default()
        })?;
        runs.add(&run.ours, "bare loop", &run.bare);
        runs.refusals(&run.refusals);
        runs.note(format!("{} packets each way", run.sent));
    }
    runs.finish(args.common.json)
}

/// Collects runs, judges their median.
struct Runs {
    id: &'static str,
    title: &'static str,
    bar: Bar,
    ratios: Vec<Ratios>,
    text: String,
    notes: Vec<String>,
    json: Vec<Value>,
}

impl Runs {
    const fn new(id: &'static str, title: &'static str, bar: Bar) -> Self {
        Self {
            id,
            title,
            bar,
            ratios: Vec::new(),
            text: String::new(),
            notes: Vec::new(),
            json: Vec::new(),
        }
    }

    fn add(&mut self, ours: &LatencyHistogram, baseline_name: &str, baseline: &LatencyHistogram) {
        let ratios = Ratios::of(ours, baseline);
        let rows = [
            Named {
                name: self.title,
                histogram: ours,
            },
            Named {
                name: baseline_name,
                histogram: baseline,
            },
        ];
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{}ratio: {ratios}\n", table(&rows));
        self.json.push(json!({
            "baseline": baseline_name,
            "ours_us": quantiles(ours),
            "baseline_us": quantiles(baseline),
            "ratio": numbers(&ratios),
        }));
        self.ratios.push(ratios);
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn refusals(&mut self, refusals: &[crate::rt::Refusal]) {
        for refusal in refusals {
            self.note(refusal.to_string());
        }
    }

    fn finish(self, as_json: bool) -> anyhow::Result<Outcome> {
        let median = Ratios::median(&self.ratios);
        let good = median.is_some_and(|m| m.within(&self.bar));
        let mut out = std::io::stdout().lock();
        if as_json {
            let value = json!({
                "bench": self.id,
                "runs": self.json,
                "median_ratio": median.as_ref().map(numbers),
                "bar": bar_numbers(&self.bar),
                "within_bar": good,
                "notes": self.notes,
            });
            writeln!(out, "{}", serde_json::to_string_pretty(&value)?)?;
            return Ok(Outcome::of(good));
        }
        write!(out, "{}", self.text)?;
        for note in &self.notes {
            writeln!(out, "note: {note}")?;
        }
        if let Some(median) = median {
            writeln!(
                out,
                "median of {} runs: {median}; bar: p50 {}, p99 {}{}: {}",
                self.ratios.len(),
                self.bar.p50,
                self.bar.p99,
                if self.bar.p999.is_finite() {
                    format!(", p99.9 {}", self.bar.p999)
                } else {
                    String::new()
                },
                if good { "within" } else { "MISSED" }
            )?;
        }
        Ok(Outcome::of(good))
    }
}

fn quantiles(histogram: &LatencyHistogram) -> Value {
    json!({
        "count": histogram.count(),
        "p50": histogram.quantile(0.5).as_us(),
        "p99": histogram.quantile(0.99).as_us(),
        "p999": histogram.quantile(0.999).as_us(),
        "max": histogram.max().as_us(),
    })
}

fn numbers(ratios: &Ratios) -> Value {
    json!({ "p50": ratios.p50, "p99": ratios.p99, "p999": ratios.p999, "max": ratios.max })
}

/// A figure that is not judged is null.
fn bar_numbers(bar: &Bar) -> Value {
    json!({ "p50": bar.p50, "p99": bar.p99, "p999": bar.p999 })
}
