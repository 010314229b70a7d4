//! [`Feedback`]: everything the arm sends.

use crate::arm::frame::Frame;
use crate::units::{Micrometres, MilliDegrees};

use super::bytes::{exact, from_six, six};
use super::codes::{
    ArmStatus, ControlMode, DriverFlags, GripperFlags, MotionState, MoveMode, TeachState,
};
use super::config::{CpvRegister, EndLimits, cpv_answer, cpv_answer_bytes, joint};
use super::firmware::is_query;
use super::{Field, Joint, JointPart, JointSet, Pair, PosePart, Reject, id};

/// Beyond this no Piper's flange can be.
const POSITION_MAX_UM: u32 = 1_000_000;
/// Beyond this no Euler angle of the arm goes.
const ROTATION_MAX_MDEG: u32 = 361_000;
/// Beyond this no joint turns. The vendor's filter says 300 deg in its comment and tests 3000 deg in its code.
const JOINT_MAX_MDEG: u32 = 300_000;
/// Beyond this no gripper opens.
const STROKE_MAX_UM: u32 = 150_000;

/// 0x2A1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status {
    /// Who commands.
    pub control: ControlMode,
    /// How the arm is.
    pub status: ArmStatus,
    /// How it moves.
    pub movement: MoveMode,
    /// Drag teaching.
    pub teach: TeachState,
    /// Target reached?
    pub motion: MotionState,
    /// Point of a stored trajectory.
    pub trajectory_point: u8,
    /// Joints beyond their angle limit.
    pub beyond_limit: JointSet,
    /// Joints that do not answer.
    pub silent: JointSet,
}

impl Status {
    const fn decode(data: &[u8; 8]) -> Self {
        let [
            control,
            status,
            movement,
            teach,
            motion,
            point,
            beyond,
            silent,
        ] = *data;
        Self {
            control: ControlMode::from_u8(control),
            status: ArmStatus::from_u8(status),
            movement: MoveMode::from_u8(movement),
            teach: TeachState::from_u8(teach),
            motion: MotionState::from_u8(motion),
            trajectory_point: point,
            beyond_limit: JointSet(beyond),
            silent: JointSet(silent),
        }
    }

    const fn encode(&self) -> [u8; 8] {
        [
            self.control.as_u8(),
            self.status.as_u8(),
            self.movement.as_u8(),
            self.teach.as_u8(),
            self.motion.as_u8(),
            self.trajectory_point,
            self.beyond_limit.0,
            self.silent.0,
        ]
    }
}

/// 0x2A8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GripperFeedback {
    /// Opening; a closed gripper may read a little below zero.
    pub stroke: Micrometres,
    /// Effort, 0.001 N.m.
    pub effort_mnm: i16,
    /// State bits.
    pub flags: GripperFlags,
}

impl GripperFeedback {
    fn decode(data: &[u8; 8]) -> Result<Self, Reject> {
        let [a, b, c, d, e, f, flags, _] = *data;
        let stroke = i32::from_be_bytes([a, b, c, d]);
        within(stroke, STROKE_MAX_UM, Field::GripperStroke)?;
        Ok(Self {
            stroke: Micrometres(stroke),
            effort_mnm: i16::from_be_bytes([e, f]),
            flags: GripperFlags(flags),
        })
    }

    const fn encode(&self) -> [u8; 8] {
        let ([a, b, c, d], [e, f]) = (self.stroke.0.to_be_bytes(), self.effort_mnm.to_be_bytes());
        [a, b, c, d, e, f, self.flags.0, 0]
    }
}

/// 0x251..=0x256, 200 Hz.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MotorState {
    /// Speed, 0.001 rad/s.
    pub speed_mrad_s: i16,
    /// Current, 0.001 A.
    pub current_ma: i16,
    /// Position, 0.001 rad (one vendor source says rad).
    pub position_mrad: i32,
}

impl MotorState {
    /// Joint torque from the current, N.m. Firmware up to S-V1.8-2 counts four times as much on J1..=J3; `fourfold` says so.
    #[must_use]
    pub fn torque_nm(&self, joint: Joint, fourfold: bool) -> f64 {
        let base = joint <= Joint::J3;
        let nm_per_a = if base { 1.181_25 } else { 0.958_44 };
        let factor = if base && fourfold { 4.0 } else { 1.0 };
        f64::from(self.current_ma) * 1e-3 * nm_per_a * factor
    }

    const fn decode(data: &[u8; 8]) -> Self {
        let [a, b, c, d, e, f, g, h] = *data;
        Self {
            speed_mrad_s: i16::from_be_bytes([a, b]),
            current_ma: i16::from_be_bytes([c, d]),
            position_mrad: i32::from_be_bytes([e, f, g, h]),
        }
    }

    const fn encode(&self) -> [u8; 8] {
        let ([a, b], [c, d]) = (
            self.speed_mrad_s.to_be_bytes(),
            self.current_ma.to_be_bytes(),
        );
        let [e, f, g, h] = self.position_mrad.to_be_bytes();
        [a, b, c, d, e, f, g, h]
    }
}

/// 0x261..=0x266, 40 Hz: so the enable bit is up to 25 ms old.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DriverState {
    /// Bus voltage, 0.1 V.
    pub bus_decivolt: u16,
    /// Driver temperature, deg C.
    pub driver_temp_c: i16,
    /// Motor temperature, deg C.
    pub motor_temp_c: i8,
    /// State bits.
    pub flags: DriverFlags,
    /// Bus current, 0.001 A.
    pub bus_current_ma: u16,
}

impl DriverState {
    const fn decode(data: &[u8; 8]) -> Self {
        let [a, b, c, d, motor, flags, g, h] = *data;
        Self {
            bus_decivolt: u16::from_be_bytes([a, b]),
            driver_temp_c: i16::from_be_bytes([c, d]),
            motor_temp_c: motor.cast_signed(),
            flags: DriverFlags(flags),
            bus_current_ma: u16::from_be_bytes([g, h]),
        }
    }

    const fn encode(&self) -> [u8; 8] {
        let ([a, b], [c, d]) = (
            self.bus_decivolt.to_be_bytes(),
            self.driver_temp_c.to_be_bytes(),
        );
        let [g, h] = self.bus_current_ma.to_be_bytes();
        let motor = self.motor_temp_c.cast_unsigned();
        [a, b, c, d, motor, self.flags.0, g, h]
    }
}

/// 0x473: the limits in a driver's flash. They apply to pose targets too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JointLimits {
    /// Which joint.
    pub joint: Joint,
    /// Upper angle, 0.1 deg.
    pub max_decideg: i16,
    /// Lower angle, 0.1 deg.
    pub min_decideg: i16,
    /// Speed, **0.01 rad/s**.
    pub speed_crad_s: u16,
}

impl JointLimits {
    /// Lower and upper angle, rad.
    #[must_use]
    pub fn range_rad(&self) -> [f64; 2] {
        [self.min_decideg, self.max_decideg].map(|d| (f64::from(d) * 0.1).to_radians())
    }

    /// Speed, rad/s.
    #[must_use]
    pub fn speed_rad_s(&self) -> f64 {
        f64::from(self.speed_crad_s) * 0.01
    }

    fn decode(data: &[u8; 8]) -> Result<Self, Reject> {
        let [n, a, b, c, d, e, f, _] = *data;
        Ok(Self {
            joint: joint(n)?,
            max_decideg: i16::from_be_bytes([a, b]),
            min_decideg: i16::from_be_bytes([c, d]),
            speed_crad_s: u16::from_be_bytes([e, f]),
        })
    }

    const fn encode(&self) -> [u8; 8] {
        let ([a, b], [c, d]) = (
            self.max_decideg.to_be_bytes(),
            self.min_decideg.to_be_bytes(),
        );
        let [e, f] = self.speed_crad_s.to_be_bytes();
        [self.joint.number(), a, b, c, d, e, f, 0]
    }
}

/// 0x476: a configuration frame was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConfigAck {
    /// Low byte of the identifier acknowledged (0x71, 0x74, 0x75, 0x77 …), or 0x50 for a trajectory point.
    pub of: u8,
    /// 1: the zero was set.
    pub zero_code: u8,
    /// Trajectory point.
    pub point: u8,
}

impl ConfigAck {
    /// The zero was set.
    #[must_use]
    pub const fn zero_set(&self) -> bool {
        self.zero_code == 1
    }
}

/// 0x47E: gripper and teach parameters, as the arm has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GripperParamState {
    /// Stroke, percent.
    pub stroke_percent: u8,
    /// Full stroke, mm. **0: never set, the gripper neither moves nor reports.**
    pub range_mm: u8,
    /// Teach friction.
    pub friction: u8,
}

/// What the arm can say, one frame each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feedback {
    /// 0x2A1.
    Status(Status),
    /// 0x2A2..=0x2A4: a third of the measured pose. Complete or discarded: the driver's rule.
    Pose(PosePart),
    /// 0x2A5..=0x2A7: two measured joints.
    Joints(JointPart),
    /// 0x2A8.
    Gripper(GripperFeedback),
    /// 0x2AA..=0x2AC: two joints of the arm's own solution of a pose target (layout presumed from 0x2A5).
    IkJoints(JointPart),
    /// 0x251..=0x256.
    Motor(Joint, MotorState),
    /// 0x261..=0x266.
    Driver(Joint, DriverState),
    /// 0x473.
    Limits(JointLimits),
    /// 0x47C: acceleration limit, 0.01 rad/s².
    Acceleration(Joint, u16),
    /// 0x476.
    Ack(ConfigAck),
    /// 0x478.
    EndLimits(EndLimits),
    /// 0x47B: crash levels as the arm has them, J1 to J6.
    CrashLevels([u8; 6]),
    /// 0x47E.
    GripperParam(GripperParamState),
    /// 0x481..=0x486.
    LinkMotion(Joint, EndLimits),
    /// 0x488: assistance ratings, J1 to J6.
    Assistance([u8; 6]),
    /// 0x181..=0x186: answer to a register access.
    Cpv(Joint, CpvRegister, i32),
    /// 0x4AF: a block of the firmware text, for [`super::FirmwareText`].
    Firmware([u8; 8]),
}

/// A measurement must lie within what a Piper can do at all.
fn within(value: i32, max: u32, field: Field) -> Result<(), Reject> {
    if value.unsigned_abs() > max {
        return Err(Reject::Implausible(field));
    }
    Ok(())
}

fn plausible_pose(part: PosePart) -> Result<PosePart, Reject> {
    let position = |um: Micrometres| within(um.0, POSITION_MAX_UM, Field::Position);
    let rotation = |mdeg: MilliDegrees| within(mdeg.0, ROTATION_MAX_MDEG, Field::Rotation);
    match part {
        PosePart::Xy(x, y) => position(x).and_then(|()| position(y))?,
        PosePart::ZRx(z, rx) => position(z).and_then(|()| rotation(rx))?,
        PosePart::RyRz(ry, rz) => rotation(ry).and_then(|()| rotation(rz))?,
    }
    Ok(part)
}

fn plausible_joints(part: JointPart) -> Result<JointPart, Reject> {
    for angle in part.angles {
        within(angle.0, JOINT_MAX_MDEG, Field::JointAngle)?;
    }
    Ok(part)
}

impl Feedback {
    /// A frame from the arm.
    ///
    /// # Errors
    /// [`Reject`]: an identifier the arm does not use, a wrong length, a measurement no Piper can have. Nothing is clamped.
    pub fn decode(id: u32, data: &[u8]) -> Result<Self, Reject> {
        match id {
            0x250..=0x2FF => Self::decode_cyclic(id, data),
            _ => Self::decode_answer(id, data),
        }
    }

    fn decode_cyclic(id: u32, data: &[u8]) -> Result<Self, Reject> {
        if id == id::STATUS {
            return Ok(Self::Status(Status::decode(exact(data)?)));
        }
        if let Some(pair) = Pair::of_id(id, id::POSE_STATE) {
            return plausible_pose(PosePart::read(pair, exact(data)?)).map(Self::Pose);
        }
        if let Some(pair) = Pair::of_id(id, id::JOINT_STATE) {
            return plausible_joints(JointPart::read(pair, exact(data)?)).map(Self::Joints);
        }
        if let Some(pair) = Pair::of_id(id, id::IK_STATE) {
            return plausible_joints(JointPart::read(pair, exact(data)?)).map(Self::IkJoints);
        }
        if let Some(joint) = Joint::of_id(id, id::MOTOR) {
            return Ok(Self::Motor(joint, MotorState::decode(exact(data)?)));
        }
        if let Some(joint) = Joint::of_id(id, id::DRIVER) {
            return Ok(Self::Driver(joint, DriverState::decode(exact(data)?)));
        }
        match id {
            id::GRIPPER_STATE => GripperFeedback::decode(exact(data)?).map(Self::Gripper),
            _ => Err(Reject::UnknownId),
        }
    }

    fn decode_answer(id: u32, data: &[u8]) -> Result<Self, Reject> {
        if let Some(joint) = Joint::of_id(id, id::CPV) {
            let (register, value) = cpv_answer(exact(data)?)?;
            return Ok(Self::Cpv(joint, register, value));
        }
        if let Some(joint) = Joint::of_id(id, id::LINK_MOTION) {
            return Ok(Self::LinkMotion(joint, EndLimits::decode(exact(data)?)));
        }
        match id {
            id::LIMITS => JointLimits::decode(exact(data)?).map(Self::Limits),
            id::ACCELERATION => {
                let [n, a, b, ..] = *exact::<8>(data)?;
                Ok(Self::Acceleration(joint(n)?, u16::from_be_bytes([a, b])))
            }
            id::ACK => {
                let [of, zero_code, point, ..] = *exact::<8>(data)?;
                Ok(Self::Ack(ConfigAck {
                    of,
                    zero_code,
                    point,
                }))
            }
            id::END_LIMITS => Ok(Self::EndLimits(EndLimits::decode(exact(data)?))),
            id::CRASH => Ok(Self::CrashLevels(six(exact(data)?))),
            id::GRIPPER_PARAM => {
                let [stroke_percent, range_mm, friction, ..] = *exact::<8>(data)?;
                Ok(Self::GripperParam(GripperParamState {
                    stroke_percent,
                    range_mm,
                    friction,
                }))
            }
            id::ASSISTANCE => Ok(Self::Assistance(six(exact(data)?))),
            id::FIRMWARE if data == [1] => Err(Reject::OtherDirection),
            id::FIRMWARE => match exact(data)? {
                block if is_query(block) => Err(Reject::OtherDirection),
                block => Ok(Self::Firmware(*block)),
            },
            _ => Err(Reject::UnknownId),
        }
    }

    /// The frame, as the emulated arm sends it.
    #[must_use]
    pub fn encode(&self) -> Frame {
        match self {
            Self::Status(status) => Frame::new(id::STATUS, status.encode()),
            Self::Pose(part) => part.frame(id::POSE_STATE),
            Self::Joints(part) => part.frame(id::JOINT_STATE),
            Self::IkJoints(part) => part.frame(id::IK_STATE),
            Self::Gripper(gripper) => Frame::new(id::GRIPPER_STATE, gripper.encode()),
            Self::Motor(joint, motor) => Frame::new(joint.id(id::MOTOR), motor.encode()),
            Self::Driver(joint, driver) => Frame::new(joint.id(id::DRIVER), driver.encode()),
            Self::Limits(limits) => Frame::new(id::LIMITS, limits.encode()),
            Self::Acceleration(joint, raw) => {
                let [a, b] = raw.to_be_bytes();
                Frame::new(id::ACCELERATION, [joint.number(), a, b, 0, 0, 0, 0, 0])
            }
            Self::Ack(ack) => {
                Frame::new(id::ACK, [ack.of, ack.zero_code, ack.point, 0, 0, 0, 0, 0])
            }
            Self::EndLimits(limits) => Frame::new(id::END_LIMITS, limits.encode()),
            Self::CrashLevels(levels) => Frame::new(id::CRASH, from_six(*levels)),
            Self::GripperParam(p) => {
                let (percent, mm, friction) = (p.stroke_percent, p.range_mm, p.friction);
                Frame::new(id::GRIPPER_PARAM, [percent, mm, friction, 0, 0, 0, 0, 0])
            }
            Self::LinkMotion(joint, v) => Frame::new(joint.id(id::LINK_MOTION), v.encode()),
            Self::Assistance(ratings) => Frame::new(id::ASSISTANCE, from_six(*ratings)),
            Self::Cpv(joint, register, value) => {
                Frame::short(joint.id(id::CPV), cpv_answer_bytes(*register, *value))
            }
            Self::Firmware(block) => Frame::new(id::FIRMWARE, *block),
        }
    }
}
