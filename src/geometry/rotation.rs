//! Admission of raw quaternions, logarithms, limits, and Euler angles for wires that need them.

use nalgebra::{Quaternion, UnitQuaternion, Vector3};

/// Why a raw quaternion was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuatError {
    /// A component is NaN or infinite.
    NotFinite,
    /// The norm lies outside 0.9..=1.1.
    Norm,
}

/// A raw quaternion (w, x, y, z) as a rotation: finite, norm within 0.9..=1.1, renormalised in `f64`.
///
/// # Errors
/// [`QuatError`] says which test failed.
pub fn admit_quat_wxyz(wxyz: [f64; 4]) -> Result<UnitQuaternion<f64>, QuatError> {
    let [w, x, y, z] = wxyz;
    if !wxyz.iter().all(|c| c.is_finite()) {
        return Err(QuatError::NotFinite);
    }
    let q = Quaternion::new(w, x, y, z);
    let norm = q.norm();
    if !(0.9..=1.1).contains(&norm) {
        return Err(QuatError::Norm);
    }
    Ok(UnitQuaternion::new_unchecked(q / norm))
}

/// Rotation vector (axis times angle, radians) of the shortest arc; |v| <= pi, the same for `q` and `-q`.
#[must_use]
pub fn log_rotation(q: UnitQuaternion<f64>) -> Vector3<f64> {
    let (w, v) = if q.w < 0.0 {
        (-q.w, -q.imag())
    } else {
        (q.w, q.imag())
    };
    let s = v.norm();
    if s < 1e-12 {
        v * 2.0
    } else {
        v * (2.0 * s.atan2(w) / s)
    }
}

/// The rotation of a rotation vector.
#[must_use]
pub fn rotation_from_log(v: Vector3<f64>) -> UnitQuaternion<f64> {
    let angle = v.norm();
    let half = 0.5 * angle;
    // sin(x)/x by series where the division would lose digits.
    let k = if angle < 1e-6 {
        0.5 - angle * angle / 48.0
    } else {
        half.sin() / angle
    };
    UnitQuaternion::new_normalize(Quaternion::from_parts(half.cos(), v * k))
}

/// Angle of the shortest rotation between two orientations, radians, 0..=pi.
#[must_use]
pub fn angle_between(a: UnitQuaternion<f64>, b: UnitQuaternion<f64>) -> f64 {
    log_rotation(a.inverse() * b).norm()
}

/// The same rotation with its angle limited to `angle_max` radians (by norm of the rotation vector, not by axis).
#[must_use]
pub fn limit_rotation(q: UnitQuaternion<f64>, angle_max: f64) -> UnitQuaternion<f64> {
    let v = log_rotation(q);
    let n = v.norm();
    if n <= angle_max {
        q
    } else {
        rotation_from_log(v * (angle_max / n))
    }
}

/// Euler angles (rx, ry, rz) in radians with R = Rz(rz) Ry(ry) Rx(rx), on the branch nearest to `last`.
///
/// rx and rz are unwrapped to within pi of `last`; near |ry| = 90 deg, where only rx -+ rz is defined, rx keeps its last value
/// and rz takes the rest, so that a small rotation never becomes a large step of the three numbers. ry stays within +-90 deg.
#[must_use]
pub fn euler_xyz_continuous(q: UnitQuaternion<f64>, last: [f64; 3]) -> [f64; 3] {
    let m = q.to_rotation_matrix();
    let m = m.matrix();
    let cos_ry = m[(0, 0)].hypot(m[(1, 0)]);
    let ry = (-m[(2, 0)]).atan2(cos_ry);
    let (rx, rz) = if cos_ry > 1e-6 {
        (m[(2, 1)].atan2(m[(2, 2)]), m[(1, 0)].atan2(m[(0, 0)]))
    } else {
        // Rz(rz) Ry(±90) Rx(rx): with rx fixed, rz follows from the upper right block.
        let rx = last[0];
        let diff = m[(1, 2)].atan2(m[(0, 2)]);
        let rz = if ry > 0.0 {
            // R = [.. cos(rz-rx) at (0,2), sin(rz-rx) at (1,2)]
            diff + rx
        } else {
            // R = [.. -cos(rz+rx) at (0,2), -sin(rz+rx) at (1,2)]
            (-m[(1, 2)]).atan2(-m[(0, 2)]) - rx
        };
        (rx, rz)
    };
    [near(rx, last[0]), ry, near(rz, last[2])]
}

/// `angle` plus a multiple of 2 pi, nearest to `reference`.
fn near(angle: f64, reference: f64) -> f64 {
    use core::f64::consts::TAU;
    angle + ((reference - angle) / TAU).round() * TAU
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::f64::consts::{FRAC_PI_2, PI};

    fn rebuild(e: [f64; 3]) -> UnitQuaternion<f64> {
        UnitQuaternion::from_euler_angles(e[0], e[1], e[2])
    }

    /// Guards: the angles always rebuild the rotation, the lock band and both poles included.
    #[test]
    fn euler_rebuilds_the_rotation() {
        let mut last = [0.0; 3];
        for i in 0..2000 {
            let t = f64::from(i) * 0.01;
            let q = UnitQuaternion::from_euler_angles(
                t.sin() * 3.0,
                (t * 0.7).sin() * FRAC_PI_2,
                t * 0.9,
            );
            last = euler_xyz_continuous(q, last);
            assert!(angle_between(rebuild(last), q) < 2e-6, "{i}");
        }
        for ry in [FRAC_PI_2, -FRAC_PI_2] {
            let q = UnitQuaternion::from_euler_angles(0.4, ry, -0.9);
            let e = euler_xyz_continuous(q, [0.1, 0.0, 0.0]);
            assert!(angle_between(rebuild(e), q) < 1e-6);
        }
    }

    /// Guards: yaw through +-180 deg and the sign of the quaternion give no step.
    #[test]
    fn euler_is_continuous_through_half_turn() {
        let mut last = [0.0; 3];
        for i in 0..720 {
            let q = UnitQuaternion::from_euler_angles(0.2, 0.1, f64::from(i).to_radians());
            let q = if i % 2 == 0 {
                q
            } else {
                UnitQuaternion::new_unchecked(-q.into_inner())
            };
            let e = euler_xyz_continuous(q, last);
            if i > 0 {
                assert!((e[2] - last[2]).abs() < 0.02 && (e[0] - last[0]).abs() < 1e-6);
            }
            last = e;
        }
    }

    #[test]
    fn log_and_exp_agree() {
        for v in [
            Vector3::new(0.0, 0.0, 0.0),
            Vector3::new(1e-9, 0.0, 0.0),
            Vector3::new(0.3, -2.0, 1.0),
            Vector3::new(PI - 1e-9, 0.0, 0.0),
        ] {
            assert!((log_rotation(rotation_from_log(v)) - v).norm() < 1e-7);
        }
        assert!(
            (angle_between(
                limit_rotation(rotation_from_log(Vector3::new(0.0, 2.0, 0.0)), 0.5),
                UnitQuaternion::identity()
            ) - 0.5)
                .abs()
                < 1e-9
        );
    }

    #[test]
    fn admission() {
        assert_eq!(admit_quat_wxyz([0.0; 4]), Err(QuatError::Norm));
        assert_eq!(
            admit_quat_wxyz([f64::NAN, 0.0, 0.0, 0.0]),
            Err(QuatError::NotFinite)
        );
        assert!(admit_quat_wxyz([0.95, 0.0, 0.0, 0.0]).is_ok());
    }
}
