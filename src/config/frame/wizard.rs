//! The wizard as a state machine: samples in, what to tell the operator out.
//!
//! ```text
//!   Rest ──still 0.8 s──► Push ──hand 15 cm away──► Settle ──still 0.8 s──► Turn ──45 deg──► Done(verdict)
//!    ▲ hand lost, moved                                                          (each step gives up after 60 s)
//! ```
//! Everything is judged in our axes (X forward, Y left, Z up), after the plan's axis map: with the right map a push forward is +X and a
//! turn to the left is positive about +Z. A map of the wrong handedness gives both signs wrong. One right and one wrong means that the
//! sender converted the position only, which no map can mend.

use nalgebra::{UnitQuaternion, Vector3};

use crate::geometry::{Hand, OperatorWorld, Pose, angle_between, log_rotation};
use crate::time::{Span, Stamp};

/// The hand rests when it stays within this for [`STILL_FOR`].
const STILL_M: f64 = 0.02;
const STILL_RAD: f64 = 0.1;
const STILL_FOR: Span = Span::from_ms(800);
/// A push is this long, and mostly along one axis.
const PUSH_M: f64 = 0.15;
/// A turn is this far, and mostly about one axis.
const TURN_RAD: f64 = core::f64::consts::FRAC_PI_4;
/// The main axis has at least this share of a motion.
const MAIN_SHARE: f64 = 0.8;
/// A step that is not done within this is given up.
const GIVE_UP_AFTER: Span = Span::from_ms(60_000);

/// What the wizard waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Hold the hand still.
    Rest,
    /// Push it forward, away from the body, 20 cm.
    Push,
    /// Hold it still where it is.
    Settle,
    /// Turn it to the left about the vertical.
    Turn,
    /// Judged.
    Done(Verdict),
}

impl Step {
    /// What to tell the operator.
    #[must_use]
    pub const fn instruction(&self) -> &'static str {
        match self {
            Self::Rest => {
                "Face the way the arm faces. Hold the hand still in front of you, palm down."
            }
            Self::Push => "Push the hand straight FORWARD, away from you, about 20 cm.",
            Self::Settle => "Good. Hold the hand still there.",
            Self::Turn => {
                "Keep the hand in place and turn it to the LEFT about the vertical, like a steering wheel lying flat, 45 degrees."
            }
            Self::Done(_) => "Done.",
        }
    }
}

/// What both motions said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Both agree with the plan's axes.
    Agrees,
    /// Both disagree: the sender uses the other handedness.
    Mirrored,
    /// One agrees and one does not: the sender converted half of its pose.
    Mixed,
    /// The push went to the side, up or down.
    NotForward,
    /// The turn was not about the vertical.
    NotVertical,
    /// No usable motion within the time.
    TimedOut,
}

impl Verdict {
    /// What it means and what to do.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Agrees => "push and turn agree with the plan's frame",
            Self::Mirrored => {
                "push and turn both came mirrored: the sender uses the other handedness; set the other frame (openxr_rh or unity_lh) in the plan and check again"
            }
            Self::Mixed => {
                "push and turn contradict each other: the sender converts its position but not its rotation, or the other way round; no frame setting can mend that, so this sender must not drive an arm"
            }
            Self::NotForward => {
                "the push did not go forward: face the way the device's world faces (recentre it on the headset), then check again"
            }
            Self::NotVertical => "the turn was not about the vertical: check again, hand flat",
            Self::TimedOut => "no clear motion within a minute; check again",
        }
    }
}

/// One usable sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// Received at.
    pub at: Stamp,
    /// Hand pose after the plan's axis map; `None`: the hand is not seen, or the pose is not usable.
    pub pose: Option<Pose<OperatorWorld, Hand>>,
}

/// The state machine.
#[derive(Debug, Clone, Copy)]
pub struct Wizard {
    step: Step,
    since: Stamp,
    /// Where the hand has been still, and since when.
    still: Option<(Pose<OperatorWorld, Hand>, Stamp)>,
    push_agrees: bool,
}

impl Wizard {
    /// Waits for the hand to rest.
    #[must_use]
    pub const fn new(now: Stamp) -> Self {
        Self {
            step: Step::Rest,
            since: now,
            still: None,
            push_agrees: false,
        }
    }

    /// What it waits for.
    #[must_use]
    pub const fn step(&self) -> Step {
        self.step
    }

    /// Takes a sample (or the mere passing of time: `pose` is `None`); gives the step after it.
    pub fn see(&mut self, seen: Seen) -> Step {
        if matches!(self.step, Step::Done(_)) {
            return self.step;
        }
        if seen.at.age_of(self.since) > GIVE_UP_AFTER {
            return self.transition_to(Step::Done(Verdict::TimedOut), seen.at);
        }
        let Some(pose) = seen.pose else {
            // A hand that was out of sight may come back anywhere: the motion starts again from rest.
            self.still = None;
            match self.step {
                Step::Push => return self.transition_to(Step::Rest, seen.at),
                Step::Turn => return self.transition_to(Step::Settle, seen.at),
                _ => return self.step,
            }
        };
        match self.step {
            Step::Rest | Step::Settle => self.rest(pose, seen.at),
            Step::Push => self.push(pose, seen.at),
            Step::Turn => self.turn(pose, seen.at),
            Step::Done(_) => self.step,
        }
    }

    fn rest(&mut self, pose: Pose<OperatorWorld, Hand>, at: Stamp) -> Step {
        let stays = |still: &Pose<OperatorWorld, Hand>| {
            (pose.position() - still.position()).norm() < STILL_M
                && angle_between(pose.rotation(), still.rotation()) < STILL_RAD
        };
        match self.still {
            Some((still, since)) if stays(&still) => {
                if at.age_of(since) < STILL_FOR {
                    return self.step;
                }
                let next = if self.step == Step::Rest {
                    Step::Push
                } else {
                    Step::Turn
                };
                let still = (pose, at);
                self.transition_to(next, at);
                self.still = Some(still);
                self.step
            }
            _ => {
                self.still = Some((pose, at));
                self.step
            }
        }
    }

    fn push(&mut self, pose: Pose<OperatorWorld, Hand>, at: Stamp) -> Step {
        let Some((start, _)) = self.still else {
            return self.transition_to(Step::Rest, at);
        };
        let moved = pose.position() - start.position();
        if moved.norm() < PUSH_M {
            return self.step;
        }
        match share(moved, Vector3::x()) {
            None => self.transition_to(Step::Done(Verdict::NotForward), at),
            Some(forward) => {
                self.push_agrees = forward;
                self.transition_to(Step::Settle, at)
            }
        }
    }

    fn turn(&mut self, pose: Pose<OperatorWorld, Hand>, at: Stamp) -> Step {
        let Some((start, _)) = self.still else {
            return self.transition_to(Step::Settle, at);
        };
        let turned = turn_between(start.rotation(), pose.rotation());
        if turned.norm() < TURN_RAD {
            return self.step;
        }
        let verdict = match share(turned, Vector3::z()) {
            None => Verdict::NotVertical,
            Some(left) => match (self.push_agrees, left) {
                (true, true) => Verdict::Agrees,
                (false, false) => Verdict::Mirrored,
                _ => Verdict::Mixed,
            },
        };
        self.transition_to(Step::Done(verdict), at)
    }

    fn transition_to(&mut self, step: Step, at: Stamp) -> Step {
        self.step = step;
        self.since = at;
        self.still = None;
        step
    }
}

/// The turn from one rotation to another, as a vector in the operator's world.
fn turn_between(from: UnitQuaternion<f64>, to: UnitQuaternion<f64>) -> Vector3<f64> {
    log_rotation(to * from.inverse())
}

/// Whether a motion runs along the axis: `Some(true)` with it, `Some(false)` against it, `None` when it runs elsewhere.
fn share(motion: Vector3<f64>, axis: Vector3<f64>) -> Option<bool> {
    let along = motion.dot(&axis);
    (along.abs() >= MAIN_SHARE * motion.norm()).then_some(along > 0.0)
}
