//! Values that travel in both directions: joint numbers, and pose and joint triples with one frame a part.

use crate::arm::frame::Frame;
use crate::units::{Micrometres, MilliDegrees};

use super::bytes::{from_i32_pair, i32_pair};
use super::{Field, OutOfRange, id};

/// One of the six joints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Joint {
    /// Base yaw.
    J1 = 1,
    /// Shoulder.
    J2 = 2,
    /// Elbow.
    J3 = 3,
    /// Forearm roll.
    J4 = 4,
    /// Wrist pitch.
    J5 = 5,
    /// Flange roll.
    J6 = 6,
}

impl Joint {
    /// All six in order.
    pub const ALL: [Self; 6] = [Self::J1, Self::J2, Self::J3, Self::J4, Self::J5, Self::J6];

    /// From the protocol's number, 1..=6.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::J1),
            2 => Some(Self::J2),
            3 => Some(Self::J3),
            4 => Some(Self::J4),
            5 => Some(Self::J5),
            6 => Some(Self::J6),
            _ => None,
        }
    }

    /// The protocol's number, 1..=6.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Index into an array of six, 0..=5.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::J1 => 0,
            Self::J2 => 1,
            Self::J3 => 2,
            Self::J4 => 3,
            Self::J5 => 4,
            Self::J6 => 5,
        }
    }

    /// Which joint an identifier in a range of six starting at `first` belongs to.
    pub(super) fn of_id(id: u32, first: u32) -> Option<Self> {
        let number = id.checked_sub(first)?.checked_add(1)?;
        Self::from_number(u8::try_from(number).ok()?)
    }

    /// The identifier of this joint in a range of six starting at `first`.
    pub(super) const fn id(self, first: u32) -> u32 {
        first.wrapping_add(self as u32).wrapping_sub(1)
    }
}

/// A set of joints as the bits 0..=5 of a byte; the two upper bits are kept as received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct JointSet(pub u8);

impl JointSet {
    /// Is this joint in the set?
    #[must_use]
    pub const fn has(self, joint: Joint) -> bool {
        self.0 & (1 << joint.index()) != 0
    }

    /// Is any joint in the set? The two upper bits do not count.
    #[must_use]
    pub const fn any(self) -> bool {
        self.0 & 0b0011_1111 != 0
    }

    /// The lowest joint in the set.
    #[must_use]
    pub fn first(self) -> Option<Joint> {
        Joint::ALL.into_iter().find(|&joint| self.has(joint))
    }
}

/// One joint or all six (protocol number 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JointSelect {
    /// One.
    One(Joint),
    /// All six.
    All,
}

impl JointSelect {
    /// From the protocol's number: 1..=6, 7.
    #[must_use]
    pub const fn from_u8(number: u8) -> Option<Self> {
        match (number, Joint::from_number(number)) {
            (7, _) => Some(Self::All),
            (_, Some(joint)) => Some(Self::One(joint)),
            (_, None) => None,
        }
    }

    /// The protocol's number.
    #[must_use]
    pub const fn as_u8(self) -> u8 {
        match self {
            Self::One(joint) => joint.number(),
            Self::All => 7,
        }
    }
}

/// Whom a power order concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MotorSelect {
    /// One joint.
    One(Joint),
    /// All six joints (7). The vendor's comments disagree on 7; its code and every demo use it for all joints.
    Joints,
    /// All motors with the gripper (0xFF).
    Everything,
}

impl MotorSelect {
    /// From the protocol's number: 1..=6, 7, 0xFF.
    #[must_use]
    pub const fn from_u8(number: u8) -> Option<Self> {
        match (number, Joint::from_number(number)) {
            (7, _) => Some(Self::Joints),
            (0xFF, _) => Some(Self::Everything),
            (_, Some(joint)) => Some(Self::One(joint)),
            (_, None) => None,
        }
    }

    /// The protocol's number.
    #[must_use]
    pub const fn as_u8(self) -> u8 {
        match self {
            Self::One(joint) => joint.number(),
            Self::Joints => 7,
            Self::Everything => 0xFF,
        }
    }
}

/// A third of an end pose, as one frame carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PosePart {
    /// X, Y.
    Xy(Micrometres, Micrometres),
    /// Z and the rotation about the fixed X axis.
    ZRx(Micrometres, MilliDegrees),
    /// The rotations about the fixed Y and Z axes.
    RyRz(MilliDegrees, MilliDegrees),
}

impl PosePart {
    pub(super) const fn read(part: Pair, d: &[u8; 8]) -> Self {
        let (a, b) = i32_pair(d);
        match part {
            Pair::First => Self::Xy(Micrometres(a), Micrometres(b)),
            Pair::Second => Self::ZRx(Micrometres(a), MilliDegrees(b)),
            Pair::Third => Self::RyRz(MilliDegrees(a), MilliDegrees(b)),
        }
    }

    /// The frame, in a range of three identifiers starting at `first`.
    pub(super) const fn frame(self, first: u32) -> Frame {
        let (pair, a, b) = match self {
            Self::Xy(x, y) => (Pair::First, x.0, y.0),
            Self::ZRx(z, rx) => (Pair::Second, z.0, rx.0),
            Self::RyRz(ry, rz) => (Pair::Third, ry.0, rz.0),
        };
        Frame::new(pair.id(first), from_i32_pair(a, b))
    }
}

/// Which third of a triple of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pair {
    /// X Y, or J1 J2.
    First,
    /// Z RX, or J3 J4.
    Second,
    /// RY RZ, or J5 J6.
    Third,
}

impl Pair {
    pub(super) fn of_id(id: u32, first: u32) -> Option<Self> {
        match id.checked_sub(first)? {
            0 => Some(Self::First),
            1 => Some(Self::Second),
            2 => Some(Self::Third),
            _ => None,
        }
    }

    const fn id(self, first: u32) -> u32 {
        first.wrapping_add(match self {
            Self::First => 0,
            Self::Second => 1,
            Self::Third => 2,
        })
    }

    /// The two joints of this third.
    #[must_use]
    pub const fn joints(self) -> [Joint; 2] {
        match self {
            Self::First => [Joint::J1, Joint::J2],
            Self::Second => [Joint::J3, Joint::J4],
            Self::Third => [Joint::J5, Joint::J6],
        }
    }
}

/// Two joint angles, as one frame carries them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JointPart {
    /// Which two.
    pub pair: Pair,
    /// Their angles.
    pub angles: [MilliDegrees; 2],
}

impl JointPart {
    pub(super) const fn read(pair: Pair, d: &[u8; 8]) -> Self {
        let (a, b) = i32_pair(d);
        Self {
            pair,
            angles: [MilliDegrees(a), MilliDegrees(b)],
        }
    }

    /// The frame, in a range of three identifiers starting at `first`.
    pub(super) const fn frame(self, first: u32) -> Frame {
        let [a, b] = self.angles;
        Frame::new(self.pair.id(first), from_i32_pair(a.0, b.0))
    }

    /// The three parts of six angles.
    #[must_use]
    pub const fn split(angles: [MilliDegrees; 6]) -> [Self; 3] {
        let [a, b, c, d, e, f] = angles;
        [
            Self {
                pair: Pair::First,
                angles: [a, b],
            },
            Self {
                pair: Pair::Second,
                angles: [c, d],
            },
            Self {
                pair: Pair::Third,
                angles: [e, f],
            },
        ]
    }
}

/// The arm's six pose numbers: the J6 flange in base axes (X forward, Y left, Z up), R = Rz(rz) Ry(ry) Rx(rx).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndPose {
    /// Forward.
    pub x: Micrometres,
    /// Left.
    pub y: Micrometres,
    /// Up.
    pub z: Micrometres,
    /// About the fixed X axis.
    pub rx: MilliDegrees,
    /// About the fixed Y axis.
    pub ry: MilliDegrees,
    /// About the fixed Z axis.
    pub rz: MilliDegrees,
}

impl EndPose {
    /// From metres and radians, rounded to the nearest unit. All six or none.
    ///
    /// # Errors
    /// [`OutOfRange`] when a number is not finite or beyond 32 bits.
    pub fn from_si(xyz_m: [f64; 3], rxyz_rad: [f64; 3]) -> Result<Self, OutOfRange> {
        let length = |m| Micrometres::from_m(m).ok_or(OutOfRange(Field::Position));
        let angle = |rad| MilliDegrees::from_rad(rad).ok_or(OutOfRange(Field::Rotation));
        let ([x, y, z], [rx, ry, rz]) = (xyz_m, rxyz_rad);
        Ok(Self {
            x: length(x)?,
            y: length(y)?,
            z: length(z)?,
            rx: angle(rx)?,
            ry: angle(ry)?,
            rz: angle(rz)?,
        })
    }

    /// The three parts in the order they are sent.
    #[must_use]
    pub const fn parts(&self) -> [PosePart; 3] {
        [
            PosePart::Xy(self.x, self.y),
            PosePart::ZRx(self.z, self.rx),
            PosePart::RyRz(self.ry, self.rz),
        ]
    }

    /// Takes in one part. The caller knows when all three belong together.
    pub const fn set(&mut self, part: PosePart) {
        match part {
            PosePart::Xy(x, y) => (self.x, self.y) = (x, y),
            PosePart::ZRx(z, rx) => (self.z, self.rx) = (z, rx),
            PosePart::RyRz(ry, rz) => (self.ry, self.rz) = (ry, rz),
        }
    }

    /// The three command frames, 0x152 first: to be sent back to back, all or none.
    #[must_use]
    pub fn frames(&self) -> [Frame; 3] {
        self.parts().map(|part| part.frame(id::POSE))
    }

    /// The three feedback frames, as the arm sends them.
    #[must_use]
    pub fn feedback_frames(&self) -> [Frame; 3] {
        self.parts().map(|part| part.frame(id::POSE_STATE))
    }
}
