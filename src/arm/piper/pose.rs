//! The arm's six pose numbers as a typed pose, and back on the branch nearest to the last one sent.
//!
//! The Piper's natural pose sits at RY = 85..90 deg, next to the Euler lock: there RX and RZ jump while the rotation barely moves.
//! So rotations are quaternions everywhere inside and become angles only here, continuous from frame to frame. On the wire RX and RZ
//! stay within ±180 deg and RY within ±90 deg.

use core::f64::consts::{PI, TAU};

use nalgebra::{UnitQuaternion, Vector3};

use super::wire::{EndPose, OutOfRange};
use crate::geometry::{ArmBase, Pose, Tcp, euler_xyz_continuous};

impl EndPose {
    /// The flange pose that these numbers mean.
    #[must_use]
    pub fn to_pose(&self) -> Pose<ArmBase, Tcp> {
        let position_m = Vector3::new(self.x.as_m(), self.y.as_m(), self.z.as_m());
        let [rx, ry, rz] = self.rxyz_rad();
        Pose::from_parts(position_m, UnitQuaternion::from_euler_angles(rx, ry, rz))
    }

    /// The numbers of a pose, on the Euler branch nearest to `last` (the numbers sent or measured before).
    ///
    /// # Errors
    /// [`OutOfRange`] when the pose is not finite or beyond 32 bits of 0.001 mm.
    pub fn from_pose(pose: &Pose<ArmBase, Tcp>, last: &Self) -> Result<Self, OutOfRange> {
        let p = pose.position();
        let [rx, ry, rz] = euler_xyz_continuous(pose.rotation(), last.rxyz_rad());
        Self::from_si([p.x, p.y, p.z], [wrapped(rx), ry, wrapped(rz)])
    }

    fn rxyz_rad(&self) -> [f64; 3] {
        [self.rx.as_rad(), self.ry.as_rad(), self.rz.as_rad()]
    }
}

/// The same angle within ±pi; NaN stays NaN.
fn wrapped(angle: f64) -> f64 {
    if angle.abs() <= PI {
        angle
    } else {
        angle - (angle / TAU).round() * TAU
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_types, clippy::disallowed_macros)]
mod tests {
    use super::*;
    use crate::geometry::angle_between;
    use crate::units::{Micrometres, MilliDegrees};

    /// Guards: the Euler convention R = Rz Ry Rx. Tool forward (0, 90, 0) looks along +X.
    #[test]
    fn tool_forward_looks_along_x() {
        let forward = EndPose {
            ry: MilliDegrees(90_000),
            ..EndPose::default()
        };
        let z = forward.to_pose().rotation() * Vector3::z();
        assert!((z - Vector3::x()).norm() < 1e-12);
        let all = EndPose {
            rx: MilliDegrees(20_000),
            ry: MilliDegrees(30_000),
            rz: MilliDegrees(40_000),
            x: Micrometres(1000),
            ..EndPose::default()
        };
        let rz = UnitQuaternion::from_axis_angle(&Vector3::z_axis(), 40_f64.to_radians());
        let ry = UnitQuaternion::from_axis_angle(&Vector3::y_axis(), 30_f64.to_radians());
        let rx = UnitQuaternion::from_axis_angle(&Vector3::x_axis(), 20_f64.to_radians());
        assert!(angle_between(all.to_pose().rotation(), rz * ry * rx) < 1e-12);
        assert!((all.to_pose().position().x - 0.001).abs() < 1e-15);
    }

    /// Guards: a tool that swings through the Euler lock loses no more rotation than the rounding of the wire, and the numbers stay
    /// within the arm's ranges. (RX and RZ do turn by 180 deg each on the way over the pole: within ±90 deg of RY nothing else exists.)
    #[test]
    fn the_lock_costs_no_rotation() {
        let mut last = EndPose {
            ry: MilliDegrees(85_000),
            ..EndPose::default()
        };
        for i in 0..=2000 {
            let ry = (85.0 + f64::from(i) * 0.005_f64).to_radians();
            let rotation = UnitQuaternion::from_axis_angle(&Vector3::y_axis(), ry)
                * UnitQuaternion::from_axis_angle(&Vector3::z_axis(), 1e-4);
            let pose = Pose::from_parts(Vector3::new(0.2, 0.0, 0.3), rotation);
            let next = EndPose::from_pose(&pose, &last).unwrap();
            assert!(
                angle_between(next.to_pose().rotation(), rotation) < 1.1e-3_f64.to_radians() + 2e-6
            );
            assert!(next.ry.0.abs() <= 90_000 && next.rx.0.abs() <= 180_000);
            assert!(next.rz.0.abs() <= 180_000);
            last = next;
        }
    }

    /// Guards: a pose that is not finite never becomes numbers.
    #[test]
    fn not_finite_is_refused() {
        let nan = Pose::from_parts(Vector3::new(f64::NAN, 0.0, 0.0), UnitQuaternion::identity());
        assert!(EndPose::from_pose(&nan, &EndPose::default()).is_err());
    }
}
