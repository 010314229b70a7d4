//! Forward kinematics and the geometric Jacobian.

use nalgebra::{Isometry3, SMatrix, Vector3, Vector6};

use super::chain::{Chain, ChainJoint, Motion};
use crate::geometry::{ArmBase, Pose, Tcp};

/// All frames of a chain at one joint vector, in base coordinates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frames<const N: usize> {
    /// Frame after each joint's motion.
    pub links: [Isometry3<f64>; N],
    /// The tool.
    pub tcp: Pose<ArmBase, Tcp>,
}

/// Maps joint velocities to the tool's: rows 0..3 the velocity of the tool point (m/s), rows 3..6 the angular velocity (rad/s), both in
/// base axes.
pub type Jacobian<const N: usize> = SMatrix<f64, 6, N>;

impl<const N: usize> Chain<N> {
    /// The tool pose at joint values `q` (rad, or m for sliding joints). Limits are not looked at.
    #[must_use]
    pub fn fk(&self, q: &[f64; N]) -> Pose<ArmBase, Tcp> {
        let step = |at: Isometry3<f64>, (joint, &value): (&ChainJoint, &f64)| {
            at * joint.origin * joint.motion.transform(value)
        };
        let last = self
            .joints()
            .iter()
            .zip(q)
            .fold(Isometry3::identity(), step);
        Pose::assume(last * self.tool())
    }

    /// Every frame at joint values `q`.
    #[must_use]
    pub fn frames(&self, q: &[f64; N]) -> Frames<N> {
        let mut at = Isometry3::identity();
        let mut links = [at; N];
        for (link, (joint, &value)) in links.iter_mut().zip(self.joints().iter().zip(q)) {
            at = at * joint.origin * joint.motion.transform(value);
            *link = at;
        }
        Frames {
            links,
            tcp: Pose::assume(at * self.tool()),
        }
    }

    /// The geometric Jacobian at joint values `q`.
    #[must_use]
    pub fn jacobian(&self, q: &[f64; N]) -> Jacobian<N> {
        let frames = self.frames(q);
        let tip = frames.tcp.position();
        let mut jacobian: Jacobian<N> = SMatrix::zeros();
        let columns = jacobian.column_iter_mut();
        for (mut column, (joint, link)) in columns.zip(self.joints().iter().zip(&frames.links)) {
            // The axis does not move with its own joint, so the frame after the joint gives it as well.
            let (linear, angular) = match joint.motion {
                Motion::Revolute(axis) => {
                    let axis = link.rotation * axis.into_inner();
                    (axis.cross(&(tip - link.translation.vector)), axis)
                }
                Motion::Prismatic(axis) => (link.rotation * axis.into_inner(), Vector3::zeros()),
            };
            let (v, w) = (linear, angular);
            column.copy_from(&Vector6::new(v.x, v.y, v.z, w.x, w.y, w.z));
        }
        jacobian
    }
}
