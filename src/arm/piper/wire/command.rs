//! [`Command`]: everything a host sends to the arm.

use crate::arm::frame::Frame;
use crate::units::{Micrometres, MilliDegrees};

use super::bytes::{exact, from_six, six};
use super::codes::{
    ArcPoint, ControlOrder, FollowOrder, GripperPower, Installation, LeaderHome, LimitQuery,
    MoveOrder, StopOrder, TeachOrder, TrajectoryOrder,
};
use super::config::{
    CpvOrder, CrashLevel, EndLimits, GripperParam, JointConfig, LimitSetting, LinkConfig,
    ParamOrder,
};
use super::firmware::is_query;
use super::{
    Field, Joint, JointPart, JointSelect, MitFrame, MotorSelect, OutOfRange, Pair, PosePart,
    Reject, id, marker, marker_byte,
};

/// 0x150.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MotionOrder {
    /// The arm's own stop, or its reset.
    pub stop: StopOrder,
    /// Trajectory order.
    pub trajectory: TrajectoryOrder,
    /// Drag teaching order.
    pub teach: TeachOrder,
    /// Trajectory point index; acknowledged by 0x476.
    pub point: u8,
    /// Index of the trajectory's name.
    pub name_index: u16,
    /// Checksum of the trajectory.
    pub crc16: u16,
}

impl MotionOrder {
    /// Nothing.
    pub const NONE: Self = Self {
        stop: StopOrder::None,
        trajectory: TrajectoryOrder::Off,
        teach: TeachOrder::Off,
        point: 0,
        name_index: 0,
        crc16: 0,
    };
    /// The arm's own stop: a damped sink.
    pub const DAMPED_STOP: Self = Self {
        stop: StopOrder::DampedStop,
        ..Self::NONE
    };
    /// The reset that leaves a stop. **The arm falls.** Never sent automatically.
    pub const RESET_DROPS_ARM: Self = Self {
        stop: StopOrder::ResetDropsArm,
        ..Self::NONE
    };

    const fn encode(&self) -> [u8; 8] {
        let ([a, b], [c, d]) = (self.name_index.to_be_bytes(), self.crc16.to_be_bytes());
        [
            self.stop.as_u8(),
            self.trajectory.as_u8(),
            self.teach.as_u8(),
            self.point,
            a,
            b,
            c,
            d,
        ]
    }

    fn decode(data: &[u8; 8]) -> Result<Self, Reject> {
        let [stop, trajectory, teach, point, a, b, c, d] = *data;
        Ok(Self {
            stop: StopOrder::from_u8(stop).ok_or(Reject::BadValue(Field::StopOrder))?,
            trajectory: TrajectoryOrder::from_u8(trajectory)
                .ok_or(Reject::BadValue(Field::Trajectory))?,
            teach: TeachOrder::from_u8(teach).ok_or(Reject::BadValue(Field::Teach))?,
            point,
            name_index: u16::from_be_bytes([a, b]),
            crc16: u16::from_be_bytes([c, d]),
        })
    }
}

/// 0x151.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ModeOrder {
    control: ControlOrder,
    movement: MoveOrder,
    speed_percent: u8,
    follow: FollowOrder,
    dwell_s: u8,
    installation: Installation,
}

impl ModeOrder {
    /// A mode; speed in percent, 0..=100.
    ///
    /// # Errors
    /// [`Field::SpeedPercent`] beyond 100.
    pub const fn new(
        control: ControlOrder,
        movement: MoveOrder,
        speed_percent: u8,
        follow: FollowOrder,
    ) -> Result<Self, OutOfRange> {
        if speed_percent > 100 {
            return Err(OutOfRange(Field::SpeedPercent));
        }
        Ok(Self {
            control,
            movement,
            speed_percent,
            follow,
            dwell_s: 0,
            installation: Installation::Keep,
        })
    }

    /// The mode of teleoperation by pose: CAN control, end pose point to point, planned by the arm.
    ///
    /// # Errors
    /// [`Field::SpeedPercent`] beyond 100.
    pub const fn pose(speed_percent: u8) -> Result<Self, OutOfRange> {
        let (can, p) = (ControlOrder::Can, MoveOrder::P);
        Self::new(can, p, speed_percent, FollowOrder::Planned)
    }

    /// With a dwell at a stored trajectory's point: 0..=254 s, 255 ends the trajectory.
    #[must_use]
    pub const fn with_dwell(mut self, dwell_s: u8) -> Self {
        self.dwell_s = dwell_s;
        self
    }

    /// With a way of mounting (firmware from S-V1.5-2).
    #[must_use]
    pub const fn with_installation(mut self, installation: Installation) -> Self {
        self.installation = installation;
        self
    }

    /// Who shall command.
    #[must_use]
    pub const fn control(&self) -> ControlOrder {
        self.control
    }

    /// How the arm shall move.
    #[must_use]
    pub const fn movement(&self) -> MoveOrder {
        self.movement
    }

    /// Speed in percent, 0..=100.
    #[must_use]
    pub const fn speed_percent(&self) -> u8 {
        self.speed_percent
    }

    /// Planned or direct.
    #[must_use]
    pub const fn follow(&self) -> FollowOrder {
        self.follow
    }

    /// Dwell, s.
    #[must_use]
    pub const fn dwell_s(&self) -> u8 {
        self.dwell_s
    }

    /// Mounting.
    #[must_use]
    pub const fn installation(&self) -> Installation {
        self.installation
    }

    const fn encode(&self) -> [u8; 8] {
        [
            self.control.as_u8(),
            self.movement.as_u8(),
            self.speed_percent,
            self.follow.as_u8(),
            self.dwell_s,
            self.installation.as_u8(),
            0,
            0,
        ]
    }

    fn decode(data: &[u8; 8]) -> Result<Self, Reject> {
        let [control, movement, speed, follow, dwell, installation, ..] = *data;
        let mode = Self::new(
            ControlOrder::from_u8(control).ok_or(Reject::BadValue(Field::Control))?,
            MoveOrder::from_u8(movement).ok_or(Reject::BadValue(Field::MoveMode))?,
            speed,
            FollowOrder::from_u8(follow).ok_or(Reject::BadValue(Field::Follow))?,
        )?;
        let installation =
            Installation::from_u8(installation).ok_or(Reject::BadValue(Field::Installation))?;
        Ok(mode.with_dwell(dwell).with_installation(installation))
    }
}

/// Most effort the gripper takes, 0.001 N.m.
const GRIPPER_EFFORT_MAX_MNM: u16 = 5000;

/// 0x159.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GripperOrder {
    stroke: Micrometres,
    effort_mnm: u16,
    power: GripperPower,
    set_zero: bool,
}

impl GripperOrder {
    /// Stroke (0 closed, 70 mm or 100 mm open), effort in 0.001 N.m 0..=5000, power. `set_zero` makes the present position the zero.
    ///
    /// # Errors
    /// [`Field::GripperEffort`] beyond 5000.
    pub const fn new(
        stroke: Micrometres,
        effort_mnm: u16,
        power: GripperPower,
        set_zero: bool,
    ) -> Result<Self, OutOfRange> {
        if effort_mnm > GRIPPER_EFFORT_MAX_MNM {
            return Err(OutOfRange(Field::GripperEffort));
        }
        Ok(Self {
            stroke,
            effort_mnm,
            power,
            set_zero,
        })
    }

    /// Opening.
    #[must_use]
    pub const fn stroke(&self) -> Micrometres {
        self.stroke
    }

    /// Effort, 0.001 N.m.
    #[must_use]
    pub const fn effort_mnm(&self) -> u16 {
        self.effort_mnm
    }

    /// Power.
    #[must_use]
    pub const fn power(&self) -> GripperPower {
        self.power
    }

    /// Whether the present position becomes the zero.
    #[must_use]
    pub const fn set_zero(&self) -> bool {
        self.set_zero
    }

    const fn encode(&self) -> [u8; 8] {
        let ([a, b, c, d], [e, f]) = (self.stroke.0.to_be_bytes(), self.effort_mnm.to_be_bytes());
        [
            a,
            b,
            c,
            d,
            e,
            f,
            self.power.as_u8(),
            marker_byte(self.set_zero),
        ]
    }

    fn decode(data: &[u8; 8]) -> Result<Self, Reject> {
        let [a, b, c, d, e, f, power, zero] = *data;
        Ok(Self::new(
            Micrometres(i32::from_be_bytes([a, b, c, d])),
            u16::from_be_bytes([e, f]),
            GripperPower::from_u8(power).ok_or(Reject::BadValue(Field::GripperPower))?,
            marker(zero).map_err(|_| Reject::BadValue(Field::GripperZero))?,
        )?)
    }
}

/// What a host can say to the arm, one frame each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// 0x150: stop, trajectory, teach.
    Motion(MotionOrder),
    /// 0x151: mode.
    Mode(ModeOrder),
    /// 0x152..=0x154: a third of a pose target; see [`super::EndPose::frames`].
    Pose(PosePart),
    /// 0x155..=0x157: a third of a joint target; see [`joint_frames`](Command::joint_frames).
    Joints(JointPart),
    /// 0x158: which arc point the last pose was.
    Arc(ArcPoint),
    /// 0x159: gripper.
    Gripper(GripperOrder),
    /// 0x15A..=0x15F: MIT of one joint. The firmware decides the layout of the bytes.
    Mit(Joint, MitFrame),
    /// 0x181..=0x186: register access.
    Cpv(Joint, CpvOrder),
    /// 0x191: leader home.
    LeaderHome(LeaderHome),
    /// 0x470: leader, follower, offsets.
    Link(LinkConfig),
    /// 0x471: motor power. Off makes the arm **fall at once**.
    Power {
        /// Whom.
        motors: MotorSelect,
        /// On or off.
        on: bool,
    },
    /// 0x472: limit query.
    QueryLimits(JointSelect, LimitQuery),
    /// 0x474: limit setting.
    SetLimits(LimitSetting),
    /// 0x475: joint configuration.
    JointConfig(JointConfig),
    /// 0x477: parameter query and reset.
    Param(ParamOrder),
    /// 0x479: tip limits.
    SetEndLimits(EndLimits),
    /// 0x47A: crash levels, J1 to J6.
    SetCrashLevels([CrashLevel; 6]),
    /// 0x487: assistance ratings, J1 to J6. No range is documented.
    SetAssistance([u8; 6]),
    /// 0x47D: gripper parameters.
    SetGripperParam(GripperParam),
    /// 0x4AF: firmware query.
    QueryFirmware,
}

impl Command {
    /// The three frames of a joint target, 0x155 first: to be sent back to back, all or none.
    #[must_use]
    pub fn joint_frames(angles: [MilliDegrees; 6]) -> [Frame; 3] {
        JointPart::split(angles).map(|part| part.frame(id::JOINTS))
    }

    /// The frame.
    #[must_use]
    pub fn encode(&self) -> Frame {
        match self {
            Self::Motion(order) => Frame::new(id::MOTION, order.encode()),
            Self::Mode(order) => Frame::new(id::MODE, order.encode()),
            Self::Pose(part) => part.frame(id::POSE),
            Self::Joints(part) => part.frame(id::JOINTS),
            Self::Arc(point) => head(id::ARC, [point.as_u8(), 0, 0]),
            Self::Gripper(order) => Frame::new(id::GRIPPER, order.encode()),
            Self::Mit(joint, frame) => Frame::new(joint.id(id::MIT), frame.0),
            Self::Cpv(joint, order) => Frame::short(joint.id(id::CPV), order.encode()),
            Self::LeaderHome(what) => head(
                id::LEADER_HOME,
                match what {
                    LeaderHome::Restore => [1, 0, 0],
                    LeaderHome::Leader => [1, 1, 1],
                    LeaderHome::Both => [1, 0, 1],
                },
            ),
            Self::Link(config) => Frame::new(id::LINK, config.encode()),
            Self::Power { motors, on } => {
                head(id::POWER, [motors.as_u8(), if *on { 2 } else { 1 }, 0])
            }
            Self::QueryLimits(joints, what) => {
                head(id::QUERY_LIMITS, [joints.as_u8(), what.as_u8(), 0])
            }
            Self::SetLimits(setting) => Frame::new(id::SET_LIMITS, setting.encode()),
            Self::JointConfig(config) => Frame::new(id::JOINT_CONFIG, config.encode()),
            Self::Param(order) => Frame::new(id::PARAM, order.encode()),
            Self::SetEndLimits(limits) => Frame::new(id::SET_END_LIMITS, limits.encode()),
            Self::SetCrashLevels(levels) => {
                Frame::new(id::SET_CRASH, from_six(levels.map(CrashLevel::get)))
            }
            Self::SetAssistance(ratings) => Frame::new(id::SET_ASSISTANCE, from_six(*ratings)),
            Self::SetGripperParam(param) => Frame::new(id::SET_GRIPPER_PARAM, param.encode()),
            Self::QueryFirmware => head(id::FIRMWARE, [1, 0, 0]),
        }
    }

    /// A command from the bus, as the emulator and a listener see it.
    ///
    /// # Errors
    /// [`Reject`]: an identifier that no host uses, a wrong length, or a value that [`Self::encode`] would not have made.
    pub fn decode(id: u32, data: &[u8]) -> Result<Self, Reject> {
        match id {
            0x150..=0x15F => Self::decode_motion(id, data),
            id::FIRMWARE if data == [1] => Ok(Self::QueryFirmware),
            _ => Self::decode_config(id, data),
        }
    }

    fn decode_motion(id: u32, data: &[u8]) -> Result<Self, Reject> {
        let d = exact(data)?;
        if let Some(pair) = Pair::of_id(id, id::POSE) {
            return Ok(Self::Pose(PosePart::read(pair, d)));
        }
        if let Some(pair) = Pair::of_id(id, id::JOINTS) {
            return Ok(Self::Joints(JointPart::read(pair, d)));
        }
        if let Some(joint) = Joint::of_id(id, id::MIT) {
            return Ok(Self::Mit(joint, MitFrame(*d)));
        }
        let [first, ..] = *d;
        match id {
            id::MOTION => MotionOrder::decode(d).map(Self::Motion),
            id::MODE => ModeOrder::decode(d).map(Self::Mode),
            id::ARC => ArcPoint::from_u8(first)
                .map(Self::Arc)
                .ok_or(Reject::BadValue(Field::ArcPoint)),
            id::GRIPPER => GripperOrder::decode(d).map(Self::Gripper),
            _ => Err(Reject::UnknownId),
        }
    }

    fn decode_config(id: u32, data: &[u8]) -> Result<Self, Reject> {
        if let Some(joint) = Joint::of_id(id, id::CPV) {
            return Ok(Self::Cpv(joint, CpvOrder::decode(exact(data)?)?));
        }
        match id {
            id::LEADER_HOME => leader_home(exact(data)?).map(Self::LeaderHome),
            id::LINK => LinkConfig::decode(exact(data)?).map(Self::Link),
            id::POWER => power(exact(data)?),
            id::QUERY_LIMITS => query_limits(exact(data)?),
            id::SET_LIMITS => LimitSetting::decode(exact(data)?).map(Self::SetLimits),
            id::JOINT_CONFIG => JointConfig::decode(exact(data)?).map(Self::JointConfig),
            id::PARAM => ParamOrder::decode(exact(data)?).map(Self::Param),
            id::SET_END_LIMITS => Ok(Self::SetEndLimits(EndLimits::decode(exact(data)?))),
            id::SET_CRASH => crash_levels(exact(data)?).map(Self::SetCrashLevels),
            id::SET_ASSISTANCE => Ok(Self::SetAssistance(six(exact(data)?))),
            id::SET_GRIPPER_PARAM => GripperParam::decode(exact(data)?).map(Self::SetGripperParam),
            id::FIRMWARE if is_query(exact(data)?) => Ok(Self::QueryFirmware),
            id::FIRMWARE => Err(Reject::OtherDirection),
            _ => Err(Reject::UnknownId),
        }
    }
}

/// A frame whose first three bytes say everything.
const fn head(id: u32, [a, b, c]: [u8; 3]) -> Frame {
    Frame::new(id, [a, b, c, 0, 0, 0, 0, 0])
}

fn leader_home(data: &[u8; 8]) -> Result<LeaderHome, Reject> {
    match *data {
        [1, 0, 0, ..] => Ok(LeaderHome::Restore),
        [1, 1, 1, ..] => Ok(LeaderHome::Leader),
        [1, 0, 1, ..] => Ok(LeaderHome::Both),
        _ => Err(Reject::BadValue(Field::LeaderHome)),
    }
}

fn power(data: &[u8; 8]) -> Result<Command, Reject> {
    let [motors, flag, ..] = *data;
    Ok(Command::Power {
        motors: MotorSelect::from_u8(motors).ok_or(Reject::BadValue(Field::Motor))?,
        on: match flag {
            1 => false,
            2 => true,
            _ => return Err(Reject::BadValue(Field::PowerFlag)),
        },
    })
}

fn query_limits(data: &[u8; 8]) -> Result<Command, Reject> {
    let [joints, what, ..] = *data;
    Ok(Command::QueryLimits(
        JointSelect::from_u8(joints).ok_or(Reject::BadValue(Field::JointNumber))?,
        LimitQuery::from_u8(what).ok_or(Reject::BadValue(Field::Query))?,
    ))
}

fn crash_levels(data: &[u8; 8]) -> Result<[CrashLevel; 6], Reject> {
    let mut levels = [CrashLevel::default(); 6];
    for (level, byte) in levels.iter_mut().zip(data) {
        *level = CrashLevel::new(*byte)?;
    }
    Ok(levels)
}
