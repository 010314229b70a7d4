//! Where the time of a cycle goes: reading, thinking and sending of each lane, apart; and what the kernel is asked for.
//!
//! A run of its own, because looking at the clock inside a cycle is not free.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use anyhow::Result;

use super::cycle::Running;
use super::rig::Rig;
use super::syscalls::{self, Calls};
use crate::control::{
    CycleInputs, Footprint, GroupView, LaneSent, LaneStanding, LaneView, Requests, RunLane,
};
use crate::handoff::{ControlGate, LaneLine, StopLatch};
use crate::rt::clock;
use crate::rt::histogram::LatencyHistogram;
use crate::rt::measure::prepare_host;
use crate::time::{Span, Stamp};

/// What a lane's share of a cycle costs.
#[derive(Debug, Clone, Default)]
pub struct CycleCost {
    /// Draining the bus, decoding, judging.
    pub poll: LatencyHistogram,
    /// `assess` and `act`: everything from sample to vetted command.
    pub think: LatencyHistogram,
    /// Encoding, the system call, the hold frames for the watchdog.
    pub send: LatencyHistogram,
    /// The same minus a loop that reads the clock as often: one clock reading.
    pub clock_reading: Span,
    /// System calls per cycle wait of the control thread, by name, or why they were not counted.
    pub calls: Option<Result<Calls, String>>,
}

impl CycleCost {
    fn add(&mut self, other: &Self) {
        self.poll.add(&other.poll);
        self.think.add(&other.think);
        self.send.add(&other.send);
    }
}

/// Measures all lanes together: each value is of one lane in one cycle. Takes `seconds` and some four more.
///
/// # Errors
/// As [`cycle`](super::cycle()).
pub fn cycle_cost(rate_hz: u32, lanes: usize, seconds: u32) -> Result<CycleCost> {
    let (_dma, _) = prepare_host();
    let mut rig = Rig::new(rate_hz, lanes)?;
    let on = Arc::new(AtomicBool::new(false));
    let (out, results) = channel();
    let mut running = Running::start(&mut rig, clock::now() + Span::from_ms(20), |_, inner| {
        Box::new(Timed {
            inner,
            on: Arc::clone(&on),
            cost: CycleCost::default(),
            assessing: Span::ZERO,
            out: out.clone(),
        })
    })?;
    drop(out);
    let measured = running.engage().and_then(|()| {
        on.store(true, Ordering::Relaxed);
        let followed = running.follow_for(Duration::from_secs(seconds.into()));
        on.store(false, Ordering::Relaxed);
        followed?;
        Ok(syscalls::of_thread(
            running.thread_id.load(Ordering::Relaxed),
        ))
    });
    drop(running.end()?);
    let mut cost = CycleCost {
        calls: Some(measured?),
        clock_reading: clock_reading(),
        ..CycleCost::default()
    };
    results.iter().for_each(|lane| cost.add(&lane));
    Ok(cost)
}

fn clock_reading() -> Span {
    const READINGS: i64 = 10_000;
    let began = clock::now();
    for _ in 1..READINGS {
        std::hint::black_box(clock::now());
    }
    Span::from_ns((clock::now() - began).as_ns() / READINGS)
}

/// A lane that looks at the clock. What it has seen goes out when it is dropped, after the loop has ended.
struct Timed {
    inner: Box<dyn RunLane>,
    on: Arc<AtomicBool>,
    cost: CycleCost,
    assessing: Span,
    out: Sender<CycleCost>,
}

impl Timed {
    fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        // Nobody waits for it if the measurement failed.
        let _ = self.out.send(self.cost.clone());
    }
}

impl RunLane for Timed {
    fn poll(&mut self, now: Stamp, may_configure: bool) {
        let began = clock::now();
        self.inner.poll(now, may_configure);
        if self.is_on() {
            self.cost.poll.record(clock::now() - began);
        }
    }

    fn assess(
        &mut self,
        cycle: &CycleInputs<'_>,
        requests: Requests,
        command_due: bool,
    ) -> LaneStanding {
        let began = clock::now();
        let standing = self.inner.assess(cycle, requests, command_due);
        self.assessing = clock::now() - began;
        standing
    }

    fn act(
        &mut self,
        cycle: &CycleInputs<'_>,
        group: GroupView,
        others: &[Footprint],
        line: &LaneLine,
    ) {
        let began = clock::now();
        self.inner.act(cycle, group, others, line);
        if self.is_on() {
            self.cost
                .think
                .record(self.assessing + (clock::now() - began));
        }
    }

    fn footprint(&self) -> Option<Footprint> {
        self.inner.footprint()
    }

    fn send(&mut self, gate: &mut ControlGate, latch: &StopLatch, now: Stamp) -> LaneSent {
        let began = clock::now();
        let sent = self.inner.send(gate, latch, now);
        if self.is_on() && sent.sent {
            self.cost.send.record(clock::now() - began);
        }
        sent
    }

    fn recover(&mut self, now: Stamp) {
        self.inner.recover(now);
    }

    fn view(&self, now: Stamp) -> LaneView {
        self.inner.view(now)
    }
}
