//! `rctp.jsonl` (single packets) and `rctp_seq.jsonl` (sequences under a fake clock).
//!
//! The readers state the rules of the families, not the cases: any further line of the same shape is judged the same way.

use serde_json::Value;
use telearm::geometry::admit_quat_wxyz;
use telearm::operator::rctp::session::DROP_REASONS;
use telearm::operator::rctp::wire::{self, Body as WireBody};
use telearm::operator::rctp::{Frame, Session, Settings};
use telearm::operator::{Body, DatagramSession};
use telearm::signal::{OperatorSample, Quality};
use telearm::time::{Span, Stamp};

/// Bytes of a hex string.
pub(crate) fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "odd hex");
    (0..text.len() / 2)
        .map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hex digits"))
        .collect()
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().expect("array of numbers");
    list.iter().map(|v| v.as_f64().expect("number")).collect()
}

/// The file's numbers are exact, but the JSON reader may be off by one unit in the last place of an `f64`; as `f32` they are exact again.
fn numbers_f32(value: &Value) -> Vec<f32> {
    numbers(value).into_iter().map(|v| v as f32).collect()
}

/// Equal up to the JSON reader's last place.
fn is_same_f64(got: f64, expect: f64) -> bool {
    (got - expect).abs() <= expect.abs() * f64::EPSILON
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key]
        .as_str()
        .unwrap_or_else(|| panic!("{key}: string"))
}

fn same(
    what: &str,
    got: impl PartialEq + std::fmt::Debug + Copy,
    expect: impl Into<Value>,
    as_value: Value,
) {
    let expect = expect.into();
    assert_eq!(as_value, expect, "{what}: got {got:?}");
}

fn near(what: &str, got: &[f64], expect: &[f64], within: f64) {
    assert_eq!(got.len(), expect.len(), "{what}");
    for (g, e) in got.iter().zip(expect) {
        assert!(
            (g - e).abs() <= within,
            "{what}: got {got:?}, expected {expect:?}"
        );
    }
}

/// A sample from a fresh session with the packet's axes read as `frame` says.
fn fresh_sample(bytes: &[u8], frame: Frame) -> Option<OperatorSample> {
    let mut session = Session::new(&Settings {
        frame,
        ..Settings::on_loopback(0)
    });
    match session.on_datagram(bytes, Stamp::from_ms(1)).body {
        Body::Sample(sample) => Some(sample),
        Body::Drop(_) => None,
    }
}

/// One line of `rctp.jsonl`.
pub(crate) fn check_packet(line: &Value) {
    let bytes = unhex(text(line, "hex"));
    let expect = &line["expect"];
    let parsed = wire::parse(&bytes);
    assert_eq!(
        parsed.stop,
        expect["estop"].as_bool().expect("estop"),
        "stop bit"
    );
    let (kind, calm_action) = match parsed.body {
        WireBody::Pose(_) => ("pose", "apply"),
        WireBody::Untracked { .. } => ("untracked", "hold"),
        WireBody::Reject(_) => ("drop", "drop"),
    };
    assert_eq!(kind, text(expect, "kind"));
    let action = if parsed.stop { "estop" } else { calm_action };
    assert_eq!(action, text(expect, "action"));

    if let WireBody::Reject(reason) = parsed.body {
        assert_eq!(DROP_REASONS[reason as usize], text(expect, "reason"));
        assert_eq!(
            fresh_sample(&bytes, Frame::OpenxrRh),
            None,
            "the session refuses it too"
        );
        return;
    }
    same(
        "flags",
        parsed.flags,
        expect["flags"].clone(),
        parsed.flags.0.into(),
    );
    same(
        "reserved",
        parsed.flags,
        expect["reserved_bits"].clone(),
        parsed.flags.reserved().into(),
    );
    same(
        "tracking",
        parsed.flags,
        expect["tracking"].clone(),
        parsed.flags.is_tracked().into(),
    );
    let sample = fresh_sample(&bytes, Frame::OpenxrRh).expect("accepted by a fresh session");
    let WireBody::Pose(pose) = parsed.body else {
        assert_eq!(
            (sample.quality, sample.pose, sample.opening),
            (Quality::Untracked, None, None)
        );
        return;
    };

    assert_eq!(sample.quality, Quality::Good);
    let trailing = bytes.len() - wire::PACKET_LEN;
    same(
        "trailing",
        trailing,
        expect["trailing_bytes"].clone(),
        trailing.into(),
    );
    assert!(is_same_f64(
        pose.sender_time_s,
        expect["timestamp_s"].as_f64().expect("time")
    ));
    assert_eq!(
        pose.position_m[..],
        numbers_f32(&expect["pos_m"])[..],
        "exact f32 values"
    );
    assert_eq!(
        pose.orientation_xyzw[..],
        numbers_f32(&expect["quat_xyzw"])[..],
        "exact f32 values"
    );
    let [x, y, z, w] = pose.orientation_xyzw.map(f64::from);
    let unit = admit_quat_wxyz([w, x, y, z]).expect("judged by the codec already");
    near(
        "unit quaternion",
        unit.coords.as_slice(),
        &numbers(&expect["quat_unit_xyzw"]),
        1e-6,
    );
    let (_, raw) = wire::read(&bytes).expect("long enough");
    assert_eq!(
        raw.gripper,
        expect["gripper_raw"].as_f64().expect("raw gripper") as f32
    );
    assert_eq!(sample.opening, pose.gripper.opening());
    let opening = sample.opening.map(|o| o.get() as f32);
    let expect_opening = expect["gripper"].as_f64().map(|o| o as f32);
    assert_eq!(opening, expect_opening, "null leaves the gripper alone");
    check_frame(&bytes, Frame::OpenxrRh, &expect["robot_flu_if_openxr_rh"]);
    check_frame(&bytes, Frame::UnityLh, &expect["robot_flu_if_unity_lh"]);
}

fn check_frame(bytes: &[u8], frame: Frame, expect: &Value) {
    let sample = fresh_sample(bytes, frame).expect("accepted");
    let pose = sample.pose.expect("a pose");
    near(
        "position",
        pose.position().as_slice(),
        &numbers(&expect["pos_m"]),
        1e-6,
    );
    // q and -q are one rotation; a session chooses the sign itself.
    let rotation = pose.rotation();
    let expect = numbers(&expect["quat_xyzw"]);
    let dot: f64 = rotation
        .coords
        .iter()
        .zip(&expect)
        .map(|(a, b)| a * b)
        .sum();
    let signed: Vec<f64> = rotation.coords.iter().map(|c| c * dot.signum()).collect();
    near("rotation", &signed, &expect, 1e-6);
}

/// One line of `rctp_seq.jsonl`.
///
/// A new edge is needed (`rearm_needed`) after a stop bit, after a new sender session, or when more than 500 ms passed without a usable
/// pose, at any time or at the end; a clutch reset is a new reference, announced or still to come because the pose is not usable yet.
pub(crate) fn check_sequence(line: &Value) {
    let settings = Settings::on_loopback(0);
    let mut session = Session::new(&settings);
    let mut stop = false;
    let mut lost = false;
    let mut usable_at: Option<Stamp> = None;
    let mut now = Stamp::default();
    let mut last: Option<OperatorSample> = None;
    for (i, step) in line["steps"].as_array().expect("steps").iter().enumerate() {
        now = Stamp::from_ms(step["t_recv_ms"].as_u64().expect("time"));
        let sessions_before = session.edges().session;
        let verdict = session.on_datagram(&unhex(text(step, "hex")), now);
        stop |= verdict.stop;
        let restarted = session.edges().session != sessions_before;
        let got = match verdict.body {
            Body::Drop(reason) => format!("drop:{}", DROP_REASONS[usize::from(reason)]),
            Body::Sample(sample) if sample.quality == Quality::Untracked => "untracked".to_owned(),
            Body::Sample(_) if restarted => "accept:restart".to_owned(),
            Body::Sample(_) => "accept".to_owned(),
        };
        assert_eq!(got, text(step, "expect"), "step {i}");
        if let Body::Sample(sample) = verdict.body {
            if sample.pose.is_some() {
                lost |= usable_at.is_some_and(|at| now.age_of(at) > settings.door.disengage_after);
                usable_at = Some(now);
            }
            last = Some(sample);
        }
    }
    lost |= usable_at.is_none_or(|at| now.age_of(at) > Span::from_ms(500));
    let edges = session.edges();
    for (key, expect) in line["final"].as_object().expect("final") {
        let got: Value = match key.as_str() {
            "estop" => stop.into(),
            "rearm_needed" => (stop || lost || edges.session > 0).into(),
            "lost" => lost.into(),
            "clutch_reset" => {
                (edges.reference > 0 || last.is_some_and(|s| s.quality != Quality::Good)).into()
            }
            "last_ts" => {
                let got = session.last_sender_time().map(|t| t.as_s());
                let expect = expect.as_f64();
                assert!(
                    got.zip(expect).is_some_and(|(g, e)| is_same_f64(g, e)),
                    "last_ts {got:?}"
                );
                continue;
            }
            other => panic!("unknown key in final: {other}"),
        };
        assert_eq!(&got, expect, "final {key}");
    }
}
