//! The mode of a lane: one enum with data, one function that moves it.
//!
//! ```text
//!                      arm up                engage edge, nothing inhibits
//!   Starting ───────────────────► Ready ─────────────────────────────────► Engaging ──┐ ramp done, group ready
//!      ▲                          ▲ ▲ ▲ ◄────── loss, disengage, timeout ────┘        │
//!      │ reset, cause gone        │ │ │                                               ▼
//!      │                          │ │ └──── release, loss ─── Approaching ◄── absolute mapping ── (anchor)
//!   Stopped, Fault                │ │                              │ arrived              │ relative mapping
//!      ▲                          │ │ hard limit                   ▼                      ▼
//!      │ from every mode          │ └──────── Holding ◄── loss ── Active ◄────────────────┘
//!      │                          │               └─── good for 100 ms, fresh anchor ──► Active
//!      │                          │ disengage ───────────────────── Active
//!      │                          └─── done, released, loss ─────── Homing ◄── home request, from Ready only
//! ```
//! Motion happens in `Approaching`, `Active` and `Homing`, and nowhere else: every other mode brakes and stays. A stop or fault enters
//! from everywhere and is left only through `reset`, by way of `Starting`, so that a new edge is always needed.

use crate::signal::{ArmFault, Quality};
use crate::time::{Span, Stamp};

/// Age class of a value against its two limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Never received.
    Never,
    /// Within the soft limit.
    Fresh,
    /// Older than the soft limit: hold.
    Soft,
    /// Older than the hard limit: disengage, or fault.
    Hard,
}

impl Freshness {
    /// Classifies an age.
    #[must_use]
    pub fn of(age: Option<Span>, soft: Span, hard: Span) -> Self {
        match age {
            None => Self::Never,
            Some(a) if a > hard => Self::Hard,
            Some(a) if a > soft => Self::Soft,
            Some(_) => Self::Fresh,
        }
    }
}

/// Why a lane holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldReason {
    /// No usable sample within the soft limit.
    OperatorStale,
    /// The device does not see the hand.
    TrackingLost,
    /// The pose jumped.
    TrackingJumped,
    /// The pose is frozen.
    TrackingFrozen,
    /// Feedback older than its soft limit.
    FeedbackStale,
    /// Another lane of the group holds.
    Group,
}

impl HoldReason {
    /// Name as shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OperatorStale => "operator_stale",
            Self::TrackingLost => "tracking_lost",
            Self::TrackingJumped => "tracking_jumped",
            Self::TrackingFrozen => "tracking_frozen",
            Self::FeedbackStale => "feedback_stale",
            Self::Group => "group_holds",
        }
    }
}

/// Why a lane homes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HomeCause {
    /// `telearm home`.
    Command,
    /// The plan asks for it at the end of a session (TG3 only).
    SessionEnd,
}

/// What tripped the stop latch, as the lane remembers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopWhy {
    /// Reason code of the latch.
    pub reason: u8,
    /// Source code of the latch.
    pub source: u16,
}

/// Why a lane is in `Fault`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultCause {
    /// The arm or its bus.
    Arm(ArmFault),
    /// Feedback older than its hard limit.
    FeedbackLost,
    /// The watchdog took over. Permanent.
    TakenOver,
}

/// Mode of a lane. See the module's diagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The arm is not up yet.
    Starting,
    /// Up and at rest; not following.
    Ready,
    /// Engage accepted; stiffness ramps, the group gathers.
    Engaging {
        /// Entered at.
        since: Stamp,
    },
    /// Absolute mapping: moving slowly to where the hand points, hold-to-run.
    Approaching {
        /// Entered at.
        since: Stamp,
        /// Hold-to-run was last pressed at.
        pressed_at: Stamp,
    },
    /// Following.
    Active {
        /// Entered at.
        since: Stamp,
    },
    /// Braked, waiting for the cause to pass.
    Holding {
        /// Entered at.
        since: Stamp,
        /// First cause.
        why: HoldReason,
        /// Everything has been good since.
        good_since: Option<Stamp>,
    },
    /// Moving to the home joints.
    Homing {
        /// Entered at.
        since: Stamp,
        /// Why.
        why: HomeCause,
    },
    /// A software stop is (or was) latched and not reset yet.
    Stopped {
        /// What tripped it.
        why: StopWhy,
    },
    /// Needs its own cure and a reset.
    Fault {
        /// What is wrong.
        what: FaultCause,
    },
}

impl Mode {
    /// Name as shown.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Engaging { .. } => "engaging",
            Self::Approaching { .. } => "approaching",
            Self::Active { .. } => "active",
            Self::Holding { .. } => "holding",
            Self::Homing { .. } => "homing",
            Self::Stopped { .. } => "stopped",
            Self::Fault { .. } => "fault",
        }
    }

    /// Number for atomics and recordings, stable.
    #[must_use]
    pub const fn code(&self) -> u8 {
        match self {
            Self::Starting => 0,
            Self::Ready => 1,
            Self::Engaging { .. } => 2,
            Self::Approaching { .. } => 3,
            Self::Active { .. } => 4,
            Self::Holding { .. } => 5,
            Self::Homing { .. } => 6,
            Self::Stopped { .. } => 7,
            Self::Fault { .. } => 8,
        }
    }

    /// Modes in which the operator moves the arm.
    #[must_use]
    pub const fn follows(&self) -> bool {
        matches!(self, Self::Approaching { .. } | Self::Active { .. })
    }

    /// Modes in which the target may advance.
    #[must_use]
    pub const fn moves(&self) -> bool {
        matches!(
            self,
            Self::Approaching { .. } | Self::Active { .. } | Self::Homing { .. }
        )
    }
}

/// Time limits of the machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    /// Holding longer than this ends in `Ready`.
    pub disengage_after: Span,
    /// Good data for this long, without a break, resumes from `Holding`.
    pub resume_after: Span,
    /// Stiffness ramp while engaging; zero for arms without one.
    pub engage_ramp: Span,
    /// The rest of the group must have engaged within this.
    pub group_window: Span,
    /// Hold-to-run released for this long ends `Approaching`.
    pub approach_release: Span,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            disengage_after: Span::from_ms(500),
            resume_after: Span::from_ms(100),
            engage_ramp: Span::ZERO,
            group_window: Span::from_ms(3_000),
            approach_release: Span::from_ms(2_000),
        }
    }
}

/// Everything the machine looks at, as of `now`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Facts {
    /// The instant.
    pub now: Stamp,
    /// The watchdog has taken over.
    pub taken_over: bool,
    /// The stop latch is tripped.
    pub stop: Option<StopWhy>,
    /// The arm's own fault.
    pub arm_fault: Option<ArmFault>,
    /// The arm finished its start procedure.
    pub arm_up: bool,
    /// Age class of the arm's feedback.
    pub feedback: Freshness,
    /// Age class of the last usable sample.
    pub operator: Freshness,
    /// Quality of the newest sample.
    pub quality: Quality,
    /// Nothing blocks engaging (awaiting the edge itself does not count).
    pub may_engage: bool,
    /// A fresh engage act, made after everything cleared.
    pub engage: bool,
    /// A deliberate disengage: command, clutch released, new session, our own thread was away.
    pub disengage: bool,
    /// Another lane of the group has a cause of its own to hold, or is not following.
    pub group_holds: bool,
    /// Every lane of the group is engaging or follows already.
    pub group_engages: bool,
    /// Absolute mapping.
    pub absolute: bool,
    /// Hold-to-run state for `Approaching`.
    pub hold_to_run: bool,
    /// The commanded pose has reached the hand's target.
    pub arrived: bool,
    /// The hand's target is farther than an approach may go.
    pub approach_too_far: bool,
    /// A home request, held (hold-to-run) or confirmed.
    pub home: Option<HomeCause>,
    /// The home pose has been reached.
    pub home_reached: bool,
    /// A reset was granted in this cycle.
    pub reset: bool,
}

impl Facts {
    /// This lane's own cause to hold, if any. The group's does not count here, or two lanes would hold each other for ever.
    #[must_use]
    pub fn own_hold(&self) -> Option<HoldReason> {
        match self.quality {
            Quality::Untracked => return Some(HoldReason::TrackingLost),
            Quality::Jumped => return Some(HoldReason::TrackingJumped),
            Quality::Frozen => return Some(HoldReason::TrackingFrozen),
            Quality::Good => {}
        }
        if self.operator != Freshness::Fresh {
            return Some(HoldReason::OperatorStale);
        }
        (self.feedback != Freshness::Fresh).then_some(HoldReason::FeedbackStale)
    }

    fn hold(&self) -> Option<HoldReason> {
        self.own_hold()
            .or(self.group_holds.then_some(HoldReason::Group))
    }

    fn fault(&self) -> Option<FaultCause> {
        if self.taken_over {
            return Some(FaultCause::TakenOver);
        }
        if let Some(fault) = self.arm_fault {
            return Some(FaultCause::Arm(fault));
        }
        (self.arm_up && matches!(self.feedback, Freshness::Hard | Freshness::Never))
            .then_some(FaultCause::FeedbackLost)
    }
}

/// The mode after `mode` under `facts`.
#[must_use]
pub fn next(mode: Mode, facts: &Facts, timing: &Timing) -> Mode {
    // A fault and a stop enter from everywhere; a fault shows before a stop, and both wait for a reset.
    if let Some(what) = facts.fault() {
        return transition_to_fault(mode, what);
    }
    if let Some(why) = facts.stop {
        return transition_to_stopped(mode, why);
    }
    match mode {
        Mode::Starting => {
            if facts.arm_up && facts.feedback == Freshness::Fresh {
                transition_to_ready()
            } else {
                mode
            }
        }
        Mode::Ready => {
            if !facts.arm_up {
                return Mode::Starting;
            }
            if let Some(why) = facts.home {
                return transition_to_homing(facts, why);
            }
            if facts.engage && facts.may_engage {
                return Mode::Engaging { since: facts.now };
            }
            mode
        }
        Mode::Engaging { since } => {
            let waited = facts.now.age_of(since);
            if facts.disengage
                || facts.own_hold().is_some()
                || waited > timing.group_window + timing.engage_ramp
            {
                transition_to_ready()
            } else if waited >= timing.engage_ramp && facts.group_engages {
                transition_to_following(facts)
            } else {
                mode
            }
        }
        Mode::Approaching { since, pressed_at } => {
            let pressed_at = if facts.hold_to_run {
                facts.now
            } else {
                pressed_at
            };
            let released = facts.now.age_of(pressed_at) > timing.approach_release;
            if facts.disengage || facts.hold().is_some() || released || facts.approach_too_far {
                transition_to_ready()
            } else if facts.arrived && facts.hold_to_run {
                Mode::Active { since: facts.now }
            } else {
                Mode::Approaching { since, pressed_at }
            }
        }
        Mode::Active { .. } => {
            if facts.disengage || facts.operator == Freshness::Hard {
                transition_to_ready()
            } else if let Some(why) = facts.hold() {
                Mode::Holding {
                    since: facts.now,
                    why,
                    good_since: None,
                }
            } else {
                mode
            }
        }
        Mode::Holding {
            since,
            why,
            good_since,
        } => hold_on(facts, timing, since, why, good_since),
        Mode::Homing { since, why } => {
            let lost =
                facts.home.is_none() || facts.feedback != Freshness::Fresh || facts.disengage;
            if lost || facts.home_reached {
                transition_to_ready()
            } else {
                Mode::Homing { since, why }
            }
        }
        // Reset goes through Starting: a new edge is needed, and nothing moves.
        Mode::Stopped { .. } | Mode::Fault { .. } => {
            if facts.reset {
                Mode::Starting
            } else {
                mode
            }
        }
    }
}

fn hold_on(
    facts: &Facts,
    timing: &Timing,
    since: Stamp,
    why: HoldReason,
    good_since: Option<Stamp>,
) -> Mode {
    if facts.disengage || facts.operator == Freshness::Hard {
        return transition_to_ready();
    }
    if facts.hold().is_some() {
        return if facts.now.age_of(since) > timing.disengage_after {
            transition_to_ready()
        } else {
            Mode::Holding {
                since,
                why,
                good_since: None,
            }
        };
    }
    let good_since = good_since.unwrap_or(facts.now);
    if facts.now.age_of(good_since) < timing.resume_after {
        return Mode::Holding {
            since,
            why,
            good_since: Some(good_since),
        };
    }
    // The group engages jointly, but resumes each as its own cause passes: `group_holds` above has seen to the others.
    if facts.absolute {
        transition_to_ready()
    } else {
        Mode::Active { since: facts.now }
    }
}

fn transition_to_ready() -> Mode {
    Mode::Ready
}

fn transition_to_following(facts: &Facts) -> Mode {
    if !facts.absolute {
        Mode::Active { since: facts.now }
    } else if facts.approach_too_far {
        transition_to_ready()
    } else {
        Mode::Approaching {
            since: facts.now,
            pressed_at: facts.now,
        }
    }
}

fn transition_to_homing(facts: &Facts, why: HomeCause) -> Mode {
    if facts.feedback == Freshness::Fresh {
        Mode::Homing {
            since: facts.now,
            why,
        }
    } else {
        Mode::Ready
    }
}

/// The first cause stays shown, except that a takeover overrides everything.
fn transition_to_fault(mode: Mode, what: FaultCause) -> Mode {
    match mode {
        Mode::Fault { .. } if what != FaultCause::TakenOver => mode,
        _ => Mode::Fault { what },
    }
}

fn transition_to_stopped(mode: Mode, why: StopWhy) -> Mode {
    match mode {
        Mode::Fault { .. } | Mode::Stopped { .. } => mode,
        _ => Mode::Stopped { why },
    }
}
