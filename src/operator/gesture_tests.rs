//! A fake clock steps a scripted hand through whole gestures.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::unwrap_used
)]

use super::*;

/// A hand that is scripted in pieces of (milliseconds, opening, speed m/s along x, turn rate deg/s about z), sampled at 50 Hz with a
/// deterministic 1 mm shake.
struct Hand {
    gesture: Gesture,
    now_ms: u64,
    x: f64,
    yaw_deg: f64,
    engaged: Vec<(u64, Engaged)>,
}

impl Hand {
    fn new(by: EngageBy) -> Self {
        Self {
            gesture: Gesture::new(by),
            now_ms: 10_000,
            x: 0.0,
            yaw_deg: 0.0,
            engaged: Vec::new(),
        }
    }

    fn play(&mut self, ms: u64, opening: f64, speed: f64, turn: f64) -> &mut Self {
        for _ in 0..ms / 20 {
            self.now_ms += 20;
            self.x += speed * 0.02;
            self.yaw_deg += turn * 0.02;
            let shake = 0.0007 * ((self.now_ms * 7919) as f64).sin();
            let look = Look {
                position: Vector3::new(self.x + shake, shake, -shake),
                rotation: UnitQuaternion::from_euler_angles(0.0, shake, self.yaw_deg.to_radians()),
                opening: Opening::clamped(opening),
                at: Stamp::from_ms(self.now_ms),
            };
            if let Some(engaged) = self.gesture.look(&look) {
                self.engaged.push((self.now_ms, engaged));
            }
        }
        self
    }

    fn lost(&mut self) -> &mut Self {
        self.gesture.lost();
        self
    }

    fn count(&self) -> usize {
        self.engaged.len()
    }
}

/// Guards: the full gesture fires once, at the opening, and names the closing as its beginning.
#[test]
fn pinch_hold_fires_once() {
    let mut hand = Hand::new(EngageBy::PinchHold);
    hand.play(500, 1.0, 0.0, 0.0);
    let closing_ms = hand.now_ms + 20;
    hand.play(800, 0.05, 0.0, 0.0);
    assert_eq!(hand.count(), 0, "not while closed");
    hand.play(60, 0.4, 0.0, 0.0);
    let opening_ms = hand.now_ms + 20;
    hand.play(1000, 0.9, 0.0, 0.0);
    assert_eq!(
        hand.engaged,
        [(
            opening_ms,
            Engaged {
                began: Stamp::from_ms(closing_ms)
            }
        )]
    );
}

/// Guards: everything that is not the gesture: too short, on the move, turning, half open, starting closed, opened too slowly.
#[test]
fn near_misses_do_not_fire() {
    type Script = &'static [(u64, f64, f64, f64)];
    let scripts: &[(&str, Script)] = &[
        (
            "too short",
            &[
                (300, 1.0, 0.0, 0.0),
                (540, 0.0, 0.0, 0.0),
                (500, 1.0, 0.0, 0.0),
            ],
        ),
        (
            "moving",
            &[
                (300, 1.0, 0.0, 0.0),
                (1500, 0.0, 0.1, 0.0),
                (500, 1.0, 0.0, 0.0),
            ],
        ),
        (
            "turning",
            &[
                (300, 1.0, 0.0, 0.0),
                (1500, 0.0, 0.0, 40.0),
                (500, 1.0, 0.0, 0.0),
            ],
        ),
        (
            "half closed",
            &[
                (300, 1.0, 0.0, 0.0),
                (1500, 0.3, 0.0, 0.0),
                (500, 1.0, 0.0, 0.0),
            ],
        ),
        (
            "half opened",
            &[
                (300, 1.0, 0.0, 0.0),
                (1500, 0.1, 0.0, 0.0),
                (500, 0.5, 0.0, 0.0),
            ],
        ),
        (
            "started closed",
            &[(1500, 0.1, 0.0, 0.0), (500, 1.0, 0.0, 0.0)],
        ),
        (
            "started half open",
            &[
                (300, 0.5, 0.0, 0.0),
                (1500, 0.1, 0.0, 0.0),
                (500, 1.0, 0.0, 0.0),
            ],
        ),
        (
            "opened slowly",
            &[
                (300, 1.0, 0.0, 0.0),
                (800, 0.1, 0.0, 0.0),
                (800, 0.4, 0.0, 0.0),
                (500, 1.0, 0.0, 0.0),
            ],
        ),
        (
            "carried off",
            &[
                (300, 1.0, 0.0, 0.0),
                (900, 0.1, 0.0, 0.0),
                (400, 0.1, 0.3, 0.0),
                (500, 1.0, 0.0, 0.0),
            ],
        ),
    ];
    for (name, script) in scripts {
        let mut hand = Hand::new(EngageBy::PinchHold);
        for &(ms, opening, speed, turn) in *script {
            hand.play(ms, opening, speed, turn);
        }
        assert_eq!(hand.count(), 0, "{name}");
    }
}

/// Guards: motion during the hold only restarts the dwell; the beginning stays the closing.
#[test]
fn settling_after_motion_counts() {
    let mut hand = Hand::new(EngageBy::PinchHold);
    hand.play(300, 1.0, 0.0, 0.0);
    let closing_ms = hand.now_ms + 20;
    hand.play(500, 0.1, 0.3, 0.0)
        .play(1500, 0.1, 0.0, 0.0)
        .play(200, 1.0, 0.0, 0.0);
    assert_eq!(hand.engaged.len(), 1);
    assert_eq!(hand.engaged[0].1.began, Stamp::from_ms(closing_ms));
}

/// Guards: losing the hand, or a pause of the stream, at any moment of the gesture kills it.
#[test]
fn loss_at_any_moment_kills_the_gesture() {
    for at_ms in (20..1180).step_by(20) {
        let mut lost = Hand::new(EngageBy::PinchHold);
        let mut paused = Hand::new(EngageBy::PinchHold);
        lost.play(300, 1.0, 0.0, 0.0)
            .play(at_ms.min(880), 0.1, 0.0, 0.0);
        paused
            .play(300, 1.0, 0.0, 0.0)
            .play(at_ms.min(880), 0.1, 0.0, 0.0);
        lost.lost();
        paused.now_ms += 200;
        let rest_ms = 880u64.saturating_sub(at_ms);
        lost.play(rest_ms, 0.1, 0.0, 0.0).play(500, 1.0, 0.0, 0.0);
        paused.play(rest_ms, 0.1, 0.0, 0.0).play(500, 1.0, 0.0, 0.0);
        assert_eq!((lost.count(), paused.count()), (0, 0), "{at_ms}");
    }
}

/// Guards: a burst (equal stamps) neither divides by zero nor fakes motion or rest.
#[test]
fn equal_stamps_are_harmless() {
    let mut meter = RestMeter::default();
    let look = |x: f64| Look {
        position: Vector3::new(x, 0.0, 0.0),
        rotation: UnitQuaternion::identity(),
        opening: None,
        at: Stamp::from_ms(5),
    };
    assert_eq!(meter.is_at_rest(&look(0.0)), None);
    assert_eq!(meter.is_at_rest(&look(0.001)), Some(true));
    assert_eq!(meter.is_at_rest(&look(0.05)), Some(false));
}

/// Guards: `rest` fires after its dwell, not again without motion in between, not again merely because the hand was lost.
#[test]
fn rest_fires_once_per_rest() {
    let mut hand = Hand::new(EngageBy::Rest);
    hand.play(700, 1.0, 0.0, 0.0);
    assert_eq!(hand.count(), 0);
    hand.play(3000, 1.0, 0.0, 0.0);
    assert_eq!(hand.count(), 1);
    assert!(hand.engaged[0].1.began <= Stamp::from_ms(10_060));
    hand.lost().play(3000, 1.0, 0.0, 0.0);
    assert_eq!(hand.count(), 1, "lost is no motion");
    hand.play(500, 1.0, 0.3, 0.0).play(2000, 1.0, 0.0, 0.0);
    assert_eq!(hand.count(), 2);
}

/// Guards: the clutch presses when closed, lets go early, and lets go when nothing is seen.
#[test]
fn clutch_is_hold_to_run() {
    let mut hand = Hand::new(EngageBy::Clutch);
    let pressed = |hand: &mut Hand, opening| {
        hand.play(20, opening, 0.0, 0.0);
        hand.gesture.clutch_pressed().unwrap()
    };
    assert_eq!(hand.gesture.clutch_pressed(), Some(false));
    assert!(!pressed(&mut hand, 0.3));
    assert!(pressed(&mut hand, 0.2));
    assert!(pressed(&mut hand, 0.4));
    assert!(!pressed(&mut hand, 0.41));
    assert!(!pressed(&mut hand, 0.3), "has to close fully again");
    assert!(pressed(&mut hand, 0.1));
    assert!(!pressed(&mut hand, f64::NAN), "no value");
    assert!(pressed(&mut hand, 0.1));
    hand.now_ms += 1000;
    assert!(!pressed(&mut hand, 0.3), "after a pause");
    assert!(pressed(&mut hand, 0.1));
    hand.lost();
    assert_eq!(hand.gesture.clutch_pressed(), Some(false));
}
