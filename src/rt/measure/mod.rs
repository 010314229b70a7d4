//! The measuring loops behind `telearm bench wake`, and what all benchmarks share: ratios, bars, a prepared host.
//!
//! On a machine that others use too (a laptop, a virtual machine) absolute latencies say more about the others than about us. So each loop runs
//! beside a bare one that does the minimum, in the same process, on the same core, in the same milliseconds, and what is judged is the
//! ratio of their quantiles. Blocks of time one after the other would not do: with the very same code they differ by a factor of two.
//! Maxima are reported and never judged.

mod wake;

use std::fmt;

pub use wake::{WakeRun, WakeSetup, wake};

use super::Refusal;
use super::histogram::LatencyHistogram;
use super::memory::{self, DmaLatency};

/// Quantiles of one histogram over those of its baseline: 1.0 is "as fast".
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratios {
    /// Of the medians.
    pub p50: f64,
    /// Of the 99th percentiles.
    pub p99: f64,
    /// Of the 99.9th percentiles.
    pub p999: f64,
    /// Of the maxima; for the reader, not for a verdict.
    pub max: f64,
}

impl Ratios {
    /// `ours` over `baseline`. NaN where either has no values.
    #[must_use]
    pub fn of(ours: &LatencyHistogram, baseline: &LatencyHistogram) -> Self {
        if ours.count() == 0 || baseline.count() == 0 {
            return Self {
                p50: f64::NAN,
                p99: f64::NAN,
                p999: f64::NAN,
                max: f64::NAN,
            };
        }
        let at = |quantile| ours.quantile(quantile).as_us() / baseline.quantile(quantile).as_us();
        Self {
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: ours.max().as_us() / baseline.max().as_us(),
        }
    }

    /// The median of several runs, each figure for itself; `None` without runs.
    #[must_use]
    pub fn median(runs: &[Self]) -> Option<Self> {
        let of = |field: fn(&Self) -> f64| {
            let mut values: Vec<f64> = runs.iter().map(field).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied()
        };
        Some(Self {
            p50: of(|r| r.p50)?,
            p99: of(|r| r.p99)?,
            p999: of(|r| r.p999)?,
            max: of(|r| r.max)?,
        })
    }

    /// Within a bar: no figure larger than the bar's. A figure that is not a number is not within.
    #[must_use]
    pub fn within(&self, bar: &Bar) -> bool {
        self.p50 <= bar.p50 && self.p99 <= bar.p99 && self.p999 <= bar.p999
    }
}

impl fmt::Display for Ratios {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "p50 {:.2}, p99 {:.2}, p99.9 {:.2}, max {:.2}",
            self.p50, self.p99, self.p999, self.max
        )
    }
}

/// The largest ratios that are good enough; infinity where a quantile is not judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bar {
    /// Of the medians.
    pub p50: f64,
    /// Of the 99th percentiles.
    pub p99: f64,
    /// Of the 99.9th percentiles.
    pub p999: f64,
}

/// Wake-up of our cycle wait over cyclictest, or over a bare `clock_nanosleep` loop.
pub const WAKE_BAR: Bar = Bar {
    p50: 1.15,
    p99: 1.3,
    p999: 1.7,
};
/// Packet in to first stop frame over a bare `recv` and `write`.
pub const STOP_BAR: Bar = Bar {
    p50: 1.8,
    p99: 2.5,
    p999: f64::INFINITY,
};

/// Deadline to last frame over a bare loop that does the same reads and writes.
pub const CYCLE_BAR: Bar = Bar {
    p50: 1.3,
    p99: 1.3,
    p999: f64::INFINITY,
};

/// Locks memory and holds the C-state request while a measurement runs; what was refused is part of its result.
#[must_use]
pub fn prepare_host() -> (Option<DmaLatency>, Vec<Refusal>) {
    let mut refusals = Vec::new();
    if let Err(refusal) = memory::lock_all() {
        refusals.push(refusal);
    }
    let dma = DmaLatency::hold()
        .map_err(|refusal| refusals.push(refusal))
        .ok();
    (dma, refusals)
}

/// A seeded source of jitter (xorshift), so that runs can be repeated.
#[derive(Debug)]
pub struct Jitter(u64);

impl Jitter {
    /// From a seed, which must not be zero.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number below `bound`.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % if bound == 0 { 1 } else { bound }
    }
}

#[cfg(test)]
mod tests;
