//! [`ArmModel`]: what the guard needs to know of an arm's geometry, whatever solves its inverse kinematics.

use nalgebra::Vector3;

use crate::geometry::{ArmBase, Pose, Tcp};

/// A ball in arm base coordinates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sphere {
    /// Centre in arm base axes, metres.
    pub center: Vector3<f64>,
    /// Radius, metres.
    pub radius: f64,
}

/// Geometry and limits of an arm with `N` joints. Pure: no clock, no I/O, no heap; every call costs a bounded number of operations.
///
/// Angles are radians, lengths metres, velocities rad/s. An implementation describes the arm as its own controller sees it (for the
/// Piper: the firmware's Denavit-Hartenberg variant), so that an implied joint motion equals the one the arm will make.
pub trait ArmModel<const N: usize>: Send + Sync {
    /// Tool pose of the joints `q`.
    fn forward(&self, q: &[f64; N]) -> Pose<ArmBase, Tcp>;

    /// Joints that give `tcp` on the branch nearest `q_near`, within the joint limits; `None` when there are none.
    fn inverse_near(&self, tcp: &Pose<ArmBase, Tcp>, q_near: &[f64; N]) -> Option<[f64; N]>;

    /// Lowest and highest angle per joint.
    fn joint_limits(&self) -> &[(f64, f64); N];

    /// Highest speed per joint.
    fn joint_velocity_limits(&self) -> &[f64; N];

    /// Where the wrist centre is when the tool is at `tcp`. Arms without a spherical wrist give the tool point.
    fn wrist_center(&self, tcp: &Pose<ArmBase, Tcp>) -> Vector3<f64>;

    /// The ball that the wrist centre cannot leave; `None` when there is no such ball.
    fn reach(&self) -> Option<Sphere>;

    /// How far the wrist centre must stay from the axis of joint 1, or that joint swings; 0 when the arm does not mind.
    fn wrist_axis_min_m(&self) -> f64;
}
