//! One lane: operator in, vetted command out. Pure: no clock, no I/O, no heap.
//!
//! Each cycle has two passes over all lanes, as in an analyse-then-act loop. [`Lane::assess`] looks and changes nothing but memory of
//! what was seen; [`Lane::act`] moves the mode, makes the command. What the command becomes is told afterwards by [`Lane::sent`].

use nalgebra::Vector3;

use crate::geometry::{ArmBase, Pose, Tcp, angle_between};
use crate::guard::{Guard, GuardLimits, KeepOut, Veto, Vetted};
use crate::kinematics::ArmModel;
use crate::retarget::{Anchor, GripperPickup};
use crate::shaping::{JointShaper, Limits, ScalarShaper, ScalarState, Shaper, Tracker};
use crate::signal::{ArmCommand, ArmPhase, ArmState, OperatorSample, Quality};
use crate::supervisor::{
    Facts, Freshness, HomeCause, Inhibit, InhibitSet, Mode, StopWhy, Timing, next,
};
use crate::time::{Span, Stamp};

mod assess;
mod goal;

use super::edges::{EdgeGate, EdgeNews};
use super::group::GroupView;
use super::motion::{Candidate, Context, Motion, Shapers, Stream, frozen};
use super::params::{LaneParams, OnStop};
use super::report::{LaneCounters, LaneReport, Slowed};
use super::rest::RestDetector;

/// A gap in the commands: after this long the arm counts as come to rest on the last target, and motion goes on from rest.
const STALLED_AFTER_S: f64 = 0.012;
/// After this long the stream is broken and the lane disengages.
const BROKEN_AFTER_S: f64 = 0.1;
/// A tool on a joint-space way stops within this.
const JOINT_WAY_BRAKING_M: f64 = 0.05;
/// Joint-space ways have their own, generous cap on the tool's speed; the joints' limits are what holds.
const JOINT_WAY_TOOL_SPEED: f64 = 2.0;
const JOINT_WAY_TOOL_TURN: f64 = 12.0;

/// What the service thread asked for, handed to one cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Requests {
    /// `telearm engage`.
    pub engage: bool,
    /// `telearm disengage`.
    pub disengage: bool,
    /// Home while this holds.
    pub home: Option<HomeCause>,
    /// A reset was granted in this cycle.
    pub reset: bool,
}

/// Inputs of one lane in one cycle.
pub struct LaneInputs<'a, const N: usize> {
    /// The instant all ages are judged at.
    pub now: Stamp,
    /// Newest sample of the pose operator; `None`: never one.
    pub sample: Option<&'a OperatorSample>,
    /// Newest sample of the gripper operator, where it is another one.
    pub gripper_sample: Option<&'a OperatorSample>,
    /// Newest sample of the operator that holds the clutch, where it is another one.
    pub clutch_sample: Option<&'a OperatorSample>,
    /// What the arm reports.
    pub arm: &'a ArmState<N>,
    /// The arm's geometry.
    pub model: &'a dyn ArmModel<N>,
    /// Other arms' tools, to stay away from.
    pub keep_outs: &'a [KeepOut],
    /// The stop latch.
    pub stop: Option<StopWhy>,
    /// The watchdog has taken over.
    pub taken_over: bool,
    /// Requests.
    pub requests: Requests,
    /// Our own thread, or an input thread, was away for longer than the soft limit.
    pub away: bool,
    /// This lane's command is due in this cycle.
    pub command_due: bool,
}

/// Outputs of one lane in one cycle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaneOutput<const N: usize> {
    /// To send. Tell [`Lane::sent`] what became of it.
    pub command: Option<Vetted<ArmCommand<N>>>,
    /// Use the arm's own stop now. Tell [`Lane::arm_stop_sent`] when it has gone out; until then it is asked for again.
    pub arm_stop: bool,
    /// The mode before this cycle, if it changed.
    pub left: Option<Mode>,
}

/// What the hold-to-run clutch does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clutch {
    /// This lane has none.
    Absent,
    /// Heard of, and not held.
    Released,
    /// Held.
    Pressed,
    /// Not heard of in time, or its hand is not usable: let go, and not by the operator.
    Lost,
}

impl Clutch {
    /// Held or not. A clutch that is not heard of is a clutch let go.
    const fn is_held(self) -> Option<bool> {
        match self {
            Self::Absent => None,
            Self::Pressed => Some(true),
            Self::Released | Self::Lost => Some(false),
        }
    }
}

/// What `assess` found, kept for `act`.
#[derive(Debug, Clone, Copy)]
struct Findings {
    blocking: InhibitSet,
    news: EdgeNews,
    operator: Freshness,
    feedback: Freshness,
    quality: Quality,
    clutch: Clutch,
    goal: Option<Pose<ArmBase, Tcp>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct StopProgress {
    since: Option<Stamp>,
    escalates: bool,
    arm_stop_sent: bool,
}

/// One lane.
pub struct Lane<const N: usize> {
    params: LaneParams<N>,
    timing: Timing,
    guard: Guard,
    guard_joints: Guard,
    shapers: Shapers<N>,
    mode: Mode,
    edges: EdgeGate,
    rest: RestDetector,
    pickup: GripperPickup,
    anchor: Option<Anchor>,
    tracker: Tracker,
    tracked: Option<Stamp>,
    leader_anchor: Option<([f64; N], [f64; N])>,
    last_usable: Option<Stamp>,
    /// Old feedback is not called lost before this.
    feedback_lost_from: Stamp,
    stream: Option<Stream<N>>,
    stream_broke: bool,
    candidate: Option<Candidate<N>>,
    missed: u32,
    group_blocked: bool,
    stop: StopProgress,
    findings: Option<Findings>,
    inhibits: InhibitSet,
    slowed: Slowed,
    opening: Option<f64>,
    brake_veto: Option<Veto>,
    counters: LaneCounters,
}

impl<const N: usize> Lane<N> {
    /// A lane for validated parameters. `joint_limits` bound isomorphic joint motion.
    #[must_use]
    pub fn new(params: LaneParams<N>) -> Self {
        let period_s = params.command_period_s;
        let approach = Limits {
            lin_vel_max: params.approach.lin_vel_max,
            ang_vel_max: params.approach.ang_vel_max,
            ..params.limits
        };
        let limits = GuardLimits {
            lin_vel_max: params.limits.lin_vel_max,
            ang_vel_max: params.limits.ang_vel_max,
            lead_max_m: params.lead_max_m,
            lead_max_rad: params.lead_max_rad,
            period_s,
            joint_speed_share: params.joint_speed_share,
        };
        let guard = Guard {
            workspace: params.workspace,
            limits,
        };
        let guard_joints = Guard {
            limits: GuardLimits {
                lin_vel_max: JOINT_WAY_TOOL_SPEED,
                ang_vel_max: JOINT_WAY_TOOL_TURN,
                ..limits
            },
            ..guard
        };
        Self {
            timing: Timing {
                disengage_after: params.operator_stale.hard_after,
                engage_ramp: params.engage_ramp,
                ..Timing::default()
            },
            guard,
            guard_joints,
            shapers: Shapers {
                follow: Shaper::new(params.limits, period_s),
                approach: Shaper::new(approach, period_s),
                joints: JointShaper::new([params.home.limits; N], period_s),
                home: JointShaper::new([params.home.limits; N], period_s),
                gripper: ScalarShaper::new(params.gripper, period_s),
            },
            mode: Mode::Starting,
            edges: EdgeGate::default(),
            rest: RestDetector::default(),
            pickup: GripperPickup::default(),
            anchor: None,
            tracker: Tracker::new(Pose::identity()),
            tracked: None,
            leader_anchor: None,
            last_usable: None,
            feedback_lost_from: Stamp::default(),
            stream: None,
            stream_broke: false,
            candidate: None,
            missed: 0,
            group_blocked: false,
            stop: StopProgress::default(),
            findings: None,
            inhibits: InhibitSet::NONE,
            slowed: Slowed::No,
            opening: None,
            brake_veto: None,
            counters: LaneCounters::default(),
            params,
        }
    }

    /// Parameters, as given.
    #[must_use]
    pub const fn params(&self) -> &LaneParams<N> {
        &self.params
    }

    /// Where the tool is commanded, and how far it would still go if it braked now; `None` while nothing is commanded.
    #[must_use]
    pub fn footprint(&self) -> Option<(Vector3<f64>, f64)> {
        // What has been made and not sent yet counts as if it had been.
        let made = self.candidate.as_ref().map(|c| &c.stream);
        let stream = made.or(self.stream.as_ref())?;
        let way = match &stream.motion {
            Motion::Tcp(state) => (self.shapers.follow.stopping_point(state).position()
                - state.pose.position())
            .norm(),
            // A joint way is slow; what it may still do is bounded generously.
            Motion::Joint(state) if state.is_at_rest() => 0.0,
            Motion::Joint(_) => JOINT_WAY_BRAKING_M,
        };
        Some((stream.baseline.tcp.position(), way))
    }

    /// The state as of the last `act`.
    #[must_use]
    pub fn report(&self) -> LaneReport {
        LaneReport {
            mode: self.mode,
            inhibits: self.inhibits,
            slowed: self.slowed,
            command: self.stream.as_ref().map(|s| s.baseline.tcp),
            opening: self.opening,
            arm_stopped: self.stop.arm_stop_sent,
            brake_veto: self.brake_veto,
            counters: self.counters,
        }
    }

    /// Second pass: moves the mode and makes this cycle's command.
    pub fn act(&mut self, inputs: &LaneInputs<'_, N>, group: GroupView) -> LaneOutput<N> {
        self.group_blocked = group.blocked;
        let Some(findings) = self.findings else {
            return LaneOutput {
                command: None,
                arm_stop: false,
                left: None,
            };
        };
        self.counters.edges_ignored += u64::from(findings.news.ignored);
        let facts = self.facts(inputs, &findings, group);
        let before = self.mode;
        self.mode = next(before, &facts, &self.timing);
        let left = (self.mode.code() != before.code()).then_some(before);
        if left.is_some() {
            self.entered(before, inputs);
        }
        if findings.news.new_reference {
            self.anchor = None;
        }
        self.show(&findings, group, inputs);
        let arm_stop = self.stop_progress(inputs, &findings);
        let command = if inputs.command_due {
            self.command(inputs, &findings)
        } else {
            None
        };
        LaneOutput {
            command,
            arm_stop,
            left,
        }
    }

    /// What became of the command of the last `act`.
    pub fn sent(&mut self, sent: bool) {
        let Some(candidate) = self.candidate.take() else {
            return;
        };
        if sent {
            self.missed = 0;
            self.counters.sent += 1;
            self.counters.seated +=
                u64::from(self.stream.as_ref().is_none_or(|s| !s.baseline.sent));
            self.opening = candidate.stream.gripper.map(|g| g.p);
            self.stream = Some(candidate.stream);
        } else {
            self.missed += 1;
            self.counters.not_sent += 1;
            self.slowed = Slowed::Bus;
            self.note_gap();
        }
    }

    /// What a gap in the commands means. A hiccup of the bus is waited out; in a longer one the arm comes to rest on its last target, so
    /// motion goes on from rest; after a still longer one nothing is known of the arm's way and the stream begins anew where it is
    /// measured.
    fn note_gap(&mut self) {
        let gap_s = f64::from(self.missed) * self.params.command_period_s;
        let Some(stream) = self.stream.as_mut().filter(|s| s.baseline.sent) else {
            return;
        };
        if gap_s > BROKEN_AFTER_S {
            self.stream = None;
            self.stream_broke = true;
        } else if gap_s > STALLED_AFTER_S && !stream.motion.is_at_rest() {
            self.counters.stalls += 1;
            stream.motion = frozen(stream);
        }
    }

    /// The arm's own stop has gone out.
    pub fn arm_stop_sent(&mut self) {
        if !self.stop.arm_stop_sent {
            self.stop.arm_stop_sent = true;
            self.stream = None;
            self.candidate = None;
        }
    }

    fn facts(&mut self, inputs: &LaneInputs<'_, N>, f: &Findings, group: GroupView) -> Facts {
        let may_engage = f.blocking.is_empty() && !group.blocked;
        let arrived = f.goal.is_some_and(|goal| self.arrived(&goal));
        let broke = core::mem::take(&mut self.stream_broke);
        let home_reached = matches!(self.mode, Mode::Homing { .. }) && self.is_home();
        Facts {
            now: inputs.now,
            taken_over: inputs.taken_over,
            stop: inputs.stop,
            arm_fault: match inputs.arm.phase {
                ArmPhase::Faulted(fault) => Some(fault),
                ArmPhase::Starting(_) | ArmPhase::Up => None,
            },
            arm_up: inputs.arm.phase == ArmPhase::Up,
            feedback: f.feedback,
            operator: f.operator,
            quality: f.quality,
            may_engage,
            engage: f.news.engage || (inputs.requests.engage && !self.params.hold_to_run),
            disengage: f.news.disengage || inputs.requests.disengage || inputs.away || broke,
            group_holds: group.holds,
            group_engages: group.engages,
            absolute: self.params.mapping.is_absolute(),
            hold_to_run: f.clutch == Clutch::Pressed,
            arrived,
            approach_too_far: self.params.mapping.is_absolute() && self.too_far(f.goal.as_ref()),
            home: inputs.requests.home,
            home_reached,
            reset: inputs.requests.reset,
        }
    }

    fn arrived(&self, goal: &Pose<ArmBase, Tcp>) -> bool {
        let Some(stream) = &self.stream else {
            return false;
        };
        let here = stream.baseline.tcp;
        (goal.position() - here.position()).norm() <= self.params.approach.arrived_m
            && angle_between(goal.rotation(), here.rotation()) <= self.params.approach.arrived_rad
    }

    fn is_home(&self) -> bool {
        self.stream.as_ref().is_some_and(|s| {
            s.motion.is_at_rest()
                && s.baseline
                    .q
                    .iter()
                    .zip(&self.params.home.q)
                    .all(|(a, b)| (a - b).abs() < 1e-3)
        })
    }

    /// Side effects of having entered a mode.
    fn entered(&mut self, before: Mode, inputs: &LaneInputs<'_, N>) {
        match self.mode {
            Mode::Engaging { .. } => {
                self.counters.engaged += 1;
                self.anchor = None;
                self.leader_anchor = None;
                self.seat_if_led_astray(inputs);
                self.pickup.engage();
            }
            Mode::Active { .. } => {
                // From an approach the anchor (held axes) stays; from anywhere else a fresh one is taken, unless the plan keeps it.
                let keep = matches!(before, Mode::Approaching { .. })
                    || (self.params.keep_anchor && matches!(before, Mode::Holding { .. }));
                if !keep {
                    self.anchor = None;
                    self.leader_anchor = None;
                }
            }
            Mode::Starting => {
                self.stop = StopProgress::default();
                self.pickup.release();
            }
            Mode::Ready | Mode::Homing { .. } | Mode::Fault { .. } => {
                self.anchor = None;
                self.leader_anchor = None;
                self.pickup.release();
            }
            Mode::Stopped { .. } | Mode::Holding { .. } | Mode::Approaching { .. } => {}
        }
    }

    /// Before engaging: when the command and the measured pose have come apart (the arm was moved by hand, or gave way), the stream
    /// begins anew at the measured pose. The arm rests there already, so nothing moves.
    fn seat_if_led_astray(&mut self, inputs: &LaneInputs<'_, N>) {
        let (Some(stream), Some(measured)) = (&self.stream, inputs.arm.tcp.value()) else {
            return;
        };
        let lead = (stream.baseline.tcp.position() - measured.position()).norm();
        let turned = angle_between(stream.baseline.tcp.rotation(), measured.rotation());
        if lead > 0.5 * self.params.lead_max_m || turned > 0.5 * self.params.lead_max_rad {
            self.stream = None;
        }
    }

    fn show(&mut self, f: &Findings, group: GroupView, inputs: &LaneInputs<'_, N>) {
        let mut set = f.blocking;
        // The mode may have changed since `assess`.
        set.set(
            Inhibit::StopLatched,
            matches!(self.mode, Mode::Stopped { .. }),
        );
        set.set(Inhibit::ArmFault, matches!(self.mode, Mode::Fault { .. }));
        let waiting = matches!(self.mode, Mode::Ready | Mode::Engaging { .. });
        set.set(
            Inhibit::GroupHolds,
            (waiting && group.blocked)
                || (matches!(self.mode, Mode::Holding { .. }) && group.holds),
        );
        set.set(Inhibit::EdgeHeld, self.mode == Mode::Ready && f.news.held);
        set.set(Inhibit::AwaitingEngage, self.mode == Mode::Ready);
        set.set(Inhibit::Homing, matches!(self.mode, Mode::Homing { .. }));
        if matches!(self.mode, Mode::Active { .. } | Mode::Approaching { .. }) {
            set = InhibitSet::NONE;
        }
        self.inhibits = set;
        if inputs.command_due {
            self.slowed = Slowed::No;
        }
    }

    /// Watches over the stop: `on_stop`, and the escalation when the arm does not come to rest, or nothing is heard of it any more. Judged by
    /// the latch and not by the mode: a fault (lost feedback is one) shows before a stop.
    fn stop_progress(&mut self, inputs: &LaneInputs<'_, N>, f: &Findings) -> bool {
        if inputs.stop.is_none() {
            self.stop.since = None;
            return false;
        }
        let since = *self.stop.since.get_or_insert(inputs.now);
        let starting = matches!(inputs.arm.phase, ArmPhase::Starting(_));
        if self.stop.arm_stop_sent || inputs.taken_over || starting {
            return false;
        }
        if self.params.on_stop == OnStop::ArmStop {
            return true;
        }
        let late = inputs.now.age_of(since) > self.params.stop_within;
        let moving = late
            && inputs.arm.phase == ArmPhase::Up
            && self.rest.at_rest(inputs.now) == Some(false);
        // An arm that never spoke is not stopped; a bus that is back brings feedback, and then there is nothing to escalate for.
        let blind = f.feedback == Freshness::Hard;
        let escalate = moving || blind;
        self.counters.escalations += u64::from(escalate && !self.stop.escalates);
        self.stop.escalates = escalate;
        escalate
    }

    fn command(
        &mut self,
        inputs: &LaneInputs<'_, N>,
        f: &Findings,
    ) -> Option<Vetted<ArmCommand<N>>> {
        if inputs.taken_over || self.stop.arm_stop_sent {
            self.stream = None;
            return None;
        }
        // A stream whose first command has not gone out is begun anew: the arm may have settled a little further meanwhile.
        if self.stream.as_ref().is_none_or(|s| !s.baseline.sent) {
            self.stream = self.seat(inputs);
        }
        self.take_anchor(inputs);
        let goal = self.goal(inputs, f);
        let gripper_goal = self.gripper_goal(inputs);
        let stream = self.stream.as_ref()?;
        let ctx = Context {
            guard: &self.guard,
            guard_joints: &self.guard_joints,
            model: inputs.model,
            measured: inputs.arm.tcp.value(),
            keep_outs: inputs.keep_outs,
            arm_space: self.params.arm_space,
            home_in_joints: self.params.home_in_joints,
            stiffness: self.stiffness(inputs.now),
        };
        let made = self.shapers.make(stream, &goal, gripper_goal, &ctx);
        if let Some(veto) = made.veto
            && let Some(count) = self.counters.vetoes.get_mut(veto as usize)
        {
            *count += 1;
        }
        if let Some(veto) = made.brake_veto {
            self.counters.brake_vetoes += 1;
            self.brake_veto = Some(veto);
        }
        self.counters.fallbacks += u64::from(made.fell_back);
        self.slowed = made.slowed;
        self.candidate = made.candidate;
        made.candidate.map(|c| c.command)
    }

    /// A new stream at the measured pose, if the arm is up, rests, and its feedback is fresh.
    fn seat(&mut self, inputs: &LaneInputs<'_, N>) -> Option<Stream<N>> {
        let limit = self.params.feedback_stale.hold_after;
        let tcp = inputs.arm.tcp.fresh(inputs.now, limit)?;
        let q = inputs.arm.q.fresh(inputs.now, limit)?;
        let may = inputs.arm.phase == ArmPhase::Up && self.rest.at_rest(inputs.now) == Some(true);
        if !may {
            return None;
        }
        Some(Stream::seat(tcp, q, self.opening.map(ScalarState::at_rest)))
    }

    fn stiffness(&self, now: Stamp) -> f64 {
        match self.mode {
            Mode::Engaging { since } if self.params.engage_ramp > Span::ZERO => {
                (now.age_of(since).as_s() / self.params.engage_ramp.as_s()).clamp(0.0, 1.0)
            }
            _ => 1.0,
        }
    }
}
