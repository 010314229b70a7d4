//! A whole cycle: deadline to last frame handed to the kernel, beside a bare loop that does the same reads and writes.
//!
//! Ours is [`ControlLoop`] itself, with input thread, hands over UDP and lanes that follow; its own histograms are what is compared.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};

use super::bare::{self, BareRig, BareShared};
use super::rig::{Rig, off_core, spawn};
use crate::app::threads::queue;
use crate::control::thread::{
    AnswerReceiver, ControlEvent, ControlLoop, ControlView, Numbered, RequestSender,
};
use crate::control::{LaneSet, Request, RunLane};
use crate::handoff::{EventReceiver, Heartbeat, LANES_MAX, Reader, event_ring, mailbox};
use crate::rt::histogram::{Latency, LatencyCollector, LatencyHistogram, latency_exchange};
use crate::rt::measure::prepare_host;
use crate::rt::memory::Disturbances;
use crate::rt::pace::Pacer;
use crate::rt::sched::{Policy, SchedReport};
use crate::rt::{Refusal, clock};
use crate::supervisor::Mode;
use crate::time::{Span, Stamp};

/// Arms come up and lanes engage within this, or something is wrong.
const ENGAGE_WITHIN: Duration = Duration::from_secs(20);
/// Between two looks at the lanes.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// From here to deadline 0.
const LEAD: Span = Span::from_ms(20);

/// What to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CycleSetup {
    /// Cycles per second.
    pub rate_hz: u32,
    /// How long.
    pub seconds: u32,
    /// Lanes, 1..=4, each with a hand and a Piper.
    pub lanes: usize,
    /// Who is first in the period changes with its parity.
    pub rotation: u32,
}

/// What one loop did while it was recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoopCount {
    /// Cycles.
    pub cycles: u64,
    /// Frames received.
    pub frames_in: u64,
    /// Frames sent.
    pub frames_out: u64,
}

/// What was measured.
#[derive(Debug, Clone)]
pub struct CycleRun {
    /// Deadline -> last frame, of cycles that sent.
    pub ours: LatencyHistogram,
    /// The same of the bare loop.
    pub bare: LatencyHistogram,
    /// Deadline -> our thread runs.
    pub wake: LatencyHistogram,
    /// What ours did.
    pub our_count: LoopCount,
    /// What the bare loop did.
    pub bare_count: LoopCount,
    /// Deadlines missed by ours.
    pub missed: u64,
    /// Page faults and involuntary switches of our thread.
    pub disturbances: Disturbances,
    /// Heap operations of our thread; `None` where they are not counted.
    pub heap_operations: Option<u64>,
    /// Share of looks at which every lane followed its hand.
    pub following: f64,
    /// How the threads were really scheduled.
    pub threads: Vec<SchedReport>,
    /// What the host did not grant.
    pub refusals: Vec<Refusal>,
}

/// Measures. Takes `seconds` and some three more.
///
/// # Errors
/// One sentence: what could not be set up, or why the lanes do not follow.
pub fn cycle(setup: &CycleSetup) -> Result<CycleRun> {
    let (_dma, refusals) = prepare_host();
    let mut rig = Rig::new(setup.rate_hz, setup.lanes)?;
    let bare_rig = off_core(rig.cores.other, || BareRig::new(setup.lanes))?;
    let half = Span::from_s(0.5 / f64::from(setup.rate_hz));
    let start = clock::now() + LEAD;
    let (our_t0, bare_t0) = if setup.rotation.is_multiple_of(2) {
        (start, start + half)
    } else {
        (start + half, start)
    };
    let (divisor, rate_hz) = (rig.divisor(), setup.rate_hz);
    let mut running = Running::start(&mut rig, our_t0, |_, lane| lane)?;
    let shared = Arc::new(BareShared::default());
    let bare = spawn("bench-bare", running.policy, rig.cores.control, {
        let shared = Arc::clone(&shared);
        move || bare::run(bare_rig, bare_t0, rate_hz, divisor, &shared)
    })?;
    let measured = running.engage().and_then(|()| {
        running.begin();
        shared.recording.store(true, Ordering::Relaxed);
        let following = running.follow_for(Duration::from_secs(setup.seconds.into()));
        shared.recording.store(false, Ordering::Relaxed);
        following
    });
    shared.quit.store(true, Ordering::Relaxed);
    let (bare, bare_sched) = bare.join().map_err(|_| anyhow!("the bare loop panicked"))?;
    let (before, after) = (running.before, running.latest());
    let (control, our_sched) = running.end()?;
    let following = measured?;
    let latencies = control.latencies.into_set();
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Ok(CycleRun {
        ours: latencies.get(Latency::Cycle).clone(),
        bare,
        wake: latencies.get(Latency::WakeUp).clone(),
        our_count: LoopCount {
            cycles: after.cycles - before.cycles,
            frames_in: frames(&after, |c| c.frames_in + c.confirmed)
                - frames(&before, |c| c.frames_in + c.confirmed),
            frames_out: frames(&after, |c| c.frames_out) - frames(&before, |c| c.frames_out),
        },
        bare_count: LoopCount {
            cycles: load(&shared.cycles),
            frames_in: load(&shared.frames_in),
            frames_out: load(&shared.frames_out),
        },
        missed: after.late - before.late,
        disturbances: after.disturbances.since(before.disturbances),
        heap_operations: after
            .heap_operations
            .zip(before.heap_operations)
            .map(|(a, b)| a - b),
        following,
        threads: vec![our_sched, bare_sched],
        refusals,
    })
}

fn frames(view: &ControlView, of: impl Fn(&crate::arm::ArmCounters) -> u64) -> u64 {
    view.lanes.iter().flatten().map(|lane| of(&lane.arm)).sum()
}

/// The program running: control, input and hands.
pub(super) struct Running {
    pub(super) policy: Policy,
    /// The view at the beginning of the measurement.
    before: ControlView,
    lanes: usize,
    requests: RequestSender,
    _answers: AnswerReceiver,
    _events: EventReceiver<ControlEvent>,
    view: Reader<ControlView>,
    latencies: LatencyCollector,
    quit: Arc<AtomicBool>,
    control: thread::JoinHandle<(ControlLoop, SchedReport)>,
    /// Kernel id of the control thread; 0 until it runs.
    pub(super) thread_id: Arc<AtomicU64>,
    _input: crate::operator::io::InputThread,
    next_id: u32,
}

impl Running {
    /// Starts the threads of a rig, control's deadline 0 at `t0`. `wrap` may put something around each lane.
    pub(super) fn start(
        rig: &mut Rig,
        t0: Stamp,
        wrap: impl Fn(usize, Box<dyn RunLane>) -> Box<dyn RunLane>,
    ) -> Result<Self> {
        let (requests, requests_in) = queue();
        let (answers_out, answers) = queue();
        let (events_out, events) = event_ring::<ControlEvent, 256>();
        let (recorder, latencies) = latency_exchange();
        let (view_out, view) = mailbox(ControlView::default());
        let quit = Arc::new(AtomicBool::new(false));
        let thread_id = Arc::new(AtomicU64::new(0));
        let control = ControlLoop {
            engine: rig.engine(wrap),
            pacer: Pacer::new(t0, rig.plan.rate_hz),
            rate_hz: rig.plan.rate_hz,
            line: Arc::clone(&rig.line),
            heartbeat: Arc::new(Heartbeat::new()),
            requests: requests_in,
            answers: answers_out,
            events: events_out,
            latencies: recorder,
            view: view_out,
            away_after: Span::from_ms(100),
            quit: Arc::clone(&quit),
        };
        let policy = Policy::Fifo(rig.plan.control.priority);
        let lanes = rig.lanes();
        let control = spawn("bench-control", policy, rig.cores.control, {
            let thread_id = Arc::clone(&thread_id);
            move || {
                thread_id.store(own_thread_id(), Ordering::Relaxed);
                control.run()
            }
        })?;
        let input = rig.start_input()?;
        rig.start_hands()?;
        Ok(Self {
            policy,
            before: ControlView::default(),
            lanes,
            requests,
            _answers: answers,
            _events: events,
            view,
            latencies,
            quit,
            control,
            thread_id,
            _input: input,
            next_id: 0,
        })
    }

    pub(super) fn latest(&mut self) -> ControlView {
        *self.view.read()
    }

    fn ask(&mut self, request: Request) {
        self.next_id += 1;
        // A full queue means that control is late; it is asked again.
        let _ = self.requests.enqueue(Numbered {
            id: self.next_id,
            body: request,
        });
    }

    /// One look at the lanes: engages whatever can engage. True if all follow.
    fn look(&mut self) -> Result<bool> {
        if self.control.is_finished() {
            bail!("the control thread ended");
        }
        while self._answers.dequeue().is_some() {}
        while self._events.pop().is_some() {}
        let view = self.latest();
        let modes = view.lanes.iter().flatten().map(|lane| lane.report.mode);
        let (mut active, mut failed) = (0, false);
        for mode in modes {
            active += usize::from(mode.follows());
            failed |= matches!(mode, Mode::Fault { .. } | Mode::Stopped { .. });
        }
        if failed {
            self.ask(Request::Reset);
        } else if active < self.lanes {
            self.ask(Request::Engage(LaneSet::ALL));
        }
        Ok(active == self.lanes)
    }

    /// Until every lane follows its hand.
    pub(super) fn engage(&mut self) -> Result<()> {
        let began = Instant::now();
        while !self.look()? {
            thread::sleep(LOOK_EVERY * 4);
            if began.elapsed() > ENGAGE_WITHIN {
                bail!("the lanes do not follow: {}", self.why());
            }
        }
        Ok(())
    }

    fn why(&mut self) -> String {
        let view = self.latest();
        let lane = |lane: &crate::control::LaneView| {
            let reasons: Vec<_> = lane.report.inhibits.iter().map(|r| r.name()).collect();
            format!(
                "{} ({:?}; {})",
                lane.report.mode.name(),
                lane.phase,
                reasons.join(", ")
            )
        };
        let lanes: Vec<String> = view.lanes.iter().flatten().map(lane).collect();
        lanes.join("; ")
    }

    /// What was recorded so far is put aside.
    pub(super) fn begin(&mut self) {
        self.latencies.request();
        for _ in 0..200 {
            if self.latencies.collect() {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        self.before = self.latest();
    }

    /// Keeps the lanes following; gives the share of looks at which all did.
    pub(super) fn follow_for(&mut self, length: Duration) -> Result<f64> {
        let began = Instant::now();
        let (mut looks, mut good) = (0_u32, 0_u32);
        while began.elapsed() < length {
            thread::sleep(LOOK_EVERY);
            looks += 1;
            good += u32::from(self.look()?);
        }
        Ok(f64::from(good) / f64::from(looks.max(1)))
    }

    /// Ends control; what it has recorded since [`Running::begin`] is in it.
    pub(super) fn end(self) -> Result<(ControlLoop, SchedReport)> {
        self.quit.store(true, Ordering::Relaxed);
        self.control
            .join()
            .map_err(|_| anyhow!("the control thread panicked"))
    }
}

/// The kernel's id of the calling thread; 0 if `/proc` does not tell.
fn own_thread_id() -> u64 {
    std::fs::read_link("/proc/thread-self")
        .ok()
        .and_then(|link| link.file_name()?.to_str()?.parse().ok())
        .unwrap_or(0)
}

const _: () = assert!(LANES_MAX == 4, "the command line offers 1..=4 lanes");
