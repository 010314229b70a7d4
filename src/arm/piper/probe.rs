//! `telearm can probe` for a Piper: is the expected arm on this bus, a follower, whole, with the geometry that we compute with?

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "command line only"
)]

use super::driver_faults;
use super::driver_feedback::Table;
use super::model::{DhVariant, PiperModel};
use super::wire::{Command, Feedback, FirmwareVersion, Joint, JointSelect, LimitQuery, Reject, id};
use crate::arm::can::{Origin, Received};
use crate::arm::frame::Frame;
use crate::arm::probe::{
    Finding, IdRow, Listened, ProbeReport, ProbeRequest, bus_findings, listen, ranges,
};
use crate::signal::{ArmFault, FaultKind};
use crate::time::{Span, Stamp};
use crate::units::MilliDegrees;

/// Bits a second of a Piper's bus.
const BIT_RATE: f64 = 1e6;
/// Between two queries; each is sent up to three times.
const ASK_EVERY: Span = Span::from_ms(50);
const ASK_TRIES: u8 = 3;
/// A rate below this share of the documented one is too slow.
const RATE_SHARE_MIN: f64 = 0.7;
/// Measured joints and measured pose may disagree by that much.
const MISFIT_MAX_M: f64 = 0.005;

/// Identifiers that an arm as documented sends by itself: first, how many, name, frames a second.
const EXPECTED: &[(u32, u32, &str, f64)] = &[
    (id::MOTOR, 6, "motor", 200.0),
    (id::DRIVER, 6, "driver", 40.0),
    (id::STATUS, 1, "status", 200.0),
    (id::POSE_STATE, 3, "measured pose", 200.0),
    (id::JOINT_STATE, 3, "measured joints", 200.0),
    (id::GRIPPER_STATE, 1, "gripper", 200.0),
];

/// Questions in the order in which they are asked.
struct Questions {
    next: usize,
    tries: u8,
    asked: Option<Stamp>,
}

impl Questions {
    const fn command(number: usize) -> Option<Command> {
        match number {
            0 => Some(Command::QueryFirmware),
            n => match Joint::from_number(n as u8) {
                Some(joint) => Some(Command::QueryLimits(
                    JointSelect::One(joint),
                    LimitQuery::AngleAndSpeed,
                )),
                None => None,
            },
        }
    }

    fn due(&mut self, table: &Table, now: Stamp) -> Option<Frame> {
        let answered = match self.next {
            0 => table.firmware.version().is_some(),
            n => table.limits.get(n - 1).is_some_and(Option::is_some),
        };
        if self.asked.is_some_and(|at| now.age_of(at) < ASK_EVERY) && !answered {
            return None;
        }
        if answered || self.tries >= ASK_TRIES {
            self.next += 1;
            self.tries = 0;
        }
        let command = Self::command(self.next)?;
        self.asked = Some(now);
        self.tries += 1;
        Some(command.encode())
    }
}

/// Looks at a bus.
///
/// # Errors
/// When it cannot be opened.
pub(super) fn probe(request: &ProbeRequest) -> Result<ProbeReport, String> {
    let mut table = Table::default();
    let mut questions = Questions {
        next: 0,
        tries: 0,
        asked: None,
    };
    let mut rejected = std::collections::BTreeMap::<u32, u64>::new();
    let mut last = Stamp::default();
    let heard = listen(request, |frame, at| {
        last = last.max(at);
        let Some(frame) = frame else {
            let ask = request.ask && table.heard_at.is_some();
            return ask
                .then(|| questions.due(&table, at))
                .flatten()
                .into_iter()
                .collect();
        };
        if let Err(why) = Feedback::decode(frame.id, frame.payload())
            && why != Reject::UnknownId
            && why != Reject::OtherDirection
        {
            *rejected.entry(frame.id).or_insert(0) += 1;
        }
        let received = Received {
            frame: *frame,
            at,
            origin: Origin::Bus,
        };
        table.take(&received, false);
        Vec::new()
    })?;
    let mut findings = bus_findings(&heard, &request.bus);
    findings.extend(judge(&heard, &table, last, request));
    Ok(ProbeReport {
        arm: "piper",
        bus: request.bus.to_string(),
        listened_s: heard.listened_s,
        ids: rows(&heard, &rejected),
        bus_load: heard.load(BIT_RATE),
        error_frames: heard.error_frames,
        findings,
    })
}

fn rows(heard: &Listened, rejected: &std::collections::BTreeMap<u32, u64>) -> Vec<IdRow> {
    let mut ids: std::collections::BTreeSet<u32> = heard.counts.keys().copied().collect();
    ids.extend(EXPECTED.iter().flat_map(|(first, n, ..)| *first..first + n));
    ids.into_iter()
        .map(|id| {
            let known = EXPECTED
                .iter()
                .find(|(first, n, ..)| (*first..first + n).contains(&id));
            IdRow {
                id,
                name: known.map_or_else(|| name(id), |(_, _, name, _)| name),
                rate_hz: heard.rate_hz(id),
                expected_hz: known.map(|(.., rate)| *rate),
                rejected: rejected.get(&id).copied().unwrap_or(0),
            }
        })
        .collect()
}

fn name(id: u32) -> &'static str {
    match id {
        id::MOTION..=0x15F => "command",
        id::IK_STATE..=0x2AC => "the arm's own joint solution",
        id::LIMITS => "joint limits",
        id::LINK..=id::SET_GRIPPER_PARAM => "configuration",
        id::FIRMWARE => "firmware",
        0x481..=0x486 => "tip speed",
        0x2B1..=0x2CF | 0x160..=0x17F => "moved by an identifier offset",
        _ => "unknown",
    }
}

fn judge(heard: &Listened, table: &Table, now: Stamp, request: &ProbeRequest) -> Vec<Finding> {
    if let Some(finding) = who_talks(heard, request) {
        return vec![finding];
    }
    let mut found = commands(heard).into_iter().collect::<Vec<_>>();
    found.extend(rates(heard));
    if table.rejected > 0 {
        found.push(Finding::bad(
            format!("{} frames do not decode", table.rejected),
            "another device on the bus? One arm, one bus",
        ));
    }
    found.extend(state(table, now));
    found.push(geometry(table));
    if request.ask {
        found.extend(answers(table));
    }
    found
}

/// Nobody, a leader, or an arm with moved identifiers; `None` when an arm reports.
fn who_talks(heard: &Listened, request: &ProbeRequest) -> Option<Finding> {
    let heard_any = |ids: std::ops::RangeInclusive<u32>| heard.counts.range(ids).next().is_some();
    if heard_any(id::MOTOR..=id::IK_STATE + 2) && !heard_any(0x2B1..=0x2CF) {
        return None;
    }
    let bus = &request.bus;
    Some(if heard.counts.is_empty() {
        Finding::bad(
            "nothing is heard",
            format!(
                "is the arm powered, the plug in, the bit rate 1 Mbit/s (sudo scripts/can_activate {bus} 1000000), and {bus} \
                 the right adapter (telearm can list)?"
            ),
        )
    } else if heard_any(0x2B1..=0x2CF) {
        Finding::bad(
            "the arm reports at moved identifiers (0x2Bx or 0x2Cx)",
            "set its identifier offsets back with the vendor's tool (0x470 FC 00 00 00), then switch it off and on",
        )
    } else if heard_any(id::MOTION..=id::MIT + 5) {
        Finding::bad(
            format!(
                "only commands ({}): the arm is a leader",
                ranges(heard.counts.keys().copied())
            ),
            "telearm recover LANE --arm-will-drop tells it to follow; then switch it off and on",
        )
    } else {
        Finding::bad(
            format!(
                "something talks ({}), but it is no Piper",
                ranges(heard.counts.keys().copied())
            ),
            "another arm's bus, or another bit rate: telearm can list shows which adapter is which",
        )
    })
}

/// Who else commands the arm.
fn commands(heard: &Listened) -> Option<Finding> {
    let ids: Vec<u32> = heard
        .counts
        .range(id::MOTION..=id::MIT + 5)
        .map(|(id, _)| *id)
        .collect();
    (!ids.is_empty()).then(|| {
        Finding::bad(
            format!("somebody else commands the arm: {}", ranges(ids)),
            "end the other program (a running telearm counts), or take the leader off the bus",
        )
    })
}

/// Which identifiers are missing or slow.
fn rates(heard: &Listened) -> Vec<Finding> {
    let (mut silent, mut slow) = (Vec::new(), Vec::new());
    let mut found = Vec::new();
    for (first, n, _, expected) in EXPECTED {
        for id in *first..first + n {
            let rate = heard.rate_hz(id);
            if rate == 0.0 {
                silent.push(id);
            } else if rate < expected * RATE_SHARE_MIN {
                slow.push(id);
            }
        }
    }
    if silent == [id::GRIPPER_STATE] {
        silent.clear();
        found.push(Finding::note(
            "no gripper reports",
            "set gripper = false in the plan, or set the gripper up once with the vendor's tool (0x47D)",
        ));
    }
    if !silent.is_empty() {
        found.push(Finding::bad(
            format!("not heard: {}", ranges(silent)),
            "0x25x and 0x26x: the cable or driver of that joint; 0x2Ax: the main controller, switch it off and on",
        ));
    }
    if !slow.is_empty() {
        found.push(Finding::note(
            format!("slower than documented: {}", ranges(slow)),
            "a disturbed bus, or this machine reads too slowly",
        ));
    }
    if found.is_empty() {
        found.push(Finding::good(
            "all feedback is there, at the documented rates",
        ));
    }
    found
}

/// Joints, power, faults.
fn state(table: &Table, now: Stamp) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(q) = table.joints.value() {
        let text: Vec<_> = q
            .iter()
            .map(|q| format!("{:.1}", q.as_rad().to_degrees()))
            .collect();
        found.push(Finding::good(format!("joints {} deg", text.join(" "))));
    }
    let powered: Vec<bool> = table
        .drivers
        .iter()
        .filter_map(|d| d.value().map(|d| d.flags.enabled()))
        .collect();
    found.push(Finding::good(
        match powered.iter().filter(|on| **on).count() {
            0 => "motors off".to_owned(),
            6 => "motors on".to_owned(),
            n => format!("{n} of 6 motors on"),
        },
    ));
    if let Some(status) = table.status.value() {
        found.push(Finding::good(format!(
            "mode {}, status {}",
            status.control.name(),
            status.status.name()
        )));
    }
    let fault = driver_faults::arm_fault(table, false).or_else(|| {
        // What somebody else commands has been said.
        driver_faults::bus_fault(table, now).filter(|f| f.kind != FaultKind::ForeignCommand)
    });
    if let Some(fault) = fault {
        found.push(fault_finding(&fault));
    }
    found
}

fn fault_finding(fault: &ArmFault) -> Finding {
    let joint = if fault.joint > 0 {
        format!(", joint {}", fault.joint)
    } else {
        String::new()
    };
    let fix = match fault.kind {
        FaultKind::ArmStopped | FaultKind::WrongMode => {
            "support the arm, then telearm recover LANE --arm-will-drop: it drops"
        }
        FaultKind::JointSilent => "check that joint's cable, then switch the arm off and on",
        FaultKind::OverTemperature => "let it cool down",
        FaultKind::UnderVoltage => "check the supply",
        _ => "clear the cause; docs/arms/piper.md has a line for each",
    };
    Finding::bad(
        format!("{}{joint}, code 0x{:X}", fault.kind.name(), fault.code),
        fix,
    )
}

/// Forward kinematics of the measured joints against the measured pose.
fn geometry(table: &Table) -> Finding {
    let (Some(angles), Some(pose)) = (table.joints.value(), table.pose.value()) else {
        return Finding::bad(
            "no complete pose or joints",
            "lost frames: a disturbed bus, or this machine reads too slowly",
        );
    };
    let (q, measured) = (angles.map(MilliDegrees::as_rad), pose.to_pose().position());
    let misfit_m = |variant| (PiperModel::new(variant).fk(&q).position() - measured).norm();
    let (newer, older) = (misfit_m(DhVariant::Offset), misfit_m(DhVariant::Old));
    let (best, misfit) = if newer <= older {
        ("offset (firmware from S-V1.6-3)", newer)
    } else {
        ("no_offset (older firmware)", older)
    };
    if misfit <= MISFIT_MAX_M {
        Finding::good(format!(
            "geometry {best}: the joints give the measured pose within {:.1} mm",
            misfit * 1e3
        ))
    } else {
        Finding::bad(
            format!(
                "the joints do not give the measured pose: {:.1} mm off with the best geometry",
                misfit * 1e3
            ),
            "is it a Piper with its own tool setting at zero? A joint's zero may have moved; do not drive it like this",
        )
    }
}

/// What the arm answered to queries.
fn answers(table: &Table) -> Vec<Finding> {
    let mut found = vec![match table.firmware.version() {
        Some(v) if !v.is_v2() || v < FirmwareVersion::new(1, 7, 4) => Finding::note(
            format!("firmware {v}"),
            "an old one; docs/protocols/piper.md lists what it does differently",
        ),
        Some(v) => Finding::good(format!("firmware {v}")),
        None => Finding::note(
            "no answer to the firmware query",
            "try again; the arm can be driven without",
        ),
    }];
    let known = table.limits.iter().flatten().count();
    found.push(match driver_faults::absurd_limits(table) {
        Some(fault) => Finding::bad(
            format!("the limits of joint {} make no sense", fault.joint),
            "repair them with the vendor's tool before the arm moves",
        ),
        None if known == 6 => Finding::good("joint limits of all six joints make sense"),
        None => Finding::note(
            format!("joint limits of {known} of 6 joints answered"),
            "try again with --seconds 4",
        ),
    });
    found
}
