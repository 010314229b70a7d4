//! Handing values between threads: which tool for which need.
//!
//! | need | tool | guarantees |
//! |---|---|---|
//! | newest value only (samples, arm state, encoded hold frames) | [`mailbox`] | wait-free on both sides, never torn; older values are lost on purpose |
//! | "stop", from any thread, must never be lost | [`StopLatch`] | sticky, first reason kept, reset only of the generation that was seen |
//! | wake control early, or let it sleep to its deadline | [`WakeEpoch`] | one futex call per cycle, no wake-up lost |
//! | trip and wake in one act | [`StopLine`] | only the untripped -> tripped change wakes |
//! | no motion frame once the watchdog has taken over | [`tx_gate`], [`Revoker`] | see [`gate`] |
//! | every occurrence, for the log | [`event_ring`] | bounded; what did not fit is counted by kind |
//! | how old is the newest usable sample | [`LastUsable`] | "never" is a value of its own, not zero |
//! | which lane follows just now | [`LaneBoard`] | an atomic per lane, for the watchdog |
//! | is that thread still alive | [`Heartbeat`] | a counter of turns |
//! | a few requests from one plain thread into control | `heapless::spsc` | bounded, wait-free |
//! | plain thread to plain thread | `crossbeam_channel::bounded` | not for a real-time thread: its receiver can hang behind a preempted sender |
//!
//! Edges (a button press, a session start) are not in this table: they travel as growing counters inside the newest sample.
//!
//! Everything here is allocated at start-up; afterwards no call allocates, locks, formats or panics. All atomics come from `sync`, so that
//! `--cfg loom` explores every interleaving of the latch, the wake epoch and the gate (`tests/loom_*.rs`). The mailbox is the
//! `triple_buffer` crate and the ring is `heapless::spsc`; their own atomics are not replaced and so not explored here.
//! Under loom an atomic cannot be made in a `const`: do not put these types into a `static`.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::disallowed_macros
)]

pub mod age;
pub mod board;
pub mod events;
pub mod gate;
pub mod latch;
pub mod latest;
mod sync;
pub(crate) mod sys;
pub mod wake;

pub use age::{Heartbeat, LastUsable};
pub use board::{LANES_MAX, LaneBoard, LaneLine};
pub use events::{EventKind, EventReceiver, EventSender, event_ring};
pub use gate::{ControlGate, Revoker, SendPermit, TxRefused, WatchdogGate, tx_gate};
pub use latch::{LatchState, ResetRefused, SourceId, StopCause, StopLatch, StopReason};
pub use latest::{Publisher, Reader, mailbox};
pub use wake::{StopLine, WakeEpoch, Woken};

#[cfg(all(test, not(loom)))]
mod tests;
