//! AgileX Piper: six joints and a gripper on classic CAN at 1 Mbit/s.
//!
//! * `wire`: bytes to values and back, both directions; pure.
//! * `model`: geometry, limits, closed-form inverse kinematics.
//! * `pose`: the arm's six pose numbers as a typed pose and back, without Euler jumps.
//! * `params`: what a plan says about it.
//! * `driver`: the arm behind the `Arm` trait; feedback, faults, bring-up and report in its siblings.
//! * `stop_port`: the watchdog's own way to it.
//! * `emulate`, `emulate_run`: the arm in software, pure and as a thread.
//!
//! The tool point is the **J6 flange**, not the fingertip: that is what the arm's pose frames mean.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::disallowed_macros
)]

mod arm_model;
pub mod driver;
mod driver_bringup;
mod driver_faults;
mod driver_feedback;
mod driver_identify;
pub mod driver_report;
mod driver_steps;
pub mod emulate;
mod emulate_faults;
mod emulate_report;
pub mod emulate_run;
mod kind;
pub mod model;
pub mod params;
pub mod pose;
mod probe;
pub mod stop_port;
pub mod wire;

pub use kind::PiperKind;

#[cfg(test)]
mod driver_tests;
