//! Pure decisions: which mode a lane is in, and why it does not move.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::disallowed_macros
)]

mod inhibit;
mod mode;
#[cfg(test)]
mod tests;

pub use inhibit::{Inhibit, InhibitSet};
pub use mode::{Facts, FaultCause, Freshness, HoldReason, HomeCause, Mode, StopWhy, Timing, next};
