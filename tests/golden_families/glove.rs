//! `fnim.jsonl`, `fsnh.jsonl` (single packets) and `fnim_seq.jsonl` (sequences under a fake clock).
//!
//! The readers state the rules of the families, not the cases: any further line of the same shape is judged the same way.

use serde_json::Value;
use telearm::geometry::admit_quat_wxyz;
use telearm::operator::glove::session::DROP_REASONS;
use telearm::operator::glove::wire::{AnyFrame, Flaw, Header, Reject, fnim, fsnh, parse_any};
use telearm::operator::glove::{Fingers, Hand, Session, Settings};
use telearm::operator::{Body, DatagramSession};
use telearm::signal::{OperatorSample, Quality};
use telearm::time::Stamp;

use crate::rctp::unhex;

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    let text = value[key].as_str();
    text.unwrap_or_else(|| panic!("{key}: string"))
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().expect("array of numbers");
    list.iter().map(|v| v.as_f64().expect("number")).collect()
}

/// The file's numbers are exact as `f32`.
fn assert_same_f32(what: &str, got: &[f32], expect: &Value) {
    let expect: Vec<f32> = numbers(expect).into_iter().map(|v| v as f32).collect();
    assert_eq!(got, expect, "{what}");
}

fn assert_near(what: &str, got: &[f64], expect: &Value, within: f64) {
    let expect = numbers(expect);
    assert_eq!(got.len(), expect.len(), "{what}");
    for (g, e) in got.iter().zip(&expect) {
        assert!((g - e).abs() <= within, "{what}: {got:?}, not {expect:?}");
    }
}

fn settings(hand: Hand) -> Settings {
    Settings {
        experimental_fsnh: true,
        ..Settings::on_loopback(0, hand)
    }
}

/// What a session that has seen nothing makes of a packet.
fn fresh_sample(bytes: &[u8], hand: Hand) -> Option<OperatorSample> {
    let mut session = Session::new(&settings(hand));
    match session.on_datagram(bytes, Stamp::from_ms(1)).body {
        Body::Sample(sample) => Some(sample),
        Body::Drop(_) => None,
    }
}

/// A refused packet: by its codec under the expected name; and by the session of either hand, unless it is a good packet of the other
/// protocol, which shares the port.
fn check_drop(bytes: &[u8], reject: Reject, expect: &Value) {
    assert_eq!(text(expect, "kind"), "drop");
    assert_eq!(text(expect, "action"), "drop");
    assert_eq!(text(expect, "reason"), DROP_REASONS[reject as usize]);
    if parse_any(bytes).is_ok() {
        return;
    }
    for hand in [Hand::Left, Hand::Right] {
        assert_eq!(fresh_sample(bytes, hand), None, "the session refuses it");
        assert!(!Session::new(&settings(hand)).claims(bytes), "nobody's");
    }
}

fn check_header(header: &Header, expect: &Value) {
    assert_eq!(text(expect, "kind"), "frame");
    assert_eq!(text(expect, "hand"), header.hand.name());
    assert_eq!(
        expect["frame_number"].as_u64(),
        Some(header.frame_number.into())
    );
    assert_eq!(expect["timestamp_ns"].as_u64(), Some(header.sender_time_ns));
}

/// The packet is its own hand's: that session takes it, usable or not as expected, and the other hand's does not.
fn check_session(bytes: &[u8], hand: Hand, expect: &Value) -> OperatorSample {
    let other = if hand == Hand::Left {
        Hand::Right
    } else {
        Hand::Left
    };
    assert_eq!(fresh_sample(bytes, other), None, "the other hand");
    assert!(!Session::new(&settings(other)).claims(bytes));
    assert!(Session::new(&settings(hand)).claims(bytes));
    let sample = fresh_sample(bytes, hand).expect("accepted by a fresh session");
    let action = match sample.quality {
        Quality::Good => "apply",
        _ => "hold",
    };
    assert_eq!(text(expect, "action"), action);
    // A glove has no place in the room, and a clutch is never held by the first packet that is seen.
    assert_eq!((sample.pose, sample.clutch_pressed), (None, Some(false)));
    sample
}

/// A part of a packet: used as expected, or not used for the expected reason.
fn check_part<T: Copy>(what: &str, got: Result<T, Flaw>, expect: &Value, check: impl Fn(T)) {
    assert_eq!(expect["ok"].as_bool(), Some(got.is_ok()), "{what}: ok");
    match got {
        Ok(part) => check(part),
        Err(flaw) => assert_eq!(flaw.name(), text(expect, "why"), "{what}"),
    }
}

/// One line of `fnim.jsonl`.
pub(crate) fn check_fnim(line: &Value) {
    let (bytes, expect) = (unhex(text(line, "hex")), &line["expect"]);
    let frame = match fnim::parse(&bytes) {
        Ok(frame) => frame,
        Err(reject) => return check_drop(&bytes, reject, expect),
    };
    check_header(&frame.header, expect);
    let slots = expect["slots"].as_object().expect("slots");
    assert_eq!(slots.len(), fnim::SLOTS);
    for (name, got) in fnim::SLOT_NAMES.iter().zip(frame.slots) {
        let expect = &slots[*name];
        check_part(name, got, expect, |slot| {
            assert_same_f32(name, &slot.position_mm, &expect["pos_mm"]);
            assert_same_f32(name, &slot.orientation_wxyz, &expect["quat_wxyz"]);
            let unit = admit_quat_wxyz(slot.orientation_wxyz.map(f64::from));
            let unit = unit.expect("judged by the codec already");
            let wxyz = [unit.w, unit.i, unit.j, unit.k];
            assert_near(name, &wxyz, &expect["quat_unit_wxyz"], 1e-6);
        });
    }
    check_imu(&frame.imu, &expect["imu"]);
    let sample = check_session(&bytes, frame.header.hand, expect);
    // Thumb and index both usable, or no aperture and a gripper that is left alone.
    let settings = settings(frame.header.hand);
    let fingers = Fingers::of(&AnyFrame::Fnim(frame), settings.fsnh_tips);
    match expect.get("thumb_index_mm").and_then(Value::as_f64) {
        Some(expect) => {
            let got = fingers.aperture_mm.expect("an aperture");
            assert!((got - expect).abs() < 1e-3, "aperture {got}, not {expect}");
        }
        None => assert_eq!(fingers.aperture_mm, None),
    }
    assert_eq!(sample.opening, settings.calibration.opening(&fingers));
}

fn check_imu(got: &fnim::Imu, expect: &Value) {
    let (ok, why) = match got {
        fnim::Imu::Good {
            acceleration_m_s2,
            rate_rad_s,
        } => {
            assert_same_f32("acceleration", acceleration_m_s2, &expect["accel_mps2"]);
            assert_same_f32("rate", rate_rad_s, &expect["gyro_radps"]);
            (true, None)
        }
        fnim::Imu::Absent => (false, Some("absent")),
        fnim::Imu::Nonfinite => (false, Some("nonfinite")),
    };
    assert_eq!(expect["ok"].as_bool(), Some(ok));
    assert_eq!(expect.get("why").and_then(Value::as_str), why);
}

/// One line of `fsnh.jsonl`.
pub(crate) fn check_fsnh(line: &Value) {
    let (bytes, expect) = (unhex(text(line, "hex")), &line["expect"]);
    let frame = match fsnh::parse(&bytes) {
        Ok(frame) => frame,
        Err(reject) => return check_drop(&bytes, reject, expect),
    };
    check_header(&frame.header, expect);
    let hand = frame.header.hand;
    let joints = expect["joints"].as_array().expect("joints");
    assert_eq!(expect["joint_count"].as_u64(), Some(joints.len() as u64));
    assert_eq!(frame.joints().len(), joints.len());
    let has_forearm = frame.joints().len() == fsnh::JOINTS_MAX;
    assert_eq!(expect["has_forearm"].as_bool(), Some(has_forearm));
    for (i, (got, expect)) in frame.joints().iter().zip(joints).enumerate() {
        let what = format!("joint {i}");
        check_part(&what, *got, expect, |joint| {
            assert_same_f32(&what, &joint.position_m, &expect["pos_m"]);
            assert_same_f32(&what, &joint.orientation_wxyz, &expect["quat_wxyz"]);
            let turned = joint.right_forward_up(hand);
            let (p, q) = (turned.position_m.map(f64::from), turned.orientation_wxyz);
            assert_near(&what, &p, &expect["rfu_pos_m"], 1e-6);
            assert_near(&what, &q.map(f64::from), &expect["rfu_quat_wxyz"], 1e-6);
        });
    }
    check_session(&bytes, hand, expect);
    let off = Settings::on_loopback(0, hand);
    let verdict = Session::new(&off).on_datagram(&bytes, Stamp::from_ms(1));
    let refused = DROP_REASONS.iter().position(|r| *r == "fsnh_off");
    assert_eq!(
        verdict.body,
        Body::Drop(refused.expect("a reason") as u8),
        "experimental: off unless the plan says so"
    );
}

/// One line of `fnim_seq.jsonl`: both hands' sessions at one port, each step taken by the hand that claims it (or else by the first).
///
/// A new edge is needed (`rearm_needed`) after a new sender session of either hand.
pub(crate) fn check_sequence(line: &Value) {
    let mut hands = [Hand::Left, Hand::Right].map(|hand| Session::new(&settings(hand)));
    for (i, step) in line["steps"].as_array().expect("steps").iter().enumerate() {
        let now = Stamp::from_ms(step["t_recv_ms"].as_u64().expect("time"));
        let bytes = unhex(text(step, "hex"));
        let taker = hands.iter().position(|s| s.claims(&bytes)).unwrap_or(0);
        let session = &mut hands[taker];
        let sessions_before = session.edges().session;
        let verdict = session.on_datagram(&bytes, now);
        let got = match verdict.body {
            Body::Drop(reason) => format!("drop:{}", DROP_REASONS[usize::from(reason)]),
            Body::Sample(sample) if sample.quality == Quality::Untracked => "untracked".to_owned(),
            Body::Sample(_) if session.edges().session != sessions_before => {
                "accept:restart".to_owned()
            }
            Body::Sample(_) => "accept".to_owned(),
        };
        assert_eq!(got, text(step, "expect"), "step {i}");
    }
    for (key, expect) in line["final"].as_object().expect("final") {
        match key.as_str() {
            "lost" => {
                for (hand, expect) in expect.as_object().expect("lost of each hand") {
                    let session = &hands[usize::from(hand == "right")];
                    assert_eq!(Some(session.counts().lost), expect.as_u64(), "lost {hand}");
                }
            }
            "rearm_needed" => {
                let got = hands.iter().any(|s| s.edges().session > 0);
                assert_eq!(Some(got), expect.as_bool(), "rearm_needed");
            }
            // Neither protocol has a stop bit.
            "estop" => assert_eq!(expect.as_bool(), Some(false)),
            other => panic!("unknown key in final: {other}"),
        }
    }
}
