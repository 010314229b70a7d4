//! AgileX Piper: six joints and a gripper on classic CAN at 1 Mbit/s.
//!
//! * [`wire`]: bytes to values and back, both directions; pure.
//! * [`model`]: geometry, limits, closed-form inverse kinematics.
//! * [`pose`]: the arm's six pose numbers as a typed pose and back, without Euler jumps.
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

pub mod model;
pub mod pose;
pub mod wire;
