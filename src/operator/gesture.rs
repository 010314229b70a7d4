//! Gestures: how a device without buttons says "engage".
//!
//! Everything here is fed with *usable* samples only; anything else (hand lost, jump, frozen, pause, new session) is [`Gesture::lost`],
//! which forgets a gesture in progress. A gesture is a deliberate act: it has to be started and finished in full view.

use nalgebra::{UnitQuaternion, Vector3};

use crate::geometry::{log_rotation, rotation_from_log};
use crate::time::{Span, Stamp};
use crate::units::Opening;

/// At or below this opening the pinch is closed.
pub const CLOSED_MAX: f64 = 0.2;
/// At or above this opening the pinch is open.
pub const OPEN_MIN: f64 = 0.6;

/// How an operator engages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EngageBy {
    /// Pinch closed for 0.6 s with the hand at rest, then opened.
    #[default]
    PinchHold,
    /// The hand at rest for 0.8 s. For the demo: too easily done by accident for a real arm.
    Rest,
    /// No gesture: `telearm engage` or a key.
    Command,
    /// This hand is the clutch of another one: pinch closed is hold-to-run.
    Clutch,
    /// The other hand's clutch decides; no gesture of this one.
    OtherHand,
}

/// One usable sample, as a gesture sees it.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// Hand position, metres.
    pub position: Vector3<f64>,
    /// Hand rotation.
    pub rotation: UnitQuaternion<f64>,
    /// Pinch; `None` when the packet's value was unusable.
    pub opening: Option<Opening>,
    /// Receive time.
    pub at: Stamp,
}

/// A finished engage gesture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Engaged {
    /// When the gesture began; it counts only if everything had cleared by then.
    pub began: Stamp,
}

/// The gesture recogniser of one operator.
#[derive(Debug, Clone, Copy)]
pub enum Gesture {
    /// None wanted.
    None,
    /// See [`PinchHold`].
    PinchHold(PinchHold),
    /// See [`RestDwell`].
    Rest(RestDwell),
    /// See [`PinchClutch`].
    Clutch(PinchClutch),
}

impl Gesture {
    /// The recogniser for a way of engaging.
    #[must_use]
    pub fn new(by: EngageBy) -> Self {
        match by {
            EngageBy::PinchHold => Self::PinchHold(PinchHold::default()),
            EngageBy::Rest => Self::Rest(RestDwell::default()),
            EngageBy::Clutch => Self::Clutch(PinchClutch::default()),
            EngageBy::Command | EngageBy::OtherHand => Self::None,
        }
    }

    /// Takes the next usable sample; gives a gesture that finished with it.
    pub fn look(&mut self, look: &Look) -> Option<Engaged> {
        match self {
            Self::None => None,
            Self::PinchHold(pinch) => pinch.look(look),
            Self::Rest(rest) => rest.look(look),
            Self::Clutch(clutch) => {
                clutch.look(look);
                None
            }
        }
    }

    /// The hand went out of sight, in whatever way: forget what was in progress.
    pub fn lost(&mut self) {
        match self {
            Self::None => {}
            Self::PinchHold(pinch) => *pinch = PinchHold::default(),
            Self::Rest(rest) => rest.lost(),
            Self::Clutch(clutch) => *clutch = PinchClutch::default(),
        }
    }

    /// Hold-to-run state; `None` for gestures that are edges.
    #[must_use]
    pub const fn clutch_pressed(&self) -> Option<bool> {
        match self {
            Self::Clutch(clutch) => Some(clutch.is_pressed()),
            _ => None,
        }
    }
}

/// Longest silence between two samples within which a gesture goes on.
const PAUSE_MAX: Span = Span::from_ms(150);

/// Is the hand at rest? Smoothed, because tracking noise of 0.7 mm at 50 Hz alone looks like 5 cm/s between two samples.
///
/// The speed is that of a first-order low-pass: distance from the filtered pose divided by the time constant. It needs no division by
/// the time between two packets, which is zero inside a burst.
#[derive(Debug, Clone, Copy, Default)]
struct RestMeter {
    filtered: Option<Filtered>,
}

#[derive(Debug, Clone, Copy)]
struct Filtered {
    position: Vector3<f64>,
    rotation: UnitQuaternion<f64>,
    at: Stamp,
}

impl RestMeter {
    const TIME_CONSTANT_S: f64 = 0.15;
    const SPEED_MAX_M_S: f64 = 0.05;
    const TURN_RATE_MAX_RAD_S: f64 = 20.0 * core::f64::consts::PI / 180.0;

    /// Takes the next sample. `None`: nothing to compare with (the first one, or a pause before it).
    fn is_at_rest(&mut self, look: &Look) -> Option<bool> {
        let start = Filtered {
            position: look.position,
            rotation: look.rotation,
            at: look.at,
        };
        let Some(was) = self.filtered else {
            self.filtered = Some(start);
            return None;
        };
        let dt = look.at.age_of(was.at);
        if dt > PAUSE_MAX {
            self.filtered = Some(start);
            return None;
        }
        let share = -f64::exp_m1(-dt.as_s() / Self::TIME_CONSTANT_S);
        let away = look.position - was.position;
        let turn = log_rotation(was.rotation.inverse() * look.rotation);
        self.filtered = Some(Filtered {
            position: was.position + away * share,
            rotation: was.rotation * rotation_from_log(turn * share),
            at: was.at.max(look.at),
        });
        let left = (1.0 - share) / Self::TIME_CONSTANT_S;
        Some(
            away.norm() * left <= Self::SPEED_MAX_M_S
                && turn.norm() * left <= Self::TURN_RATE_MAX_RAD_S,
        )
    }
}

/// Pinch closed and held with the hand at rest, then opened.
///
/// ```text
///                      seen open (>= 0.6)          closes (<= 0.2)
///   Unknown ─────────────────────────► Open ───────────────────────► Closed{began} ◄──────────────┐
///      ▲  ▲                             ▲ ▲      opens too soon        │   │   ▲                  │
///      │  │ half open for too long      │ └────────────────────────────┘   │   │ moves            │
///      │  └──────────── Opening{began} ─┘   0.6 s at rest                  ▼   │                  │
///      │ lost, no opening   ▲    │ open: ENGAGED, began = the closing      Held{began}            │
///      │ (from anywhere)    │    │                                              │                 │
///      └─────────           └────┼──────────────────────────────────────────────┘ starts opening  │
///                                └────────────────────────────────────────────────────────────────┘
///                                  closes again (the dwell starts anew, the beginning does not)
/// ```
///
/// The hand has to be seen open first, so that a pinch held through a stop or a loss does not count.
#[derive(Debug, Clone, Copy, Default)]
pub struct PinchHold {
    rest: RestMeter,
    state: PinchState,
}

#[derive(Debug, Clone, Copy, Default)]
enum PinchState {
    #[default]
    Unknown,
    Open,
    Closed {
        began: Stamp,
        still_since: Option<Stamp>,
    },
    Held {
        began: Stamp,
    },
    Opening {
        began: Stamp,
        since: Stamp,
    },
}

impl PinchHold {
    /// How long the pinch has to be closed with the hand at rest.
    pub const HOLD: Span = Span::from_ms(600);
    /// How long the way from closed to open may take.
    pub const OPENING_MAX: Span = Span::from_ms(600);

    /// Takes the next usable sample.
    pub fn look(&mut self, look: &Look) -> Option<Engaged> {
        let at_rest = self.rest.is_at_rest(look);
        let (Some(opening), Some(at_rest)) = (look.opening.map(Opening::get), at_rest) else {
            // No pinch value, or a pause: start over. A first sample is only looked at from the next one on.
            self.state = PinchState::Unknown;
            return None;
        };
        let (closed, open) = (opening <= CLOSED_MAX, opening >= OPEN_MIN);
        let now = look.at;
        match self.state {
            PinchState::Unknown if open => self.transition_to_open(),
            PinchState::Unknown => None,
            PinchState::Open if closed => self.transition_to_closed(now, at_rest.then_some(now)),
            PinchState::Open => None,
            PinchState::Closed { began, still_since } => match (closed, still_since) {
                (false, _) if open => self.transition_to_open(),
                (false, _) => self.transition_to_unfinished(),
                (true, _) if !at_rest => self.transition_to_closed(began, None),
                (true, None) => self.transition_to_closed(began, Some(now)),
                (true, Some(since)) if now.age_of(since) >= Self::HOLD => {
                    self.transition_to_held(began)
                }
                (true, Some(_)) => None,
            },
            PinchState::Held { began } if closed && !at_rest => {
                self.transition_to_closed(began, None)
            }
            PinchState::Held { .. } if closed => None,
            PinchState::Held { began } if open => self.transition_to_engaged(began),
            PinchState::Held { began } => self.transition_to_opening(began, now),
            PinchState::Opening { began, .. } if closed => {
                self.transition_to_closed(began, at_rest.then_some(now))
            }
            PinchState::Opening { since, .. } if now.age_of(since) > Self::OPENING_MAX => {
                self.transition_to_unfinished()
            }
            PinchState::Opening { began, .. } if open => self.transition_to_engaged(began),
            PinchState::Opening { .. } => None,
        }
    }

    fn transition_to_open(&mut self) -> Option<Engaged> {
        self.state = PinchState::Open;
        None
    }

    /// Half open after too short a hold, or for too long: has to be opened fully before the next try.
    fn transition_to_unfinished(&mut self) -> Option<Engaged> {
        self.state = PinchState::Unknown;
        None
    }

    fn transition_to_closed(
        &mut self,
        began: Stamp,
        still_since: Option<Stamp>,
    ) -> Option<Engaged> {
        self.state = PinchState::Closed { began, still_since };
        None
    }

    fn transition_to_held(&mut self, began: Stamp) -> Option<Engaged> {
        self.state = PinchState::Held { began };
        None
    }

    fn transition_to_opening(&mut self, began: Stamp, since: Stamp) -> Option<Engaged> {
        self.state = PinchState::Opening { began, since };
        None
    }

    fn transition_to_engaged(&mut self, began: Stamp) -> Option<Engaged> {
        self.state = PinchState::Open;
        Some(Engaged { began })
    }
}

/// The hand at rest for a while. Fires once, and again only after the hand moved.
///
/// ```text
///            at rest                     still at rest after 0.8 s: ENGAGED, began = start of the rest
///   Moving ───────────► Resting{since} ───────────────────────────► Spent
///     ▲                      │ moves                                  │ moves
///     └──────────────────────┴────────────────────────────────────────┘
/// ```
///
/// Losing the hand interrupts a dwell, but does not make a spent one fire again.
#[derive(Debug, Clone, Copy, Default)]
pub struct RestDwell {
    rest: RestMeter,
    state: RestState,
}

#[derive(Debug, Clone, Copy, Default)]
enum RestState {
    #[default]
    Moving,
    Resting {
        since: Stamp,
    },
    Spent,
}

impl RestDwell {
    /// How long the hand has to rest.
    pub const DWELL: Span = Span::from_ms(800);

    /// Takes the next usable sample.
    pub fn look(&mut self, look: &Look) -> Option<Engaged> {
        let Some(at_rest) = self.rest.is_at_rest(look) else {
            self.interrupt();
            return None;
        };
        match self.state {
            _ if !at_rest => {
                self.state = RestState::Moving;
                None
            }
            RestState::Moving => {
                self.state = RestState::Resting { since: look.at };
                None
            }
            RestState::Resting { since } if look.at.age_of(since) >= Self::DWELL => {
                self.state = RestState::Spent;
                Some(Engaged { began: since })
            }
            RestState::Resting { .. } | RestState::Spent => None,
        }
    }

    fn lost(&mut self) {
        self.rest = RestMeter::default();
        self.interrupt();
    }

    fn interrupt(&mut self) {
        if let RestState::Resting { .. } = self.state {
            self.state = RestState::Moving;
        }
    }
}

/// Pinch closed = clutch pressed, for the hand that holds to run.
///
/// ```text
///                     closed (<= 0.2)
///   Released ─────────────────────────► Pressed
///      ▲                                   │ above 0.4, no value, pause, lost
///      └───────────────────────────────────┘
/// ```
///
/// Whether a clutch that is already pressed when everything clears counts is decided by control: it does not.
#[derive(Debug, Clone, Copy, Default)]
pub struct PinchClutch {
    state: ClutchState,
    last: Stamp,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ClutchState {
    #[default]
    Released,
    Pressed,
}

impl PinchClutch {
    /// Above this opening a pressed clutch lets go: well before the hand is open, because letting go must be easy.
    pub const RELEASE_ABOVE: f64 = 0.4;

    /// Takes the next usable sample.
    pub fn look(&mut self, look: &Look) {
        let pause = look.at.age_of(self.last) > PAUSE_MAX;
        self.last = look.at;
        let limit = if self.is_pressed() && !pause {
            Self::RELEASE_ABOVE
        } else {
            CLOSED_MAX
        };
        let pressed = look.opening.is_some_and(|o| o.get() <= limit);
        self.state = if pressed {
            ClutchState::Pressed
        } else {
            ClutchState::Released
        };
    }

    /// Hold-to-run: the arm may follow.
    #[must_use]
    pub const fn is_pressed(&self) -> bool {
        matches!(self.state, ClutchState::Pressed)
    }
}

#[cfg(test)]
#[path = "gesture_tests.rs"]
mod tests;
