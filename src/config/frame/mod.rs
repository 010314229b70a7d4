//! The frame check: are the axes that the plan names the axes that the device sends?
//!
//! Packets cannot tell a right-handed sender from a left-handed one, and a wrong guess mirrors forward and backward and two of the
//! three turns. `telearm check PLAN --frame` therefore has the operator push the hand forward and turn it left; [`Wizard`] judges,
//! [`FrameStore`] remembers.

mod store;
#[cfg(test)]
mod tests;
mod wizard;

pub use store::{FrameStore, StoreError, state_dir};
pub use wizard::{Seen, Step, Verdict, Wizard};
