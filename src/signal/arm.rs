//! [`ArmState`] (measured) and [`ArmCommand`] (to send).

use crate::geometry::{ArmBase, Pose, Tcp};
use crate::time::{Span, Stamp};
use crate::units::Opening;

/// A received value with the time it was received. A value never received has no age and is not zero: it is `NEVER`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Aged<T>(Option<(T, Stamp)>);

impl<T: Copy> Aged<T> {
    /// Never received.
    pub const NEVER: Self = Self(None);

    /// Received at `at`.
    #[must_use]
    pub const fn at(value: T, at: Stamp) -> Self {
        Self(Some((value, at)))
    }

    /// The value, whatever its age.
    #[must_use]
    pub fn value(&self) -> Option<T> {
        self.0.map(|(v, _)| v)
    }

    /// When it was received.
    #[must_use]
    pub fn stamp(&self) -> Option<Stamp> {
        self.0.map(|(_, s)| s)
    }

    /// How old it is at `now`.
    #[must_use]
    pub fn age(&self, now: Stamp) -> Option<Span> {
        self.0.map(|(_, s)| now.age_of(s))
    }

    /// The value if it is at most `age_max` old.
    #[must_use]
    pub fn fresh(&self, now: Stamp, age_max: Span) -> Option<T> {
        self.0
            .and_then(|(v, s)| (now.age_of(s) <= age_max).then_some(v))
    }
}

impl<T: Copy> Default for Aged<T> {
    fn default() -> Self {
        Self::NEVER
    }
}

/// What is wrong with an arm. Each has a name, a cure in docs/safety.md and a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// No feedback, or feedback older than the fault limit.
    FeedbackLost,
    /// The interface is down (ENETDOWN).
    BusDown,
    /// The interface is gone (ENODEV, ENXIO).
    BusGone,
    /// The controller went bus-off or restarted.
    BusOff,
    /// Nothing on the bus acknowledges our frames, or the queue stays full.
    BusNotSending,
    /// Somebody else sends commands to this arm.
    ForeignCommand,
    /// The arm reports its own stop; `telearm recover` is needed.
    ArmStopped,
    /// The arm is in leader (teaching input) mode.
    LeaderMode,
    /// The arm is in teach, replay or another mode that is not ours.
    WrongMode,
    /// A motor reports an error; `joint` says which.
    MotorError,
    /// A motor is too hot.
    OverTemperature,
    /// Supply voltage too low.
    UnderVoltage,
    /// The arm reports a collision.
    Collision,
    /// A motor lost its enable bit.
    MotorDisabled,
    /// A joint does not answer.
    JointSilent,
    /// The arm's controller reports that it cannot reach the target (no solution, singular, beyond limits).
    TargetRefused,
    /// Limits, firmware or identity read from the arm make no sense or are not supported.
    Implausible,
    /// The arm did not finish its start procedure in time.
    StartTimeout,
    /// Measured and commanded pose disagree beyond the leash.
    FollowingError,
    /// The sidecar, adapter or remote end closed or broke the protocol.
    LinkBroken,
}

impl FaultKind {
    /// Name as shown to the user and in docs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FeedbackLost => "feedback_lost",
            Self::BusDown => "bus_down",
            Self::BusGone => "bus_gone",
            Self::BusOff => "bus_off",
            Self::BusNotSending => "bus_not_sending",
            Self::ForeignCommand => "foreign_command",
            Self::ArmStopped => "arm_stopped",
            Self::LeaderMode => "leader_mode",
            Self::WrongMode => "wrong_mode",
            Self::MotorError => "motor_error",
            Self::OverTemperature => "over_temperature",
            Self::UnderVoltage => "under_voltage",
            Self::Collision => "collision",
            Self::MotorDisabled => "motor_disabled",
            Self::JointSilent => "joint_silent",
            Self::TargetRefused => "target_refused",
            Self::Implausible => "implausible",
            Self::StartTimeout => "start_timeout",
            Self::FollowingError => "following_error",
            Self::LinkBroken => "link_broken",
        }
    }
}

/// A fault with its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ArmFault {
    /// What.
    pub kind: FaultKind,
    /// Which joint, counted from 1; 0 when it concerns the whole arm.
    pub joint: u8,
    /// The arm's own code, raw.
    pub code: u32,
}

impl ArmFault {
    /// A fault of the whole arm.
    #[must_use]
    pub const fn whole(kind: FaultKind) -> Self {
        Self {
            kind,
            joint: 0,
            code: 0,
        }
    }

    /// A fault of one joint, counted from 1, with the arm's raw code.
    #[must_use]
    pub const fn joint(kind: FaultKind, joint: u8, code: u32) -> Self {
        Self { kind, joint, code }
    }
}

/// How far the arm is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArmPhase {
    /// Start procedure under way; the text names the step that is being waited for.
    Starting(&'static str),
    /// Powered, in the right mode, holding; may be commanded.
    Up,
    /// Not usable. Left by the fault's own cure.
    Faulted(ArmFault),
}

/// Counts complete feedback groups, so that a reader can tell "new" from "again".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FeedbackPulse(pub u64);

/// What an arm with `N` joints reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ArmState<const N: usize> {
    /// Life phase.
    pub phase: ArmPhase,
    /// Measured tool pose. Complete or absent; its stamp is that of its oldest part.
    pub tcp: Aged<Pose<ArmBase, Tcp>>,
    /// Measured joints, rad.
    pub q: Aged<[f64; N]>,
    /// Measured joint velocities, rad/s.
    pub dq: Aged<[f64; N]>,
    /// Measured gripper opening, 1 = open.
    pub opening: Aged<Opening>,
    /// A passing complaint of the arm (target refused, say) that is not a fault; shown, and blocks nothing by itself.
    pub warning: Option<ArmFault>,
    /// New feedback since the last poll?
    pub pulse: FeedbackPulse,
}

impl<const N: usize> Default for ArmState<N> {
    fn default() -> Self {
        Self {
            phase: ArmPhase::Starting("waiting for feedback"),
            tcp: Aged::NEVER,
            q: Aged::NEVER,
            dq: Aged::NEVER,
            opening: Aged::NEVER,
            warning: None,
            pulse: FeedbackPulse(0),
        }
    }
}

/// Where the arm shall be one command period from now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target<const N: usize> {
    /// Tool pose; the arm solves its own inverse kinematics.
    Tcp(Pose<ArmBase, Tcp>),
    /// Joint angles, rad.
    Joint([f64; N]),
}

/// One command. Only `guard` turns it into something an arm accepts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ArmCommand<const N: usize> {
    /// Target of this period.
    pub target: Target<N>,
    /// Velocity of the target at its end, for arms that take one: linear m/s then angular rad/s for `Tcp`, rad/s for `Joint`.
    pub q_velocity: [f64; N],
    /// Gripper opening; `None` leaves the gripper as it is.
    pub opening: Option<Opening>,
    /// Stiffness scale 0..=1 while engaging, 1 after; arms without it ignore it.
    pub stiffness: f64,
    /// A motion frame advances beyond the braking ramp of a stop or hold; a braking or frozen target does not.
    pub motion: bool,
}
