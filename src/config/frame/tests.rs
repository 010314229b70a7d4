use nalgebra::{UnitQuaternion, Vector3};

use super::*;
use crate::geometry::{AxisMap, Pose};
use crate::time::Stamp;

/// A hand in a device's own axes, sent at 50 Hz through an axis map.
struct Sender {
    wizard: Wizard,
    map: AxisMap,
    at_ms: u64,
}

impl Sender {
    fn new(map: AxisMap) -> Self {
        Self {
            wizard: Wizard::new(Stamp::from_ms(0)),
            map,
            at_ms: 0,
        }
    }

    fn send(&mut self, position: Vector3<f64>, rotation: UnitQuaternion<f64>) -> Step {
        self.at_ms += 20;
        self.wizard.see(Seen {
            at: Stamp::from_ms(self.at_ms),
            pose: Some(Pose::from_parts(
                self.map.vector(position),
                self.map.rotation(rotation),
            )),
        })
    }

    fn lose(&mut self) -> Step {
        self.at_ms += 20;
        self.wizard.see(Seen {
            at: Stamp::from_ms(self.at_ms),
            pose: None,
        })
    }

    /// Rest, push along `push`, rest, turn by `turn` (axis times angle), all in the device's axes.
    fn story(&mut self, push: Vector3<f64>, turn: Vector3<f64>) -> Step {
        let start = Vector3::new(0.3, 1.2, -0.4);
        let rotation = UnitQuaternion::from_euler_angles(0.2, -0.4, 0.1);
        for _ in 0..60 {
            self.send(start, rotation);
        }
        for i in 0..=50 {
            self.send(start + push * (f64::from(i) / 50.0), rotation);
        }
        for _ in 0..60 {
            self.send(start + push, rotation);
        }
        for i in 0..=50 {
            let turn = UnitQuaternion::from_scaled_axis(turn * (f64::from(i) / 50.0));
            self.send(start + push, turn * rotation);
        }
        self.wizard.step()
    }
}

/// What a right-handed OpenXR sender sends for forward and left: Z back, Y up.
const OPENXR: (Vector3<f64>, Vector3<f64>) =
    (Vector3::new(0.0, 0.0, -0.2), Vector3::new(0.0, 1.0, 0.0));
/// What a left-handed Unity sender sends: Z forward; turning left is negative about Y.
const UNITY: (Vector3<f64>, Vector3<f64>) =
    (Vector3::new(0.0, 0.0, 0.2), Vector3::new(0.0, -1.0, 0.0));

/// Guards: each sender agrees with its own frame and comes mirrored through the other one.
#[test]
fn both_senders_through_both_maps() {
    for (map, sender, verdict) in [
        (AxisMap::OPENXR_RH, OPENXR, Verdict::Agrees),
        (AxisMap::UNITY_LH, UNITY, Verdict::Agrees),
        (AxisMap::OPENXR_RH, UNITY, Verdict::Mirrored),
        (AxisMap::UNITY_LH, OPENXR, Verdict::Mirrored),
    ] {
        let step = Sender::new(map).story(sender.0, sender.1);
        assert_eq!(step, Step::Done(verdict), "{map:?}");
    }
}

/// Guards: a sender that converted only one half is refused for good, whatever the frame.
#[test]
fn half_converted_is_mixed() {
    for map in [AxisMap::OPENXR_RH, AxisMap::UNITY_LH] {
        assert_eq!(
            Sender::new(map).story(OPENXR.0, UNITY.1),
            Step::Done(Verdict::Mixed)
        );
        assert_eq!(
            Sender::new(map).story(UNITY.0, OPENXR.1),
            Step::Done(Verdict::Mixed)
        );
    }
}

/// Guards: motions that say nothing (sideways, a nod) are not taken for an answer.
#[test]
fn unclear_motions_prove_nothing() {
    let map = AxisMap::OPENXR_RH;
    assert_eq!(
        Sender::new(map).story(Vector3::new(0.2, 0.0, -0.02), OPENXR.1),
        Step::Done(Verdict::NotForward)
    );
    assert_eq!(
        Sender::new(map).story(OPENXR.0, Vector3::new(1.0, 0.2, 0.0)),
        Step::Done(Verdict::NotVertical)
    );
}

/// Guards: a hand that gets lost in the middle of the push starts again from rest, so the jump of its return is not taken for a push.
#[test]
fn loss_starts_the_motion_again() {
    let mut sender = Sender::new(AxisMap::OPENXR_RH);
    for _ in 0..60 {
        sender.send(Vector3::zeros(), UnitQuaternion::identity());
    }
    assert_eq!(sender.wizard.step(), Step::Push);
    assert_eq!(sender.lose(), Step::Rest);
    let away = Vector3::new(0.0, 0.0, -0.5);
    assert_eq!(sender.send(away, UnitQuaternion::identity()), Step::Rest);
}

/// Guards: it ends by itself, and a verdict does not change any more.
#[test]
fn gives_up_and_stays() {
    let mut sender = Sender::new(AxisMap::OPENXR_RH);
    for _ in 0..3001 {
        sender.lose();
    }
    assert_eq!(sender.wizard.step(), Step::Done(Verdict::TimedOut));
    assert_eq!(
        sender.story(OPENXR.0, OPENXR.1),
        Step::Done(Verdict::TimedOut)
    );
}

/// Guards: the store keeps operator, device and frame apart, survives a restart, and forgets the frame that the device no longer uses.
#[test]
fn store_remembers() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("deep/er");
    let mut store = FrameStore::load_from(&dir).unwrap();
    assert!(!store.is_verified("right", "rctp", "openxr_rh"));
    store.record("right", "rctp", "openxr_rh", true).unwrap();
    store.record("left", "rctp", "unity_lh", true).unwrap();
    let store = FrameStore::load_from(&dir).unwrap();
    assert!(store.is_verified("right", "rctp", "openxr_rh"));
    assert!(!store.is_verified("right", "rctp", "unity_lh"));
    assert!(!store.is_verified("left", "rctp", "openxr_rh"));
    let mut store = store;
    store.record("right", "rctp", "unity_lh", true).unwrap();
    assert!(!store.is_verified("right", "rctp", "openxr_rh"));
    store.record("left", "rctp", "unity_lh", false).unwrap();
    let store = FrameStore::load_from(&dir).unwrap();
    assert!(store.is_verified("right", "rctp", "unity_lh"));
    assert!(!store.is_verified("left", "rctp", "unity_lh"));
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
}

/// Guards: a damaged store is an error with its path, never "everything is verified".
#[test]
fn damaged_store_is_said() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("verified_frames.toml"), "verified = 3").unwrap();
    let error = FrameStore::load_from(dir.path()).unwrap_err().to_string();
    assert!(error.contains("damaged") && error.contains("verified_frames.toml"));
}
