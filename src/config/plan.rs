//! [`Plan`]: the validated, immutable configuration of a run. Every default is filled in; numbers are SI unless the name says another
//! unit. Cross-references are indices that exist.

use std::path::PathBuf;

use nalgebra::{UnitQuaternion, Vector3};

use crate::geometry::{ArmBase, Pose, World};
use crate::shaping::Limits;

use super::section::Setting;
use super::stand_in::{PiperParams, RctpParams};

/// Most lanes, and therefore most arms, of a plan.
pub const LANES_MAX: usize = 4;
/// Most operators of a plan: a hand and a gripper or clutch hand for each lane.
pub const OPERATORS_MAX: usize = 8;

/// A validated run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The file it came from, as the user gave it.
    pub file: String,
    /// Control cycles per second, 30..=1000.
    pub rate_hz: u32,
    /// The control thread.
    pub control: ControlPlan,
    /// How lanes depend on each other.
    pub coupling: CouplingPlan,
    /// Sources of samples, 1..=[`OPERATORS_MAX`].
    pub operators: Vec<OperatorPlan>,
    /// Arms, 1..=[`LANES_MAX`].
    pub arms: Vec<ArmPlan>,
    /// Which operator drives which arm, 1..=[`LANES_MAX`].
    pub lanes: Vec<LanePlan>,
    /// Every value as it was resolved, in the order of the plan, for `telearm check`.
    pub settings: Vec<Setting>,
}

/// The control thread and the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlPlan {
    /// Core to pin control to; `None`: chosen at start.
    pub core: Option<u32>,
    /// SCHED_FIFO priority, between the input threads (75) and the watchdog (90).
    pub priority: u8,
    /// Refuse to run without real-time rights.
    pub require_rt: bool,
    /// Busy-wait before each deadline, microseconds; 0: sleep all the way.
    pub spin_us: u32,
    /// Control socket; `None`: the default place.
    pub socket: Option<PathBuf>,
}

/// Whose loss holds whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldScope {
    /// One lane's hold holds all; lanes engage together.
    All,
    /// Each lane for itself.
    Lane,
}

/// How lanes depend on each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CouplingPlan {
    /// Whose loss holds whom.
    pub hold: HoldScope,
    /// Two tools are kept this far apart, metres; `None`: not watched.
    pub tcp_distance_min_m: Option<f64>,
}

/// What an arm does once the shaper has braked it after a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnStop {
    /// Keeps it where it is.
    Hold,
    /// Uses the arm's own stop (Piper: a damped sink).
    ArmStop,
}

/// One operator.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorPlan {
    /// Unique name.
    pub name: String,
    /// The device and its own parameters.
    pub device: DevicePlan,
}

/// An operator device with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum DevicePlan {
    /// Quest hand over RCTP.
    Rctp(RctpParams),
}

/// One arm.
#[derive(Debug, Clone, PartialEq)]
pub struct ArmPlan {
    /// Unique name.
    pub name: String,
    /// The arm and its own parameters.
    pub kind: ArmKindPlan,
    /// Commands per second: an integer divisor of `rate_hz`.
    pub command_hz: u32,
    /// Where the arm's base stands in the room shared by all arms; needed to watch the distance of two tools.
    pub base_in_world: Option<Pose<World, ArmBase>>,
}

/// An arm with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum ArmKindPlan {
    /// AgileX Piper over classic CAN.
    Piper(PiperParams),
}

/// One lane.
#[derive(Debug, Clone, PartialEq)]
pub struct LanePlan {
    /// Unique name, used by `telearm engage NAME`.
    pub name: String,
    /// Index into [`Plan::operators`].
    pub operator: usize,
    /// Whose opening drives the gripper; the lane's operator unless the plan says another.
    pub gripper_operator: usize,
    /// Whose pinch is the hold-to-run clutch, for operators that engage by the other hand.
    pub clutch_operator: Option<usize>,
    /// Index into [`Plan::arms`].
    pub arm: usize,
    /// After a stop.
    pub on_stop: OnStop,
    /// The arm must rest this long after a stop, or its own stop is used.
    pub stop_within_ms: u32,
    /// Hand to goal.
    pub mapping: MappingPlan,
    /// Where the tool may be.
    pub workspace: WorkspacePlan,
    /// How it may move.
    pub limits: LimitsPlan,
}

/// Hand to goal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MappingPlan {
    /// Relative or absolute.
    pub kind: MappingKind,
    /// Goal travel per hand travel.
    pub scale: f64,
    /// Turn of the operator's world about the vertical, seen from the arm's base, radians.
    pub yaw_rad: f64,
    /// Which translations follow, in arm base axes X, Y, Z.
    pub axes: [bool; 3],
    /// Whether rotation follows.
    pub rotation: bool,
}

/// Relative or absolute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MappingKind {
    /// Motion since engaging.
    Relative,
    /// The hand's place in its own world, moved and turned.
    Absolute {
        /// Added after scaling, arm base axes, metres.
        offset_m: Vector3<f64>,
        /// Tool rotation for an unrotated hand.
        rotation: UnitQuaternion<f64>,
        /// Refuse to approach from farther away, metres.
        approach_max_m: f64,
        /// Refuse to approach from a larger angle, radians.
        approach_max_rad: f64,
    },
}

/// Where the tool may be, arm base axes, metres.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorkspacePlan {
    /// Lowest corner of the box.
    pub low_m: Vector3<f64>,
    /// Highest corner of the box.
    pub high_m: Vector3<f64>,
    /// The wrist stays this far inside the reach of the arm.
    pub reach_margin_m: f64,
    /// The wrist stays this far from the axis of joint 1, or that joint swings.
    pub wrist_axis_min_m: f64,
}

/// How the tool may move.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitsPlan {
    /// Velocity, acceleration, jerk of the tool.
    pub tool: Limits,
    /// Largest distance of command and measured pose, metres.
    pub lead_max_m: f64,
    /// Largest angle of command and measured pose, radians.
    pub lead_max_rad: f64,
    /// Gripper opening per second, 1 = the whole way.
    pub gripper_speed_max_per_s: f64,
    /// Joint speed while homing, rad/s.
    pub home_speed_rad_s: f64,
}

impl Plan {
    /// The lane of a name.
    #[must_use]
    pub fn lane(&self, name: &str) -> Option<usize> {
        self.lanes.iter().position(|l| l.name == name)
    }
}
