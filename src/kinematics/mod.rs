//! Kinematics without heap: the geometry of arms, forward and inverse.

mod arm_model;

pub use arm_model::{ArmModel, Sphere};
