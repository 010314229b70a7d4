//! The Piper's geometry as the guard asks for it.

use nalgebra::Vector3;

use crate::geometry::{ArmBase, Pose, Tcp};
use crate::kinematics::{ArmModel, Sphere};

use super::model::{Choice, PiperModel};

/// The wrist centre stays this far from the axis of J1, metres: nearer, J1 swings for small motions of the hand.
const WRIST_AXIS_MIN_M: f64 = 0.03;

impl ArmModel<6> for PiperModel {
    fn forward(&self, q: &[f64; 6]) -> Pose<ArmBase, Tcp> {
        self.fk(q)
    }

    fn inverse_near(&self, tcp: &Pose<ArmBase, Tcp>, q_near: &[f64; 6]) -> Option<[f64; 6]> {
        self.ik(tcp, Choice::Nearest(*q_near)).ok()
    }

    fn joint_limits(&self) -> &[(f64, f64); 6] {
        self.joint_limits_rad()
    }

    fn joint_velocity_limits(&self) -> &[f64; 6] {
        self.joint_speeds_rad_s()
    }

    fn wrist_center(&self, tcp: &Pose<ArmBase, Tcp>) -> Vector3<f64> {
        Self::wrist_centre(tcp)
    }

    fn reach(&self) -> Option<Sphere> {
        let [_, radius] = self.wrist_reach_m();
        Some(Sphere {
            center: super::model::shoulder(),
            radius,
        })
    }

    fn wrist_axis_min_m(&self) -> f64 {
        WRIST_AXIS_MIN_M
    }
}
