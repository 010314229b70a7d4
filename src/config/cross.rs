//! Checks between sections: what is right by itself and wrong together.

use std::net::SocketAddr;

use crate::arm::registry::{self as arms, DrivenBy};
use crate::operator::gesture::EngageBy;
use crate::operator::registry::{self as devices, Yields};

use super::plan::{ArmKindPlan, LanePlan, OperatorPlan};
use super::resolve::Draft;
use super::section::Section;

pub(super) fn check(draft: &Draft<'_>) {
    ports(draft);
    interfaces(draft);
    lanes(draft);
    distance(draft);
}

/// Two operators cannot listen on one port, unless its packets say which of them they are for.
fn ports(draft: &Draft<'_>) {
    for (i, (section, operator)) in draft.operators.iter().enumerate() {
        let device = &operator.device;
        let listen = device.listen();
        let twin = draft.operators[..i].iter().find(|(s, o)| {
            !s.is_flawed()
                && !section.is_flawed()
                && same_door(listen, o.device.listen())
                && !device.shares_port_with(&o.device)
        });
        let Some((_, twin)) = twin else { continue };
        let taken = format!(
            "= {} is used by operator {} already",
            listen.port(),
            twin.name
        );
        match device.settings().seat() {
            Some(seat) if twin.device.settings().seat() == Some(seat) => section.error(
                "hand",
                &format!(
                    "= \"{seat}\" at port {} is operator {} already",
                    listen.port(),
                    twin.name
                ),
                "one operator, one hand: the other hand shares the port",
            ),
            Some(_) if twin.device.kind() == device.kind() => section.error(
                "bind",
                &format!("= \"{}\" is not that of operator {}", listen.ip(), twin.name),
                "two hands at one port need the same `bind`",
            ),
            _ => section.error(
                "port",
                &taken,
                "only packets that say whose they are can share a port; the Quest sends the right hand to 8888, the left to 8889",
            ),
        }
    }
}

fn same_door(a: SocketAddr, b: SocketAddr) -> bool {
    let overlap = a.ip() == b.ip() || a.ip().is_unspecified() || b.ip().is_unspecified();
    a.port() == b.port() && overlap
}

/// Two arms cannot share an interface.
fn interfaces(draft: &Draft<'_>) {
    for (i, (section, arm)) in draft.arms.iter().enumerate() {
        let ArmKindPlan::Piper(piper) = &arm.kind;
        let twin = draft.arms[..i].iter().find(|(s, a)| {
            let ArmKindPlan::Piper(other) = &a.kind;
            other.can == piper.can && !s.is_flawed() && !section.is_flawed()
        });
        if let Some((_, twin)) = twin {
            section.error(
                "can",
                &format!("= \"{}\" is used by arm {} already", piper.can, twin.name),
                "both arms answer on the same ids: each needs its own adapter (`telearm can list`)",
            );
        }
    }
}

fn lanes(draft: &Draft<'_>) {
    for (i, (section, lane)) in draft.lanes.iter().enumerate() {
        if section.is_flawed() {
            continue;
        }
        let earlier = &draft.lanes[..i];
        if let Some((_, twin)) = earlier.iter().find(|(_, l)| l.arm == lane.arm) {
            section.error(
                "arm",
                &format!("is driven by lane {} already", twin.name),
                "one arm, one lane",
            );
        }
        if let Some((_, twin)) = earlier.iter().find(|(_, l)| l.operator == lane.operator) {
            section.error(
                "operator",
                &format!("drives lane {} already", twin.name),
                "one hand, one lane",
            );
        }
        let Some((_, operator)) = draft.operators.get(lane.operator) else {
            continue;
        };
        if operator.device.engage() == EngageBy::Clutch {
            section.error(
                "operator",
                &format!("= {:?} is a clutch for another hand", operator.name),
                "a lane follows an operator whose engage is not \"clutch\"",
            );
        }
        clutch(section, lane.clutch_operator, operator, draft);
        fit(section, lane, draft);
    }
    unused(draft);
}

/// What the operators' samples carry must be what the lane needs.
fn fit(section: &Section<'_>, lane: &LanePlan, draft: &Draft<'_>) {
    let yields = |index: usize| {
        let (_, operator) = draft.operators.get(index)?;
        Some(devices::find(operator.device.kind())?.yields())
    };
    let arm = draft
        .arms
        .get(lane.arm)
        .and_then(|(_, arm)| arms::find(arm.kind.kind()));
    if let (Some(yields), Some(arm), Some((_, operator))) = (
        yields(lane.operator),
        arm,
        draft.operators.get(lane.operator),
    ) && !can_drive(yields, arm.driven_by())
    {
        let device = devices::find(operator.device.kind()).map_or("?", |d| d.name());
        section.error(
            "operator",
            &format!("= \"{}\" ({device}) cannot drive {}", operator.name, arm.name()),
            if yields.opening || yields.clutch {
                "its samples carry neither a hand pose nor joints that this arm takes; it can be a gripper_operator or a clutch_operator"
            } else {
                "its samples carry neither a hand pose nor joints that this arm takes"
            },
        );
    }
    if yields(lane.gripper_operator).is_some_and(|y| !y.opening) && section.has("gripper_operator")
    {
        section.error(
            "gripper_operator",
            "has no opening",
            "this device's samples carry none",
        );
    }
}

/// A hand pose drives every arm (our inverse kinematics or the arm's own); joints drive an arm that takes joints.
const fn can_drive(yields: Yields, arm: DrivenBy) -> bool {
    (yields.pose && (arm.pose || arm.joint)) || (yields.joints && arm.joint)
}

/// An operator that engages by the other hand needs that hand, and only such an operator does.
fn clutch(
    section: &Section<'_>,
    clutch: Option<usize>,
    operator: &OperatorPlan,
    draft: &Draft<'_>,
) {
    let by_other_hand = operator.device.engage() == EngageBy::OtherHand;
    let Some(clutch) = clutch else {
        if by_other_hand {
            section.error(
                "clutch_operator",
                "is missing",
                format!(
                    "operator {} engages by the other hand: name the [[operator]] that is its clutch",
                    operator.name
                ),
            );
        }
        return;
    };
    if !by_other_hand {
        section.error(
            "clutch_operator",
            "has no effect",
            format!(
                "operator {} does not engage by the other hand; set engage = \"other_hand\" there",
                operator.name
            ),
        );
    }
    if let Some((_, other)) = draft.operators.get(clutch)
        && !other.device.settings().is_clutch()
    {
        section.error(
            "clutch_operator",
            &format!("= {:?} is not a clutch", other.name),
            format!("set engage = \"clutch\" in [[operator]] {}", other.name),
        );
    }
}

/// What no lane uses is most often a slip of a name.
fn unused(draft: &Draft<'_>) {
    // A lane that does not resolve is the cause, and is reported already.
    if draft.lanes.is_empty() || draft.lanes.iter().any(|(s, _)| s.is_flawed()) {
        return;
    }
    for (i, (section, operator)) in draft.operators.iter().enumerate() {
        let used = draft.lanes.iter().any(|(_, l)| {
            l.operator == i || l.gripper_operator == i || l.clutch_operator == Some(i)
        });
        if !used && !operator.name.is_empty() {
            section.error(
                "name",
                &format!("= {:?} is used by no lane", operator.name),
                "remove it, or name it in a [[lane]]",
            );
        }
    }
    for (i, (section, arm)) in draft.arms.iter().enumerate() {
        if !draft.lanes.iter().any(|(_, l)| l.arm == i) && !arm.name.is_empty() {
            section.error(
                "name",
                &format!("= {:?} is used by no lane", arm.name),
                "remove it, or name it in a [[lane]]",
            );
        }
    }
}

/// A distance between two tools needs a common room.
fn distance(draft: &Draft<'_>) {
    if draft.coupling.1.tcp_distance_min_m.is_none() {
        return;
    }
    if draft.arms.len() < 2 {
        draft.coupling.0.error(
            "tcp_distance_min_mm",
            "has no effect",
            "there is only one arm",
        );
    }
    for (section, arm) in &draft.arms {
        if draft.arms.len() > 1 && arm.base_in_world.is_none() {
            section.error(
                "base_in_world",
                "is missing",
                "coupling.tcp_distance_min_mm needs to know where each arm stands: base_in_world = { position_mm = [0, 300, 0] }",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards: a device without a pose drives no arm that wants poses; a glove, which has neither pose nor joints, drives none.
    #[test]
    fn who_drives_what() {
        let yields = |pose, joints| Yields {
            pose,
            joints,
            opening: true,
            clutch: false,
        };
        let arm = |pose, joint| DrivenBy { pose, joint };
        assert!(can_drive(yields(true, false), arm(true, false)));
        assert!(can_drive(yields(true, false), arm(false, true)));
        assert!(can_drive(yields(false, true), arm(true, true)));
        assert!(!can_drive(yields(false, true), arm(true, false)));
        assert!(!can_drive(yields(false, false), arm(true, true)));
    }
}
