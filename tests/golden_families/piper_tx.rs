//! `piper_tx.jsonl`: calls of the vendor's SDK and the frames it sent, one line a frame.
//!
//! Each call is made on our typed API instead; every frame must be the same. Where the SDK raised, ours must refuse the whole call,
//! frames that the SDK had already sent included. Where the SDK let a bad value out, ours must refuse it by name. Where the SDK
//! clamped silently (`iface: "limited"`), our limits must call the value out and the clamped value must encode to the same bytes.

use serde_json::Value;
use telearm::arm::frame::Frame;
use telearm::arm::piper::model::JOINT_RANGES;
use telearm::arm::piper::wire::{
    ArcPoint, Command, ControlOrder, CrashLevel, EndLimits, EndPose, Field, FollowOrder,
    GripperOrder, GripperParam, GripperPower, IdOffset, Installation, Joint, JointAcceleration,
    JointConfig, JointSelect, JointSpeed, LeaderHome, LimitAngle, LimitQuery, LimitSetting,
    LinkConfig, LinkRole, MARKER, MitLayout, MitSetpoint, ModeOrder, MotionOrder, MotorSelect,
    MoveOrder, OutOfRange, ParamOrder, ParamQuery, ParamReset, Payload, PeriodicCode, StopOrder,
    StrokeRange, TeachOrder, TrajectoryOrder,
};
use telearm::units::{Micrometres, MilliDegrees, round_i32};

use crate::Outcome;
use crate::rctp::unhex;

/// Why our API did not take a call.
#[derive(Debug, PartialEq)]
enum Refusal {
    /// The value has no place in our types: a float or a number too large for the field, a code that is not in the protocol.
    Inexpressible(String),
    /// A constructor refused it by name.
    ByName(Field),
    /// There is no such call.
    NoSuchCall,
}

impl From<OutOfRange> for Refusal {
    fn from(error: OutOfRange) -> Self {
        Self::ByName(error.0)
    }
}

type Made<T> = Result<T, Refusal>;

fn inexpressible<T>(what: &str) -> Made<T> {
    Err(Refusal::Inexpressible(what.to_owned()))
}

/// The arguments of a call, with the SDK's default for each that is missing.
struct Args<'a>(&'a [Value]);

impl Args<'_> {
    fn whole(&self, i: usize, default: i64) -> Made<i64> {
        match self.0.get(i) {
            None => Ok(default),
            Some(value) => match value.as_i64() {
                Some(whole) => Ok(whole),
                None => inexpressible(&format!("{value} where the protocol has whole numbers")),
            },
        }
    }

    fn narrow<T: TryFrom<i64>>(&self, i: usize, default: i64) -> Made<T> {
        let whole = self.whole(i, default)?;
        match T::try_from(whole) {
            Ok(narrow) => Ok(narrow),
            Err(_) => inexpressible(&format!("{whole} does not fit the field")),
        }
    }

    fn byte(&self, i: usize, default: u8) -> Made<u8> {
        self.narrow(i, i64::from(default))
    }

    /// A code that must be in the protocol's list.
    fn code<T>(&self, i: usize, default: u8, from: fn(u8) -> Option<T>) -> Made<T> {
        let byte = self.byte(i, default)?;
        match from(byte) {
            Some(code) => Ok(code),
            None => inexpressible(&format!("code {byte} is not in the protocol")),
        }
    }

    fn marker(&self, i: usize) -> Made<bool> {
        self.code(i, 0, |byte| match byte {
            0 => Some(false),
            MARKER => Some(true),
            _ => None,
        })
    }

    fn real(&self, i: usize) -> Made<f64> {
        match self.0.get(i).and_then(Value::as_f64) {
            Some(real) => Ok(real),
            None => inexpressible("a number is missing"),
        }
    }

    fn six(&self) -> Made<[i64; 6]> {
        let mut six = [0; 6];
        for (i, slot) in six.iter_mut().enumerate() {
            *slot = self.whole(i, 0)?;
        }
        Ok(six)
    }
}

fn one(command: Command) -> Vec<Frame> {
    vec![command.encode()]
}

fn end_pose(args: &Args) -> Made<Vec<Frame>> {
    let six = args.six()?;
    let narrow = six.map(i32::try_from);
    if let [Ok(x), Ok(y), Ok(z), Ok(rx), Ok(ry), Ok(rz)] = narrow {
        let ([x, y, z], [rx, ry, rz]) =
            ([x, y, z].map(Micrometres), [rx, ry, rz].map(MilliDegrees));
        return Ok(EndPose {
            x,
            y,
            z,
            rx,
            ry,
            rz,
        }
        .frames()
        .to_vec());
    }
    // Beyond 32 bits the only way in is metres and radians, and that must refuse.
    let [x, y, z, rx, ry, rz] = six.map(|v| v as f64);
    let metres = [x, y, z].map(|um| um * 1e-6);
    let radians = [rx, ry, rz].map(|mdeg| (mdeg * 1e-3).to_radians());
    Ok(EndPose::from_si(metres, radians)?.frames().to_vec())
}

fn joints(six: [i64; 6]) -> Made<Vec<Frame>> {
    let mut angles = [MilliDegrees(0); 6];
    for (slot, mdeg) in angles.iter_mut().zip(six) {
        let Some(angle) = MilliDegrees::from_rad((mdeg as f64 * 1e-3).to_radians()) else {
            return Err(Refusal::ByName(Field::JointAngle));
        };
        *slot = angle;
    }
    Ok(Command::joint_frames(angles).to_vec())
}

fn gripper(args: &Args, stroke: i64) -> Made<Vec<Frame>> {
    let Ok(stroke) = i32::try_from(stroke) else {
        return inexpressible("a stroke beyond 32 bits");
    };
    let effort = args.narrow(1, 0)?;
    let power = args.code(2, 0, GripperPower::from_u8)?;
    let order = GripperOrder::new(Micrometres(stroke), effort, power, args.marker(3)?)?;
    Ok(one(Command::Gripper(order)))
}

fn motion(args: &Args) -> Made<Vec<Frame>> {
    Ok(one(Command::Motion(MotionOrder {
        stop: args.code(0, 0, StopOrder::from_u8)?,
        trajectory: args.code(1, 0, TrajectoryOrder::from_u8)?,
        teach: args.code(2, 0, TeachOrder::from_u8)?,
        ..MotionOrder::NONE
    })))
}

fn mode(args: &Args) -> Made<Vec<Frame>> {
    let mode = ModeOrder::new(
        args.code(0, 1, ControlOrder::from_u8)?,
        args.code(1, 1, MoveOrder::from_u8)?,
        args.byte(2, 50)?,
        args.code(3, 0, FollowOrder::from_u8)?,
    )?;
    let mode = mode.with_dwell(args.byte(4, 0)?);
    let mode = mode.with_installation(args.code(5, 0, Installation::from_u8)?);
    Ok(one(Command::Mode(mode)))
}

fn power(args: &Args, flag: u8) -> Made<Vec<Frame>> {
    Ok(one(Command::Power {
        motors: args.code(0, 7, MotorSelect::from_u8)?,
        on: args.code(1, flag, |byte| match byte {
            1 => Some(false),
            2 => Some(true),
            _ => None,
        })?,
    }))
}

fn query_all(what: LimitQuery) -> Vec<Frame> {
    let query = |joint| Command::QueryLimits(JointSelect::One(joint), what).encode();
    Joint::ALL.map(query).to_vec()
}

fn set_limits(joint: Joint, max: i16, min: i16, speed: u16) -> Made<Vec<Frame>> {
    Ok(one(Command::SetLimits(LimitSetting {
        joint,
        max: LimitAngle::from_decidegrees(max)?,
        min: LimitAngle::from_decidegrees(min)?,
        speed: JointSpeed::from_raw(speed)?,
    })))
}

fn param(args: &Args) -> Made<Vec<Frame>> {
    Ok(one(Command::Param(ParamOrder {
        query: args.code(0, 0, ParamQuery::from_u8)?,
        reset: args.code(1, 0, ParamReset::from_u8)?,
        periodic: args.code(2, 0, PeriodicCode::from_u8)?,
        apply_payload: args.marker(3)?,
        payload: args.code(4, 3, Payload::from_u8)?,
    })))
}

fn crash_levels(args: &Args) -> Made<Vec<Frame>> {
    let mut levels = [CrashLevel::default(); 6];
    for (i, level) in levels.iter_mut().enumerate() {
        *level = CrashLevel::new(args.byte(i, 0)?)?;
    }
    Ok(one(Command::SetCrashLevels(levels)))
}

fn mit(args: &Args, layout: MitLayout) -> Made<Vec<Frame>> {
    let joint = args.code(0, 0, Joint::from_number)?;
    let setpoint = MitSetpoint {
        position_rad: args.real(1)?,
        velocity_rad_s: args.real(2)?,
        kp: args.real(3)?,
        kd: args.real(4)?,
        torque_nm: args.real(5)?,
    };
    Ok(one(Command::Mit(joint, setpoint.pack(layout)?)))
}

fn joint_config(
    joints: JointSelect,
    apply: bool,
    raw: u16,
    zero: bool,
    clear: bool,
) -> Made<Vec<Frame>> {
    Ok(one(Command::JointConfig(JointConfig {
        joints,
        set_zero: zero,
        apply_acceleration: apply,
        acceleration: JointAcceleration::from_raw(raw)?,
        clear_error: clear,
    })))
}

/// The call on our API.
fn ours(call: &str, args: &Args) -> Made<Vec<Frame>> {
    match call {
        "EndPoseCtrl" => end_pose(args),
        "JointCtrl" => joints(args.six()?),
        "GripperCtrl" => gripper(args, args.whole(0, 0)?),
        "MotionCtrl_1" | "EmergencyStop" => motion(args),
        "ResetPiper" => Ok(one(Command::Motion(MotionOrder::RESET_DROPS_ARM))),
        "MotionCtrl_2" | "ModeCtrl" => mode(args),
        "EnableArm" => power(args, 2),
        "DisableArm" => power(args, 1),
        "EnablePiper" => power(&Args(&[]), 2),
        "DisablePiper" => power(&Args(&[]), 1),
        "MoveCAxisUpdateCtrl" => Ok(one(Command::Arc(args.code(0, 0, ArcPoint::from_u8)?))),
        "MasterSlaveConfig" => Ok(one(Command::Link(LinkConfig {
            role: args.code(0, 0, LinkRole::from_u8)?,
            feedback: args.code(1, 0, IdOffset::from_u8)?,
            command: args.code(2, 0, IdOffset::from_u8)?,
            linkage: args.code(3, 0, IdOffset::from_u8)?,
        }))),
        "ReqMasterArmMoveToHome" => {
            let home = args.code(0, 0, LeaderHome::from_u8)?;
            Ok(one(Command::LeaderHome(home)))
        }
        "JointMitCtrl" => mit(args, MitLayout::Torque8),
        _ => ours_config(call, args),
    }
}

fn ours_config(call: &str, args: &Args) -> Made<Vec<Frame>> {
    let limits = || query_all(LimitQuery::AngleAndSpeed);
    let accelerations = || query_all(LimitQuery::Acceleration);
    match call {
        "SearchMotorMaxAngleSpdAccLimit" => Ok(one(Command::QueryLimits(
            args.code(0, 1, JointSelect::from_u8)?,
            args.code(1, 1, LimitQuery::from_u8)?,
        ))),
        "SearchAllMotorMaxAngleSpd" => Ok(limits()),
        "SearchAllMotorMaxAccLimit" => Ok(accelerations()),
        "SearchPiperFirmwareVersion" => Ok(one(Command::QueryFirmware)),
        "PiperInit" => Ok([limits(), accelerations(), one(Command::QueryFirmware)].concat()),
        "MotorAngleLimitMaxSpdSet" => {
            let joint = args.code(0, 1, Joint::from_number)?;
            let (max, min) = (args.narrow(1, 0x7FFF)?, args.narrow(2, 0x7FFF)?);
            set_limits(joint, max, min, args.narrow(3, 0x7FFF)?)
        }
        "MotorMaxSpdSet" => {
            let joint = args.code(0, 6, Joint::from_number)?;
            set_limits(joint, 0x7FFF, 0x7FFF, args.narrow(1, 3000)?)
        }
        "JointConfig" => {
            let joints = args.code(0, 7, JointSelect::from_u8)?;
            let (zero, apply) = (args.marker(1)?, args.marker(2)?);
            joint_config(joints, apply, args.narrow(3, 500)?, zero, args.marker(4)?)
        }
        "JointMaxAccConfig" => {
            let joints = args.code(0, 6, JointSelect::from_u8)?;
            joint_config(joints, true, args.narrow(1, 500)?, false, false)
        }
        "ArmParamEnquiryAndConfig" => param(args),
        "EndSpdAndAccParamSet" => Ok(one(Command::SetEndLimits(EndLimits {
            linear_velocity_mm_s: args.narrow(0, 0)?,
            angular_velocity_mrad_s: args.narrow(1, 0)?,
            linear_acceleration_mm_s2: args.narrow(2, 0)?,
            angular_acceleration_mrad_s2: args.narrow(3, 0)?,
        }))),
        "CrashProtectionConfig" => crash_levels(args),
        "GripperTeachingPendantParamConfig" => {
            let range = args.code(1, 70, StrokeRange::from_u8)?;
            let param = GripperParam::new(args.byte(0, 100)?, range, args.byte(2, 1)?)?;
            Ok(one(Command::SetGripperParam(param)))
        }
        _ => Err(Refusal::NoSuchCall),
    }
}

/// Most the SDK's soft limit lets a 70 mm gripper open, 0.001 mm.
const SDK_STROKE_MAX: i64 = 70_000;

/// What `iface: "limited"` makes of a call before it sends it: the arguments clamped, and whether anything was clamped.
fn clamped_by_sdk(call: &str, args: &Args) -> Option<(Made<Vec<Frame>>, bool)> {
    match call {
        "JointCtrl" => {
            let six = args.six().ok()?;
            let clamped = clamp_joints(six);
            Some((joints(clamped), clamped != six))
        }
        "GripperCtrl" => {
            let stroke = args.whole(0, 0).ok()?;
            let clamped = stroke.clamp(0, SDK_STROKE_MAX);
            Some((gripper(args, clamped), clamped != stroke))
        }
        _ => None,
    }
}

/// Joint angles in 0.001 deg, clamped to the vendor's soft limits, which are ours: rad, rounded to the bus unit.
pub(crate) fn clamp_joints(mut six: [i64; 6]) -> [i64; 6] {
    for (mdeg, range) in six.iter_mut().zip(JOINT_RANGES) {
        *mdeg = clamp_joint(*mdeg, range.lower, range.upper);
    }
    six
}

pub(crate) fn clamp_joint(mdeg: i64, lower_rad: f64, upper_rad: f64) -> i64 {
    let limit = |rad: f64| i64::from(round_i32(rad.to_degrees() * 1e3).expect("a limit"));
    mdeg.clamp(limit(lower_rad), limit(upper_rad))
}

/// Does one of the limits call this joint vector out?
fn beyond_our_limits(args: &Args) -> bool {
    args.six().is_ok_and(|six| {
        let outside = |(mdeg, range): (i64, telearm::kinematics::JointRange)| {
            !range.contains((mdeg as f64 * 1e-3).to_radians())
        };
        six.into_iter().zip(JOINT_RANGES).any(outside)
    })
}

/// The frame of this line, as the file gives it.
fn expected(case: &Value) -> Result<(usize, usize, Frame), String> {
    let whole = |key: &str| {
        case[key]
            .as_u64()
            .map(|n| n as usize)
            .ok_or(format!("no {key}"))
    };
    let id = case["can_id"]
        .as_str()
        .and_then(|id| u32::from_str_radix(id.trim_start_matches("0x"), 16).ok());
    let data = case["data"].as_str().map(unhex);
    match (id, data) {
        (Some(id), Some(data)) => {
            let frame = Frame::from_slice(id, &data).ok_or("more than eight bytes")?;
            Ok((whole("frame")?, whole("n_frames")?, frame))
        }
        other => Err(format!("no frame in the line: {other:?}")),
    }
}

fn same_frame(case: &Value, frames: &[Frame]) -> Result<(), String> {
    let (i, n, frame) = expected(case)?;
    if frames.len() != n || frames.get(i) != Some(&frame) {
        return Err(format!(
            "expected frame {i} of {n} {frame:?}, ours {frames:?}"
        ));
    }
    // What was sent reads back as a command, so that a listener and the emulator understand it.
    Command::decode(frame.id, frame.payload())
        .map(|_| ())
        .map_err(|why| format!("{frame:?} does not decode: {why:?}"))
}

/// The first MIT value outside the protocol's range, by the protocol's table.
fn mit_fault(args: &Args) -> Option<Field> {
    let table = [
        (1, 12.5, -12.5, Field::MitPosition),
        (2, 45.0, -45.0, Field::MitVelocity),
        (3, 500.0, 0.0, Field::MitKp),
        (4, 5.0, -5.0, Field::MitKd),
        (5, 8.0, -8.0, Field::MitTorque),
    ];
    let outside = |&(i, high, low, _): &(usize, f64, f64, Field)| {
        args.real(i)
            .is_ok_and(|value| !(low..=high).contains(&value))
    };
    table.into_iter().find(outside).map(|(.., field)| field)
}

/// Values that the SDK sends although the protocol has no meaning for them.
fn sdk_lets_through(call: &str, args: &Args) -> Option<(Refusal, &'static str)> {
    let any = |range: std::ops::Range<usize>, bad: &dyn Fn(i64) -> bool| {
        range.into_iter().any(|i| args.whole(i, 0).is_ok_and(bad))
    };
    match call {
        "JointMitCtrl" => Some((
            Refusal::ByName(mit_fault(args)?),
            "the SDK wraps a MIT value beyond its range to the far end, ours refuses it by name",
        )),
        "CrashProtectionConfig" if any(0..6, &|level| level > 8) => Some((
            Refusal::ByName(Field::CrashLevel),
            "the SDK sends any crash level, ours refuses beyond 8",
        )),
        "MotorAngleLimitMaxSpdSet" if any(1..3, &|v| v.abs() > 3600 && v != 0x7FFF) => Some((
            Refusal::ByName(Field::LimitAngle),
            "the SDK sends any angle limit, ours refuses beyond a full turn",
        )),
        _ => None,
    }
}

/// What the protocol gained after this SDK, so that the SDK raises where ours encodes.
fn newer_than_sdk(call: &str, args: &Args) -> bool {
    match call {
        "MotionCtrl_2" | "ModeCtrl" => matches!(args.whole(1, 1), Ok(6 | 0xFF)),
        "ArmParamEnquiryAndConfig" => matches!(args.whole(0, 0), Ok(5)),
        _ => false,
    }
}

fn judge(case: &Value) -> Result<Option<&'static str>, String> {
    let call = case["call"].as_str().ok_or("no call")?;
    let args = Args(case["args"].as_array().ok_or("no args")?);
    let made = ours(call, &args);
    if !case["error"].is_null() {
        return match made {
            Err(Refusal::Inexpressible(_)) => {
                Ok(Some("the SDK raised, our types cannot even say it"))
            }
            Err(Refusal::ByName(_)) => {
                Ok(Some("the SDK raised, ours refuses the whole call by name"))
            }
            Err(Refusal::NoSuchCall) if case["can_id"].is_null() => {
                Ok(Some("a call that sends nothing"))
            }
            Ok(frames) if newer_than_sdk(call, &args) && frames.len() == 1 => {
                Ok(Some("newer in the protocol than this SDK, which raised"))
            }
            other => Err(format!(
                "the SDK raised {}, ours made {other:?}",
                case["error"]
            )),
        };
    }
    if let Some((refusal, rule)) = sdk_lets_through(call, &args) {
        return match made {
            Err(why) if why == refusal => Ok(Some(rule)),
            other => Err(format!("ours must refuse as {refusal:?}, made {other:?}")),
        };
    }
    if case["iface"] == "limited"
        && let Some((clamped, true)) = clamped_by_sdk(call, &args)
    {
        if call == "JointCtrl" && !beyond_our_limits(&args) {
            return Err("the SDK clamped what our limits let pass".into());
        }
        let frames = clamped.map_err(|why| format!("the clamped call: {why:?}"))?;
        same_frame(case, &frames)?;
        return Ok(Some("the SDK clamps silently, our limits call it out"));
    }
    match made {
        Ok(frames) => same_frame(case, &frames).map(|()| None),
        Err(Refusal::Inexpressible(why))
            if call == "ReqMasterArmMoveToHome" && case["data"] == "" =>
        {
            Ok((!why.is_empty()).then_some("the SDK sends an empty frame for an unknown code"))
        }
        Err(why) => Err(format!("ours refuses: {why:?}")),
    }
}

/// One line of `piper_tx.jsonl`.
pub(crate) fn check(case: &Value) -> Outcome {
    match judge(case) {
        Ok(None) => Outcome::Same,
        Ok(Some(rule)) => Outcome::ByRule(rule),
        Err(why) => Outcome::Failed(why),
    }
}
