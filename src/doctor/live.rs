//! The live test: loops at the plan's rate on the control core, ours beside a bare one, in the same milliseconds. What the files say is a
//! promise; this is what happens.

use serde::Serialize;

use super::{Check, Finding, Group};
use crate::rt::histogram::LatencyHistogram;
use crate::rt::measure::{WakeSetup, wake};

/// The largest share of a period that one cycle in a thousand may wake up late, for a good verdict.
const LATE_GOOD: f64 = 0.1;
/// From this share on the rate is not there to be had.
const LATE_HOPELESS: f64 = 0.5;

/// Something that can be run for a while and measured.
pub trait LiveTest {
    /// Runs at `rate_hz` on `core`.
    ///
    /// # Errors
    /// One sentence on why it could not run.
    fn run(&self, core: usize, rate_hz: u32) -> Result<LiveOutcome, String>;
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LiveOutcome {
    /// Core of all loops.
    pub core: usize,
    /// Cycles per second of each.
    pub rate_hz: u32,
    /// Our loop: from the deadline to what it does.
    pub ours: Quantiles,
    /// What our loop is, in words.
    pub what: &'static str,
    /// A bare loop beside it.
    pub bare: Quantiles,
    /// Deadlines that passed while one of our cycles was late.
    pub missed: u64,
    /// What the host did not grant.
    pub notes: Vec<String>,
}

/// A histogram's answer, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quantiles {
    /// How many values.
    pub count: u64,
    /// Median.
    pub p50_us: f64,
    /// 99 of 100 are below.
    pub p99_us: f64,
    /// 999 of 1000 are below.
    pub p999_us: f64,
    /// The largest.
    pub max_us: f64,
}

impl Quantiles {
    /// Of a histogram.
    #[must_use]
    pub fn of(histogram: &LatencyHistogram) -> Self {
        let at = |q| histogram.quantile(q).as_us();
        Self {
            count: histogram.count(),
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: histogram.max().as_us(),
        }
    }
}

/// Our cycle wait alone, beside the bare loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WakeTest {
    /// How long.
    pub seconds: f64,
}

impl LiveTest for WakeTest {
    fn run(&self, core: usize, rate_hz: u32) -> Result<LiveOutcome, String> {
        let run = wake(&WakeSetup {
            rate_hz,
            seconds: self.seconds,
            cpu: Some(core),
            cyclictest: false,
            ..WakeSetup::default()
        })
        .map_err(|error| format!("the loops could not be started: {error}"))?;
        let mut notes: Vec<String> = run.refusals.iter().map(ToString::to_string).collect();
        notes.extend(
            run.threads
                .iter()
                .flat_map(|thread| thread.refusals.iter().map(ToString::to_string)),
        );
        notes.sort();
        notes.dedup();
        Ok(LiveOutcome {
            core,
            rate_hz,
            ours: Quantiles::of(&run.ours),
            what: "cycle wait",
            bare: Quantiles::of(&run.bare),
            missed: run.missed,
            notes,
        })
    }
}

/// Judged against the period: a cycle that is late by a tenth of it is still a cycle. The group depends on how bad it is.
#[must_use]
pub fn judge(outcome: &LiveOutcome) -> Finding {
    let period_us = 1e6 / f64::from(outcome.rate_hz.max(1));
    let share = outcome.ours.p999_us / period_us;
    let group = if share >= LATE_HOPELESS {
        Group::Must
    } else {
        Group::Should
    };
    let check = Check::new(
        "live",
        group,
        format!("live test at {} Hz", outcome.rate_hz),
    );
    if outcome.ours.count == 0 {
        return check.unknown("nothing was measured");
    }
    let value = format!(
        "core {}: 1 in 1000 cycles starts {:.0} us late or later ({:.1} % of the period), max {:.0} us, {} missed; bare loop {:.0} us, max {:.0} us",
        outcome.core,
        outcome.ours.p999_us,
        share * 100.0,
        outcome.ours.max_us,
        outcome.missed,
        outcome.bare.p999_us,
        outcome.bare.max_us,
    );
    let fix = if outcome.bare.p999_us >= period_us * LATE_GOOD {
        "the bare loop is late as well: it is the computer; work through the lines above"
    } else {
        "the bare loop is not late: report this"
    };
    // Written so that a figure that is not a number is not good.
    check.judge(share < LATE_GOOD, value, fix)
}
