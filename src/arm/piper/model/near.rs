//! The inverse kinematics of a cycle: the one branch that continues a known posture, without the seven others.
//!
//! The guard asks for the joints of some eight poses in each cycle, each a hair away from the last; solving all branches to throw seven
//! away was three quarters of the cycle's computing time. Here the signs of the branch are read off the seed, most sines and cosines come
//! from the sides of triangles, and the answer is given only if no other branch can be nearer:
//!
//! * facing the other way turns J1 by pi, the other wrist turns J4 by pi, the other elbow turns J3 by twice the bend;
//! * so every other branch is at least `apart = min(pi, 2 bend, 2 pi - 2 bend)` from this one, and by the triangle inequality farther from the seed
//!   than this one as long as this one is within `apart / 2` of it.
//!
//! Whatever is not clear (a singular pose, a limit, a seed far away) is left to [`PiperModel::ik_all`].

use core::f64::consts::{FRAC_PI_2, PI, TAU};

use nalgebra::Matrix3;

use super::{EDGE, ELBOW_OFFSET_M, FOREARM_M, PiperModel, UPPER_ARM_M, distance_squared, shoulder};
use crate::geometry::{ArmBase, Pose, Tcp};

/// Nearer to a singular line than this (m, or the sine of J5), the general way decides.
const CLEAR_OF_SINGULAR: f64 = 1e-6;

impl PiperModel {
    /// The solution nearest to `seed`, if it is clear which one that is. `None` says nothing about whether there is one.
    pub(super) fn ik_continued(
        &self,
        pose: &Pose<ArmBase, Tcp>,
        seed: &[f64; 6],
    ) -> Option<[f64; 6]> {
        let [seed1, _, seed3, seed4, ..] = *seed;
        let w = Self::wrist_centre(pose) - shoulder();
        let radius = (w.x * w.x + w.y * w.y).sqrt();
        // Also false for what is not a number, here and below.
        let in_reach = self.check_reach(pose).is_ok();
        if !(in_reach && radius > CLEAR_OF_SINGULAR) {
            return None;
        }
        let (q1, facing) = nearer_of_opposites(w.y.atan2(w.x), seed1);
        let (s1, c1) = (facing * w.y / radius, facing * w.x / radius);

        let elbow = self.elbow(facing * radius, -w.z, seed3)?;
        let forearm = Matrix3::new(
            c1 * elbow.cos,
            -s1,
            c1 * elbow.sin,
            s1 * elbow.cos,
            c1,
            s1 * elbow.sin,
            -elbow.sin,
            0.0,
            elbow.cos,
        );
        let wrist = forearm.tr_mul(pose.rotation().to_rotation_matrix().matrix());
        let [q4, q5, q6] = wrist_continued(&wrist, seed4)?;

        let [limit1, limit2, limit3, limit4, limit5, limit6] = self.joint_limits;
        let q = [
            within(q1, limit1)?,
            within(elbow.q2, limit2)?,
            within(elbow.q3, limit3)?,
            within(q4, limit4)?,
            within(q5, limit5)?,
            within(q6, limit6)?,
        ];
        let apart = PI.min(2.0 * elbow.bend).min(TAU - 2.0 * elbow.bend);
        (4.0 * distance_squared(&q, seed) < apart * apart).then_some(q)
    }

    /// J2 and J3 for a wrist centre `u` m before the axis of J1 and `v` m below the shoulder, the elbow on the side of `seed3`.
    fn elbow(&self, u: f64, v: f64, seed3: f64) -> Option<Elbow> {
        let [offset2, offset3] = self.theta_offsets;
        let (l3, forearm_angle) = self.forearm;
        let squared = u * u + v * v;
        let distance = squared.sqrt();
        // As in `shoulder_elbow`: by products, so that no digits are lost at the stretched arm.
        let half_squared = ((UPPER_ARM_M + l3) - distance) * ((UPPER_ARM_M + l3) + distance)
            / (4.0 * UPPER_ARM_M * l3);
        if !(half_squared > 0.0 && half_squared < 1.0) {
            return None;
        }
        let bend = 2.0 * half_squared.sqrt().asin();
        let side = 1.0_f64.copysign(wrapped(seed3 + offset3 + forearm_angle));
        let sin_bend = side * 2.0 * (half_squared * (1.0 - half_squared)).sqrt();
        let cos_bend = 1.0 - 2.0 * half_squared;
        // Theta 2: the direction to the wrist centre less the inner angle of the triangle, as a quotient of complex numbers.
        let (along, across) = (UPPER_ARM_M + l3 * cos_bend, l3 * sin_bend);
        let (re, im) = (u * along + v * across, v * along - u * across);
        let (s2, c2) = (im / squared, re / squared);
        // Theta 3: the bend less the constant angle of the forearm, whose sine and cosine are its sides.
        let (sf, cf) = (-FOREARM_M / l3, ELBOW_OFFSET_M / l3);
        let (s3, c3) = (sin_bend * cf - cos_bend * sf, cos_bend * cf + sin_bend * sf);
        Some(Elbow {
            q2: im.atan2(re) - offset2,
            q3: side * bend - forearm_angle - offset3,
            sin: s2 * c3 + c2 * s3,
            cos: c2 * c3 - s2 * s3,
            bend,
        })
    }
}

/// J2 and J3, with sine and cosine of the sum of their thetas and the size of the bend.
struct Elbow {
    q2: f64,
    q3: f64,
    sin: f64,
    cos: f64,
    bend: f64,
}

/// J4, J5, J6 of a rotation Rz(q4) Ry(q5) Rz(q6), on the side of `seed4`.
fn wrist_continued(m: &Matrix3<f64>, seed4: f64) -> Option<[f64; 3]> {
    let (x, y) = (m.m13, m.m23);
    let sin5 = (x * x + y * y).sqrt();
    if sin5.is_nan() || sin5 <= CLEAR_OF_SINGULAR {
        return None;
    }
    let (q4, side) = nearer_of_opposites(y.atan2(x), seed4);
    let (s4, c4) = (side * y / sin5, side * x / sin5);
    let q5 = (side * sin5).atan2(m.m33);
    let q6 = (c4 * m.m21 - s4 * m.m11).atan2(c4 * m.m22 - s4 * m.m12);
    Some([q4, q5, q6])
}

/// The angle or its opposite, whichever is nearer to `seed` on the circle; and 1 or -1.
fn nearer_of_opposites(angle: f64, seed: f64) -> (f64, f64) {
    if wrapped(angle - seed).abs() <= FRAC_PI_2 {
        (angle, 1.0)
    } else {
        (wrapped(angle + PI), -1.0)
    }
}

/// Into ±pi, from not much more than one turn away.
fn wrapped(angle: f64) -> f64 {
    if angle > PI {
        angle - TAU
    } else if angle < -PI {
        angle + TAU
    } else {
        angle
    }
}

/// Wrapped into ±pi and within the limits; a rounding error beyond a limit is set onto it.
fn within(angle: f64, (lower, upper): (f64, f64)) -> Option<f64> {
    let angle = wrapped(angle);
    (angle >= lower - EDGE && angle <= upper + EDGE).then(|| angle.clamp(lower, upper))
}
