//! [`Chain`]: the constants of a serial arm.

use nalgebra::{Isometry3, Translation3, Unit, UnitQuaternion, Vector3};

/// A fixed transform from a position in metres and roll, pitch, yaw in radians: R = Rz(yaw) Ry(pitch) Rx(roll).
#[must_use]
pub fn fixed_transform(xyz_m: [f64; 3], rpy_rad: [f64; 3]) -> Isometry3<f64> {
    let ([x, y, z], [roll, pitch, yaw]) = (xyz_m, rpy_rad);
    Isometry3::from_parts(
        Translation3::new(x, y, z),
        UnitQuaternion::from_euler_angles(roll, pitch, yaw),
    )
}

/// How a joint moves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Motion {
    /// Turns about an axis; the joint value is in radians.
    Revolute(Unit<Vector3<f64>>),
    /// Slides along an axis; the joint value is in metres.
    Prismatic(Unit<Vector3<f64>>),
}

impl Motion {
    /// The transform at joint value `q`.
    #[must_use]
    pub fn transform(&self, q: f64) -> Isometry3<f64> {
        match self {
            Self::Revolute(axis) => Isometry3::from_parts(
                Translation3::identity(),
                UnitQuaternion::from_axis_angle(axis, q),
            ),
            Self::Prismatic(axis) => Isometry3::from_parts(
                Translation3::from(axis.into_inner() * q),
                UnitQuaternion::identity(),
            ),
        }
    }
}

/// What a joint may do: rad and rad/s, or m and m/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JointRange {
    /// Least value.
    pub lower: f64,
    /// Greatest value.
    pub upper: f64,
    /// Greatest speed.
    pub velocity_max: f64,
}

impl JointRange {
    /// Within the range, NaN never.
    #[must_use]
    pub fn contains(&self, q: f64) -> bool {
        (self.lower..=self.upper).contains(&q)
    }
}

/// One joint of a chain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChainJoint {
    /// From the frame before this joint to its own frame at joint value zero.
    pub origin: Isometry3<f64>,
    /// Axis and kind.
    pub motion: Motion,
    /// Limits.
    pub range: JointRange,
}

impl ChainJoint {
    /// A revolute joint as a robot description gives it: position in metres, roll pitch yaw in radians, axis in the joint's frame.
    #[must_use]
    pub fn revolute(xyz_m: [f64; 3], rpy_rad: [f64; 3], axis: [f64; 3], range: JointRange) -> Self {
        Self {
            origin: fixed_transform(xyz_m, rpy_rad),
            motion: Motion::Revolute(Unit::new_normalize(Vector3::from(axis))),
            range,
        }
    }
}

/// A row of modified Denavit-Hartenberg parameters (Craig): T = Rx(alpha) Tx(a) Rz(theta + offset) Tz(d), alpha and a of the link
/// *before* the joint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MdhRow {
    /// Twist of the previous link, rad.
    pub alpha: f64,
    /// Length of the previous link, m.
    pub a: f64,
    /// Added to the joint value, rad.
    pub theta_offset: f64,
    /// Offset along the joint's axis, m.
    pub d: f64,
    /// Limits.
    pub range: JointRange,
}

impl From<MdhRow> for ChainJoint {
    fn from(row: MdhRow) -> Self {
        // Rz and Tz of one axis commute, so all constants come before the joint's own turn about z.
        let twist = fixed_transform([row.a, 0.0, 0.0], [row.alpha, 0.0, 0.0]);
        Self {
            origin: twist * fixed_transform([0.0, 0.0, row.d], [0.0, 0.0, row.theta_offset]),
            motion: Motion::Revolute(Vector3::z_axis()),
            range: row.range,
        }
    }
}

/// The first joint found outside its limits.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("joint {number} at {value:.4} is outside {lower:.4}..={upper:.4}")]
pub struct LimitHit {
    /// Joint, counted from 1.
    pub number: u8,
    /// Its value.
    pub value: f64,
    /// Least value allowed.
    pub lower: f64,
    /// Greatest value allowed.
    pub upper: f64,
}

/// A serial arm with `N` joints.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chain<const N: usize> {
    joints: [ChainJoint; N],
    tool: Isometry3<f64>,
}

impl<const N: usize> Chain<N> {
    /// From joints in order from the base, and the transform from the last joint's frame to the tool.
    #[must_use]
    pub const fn new(joints: [ChainJoint; N], tool: Isometry3<f64>) -> Self {
        Self { joints, tool }
    }

    /// From modified Denavit-Hartenberg rows; the tool is the last frame.
    #[must_use]
    pub fn from_mdh(rows: [MdhRow; N]) -> Self {
        Self::new(rows.map(ChainJoint::from), Isometry3::identity())
    }

    /// The joints.
    #[must_use]
    pub const fn joints(&self) -> &[ChainJoint; N] {
        &self.joints
    }

    /// From the last joint's frame to the tool.
    #[must_use]
    pub const fn tool(&self) -> &Isometry3<f64> {
        &self.tool
    }

    /// The joint ranges.
    #[must_use]
    pub fn ranges(&self) -> [JointRange; N] {
        self.joints.map(|joint| joint.range)
    }

    /// Every joint within its limits.
    ///
    /// # Errors
    /// The first joint that is not; NaN never is.
    pub fn check_limits(&self, q: &[f64; N]) -> Result<(), LimitHit> {
        for (number, (joint, &value)) in (1_u8..).zip(self.joints.iter().zip(q)) {
            if !joint.range.contains(value) {
                let JointRange { lower, upper, .. } = joint.range;
                return Err(LimitHit {
                    number,
                    value,
                    lower,
                    upper,
                });
            }
        }
        Ok(())
    }
}
