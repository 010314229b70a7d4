//! Wake-up: our cycle wait, a bare `clock_nanosleep` loop and, if installed, cyclictest, all at once on one core, phase-shifted against each other
//! within the same period.
//!
//! All three record one value per wake-up, from the first deadline that they missed, and skip the deadlines that have passed meanwhile; so a
//! stall is one value of its full length for each.

use std::io;
use std::process::{Child, Command, Stdio};
use std::thread;

use super::prepare_host;
use crate::handoff::{WakeEpoch, sys};
use crate::rt::Refusal;
use crate::rt::clock;
use crate::rt::histogram::LatencyHistogram;
use crate::rt::memory::{Disturbances, prefault_stack};
use crate::rt::pace::{Pace, Pacer, Turn};
use crate::rt::sched::{self, Policy, SchedReport, Wanted};
use crate::time::{Span, Stamp};

/// cyclictest counts in buckets of 1 ns up to here; beyond, only the number of values and the largest are known.
const CYCLICTEST_RANGE_NS: i64 = 1_000_000;
/// From the call to deadline 0: threads, locked memory and cyclictest must be up by then.
const LEAD: Span = Span::from_ms(1_500);

/// What to measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WakeSetup {
    /// Cycle rate of every loop.
    pub rate_hz: u32,
    /// How long.
    pub seconds: f64,
    /// The core for all loops; `None` takes the last one that this process may use.
    pub cpu: Option<usize>,
    /// SCHED_FIFO priority of every loop.
    pub priority: u8,
    /// Run cyclictest as well, if it is installed.
    pub cyclictest: bool,
    /// Which of the three phases comes first; rotate it over repeated runs (0, 1, 2).
    pub rotation: u32,
}

impl Default for WakeSetup {
    fn default() -> Self {
        Self {
            rate_hz: 1000,
            seconds: 20.0,
            cpu: None,
            priority: 80,
            cyclictest: true,
            rotation: 0,
        }
    }
}

/// What was measured.
#[derive(Debug, Clone)]
pub struct WakeRun {
    /// Our pacer on its wake epoch.
    pub ours: LatencyHistogram,
    /// The bare loop.
    pub bare: LatencyHistogram,
    /// cyclictest, or why not.
    pub cyclictest: Result<LatencyHistogram, String>,
    /// Deadlines that passed while one of our cycles was late.
    pub missed: u64,
    /// Page faults and involuntary switches in our loop.
    pub disturbances: Disturbances,
    /// How the two threads were really scheduled.
    pub threads: Vec<SchedReport>,
    /// What the host did not grant.
    pub refusals: Vec<Refusal>,
}

/// One thread's part of the result.
struct LoopResult {
    histogram: LatencyHistogram,
    missed: u64,
    disturbances: Disturbances,
    sched: SchedReport,
}

/// Measures. Takes `seconds` and about two more.
///
/// # Errors
/// A thread cannot be started.
pub fn wake(setup: &WakeSetup) -> io::Result<WakeRun> {
    let (_dma, refusals) = prepare_host();
    let cpu = setup
        .cpu
        .or_else(|| sched::affinity().last().copied())
        .unwrap_or(0);
    // On a full second, because that is where cyclictest can be aligned to.
    let start = Stamp::from_ns(
        (clock::now() + LEAD)
            .as_ns()
            .next_multiple_of(1_000_000_000),
    );
    let cycles = (f64::from(setup.rate_hz) * setup.seconds) as u64;
    let phase = |place: u32| {
        let period_ns = 1_000_000_000 / i64::from(setup.rate_hz.max(1));
        Span::from_ns(i64::from((place + setup.rotation) % 3) * period_ns / 3)
    };
    let spawn =
        |name: &'static str, phase: Span, body: fn(Stamp, u32, u64) -> (LatencyHistogram, u64)| {
            let (rate_hz, priority) = (setup.rate_hz, setup.priority);
            thread::Builder::new().name(name.into()).spawn(move || {
                let sched = sched::apply(Wanted {
                    name,
                    policy: Policy::Fifo(priority),
                    cpu: Some(cpu),
                });
                prefault_stack();
                let before = Disturbances::of_this_thread();
                let (histogram, missed) = body(start + phase, rate_hz, cycles);
                LoopResult {
                    histogram,
                    missed,
                    disturbances: Disturbances::of_this_thread().since(before),
                    sched,
                }
            })
        };
    let cyclictest = if setup.cyclictest {
        start_cyclictest(setup, cpu, cycles, phase(2))
    } else {
        Err("not asked for".to_owned())
    };
    let ours = spawn("bench-ours", phase(0), our_loop)?;
    let bare = spawn("bench-bare", phase(1), bare_loop)?;
    let panicked = |_| io::Error::other("a measuring thread panicked");
    let (ours, bare) = (
        ours.join().map_err(panicked)?,
        bare.join().map_err(panicked)?,
    );
    Ok(WakeRun {
        ours: ours.histogram,
        bare: bare.histogram,
        cyclictest: cyclictest.and_then(finish_cyclictest),
        missed: ours.missed,
        disturbances: ours.disturbances,
        threads: vec![ours.sched, bare.sched],
        refusals,
    })
}

/// The wait of the control cycle, as control uses it.
fn our_loop(t0: Stamp, rate_hz: u32, cycles: u64) -> (LatencyHistogram, u64) {
    let (mut histogram, mut missed) = (LatencyHistogram::new(), 0);
    let wake = WakeEpoch::new();
    let mut pacer = Pacer::new(t0, rate_hz);
    loop {
        if let Turn::Cycle(tick) = pacer.wait(&wake, wake.epoch()) {
            histogram.record(tick.late());
            missed += tick.missed;
            if tick.n + tick.missed >= cycles {
                return (histogram, missed);
            }
        }
    }
}

/// The least that keeps a rate.
fn bare_loop(t0: Stamp, rate_hz: u32, cycles: u64) -> (LatencyHistogram, u64) {
    let (mut histogram, mut missed) = (LatencyHistogram::new(), 0);
    let mut pace = Pace::new(t0, rate_hz);
    loop {
        sys::sleep_until(pace.deadline());
        if let Some(tick) = pace.tick(clock::now()) {
            histogram.record(tick.late());
            missed += tick.missed;
            if tick.n + tick.missed >= cycles {
                return (histogram, missed);
            }
        }
    }
}

fn start_cyclictest(
    setup: &WakeSetup,
    cpu: usize,
    cycles: u64,
    phase: Span,
) -> Result<Child, String> {
    if setup.rate_hz == 0 || 1_000_000 % setup.rate_hz != 0 {
        return Err(format!("cyclictest has no period for {} Hz", setup.rate_hz));
    }
    Command::new("cyclictest")
        .args(["--quiet", "--nsecs", "--mlockall", "--threads=1"])
        .arg(format!("--priority={}", setup.priority))
        .arg(format!("--affinity={cpu}"))
        .arg(format!("--interval={}", 1_000_000 / setup.rate_hz))
        .arg(format!("--loops={cycles}"))
        .arg(format!("--secaligned={}", phase.as_ns() / 1000))
        .arg(format!("--histogram={CYCLICTEST_RANGE_NS}"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("cyclictest (package rt-tests): {error}"))
}

fn finish_cyclictest(child: Child) -> Result<LatencyHistogram, String> {
    let output = child
        .wait_with_output()
        .map_err(|error| format!("cyclictest: {error}"))?;
    if !output.status.success() {
        return Err(format!("cyclictest: {}", output.status));
    }
    parse_cyclictest(&String::from_utf8_lossy(&output.stdout))
        .ok_or_else(|| "cyclictest: no histogram in its output".to_owned())
}

/// Reads lines of "value count" and the summary. Values beyond the range are put at its end, except the largest, which is known.
pub(super) fn parse_cyclictest(text: &str) -> Option<LatencyHistogram> {
    let mut histogram = LatencyHistogram::new();
    let summary = |heading: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(heading))
            .and_then(|rest| rest.split_whitespace().next()?.parse::<i64>().ok())
    };
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let (Some(value), Some(count)) = (words.next(), words.next()) else {
            continue;
        };
        let (Ok(value), Ok(count)) = (value.parse::<i64>(), count.parse::<u64>()) else {
            continue;
        };
        for _ in 0..count {
            histogram.record(Span::from_ns(value));
        }
    }
    let (max, beyond) = (
        summary("# Max Latencies:")?,
        summary("# Histogram Overflows:")?,
    );
    for _ in 1..beyond {
        histogram.record(Span::from_ns(CYCLICTEST_RANGE_NS));
    }
    if beyond > 0 {
        histogram.record(Span::from_ns(max));
    }
    (histogram.count() > 0).then_some(histogram)
}
