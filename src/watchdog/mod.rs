//! The watchdog: awake when others are not.
//!
//! Every 2 ms it judges the age of each lane's input and control's heartbeat. Stale input raises the lane's flag and wakes control,
//! which judges again itself. A heartbeat that stands still, or a lane that still follows long after its input went stale, means that
//! control cannot be trusted: the watchdog takes the arm over, for good.
//!
//! ```text
//!   Watching ── heartbeat stood, or a lane follows past its limit ──► Taking: latch, gate, revoke, wait <= 1 ms
//!      ▲  │                                                              │
//!      └──┘ stale flags                                                  ▼
//!                                                                    Holding: stream the last hold frames;
//!                                                                    not at rest in time, or blind ──► the arm's own stop, once
//! ```
//! `judge` is pure; `thread` does what it says.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::disallowed_macros
)]

mod judge;
mod thread;

pub use judge::{Judge, LaneLook, Look, Ruling, TakeoverReason};
pub use thread::{Ward, Watchdog, WatchdogEvent};
