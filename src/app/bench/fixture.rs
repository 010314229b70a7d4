//! One lane with everything but sockets, on a clock that is an argument: for the cost of a packet, and for counting instructions.

use anyhow::{Result, anyhow};

use super::rig::busy_hand;
use crate::arm::can::{FrameFormat, KernelFrame};
use crate::arm::piper::model::{DhVariant, PiperModel};
use crate::arm::piper::params::PiperParams;
use crate::arm::piper::wire::{Command, EndPose, GripperOrder, GripperPower};
use crate::config::{self, ArmKindPlan, ArmTraits, DevicePlan, Strictness};
use crate::control::{ArmSpace, GroupView, Lane, LaneInputs, LaneOutput, Requests, Stale};
use crate::guard::Vetted;
use crate::operator::emulate::Ticks;
use crate::operator::rctp::Session;
use crate::operator::rctp::emulate::Emulator;
use crate::operator::{Body, DatagramSession};
use crate::signal::{Aged, ArmCommand, ArmPhase, ArmState, OperatorSample, Target};
use crate::supervisor::StopWhy;
use crate::time::{Span, Stamp};
use crate::units::{Micrometres, round_i32};

/// Commands per second.
pub(super) const RATE_HZ: u32 = 200;
/// Cycles per packet: 50 packets a second.
pub(super) const CYCLES_PER_PACKET: u32 = 4;
const PERIOD: Span = Span::from_ms(5);
/// Cycles within which the lane must engage.
const ENGAGE_CYCLES: u32 = 2_000;

const PLAN: &str = include_str!("../../../rt-config/demo.toml");

/// Alone: nobody to wait for.
const ALONE: GroupView = GroupView {
    holds: false,
    blocked: false,
    engages: true,
};

/// Frames of one command.
pub(super) type Frames = heapless::Vec<KernelFrame, 4>;

/// Session, lane and encoder of the demo's plan, and an arm that is always where it was told to be.
pub(super) struct Fixture {
    hand: Emulator,
    session: Session,
    lane: Lane<6>,
    model: PiperModel,
    arm: ArmState<6>,
    last_pose: EndPose,
    piper: PiperParams,
    sample: Option<OperatorSample>,
    now: Stamp,
    /// Set: the stop latch is tripped.
    pub(super) stop: Option<StopWhy>,
}

impl Fixture {
    /// At rest, not engaged.
    ///
    /// # Errors
    /// The demo's plan does not fit.
    pub(super) fn new() -> Result<Self> {
        let plan = config::parse("demo", PLAN, Strictness::Strict)
            .map_err(|e| anyhow!("{e}"))?
            .plan;
        let (Some(lane), Some(operator), Some(arm)) = (
            plan.lanes.first(),
            plan.operators.first(),
            plan.arms.first(),
        ) else {
            return Err(anyhow!("the demo's plan has no lane"));
        };
        let ArmKindPlan::Piper(piper) = &arm.kind;
        let DevicePlan::Rctp(settings) = &operator.device else {
            return Err(anyhow!("the demo's plan has no Quest hand"));
        };
        let q = piper.home_deg.map(f64::to_radians);
        let traits = ArmTraits {
            home_q: q,
            space: ArmSpace::Tcp,
            home_in_joints: false,
            feedback_stale: Stale {
                hold_after: Span::from_ms(50),
                hard_after: Span::from_ms(250),
            },
            engage_ramp: Span::ZERO,
        };
        let model = PiperModel::new(DhVariant::Offset);
        let start = model.fk(&q);
        let now = Stamp::from_ms(10_000);
        Ok(Self {
            hand: Emulator::new(busy_hand(1)),
            session: Session::new(settings),
            lane: Lane::new(
                lane.params(&plan, &traits, true)
                    .ok_or_else(|| anyhow!("the cross references of the demo's plan are broken"))?,
            ),
            arm: ArmState {
                phase: ArmPhase::Up,
                tcp: Aged::at(start, now),
                q: Aged::at(q, now),
                ..ArmState::default()
            },
            last_pose: EndPose::from_pose(&start, &EndPose::default())
                .map_err(|_| anyhow!("the home pose does not encode"))?,
            model,
            piper: piper.clone(),
            sample: None,
            now,
            stop: None,
        })
    }

    /// Runs until the lane follows the hand.
    ///
    /// # Errors
    /// It does not.
    pub(super) fn engage(&mut self) -> Result<()> {
        for cycle in 0..ENGAGE_CYCLES {
            if cycle.is_multiple_of(CYCLES_PER_PACKET) {
                let packet = self.next_packet();
                self.take(&packet);
            }
            let output = self.think(true);
            self.obey(output.command.as_ref());
            self.next_cycle();
            if self.lane.report().mode.follows() {
                return Ok(());
            }
        }
        let inhibits = self.lane.report().inhibits;
        let names: Vec<_> = inhibits.iter().map(|i| i.name()).collect();
        Err(anyhow!("the lane does not follow: {}", names.join(", ")))
    }

    /// Whether the lane follows.
    pub(super) fn follows(&self) -> bool {
        self.lane.report().mode.follows()
    }

    /// The hand's next datagram.
    pub(super) fn next_packet(&mut self) -> Vec<u8> {
        self.hand
            .step()
            .into_iter()
            .next()
            .map_or_else(Vec::new, |d| d.bytes)
    }

    /// Parses a datagram and judges it within its stream. Twice parsed, as the source does: a glance for the stop bit, then the session.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        if self.session.glance(bytes).stop {
            return;
        }
        if let Body::Sample(sample) = self.session.on_datagram(bytes, self.now).body {
            self.sample = Some(sample);
        }
    }

    /// One lane cycle: sample to vetted command.
    pub(super) fn think(&mut self, engage: bool) -> LaneOutput<6> {
        let inputs = LaneInputs {
            now: self.now,
            sample: self.sample.as_ref(),
            gripper_sample: None,
            clutch_sample: None,
            arm: &self.arm,
            model: &self.model,
            keep_outs: &[],
            stop: self.stop,
            taken_over: false,
            requests: Requests {
                engage,
                ..Requests::default()
            },
            away: false,
            command_due: true,
        };
        self.lane.assess(&inputs);
        self.lane.act(&inputs, ALONE)
    }

    /// The frames of a command, as the driver lays them out, the gripper always among them.
    pub(super) fn encode(&mut self, command: &Vetted<ArmCommand<6>>) -> Frames {
        let mut frames = Frames::new();
        let command = command.get();
        let Target::Tcp(tcp) = &command.target else {
            return frames;
        };
        let Ok(pose) = EndPose::from_pose(tcp, &self.last_pose) else {
            return frames;
        };
        self.last_pose = pose;
        let classic = |frame| KernelFrame::encode(&frame, FrameFormat::Classic);
        frames.extend(pose.frames().map(classic));
        let stroke = command
            .opening
            .and_then(|o| round_i32(o.get() * f64::from(self.piper.gripper_max_um)));
        let gripper = stroke.and_then(|um| {
            let effort = self.piper.gripper_effort_mnm;
            GripperOrder::new(Micrometres(um), effort, GripperPower::Enable, false).ok()
        });
        frames.extend(gripper.map(|order| classic(Command::Gripper(order).encode())));
        frames
    }

    /// The arm has taken the command and is there.
    pub(super) fn obey(&mut self, command: Option<&Vetted<ArmCommand<6>>>) {
        self.lane.sent(command.is_some());
        if let Some(command) = command
            && let Target::Tcp(tcp) = command.get().target
        {
            self.arm.tcp = Aged::at(tcp, self.now);
        }
    }

    /// Time goes on by a period; the arm reports.
    pub(super) fn next_cycle(&mut self) {
        self.now = self.now + PERIOD;
        if let Some(tcp) = self.arm.tcp.value() {
            self.arm.tcp = Aged::at(tcp, self.now);
        }
        if let Some(q) = self.arm.q.value() {
            self.arm.q = Aged::at(q, self.now);
        }
        self.arm.pulse.0 += 1;
    }
}
