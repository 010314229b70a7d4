//! The Piper's geometry: chains of both firmware generations, limits, reach, inverse kinematics in closed form.
//!
//! Modified Denavit-Hartenberg parameters of the device's document, mm and degrees:
//!
//! | joint | alpha before | a before | offset from S-V1.6-3 | offset before | d |
//! |---|---|---|---|---|---|
//! | 1 | 0 | 0 | 0 | 0 | 123 |
//! | 2 | -90 | 0 | -172.22 | -174.22 | 0 |
//! | 3 | 0 | 285.03 | -102.78 | -100.78 | 0 |
//! | 4 | 90 | -21.98 | 0 | 0 | 250.75 |
//! | 5 | -90 | 0 | 0 | 0 | 0 |
//! | 6 | 90 | 0 | 0 | 0 | 91 |
//!
//! The axes of joints 4, 5 and 6 meet in the **wrist centre** w = p - 91 mm · R z, which depends on joints 1 to 3 only:
//!
//! ```text
//!        J3 elbow
//!        ●───────── L3 = 251.7 ───────● w ── 91 ──► flange
//!   L2 = 285.03
//!        │
//!        ● J2 shoulder, 123 mm above the base, on the axis of J1
//! ```
//!
//! * J1 turns the arm's plane through w: two answers, facing w or its back to it. On the axis itself J1 is free (**wrist axis
//!   singularity**: near it a small motion of the hand swings J1).
//! * J2, J3: a triangle with sides L2, L3 and the distance to w: two answers.
//! * J4, J5, J6: three rotations about z, y, z: two answers. At J5 = 0 only J4 + J6 counts.
//!
//! Eight branches at most; those outside the joint limits are dropped.

mod near;

use core::f64::consts::{PI, TAU};

use nalgebra::{Matrix3, Vector3};

use super::wire::FirmwareVersion;
use crate::geometry::{ArmBase, Pose, Tcp};
use crate::kinematics::{Chain, JointRange, MdhRow};

/// Base to shoulder, along base Z, m.
pub const SHOULDER_HEIGHT_M: f64 = 0.123;
/// Shoulder to elbow, m.
pub const UPPER_ARM_M: f64 = 0.285_03;
/// Elbow offset across the forearm, m (negative: to the back).
const ELBOW_OFFSET_M: f64 = -0.021_98;
/// Along the forearm, m.
const FOREARM_M: f64 = 0.250_75;
/// Wrist centre to flange, m.
pub const WRIST_TO_FLANGE_M: f64 = 0.091;
/// Greatest joint speed, rad/s.
pub const JOINT_SPEED_MAX_RAD_S: f64 = 3.0;
/// Default joint acceleration, rad/s².
pub const JOINT_ACCELERATION_RAD_S2: f64 = 5.0;

/// The vendor's soft limits, rad. They apply to joint commands in its SDK only; the limits in the arm's flash apply to pose commands.
#[expect(clippy::approx_constant, reason = "3.14 is the vendor's limit, not pi")]
pub const JOINT_RANGES: [JointRange; 6] = [
    range(-2.6179, 2.6179),
    range(0.0, 3.14),
    range(-2.967, 0.0),
    range(-1.745, 1.745),
    range(-1.22, 1.22),
    range(-2.094_39, 2.094_39),
];

const fn range(lower: f64, upper: f64) -> JointRange {
    JointRange {
        lower,
        upper,
        velocity_max: JOINT_SPEED_MAX_RAD_S,
    }
}

/// Rounding let through at a limit and at the edge of the reach: rad, m.
const EDGE: f64 = 1e-9;
/// Below this, a length (m) or the sine of J5 says nothing about an angle any more, and the seed decides.
const DEGENERATE: f64 = 1e-9;

/// Which zero J2 and J3 have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DhVariant {
    /// Firmware before S-V1.6-3.
    Old,
    /// Firmware from S-V1.6-3: two degrees more on J2, two less on J3.
    Offset,
}

impl DhVariant {
    /// The variant of a firmware.
    #[must_use]
    pub fn of(firmware: FirmwareVersion) -> Self {
        if firmware.has_dh_offset() {
            Self::Offset
        } else {
            Self::Old
        }
    }

    /// Theta offsets of J2 and J3, rad.
    fn theta_offsets(self) -> [f64; 2] {
        let degrees: [f64; 2] = match self {
            Self::Old => [-174.22, -100.78],
            Self::Offset => [-172.22, -102.78],
        };
        degrees.map(f64::to_radians)
    }
}

/// Why a pose has no joint solution.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum IkFailure {
    /// A number of the pose is not finite.
    #[error("the pose is not finite")]
    NotFinite,
    /// The wrist centre is too far from the shoulder.
    #[error("the wrist would be {distance_m:.3} m from the shoulder, more than {max_m:.3} m")]
    TooFar {
        /// Distance wanted, m.
        distance_m: f64,
        /// Reach, m.
        max_m: f64,
    },
    /// The wrist centre is too close to the shoulder.
    #[error("the wrist would be {distance_m:.3} m from the shoulder, less than {min_m:.3} m")]
    TooNear {
        /// Distance wanted, m.
        distance_m: f64,
        /// Least distance, m.
        min_m: f64,
    },
    /// Solutions exist, but each has a joint beyond its limit.
    #[error("every solution has a joint beyond its limit")]
    BeyondLimits,
}

/// Joint solutions of one pose, at most eight.
pub type IkSolutions = heapless::Vec<[f64; 6], 8>;

/// Which solution to take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Choice {
    /// The one nearest to these joints (sum of squared differences).
    Nearest([f64; 6]),
    /// As an arm that knows no present joints chooses: facing the wrist centre, elbow up, the smaller turns of J4 and J6; J4 is zero
    /// where it is free. What the Piper's own closed-form solver prefers is not documented; this is our stand-in for it.
    Unseeded,
}

/// The geometry of one arm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PiperModel {
    chain: Chain<6>,
    theta_offsets: [f64; 2],
    /// Elbow to wrist centre: see [`forearm`].
    forearm: (f64, f64),
    /// Shoulder to wrist centre, least and greatest, m.
    wrist_reach: [f64; 2],
    joint_limits: [(f64, f64); 6],
    joint_speeds: [f64; 6],
}

/// Elbow to wrist centre: length and the angle at which it leaves the elbow frame.
fn forearm() -> (f64, f64) {
    (
        ELBOW_OFFSET_M.hypot(FOREARM_M),
        (-FOREARM_M).atan2(ELBOW_OFFSET_M),
    )
}

impl PiperModel {
    /// The model of a firmware generation, with the vendor's soft limits.
    #[must_use]
    pub fn new(variant: DhVariant) -> Self {
        Self::with_ranges(variant, JOINT_RANGES)
    }

    /// The model with other joint limits (those read from the arm, say).
    #[must_use]
    pub fn with_ranges(variant: DhVariant, ranges: [JointRange; 6]) -> Self {
        let theta_offsets = variant.theta_offsets();
        let [t2, t3] = theta_offsets;
        let quarter = PI / 2.0;
        let [r1, r2, r3, r4, r5, r6] = ranges;
        let row = |alpha, a, theta_offset, d, range| MdhRow {
            alpha,
            a,
            theta_offset,
            d,
            range,
        };
        let chain = Chain::from_mdh([
            row(0.0, 0.0, 0.0, SHOULDER_HEIGHT_M, r1),
            row(-quarter, 0.0, t2, 0.0, r2),
            row(0.0, UPPER_ARM_M, t3, 0.0, r3),
            row(quarter, ELBOW_OFFSET_M, 0.0, FOREARM_M, r4),
            row(-quarter, 0.0, 0.0, 0.0, r5),
            row(quarter, 0.0, 0.0, WRIST_TO_FLANGE_M, r6),
        ]);
        let wrist_reach = wrist_reach(t3, r3);
        Self {
            chain,
            theta_offsets,
            forearm: forearm(),
            wrist_reach,
            joint_limits: ranges.map(|r| (r.lower, r.upper)),
            joint_speeds: ranges.map(|r| r.velocity_max),
        }
    }

    /// The chain: frames and Jacobian.
    #[must_use]
    pub const fn chain(&self) -> &Chain<6> {
        &self.chain
    }

    /// Lowest and highest angle per joint, rad.
    #[must_use]
    pub const fn joint_limits_rad(&self) -> &[(f64, f64); 6] {
        &self.joint_limits
    }

    /// Highest speed per joint, rad/s.
    #[must_use]
    pub const fn joint_speeds_rad_s(&self) -> &[f64; 6] {
        &self.joint_speeds
    }

    /// The flange pose at joint angles `q`, rad.
    #[must_use]
    pub fn fk(&self, q: &[f64; 6]) -> Pose<ArmBase, Tcp> {
        self.chain.fk(q)
    }

    /// The wrist centre of a flange pose, base axes, m.
    #[must_use]
    pub fn wrist_centre(pose: &Pose<ArmBase, Tcp>) -> Vector3<f64> {
        pose.position() - pose.rotation() * Vector3::new(0.0, 0.0, WRIST_TO_FLANGE_M)
    }

    /// Distance of the wrist centre from the axis of J1, m. Small means that J1 swings for small motions of the hand.
    #[must_use]
    pub fn wrist_axis_distance(pose: &Pose<ArmBase, Tcp>) -> f64 {
        let w = Self::wrist_centre(pose);
        w.x.hypot(w.y)
    }

    /// Least and greatest distance of the wrist centre from the shoulder (0, 0, 123 mm) that J3's limits allow, m.
    #[must_use]
    pub const fn wrist_reach_m(&self) -> [f64; 2] {
        self.wrist_reach
    }

    /// Whether the wrist centre of a pose lies within reach. Necessary for a solution, not sufficient: joint limits may still forbid it.
    ///
    /// # Errors
    /// [`IkFailure`] says how far off.
    pub fn check_reach(&self, pose: &Pose<ArmBase, Tcp>) -> Result<(), IkFailure> {
        if !pose.is_finite() {
            return Err(IkFailure::NotFinite);
        }
        let distance_m = (Self::wrist_centre(pose) - shoulder()).norm();
        let [min_m, max_m] = self.wrist_reach;
        if distance_m > max_m + EDGE {
            return Err(IkFailure::TooFar { distance_m, max_m });
        }
        if distance_m < min_m - EDGE {
            return Err(IkFailure::TooNear { distance_m, min_m });
        }
        Ok(())
    }

    /// Every joint solution of a flange pose within the joint limits. `seed` decides only what the pose leaves free: J1 with the
    /// wrist centre on its axis, J4 with J5 at zero.
    ///
    /// # Errors
    /// [`IkFailure`] when there is none.
    pub fn ik_all(
        &self,
        pose: &Pose<ArmBase, Tcp>,
        seed: &[f64; 6],
    ) -> Result<IkSolutions, IkFailure> {
        self.check_reach(pose)?;
        let w = Self::wrist_centre(pose) - shoulder();
        let rotation = pose.rotation().to_rotation_matrix().into_inner();
        let [q1_seed, _, _, q4_seed, ..] = *seed;
        let mut found = IkSolutions::new();
        let facing = if w.x.hypot(w.y) < DEGENERATE {
            q1_seed
        } else {
            w.y.atan2(w.x)
        };
        for q1 in [facing, facing + PI] {
            let across = w.x * q1.cos() + w.y * q1.sin();
            for [q2, q3] in self.shoulder_elbow(across, -w.z) {
                let wrist = self.forearm_rotation(q1, q2, q3).transpose() * rotation;
                for [q4, q5, q6] in wrist_angles(&wrist, q4_seed) {
                    if let Some(q) = self.within_limits([q1, q2, q3, q4, q5, q6]) {
                        // Room for all eight branches, so the push cannot fail.
                        let _ = found.push(q);
                    }
                }
            }
        }
        if found.is_empty() {
            return Err(IkFailure::BeyondLimits);
        }
        Ok(found)
    }

    /// One joint solution of a flange pose.
    ///
    /// # Errors
    /// [`IkFailure`] when there is none.
    pub fn ik(&self, pose: &Pose<ArmBase, Tcp>, choice: Choice) -> Result<[f64; 6], IkFailure> {
        if let Choice::Nearest(q) = &choice
            && let Some(q) = self.ik_continued(pose, q)
        {
            return Ok(q);
        }
        let seed = match choice {
            Choice::Nearest(q) => q,
            Choice::Unseeded => [0.0; 6],
        };
        let cost = |candidate: &[f64; 6]| match choice {
            Choice::Nearest(q) => distance_squared(candidate, &q),
            Choice::Unseeded => self.unseeded_cost(pose, candidate),
        };
        let all = self.ik_all(pose, &seed)?;
        all.iter()
            .min_by(|a, b| cost(a).total_cmp(&cost(b)))
            .copied()
            .ok_or(IkFailure::BeyondLimits)
    }

    /// J2 and J3 for a wrist centre `u` m before the axis of J1 and `v` m *below* the shoulder: elbow to either side.
    fn shoulder_elbow(&self, u: f64, v: f64) -> [[f64; 2]; 2] {
        let (l3, forearm_angle) = self.forearm;
        let distance = u.hypot(v);
        // sin²(bend/2) by products: no digits lost at the stretched arm, where cos(bend) is flat.
        let sin_squared = ((UPPER_ARM_M + l3) - distance) * ((UPPER_ARM_M + l3) + distance)
            / (4.0 * UPPER_ARM_M * l3);
        let bend = 2.0 * sin_squared.clamp(0.0, 1.0).sqrt().asin();
        let [offset2, offset3] = self.theta_offsets;
        [bend, -bend].map(|bend| {
            let inner = (l3 * bend.sin()).atan2(UPPER_ARM_M + l3 * bend.cos());
            [v.atan2(u) - inner - offset2, bend - forearm_angle - offset3]
        })
    }

    /// Rotation of the frame in which J4, J5, J6 turn about z, y, z, seen in the base.
    fn forearm_rotation(&self, q1: f64, q2: f64, q3: f64) -> Matrix3<f64> {
        let [offset2, offset3] = self.theta_offsets;
        let (s1, c1) = q1.sin_cos();
        let (s, c) = (q2 + offset2 + q3 + offset3).sin_cos();
        // Rz(q1) Rx(-90) Rz(q2 + q3) Rx(90), multiplied out: Rz(q1) Ry(q2 + q3).
        Matrix3::new(c1 * c, -s1, c1 * s, s1 * c, c1, s1 * s, -s, 0.0, c)
    }

    /// The joints wrapped into ±pi and within their limits; a rounding error beyond a limit is set onto it.
    fn within_limits(&self, mut q: [f64; 6]) -> Option<[f64; 6]> {
        for (value, joint) in q.iter_mut().zip(self.chain.joints()) {
            let JointRange { lower, upper, .. } = joint.range;
            let wrapped = *value - (*value / TAU).round() * TAU;
            if wrapped < lower - EDGE || wrapped > upper + EDGE {
                return None;
            }
            *value = wrapped.clamp(lower, upper);
        }
        Some(q)
    }

    /// Lower is preferred: facing the wrist first, then elbow up, then small turns of the wrist.
    fn unseeded_cost(&self, pose: &Pose<ArmBase, Tcp>, q: &[f64; 6]) -> f64 {
        let [q1, q2, _, q4, _, q6] = *q;
        let w = Self::wrist_centre(pose);
        let backwards = w.x * q1.cos() + w.y * q1.sin() < 0.0;
        let [offset2, _] = self.theta_offsets;
        // Height of the elbow over the shoulder: theta 2 counts downwards.
        let elbow_up = -(q2 + offset2).sin();
        let wrist_turns = q4.abs() + q6.abs();
        f64::from(u8::from(backwards)) * 100.0 - elbow_up * 10.0 + wrist_turns * 0.1
    }
}

pub(super) fn shoulder() -> Vector3<f64> {
    Vector3::new(0.0, 0.0, SHOULDER_HEIGHT_M)
}

fn distance_squared(a: &[f64; 6], b: &[f64; 6]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// Least and greatest distance from shoulder to wrist centre over the range of J3.
fn wrist_reach(theta_offset3: f64, range3: JointRange) -> [f64; 2] {
    let (l3, forearm_angle) = forearm();
    let distance = |bend: f64| {
        let squares = UPPER_ARM_M * UPPER_ARM_M + l3 * l3;
        (squares + 2.0 * UPPER_ARM_M * l3 * bend.cos())
            .max(0.0)
            .sqrt()
    };
    let bend = |q3: f64| q3 + theta_offset3 + forearm_angle;
    let (from, to) = (bend(range3.lower), bend(range3.upper));
    let (at_from, at_to) = (distance(from), distance(to));
    // The distance is extreme at the ends of the range and wherever a multiple of pi lies between them.
    let passes = |angle: f64| ((from - angle) / TAU).ceil() * TAU + angle <= to;
    let max = if passes(0.0) {
        UPPER_ARM_M + l3
    } else {
        at_from.max(at_to)
    };
    let min = if passes(PI) {
        (UPPER_ARM_M - l3).abs()
    } else {
        at_from.min(at_to)
    };
    [min, max]
}

/// J4, J5, J6 of a rotation Rz(q4) Ry(q5) Rz(q6): both answers. `q4_seed` counts where J4 is free.
fn wrist_angles(m: &Matrix3<f64>, q4_seed: f64) -> [[f64; 3]; 2] {
    let (x, y) = (m.m13, m.m23);
    let q4 = if x.hypot(y) < DEGENERATE {
        q4_seed
    } else {
        y.atan2(x)
    };
    [q4, q4 + PI].map(|q4| {
        // J5 and J6 come from what remains once J4 is turned back, so that a badly known J4 near J5 = 0 is made good by J6.
        let (s4, c4) = q4.sin_cos();
        let q5 = (c4 * m.m13 + s4 * m.m23).atan2(m.m33);
        let q6 = (c4 * m.m21 - s4 * m.m11).atan2(c4 * m.m22 - s4 * m.m12);
        [q4, q5, q6]
    })
}

#[cfg(test)]
mod tests;
