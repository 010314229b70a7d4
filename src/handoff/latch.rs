//! The sticky stop latch.
//!
//! One 64-bit word says it all, so that every change is one atomic step:
//!
//! ```text
//! 63          48 47     40 39      32 31                      0
//! |   source    |  reason  | episode |       generation       |
//!                0 = clear
//! ```
//!
//! *Generation* grows with every trip, also a repeated one, and with every reset. A reset names the generation that its decision was made
//! on: if any stop bit arrived since then, it is refused. *Episode* counts the changes from clear to tripped and ties the stamp, which has
//! an atomic of its own, to its trip.

use core::fmt;

use super::sync::{AtomicU64, Ordering, fence};
use super::sys;
use crate::time::Stamp;

const GENERATION_MASK: u64 = 0xFFFF_FFFF;
const EPISODE_SHIFT: u32 = 32;
const REASON_SHIFT: u32 = 40;
const SOURCE_SHIFT: u32 = 48;
/// A stamp is kept in units of 16 ns, in 56 bits: good for 36 years of uptime.
const STAMP_UNIT_SHIFT: u32 = 4;
const STAMP_MASK: u64 = (1 << 56) - 1;
const STAMP_EPISODE_SHIFT: u32 = 56;
/// Each failed attempt means that another thread changed the word; there are fewer tripping threads than this.
const TRIP_ATTEMPTS: u32 = 64;

/// Why the software stop was latched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum StopReason {
    /// An operator device sent its stop bit.
    OperatorStopBit = 1,
    /// `telearm stop` or a key.
    Command = 2,
    /// An arm reported a fault.
    ArmFault = 3,
    /// Control's heartbeat stood still: the watchdog took over.
    HeartbeatLost = 4,
    /// A lane was still active long after its input went stale: the watchdog took over.
    ActivePastLimit = 5,
    /// A real-time thread panicked.
    Panic = 6,
    /// Somebody else commands the arm on the same bus.
    ForeignCommand = 7,
    /// An input thread ended although it must not.
    InputThreadDied = 8,
    /// Control was away longer than allowed (stopped process, paused machine).
    ControlAway = 9,
    /// The machine was suspended.
    Suspended = 10,
    /// Feedback of an arm was lost.
    FeedbackLost = 11,
    /// The bus or the link to the arm was lost.
    LinkLost = 12,
    /// The process is ending.
    Shutdown = 13,
    /// A code that this program does not know; never stored by it.
    Unknown = 255,
}

impl StopReason {
    /// Every reason that can be stored.
    pub const ALL: [Self; 13] = [
        Self::OperatorStopBit,
        Self::Command,
        Self::ArmFault,
        Self::HeartbeatLost,
        Self::ActivePastLimit,
        Self::Panic,
        Self::ForeignCommand,
        Self::InputThreadDied,
        Self::ControlAway,
        Self::Suspended,
        Self::FeedbackLost,
        Self::LinkLost,
        Self::Shutdown,
    ];

    /// A short lower-case name, stable for `--json` and the log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OperatorStopBit => "operator_stop_bit",
            Self::Command => "command",
            Self::ArmFault => "arm_fault",
            Self::HeartbeatLost => "heartbeat_lost",
            Self::ActivePastLimit => "active_past_limit",
            Self::Panic => "panic",
            Self::ForeignCommand => "foreign_command",
            Self::InputThreadDied => "input_thread_died",
            Self::ControlAway => "control_away",
            Self::Suspended => "suspended",
            Self::FeedbackLost => "feedback_lost",
            Self::LinkLost => "link_lost",
            Self::Shutdown => "shutdown",
            Self::Unknown => "unknown",
        }
    }

    fn from_code(code: u8) -> Self {
        Self::ALL
            .into_iter()
            .find(|reason| *reason as u8 == code)
            .unwrap_or(Self::Unknown)
    }
}

/// Who tripped the latch: the index of an operator source in the plan, or one of our own threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SourceId(u16);

impl SourceId {
    /// The control thread.
    pub const CONTROL: Self = Self(0xFFFF);
    /// The watchdog.
    pub const WATCHDOG: Self = Self(0xFFFE);
    /// The control socket, that is the command line.
    pub const SERVICE: Self = Self(0xFFFD);
    /// Process-wide machinery: signals, start-up, panics.
    pub const PROCESS: Self = Self(0xFFFC);

    /// The operator source with this index in the plan.
    #[must_use]
    pub const fn operator(index: u16) -> Self {
        Self(index)
    }

    /// As one number, for recordings and for layers that must not know this type.
    #[must_use]
    pub const fn code(self) -> u16 {
        self.0
    }

    /// The index of an operator source; `None` for our own threads.
    #[must_use]
    pub const fn operator_index(self) -> Option<u16> {
        if self.0 >= Self::PROCESS.0 {
            None
        } else {
            Some(self.0)
        }
    }
}

impl fmt::Display for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::CONTROL => f.write_str("control"),
            Self::WATCHDOG => f.write_str("watchdog"),
            Self::SERVICE => f.write_str("service"),
            Self::PROCESS => f.write_str("process"),
            Self(index) => write!(f, "operator {index}"),
        }
    }
}

/// The first cause of a latched stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopCause {
    /// Why.
    pub reason: StopReason,
    /// Who.
    pub source: SourceId,
    /// When, to 16 ns. `None` in the few instructions between the trip and the store of its time.
    pub stamp: Option<Stamp>,
}

/// What the latch says now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatchState {
    /// The first cause, if tripped.
    pub tripped: Option<StopCause>,
    /// What a reset must name.
    pub generation: u32,
}

impl LatchState {
    /// Is the stop latched?
    #[must_use]
    pub const fn is_tripped(&self) -> bool {
        self.tripped.is_some()
    }
}

/// Why a reset was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResetRefused {
    /// There is nothing to reset.
    #[error("the software stop is not latched")]
    NotTripped,
    /// A stop came after the state that the reset was decided on.
    #[error("another stop arrived since")]
    NewerTrip,
}

/// The sticky stop: any thread trips it, only control resets it.
#[derive(Debug)]
pub struct StopLatch {
    word: AtomicU64,
    stamp: AtomicU64,
}

impl Default for StopLatch {
    fn default() -> Self {
        Self::new()
    }
}

impl StopLatch {
    /// A latch that is clear.
    #[must_use]
    pub fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            stamp: AtomicU64::new(0),
        }
    }

    /// Latches the stop. True for the one call that changed it from clear to tripped; a further call keeps the first cause, but makes
    /// every reset that was decided before it fail.
    pub fn trip(&self, reason: StopReason, source: SourceId) -> bool {
        self.trip_at(reason, source, sys::now())
    }

    /// [`StopLatch::trip`] with a time that the caller has read already.
    pub fn trip_at(&self, reason: StopReason, source: SourceId, now: Stamp) -> bool {
        let changed = self.change(reason, source, now);
        // Whoever looks at the latch after this call has returned sees it; see the gate for why a fence.
        fence(Ordering::SeqCst);
        changed
    }

    fn change(&self, reason: StopReason, source: SourceId, now: Stamp) -> bool {
        let mut seen = self.word.load(Ordering::SeqCst);
        for _ in 0..TRIP_ATTEMPTS {
            let next = if is_tripped(seen) {
                with_next_generation(seen)
            } else {
                tripped_word(seen, reason, source)
            };
            match self
                .word
                .compare_exchange(seen, next, Ordering::SeqCst, Ordering::SeqCst)
            {
                Ok(_) if is_tripped(seen) => return false,
                Ok(_) => {
                    self.store_stamp(next, now);
                    return true;
                }
                Err(newer) => seen = newer,
            }
        }
        // So much company cannot be; if it is, the stop still wins, at the price of the first cause. The leap in the generation keeps
        // every earlier observation from matching.
        let next = tripped_word(seen.wrapping_add(1 << 20), reason, source);
        let was = self.word.swap(next, Ordering::SeqCst);
        self.store_stamp(next, now);
        !is_tripped(was)
    }

    /// Is the stop latched? The cheap form of [`StopLatch::load`].
    #[must_use]
    pub fn is_tripped(&self) -> bool {
        is_tripped(self.word.load(Ordering::SeqCst))
    }

    /// The whole state.
    #[must_use]
    pub fn load(&self) -> LatchState {
        let word = self.word.load(Ordering::SeqCst);
        let tripped = is_tripped(word).then(|| StopCause {
            reason: StopReason::from_code((word >> REASON_SHIFT) as u8),
            source: SourceId((word >> SOURCE_SHIFT) as u16),
            stamp: self.stamp_of(word),
        });
        LatchState {
            tripped,
            generation: generation(word),
        }
    }

    /// Clears the latch if nothing happened to it since `observed_generation` was loaded. For control alone, which loads the state first
    /// and then looks whether any source still asserts its stop bit.
    ///
    /// # Errors
    /// [`ResetRefused::NotTripped`] if it is clear, [`ResetRefused::NewerTrip`] if a stop, even a repeated one, came in between.
    pub fn reset(&self, observed_generation: u32) -> Result<(), ResetRefused> {
        let word = self.word.load(Ordering::SeqCst);
        if !is_tripped(word) {
            return Err(ResetRefused::NotTripped);
        }
        if generation(word) != observed_generation {
            return Err(ResetRefused::NewerTrip);
        }
        let clear = with_next_generation(word) & ((1 << REASON_SHIFT) - 1);
        self.word
            .compare_exchange(word, clear, Ordering::SeqCst, Ordering::SeqCst)
            .map(|_| ())
            .map_err(|_| ResetRefused::NewerTrip)
    }

    fn store_stamp(&self, word: u64, at: Stamp) {
        let tagged = (episode(word) << STAMP_EPISODE_SHIFT)
            | ((at.as_ns() >> STAMP_UNIT_SHIFT) & STAMP_MASK);
        self.stamp.store(tagged, Ordering::Release);
    }

    /// The stamp of this trip; a missing or foreign one (a tripper that was preempted right after its trip) reads as `None`.
    fn stamp_of(&self, word: u64) -> Option<Stamp> {
        let tagged = self.stamp.load(Ordering::Acquire);
        (tagged >> STAMP_EPISODE_SHIFT == episode(word))
            .then(|| Stamp::from_ns((tagged & STAMP_MASK) << STAMP_UNIT_SHIFT))
    }
}

const fn is_tripped(word: u64) -> bool {
    (word >> REASON_SHIFT) & 0xFF != 0
}

const fn generation(word: u64) -> u32 {
    (word & GENERATION_MASK) as u32
}

const fn episode(word: u64) -> u64 {
    (word >> EPISODE_SHIFT) & 0xFF
}

/// The same word, one generation on; the generation wraps inside its own bits.
const fn with_next_generation(word: u64) -> u64 {
    (word & !GENERATION_MASK) | (word.wrapping_add(1) & GENERATION_MASK)
}

/// The word after a trip that found `clear`. Episodes run 1..=255, so that the stamp's initial zero belongs to none.
const fn tripped_word(clear: u64, reason: StopReason, source: SourceId) -> u64 {
    let episode = episode(clear) % 255 + 1;
    (with_next_generation(clear) & GENERATION_MASK)
        | (episode << EPISODE_SHIFT)
        | ((reason as u64) << REASON_SHIFT)
        | ((source.0 as u64) << SOURCE_SHIFT)
}
