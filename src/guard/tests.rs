//! The guard against the Piper's geometry.

#![allow(clippy::disallowed_types)]

use nalgebra::{UnitQuaternion, Vector3};

use super::*;
use crate::arm::piper::model::{DhVariant, PiperModel};
use crate::geometry::{ArmBase, Pose, Tcp};
use crate::kinematics::ArmModel;
use crate::signal::{ArmCommand, Target};

const Q: [f64; 6] = [0.1, 1.2, -1.1, 0.2, 0.7, 0.1];

fn model() -> PiperModel {
    PiperModel::new(DhVariant::Offset)
}

fn guard() -> Guard {
    Guard {
        workspace: Workspace {
            min_m: Vector3::new(-0.4, -0.4, 0.05),
            max_m: Vector3::new(0.4, 0.4, 0.7),
            reach_margin_m: 0.01,
            wrist_axis_min_m: 0.05,
        },
        limits: GuardLimits {
            lin_vel_max: 0.25,
            ang_vel_max: 1.5,
            lead_max_m: 0.1,
            lead_max_rad: 0.5,
            period_s: 0.005,
            joint_speed_share: 1.0,
        },
    }
}

fn at(tcp: Pose<ArmBase, Tcp>, motion: bool) -> ArmCommand<6> {
    ArmCommand {
        target: Target::Tcp(tcp),
        q_velocity: [0.0; 6],
        opening: None,
        stiffness: 1.0,
        motion,
    }
}

fn moved(tcp: &Pose<ArmBase, Tcp>, by: [f64; 3]) -> Pose<ArmBase, Tcp> {
    Pose::from_parts(tcp.position() + Vector3::from(by), tcp.rotation())
}

fn sent(model: &PiperModel, q: [f64; 6]) -> Baseline<6> {
    Baseline {
        tcp: model.forward(&q),
        q,
        sent: true,
    }
}

fn veto(command: ArmCommand<6>, last: &Baseline<6>) -> Option<Veto> {
    let model = model();
    guard().vet(command, last, Some(&last.tcp), &model).err()
}

/// Guards: steps in both directions of every axis are limited alike (a limiter without `abs` passes one of them).
#[test]
fn limits_are_symmetric() {
    let last = sent(&model(), Q);
    for axis in 0..3 {
        for sign in [-1.0, 1.0] {
            let mut by = [0.0; 3];
            by[axis] = sign * 0.001;
            assert_eq!(veto(at(moved(&last.tcp, by), true), &last), None, "{by:?}");
            by[axis] = sign * 0.0013;
            assert_eq!(
                veto(at(moved(&last.tcp, by), true), &last),
                Some(Veto::LinearStep),
                "{by:?}"
            );
            let mut axis_angle = Vector3::zeros();
            axis_angle[axis] = sign * 0.0076;
            let turned = Pose::from_parts(
                last.tcp.position(),
                UnitQuaternion::from_scaled_axis(axis_angle) * last.tcp.rotation(),
            );
            assert_eq!(veto(at(turned, true), &last), Some(Veto::AngularStep));
        }
    }
}

/// Guards: whatever is not finite never passes, braking or not.
#[test]
fn nothing_that_is_not_finite_passes() {
    let last = sent(&model(), Q);
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for motion in [true, false] {
            assert_eq!(
                veto(at(moved(&last.tcp, [bad, 0.0, 0.0]), motion), &last),
                Some(Veto::NotFinite)
            );
        }
    }
}

/// Guards: a stream begins frozen at the measured pose and nowhere else.
#[test]
fn a_stream_begins_where_the_arm_is() {
    let first = Baseline {
        sent: false,
        ..sent(&model(), Q)
    };
    assert_eq!(veto(at(first.tcp, false), &first), None);
    assert_eq!(
        veto(at(first.tcp, true), &first),
        Some(Veto::FirstNotMeasured),
        "not moving"
    );
    assert_eq!(
        veto(at(moved(&first.tcp, [0.003, 0.0, 0.0]), false), &first),
        Some(Veto::FirstNotMeasured)
    );
}

/// Guards: the leash, and that no measured pose at all blocks motion but not a frozen target.
#[test]
fn the_leash_holds() {
    let (model, guard) = (model(), guard());
    let last = sent(&model, Q);
    let next = moved(&last.tcp, [0.001, 0.0, 0.0]);
    let far = moved(&last.tcp, [-0.11, 0.0, 0.0]);
    assert_eq!(
        guard.vet(at(next, true), &last, Some(&far), &model).err(),
        Some(Veto::Leash)
    );
    assert_eq!(
        guard.vet(at(next, true), &last, None, &model).err(),
        Some(Veto::NoBaseline)
    );
    assert!(guard.vet(at(last.tcp, false), &last, None, &model).is_ok());
}

/// Guards: outside the workspace one may come back, never go farther; a frozen target is sendable anywhere.
#[test]
fn outside_one_may_only_come_back() {
    let model = model();
    let mut guard = guard();
    let last = sent(&model, Q);
    guard.workspace.max_m.x = last.tcp.position().x - 0.02;
    let vet = |by: f64, motion| {
        guard
            .vet(
                at(moved(&last.tcp, [by, 0.0, 0.0]), motion),
                &last,
                Some(&last.tcp),
                &model,
            )
            .err()
    };
    assert_eq!(vet(0.0005, true), Some(Veto::Workspace));
    assert_eq!(vet(-0.0005, true), None);
    assert_eq!(vet(0.0, false), None);
}

/// Guards: a joint target beyond a limit, or faster than the joint may move, is refused by name.
#[test]
fn joints_are_limited() {
    let last = sent(&model(), Q);
    let joint = |q: [f64; 6]| ArmCommand {
        target: Target::Joint(q),
        ..at(last.tcp, true)
    };
    let mut fast = Q;
    fast[2] += 0.02;
    assert_eq!(veto(joint(fast), &last), Some(Veto::JointSpeed));
    let edge = sent(&model(), [0.1, 1.2, -1.1, 0.2, 1.215, 0.1]);
    let mut beyond = edge.q;
    beyond[4] += 0.004;
    assert_eq!(veto(joint(beyond), &edge), Some(Veto::JointLimit));
    beyond[4] -= 0.008;
    assert_eq!(veto(joint(beyond), &edge), None, "back inside");
}

/// Guards: every projected goal is admissible, keeps its orientation, and a goal inside stays where it is.
#[test]
fn projected_goals_are_admissible() {
    let (model, workspace) = (model(), guard().workspace);
    let inside = model.forward(&Q);
    assert_eq!(project(&workspace, &model, &inside).moved_m, 0.0);
    let mut failed = 0;
    for i in 0..2000u32 {
        let t = f64::from(i);
        let wanted = Vector3::new((t * 0.7).sin(), (t * 1.3).sin(), (t * 0.37).sin() + 0.2) * 1.2;
        let rotation = UnitQuaternion::from_euler_angles(t * 0.11, t * 0.07, t * 0.05);
        let projected = project(&workspace, &model, &Pose::from_parts(wanted, rotation));
        assert_eq!(projected.pose.rotation(), rotation);
        if projected.failed {
            failed += 1;
        } else {
            assert_eq!(workspace.violation_m(&projected.pose, &model), 0.0);
        }
    }
    assert!(failed < 20, "{failed} of 2000 goals found no place");
}

/// Guards: names stand in the order of the numbers.
#[test]
fn veto_names() {
    assert_eq!(VETO_NAMES[Veto::NotFinite as usize], "not_finite");
    assert_eq!(VETO_NAMES[Veto::NoBaseline as usize], "no_baseline");
    assert_eq!(VETO_NAMES[Veto::Leash as usize], "leash");
}
