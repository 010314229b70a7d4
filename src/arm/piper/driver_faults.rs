//! From what the arm says to named faults. Pure.
//!
//! | said | fault | code |
//! |---|---|---|
//! | nothing for 250 ms | `feedback_lost` | 0 |
//! | no status for 250 ms | `feedback_lost` | 0x2A1 |
//! | a motor or driver silent for 150 ms while others talk; status 5 or its joint bits | `joint_silent`, joint | identifier, or the status |
//! | a 0x150..0x15F that is not ours within the last second | `foreign_command` | identifier |
//! | control mode 6 | `leader_mode` | 6 |
//! | status 1 | `arm_stopped` | 1 |
//! | control mode 2; status 8, 11, 12, 13; a drag-teach state | `wrong_mode` | mode, or status |
//! | status 7; a driver's collision bit | `collision` | status, or flags |
//! | status 14, 15; a driver's motor or driver heat bit | `over_temperature` | status, or flags |
//! | a driver's undervoltage bit | `under_voltage` | flags |
//! | status 6, 9, 10 or unknown; overcurrent, driver error, stall bits | `motor_error` | status, or flags |
//! | an enable bit gone, once all six were set | `motor_disabled`, joint | flags |
//! | status 2, 3, 4; angle limit bits | warning `target_refused`; a fault after 2 s | status |
//! | gripper error bits; gripper stroke never set | warning | flags; 0x47E |

use super::driver_feedback::Table;
use super::wire::{ArmStatus, ControlMode, DriverFlags, Joint, Status, TeachState, id};
use crate::signal::{ArmFault, FaultKind};
use crate::time::{Span, Stamp};

/// Silence of the whole arm, or of its status (200 Hz).
const SILENT_AFTER: Span = Span::from_ms(250);
/// Silence of one joint: drivers speak at 40 Hz.
const JOINT_SILENT_AFTER: Span = Span::from_ms(150);
/// Somebody on the bus talks: ten periods of the 200 Hz frames.
const TALKS_WITHIN: Span = Span::from_ms(50);
/// How long a foreign command is held against the bus.
pub(super) const FOREIGN_FOR: Span = Span::from_ms(1000);
/// The gripper's place in a fault, after the six joints.
pub(super) const GRIPPER: u8 = 7;

/// Whether the arm is dead or talks, and who else talks.
pub(super) fn bus_fault(table: &Table, now: Stamp) -> Option<ArmFault> {
    let whole = |kind, code| {
        Some(ArmFault {
            kind,
            joint: 0,
            code,
        })
    };
    if let (Some(id), Some(age)) = (table.foreign.value(), table.foreign.age(now))
        && age <= FOREIGN_FOR
    {
        return whole(FaultKind::ForeignCommand, id);
    }
    if table
        .heard_at
        .is_none_or(|at| now.age_of(at) > SILENT_AFTER)
    {
        return whole(FaultKind::FeedbackLost, 0);
    }
    if table.status.fresh(now, SILENT_AFTER).is_none() {
        return whole(FaultKind::FeedbackLost, id::STATUS);
    }
    // A joint is silent only while others talk; when all fall silent at once it is the arm.
    if table
        .heard_at
        .is_none_or(|at| now.age_of(at) > TALKS_WITHIN)
    {
        return None;
    }
    for joint in Joint::ALL {
        let (motor, driver) = (
            table.motors.get(joint.index())?,
            table.drivers.get(joint.index())?,
        );
        for (first, fresh) in [
            (id::MOTOR, motor.fresh(now, JOINT_SILENT_AFTER).is_some()),
            (id::DRIVER, driver.fresh(now, JOINT_SILENT_AFTER).is_some()),
        ] {
            if !fresh {
                let place = u32::from(joint.number());
                return Some(ArmFault::joint(
                    FaultKind::JointSilent,
                    joint.number(),
                    first + place - 1,
                ));
            }
        }
    }
    None
}

/// What the arm says of itself. `enabled_before`: all six motors had power.
pub(super) fn arm_fault(table: &Table, enabled_before: bool) -> Option<ArmFault> {
    status_fault(&table.status.value()?).or_else(|| driver_fault(table, enabled_before))
}

fn status_fault(s: &Status) -> Option<ArmFault> {
    let whole = |kind, code: u8| {
        Some(ArmFault {
            kind,
            joint: 0,
            code: u32::from(code),
        })
    };
    match s.control {
        ControlMode::Leader => return whole(FaultKind::LeaderMode, s.control.as_u8()),
        ControlMode::Teach => return whole(FaultKind::WrongMode, s.control.as_u8()),
        _ => {}
    }
    let code = s.status.as_u8();
    match s.status {
        ArmStatus::Stopped => whole(FaultKind::ArmStopped, code),
        ArmStatus::JointCommunication => {
            let joint = s.silent.first().map_or(0, Joint::number);
            Some(ArmFault::joint(
                FaultKind::JointSilent,
                joint,
                u32::from(code),
            ))
        }
        ArmStatus::Collision => whole(FaultKind::Collision, code),
        ArmStatus::ControllerHot | ArmStatus::BrakeResistorHot => {
            whole(FaultKind::OverTemperature, code)
        }
        ArmStatus::DragOverspeed
        | ArmStatus::Recording
        | ArmStatus::Replaying
        | ArmStatus::Paused => whole(FaultKind::WrongMode, code),
        ArmStatus::BrakeNotReleased
        | ArmStatus::JointFault
        | ArmStatus::Other
        | ArmStatus::Unknown(_) => whole(FaultKind::MotorError, code),
        ArmStatus::Normal
        | ArmStatus::NoSolution
        | ArmStatus::Singular
        | ArmStatus::TargetBeyondLimit => {
            if let Some(joint) = s.silent.first() {
                return Some(ArmFault::joint(
                    FaultKind::JointSilent,
                    joint.number(),
                    u32::from(s.silent.0),
                ));
            }
            match s.teach {
                TeachState::Off | TeachState::RecordEnd | TeachState::Abort => None,
                teach => whole(FaultKind::WrongMode, teach.as_u8()),
            }
        }
    }
}

fn driver_fault(table: &Table, enabled_before: bool) -> Option<ArmFault> {
    Joint::ALL
        .into_iter()
        .zip(&table.drivers)
        .find_map(|(joint, driver)| {
            let flags = driver.value()?.flags;
            let kind = driver_fault_kind(flags)
                .or((enabled_before && !flags.enabled()).then_some(FaultKind::MotorDisabled))?;
            Some(ArmFault::joint(kind, joint.number(), u32::from(flags.0)))
        })
}

const fn driver_fault_kind(flags: DriverFlags) -> Option<FaultKind> {
    if flags.collision() {
        Some(FaultKind::Collision)
    } else if flags.motor_hot() || flags.driver_hot() {
        Some(FaultKind::OverTemperature)
    } else if flags.undervoltage() {
        Some(FaultKind::UnderVoltage)
    } else if flags.overcurrent() || flags.driver_error() || flags.stalled() {
        Some(FaultKind::MotorError)
    } else {
        None
    }
}

/// The arm does not take the target.
pub(super) fn refusal(table: &Table) -> Option<ArmFault> {
    let s = table.status.value()?;
    let joint = s.beyond_limit.first().map_or(0, Joint::number);
    match s.status {
        ArmStatus::NoSolution | ArmStatus::Singular | ArmStatus::TargetBeyondLimit => Some(
            ArmFault::joint(FaultKind::TargetRefused, joint, u32::from(s.status.as_u8())),
        ),
        _ if s.beyond_limit.any() => Some(ArmFault::joint(
            FaultKind::TargetRefused,
            joint,
            u32::from(s.beyond_limit.0),
        )),
        _ => None,
    }
}

/// What is wrong with the gripper; never blocks the arm.
pub(super) fn gripper_complaint(table: &Table) -> Option<ArmFault> {
    if let Some(gripper) = table.gripper.value()
        && gripper.flags.faults() != 0
    {
        return Some(ArmFault::joint(
            FaultKind::MotorError,
            GRIPPER,
            u32::from(gripper.flags.0),
        ));
    }
    match table.gripper_param {
        Some(param) if param.range_mm == 0 => Some(ArmFault::joint(
            FaultKind::Implausible,
            GRIPPER,
            id::GRIPPER_PARAM,
        )),
        _ => None,
    }
}

/// A joint whose limits in the driver's flash make no sense, with its raw upper and lower limit.
pub(super) fn absurd_limits(table: &Table) -> Option<ArmFault> {
    table.limits.iter().flatten().find_map(|limits| {
        let [min, max] = limits.range_rad();
        // 20 degrees is less than any joint has; 300 is more than any has. Known damage reads -0.1..-0.1 degrees.
        let narrow = max - min < 20_f64.to_radians();
        let wide = min.abs().max(max.abs()) > 300_f64.to_radians();
        // 0.1 rad/s is no use, and beyond 6 rad/s somebody wrote the value in the wrong unit (3 rad/s is the arm's top).
        let speed = !(0.1..=6.0).contains(&limits.speed_rad_s());
        (narrow || wide || speed).then(|| {
            let (hi, lo) = (
                limits.max_decideg.cast_unsigned(),
                limits.min_decideg.cast_unsigned(),
            );
            ArmFault::joint(
                FaultKind::Implausible,
                limits.joint.number(),
                (u32::from(hi) << 16) | u32::from(lo),
            )
        })
    })
}
