//! `*_fk.jsonl`: forward kinematics of arms described by `*_chain.json`, as a robot description library computed it.
//!
//! The chain is built from the description here, so what is proven is our `Chain`: six and seven joints, fixed joints between the
//! movable ones, any axis. The arms' own constants are proven with the arms. `gravity_torque` is not looked at yet.

use std::path::Path;

use nalgebra::{Isometry3, Matrix4};
use serde_json::Value;
use telearm::geometry::{ArmBase, Pose, Tcp, admit_quat_wxyz, angle_between};
use telearm::kinematics::{Chain, ChainJoint, JointRange, fixed_transform};

use crate::{Check, Outcome, companion};

/// Positions in metres and matrix entries agree to this.
const CLOSE: f64 = 1e-9;

pub(crate) fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("a number, not {value}"))
}

pub(crate) fn numbers<const N: usize>(value: &Value) -> [f64; N] {
    let list = value
        .as_array()
        .unwrap_or_else(|| panic!("an array, not {value}"));
    let list: Vec<f64> = list.iter().map(number).collect();
    list.try_into()
        .unwrap_or_else(|list: Vec<f64>| panic!("{N} numbers, not {}", list.len()))
}

fn range(joint: &Value) -> JointRange {
    let limits = &joint["limits"];
    JointRange {
        lower: number(&limits["lower"]),
        upper: number(&limits["upper"]),
        velocity_max: number(&limits["velocity"]),
    }
}

/// The chain of a description: fixed joints go into the origin of the next movable one, the last ones into the tool.
fn chain<const N: usize>(variant: &Value) -> Chain<N> {
    let mut before = Isometry3::identity();
    let mut joints = Vec::new();
    for joint in variant["joints"].as_array().expect("joints") {
        let (xyz, rpy) = (numbers(&joint["xyz"]), numbers(&joint["rpy"]));
        match joint["type"].as_str() {
            Some("fixed") => before *= fixed_transform(xyz, rpy),
            Some("revolute") => {
                let mut movable =
                    ChainJoint::revolute(xyz, rpy, numbers(&joint["axis"]), range(joint));
                movable.origin = before * movable.origin;
                before = Isometry3::identity();
                joints.push(movable);
            }
            other => panic!("joint type {other:?}"),
        }
    }
    let count = joints.len();
    let joints = joints
        .try_into()
        .unwrap_or_else(|_| panic!("{count} joints, not {N}"));
    Chain::new(joints, before)
}

fn compare(got: &Pose<ArmBase, Tcp>, case: &Value) -> Result<(), String> {
    let position = got.position() - nalgebra::Vector3::from(numbers::<3>(&case["xyz"]));
    if position.norm() > CLOSE {
        return Err(format!("position off by {:e} m", position.norm()));
    }
    let expected = admit_quat_wxyz(numbers(&case["quat_wxyz"])).expect("a rotation");
    let angle = angle_between(got.rotation(), expected);
    if angle > CLOSE {
        return Err(format!("rotation off by {angle:e} rad"));
    }
    let matrix = Matrix4::from_row_slice(&numbers::<16>(&case["matrix_row_major"]));
    let off = (got.iso.to_homogeneous() - matrix).abs().max();
    if off > CLOSE {
        return Err(format!("matrix off by {off:e}"));
    }
    Ok(())
}

fn check<const N: usize>(variant: &Value, case: &Value) -> Result<(), String> {
    let chain = chain::<N>(variant);
    let q = numbers::<N>(&case["q"]);
    let tcp = chain.fk(&q);
    if chain.frames(&q).tcp != tcp {
        return Err("frames() and fk() disagree".into());
    }
    compare(&tcp, case)
}

/// For families whose arm has no constants of its own yet.
pub(crate) fn nothing_more(_: &Value) -> Result<(), String> {
    Ok(())
}

/// A checker for `<arm>_fk.jsonl`; `more` is asked about each case as well.
pub(crate) fn checker(dir: &Path, arm: &str, more: fn(&Value) -> Result<(), String>) -> Check {
    let description = companion(dir, &format!("{arm}_chain.json"));
    Box::new(move |case| {
        let name = case["variant"].as_str().expect("variant");
        let variant = &description["variants"][name];
        let checked = match case["q"].as_array().map(Vec::len) {
            _ if variant.is_null() => Err(format!("no variant {name} in the description")),
            Some(6) => check::<6>(variant, case),
            Some(7) => check::<7>(variant, case),
            other => Err(format!("{other:?} joints")),
        };
        match checked.and_then(|()| more(case)) {
            Ok(()) => Outcome::Same,
            Err(why) => Outcome::Failed(why),
        }
    })
}
