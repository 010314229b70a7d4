//! Serial arms: chains of constants, forward kinematics, geometric Jacobian. Const-generic in the number of joints, no heap.
//!
//! A chain is a list of joints, each with a fixed transform from the frame before it and an axis in its own frame, then a fixed
//! transform to the tool. All frames are right-handed, metres and radians. Inverse kinematics in closed form belongs to the arm whose
//! geometry allows it (`arm::piper::model`); [`ArmModel`] is how the guard asks for it.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::disallowed_macros
)]

mod arm_model;
mod chain;
mod fk;
#[cfg(test)]
mod tests;

pub use arm_model::{ArmModel, Sphere};
pub use chain::{Chain, ChainJoint, JointRange, LimitHit, MdhRow, Motion, fixed_transform};
pub use fk::{Frames, Jacobian};
