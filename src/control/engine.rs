//! One cycle over all lanes: read, assess, act, send. And the stop path alone, for an early wake.
//!
//! The engine has no clock and never waits; `thread` calls it at each deadline and at each early wake, with the instant.

#![expect(
    clippy::disallowed_types,
    reason = "boxed once at start-up; nothing is boxed in a cycle"
)]

use std::sync::Arc;

use crate::handoff::{
    ControlGate, LANES_MAX, LaneBoard, LatchState, Reader, ResetRefused, StopLine,
};
use crate::signal::OperatorSample;
use crate::supervisor::{HomeCause, Mode, StopWhy};
use crate::time::{Span, Stamp};

use super::group::{GroupView, LaneStanding, view};
use super::lane::Requests;
use super::params::Coupling;
use super::runner::{CycleInputs, Footprint, LaneSent, LaneView, RunLane};

/// Most operators of a plan: pose, gripper and clutch of each lane may be different ones.
pub const OPERATORS_MAX: usize = 8;

/// Which lanes a request is for: bit `i` is lane `i`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneSet(pub u8);

impl LaneSet {
    /// Every lane.
    pub const ALL: Self = Self(u8::MAX);

    /// One lane.
    #[must_use]
    pub const fn one(index: usize) -> Self {
        Self(if index < 8 { 1 << index } else { 0 })
    }

    fn has(self, index: usize) -> bool {
        index < 8 && self.0 & (1 << index) != 0
    }
}

/// What the service thread may ask of control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Engage.
    Engage(LaneSet),
    /// Disengage.
    Disengage(LaneSet),
    /// Clear the latch and acknowledge faults. Never moves.
    Reset,
    /// Home until then at the latest; asked again and again while a key is held.
    Home(LaneSet, Stamp),
    /// Start the arm's recovery: it may drop.
    Recover(LaneSet),
    /// Disengage everything and refuse to engage again: the process ends.
    Wind,
}

/// Control's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Taken; the status shows the effect.
    Taken,
    /// The latch is clear.
    ResetDone,
    /// Nothing was latched or faulted; nothing changed.
    NothingToReset,
    /// An operator still asserts its stop; its index.
    StillAsserted(u8),
    /// A newer stop came in the meantime.
    NewerStop,
    /// The watchdog has taken over; only a restart helps.
    TakenOver,
    /// Recovery is refused while a lane moves or follows.
    LaneBusy,
}

/// Asked before a reset: which operator still asserts its stop at this instant?
pub type StopAsserted = Box<dyn Fn(Stamp) -> Option<u8> + Send>;

/// What one cycle did.
#[derive(Debug, Clone, Copy, Default)]
pub struct CycleDone {
    /// Per lane.
    pub lanes: [LaneSent; LANES_MAX],
    /// A command or stop frame went out.
    pub any_sent: bool,
    /// This call served a stop that had not been served before: time of its trip.
    pub stop_served: Option<Stamp>,
}

/// One lane's place in the schedule.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    divisor: u64,
    phase: u64,
    /// The command of the next due cycle has been sent early, by the stop path.
    ahead: bool,
    /// A command was sent in the present period already.
    sent_this_period: bool,
    requests: Requests,
    home_until: Option<Stamp>,
}

/// The lanes, their readers and the way to the wire.
pub struct Engine {
    lanes: Vec<Box<dyn RunLane>>,
    slots: [Slot; LANES_MAX],
    readers: Vec<Reader<OperatorSample>>,
    samples: [Option<OperatorSample>; OPERATORS_MAX],
    gate: ControlGate,
    line: Arc<StopLine>,
    board: Arc<LaneBoard>,
    coupling: Coupling,
    stop_asserted: StopAsserted,
    served: bool,
    reset_now: bool,
    winding: bool,
    away: bool,
}

/// What [`Engine::new`] needs.
pub struct EngineParts {
    /// Lanes, at most [`LANES_MAX`], each with its command divisor (a command every so many cycles).
    pub lanes: Vec<(Box<dyn RunLane>, u64)>,
    /// Mailboxes of the operators, at most [`OPERATORS_MAX`].
    pub readers: Vec<Reader<OperatorSample>>,
    /// The gate shared with the watchdog.
    pub gate: ControlGate,
    /// Latch and wake.
    pub line: Arc<StopLine>,
    /// The board for the watchdog.
    pub board: Arc<LaneBoard>,
    /// Coupling of lanes.
    pub coupling: Coupling,
    /// Which operator still asserts its stop.
    pub stop_asserted: StopAsserted,
}

impl Engine {
    /// Start-up only. Surplus lanes and readers are dropped; the plan does not allow them.
    #[must_use]
    pub fn new(mut parts: EngineParts) -> Self {
        parts.lanes.truncate(LANES_MAX);
        parts.readers.truncate(OPERATORS_MAX);
        let mut slots = [Slot::default(); LANES_MAX];
        for (i, (slot, (_, divisor))) in slots.iter_mut().zip(&parts.lanes).enumerate() {
            slot.divisor = (*divisor).max(1);
            // Staggered phases: lanes that command less often than the cycle do not all do it in the same cycle.
            slot.phase = i as u64 % slot.divisor;
        }
        Self {
            lanes: parts.lanes.into_iter().map(|(lane, _)| lane).collect(),
            slots,
            readers: parts.readers,
            samples: [None; OPERATORS_MAX],
            gate: parts.gate,
            line: parts.line,
            board: parts.board,
            coupling: parts.coupling,
            stop_asserted: parts.stop_asserted,
            served: false,
            reset_now: false,
            winding: false,
            away: false,
        }
    }

    /// Takes one request. Its effect shows in the next cycle.
    pub fn request(&mut self, request: Request, now: Stamp) -> Answer {
        if self.gate.is_taken_over() {
            return Answer::TakenOver;
        }
        match request {
            Request::Engage(set) => self.for_lanes(set, |slot| slot.requests.engage = true),
            Request::Disengage(set) => self.for_lanes(set, |slot| slot.requests.disengage = true),
            Request::Home(set, until) => self.for_lanes(set, |slot| slot.home_until = Some(until)),
            Request::Recover(set) => self.recover(set, now),
            Request::Reset => self.reset(now),
            Request::Wind => {
                self.winding = true;
                Answer::Taken
            }
        }
    }

    /// Control (or an input thread) was away: the next cycle disengages.
    pub fn note_away(&mut self) {
        self.away = true;
    }

    /// One whole cycle, number `n`.
    pub fn cycle(&mut self, n: u64, now: Stamp) -> CycleDone {
        let mut due = [false; LANES_MAX];
        for (slot, due) in self.slots.iter_mut().zip(&mut due) {
            let period_begins = slot.divisor > 0 && n % slot.divisor == slot.phase;
            *due = period_begins && !slot.ahead;
            if period_begins {
                // What the stop path sent early was this period's command.
                slot.sent_this_period = slot.ahead;
                slot.ahead = false;
            }
        }
        self.read();
        self.step(now, due, true)
    }

    /// The stop path alone, after an early wake. Lanes that have sent in this period send their next command, which brakes, now instead
    /// of at its deadline; the one after keeps its place. Does nothing if the stop has been served.
    pub fn stop_path(&mut self, now: Stamp) -> CycleDone {
        let latch = self.line.latch.load();
        if !latch.is_tripped() || self.served {
            return CycleDone::default();
        }
        let due = [true; LANES_MAX];
        let had_sent = self.slots.map(|slot| slot.sent_this_period);
        let done = self.step(now, due, false);
        for ((slot, had_sent), sent) in self.slots.iter_mut().zip(had_sent).zip(&done.lanes) {
            // What the queue refused is not ahead: it is tried again at the next deadline.
            slot.ahead = had_sent && sent.sent;
        }
        done
    }

    /// Every lane has wound down: nothing moves any more.
    #[must_use]
    pub fn is_wound_down(&self) -> bool {
        self.board_is_quiet()
    }

    /// Views of all lanes for the status.
    pub fn views(&self, now: Stamp) -> [Option<LaneView>; LANES_MAX] {
        let mut views = [None; LANES_MAX];
        for (view, lane) in views.iter_mut().zip(&self.lanes) {
            *view = Some(lane.view(now));
        }
        views
    }

    fn read(&mut self) {
        for (reader, sample) in self.readers.iter_mut().zip(&mut self.samples) {
            let newest = *reader.read();
            // The mailbox begins with a sample that nobody received.
            *sample = (newest.received_at > Stamp::default()).then_some(newest);
        }
    }

    fn step(&mut self, now: Stamp, due: [bool; LANES_MAX], whole: bool) -> CycleDone {
        let latch = self.line.latch.load();
        let mut done = CycleDone {
            stop_served: self.newly_served(&latch),
            ..CycleDone::default()
        };
        if whole {
            for lane in &mut self.lanes {
                lane.poll(now, !latch.is_tripped() && !self.gate.is_taken_over());
            }
        }
        let cycle = CycleInputs {
            now,
            samples: &self.samples,
            stop: latch.tripped.map(|cause| StopWhy {
                reason: cause.reason as u8,
                source: cause.source.code(),
            }),
            taken_over: self.gate.is_taken_over(),
            away: core::mem::take(&mut self.away),
        };
        if latch.is_tripped() {
            // What was asked before a stop is not done after it.
            for slot in &mut self.slots {
                slot.home_until = None;
                slot.requests = Requests::default();
            }
        }
        let mut standings = [LaneStanding::default(); LANES_MAX];
        let count = self.lanes.len();
        for (((lane, slot), standing), due) in self
            .lanes
            .iter_mut()
            .zip(&mut self.slots)
            .zip(&mut standings)
            .zip(due)
        {
            let requests = slot.take_requests(now, self.reset_now, self.winding);
            *standing = lane.assess(&cycle, requests, due);
        }
        self.reset_now = false;
        let standings = standings.get(..count).unwrap_or(&[]);
        for i in 0..count {
            let group: GroupView = view(i, standings, self.coupling);
            let others = self.others(i);
            if let (Some(lane), Some(line)) = (self.lanes.get_mut(i), self.board.lane(i)) {
                lane.act(&cycle, group, &others, line);
            }
        }
        for ((lane, slot), sent) in self
            .lanes
            .iter_mut()
            .zip(&mut self.slots)
            .zip(&mut done.lanes)
        {
            *sent = lane.send(&mut self.gate, &self.line.latch, now);
            slot.sent_this_period |= sent.sent;
            if matches!(sent.changed, Some((Mode::Homing { .. }, _))) {
                slot.home_until = None;
            }
            done.any_sent |= sent.sent || sent.arm_stop;
        }
        done
    }

    /// Where the other lanes' tools are commanded. Each lane is asked after the ones before it have acted, so that two tools cannot both
    /// take the same free space.
    fn others(&self, own: usize) -> heapless::Vec<Footprint, LANES_MAX> {
        let others = self.lanes.iter().enumerate().filter(|(i, _)| *i != own);
        others.filter_map(|(_, lane)| lane.footprint()).collect()
    }

    /// The trip's time if this cycle is the first to see it.
    fn newly_served(&mut self, latch: &LatchState) -> Option<Stamp> {
        let Some(cause) = latch.tripped else {
            self.served = false;
            return None;
        };
        if core::mem::replace(&mut self.served, true) {
            return None;
        }
        cause.stamp
    }

    fn for_lanes(&mut self, set: LaneSet, change: impl Fn(&mut Slot)) -> Answer {
        for (_, slot) in self
            .slots
            .iter_mut()
            .enumerate()
            .filter(|(i, _)| set.has(*i))
        {
            change(slot);
        }
        Answer::Taken
    }

    fn recover(&mut self, set: LaneSet, now: Stamp) -> Answer {
        let chosen = |i: &usize| set.has(*i);
        for (i, lane) in self.lanes.iter().enumerate() {
            let mode = lane.view(now).report.mode;
            if chosen(&i)
                && !matches!(
                    mode,
                    Mode::Stopped { .. } | Mode::Fault { .. } | Mode::Starting | Mode::Ready
                )
            {
                return Answer::LaneBusy;
            }
        }
        for (i, lane) in self.lanes.iter_mut().enumerate() {
            if chosen(&i) {
                lane.recover(now);
            }
        }
        Answer::Taken
    }

    fn reset(&mut self, now: Stamp) -> Answer {
        // The latch is looked at first, so that a stop between the look at the operators and the reset refuses the reset.
        let latch = self.line.latch.load();
        if let Some(operator) = (self.stop_asserted)(now) {
            return Answer::StillAsserted(operator);
        }
        match self.line.latch.reset(latch.generation) {
            Ok(()) => {
                self.reset_now = true;
                self.served = false;
                Answer::ResetDone
            }
            Err(ResetRefused::NewerTrip) => Answer::NewerStop,
            Err(ResetRefused::NotTripped) => {
                let faulted = self.lanes.iter().any(|l| {
                    matches!(
                        l.view(now).report.mode,
                        Mode::Fault { .. } | Mode::Stopped { .. }
                    )
                });
                self.reset_now = faulted;
                if faulted {
                    Answer::ResetDone
                } else {
                    Answer::NothingToReset
                }
            }
        }
    }

    fn board_is_quiet(&self) -> bool {
        (0..self.lanes.len()).all(|i| self.board.lane(i).is_none_or(|line| !line.follows()))
    }
}

impl Slot {
    fn take_requests(&mut self, now: Stamp, reset: bool, winding: bool) -> Requests {
        let mut requests = core::mem::take(&mut self.requests);
        if self.home_until.is_some_and(|until| now > until) {
            self.home_until = None;
        }
        requests.home = self.home_until.map(|_| HomeCause::Command);
        requests.reset = reset;
        if winding {
            requests = Requests {
                disengage: true,
                reset,
                ..Requests::default()
            };
        }
        requests
    }
}

/// A home request is repeated this often while its key is held, and lapses when it is not.
pub const HOME_REPEAT: Span = Span::from_ms(300);
