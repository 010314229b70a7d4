//! Packet to frame, live: what the program adds to the wait for the next deadline.
//!
//! A packet waits for the first deadline after it has become visible to control; no program that keeps a rate can do without this wait. All
//! the rest (network stack, input thread, wake-up, cycle, system call) is what is compared:
//! ```text
//! sent ──► visible ······ wait ······ deadline ──► frames handed to the kernel
//!    beyond                                beyond
//! ```

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};

use super::rig::{Rig, busy_hand, spawn};
use crate::config::DevicePlan;
use crate::control::{Engine, LaneSet, Request};
use crate::handoff::{LastUsable, SourceId, StopLine, sys};
use crate::operator::emulate::Ticks;
use crate::operator::io::udp::{Outlets, Seat, UdpSource};
use crate::operator::io::{BoundPort, SourceStats};
use crate::operator::pin::Pin;
use crate::operator::rctp::Session;
use crate::operator::rctp::emulate::Emulator;
use crate::operator::{Break, DatagramSession, Glance, SessionCounts, Verdict};
use crate::rt::clock;
use crate::rt::histogram::LatencyHistogram;
use crate::rt::measure::{Jitter, prepare_host};
use crate::rt::pace::{Pace, Pacer, Turn};
use crate::rt::sched::{Policy, SchedReport};
use crate::time::{Span, Stamp};

/// About 50 packets a second, at no fixed phase against the cycle.
const GAP_MIN: Span = Span::from_ms(17);
const GAP_SPREAD_NS: u64 = 6_000_000;
/// Lanes are asked to engage so often while they do not follow.
const LOOK_CYCLES: u64 = 20;
/// The lane follows within this.
const ENGAGE_WITHIN: std::time::Duration = std::time::Duration::from_secs(20);

/// What to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveSetup {
    /// Cycles per second.
    pub rate_hz: u32,
    /// How long.
    pub seconds: u32,
}

/// What was measured.
#[derive(Debug, Clone)]
pub struct LiveRun {
    /// Packet sent -> frames, without the wait for the deadline.
    pub beyond: LatencyHistogram,
    /// Packet sent -> frames.
    pub whole: LatencyHistogram,
    /// Packets sent.
    pub sent: u64,
    /// How control was really scheduled.
    pub threads: Vec<SchedReport>,
}

#[derive(Default)]
struct Shared {
    sent_ns: AtomicU64,
    visible_ns: AtomicU64,
    following: AtomicBool,
    over: AtomicBool,
}

/// Measures. Takes `seconds` and some two more.
///
/// # Errors
/// One sentence: what could not be set up.
pub fn live(setup: &LiveSetup) -> Result<LiveRun> {
    let (_dma, _) = prepare_host();
    let mut rig = Rig::new(setup.rate_hz, 1)?;
    let shared = Arc::new(Shared::default());
    let to = watch_first_source(&mut rig, &shared)?;
    let engine = rig.engine(|_, lane| lane);
    let mut input = rig.start_input()?;
    let control = spawn(
        "bench-control",
        Policy::Fifo(rig.plan.control.priority),
        rig.cores.control,
        {
            let (shared, line, rate_hz) =
                (Arc::clone(&shared), Arc::clone(&rig.line), setup.rate_hz);
            move || control_loop(engine, &line, &shared, rate_hz)
        },
    )?;
    let sender = spawn("bench-sender", Policy::Other, rig.cores.other, {
        let (shared, seconds) = (Arc::clone(&shared), setup.seconds);
        move || send_loop(to, seconds, &shared)
    })?;
    let panicked = |_| anyhow!("a measuring thread panicked");
    let (sent, _) = sender.join().map_err(panicked)?;
    shared.over.store(true, Ordering::SeqCst);
    let ((beyond, whole), control_sched) = control.join().map_err(panicked)?;
    input.stop();
    Ok(LiveRun {
        beyond,
        whole,
        sent: sent?,
        threads: vec![control_sched],
    })
}

/// Puts a source in place that notes when a sample becomes visible; gives its address.
fn watch_first_source(rig: &mut Rig, shared: &Arc<Shared>) -> Result<SocketAddr> {
    let operator = rig
        .plan
        .operators
        .first()
        .context("the plan has no operator")?;
    let DevicePlan::Rctp(settings) = operator.device.clone() else {
        bail!("this bench measures a Quest hand");
    };
    let port = BoundPort::bind(settings.door.listen)?;
    let to = port.local_addr()?;
    let (stop_line, shared) = (Arc::clone(&rig.line), Arc::clone(shared));
    rig.replace_source(|publisher| {
        let session = Watched {
            inner: Session::new(&settings),
            shared,
        };
        let outlets = Outlets {
            publisher,
            last_usable: Arc::new(LastUsable::new()),
            stop_line,
            stats: Arc::new(SourceStats::new(session.drop_reasons())),
            id: SourceId::operator(0),
        };
        let pin = Pin::new(settings.door.allow.clone(), settings.door.disengage_after);
        let seat = Seat::new(Box::new(session), pin, outlets);
        Ok(Box::new(UdpSource::new(port, seat)))
    })?;
    Ok(to)
}

/// A session that notes when it is done with a datagram; publishing comes right after.
struct Watched {
    inner: Session,
    shared: Arc<Shared>,
}

impl DatagramSession for Watched {
    fn drop_reasons(&self) -> &'static [&'static str] {
        self.inner.drop_reasons()
    }

    fn glance(&self, bytes: &[u8]) -> Glance {
        self.inner.glance(bytes)
    }

    fn on_datagram(&mut self, bytes: &[u8], received_at: Stamp) -> Verdict {
        let verdict = self.inner.on_datagram(bytes, received_at);
        self.shared
            .visible_ns
            .store(clock::now().as_ns(), Ordering::Relaxed);
        verdict
    }

    fn on_break(&mut self, why: Break) {
        self.inner.on_break(why);
    }

    fn counts(&self) -> SessionCounts {
        self.inner.counts()
    }
}

fn control_loop(
    mut engine: Engine,
    line: &StopLine,
    shared: &Shared,
    rate_hz: u32,
) -> (LatencyHistogram, LatencyHistogram) {
    let (mut beyond, mut whole) = (LatencyHistogram::new(), LatencyHistogram::new());
    let mut pacer = Pacer::new(clock::now() + Span::from_ms(5), rate_hz);
    while !shared.over.load(Ordering::SeqCst) {
        let seen = line.wake.epoch();
        let Turn::Cycle(tick) = pacer.wait(&line.wake, seen) else {
            continue;
        };
        let done = engine.cycle(tick.n, tick.woke);
        if let Some(received) = done.lanes.iter().find_map(|lane| lane.first_use_of) {
            let at = clock::now();
            let stamp = |of: &AtomicU64| Stamp::from_ns(of.load(Ordering::Relaxed));
            let (sent, visible) = (stamp(&shared.sent_ns), stamp(&shared.visible_ns));
            // Unless the next packet is on its way already: then the two stamps are not of the one that was used.
            if visible >= sent && (received - sent).as_ms().abs() < 5.0 {
                whole.record(at - sent);
                beyond.record((at - sent) - wait(pacer.pace(), tick.n, visible));
            }
        }
        if tick.n.is_multiple_of(LOOK_CYCLES) {
            let views = engine.views(tick.woke);
            let follows = views.iter().flatten().all(|v| v.report.mode.follows());
            shared.following.store(follows, Ordering::SeqCst);
            if !follows {
                engine.request(Request::Engage(LaneSet::ALL), tick.woke);
            }
        }
    }
    (beyond, whole)
}

/// From `visible` to the first deadline after it, if that is not later than deadline `n`, at which the sample was used.
pub(super) fn wait(pace: &Pace, n: u64, visible: Stamp) -> Span {
    let mut first = n;
    while first > 0 && pace.deadline_of(first - 1) >= visible {
        first -= 1;
    }
    (pace.deadline_of(first) - visible).max(Span::ZERO)
}

fn send_loop(to: SocketAddr, seconds: u32, shared: &Shared) -> Result<u64> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(to)?;
    let mut hand = Emulator::new(busy_hand(1));
    let mut jitter = Jitter::new(0x9E37_79B9_7F4A_7C15);
    let began = Instant::now();
    let (mut sent, mut end) = (0, None);
    loop {
        let now = clock::now();
        match end {
            None if shared.following.load(Ordering::SeqCst) => {
                end = Some(now + Span::from_s(seconds.into()));
            }
            None if began.elapsed() > ENGAGE_WITHIN => bail!("the lane does not follow its hand"),
            Some(end) if now >= end => return Ok(sent),
            _ => {}
        }
        sys::sleep(GAP_MIN + Span::from_ns(jitter.below(GAP_SPREAD_NS).cast_signed()));
        for datagram in hand.step() {
            shared.sent_ns.store(clock::now().as_ns(), Ordering::SeqCst);
            socket.send(&datagram.bytes)?;
            sent += u64::from(end.is_some());
        }
    }
}
