//! What the hand does: legs of minimum-jerk motion, in our axes (X forward, Y left, Z up).

use nalgebra::{UnitQuaternion, Vector3};

/// A hand at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hand {
    /// Metres.
    pub position: Vector3<f64>,
    /// Rotation.
    pub rotation: UnitQuaternion<f64>,
    /// Pinch, 1 = open.
    pub opening: f64,
}

/// The hand moves to a place, smoothly, within a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Leg {
    /// How long it takes, seconds.
    pub length_s: f64,
    /// Where it ends, metres from the resting place.
    pub to_m: [f64; 3],
    /// Roll, pitch, yaw at its end, degrees.
    pub to_rpy_deg: [f64; 3],
    /// Pinch during the leg; reached within 0.15 s.
    pub opening: f64,
}

/// Which script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ScriptName {
    /// Rest, engage by pinch, then reach and grip for ever
    Demo,
    /// Rest for ever
    Rest,
    /// Reach at once, without engaging
    Reach,
    /// Pinch closed for ever: a clutch that is held
    Clutch,
}

/// Legs; after the last one, the legs from `repeat_from` on again.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    legs: &'static [Leg],
    repeat_from: usize,
}

/// Where the hand rests: half a metre in front of the headset's origin, at chest height.
const REST_M: [f64; 3] = [0.45, -0.15, 1.15];
/// A pinch takes this long.
const PINCH_S: f64 = 0.15;

const fn leg(length_s: f64, to_m: [f64; 3], to_rpy_deg: [f64; 3], opening: f64) -> Leg {
    Leg {
        length_s,
        to_m,
        to_rpy_deg,
        opening,
    }
}

const STILL: [f64; 3] = [0.0; 3];

/// 3 s of rest (an arm comes up meanwhile), a pinch of 0.9 s, then reaches of 6 to 14 cm at up to 0.25 m/s with rests and two squeezes, ending where they began.
const DEMO: &[Leg] = &[
    leg(3.0, STILL, STILL, 1.0),
    leg(0.9, STILL, STILL, 0.05),
    leg(1.1, STILL, STILL, 1.0),
    leg(1.2, [0.10, 0.0, 0.05], [0.0, 10.0, 0.0], 1.0),
    leg(0.5, [0.10, 0.0, 0.05], [0.0, 10.0, 0.0], 1.0),
    leg(1.3, [0.06, 0.12, 0.02], [0.0, 10.0, 20.0], 1.0),
    leg(0.7, [0.06, 0.12, 0.02], [0.0, 10.0, 20.0], 0.3),
    leg(1.4, [0.06, -0.02, 0.06], [5.0, 0.0, -10.0], 0.3),
    leg(0.7, [0.06, -0.02, 0.06], [5.0, 0.0, -10.0], 1.0),
    leg(1.2, [0.0, -0.08, -0.04], [-5.0, 0.0, -20.0], 1.0),
    leg(1.4, STILL, STILL, 1.0),
    leg(1.0, STILL, STILL, 1.0),
];
/// The first leg after the engage gesture: reaches alone.
const REACHES_FROM: usize = 3;

const REST: &[Leg] = &[leg(10.0, STILL, STILL, 1.0)];
const CLUTCH: &[Leg] = &[leg(10.0, STILL, STILL, 0.05)];

impl Script {
    /// A script by name.
    #[must_use]
    pub const fn named(name: ScriptName) -> Self {
        match name {
            ScriptName::Demo => Self {
                legs: DEMO,
                // The gesture comes round again: a lane that was disengaged is engaged anew, a following one closes its gripper.
                repeat_from: 0,
            },
            ScriptName::Rest => Self {
                legs: REST,
                repeat_from: 0,
            },
            ScriptName::Reach => Self {
                legs: DEMO.split_at(REACHES_FROM).1,
                repeat_from: 0,
            },
            ScriptName::Clutch => Self {
                legs: CLUTCH,
                repeat_from: 0,
            },
        }
    }

    /// A script of its own. `None` when there is nothing to do: no legs, or none to repeat, or one without length.
    #[must_use]
    pub fn new(legs: &'static [Leg], repeat_from: usize) -> Option<Self> {
        let is_good = repeat_from < legs.len() && legs.iter().all(|l| l.length_s > 0.0);
        is_good.then_some(Self { legs, repeat_from })
    }

    /// The hand at `t` seconds.
    #[must_use]
    pub fn at(&self, t: f64) -> Hand {
        let once: f64 = self.legs.iter().map(|l| l.length_s).sum();
        let repeated: f64 = self
            .legs
            .iter()
            .skip(self.repeat_from)
            .map(|l| l.length_s)
            .sum();
        let mut left = if t < once {
            t
        } else {
            (t - once) % repeated + (once - repeated)
        };
        let rest = leg(1.0, STILL, STILL, 1.0);
        let mut from = &rest;
        for to in self.legs {
            if left < to.length_s {
                return between(from, to, left);
            }
            left -= to.length_s;
            from = to;
        }
        between(from, from, 0.0)
    }
}

fn between(from: &Leg, to: &Leg, into_s: f64) -> Hand {
    let x = (into_s / to.length_s).clamp(0.0, 1.0);
    let share = x * x * x * (10.0 - 15.0 * x + 6.0 * x * x);
    let pinch = (into_s / PINCH_S).clamp(0.0, 1.0);
    let offset = Vector3::from(from.to_m).lerp(&Vector3::from(to.to_m), share);
    Hand {
        position: Vector3::from(REST_M) + offset,
        rotation: rotation(from).slerp(&rotation(to), share),
        opening: from.opening + (to.opening - from.opening) * pinch,
    }
}

fn rotation(leg: &Leg) -> UnitQuaternion<f64> {
    let [roll, pitch, yaw] = leg.to_rpy_deg.map(f64::to_radians);
    UnitQuaternion::from_euler_angles(roll, pitch, yaw)
}
