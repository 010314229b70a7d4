//! The watchdog thread: looks every tick, does what the judge rules, and after a takeover keeps the arms.

#![expect(clippy::disallowed_types, reason = "built once at start-up")]

use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::arm::{HoldFrames, RestVerdict, SendOutcome, StopPort};
use crate::handoff::{
    EventKind, EventSender, Heartbeat, LANES_MAX, LaneBoard, LastUsable, Reader, Revoker, SourceId,
    StopLine, StopReason, WatchdogGate, sys,
};
use crate::rt::clock;
use crate::time::{Span, Stamp};

use super::judge::{Judge, LaneLook, Look, TICK, TakeoverReason};

/// Control gets this long to leave a write that it is inside of.
const QUIET_WAIT: Span = Span::from_ms(1);

/// An absence is worth a line in the log from here on.
const AWAY_TOLD: Span = Span::from_ms(50);

/// What happened, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchdogEvent {
    /// A lane's input went stale.
    Stale {
        /// Lane index.
        lane: u8,
    },
    /// The arms were taken over. Permanent.
    TookOver {
        /// Why.
        reason: TakeoverReason,
        /// Control was outside every write within the wait.
        quiet: bool,
    },
    /// A descriptor could not be revoked; its errno.
    RevokeFailed {
        /// Lane index.
        lane: u8,
        /// errno.
        errno: i32,
    },
    /// The arm did not rest in time, or nothing is heard of it: its own stop was sent.
    Escalated {
        /// Lane index.
        lane: u8,
    },
    /// The watchdog's own tick was late: the process or machine was paused, or starved.
    Away {
        /// Time since the tick before.
        by: Span,
    },
}

impl EventKind for WatchdogEvent {
    const KINDS: usize = 5;

    fn kind(&self) -> usize {
        match self {
            Self::Stale { .. } => 0,
            Self::TookOver { .. } => 1,
            Self::RevokeFailed { .. } => 2,
            Self::Escalated { .. } => 3,
            Self::Away { .. } => 4,
        }
    }
}

/// One lane, as the watchdog needs it.
pub struct Ward {
    /// Newest usable sample of the lane's pose operator.
    pub last_usable: Arc<LastUsable>,
    /// Its soft limit.
    pub hold_after: Span,
    /// Own way to the arm.
    pub port: Box<dyn StopPort>,
    /// Control's descriptor for motion frames.
    pub motion_fd: Option<RawFd>,
    /// Frames that keep the arm where control last sent it.
    pub hold: Reader<HoldFrames>,
    /// Time between two hold groups.
    pub hold_period: Span,
    /// The arm must rest within this after a takeover.
    pub stop_within: Span,
}

/// Everything the thread needs.
pub struct Watchdog {
    /// Lanes, in the order of the board.
    pub wards: Vec<Ward>,
    /// Judgement.
    pub judge: Judge,
    /// Latch and wake.
    pub line: Arc<StopLine>,
    /// Modes.
    pub board: Arc<LaneBoard>,
    /// Control's turns.
    pub heartbeat: Arc<Heartbeat>,
    /// Gate towards control.
    pub gate: WatchdogGate,
    /// Takes descriptors away.
    pub revoker: Revoker,
    /// For the log.
    pub events: EventSender<WatchdogEvent>,
    /// Ends the thread, except after a takeover: then the arms are kept until the process ends.
    pub quit: Arc<AtomicBool>,
    /// Set once the arms are taken, for the status and the exit code.
    pub took_over: Arc<AtomicBool>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Keeping {
    next_hold: Stamp,
    escalated: bool,
}

impl Watchdog {
    /// Runs until `quit`.
    pub fn run(mut self) {
        let mut deadline = clock::now() + TICK;
        let mut taken: Option<Stamp> = None;
        let mut keeping = [Keeping::default(); LANES_MAX];
        while !self.quit.load(Ordering::Relaxed) {
            sys::sleep_until(deadline);
            let now = clock::now();
            deadline = next_deadline(deadline, now);
            match taken {
                None => taken = self.watch().then_some(now),
                Some(since) => self.keep(since, &mut keeping),
            }
        }
    }

    /// One tick before a takeover. True once the arms have been taken.
    fn watch(&mut self) -> bool {
        let look = self.look();
        let ruling = self.judge.rule(&look);
        if let Some(by) = ruling.away
            && by > AWAY_TOLD
        {
            self.events.push(WatchdogEvent::Away { by });
        }
        let mut news = false;
        for (lane, index) in (0u8..).zip(0..look.lanes_len) {
            let Some(line) = self.board.lane(index) else {
                continue;
            };
            if ruling.stale & (1 << lane) == 0 {
                line.clear_stale();
            } else if line.raise_stale() && line.follows() {
                news = true;
                self.events.push(WatchdogEvent::Stale { lane });
            }
        }
        if news {
            self.line.wake.bump_and_wake();
        }
        match ruling.take_over {
            Some(reason) => {
                self.take_over(reason);
                true
            }
            None => false,
        }
    }

    fn look(&self) -> Look {
        let mut lanes = [LaneLook::default(); LANES_MAX];
        for ((ward, look), index) in self.wards.iter().zip(&mut lanes).zip(0..) {
            // The stamp is loaded before the clock is read: an age is never negative, and never older than it is.
            let age = ward.last_usable.age(clock::now);
            let follows = self
                .board
                .lane(index)
                .is_some_and(crate::handoff::LaneLine::follows);
            *look = LaneLook {
                follows,
                age,
                hold_after: ward.hold_after,
            };
        }
        let heartbeat = self.heartbeat.count();
        Look {
            now: clock::now(),
            heartbeat,
            control_runs: heartbeat > 0,
            lanes,
            lanes_len: self.wards.len().min(LANES_MAX),
        }
    }

    /// The takeover, in the order that the model proves: latch, gate, descriptors, bounded wait.
    fn take_over(&mut self, reason: TakeoverReason) {
        let stop = match reason {
            TakeoverReason::HeartbeatLost => StopReason::HeartbeatLost,
            TakeoverReason::ActivePastLimit => StopReason::ActivePastLimit,
        };
        self.line.trip(stop, SourceId::WATCHDOG);
        self.gate.take_over();
        for (lane, ward) in (0u8..).zip(&self.wards) {
            if let Some(fd) = ward.motion_fd
                && let Err(error) = self.revoker.revoke(fd)
            {
                self.events.push(WatchdogEvent::RevokeFailed {
                    lane,
                    errno: error.raw_os_error().unwrap_or(0),
                });
            }
        }
        let quiet = self.gate.wait_quiet(QUIET_WAIT);
        self.took_over.store(true, Ordering::Release);
        self.events.push(WatchdogEvent::TookOver { reason, quiet });
    }

    /// One tick after a takeover: the arms are kept where control last sent them.
    fn keep(&mut self, since: Stamp, keeping: &mut [Keeping; LANES_MAX]) {
        for ((lane, ward), state) in (0u8..).zip(&mut self.wards).zip(keeping) {
            let now = clock::now();
            if state.escalated {
                continue;
            }
            let rest = ward.port.poll_rest(now);
            if now.age_of(since) > ward.stop_within && rest != RestVerdict::AtRest {
                // A refusal by the queue is tried again in the next tick.
                state.escalated = ward.port.arm_stop() == SendOutcome::Sent;
                if state.escalated {
                    self.events.push(WatchdogEvent::Escalated { lane });
                }
                continue;
            }
            if now >= state.next_hold {
                let frames = *ward.hold.read();
                if frames.len > 0 && ward.port.send_hold(&frames) == SendOutcome::Sent {
                    state.next_hold = now + ward.hold_period;
                }
            }
        }
    }
}

/// Exact rate, no catching up.
fn next_deadline(deadline: Stamp, now: Stamp) -> Stamp {
    let next = deadline + TICK;
    if next > now { next } else { now + TICK }
}
