//! `piper_sdk_fk.jsonl`: the vendor's own forward kinematics, flange and links, both firmware generations.
//! `piper_fk.jsonl`: the vendor's robot description through a library.

use nalgebra::{Isometry3, UnitQuaternion, Vector3};
use serde_json::Value;
use telearm::arm::piper::model::{DhVariant, PiperModel};
use telearm::geometry::{admit_quat_wxyz, angle_between};

use crate::Outcome;
use crate::chains::{number, numbers};

/// The vendor's code prints six positions and angles in mm and degrees; both sides compute in `f64`.
const CLOSE_MM: f64 = 1e-9;
const CLOSE_RAD: f64 = 1e-9;
/// Beyond this |R20| the vendor's code does not compute the Euler angles, it sets pitch ±90 and yaw 0.
const SNAP: f64 = 0.9999;

/// One frame against its six numbers. `Ok(true)`: the vendor's angles were snapped, and its snap is what we compute for it.
fn compare(got: &Isometry3<f64>, expected: [f64; 6]) -> Result<bool, String> {
    let [x, y, z, roll, pitch, yaw] = expected;
    let off = (got.translation.vector * 1e3 - Vector3::new(x, y, z)).norm();
    if off > CLOSE_MM {
        return Err(format!("position off by {off:e} mm"));
    }
    let [roll, pitch, yaw] = [roll, pitch, yaw].map(f64::to_radians);
    let angle = angle_between(
        got.rotation,
        UnitQuaternion::from_euler_angles(roll, pitch, yaw),
    );
    if angle <= CLOSE_RAD {
        return Ok(false);
    }
    let m = got.rotation.to_rotation_matrix();
    let down = m[(2, 0)];
    if down.abs() < SNAP - 1e-12 {
        return Err(format!("rotation off by {angle:e} rad"));
    }
    // In the snapped band the vendor's numbers describe another rotation, up to 0.81 deg away. Ours must not; its must be the snap.
    let snapped_roll = m[(0, 1)].atan2(m[(1, 1)]) * -down.signum();
    let turn = (roll - snapped_roll).sin().abs();
    if yaw != 0.0 || (pitch.abs() - 90_f64.to_radians()).abs() > 1e-12 || turn > 1e-9 {
        return Err(format!(
            "neither the rotation nor its snap: off by {angle:e} rad"
        ));
    }
    Ok(true)
}

/// One line of `piper_sdk_fk.jsonl`.
pub(crate) fn check_sdk(case: &Value) -> Outcome {
    match sdk(case) {
        Ok(false) => Outcome::Same,
        Ok(true) => Outcome::ByRule(
            "the vendor's code snaps the Euler angles near the lock, ours keeps the rotation",
        ),
        Err(why) => Outcome::Failed(why),
    }
}

fn sdk(case: &Value) -> Result<bool, String> {
    let variant = match case["dh_is_offset"].as_u64() {
        Some(0) => DhVariant::Old,
        Some(1) => DhVariant::Offset,
        other => return Err(format!("dh_is_offset {other:?}")),
    };
    let model = PiperModel::new(variant);
    let q = numbers::<6>(&case["joints_deg"]).map(f64::to_radians);
    let frames = model.chain().frames(&q);
    let ([x, y, z], [a, b, c]) = (numbers(&case["xyz_mm"]), numbers(&case["rpy_deg"]));
    let mut snapped = compare(&frames.tcp.iso, [x, y, z, a, b, c])?;
    let links = case["links_xyz_mm_rpy_deg"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    for (i, (link, frame)) in links.iter().zip(&frames.links).enumerate() {
        snapped |= compare(frame, numbers(link)).map_err(|why| format!("link {}: {why}", i + 1))?;
    }
    // Where the inverse exists, it must lead back to these joints' pose.
    if model.chain().check_limits(&q).is_ok() {
        let all = model.ik_all(&frames.tcp, &q).map_err(|e| e.to_string())?;
        let nearest = all.iter().map(|s| {
            s.iter()
                .zip(&q)
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f64::max)
        });
        let nearest = nearest.fold(f64::INFINITY, f64::min);
        if nearest > 1e-6 {
            return Err(format!(
                "the inverse is {nearest:e} rad away from the joints"
            ));
        }
    }
    Ok(snapped)
}

/// Our constants against the vendor's robot description. That one rounds its angles to 0.0001 rad or so, at most 0.05 mm at the arm's
/// reach, and puts the flange 0.088 mm aside: together below 0.2 mm and 0.005 deg. The description of 2024 has other joint zeros and
/// signs than the arm reports, so it is no measure of our model.
pub(crate) fn check_against_description(case: &Value) -> Result<(), String> {
    let variant = match case["variant"].as_str() {
        Some("fw-from-S-V1.6-3") => DhVariant::Offset,
        Some("fw-before-S-V1.6-3") => DhVariant::Old,
        _ => return Ok(()),
    };
    let q = case["q"].as_array().expect("q").iter().map(number);
    let q: Vec<f64> = q.collect();
    let q: [f64; 6] = q.try_into().map_err(|_| "six joints".to_owned())?;
    let pose = PiperModel::new(variant).fk(&q);
    let off_mm = (pose.position() - Vector3::from(numbers::<3>(&case["xyz"]))).norm() * 1e3;
    let expected = admit_quat_wxyz(numbers(&case["quat_wxyz"])).expect("a rotation");
    let off_deg = angle_between(pose.rotation(), expected).to_degrees();
    if off_mm > 0.2 || off_deg > 0.005 {
        return Err(format!(
            "our model is {off_mm} mm, {off_deg} deg from the description"
        ));
    }
    Ok(())
}
