//! Parameters of a lane, resolved and validated by `config`.

use crate::guard::Workspace;
use crate::retarget::Mapping;
use crate::shaping::{AxisLimits, Limits};
use crate::time::Span;

/// What the lane does once the stop latch is tripped and the arm has braked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnStop {
    /// Keep the arm where it is, powered.
    #[default]
    Hold,
    /// The arm's own stop (Piper: 0x150 01, it sinks damped).
    ArmStop,
}

/// Whose hold holds whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Coupling {
    /// One lane's hold holds every lane, and engaging is joint.
    #[default]
    All,
    /// Lanes hold and engage each for itself. A stop still stops all.
    Lane,
}

/// What the arm is commanded in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArmSpace {
    /// Tool poses; the arm solves its own inverse kinematics.
    Tcp,
    /// Joint angles.
    Joint,
}

/// Soft and hard age limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stale {
    /// Older than this: hold.
    pub hold_after: Span,
    /// Older than this: disengage (operator) or fault (feedback).
    pub hard_after: Span,
}

/// Limits of `Approaching`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Approach {
    /// Refused beyond this distance, metres.
    pub max_m: f64,
    /// Refused beyond this angle, rad.
    pub max_rad: f64,
    /// Highest speed on the way, m/s.
    pub lin_vel_max: f64,
    /// Highest turning speed on the way, rad/s.
    pub ang_vel_max: f64,
    /// Arrived within this distance, metres.
    pub arrived_m: f64,
    /// Arrived within this angle, rad.
    pub arrived_rad: f64,
}

/// Homing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Home<const N: usize> {
    /// Home joints, rad.
    pub q: [f64; N],
    /// Speed of each joint on the way, rad/s, acceleration and jerk.
    pub limits: AxisLimits,
}

/// Everything one lane needs to know.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaneParams<const N: usize> {
    /// Hand motion to goal.
    pub mapping: Mapping,
    /// Where the tool may be.
    pub workspace: Workspace,
    /// Shaping limits while following. The norms are the tool's speed caps.
    pub limits: Limits,
    /// Leash, metres.
    pub lead_max_m: f64,
    /// Leash, rad.
    pub lead_max_rad: f64,
    /// Share of the joints' speed limits that may be used.
    pub joint_speed_share: f64,
    /// Gripper: openings per second and its derivatives.
    pub gripper: AxisLimits,
    /// Absolute mapping's approach.
    pub approach: Approach,
    /// Homing.
    pub home: Home<N>,
    /// What the arm is commanded in.
    pub arm_space: ArmSpace,
    /// Homing commands go out as joint targets (the arm takes both); else as the tool poses of those joints.
    pub home_in_joints: bool,
    /// The operator yields leader joints, which are the goal.
    pub isomorphic: bool,
    /// Age limits of the operator that gives the pose.
    pub operator_stale: Stale,
    /// The gripper is held once the sample that drives it is older than this. It may be another operator's, with a limit of its own.
    pub gripper_hold_after: Span,
    /// A clutch counts as let go once its sample is older than this. It may be another operator's, with a limit of its own.
    pub clutch_release_after: Span,
    /// Arm feedback age limits.
    pub feedback_stale: Stale,
    /// After the stop.
    pub on_stop: OnStop,
    /// The arm must rest within this after a stop, or its own stop is used.
    pub stop_within: Span,
    /// Stiffness ramp at engaging; zero for arms without one.
    pub engage_ramp: Span,
    /// The operator's axes are verified (or the source is exempt: the emulator, a device whose frame is not in doubt).
    pub frame_verified: bool,
    /// The lane's operator engages by a clutch that is held to run, not by edges.
    pub hold_to_run: bool,
    /// That clutch is another operator's; as long as that one is not heard, the lane has no clutch, whatever its own hand does.
    pub clutch_is_other: bool,
    /// A gap shorter than the pause keeps the anchor (`resume = "keep_anchor"`, the phone's document).
    pub keep_anchor: bool,
    /// Time between two commands of this lane, s: `divisor / rate_hz`.
    pub command_period_s: f64,
}
