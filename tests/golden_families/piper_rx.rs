//! `piper_rx.jsonl`: frames from the bus and what the vendor's SDK made of them, in its field names.
//!
//! The SDK keeps its last values when it drops a frame, so a dropped frame shows values of an earlier line. It clamps measurements
//! (`iface: "limited"`), decodes short frames as small numbers, keeps eight characters of a firmware version, and maps codes it does
//! not know to 255. None of that is ours; each is a rule below.

use serde_json::{Value, json};
use telearm::arm::piper::model::JOINT_RANGES;
use telearm::arm::piper::wire::{
    ArmStatus, Command, ControlMode, DriverFlags, EndLimits, Feedback, Field, FirmwareText,
    GripperFlags, Joint, JointPart, MotionState, MoveMode, Pair, PosePart, Reject, Status,
    TeachState,
};

use crate::piper_tx::clamp_joint;
use crate::rctp::unhex;
use crate::{Check, Outcome};

type Judged = Result<Option<&'static str>, String>;

/// The frame of a line.
struct Received {
    id: u32,
    data: Vec<u8>,
    limited: bool,
}

impl Received {
    fn from(case: &Value) -> Option<Self> {
        let id = case["can_id"].as_str()?.trim_start_matches("0x");
        Some(Self {
            id: u32::from_str_radix(id, 16).ok()?,
            data: unhex(case["data"].as_str()?),
            limited: case["iface"] == "limited",
        })
    }

    /// The two 32-bit numbers of the frame.
    fn pair(&self) -> [i64; 2] {
        let word = |at: usize| i32::from_be_bytes(self.data[at..at + 4].try_into().expect("4"));
        [word(0), word(4)].map(i64::from)
    }
}

/// A code as the SDK would report it: unknown ones as 255 (and our own kept the byte).
fn code(raw: u8, known: bool) -> u8 {
    if known { raw } else { 255 }
}

fn status(case: &Value, got: &Status) -> Judged {
    let decoded = &case["decoded"];
    // Mode 6 is MIT on newer firmware; the SDK does not know it.
    let newer = got.movement == MoveMode::Mit;
    let known_move = !newer && !matches!(got.movement, MoveMode::Unknown(_));
    let known_control = !matches!(got.control, ControlMode::Unknown(_));
    let known_teach = !matches!(got.teach, TeachState::Unknown(_));
    let known_motion = !matches!(got.motion, MotionState::Unknown(_));
    let known_status = !matches!(got.status, ArmStatus::Unknown(_));
    let bits =
        |set: telearm::arm::piper::wire::JointSet| Joint::ALL.map(|joint| set.has(joint)).to_vec();
    let mut expected = json!({
        "ctrl_mode": code(got.control.as_u8(), known_control),
        "arm_status": code(got.status.as_u8(), known_status),
        "mode_feed": code(got.movement.as_u8(), known_move),
        "teach_status": code(got.teach.as_u8(), known_teach),
        "motion_status": code(got.motion.as_u8(), known_motion),
        "trajectory_num": got.trajectory_point,
        "err_code": u16::from_be_bytes([got.beyond_limit.0, got.silent.0]),
        "angle_limit": bits(got.beyond_limit),
        "comm_err": bits(got.silent),
    });
    expected["names"] = decoded["names"].clone();
    if &expected != decoded {
        return Err(format!("ours {expected}, the SDK {decoded}"));
    }
    status_names(&decoded["names"], got)?;
    let all_known = known_control && known_status && known_teach && known_motion;
    Ok(match (newer, known_move && all_known) {
        (true, _) => Some("move mode 6 is MIT here, unknown to the SDK"),
        (false, true) => None,
        (false, false) => Some("an unknown code is kept here, 255 in the SDK"),
    })
}

/// The SDK's names, matched to our variants: a swapped pair of variants would pass by number.
fn status_names(names: &Value, got: &Status) -> Result<(), String> {
    let control = match got.control {
        ControlMode::Standby => "STANDBY",
        ControlMode::Can => "CAN_CTRL",
        ControlMode::Teach => "TEACHING_MODE",
        ControlMode::Ethernet => "ETHERNET_CONTROL_MODE",
        ControlMode::Wifi => "WIFI_CONTROL_MODE",
        ControlMode::Remote => "REMOTE_CONTROL_MODE",
        ControlMode::Leader => "LINKAGE_TEACHING_INPUT_MODE",
        ControlMode::Offline => "OFFLINE_TRAJECTORY_MODE",
        ControlMode::Unknown(_) => "UNKNOWN",
    };
    let movement = match got.movement {
        MoveMode::P => "MOVE_P",
        MoveMode::J => "MOVE_J",
        MoveMode::L => "MOVE_L",
        MoveMode::C => "MOVE_C",
        MoveMode::M => "MOVE_M",
        MoveMode::Cpv => "MOVE_CPV",
        MoveMode::Mit | MoveMode::Unknown(_) => "UNKNOWN",
    };
    let motion = match got.motion {
        MotionState::Reached => "REACH_TARGET_POS_SUCCESSFULLY",
        MotionState::NotReached => "REACH_TARGET_POS_FAILED",
        MotionState::Unknown(_) => "UNKNOWN",
    };
    let teach = match got.teach {
        TeachState::Off => "DISABLED",
        TeachState::Record => "START_RECORDING",
        TeachState::RecordEnd => "STOP_RECORDING",
        TeachState::Replay => "EXECUTE_TRAJECTORY",
        TeachState::Pause => "PAUSE_EXECUTION",
        TeachState::Continue => "RESUME_EXECUTION",
        TeachState::Abort => "TERMINATE_EXECUTION",
        TeachState::ToStart => "MOVE_TO_START",
        TeachState::Unknown(_) => "UNKNOWN",
    };
    let ours = json!({
        "ctrl_mode": control,
        "arm_status": status_name(got.status),
        "mode_feed": movement,
        "teach_status": teach,
        "motion_status": motion,
    });
    if &ours != names {
        return Err(format!("names: ours {ours}, the SDK {names}"));
    }
    Ok(())
}

fn status_name(status: ArmStatus) -> &'static str {
    match status {
        ArmStatus::Normal => "NORMAL",
        ArmStatus::Stopped => "EMERGENCY_STOP",
        ArmStatus::NoSolution => "NO_SOLUTION",
        ArmStatus::Singular => "SINGULARITY_POINT",
        ArmStatus::TargetBeyondLimit => "TARGET_POS_EXCEEDS_LIMIT",
        ArmStatus::JointCommunication => "JOINT_COMMUNICATION_ERR",
        ArmStatus::BrakeNotReleased => "JOINT_BRAKE_NOT_RELEASED",
        ArmStatus::Collision => "COLLISION_OCCURRED",
        ArmStatus::DragOverspeed => "OVERSPEED_DURING_TEACHING_DRAG",
        ArmStatus::JointFault => "JOINT_STATUS_ERR",
        ArmStatus::Other => "OTHER_ERR",
        ArmStatus::Recording => "TEACHING_RECORD",
        ArmStatus::Replaying => "TEACHING_EXECUTION",
        ArmStatus::Paused => "TEACHING_PAUSE",
        ArmStatus::ControllerHot => "MAIN_CONTROLLER_NTC_OVER_TEMPERATURE",
        ArmStatus::BrakeResistorHot => "RELEASE_RESISTOR_NTC_OVER_TEMPERATURE",
        ArmStatus::Unknown(_) => "UNKNOWN",
    }
}

fn equal(ours: &Value, decoded: &Value) -> Judged {
    if ours == decoded {
        Ok(None)
    } else {
        Err(format!("ours {ours}, the SDK {decoded}"))
    }
}

fn pose(part: &PosePart) -> Value {
    match part {
        PosePart::Xy(x, y) => json!({"X_axis": x.0, "Y_axis": y.0}),
        PosePart::ZRx(z, rx) => json!({"Z_axis": z.0, "RX_axis": rx.0}),
        PosePart::RyRz(ry, rz) => json!({"RY_axis": ry.0, "RZ_axis": rz.0}),
    }
}

fn joint_pair(pair: Pair, values: [i64; 2]) -> Value {
    let mut object = json!({});
    for (joint, value) in pair.joints().into_iter().zip(values) {
        object[format!("joint_{}", joint.number())] = json!(value);
    }
    object
}

fn clamped_pair(pair: Pair, values: [i64; 2]) -> [i64; 2] {
    let [a, b] = pair.joints().map(|joint| JOINT_RANGES[joint.index()]);
    let [v, w] = values;
    [
        clamp_joint(v, a.lower, a.upper),
        clamp_joint(w, b.lower, b.upper),
    ]
}

const CLAMPED: &str = "the SDK clamps what was measured, ours reports it";

fn joints(frame: &Received, part: &JointPart, decoded: &Value) -> Judged {
    let values = part.angles.map(|angle| i64::from(angle.0));
    let clamped = clamped_pair(part.pair, values);
    if frame.limited && clamped != values {
        return equal(&joint_pair(part.pair, clamped), decoded).map(|_| Some(CLAMPED));
    }
    equal(&joint_pair(part.pair, values), decoded)
}

fn gripper_flags(flags: GripperFlags) -> Value {
    json!({
        "voltage_too_low": flags.undervoltage(),
        "motor_overheating": flags.motor_hot(),
        "driver_overcurrent": flags.overcurrent(),
        "driver_overheating": flags.driver_hot(),
        "sensor_status": flags.sensor_fault(),
        "driver_error_status": flags.driver_error(),
        "driver_enable_status": flags.enabled(),
        "homing_status": flags.homed(),
    })
}

fn driver_flags(flags: DriverFlags) -> Value {
    json!({
        "voltage_too_low": flags.undervoltage(),
        "motor_overheating": flags.motor_hot(),
        "driver_overcurrent": flags.overcurrent(),
        "driver_overheating": flags.driver_hot(),
        "collision_status": flags.collision(),
        "driver_error_status": flags.driver_error(),
        "driver_enable_status": flags.enabled(),
        "stall_status": flags.stalled(),
    })
}

fn end_limits(limits: &EndLimits) -> Value {
    json!({
        "end_max_linear_vel": limits.linear_velocity_mm_s,
        "end_max_angular_vel": limits.angular_velocity_mrad_s,
        "end_max_linear_acc": limits.linear_acceleration_mm_s2,
        "end_max_angular_acc": limits.angular_acceleration_mrad_s2,
    })
}

/// Torque is computed, everything else is copied: so it is compared as a number.
fn motor(
    joint: Joint,
    motor: &telearm::arm::piper::wire::MotorState,
    id: u32,
    decoded: &Value,
) -> Judged {
    let effort = decoded["effort"].as_f64().ok_or("no effort")?;
    let ours = motor.torque_nm(joint, false) * 1e3;
    if (ours - effort).abs() > 1e-9 * effort.abs().max(1.0) {
        return Err(format!("torque {ours}, the SDK {effort}"));
    }
    let value = json!({
        "can_id": id,
        "motor_speed": motor.speed_mrad_s,
        "current": motor.current_ma,
        "pos": motor.position_mrad,
        "effort": decoded["effort"],
    });
    equal(&value, decoded)
}

fn feedback(frame: &Received, got: &Feedback, case: &Value) -> Judged {
    let decoded = &case["decoded"];
    match got {
        Feedback::Status(got) => status(case, got),
        Feedback::Pose(part) => equal(&pose(part), decoded),
        Feedback::Joints(part) if part.angles.iter().any(|a| a.0.abs() > 300_000) => {
            Err(format!("ours believed impossible joints: {part:?}"))
        }
        Feedback::Joints(part) => joints(frame, part, decoded),
        Feedback::Gripper(got) => {
            let raw = i64::from(got.stroke.0);
            let shown = if frame.limited {
                raw.clamp(0, 70_000)
            } else {
                raw
            };
            let ours = json!({
                "grippers_angle": shown,
                "grippers_effort": got.effort_mnm,
                "status_code": got.flags.0,
                "foc_status": gripper_flags(got.flags),
            });
            equal(&ours, decoded).map(|_| (shown != raw).then_some(CLAMPED))
        }
        Feedback::Motor(joint, got) => motor(*joint, got, frame.id, decoded),
        Feedback::Driver(_, got) => equal(
            &json!({
                "can_id": frame.id,
                "vol": got.bus_decivolt,
                "foc_temp": got.driver_temp_c,
                "motor_temp": got.motor_temp_c,
                "foc_status_code": got.flags.0,
                "bus_current": got.bus_current_ma,
                "foc_status": driver_flags(got.flags),
            }),
            decoded,
        ),
        _ => answer(got, decoded),
    }
}

fn answer(got: &Feedback, decoded: &Value) -> Judged {
    let ours = match got {
        Feedback::Limits(limits) => json!({
            "motor_num": limits.joint.number(),
            "max_angle_limit": limits.max_decideg,
            "min_angle_limit": limits.min_decideg,
            "max_joint_spd": limits.speed_crad_s,
        }),
        Feedback::Acceleration(joint, raw) => {
            json!({"joint_motor_num": joint.number(), "max_joint_acc": raw})
        }
        Feedback::Ack(ack) => {
            json!({"instruction_index": ack.of, "is_set_zero_successfully": ack.zero_code})
        }
        Feedback::EndLimits(limits) => end_limits(limits),
        Feedback::CrashLevels(levels) => {
            let mut object = json!({});
            for (joint, level) in Joint::ALL.into_iter().zip(levels) {
                object[format!("joint_{}_protection_level", joint.number())] = json!(level);
            }
            object
        }
        Feedback::GripperParam(param) => json!({
            "teaching_range_per": param.stroke_percent,
            "max_range_config": param.range_mm,
            "teaching_friction": param.friction,
        }),
        other if decoded.is_null() => {
            return Ok(Some(match other {
                Feedback::IkJoints(_)
                | Feedback::LinkMotion(..)
                | Feedback::Assistance(_)
                | Feedback::Cpv(..) => "an identifier that the SDK does not read",
                _ => return Err(format!("the SDK ignores it, ours is {other:?}")),
            }));
        }
        other => return Err(format!("no reader for {other:?}")),
    };
    equal(&ours, decoded)
}

/// A leader arm's commands, seen on the bus.
fn command(frame: &Received, case: &Value) -> Judged {
    let decoded = &case["decoded"];
    match Command::decode(frame.id, &frame.data) {
        Ok(Command::Mode(mode)) => equal(
            &json!({
                "ctrl_mode": mode.control().as_u8(),
                "move_mode": mode.movement().as_u8(),
                "move_spd_rate_ctrl": mode.speed_percent(),
                "mit_mode": mode.follow().as_u8(),
                "residence_time": mode.dwell_s(),
            }),
            decoded,
        ),
        Ok(Command::Joints(part)) => joints(frame, &part, decoded),
        Ok(Command::Gripper(order)) => {
            let raw = i64::from(order.stroke().0);
            let shown = if frame.limited {
                raw.clamp(0, 70_000)
            } else {
                raw
            };
            let ours = json!({
                "grippers_angle": shown,
                "grippers_effort": order.effort_mnm(),
                "status_code": order.power().as_u8(),
                "set_zero": if order.set_zero() { 0xAE } else { 0 },
            });
            equal(&ours, decoded).map(|_| (shown != raw).then_some(CLAMPED))
        }
        Ok(other) if decoded.is_null() => Command::decode(frame.id, &frame.data)
            .map(|_| Some("a command that the SDK does not read"))
            .map_err(|why| format!("{other:?}: {why:?}")),
        Ok(other) => Err(format!("no reader for {other:?}")),
        Err(Reject::BadValue(field)) if undefined(frame, field) => Ok(Some(
            "a command with an undefined value is refused by name, the SDK reads it as data",
        )),
        Err(why) => Err(format!("ours refuses: {why:?}")),
    }
}

/// Is this field of a command really outside the protocol's list? From the bytes, not from our decoder.
fn undefined(frame: &Received, field: Field) -> bool {
    let byte = |i: usize| frame.data[i];
    match (frame.id, field) {
        (0x159, Field::GripperEffort) => u16::from_be_bytes([byte(4), byte(5)]) > 5000,
        (0x159, Field::GripperPower) => byte(6) > 3,
        (0x159, Field::GripperZero) => ![0, 0xAE].contains(&byte(7)),
        (0x151, Field::Control) => ![0, 1, 3, 4, 7].contains(&byte(0)),
        (0x151, Field::MoveMode) => byte(1) > 6 && byte(1) != 0xFF,
        (0x151, Field::SpeedPercent) => byte(2) > 100,
        (0x151, Field::Follow) => ![0, 0xAD, 0xFF].contains(&byte(3)),
        (0x151, Field::Installation) => byte(5) > 3,
        _ => false,
    }
}

/// A measurement that ours refused: it must really be impossible, and the SDK must not have believed it either, except where its
/// joint filter is ten times too wide or its clamp came first.
fn implausible(frame: &Received, field: Field, decoded: &Value) -> Judged {
    let [a, b] = frame.pair();
    let beyond = |value: i64, max: i64| value.abs() > max;
    let (impossible, raw) = match field {
        Field::Position => {
            let second = frame.id == 0x2A2 && beyond(b, 1_000_000);
            (beyond(a, 1_000_000) || second, None)
        }
        Field::Rotation => {
            let first = frame.id == 0x2A4 && beyond(a, 361_000);
            (first || beyond(b, 361_000), None)
        }
        Field::JointAngle if decoded.is_null() => {
            let impossible = beyond(a, 300_000) || beyond(b, 300_000);
            return impossible
                .then_some(Some("an identifier that the SDK does not read"))
                .ok_or_else(|| "refused as implausible, but it is possible".into());
        }
        Field::JointAngle => {
            let pair = [Pair::First, Pair::Second, Pair::Third][(frame.id - 0x2A5) as usize];
            let shown = if frame.limited {
                clamped_pair(pair, [a, b])
            } else {
                [a, b]
            };
            (
                beyond(a, 300_000) || beyond(b, 300_000),
                Some(joint_pair(pair, shown)),
            )
        }
        Field::GripperStroke => (beyond(a, 150_000), None),
        other => return Err(format!("unexpected {other:?}")),
    };
    if !impossible {
        return Err(format!(
            "refused as implausible {field:?}, but it is possible"
        ));
    }
    match field {
        Field::JointAngle if frame.limited => equal(&raw.unwrap_or_default(), decoded)
            .map(|_| Some("impossible joints: the SDK clamps them into its limits, ours refuses")),
        Field::JointAngle if raw.as_ref() == Some(decoded) => {
            let let_in = !beyond(a, 3_000_000) && !beyond(b, 3_000_000);
            let_in
                .then_some(Some(
                    "joints beyond 300 deg: the SDK's filter is ten times too wide",
                ))
                .ok_or_else(|| "the SDK believed what its own filter drops".into())
        }
        Field::GripperStroke if frame.limited => {
            let clamped = decoded["grippers_angle"] == json!(a.clamp(0, 70_000));
            clamped
                .then_some(Some(
                    "an impossible stroke: the SDK clamps it, ours refuses",
                ))
                .ok_or_else(|| format!("the SDK shows {decoded}"))
        }
        _ if believed(frame, decoded) => Err("the SDK believed it".into()),
        _ => Ok(Some(
            "impossible, dropped by both; the SDK shows its last values",
        )),
    }
}

/// Does the SDK show the numbers of this very frame?
fn believed(frame: &Received, decoded: &Value) -> bool {
    let [a, b] = frame.pair();
    match frame.id {
        0x2A2 => *decoded == json!({"X_axis": a, "Y_axis": b}),
        0x2A3 => *decoded == json!({"Z_axis": a, "RX_axis": b}),
        0x2A4 => *decoded == json!({"RY_axis": a, "RZ_axis": b}),
        0x2A8 => decoded["grippers_angle"] == json!(a),
        _ => false,
    }
}

/// Firmware blocks, in order. The SDK shows what it has after "S-V", eight characters at most, -1199 before.
fn firmware(text: &mut FirmwareText, block: &[u8; 8], decoded: &Value) -> Judged {
    if text.is_complete() {
        *text = FirmwareText::new();
    }
    let complete = text.push(block);
    let shown = decoded["firmware"].as_str();
    match (text.version(), shown) {
        (Some(version), Some(shown)) => {
            let full = version.to_string();
            if full == shown {
                return Ok(None);
            }
            if full.starts_with(shown) {
                return Ok(Some(
                    "the SDK cuts the firmware version, ours reads all of it",
                ));
            }
            Err(format!("ours {full}, the SDK {shown}"))
        }
        (None, Some(_)) if !complete => {
            Ok(Some("a firmware version is believed only with its end"))
        }
        (None, None) => Ok(None),
        (ours, shown) => Err(format!("ours {ours:?}, the SDK {shown:?}")),
    }
}

fn judge(case: &Value, text: &mut FirmwareText) -> Judged {
    let frame = Received::from(case).ok_or("no frame in the line")?;
    let decoded = &case["decoded"];
    if (0x150..=0x15F).contains(&frame.id) && frame.data.len() == 8 {
        return command(&frame, case);
    }
    match (Feedback::decode(frame.id, &frame.data), frame.data.len()) {
        (Err(Reject::UnknownId), _) if decoded.is_null() => Ok(None),
        (Err(Reject::Length), 0..=7) => Ok(Some(
            "a short frame is refused, the SDK reads small numbers",
        )),
        // 0x15x commands reach this arm only when short.
        (Err(Reject::UnknownId), 0..=7) => match Command::decode(frame.id, &frame.data) {
            Err(Reject::Length) => Ok(Some(
                "a short frame is refused, the SDK reads small numbers",
            )),
            other => Err(format!("ours {other:?}")),
        },
        (Ok(_), 0..=7) if !(0x181..=0x186).contains(&frame.id) => {
            Err("a short frame was believed".into())
        }
        (Ok(Feedback::Firmware(block)), _) => firmware(text, &block, decoded),
        (Err(Reject::OtherDirection), _) if frame.id == 0x4AF => {
            Ok(Some("our own query echoed is no answer"))
        }
        (Err(Reject::Implausible(field)), _) => implausible(&frame, field, decoded),
        (Err(Reject::BadValue(Field::JointNumber)), _)
            if [0x473, 0x47C].contains(&frame.id) && !(1..=6).contains(&frame.data[0]) =>
        {
            Ok(Some(
                "an answer for a joint that does not exist is refused, the SDK reads it",
            ))
        }
        (Ok(got), _) => {
            let again = got.encode();
            if Feedback::decode(again.id, again.payload()) != Ok(got) {
                return Err(format!("{again:?} does not read back"));
            }
            feedback(&frame, &got, case)
        }
        (Err(why), _) => Err(format!("ours refuses: {why:?}, the SDK {decoded}")),
    }
}

/// A checker for `piper_rx.jsonl`.
pub(crate) fn checker() -> Check {
    let mut text = FirmwareText::new();
    Box::new(move |case| match judge(case, &mut text) {
        Ok(None) => Outcome::Same,
        Ok(Some(rule)) => Outcome::ByRule(rule),
        Err(why) => Outcome::Failed(why),
    })
}
