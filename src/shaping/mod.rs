//! Shaping: from goals that jump to commands that do not.
//!
//! Two halves. The tracker turns the samples' goals (50-120 per second, irregular) into a smooth goal at the cycle rate;
//! it may be wrong. The limiter ([`Shaper`], [`ScalarShaper`], [`JointShaper`]) takes any goal at all and makes the next command obey
//! velocity, acceleration and jerk; it may not. Its motion lives in a `Copy` state that the caller keeps: a command that could not be
//! sent is undone by keeping the old state.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::disallowed_macros
)]

mod brake;
mod follow;
mod limits;
pub mod measure;
mod planner;
mod pose;
mod scalar;
mod tracker;

pub use limits::{AxisLimits, Limits, LimitsError};
pub use pose::{Braking, Shaper, State, Step, Target};
pub use scalar::{
    JointShaper, JointState, JointStep, JointTarget, ScalarShaper, ScalarState, ScalarStep,
    ScalarTarget,
};
pub use tracker::{JointTracker, Taken, Tracker, Tuning};

#[cfg(test)]
mod measure_tests;
#[cfg(test)]
mod tests;
