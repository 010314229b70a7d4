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
        gripper_hold_after: Span::from_ms(100),
        clutch_release_after: Span::from_ms(100),
        feedback_stale: Stale {
            hold_after: Span::from_ms(50),
            hard_after: Span::from_ms(250),
        },
        on_stop: OnStop::Hold,
        stop_within: Span::from_ms(500),
        engage_ramp: Span::ZERO,
        frame_verified: true,
        hold_to_run: false,
        clutch_is_other: false,
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

/// One sent command: when, its pose, whether it moved.
#[derive(Debug, Clone, Copy)]
pub struct SentCommand {
    /// Instant of the send.
    pub at: Stamp,
    /// Target.
    pub tcp: Pose<ArmBase, Tcp>,
    /// A motion frame.
    pub motion: bool,
}

/// A [`ModelArm`] behind the `Arm` trait: moves a period at each poll, and notes what it is sent.
pub struct TraitArm {
    arm: ModelArm,
    sent: std::sync::Arc<std::sync::Mutex<Vec<SentCommand>>>,
    records: bool,
}

impl TraitArm {
    /// At rest at `q`. With `records`, every command is noted (which takes memory).
    pub fn new(
        q: [f64; 6],
        records: bool,
    ) -> (Self, std::sync::Arc<std::sync::Mutex<Vec<SentCommand>>>) {
        let sent = std::sync::Arc::default();
        (
            Self {
                arm: ModelArm::new(q),
                sent: std::sync::Arc::clone(&sent),
                records,
            },
            sent,
        )
    }
}

impl telearm::arm::Arm<6> for TraitArm {
    fn poll(&mut self, now: Stamp, _may_configure: bool) {
        self.arm.step(now);
    }
    fn state(&self) -> &ArmState<6> {
        self.arm.state()
    }
    fn model(&self) -> &dyn telearm::kinematics::ArmModel<6> {
        self.arm.model()
    }
    fn has_room(&mut self, _now: Stamp, _motion: bool) -> bool {
        true
    }
    fn send(
        &mut self,
        command: &telearm::guard::Vetted<telearm::signal::ArmCommand<6>>,
        now: Stamp,
    ) -> telearm::arm::SendOutcome {
        if let telearm::signal::Target::Tcp(tcp) = command.get().target {
            self.arm.command(&tcp);
            if self.records {
                let motion = command.get().motion;
                self.sent.lock().unwrap().push(SentCommand {
                    at: now,
                    tcp,
                    motion,
                });
            }
        }
        telearm::arm::SendOutcome::Sent
    }
    fn hold_frames(
        &self,
        _command: &telearm::guard::Vetted<telearm::signal::ArmCommand<6>>,
    ) -> telearm::arm::HoldFrames {
        telearm::arm::HoldFrames::EMPTY
    }
    fn arm_stop(&mut self, _now: Stamp) -> telearm::arm::SendOutcome {
        telearm::arm::SendOutcome::Sent
    }
    fn recover(&mut self, _now: Stamp) {}
    fn stop_port(&self) -> std::io::Result<Box<dyn telearm::arm::StopPort>> {
        Err(std::io::Error::other("a model has no stop port"))
    }
    fn motion_fd(&self) -> Option<std::os::fd::RawFd> {
        None
    }
    fn counters(&self) -> telearm::arm::ArmCounters {
        telearm::arm::ArmCounters::default()
    }
}

/// An engine over model arms, and the test's ends of it.
pub struct Rig {
    /// The engine.
    pub engine: telearm::control::Engine,
    /// Latch and wake.
    pub line: std::sync::Arc<telearm::handoff::StopLine>,
    /// The operators' mailboxes.
    pub hands: Vec<telearm::handoff::Publisher<telearm::signal::OperatorSample>>,
    /// What each arm was sent.
    pub sent: Vec<std::sync::Arc<std::sync::Mutex<Vec<SentCommand>>>>,
    /// The instant.
    pub now: Stamp,
    /// Cycle number.
    pub n: u64,
}

/// One arm of a [`Rig`]: its lane's parameters, its command divisor, and its place among others.
pub struct RigArm {
    /// Parameters.
    pub params: LaneParams<6>,
    /// A command every so many cycles.
    pub divisor: u64,
    /// Where it stands, if tools keep apart.
    pub place: Option<telearm::control::Neighbourhood>,
}

impl Rig {
    /// Arms at rest, a hand for each.
    pub fn new(arms: Vec<RigArm>, coupling: telearm::control::Coupling, records: bool) -> Self {
        use telearm::control::{Engine, EngineParts, Lane, Listens, RunLane, Runner};
        let line = std::sync::Arc::new(telearm::handoff::StopLine::new());
        let (gate, _) = telearm::handoff::tx_gate();
        let (mut lanes, mut readers, mut hands, mut sent) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (pose, rig) in arms.into_iter().enumerate() {
            let (hand, reader) =
                telearm::handoff::mailbox(telearm::signal::OperatorSample::default());
            let (hold, _) = telearm::handoff::mailbox(telearm::arm::HoldFrames::EMPTY);
            let (arm, log) = TraitArm::new(START_Q, records);
            let listens = Listens {
                pose,
                gripper: None,
                clutch: None,
            };
            let runner = Runner::new(Lane::new(rig.params), Box::new(arm), listens, hold)
                .with_neighbourhood(rig.place);
            lanes.push((Box::new(runner) as Box<dyn RunLane>, rig.divisor));
            readers.push(reader);
            hands.push(hand);
            sent.push(log);
        }
        let engine = Engine::new(EngineParts {
            lanes,
            readers,
            gate,
            line: std::sync::Arc::clone(&line),
            board: std::sync::Arc::default(),
            coupling,
            stop_asserted: Box::new(|_| None),
        });
        Self {
            engine,
            line,
            hands,
            sent,
            now: Stamp::from_ms(1_000),
            n: 0,
        }
    }

    /// Publishes a hand pose to operator `i`, as of now.
    pub fn hand(&mut self, i: usize, position: [f64; 3]) {
        let pose = Pose::from_parts(
            Vector3::from(position),
            nalgebra::UnitQuaternion::identity(),
        );
        self.hands[i].publish(telearm::signal::OperatorSample {
            received_at: self.now,
            pose: Some(pose),
            quality: telearm::signal::Quality::Good,
            ..telearm::signal::OperatorSample::default()
        });
    }

    /// One cycle, a period later.
    pub fn cycle(&mut self) -> telearm::control::CycleDone {
        self.now = self.now + Span::from_s(PERIOD_S);
        self.n += 1;
        self.engine.cycle(self.n, self.now)
    }

    /// Hands at rest until everything is ready, then engaged.
    pub fn engage(&mut self) {
        for i in 0..80 {
            for hand in 0..self.hands.len() {
                self.hand(hand, [0.0; 3]);
            }
            if i == 60 {
                self.engine.request(
                    telearm::control::Request::Engage(telearm::control::LaneSet::ALL),
                    self.now,
                );
            }
            self.cycle();
        }
    }
}
