//! Where the tool may be.

use nalgebra::Vector3;

use crate::geometry::{ArmBase, Pose, Tcp};
use crate::kinematics::ArmModel;

/// Box, reach and wrist-axis limits in the arm base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Workspace {
    /// Lowest x, y, z of the tool point, metres.
    pub min_m: Vector3<f64>,
    /// Highest x, y, z of the tool point, metres.
    pub max_m: Vector3<f64>,
    /// The wrist centre stays this far inside the arm's reach, metres.
    pub reach_margin_m: f64,
    /// The wrist centre stays this far from the axis of joint 1, metres; the arm model's own minimum counts if it is larger.
    pub wrist_axis_min_m: f64,
}

impl Workspace {
    /// How far the pose lies outside, metres: 0 inside. A single number, so that "not worse than before" can be asked.
    #[must_use]
    pub fn violation_m<const N: usize>(
        &self,
        tcp: &Pose<ArmBase, Tcp>,
        model: &dyn ArmModel<N>,
    ) -> f64 {
        self.outside_by_m(tcp, model).max(0.0)
    }

    /// The same with a sign: negative inside, the distance to the nearest limit.
    pub(in crate::guard) fn outside_by_m<const N: usize>(
        &self,
        tcp: &Pose<ArmBase, Tcp>,
        model: &dyn ArmModel<N>,
    ) -> f64 {
        let p = tcp.position();
        let below = (self.min_m - p).max();
        let above = (p - self.max_m).max();
        let wrist = model.wrist_center(tcp);
        let reach = model.reach().map_or(f64::NEG_INFINITY, |ball| {
            (wrist - ball.center).norm() - (ball.radius - self.reach_margin_m)
        });
        let axis_min = self.axis_min_m(model);
        let axis = if axis_min > 0.0 {
            axis_min - wrist.x.hypot(wrist.y)
        } else {
            f64::NEG_INFINITY
        };
        below.max(above).max(reach).max(axis)
    }

    pub(in crate::guard) fn axis_min_m<const N: usize>(&self, model: &dyn ArmModel<N>) -> f64 {
        self.wrist_axis_min_m.max(model.wrist_axis_min_m())
    }

    pub(in crate::guard) fn clamp_to_box(&self, p: Vector3<f64>) -> Vector3<f64> {
        p.sup(&self.min_m).inf(&self.max_m)
    }
}
