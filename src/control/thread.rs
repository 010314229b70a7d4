//! The control thread: wait, call the engine, record. It owns all motion frames of the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::handoff::{EventKind, EventSender, Heartbeat, LANES_MAX, Publisher, StopLine};
use crate::rt::alloc;
use crate::rt::clock::{self, SuspendDetector};
use crate::rt::histogram::{Latency, LatencyRecorder};
use crate::rt::memory::Disturbances;
use crate::rt::pace::{CycleTick, Pacer, Turn};
use crate::supervisor::Mode;
use crate::time::{Span, Stamp};

use super::engine::{Answer, CycleDone, Engine, Request};
use super::runner::LaneView;

/// Requests taken in one cycle at most.
const REQUESTS_PER_CYCLE: usize = 4;
/// Room in the request and answer queues.
pub const REQUEST_QUEUE: usize = 16;
/// How often the view is published.
const VIEWS_PER_S: u64 = 20;

/// A request with the number its answer carries.
#[derive(Debug, Clone, Copy)]
pub struct Numbered<T> {
    /// Number.
    pub id: u32,
    /// Content.
    pub body: T,
}

/// Plain thread to control.
pub type RequestSender = heapless::spsc::Producer<'static, Numbered<Request>>;
/// Control's end.
pub type RequestReceiver = heapless::spsc::Consumer<'static, Numbered<Request>>;
/// Control to plain thread.
pub type AnswerSender = heapless::spsc::Producer<'static, Numbered<Answer>>;
/// The plain thread's end.
pub type AnswerReceiver = heapless::spsc::Consumer<'static, Numbered<Answer>>;

/// What happened, for the log. Control pushes; a plain thread formats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ControlEvent {
    /// A lane changed mode.
    Mode {
        /// Lane index.
        lane: u8,
        /// Before.
        from: Mode,
        /// After.
        to: Mode,
    },
    /// The stop path ran: time from the trip to the first stop frame.
    StopServed {
        /// Latency.
        after: Span,
    },
    /// The arm's own stop went out.
    ArmStop {
        /// Lane index.
        lane: u8,
    },
    /// Deadlines were missed.
    Late {
        /// How many.
        missed: u64,
        /// How late the cycle was.
        by: Span,
    },
    /// Control was away long enough that every lane was disengaged.
    Away {
        /// For how long.
        by: Span,
    },
    /// The latch was reset.
    Reset,
}

impl EventKind for ControlEvent {
    const KINDS: usize = 6;

    fn kind(&self) -> usize {
        match self {
            Self::Mode { .. } => 0,
            Self::StopServed { .. } => 1,
            Self::ArmStop { .. } => 2,
            Self::Late { .. } => 3,
            Self::Away { .. } => 4,
            Self::Reset => 5,
        }
    }
}

/// What control shows about itself, some twenty times a second.
#[derive(Debug, Clone, Copy, Default)]
pub struct ControlView {
    /// When.
    pub at: Stamp,
    /// Cycles run.
    pub cycles: u64,
    /// Deadlines missed.
    pub late: u64,
    /// Worst wake-up since the last view.
    pub worst_wake: Span,
    /// Page faults and involuntary switches since the loop began.
    pub disturbances: Disturbances,
    /// Heap operations since the loop began; `None` where the counting allocator is not installed.
    pub heap_operations: Option<u64>,
    /// Lanes.
    pub lanes: [Option<LaneView>; LANES_MAX],
}

/// Everything the loop needs.
pub struct ControlLoop {
    /// The cycle.
    pub engine: Engine,
    /// Exact rate.
    pub pacer: Pacer,
    /// Rate, for the view's own rate.
    pub rate_hz: u32,
    /// Latch and wake.
    pub line: Arc<StopLine>,
    /// Turns, for the watchdog.
    pub heartbeat: Arc<Heartbeat>,
    /// Requests in.
    pub requests: RequestReceiver,
    /// Answers out.
    pub answers: AnswerSender,
    /// For the log.
    pub events: EventSender<ControlEvent>,
    /// Histograms.
    pub latencies: LatencyRecorder,
    /// For the status.
    pub view: Publisher<ControlView>,
    /// An absence of the loop longer than this disengages: the shortest soft limit of any lane.
    pub away_after: Span,
    /// Ends the loop.
    pub quit: Arc<AtomicBool>,
}

impl ControlLoop {
    /// Runs until `quit`. Heap-free and lock-free from the first cycle on.
    pub fn run(mut self) -> Self {
        let mut stats = Stats::new(&self);
        alloc::arm();
        while !self.quit.load(Ordering::Relaxed) {
            // The epoch is read before the latch is looked at, or a stop in between would be slept over.
            let seen = self.line.wake.epoch();
            if self.line.latch.is_tripped() {
                self.stop_path();
            }
            match self.pacer.wait(&self.line.wake, seen) {
                Turn::Early => {}
                Turn::Cycle(tick) => self.turn(&tick, &mut stats),
            }
        }
        alloc::disarm();
        self
    }

    fn stop_path(&mut self) {
        let done = self.engine.stop_path(clock::now());
        self.record_stop(&done);
        self.report(&done);
    }

    fn turn(&mut self, tick: &CycleTick, stats: &mut Stats) {
        self.latencies.record(Latency::WakeUp, tick.late());
        stats.worst_wake = stats.worst_wake.max(tick.late());
        stats.cycles += 1;
        if tick.missed > 0 {
            stats.late += tick.missed;
            self.latencies.record(Latency::Late, tick.late());
            self.events.push(ControlEvent::Late {
                missed: tick.missed,
                by: tick.late(),
            });
        }
        if tick.late() > self.away_after || stats.suspended() {
            self.engine.note_away();
            self.events.push(ControlEvent::Away { by: tick.late() });
        }
        self.take_requests(tick.woke);
        let done = self.engine.cycle(tick.n, tick.woke);
        if done.any_sent {
            let at = clock::now();
            self.latencies.record(Latency::Cycle, at - tick.deadline);
            for sent in &done.lanes {
                if let Some(received) = sent.first_use_of {
                    self.latencies.record(Latency::PacketToFrame, at - received);
                    self.latencies
                        .record(Latency::InputAge, tick.woke - received);
                }
            }
        }
        self.record_stop(&done);
        self.report(&done);
        self.heartbeat.beat();
        if tick.n.is_multiple_of(stats.view_every) {
            self.show(tick, stats);
        }
        self.latencies.serve();
    }

    fn take_requests(&mut self, now: Stamp) {
        for _ in 0..REQUESTS_PER_CYCLE {
            let Some(Numbered { id, body }) = self.requests.dequeue() else {
                return;
            };
            let answer = self.engine.request(body, now);
            if answer == Answer::ResetDone {
                self.events.push(ControlEvent::Reset);
            }
            // A full answer queue means that nobody listens any more.
            let _ = self.answers.enqueue(Numbered { id, body: answer });
        }
    }

    fn record_stop(&mut self, done: &CycleDone) {
        // Refused by a bus without room it has not been served; the next cycle tries again, and the latency of that is not known here.
        if let Some(tripped) = done.stop_served
            && done.any_sent
        {
            let after = clock::now() - tripped;
            self.latencies.record(Latency::StopPath, after);
            self.events.push(ControlEvent::StopServed { after });
        }
    }

    fn report(&mut self, done: &CycleDone) {
        for (lane, sent) in (0u8..).zip(&done.lanes) {
            if let Some((from, to)) = sent.changed {
                self.events.push(ControlEvent::Mode { lane, from, to });
            }
            if sent.arm_stop {
                self.events.push(ControlEvent::ArmStop { lane });
            }
        }
    }

    fn show(&mut self, tick: &CycleTick, stats: &mut Stats) {
        self.view.publish(ControlView {
            at: tick.woke,
            cycles: stats.cycles,
            late: stats.late,
            worst_wake: core::mem::take(&mut stats.worst_wake),
            disturbances: Disturbances::of_this_thread().since(stats.at_start),
            heap_operations: stats
                .counts_heap
                .then(alloc::so_far)
                .map(|used| used.allocations + used.frees),
            lanes: self.engine.views(tick.woke),
        });
    }
}

struct Stats {
    cycles: u64,
    late: u64,
    worst_wake: Span,
    view_every: u64,
    at_start: Disturbances,
    counts_heap: bool,
    suspend: SuspendDetector,
}

impl Stats {
    fn new(control: &ControlLoop) -> Self {
        Self {
            cycles: 0,
            late: 0,
            worst_wake: Span::ZERO,
            view_every: (u64::from(control.rate_hz) / VIEWS_PER_S).max(1),
            at_start: Disturbances::of_this_thread(),
            counts_heap: alloc::is_installed(),
            suspend: SuspendDetector::new(clock::suspended_so_far()),
        }
    }

    fn suspended(&mut self) -> bool {
        self.suspend.observe(clock::suspended_so_far()).is_some()
    }
}
