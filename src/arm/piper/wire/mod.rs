//! Bytes of the Piper's CAN protocol, both directions, pure: no clock, no I/O, no heap, no panic.
//!
//! [`Command`] is what a host sends, [`Feedback`] what the arm sends; each encodes and decodes, so that the driver, the emulator and
//! `telearm decode` share one codec. Values are built through checked constructors, so encoding cannot fail: what the arm would
//! misread cannot be expressed, and the refusal has a name ([`OutOfRange`]).
//!
//! Classic CAN, 11-bit identifiers, 1 Mbit/s, eight bytes a frame (registers 0x181..=0x186: seven). **Big-endian** two's complement.
//!
//! | command | bytes |
//! |---|---|
//! | 0x150 | b0 stop, b1 trajectory, b2 teach, b3 point, b4-5 name index, b6-7 crc16 |
//! | 0x151 | b0 control, b1 move mode, b2 speed %, b3 follow (0x00, 0xAD, 0xFF), b4 dwell s, b5 installation |
//! | 0x152 0x153 0x154 | X Y · Z RX · RY RZ: two i32 each, 0.001 mm, 0.001 deg |
//! | 0x155 0x156 0x157 | J1 J2 · J3 J4 · J5 J6: two i32 each, 0.001 deg |
//! | 0x158 | b0 arc point |
//! | 0x159 | b0-3 i32 stroke 0.001 mm, b4-5 u16 effort 0.001 N.m, b6 power, b7 0xAE set zero |
//! | 0x15A..0x15F | MIT of one joint: [`MitFrame`] |
//! | 0x181..0x186 | b0 'w' 'r', b1-2 register, b3-6 i32 |
//! | 0x191 | leader home |
//! | 0x470 | b0 role, b1 feedback offset, b2 command offset, b3 linkage offset |
//! | 0x471 | b0 motor (1-6, 7 all joints, 0xFF all), b1 1 off 2 on |
//! | 0x472 | b0 joint (7 all), b1 1 angle and speed, 2 acceleration |
//! | 0x474 | b0 joint, b1-2 i16 max 0.1 deg, b3-4 i16 min, b5-6 u16 speed **0.01 rad/s**; 0x7FFF keep |
//! | 0x475 | b0 joint (7 all), b1 0xAE set zero, b2 0xAE acceleration counts, b3-4 u16 0.01 rad/s2, b5 0xAE clear error |
//! | 0x477 | b0 query, b1 reset, b2 periodic 0x48x, b3 0xAE payload counts, b4 payload |
//! | 0x479 | four u16: 0.001 m/s, rad/s, m/s2, rad/s2; 0x7FFF keep |
//! | 0x47A 0x487 | b0-5 crash level, assistance rating |
//! | 0x47D | b0 stroke percent, b1 range mm, b2 friction |
//! | 0x4AF | b0 1: firmware query |
//!
//! | feedback | bytes |
//! |---|---|
//! | 0x2A1 | b0 control, b1 status, b2 move mode, b3 teach, b4 motion, b5 point, b6 beyond angle limit, b7 joint silent (bits 0-5) |
//! | 0x2A2-0x2A4, 0x2A5-0x2A7 | as 0x152-0x154, 0x155-0x157 |
//! | 0x2A8 | i32 stroke, i16 effort, b6 flags |
//! | 0x2AA-0x2AC | the arm's own joint solution after a move P (firmware from S-V1.8-8) |
//! | 0x251-0x256 | i16 0.001 rad/s, i16 0.001 A, i32 0.001 rad |
//! | 0x261-0x266 | u16 0.1 V, i16 driver degC, i8 motor degC, flags, u16 0.001 A |
//! | 0x473 0x47C 0x476 0x478 0x47B 0x47E 0x488 | answers to 0x472, configuration, 0x477 |
//! | 0x481-0x486 | four u16 as 0x478, when switched on |
//! | 0x4AF | eleven blocks of eight characters: [`FirmwareText`] |

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::arithmetic_side_effects
)]

mod bytes;
mod codes;
mod command;
mod config;
mod feedback;
mod firmware;
mod mit;
mod parts;
#[cfg(test)]
mod tests;

pub use codes::{
    ArcPoint, ArmStatus, ControlMode, ControlOrder, CpvAccess, DriverFlags, FollowOrder,
    GripperFlags, GripperPower, IdOffset, Installation, LeaderHome, LimitQuery, LinkRole,
    MotionState, MoveMode, MoveOrder, ParamQuery, ParamReset, Payload, PeriodicCode, StopOrder,
    StrokeRange, TeachOrder, TeachState, TrajectoryOrder,
};
pub use command::{Command, GripperOrder, ModeOrder, MotionOrder};
pub use config::{
    CpvOrder, CpvRegister, CrashLevel, EndLimits, GripperParam, JointAcceleration, JointConfig,
    JointSpeed, LimitAngle, LimitSetting, LinkConfig, ParamOrder,
};
pub use feedback::{
    ConfigAck, DriverState, Feedback, GripperFeedback, GripperParamState, JointLimits, MotorState,
    Status,
};
pub use firmware::{FIRMWARE_BLOCKS, FirmwareText, FirmwareVersion};
pub use mit::{MitFrame, MitLayout, MitSetpoint};
pub use parts::{EndPose, Joint, JointPart, JointSelect, JointSet, MotorSelect, Pair, PosePart};

/// Identifiers with one meaning each. Ranges of six (joints) give their first.
pub mod id {
    /// Stop, trajectory, teach.
    pub const MOTION: u32 = 0x150;
    /// Mode.
    pub const MODE: u32 = 0x151;
    /// First of three pose targets.
    pub const POSE: u32 = 0x152;
    /// First of three joint targets.
    pub const JOINTS: u32 = 0x155;
    /// Arc point.
    pub const ARC: u32 = 0x158;
    /// Gripper target.
    pub const GRIPPER: u32 = 0x159;
    /// First of six MIT commands.
    pub const MIT: u32 = 0x15A;
    /// First of six register accesses, both directions.
    pub const CPV: u32 = 0x181;
    /// Leader home.
    pub const LEADER_HOME: u32 = 0x191;
    /// First of six fast motor states.
    pub const MOTOR: u32 = 0x251;
    /// First of six driver states.
    pub const DRIVER: u32 = 0x261;
    /// Arm status.
    pub const STATUS: u32 = 0x2A1;
    /// First of three measured pose parts.
    pub const POSE_STATE: u32 = 0x2A2;
    /// First of three measured joint pairs.
    pub const JOINT_STATE: u32 = 0x2A5;
    /// Measured gripper.
    pub const GRIPPER_STATE: u32 = 0x2A8;
    /// First of three joint pairs of the arm's own inverse kinematics.
    pub const IK_STATE: u32 = 0x2AA;
    /// Leader, follower, offsets.
    pub const LINK: u32 = 0x470;
    /// Motor power.
    pub const POWER: u32 = 0x471;
    /// Limit query.
    pub const QUERY_LIMITS: u32 = 0x472;
    /// Angle and speed limits, answer.
    pub const LIMITS: u32 = 0x473;
    /// Angle and speed limits, setting. Writes the driver's flash.
    pub const SET_LIMITS: u32 = 0x474;
    /// Joint configuration.
    pub const JOINT_CONFIG: u32 = 0x475;
    /// Acknowledgement.
    pub const ACK: u32 = 0x476;
    /// Parameter query and reset.
    pub const PARAM: u32 = 0x477;
    /// Tip limits, answer.
    pub const END_LIMITS: u32 = 0x478;
    /// Tip limits, setting.
    pub const SET_END_LIMITS: u32 = 0x479;
    /// Crash levels, setting.
    pub const SET_CRASH: u32 = 0x47A;
    /// Crash levels, answer.
    pub const CRASH: u32 = 0x47B;
    /// Acceleration limit, answer.
    pub const ACCELERATION: u32 = 0x47C;
    /// Gripper parameters, setting.
    pub const SET_GRIPPER_PARAM: u32 = 0x47D;
    /// Gripper parameters, answer.
    pub const GRIPPER_PARAM: u32 = 0x47E;
    /// First of six joint tip velocities.
    pub const LINK_MOTION: u32 = 0x481;
    /// Assistance ratings, setting.
    pub const SET_ASSISTANCE: u32 = 0x487;
    /// Assistance ratings, answer.
    pub const ASSISTANCE: u32 = 0x488;
    /// Firmware query and answer.
    pub const FIRMWARE: u32 = 0x4AF;
}

/// A value's place in the protocol, for errors and counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(
    missing_docs,
    reason = "each variant is the protocol's own word for one field"
)]
pub enum Field {
    Position,
    Rotation,
    JointAngle,
    JointNumber,
    StopOrder,
    Trajectory,
    Teach,
    Control,
    MoveMode,
    SpeedPercent,
    Follow,
    Installation,
    ArcPoint,
    GripperStroke,
    GripperEffort,
    GripperPower,
    GripperZero,
    MitPosition,
    MitVelocity,
    MitKp,
    MitKd,
    MitTorque,
    CpvAccess,
    CpvRegister,
    LeaderHome,
    LinkRole,
    IdOffset,
    Motor,
    PowerFlag,
    Query,
    LimitAngle,
    LimitSpeed,
    Acceleration,
    Marker,
    Reset,
    Periodic,
    Payload,
    CrashLevel,
    StrokePercent,
    StrokeRange,
    Friction,
}

/// A value that the protocol cannot carry or the arm would misread. Nothing was encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{0:?} is out of range for the Piper's bus")]
pub struct OutOfRange(pub Field);

/// Why a frame was refused. Counted by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Reject {
    /// An identifier that this direction of the protocol does not have; offset identifiers (0x2Bx) included.
    #[error("unknown identifier")]
    UnknownId,
    /// Not the length that the frame always has.
    #[error("wrong length")]
    Length,
    /// A measurement no Piper can have; a broken or foreign frame.
    #[error("implausible {0:?}")]
    Implausible(Field),
    /// A code outside the protocol's list.
    #[error("undefined value of {0:?}")]
    BadValue(Field),
    /// The identifier is used in both directions and this was the other one (an echoed query).
    #[error("frame of the other direction")]
    OtherDirection,
    /// The checksum nibble of an old-layout MIT frame does not fit.
    #[error("checksum")]
    Checksum,
}

impl From<OutOfRange> for Reject {
    fn from(error: OutOfRange) -> Self {
        Self::BadValue(error.0)
    }
}

/// The marker byte that makes a flag-like byte count.
pub const MARKER: u8 = 0xAE;

/// 0x00 or [`MARKER`]; anything else is undefined.
const fn marker(byte: u8) -> Result<bool, Reject> {
    match byte {
        0 => Ok(false),
        MARKER => Ok(true),
        _ => Err(Reject::BadValue(Field::Marker)),
    }
}

/// The byte of a marker.
const fn marker_byte(set: bool) -> u8 {
    if set { MARKER } else { 0 }
}
