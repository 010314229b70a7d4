//! One lane with its arm and its readers, behind an interface that hides the number of joints.
//!
//! This is where the pure lane meets I/O: poll, assess, act, send, tell the lane what became of it.

#![expect(
    clippy::disallowed_types,
    reason = "boxed once at start-up; nothing is boxed in a cycle"
)]

use crate::arm::{Arm, ArmCounters, HoldFrames, SendOutcome};
use nalgebra::Vector3;

use crate::geometry::{ArmBase, Pose, Tcp, World};
use crate::guard::{KeepOut, KeepOuts, Vetted};
use crate::handoff::{ControlGate, LaneLine, Publisher, StopLatch, TxRefused};
use crate::signal::{ArmCommand, ArmFault, ArmPhase, OperatorSample};
use crate::supervisor::{Mode, StopWhy};
use crate::time::{Span, Stamp};

use super::group::{GroupView, LaneStanding};
use super::lane::{Lane, LaneInputs, Requests};
use super::report::LaneReport;

/// Which operators a lane listens to, as indices into the cycle's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listens {
    /// Pose (and gripper, unless another is named).
    pub pose: usize,
    /// Gripper.
    pub gripper: Option<usize>,
    /// Clutch (`other_hand`).
    pub clutch: Option<usize>,
}

/// What every lane gets in one cycle.
#[derive(Debug, Clone, Copy)]
pub struct CycleInputs<'a> {
    /// The instant of the cycle.
    pub now: Stamp,
    /// Newest samples of all operators; `None`: never one.
    pub samples: &'a [Option<OperatorSample>],
    /// The stop latch.
    pub stop: Option<StopWhy>,
    /// The watchdog has taken over.
    pub taken_over: bool,
    /// Control was away for longer than a soft limit.
    pub away: bool,
}

/// What one lane shows to the service thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaneView {
    /// The lane's own report.
    pub report: LaneReport,
    /// The arm's phase.
    pub phase: ArmPhase,
    /// A passing complaint of the arm.
    pub warning: Option<ArmFault>,
    /// Measured tool pose.
    pub measured: Option<Pose<ArmBase, Tcp>>,
    /// Age of the measured pose.
    pub feedback_age: Option<Span>,
    /// Age of the measured joints.
    pub joints_age: Option<Span>,
    /// Measured opening.
    pub opening: Option<f64>,
    /// Age of the newest sample.
    pub sample_age: Option<Span>,
    /// The driver's counters.
    pub arm: ArmCounters,
}

/// Where a tool is commanded, in the room shared by the arms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Footprint {
    /// Position, metres in the room.
    pub position: Vector3<f64>,
    /// How far it would still go if it braked now, metres.
    pub braking_m: f64,
}

/// Where an arm stands, and how near its tool may come to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbourhood {
    /// The arm's base in the room.
    pub base_in_world: Pose<World, ArmBase>,
    /// Least distance of two tools, metres.
    pub distance_min_m: f64,
}

/// What a lane did with its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaneSent {
    /// A command went out.
    pub sent: bool,
    /// It was a moving one.
    pub motion: bool,
    /// Receive time of the sample that this command is the first to use.
    pub first_use_of: Option<Stamp>,
    /// The arm's own stop went out.
    pub arm_stop: bool,
    /// The lane changed mode: before, after.
    pub changed: Option<(Mode, Mode)>,
}

/// A lane as the control thread sees it.
pub trait RunLane: Send {
    /// Drains the arm's feedback.
    fn poll(&mut self, now: Stamp, may_configure: bool);
    /// First pass.
    fn assess(
        &mut self,
        cycle: &CycleInputs<'_>,
        requests: Requests,
        command_due: bool,
    ) -> LaneStanding;
    /// Second pass: decides and makes the command; nothing is sent yet. `others` are the other lanes' tools.
    fn act(
        &mut self,
        cycle: &CycleInputs<'_>,
        group: GroupView,
        others: &[Footprint],
        line: &LaneLine,
    );
    /// Where this lane's tool is commanded, in the room. `None`: unknown, or its distance to others is not watched.
    fn footprint(&self) -> Option<Footprint>;
    /// Sends what `act` made.
    fn send(&mut self, gate: &mut ControlGate, latch: &StopLatch, now: Stamp) -> LaneSent;
    /// Starts the arm's recovery. The operator has been told that the arm may drop.
    fn recover(&mut self, now: Stamp);
    /// For the status.
    fn view(&self, now: Stamp) -> LaneView;
}

/// The one implementation of [`RunLane`].
pub struct Runner<const N: usize> {
    lane: Lane<N>,
    arm: Box<dyn Arm<N>>,
    listens: Listens,
    hold: Publisher<HoldFrames>,
    requests: Requests,
    command_due: bool,
    command: Option<Vetted<ArmCommand<N>>>,
    arm_stop: bool,
    left: Option<Mode>,
    newest: Option<Stamp>,
    used: Option<Stamp>,
    neighbourhood: Option<Neighbourhood>,
}

impl<const N: usize> Runner<N> {
    /// A lane and its arm. `hold` takes the encoded frames that keep the arm where it was last sent.
    #[must_use]
    pub fn new(
        lane: Lane<N>,
        arm: Box<dyn Arm<N>>,
        listens: Listens,
        hold: Publisher<HoldFrames>,
    ) -> Self {
        Self {
            lane,
            arm,
            listens,
            hold,
            requests: Requests::default(),
            command_due: false,
            command: None,
            arm_stop: false,
            left: None,
            newest: None,
            used: None,
            neighbourhood: None,
        }
    }
}

impl<const N: usize> Runner<N> {
    /// The same lane, watching its distance to other arms' tools.
    #[must_use]
    pub fn with_neighbourhood(mut self, neighbourhood: Option<Neighbourhood>) -> Self {
        self.neighbourhood = neighbourhood;
        self
    }

    /// Other tools as balls in this arm's base.
    fn keep_outs(&self, others: &[Footprint]) -> KeepOuts {
        let mut balls = KeepOuts::new();
        let Some(place) = &self.neighbourhood else {
            return balls;
        };
        let to_base = place.base_in_world.inverse();
        for other in others {
            let center = to_base.iso.transform_point(&other.position.into()).coords;
            // As many balls as lanes fit; a plan has no more.
            let _ = balls.push(KeepOut {
                center,
                radius_m: place.distance_min_m + other.braking_m,
            });
        }
        balls
    }
}

/// The lane's inputs of this cycle. A function of the parts, so that the lane itself stays free to be changed.
fn gather<'a, const N: usize>(
    arm: &'a dyn Arm<N>,
    listens: &Listens,
    cycle: &'a CycleInputs<'a>,
    requests: Requests,
    command_due: bool,
    keep_outs: &'a [KeepOut],
) -> LaneInputs<'a, N> {
    let sample = |index: usize| cycle.samples.get(index).and_then(Option::as_ref);
    LaneInputs {
        now: cycle.now,
        sample: sample(listens.pose),
        gripper_sample: listens.gripper.and_then(sample),
        clutch_sample: listens.clutch.and_then(sample),
        arm: arm.state(),
        model: arm.model(),
        keep_outs,
        stop: cycle.stop,
        taken_over: cycle.taken_over,
        requests,
        away: cycle.away,
        command_due,
    }
}

impl<const N: usize> RunLane for Runner<N> {
    fn poll(&mut self, now: Stamp, may_configure: bool) {
        self.arm.poll(now, may_configure);
    }

    fn assess(
        &mut self,
        cycle: &CycleInputs<'_>,
        requests: Requests,
        command_due: bool,
    ) -> LaneStanding {
        self.requests = requests;
        self.command_due = command_due;
        let sample = cycle
            .samples
            .get(self.listens.pose)
            .and_then(Option::as_ref);
        self.newest = sample.map(|s| s.received_at);
        let inputs = gather(&*self.arm, &self.listens, cycle, requests, command_due, &[]);
        self.lane.assess(&inputs)
    }

    fn footprint(&self) -> Option<Footprint> {
        let place = self.neighbourhood.as_ref()?;
        let (position, braking_m) = self.lane.footprint()?;
        let position = place
            .base_in_world
            .iso
            .transform_point(&position.into())
            .coords;
        Some(Footprint {
            position,
            braking_m,
        })
    }

    fn act(
        &mut self,
        cycle: &CycleInputs<'_>,
        group: GroupView,
        others: &[Footprint],
        line: &LaneLine,
    ) {
        let keep_outs = self.keep_outs(others);
        let inputs = gather(
            &*self.arm,
            &self.listens,
            cycle,
            self.requests,
            self.command_due,
            &keep_outs,
        );
        let output = self.lane.act(&inputs, group);
        self.command = output.command;
        self.arm_stop = output.arm_stop;
        self.left = output.left;
        let mode = self.lane.report().mode;
        line.show(mode.code(), mode.follows());
    }

    fn send(&mut self, gate: &mut ControlGate, latch: &StopLatch, now: Stamp) -> LaneSent {
        let mode = self.lane.report().mode;
        let changed = self.left.take().map(|before| (before, mode));
        let mut done = LaneSent {
            changed,
            ..LaneSent::default()
        };
        if core::mem::take(&mut self.arm_stop)
            && let Ok(permit) = gate.begin_braking()
        {
            done.arm_stop = self.arm.arm_stop(now) == SendOutcome::Sent;
            drop(permit);
            if done.arm_stop {
                self.lane.arm_stop_sent();
                return done;
            }
        }
        let Some(command) = self.command.take() else {
            return done;
        };
        let outcome = self.send_command(&command, gate, latch, now);
        done.sent = outcome == SendOutcome::Sent;
        done.motion = done.sent && command.get().motion;
        self.lane.sent(done.sent);
        if done.sent {
            self.hold.publish(self.arm.hold_frames(&command));
            if done.motion && self.newest != self.used {
                self.used = self.newest;
                done.first_use_of = self.newest;
            }
        }
        done
    }

    fn recover(&mut self, now: Stamp) {
        self.arm.recover(now);
    }

    fn view(&self, now: Stamp) -> LaneView {
        let state = self.arm.state();
        LaneView {
            report: self.lane.report(),
            phase: state.phase,
            warning: state.warning,
            measured: state.tcp.value(),
            feedback_age: state.tcp.age(now),
            joints_age: state.q.age(now),
            opening: state.opening.value().map(crate::units::Opening::get),
            sample_age: self.newest.map(|s| now.age_of(s)),
            arm: self.arm.counters(),
        }
    }
}

impl<const N: usize> Runner<N> {
    /// Room first, then the latch, then the write: once the permit is held nothing waits.
    fn send_command(
        &mut self,
        command: &Vetted<ArmCommand<N>>,
        gate: &mut ControlGate,
        latch: &StopLatch,
        now: Stamp,
    ) -> SendOutcome {
        if !self.arm.has_room(now, command.get().motion) {
            return SendOutcome::Busy;
        }
        let permit = if command.get().motion {
            gate.begin(latch)
        } else {
            gate.begin_braking()
        };
        match permit {
            Ok(_permit) => self.arm.send(command, now),
            Err(TxRefused::Tripped | TxRefused::TakenOver) => SendOutcome::NotReady,
        }
    }
}
