//! What several test files share: a lane for a Piper with sane parameters, and an arm made of nothing but a model.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its share")]

use nalgebra::Vector3;
use telearm::arm::piper::model::{DhVariant, PiperModel};
use telearm::control::{Approach, ArmSpace, Home, LaneParams, OnStop, Stale};
use telearm::geometry::{ArmBase, Pose, Tcp};
use telearm::guard::Workspace;
use telearm::retarget::Mapping;
use telearm::shaping::{AxisLimits, Limits};
use telearm::signal::{Aged, ArmFault, ArmPhase, ArmState};
use telearm::time::{Span, Stamp};

/// Command period of every test here, s.
pub const PERIOD_S: f64 = 0.005;

/// Joints in the middle of the workspace, tool pointing down and forward.
pub const START_Q: [f64; 6] = [0.1, 1.2, -1.1, 0.2, 0.7, 0.1];

/// The Piper's model, current firmware.
pub fn model() -> PiperModel {
    PiperModel::new(DhVariant::Offset)
}

/// Parameters as a plan would give them.
pub fn params() -> LaneParams<6> {
    LaneParams {
        mapping: Mapping::default(),
        workspace: Workspace {
            min_m: Vector3::new(-0.4, -0.4, 0.05),
            max_m: Vector3::new(0.4, 0.4, 0.7),
            reach_margin_m: 0.01,
            wrist_axis_min_m: 0.05,
        },
        limits: Limits {
            lin_vel_max: 0.25,
            lin_acc_max: 10.0,
            lin_jerk_max: 600.0,
            ang_vel_max: 90f64.to_radians(),
            ang_acc_max: 20.0,
            ang_jerk_max: 1000.0,
        },
        lead_max_m: 0.1,
        lead_max_rad: 0.6,
        joint_speed_share: 1.0,
        gripper: AxisLimits {
            vel_max: 2.0,
            acc_max: 20.0,
            jerk_max: 400.0,
        },
        approach: Approach {
            max_m: 0.3,
            max_rad: 1.0,
            lin_vel_max: 0.1,
            ang_vel_max: 0.5,
            arrived_m: 0.005,
            arrived_rad: 0.05,
        },
        home: Home {
            q: START_Q,
            limits: AxisLimits {
                vel_max: 0.3,
                acc_max: 2.0,
                jerk_max: 50.0,
            },
        },
        arm_space: ArmSpace::Tcp,
        home_in_joints: false,
        isomorphic: false,
        operator_stale: Stale {
            hold_after: Span::from_ms(100),
            hard_after: Span::from_ms(500),
        },
        feedback_stale: Stale {
            hold_after: Span::from_ms(50),
            hard_after: Span::from_ms(250),
        },
        on_stop: OnStop::Hold,
        stop_within: Span::from_ms(500),
        engage_ramp: Span::ZERO,
        frame_verified: true,
        hold_to_run: false,
        keep_anchor: false,
        command_period_s: PERIOD_S,
    }
}

/// An arm that moves its joints towards the last command at a bounded speed and reports what it did.
pub struct ModelArm {
    model: PiperModel,
    target_q: [f64; 6],
    /// Present joints.
    pub q: [f64; 6],
    /// Joint speed, rad/s.
    pub speed: f64,
    /// Feedback is not refreshed.
    pub frozen: bool,
    /// Present fault.
    pub fault: Option<ArmFault>,
    state: ArmState<6>,
}

impl ModelArm {
    /// At rest at `q`.
    pub fn new(q: [f64; 6]) -> Self {
        Self {
            model: model(),
            target_q: q,
            q,
            speed: 3.0,
            frozen: false,
            fault: None,
            state: ArmState::default(),
        }
    }

    /// Takes a command's pose.
    pub fn command(&mut self, tcp: &Pose<ArmBase, Tcp>) {
        if let Ok(q) = self.model.ik(
            tcp,
            telearm::arm::piper::model::Choice::Nearest(self.target_q),
        ) {
            self.target_q = q;
        }
    }

    /// One period.
    pub fn step(&mut self, now: Stamp) -> &ArmState<6> {
        let most = self.speed * PERIOD_S;
        for (q, target) in self.q.iter_mut().zip(self.target_q) {
            *q += (0.5 * (target - *q)).clamp(-most, most);
        }
        if !self.frozen {
            self.state.tcp = Aged::at(self.model.fk(&self.q), now);
            self.state.q = Aged::at(self.q, now);
            self.state.pulse.0 += 1;
        }
        self.state.phase = self.fault.map_or(ArmPhase::Up, ArmPhase::Faulted);
        &self.state
    }

    /// As last reported.
    pub fn state(&self) -> &ArmState<6> {
        &self.state
    }

    /// Its geometry.
    pub fn model(&self) -> &PiperModel {
        &self.model
    }
}
