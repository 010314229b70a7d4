//! [`PiperDriver`]: the Piper behind the [`Arm`] trait.
//!
//! Three sources of truth are kept apart: what the arm says (`driver_feedback`), what that means (`driver_faults`), and where its life
//! stands (`driver_bringup`). This file sends.
//!
//! One command is one group of frames: the mode (0x151) when it is due, the three frames of the target, the gripper (0x159) when it is
//! due. All or none of it goes out.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use super::driver_bringup::Phase;
use super::driver_faults::{self, FOREIGN_FOR};
use super::driver_feedback::Table;
use super::driver_report::PiperReport;
use super::model::{DhVariant, PiperModel};
use super::params::{DhChoice, DriveMode, PiperParams};
use super::stop_port::PiperStopPort;
use super::wire::{
    Command, ControlMode, ControlOrder, EndPose, FollowOrder, GripperOrder, GripperPower,
    ModeOrder, MotionOrder, MoveMode, MoveOrder, OutOfRange,
};
use crate::arm::can::{
    CanLink, FrameFormat, GroupKind, IdFilter, KernelFrame, LinkOptions, OpenError, StampSource,
};
use crate::arm::frame::Frame;
use crate::arm::{Arm, ArmCounters, HoldFrames, SendOutcome, StopPort};
use crate::guard::Vetted;
use crate::kinematics::ArmModel;
use crate::signal::{Aged, ArmCommand, ArmFault, ArmState, FaultKind, FeedbackPulse, Target};
use crate::time::{Span, Stamp};
use crate::units::{Micrometres, MilliDegrees, Opening, round_i32};

/// The mode is repeated so often while commands flow: an arm that lost it takes it up again within one blink.
const MODE_EVERY: Span = Span::from_ms(200);
/// The mode is repeated so often while the arm reports another one.
const MODE_RETRY: Span = Span::from_ms(50);
/// A changed gripper target goes out at most so often …
const GRIPPER_EVERY: Span = Span::from_ms(20);
/// … and an unchanged one so often, in case a frame was lost.
const GRIPPER_REPEAT: Span = Span::from_ms(500);
/// Another mode than ours for so long, in spite of repeated orders.
const WRONG_MODE_AFTER: Span = Span::from_ms(500);
/// A refused target for so long is a fault.
const REFUSED_AFTER: Span = Span::from_ms(2000);
/// We were not polled for so long: what the arm said meanwhile may be lost, so its silence is judged only after …
const ABSENT_AFTER: Span = Span::from_ms(100);
/// … so much time to speak again.
const ABSENT_GRACE: Span = Span::from_ms(50);
/// Mode, three target frames, gripper; one configuration frame may be in flight beside them.
const GROUP_MAX: usize = 5;
const CYCLE_FRAMES: u16 = 6;

/// Every identifier that the arm uses in either direction: what we send must pass too, or its echo is never seen.
const FILTERS: [IdFilter; 6] = [
    IdFilter::sixteen(0x150),
    IdFilter::sixteen(0x250),
    IdFilter::sixteen(0x260),
    IdFilter::sixteen(0x2A0),
    IdFilter::sixteen(0x470),
    IdFilter::one(0x4AF),
];

/// A target in the arm's own numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Encoded {
    Pose(EndPose),
    Joints([MilliDegrees; 6]),
}

impl Encoded {
    fn frames(&self) -> [Frame; 3] {
        match self {
            Self::Pose(pose) => pose.frames(),
            Self::Joints(angles) => Command::joint_frames(*angles),
        }
    }
}

type Group = heapless::Vec<Frame, GROUP_MAX>;

/// The driver of one Piper.
pub struct PiperDriver {
    pub(super) link: CanLink,
    pub(super) table: Table,
    pub(super) phase: Phase,
    pub(super) report: Arc<PiperReport>,
    pub(super) params: PiperParams,
    pub(super) newer_model: PiperModel,
    pub(super) older_model: PiperModel,
    state: ArmState<6>,
    mode_order: ModeOrder,
    /// The last pose target sent, or measured at the start: where the Euler branch continues.
    last_pose: EndPose,
    gripper_sent: Option<(Micrometres, Stamp)>,
    mode_sent: Option<Stamp>,
    /// Commands of the wrong kind, or that the bus cannot carry.
    unfit_targets: u64,
    /// All six motors had power since the last time that their power was in question.
    pub(super) enabled_before: bool,
    pub(super) ever_up: bool,
    pub(super) identified: bool,
    refused_since: Option<Stamp>,
    wrong_mode_since: Option<Stamp>,
    last_poll: Option<Stamp>,
    judge_from: Stamp,
}

impl PiperDriver {
    /// Opens the arm's bus. Nothing is sent before the first poll. At start-up.
    ///
    /// # Errors
    /// See [`OpenError`].
    ///
    /// # Panics
    /// When `params` were not validated.
    #[expect(clippy::disallowed_types, reason = "start-up")]
    pub fn open(params: PiperParams, stamps: StampSource) -> Result<Self, OpenError> {
        let link = CanLink::open(LinkOptions {
            address: params.can.clone(),
            filters: Box::new(FILTERS),
            format: FrameFormat::Classic,
            cycle_frames: CYCLE_FRAMES,
            stamps,
        })?;
        let movement = match params.mode {
            DriveMode::Pose => MoveOrder::P,
            DriveMode::Joint => MoveOrder::J,
        };
        let speed_percent = params.speed_percent.min(100);
        #[expect(
            clippy::expect_used,
            reason = "start-up; the percentage is within its bound by the line above"
        )]
        let mode_order = ModeOrder::new(
            ControlOrder::Can,
            movement,
            speed_percent,
            FollowOrder::Planned,
        )
        .expect("within 0..=100");
        Ok(Self {
            link,
            table: Table::default(),
            phase: Phase::START,
            report: PiperReport::new(if params.dh == DhChoice::NoOffset {
                DhVariant::Old
            } else {
                DhVariant::Offset
            }),
            newer_model: PiperModel::new(DhVariant::Offset),
            older_model: PiperModel::new(DhVariant::Old),
            params,
            state: ArmState::default(),
            mode_order,
            last_pose: EndPose::default(),
            gripper_sent: None,
            mode_sent: None,
            unfit_targets: 0,
            enabled_before: false,
            ever_up: false,
            identified: false,
            refused_since: None,
            wrong_mode_since: None,
            last_poll: None,
            judge_from: Stamp::default(),
        })
    }

    /// What the driver finds out about the arm, readable from any thread.
    #[must_use]
    pub fn report(&self) -> &Arc<PiperReport> {
        &self.report
    }

    /// The bus.
    #[must_use]
    pub const fn link_address(&self) -> &crate::arm::can::CanAddress {
        &self.params.can
    }

    /// Commands that were no pose in pose mode (no joints in joint mode), or that the bus cannot carry.
    #[must_use]
    pub const fn unfit_targets(&self) -> u64 {
        self.unfit_targets
    }

    /// Parts of poses and joint sets that were thrown away because their companions were missing.
    #[must_use]
    pub const fn incomplete_feedback(&self) -> u64 {
        self.table.incomplete
    }

    /// Sends one configuration frame if there is room. `true` when it went out.
    pub(super) fn configure(&mut self, command: &Command, now: Stamp) -> bool {
        self.link
            .send_group(&[command.encode()], GroupKind::Config, now)
            == SendOutcome::Sent
    }

    /// Orders the mode. `true` when it went out.
    pub(super) fn order_mode(&mut self, now: Stamp) -> bool {
        let sent = self.configure(&Command::Mode(self.mode_order), now);
        if sent {
            self.mode_sent = Some(now);
        }
        sent
    }

    /// Sends the measured pose (or joints) as the first target. `true` when it went out.
    pub(super) fn send_measured_target(&mut self, now: Stamp, age_max: Span) -> bool {
        let Some(pose) = self.table.pose.fresh(now, age_max) else {
            return false;
        };
        let target = match self.params.mode {
            DriveMode::Pose => Encoded::Pose(pose),
            DriveMode::Joint => match self.table.joints.fresh(now, age_max) {
                Some(angles) => Encoded::Joints(angles),
                None => return false,
            },
        };
        let sent =
            self.link.send_group(&target.frames(), GroupKind::Hold, now) == SendOutcome::Sent;
        if sent {
            self.last_pose = pose;
            self.gripper_sent = None;
        }
        sent
    }

    /// Orders the gripper to stay where it is, with the given power. `true` when it went out.
    pub(super) fn order_gripper_stay(&mut self, power: GripperPower, now: Stamp) -> bool {
        let Some(gripper) = self.table.gripper.value() else {
            return false;
        };
        let stroke = Micrometres(gripper.stroke.0.clamp(0, self.params.gripper_max_um));
        GripperOrder::new(stroke, self.params.gripper_effort_mnm, power, false)
            .is_ok_and(|order| self.configure(&Command::Gripper(order), now))
    }

    /// Whether the arm reports the mode that we ordered.
    pub(super) fn mode_is_ours(&self) -> bool {
        let movement = match self.params.mode {
            DriveMode::Pose => MoveMode::P,
            DriveMode::Joint => MoveMode::J,
        };
        self.table
            .status
            .value()
            .is_some_and(|s| s.control == ControlMode::Can && s.movement == movement)
    }

    pub(super) fn mode_due(&self, now: Stamp) -> bool {
        let every = if self.mode_is_ours() {
            MODE_EVERY
        } else {
            MODE_RETRY
        };
        self.mode_sent.is_none_or(|at| now.age_of(at) >= every)
    }

    fn gripper_due(&self, stroke: Micrometres, now: Stamp) -> bool {
        self.gripper_sent.is_none_or(|(sent, at)| {
            let every = if sent == stroke {
                GRIPPER_REPEAT
            } else {
                GRIPPER_EVERY
            };
            now.age_of(at) >= every
        })
    }

    fn encode(&self, target: &Target<6>) -> Option<Encoded> {
        match (self.params.mode, target) {
            (DriveMode::Pose, Target::Tcp(tcp)) => EndPose::from_pose(tcp, &self.last_pose)
                .ok()
                .map(Encoded::Pose),
            (DriveMode::Joint, Target::Joint(q)) => joint_target(q).ok().map(Encoded::Joints),
            _ => None,
        }
    }

    fn gripper_order(&self, opening: Option<Opening>) -> Option<GripperOrder> {
        if !self.params.gripper {
            return None;
        }
        let stroke = Micrometres(round_i32(
            opening?.get() * f64::from(self.params.gripper_max_um),
        )?);
        GripperOrder::new(
            stroke,
            self.params.gripper_effort_mnm,
            GripperPower::Enable,
            false,
        )
        .ok()
    }

    pub(super) fn send_command(&mut self, command: &ArmCommand<6>, now: Stamp) -> SendOutcome {
        if self.phase != Phase::Up || self.link.fault().is_some() {
            return SendOutcome::NotReady;
        }
        let Some(target) = self.encode(&command.target) else {
            self.unfit_targets += 1;
            return SendOutcome::NotReady;
        };
        let mode_due = self.mode_due(now);
        let gripper = self
            .gripper_order(command.opening)
            .filter(|order| self.gripper_due(order.stroke(), now));
        let mut group = Group::new();
        group.extend(mode_due.then(|| Command::Mode(self.mode_order).encode()));
        group.extend(target.frames());
        group.extend(gripper.map(|order| Command::Gripper(order).encode()));
        let outcome = self.link.send_group(&group, kind(command.motion), now);
        if outcome == SendOutcome::Sent {
            if let Encoded::Pose(pose) = target {
                self.last_pose = pose;
            }
            if mode_due {
                self.mode_sent = Some(now);
            }
            if let Some(order) = gripper {
                self.gripper_sent = Some((order.stroke(), now));
            }
        }
        outcome
    }

    pub(super) fn encode_hold(&self, command: &ArmCommand<6>) -> HoldFrames {
        let mut hold = HoldFrames::EMPTY;
        let Some(target) = self.encode(&command.target) else {
            return hold;
        };
        let gripper = self
            .gripper_order(command.opening)
            .map(|order| Command::Gripper(order).encode());
        for frame in target.frames().into_iter().chain(gripper) {
            // Four frames fit nine places.
            let _ = hold.push(KernelFrame::encode(&frame, self.link.format()).as_bytes());
        }
        hold
    }

    /// What is wrong now, the most telling thing first.
    pub(super) fn judge(&mut self, now: Stamp) -> Option<ArmFault> {
        if let Some(kind) = self.link.fault() {
            return Some(ArmFault::whole(kind));
        }
        if now < self.judge_from {
            return None;
        }
        if self.leader_suspected(now) {
            return Some(ArmFault {
                kind: FaultKind::LeaderMode,
                joint: 0,
                code: self.table.foreign.value().unwrap_or(0),
            });
        }
        driver_faults::bus_fault(&self.table, now)
            .or_else(|| driver_faults::arm_fault(&self.table, self.enabled_before))
            .or_else(|| self.lasting_fault(now))
    }

    /// Things that are faults only when they last, and only while the arm is ours.
    fn lasting_fault(&mut self, now: Stamp) -> Option<ArmFault> {
        if self.phase != Phase::Up {
            (self.wrong_mode_since, self.refused_since) = (None, None);
            return None;
        }
        let wrong = !self.mode_is_ours();
        let refused = driver_faults::refusal(&self.table);
        if lasts(&mut self.wrong_mode_since, wrong, now, WRONG_MODE_AFTER) {
            let code = self.table.status.value().map_or(0, |s| {
                (u32::from(s.control.as_u8()) << 8) | u32::from(s.movement.as_u8())
            });
            return Some(ArmFault {
                kind: FaultKind::WrongMode,
                joint: 0,
                code,
            });
        }
        if lasts(
            &mut self.refused_since,
            refused.is_some(),
            now,
            REFUSED_AFTER,
        ) {
            refused
        } else {
            None
        }
    }

    /// Somebody commands and the arm itself says nothing: that is what a leader arm looks like.
    fn leader_suspected(&self, now: Stamp) -> bool {
        let foreign = self.table.foreign.fresh(now, FOREIGN_FOR).is_some();
        foreign
            && self
                .table
                .heard_at
                .is_none_or(|at| now.age_of(at) > FOREIGN_FOR)
    }

    fn note_absence(&mut self, now: Stamp) {
        if self
            .last_poll
            .is_some_and(|at| now.age_of(at) > ABSENT_AFTER)
        {
            self.judge_from = now + ABSENT_GRACE;
        }
        self.last_poll = Some(now);
    }

    fn refresh_state(&mut self, now: Stamp) {
        let pulse = FeedbackPulse(self.table.pulses);
        if pulse != self.state.pulse {
            self.state.tcp = map(self.table.pose, |pose| pose.to_pose());
        }
        self.state.pulse = pulse;
        self.state.q = map(self.table.joints, |angles| angles.map(MilliDegrees::as_rad));
        self.state.dq = self.table.velocities();
        let stroke_max = f64::from(self.params.gripper_max_um.max(1));
        self.state.opening = match (self.table.gripper.value(), self.table.gripper.stamp()) {
            (Some(g), Some(at)) => Opening::clamped(f64::from(g.stroke.0) / stroke_max)
                .map_or(Aged::NEVER, |o| Aged::at(o, at)),
            _ => Aged::NEVER,
        };
        self.state.warning = driver_faults::refusal(&self.table)
            .or_else(|| driver_faults::gripper_complaint(&self.table));
        self.state.phase = self.phase.shown(&self.table, now);
    }
}

const fn kind(motion: bool) -> GroupKind {
    if motion {
        GroupKind::Motion
    } else {
        GroupKind::Hold
    }
}

/// Joint targets in the arm's unit.
fn joint_target(q: &[f64; 6]) -> Result<[MilliDegrees; 6], OutOfRange> {
    let mut angles = [MilliDegrees(0); 6];
    for (slot, rad) in angles.iter_mut().zip(q) {
        *slot = MilliDegrees::from_rad(*rad).ok_or(OutOfRange(super::wire::Field::JointAngle))?;
    }
    Ok(angles)
}

/// Keeps the time since which `is` holds; `true` once that is `limit` ago.
fn lasts(since: &mut Option<Stamp>, is: bool, now: Stamp, limit: Span) -> bool {
    if !is {
        *since = None;
        return false;
    }
    now.age_of(*since.get_or_insert(now)) >= limit
}

fn map<T: Copy, U: Copy>(aged: Aged<T>, f: impl Fn(T) -> U) -> Aged<U> {
    match (aged.value(), aged.stamp()) {
        (Some(value), Some(at)) => Aged::at(f(value), at),
        _ => Aged::NEVER,
    }
}

impl Arm<6> for PiperDriver {
    fn poll(&mut self, now: Stamp, may_configure: bool) {
        self.note_absence(now);
        let port_used = self.link.port_used();
        let Self { link, table, .. } = self;
        link.poll(now, |received| table.take(&received, port_used));
        if self.link.take_restarted() {
            self.restart_after_link();
        }
        self.advance(now, may_configure);
        self.refresh_state(now);
    }

    fn state(&self) -> &ArmState<6> {
        &self.state
    }

    fn model(&self) -> &dyn ArmModel<6> {
        match self.report.geometry() {
            DhVariant::Offset => &self.newer_model,
            DhVariant::Old => &self.older_model,
        }
    }

    fn has_room(&mut self, now: Stamp, motion: bool) -> bool {
        let frames = GROUP_MAX - usize::from(!self.mode_due(now));
        self.link.has_room(frames, kind(motion))
    }

    fn send(&mut self, command: &Vetted<ArmCommand<6>>, now: Stamp) -> SendOutcome {
        self.send_command(command.get(), now)
    }

    fn hold_frames(&self, command: &Vetted<ArmCommand<6>>) -> HoldFrames {
        self.encode_hold(command.get())
    }

    fn arm_stop(&mut self, now: Stamp) -> SendOutcome {
        self.link.send_group(
            &[Command::Motion(MotionOrder::DAMPED_STOP).encode()],
            GroupKind::Stop,
            now,
        )
    }

    fn recover(&mut self, now: Stamp) {
        self.begin_recovery(now);
    }

    #[expect(clippy::disallowed_types, reason = "start-up")]
    fn stop_port(&self) -> io::Result<Box<dyn StopPort>> {
        let port = PiperStopPort::open(&self.link).map_err(io::Error::other)?;
        Ok(Box::new(port))
    }

    fn motion_fd(&self) -> Option<RawFd> {
        Some(self.link.motion_fd())
    }

    fn counters(&self) -> ArmCounters {
        let c = self.link.counters();
        ArmCounters {
            frames_out: c.frames_out,
            frames_in: c.frames_in,
            busy: c.busy,
            rejected: c.odd + self.table.rejected,
            bus_errors: c.bus_errors,
            confirmed: c.confirmed,
            in_flight: c.in_flight,
            reopened: c.reopened,
        }
    }
}
