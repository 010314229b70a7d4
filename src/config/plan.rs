//! [`Plan`]: the validated, immutable configuration of a run. Every default is filled in; numbers are SI unless the name says another
//! unit. Cross-references are indices that exist.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::arm::piper::params::PiperParams;
use crate::control::{Approach, ArmSpace, Coupling, Home, LaneParams, OnStop, Stale};
use crate::geometry::{ArmBase, Pose, World};
use crate::guard::Workspace;
use crate::operator::gesture::EngageBy;
use crate::operator::params::DatagramSettings;
use crate::operator::{glove, rctp};
use crate::retarget::Mapping;
use crate::shaping::{AxisLimits, Limits};
use crate::time::Span;

use super::context::Setting;

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

/// How lanes depend on each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CouplingPlan {
    /// Whose hold holds whom.
    pub hold: Coupling,
    /// Two tools are kept this far apart, metres; `None`: not watched.
    pub tcp_distance_min_m: Option<f64>,
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
    Rctp(rctp::Settings),
    /// One hand of a pair of EMF gloves.
    Glove(glove::Settings),
}

impl DevicePlan {
    /// What the rest of the program asks of a device's parameters. A new device is one line here and one in `settings_mut`.
    #[must_use]
    pub fn settings(&self) -> &dyn DatagramSettings {
        match self {
            Self::Rctp(settings) => settings,
            Self::Glove(settings) => settings,
        }
    }

    /// The same, to be changed.
    pub fn settings_mut(&mut self) -> &mut dyn DatagramSettings {
        match self {
            Self::Rctp(settings) => settings,
            Self::Glove(settings) => settings,
        }
    }

    /// The registry's name of the device.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.settings().device()
    }

    /// Where it listens.
    #[must_use]
    pub fn listen(&self) -> SocketAddr {
        self.settings().door().listen
    }

    /// How it engages.
    #[must_use]
    pub fn engage(&self) -> EngageBy {
        self.settings().engage()
    }

    /// The name of the axes that `telearm check --frame` verifies; `None` for a device whose axes are not in doubt.
    #[must_use]
    pub fn frame(&self) -> Option<&'static str> {
        self.settings().frame()
    }

    /// Its age limits.
    #[must_use]
    pub fn stale(&self) -> Stale {
        let door = self.settings().door();
        Stale {
            hold_after: door.hold_after,
            hard_after: door.disengage_after,
        }
    }

    /// Both listen at one port, each to its own packets there: same device, same address, another seat.
    #[must_use]
    pub fn shares_port_with(&self, other: &Self) -> bool {
        let seats = (self.settings().seat(), other.settings().seat());
        self.kind() == other.kind()
            && self.listen() == other.listen()
            && matches!(seats, (Some(own), Some(others)) if own != others)
    }
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

impl ArmKindPlan {
    /// The registry's name of the arm.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Piper(_) => "piper",
        }
    }
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
    pub mapping: Mapping,
    /// Where the tool may be.
    pub workspace: Workspace,
    /// Velocity, acceleration, jerk of the tool.
    pub limits: Limits,
    /// Absolute mapping's approach.
    pub approach: Approach,
    /// Largest distance of commanded and measured pose, metres.
    pub lead_max_m: f64,
    /// Largest angle of commanded and measured pose, rad.
    pub lead_max_rad: f64,
    /// Share of the joints' speed limits that may be used, 0..=1.
    pub joint_speed_share: f64,
    /// Gripper openings per second and its derivatives.
    pub gripper: AxisLimits,
    /// Joints while homing, rad/s and its derivatives.
    pub home: AxisLimits,
}

/// What the arm itself contributes to the parameters of its lane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ArmTraits<const N: usize> {
    /// Home joints, rad.
    pub home_q: [f64; N],
    /// What the arm is commanded in.
    pub space: ArmSpace,
    /// It takes joint targets too, and homes with them.
    pub home_in_joints: bool,
    /// Age limits of its feedback.
    pub feedback_stale: Stale,
    /// Stiffness ramp at engaging; zero for arms without one.
    pub engage_ramp: Span,
}

impl LanePlan {
    /// The lane's parameters for control: what the plan says, what its operators and arm contribute, and whether the axes of the
    /// operator that gives the pose are verified. `None`: an index of the lane is not one of this plan.
    #[must_use]
    pub fn params<const N: usize>(
        &self,
        plan: &Plan,
        arm_traits: &ArmTraits<N>,
        frame_verified: bool,
    ) -> Option<LaneParams<N>> {
        let stale = |operator: usize| Some(plan.operators.get(operator)?.device.stale());
        let arm = plan.arms.get(self.arm)?;
        Some(LaneParams {
            mapping: self.mapping,
            workspace: self.workspace,
            limits: self.limits,
            lead_max_m: self.lead_max_m,
            lead_max_rad: self.lead_max_rad,
            joint_speed_share: self.joint_speed_share,
            gripper: self.gripper,
            approach: self.approach,
            home: Home {
                q: arm_traits.home_q,
                limits: self.home,
            },
            arm_space: arm_traits.space,
            home_in_joints: arm_traits.home_in_joints,
            isomorphic: false,
            operator_stale: stale(self.operator)?,
            gripper_hold_after: stale(self.gripper_operator)?.hold_after,
            clutch_release_after: stale(self.clutch_operator.unwrap_or(self.operator))?.hold_after,
            feedback_stale: arm_traits.feedback_stale,
            on_stop: self.on_stop,
            stop_within: Span::from_ms(self.stop_within_ms.into()),
            engage_ramp: arm_traits.engage_ramp,
            frame_verified,
            hold_to_run: self.clutch_operator.is_some(),
            clutch_is_other: self.clutch_operator.is_some(),
            keep_anchor: false,
            command_period_s: 1.0 / f64::from(arm.command_hz),
        })
    }
}

impl Plan {
    /// The lane of a name.
    #[must_use]
    pub fn lane(&self, name: &str) -> Option<usize> {
        self.lanes.iter().position(|l| l.name == name)
    }
}
