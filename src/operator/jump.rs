//! Jump gate: a pose that stepped further than a hand can is held back until the stream has settled somewhere.
//!
//! ```text
//!            first pose                     step too large
//!   Empty ───────────────► Following ───────────────────────────► Suspect{agreeing: 1}
//!     ▲                     ▲    │ ▲                                │      │      ▲
//!     │ reset               │    └─┘ step believable: Good          │      └──────┘
//!     │ (from anywhere)     │                                       │   agrees: agreeing + 1, Held
//!     └──────               └───────────────────────────────────────┘   does not: agreeing = 1, Held
//!                             agreeing == 3: NewReference
//! ```
//!
//! A step is believable if it is at most `step_max_m + speed_max_m_s * dt` and at most the same in angle, for *any* dt: there is no gap so
//! short that a jump hides in it. From Suspect there is deliberately no way back to the old place: the allowance grows with time, so an
//! old reference would sooner or later swallow the very jump that it was to stop.

use nalgebra::{UnitQuaternion, Vector3};

use crate::geometry::angle_between;
use crate::time::Stamp;

/// Samples that must agree with each other before they are a new reference, the first jumped one included.
pub const AGREEING_SAMPLES: u8 = 3;

/// What a hand can do at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JumpLimits {
    /// Always believable, metres.
    pub step_max_m: f64,
    /// Believable speed on top, m/s.
    pub speed_max_m_s: f64,
    /// Always believable, radians.
    pub turn_max_rad: f64,
    /// Believable rate of turn on top, rad/s.
    pub turn_rate_max_rad_s: f64,
}

impl Default for JumpLimits {
    /// 5 cm + 3 m/s, 15 degrees + 900 degrees/s.
    fn default() -> Self {
        Self {
            step_max_m: 0.05,
            speed_max_m_s: 3.0,
            turn_max_rad: 15f64.to_radians(),
            turn_rate_max_rad_s: 900f64.to_radians(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    position: Vector3<f64>,
    rotation: UnitQuaternion<f64>,
    at: Stamp,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Empty,
    Following(Seen),
    Suspect { seen: Seen, agreeing: u8 },
}

/// Verdict on one pose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateVerdict {
    /// Continues the motion so far, or is the first.
    Good,
    /// Jumped, or follows a jump and has not settled yet. `first` marks the jump itself.
    Held {
        /// This pose is the one that left the believed motion.
        first: bool,
    },
    /// The third pose that agrees since a jump: from here on motion counts from this pose.
    NewReference,
}

/// The gate of one pose stream.
#[derive(Debug, Clone, Copy)]
pub struct JumpGate {
    limits: JumpLimits,
    state: State,
}

impl JumpGate {
    /// An empty gate: the first pose passes.
    #[must_use]
    pub const fn new(limits: JumpLimits) -> Self {
        Self {
            limits,
            state: State::Empty,
        }
    }

    /// Forgets everything: the next pose passes. For a new session, where engaging starts afresh anyway.
    pub fn reset(&mut self) {
        self.state = State::Empty;
    }

    /// Judges a pose (metres, any fixed frame; either sign of the quaternion) received at `at`.
    pub fn admit(
        &mut self,
        position: Vector3<f64>,
        rotation: UnitQuaternion<f64>,
        at: Stamp,
    ) -> GateVerdict {
        let next = Seen {
            position,
            rotation,
            at,
        };
        match self.state {
            State::Empty => self.transition_to_following(next, GateVerdict::Good),
            State::Following(seen) if self.is_believable(&seen, &next) => {
                self.transition_to_following(next, GateVerdict::Good)
            }
            State::Following(_) => self.transition_to_suspect(next, 1, true),
            State::Suspect { seen, agreeing } if self.is_believable(&seen, &next) => {
                let agreeing = agreeing.saturating_add(1);
                if agreeing >= AGREEING_SAMPLES {
                    self.transition_to_following(next, GateVerdict::NewReference)
                } else {
                    self.transition_to_suspect(next, agreeing, false)
                }
            }
            State::Suspect { .. } => self.transition_to_suspect(next, 1, false),
        }
    }

    fn transition_to_following(&mut self, seen: Seen, verdict: GateVerdict) -> GateVerdict {
        self.state = State::Following(seen);
        verdict
    }

    fn transition_to_suspect(&mut self, seen: Seen, agreeing: u8, first: bool) -> GateVerdict {
        self.state = State::Suspect { seen, agreeing };
        GateVerdict::Held { first }
    }

    fn is_believable(&self, from: &Seen, to: &Seen) -> bool {
        let dt_s = to.at.age_of(from.at).as_s();
        let limits = &self.limits;
        let step_m = (to.position - from.position).norm();
        let turn_rad = angle_between(from.rotation, to.rotation);
        // Written so that a NaN is not believed.
        step_m <= limits.step_max_m + limits.speed_max_m_s * dt_s
            && turn_rad <= limits.turn_max_rad + limits.turn_rate_max_rad_s * dt_s
    }
}

/// Poses that were bit for bit the same for this many packets with advancing stamps are no hand.
pub const FROZEN_AFTER: u32 = 25;

/// Frozen-stream detector: a tracker that lost its hand but keeps repeating the last pose as valid. A real hand trembles.
#[derive(Debug, Clone, Copy, Default)]
pub struct FrozenDetector {
    last: Option<[u64; 7]>,
    same: u32,
}

impl FrozenDetector {
    /// Takes the next accepted pose; true if the stream is frozen. The quaternion's sign must be normalised by the caller.
    pub fn is_frozen(&mut self, position: Vector3<f64>, rotation: UnitQuaternion<f64>) -> bool {
        let (p, q) = (position, rotation.coords);
        let bits = [p.x, p.y, p.z, q.x, q.y, q.z, q.w].map(f64::to_bits);
        self.same = if self.last == Some(bits) {
            self.same.saturating_add(1)
        } else {
            1
        };
        self.last = Some(bits);
        self.same >= FROZEN_AFTER
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use GateVerdict::{Good, Held, NewReference};

    const JUMP: GateVerdict = Held { first: true };
    const STILL: GateVerdict = Held { first: false };

    fn gate() -> JumpGate {
        JumpGate::new(JumpLimits::default())
    }

    fn feed(gate: &mut JumpGate, x_m: f64, yaw_deg: f64, at_ms: u64) -> GateVerdict {
        let rotation = UnitQuaternion::from_euler_angles(0.0, 0.0, yaw_deg.to_radians());
        gate.admit(Vector3::new(x_m, 0.0, 0.0), rotation, Stamp::from_ms(at_ms))
    }

    /// Guards: a fast but human motion passes, in position and in angle.
    #[test]
    fn fast_hand_passes() {
        let mut gate = gate();
        for i in 0..50u32 {
            let t = f64::from(i) * 0.02;
            assert_eq!(
                feed(&mut gate, 2.5 * t, 800.0 * t, u64::from(i) * 20),
                Good,
                "{i}"
            );
        }
    }

    /// Guards: a jump is held, and becomes the new reference with the third sample that agrees.
    #[test]
    fn three_agreeing_samples_make_a_reference() {
        let mut gate = gate();
        assert_eq!(feed(&mut gate, 0.0, 0.0, 0), Good);
        assert_eq!(feed(&mut gate, 0.3, 0.0, 20), JUMP);
        assert_eq!(feed(&mut gate, 0.31, 0.0, 40), STILL);
        assert_eq!(feed(&mut gate, 0.32, 0.0, 60), NewReference);
        assert_eq!(feed(&mut gate, 0.33, 0.0, 80), Good);
    }

    /// Guards: a frame that flips by 90 degrees for 1..=20 packets is never followed across, out or back.
    #[test]
    fn flips_are_never_followed() {
        for flipped in 1..=20u64 {
            let mut gate = gate();
            let mut now_ms = 0;
            let mut last = (0.0, false);
            for i in 0..flipped + 40 {
                let yaw = if (10..10 + flipped).contains(&i) {
                    90.0
                } else {
                    0.0
                };
                now_ms += 20;
                let verdict = feed(&mut gate, 0.0, yaw, now_ms);
                let usable = matches!(verdict, Good | NewReference);
                if usable && last.1 && verdict == Good {
                    assert!((yaw - last.0).abs() < 1.0, "{flipped} {i}");
                }
                last = (yaw, usable);
            }
            assert!(last.1, "{flipped}: settles at the end");
        }
    }

    /// Guards: an old reference never swallows the jump with time; two places in turn are never believed.
    #[test]
    fn alternating_places_never_settle() {
        let mut gate = gate();
        feed(&mut gate, 0.0, 0.0, 0);
        for i in 1..100 {
            let x = if i % 2 == 1 { 0.3 } else { 0.0 };
            assert!(
                matches!(feed(&mut gate, x, 0.0, i * 20), Held { .. }),
                "{i}"
            );
        }
    }

    /// Guards: equal and falling stamps (bursts) leave the fixed allowance, not more and not less.
    #[test]
    fn burst_has_the_fixed_allowance() {
        let mut gate = gate();
        assert_eq!(feed(&mut gate, 0.0, 0.0, 100), Good);
        assert_eq!(feed(&mut gate, 0.049, 0.0, 100), Good);
        assert_eq!(feed(&mut gate, 0.09, 14.0, 90), Good);
        assert_eq!(feed(&mut gate, 0.15, 14.0, 90), JUMP);
    }

    /// Guards: the sign of the quaternion is no rotation; NaN is never believed.
    #[test]
    fn sign_and_nan() {
        let mut gate = gate();
        let q = UnitQuaternion::from_euler_angles(0.1, 0.2, 3.0);
        let p = Vector3::zeros();
        assert_eq!(gate.admit(p, q, Stamp::from_ms(0)), Good);
        let flipped = UnitQuaternion::new_unchecked(-q.into_inner());
        assert_eq!(gate.admit(p, flipped, Stamp::from_ms(1)), Good);
        assert_eq!(
            gate.admit(Vector3::new(f64::NAN, 0.0, 0.0), q, Stamp::from_ms(2)),
            JUMP
        );
    }

    /// Guards: 24 equal poses are a still hand, 25 are a frozen stream; one different bit ends it.
    #[test]
    fn frozen_at_the_twenty_fifth() {
        let mut frozen = FrozenDetector::default();
        let q = UnitQuaternion::identity();
        for i in 1..=FROZEN_AFTER + 5 {
            assert_eq!(
                frozen.is_frozen(Vector3::zeros(), q),
                i >= FROZEN_AFTER,
                "{i}"
            );
        }
        assert!(!frozen.is_frozen(Vector3::new(1e-7, 0.0, 0.0), q));
    }
}
