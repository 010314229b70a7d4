//! One lane: operator in, vetted command out. Pure: no clock, no I/O, no heap.
//!
//! Each cycle has two passes over all lanes, as in an analyse-then-act loop. [`Lane::assess`] looks and changes nothing but memory of
//! what was seen; [`Lane::act`] moves the mode, makes the command. What the command becomes is told afterwards by [`Lane::sent`].

use crate::geometry::{ArmBase, Pose, Tcp, angle_between};
use crate::guard::{Guard, GuardLimits, Veto, Vetted, project};
use crate::kinematics::ArmModel;
use crate::retarget::{Anchor, GripperPickup};
use crate::shaping::{JointShaper, Limits, ScalarShaper, ScalarState, Shaper, Tracker};
use crate::signal::{ArmCommand, ArmPhase, ArmState, OperatorSample, Quality};
use crate::supervisor::{
    Facts, Freshness, HomeCause, Inhibit, InhibitSet, Mode, StopWhy, Timing, next,
};
use crate::time::{Span, Stamp};

use super::edges::{EdgeGate, EdgeNews};
use super::group::{GroupView, LaneStanding};
use super::motion::{Candidate, Context, Goal, Shapers, Stream};
use super::params::{LaneParams, OnStop};
use super::report::{LaneCounters, LaneReport, Slowed};
use super::rest::RestDetector;

/// A pinch this closed counts as hold-to-run where the device has no clutch of its own.
const PINCH_CLOSED: f64 = 0.3;
/// Commands in a row that could not be sent before the stream counts as broken.
const MISSED_MAX: u32 = 3;
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

/// What `assess` found, kept for `act`.
#[derive(Debug, Clone, Copy)]
struct Findings {
    blocking: InhibitSet,
    news: EdgeNews,
    operator: Freshness,
    feedback: Freshness,
    quality: Quality,
    clutch: Option<bool>,
    goal: Option<Pose<ArmBase, Tcp>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct StopProgress {
    since: Option<Stamp>,
    arm_stop_wanted: bool,
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

    /// First pass: looks at everything, decides nothing.
    pub fn assess(&mut self, inputs: &LaneInputs<'_, N>) -> LaneStanding {
        let now = inputs.now;
        self.rest.feed(&inputs.arm.tcp);
        let sample = inputs.sample;
        if let Some(sample) = sample
            && sample.quality == Quality::Good
            && (sample.pose.is_some() || sample.leader_joints_len > 0)
        {
            self.last_usable = Some(sample.received_at);
        }
        let limits = self.params.operator_stale;
        let operator = Freshness::of(
            self.last_usable.map(|s| now.age_of(s)),
            limits.hold_after,
            limits.hard_after,
        );
        let feedback = self.feedback_freshness(inputs);
        let quality = sample.map_or(Quality::Untracked, |s| s.quality);
        let clutch = self.clutch(inputs);
        let goal = self.reachable_goal(inputs);
        let blocking = self.blocking(inputs, operator, feedback, quality, goal.as_ref());
        let clear = blocking.is_empty() && !self.group_blocked;
        let news = self.edges.update(
            sample,
            if self.params.hold_to_run {
                clutch
            } else {
                None
            },
            clear,
            now,
        );
        let findings = Findings {
            blocking,
            news,
            operator,
            feedback,
            quality,
            clutch,
            goal,
        };
        self.findings = Some(findings);
        let engaged = matches!(
            self.mode,
            Mode::Active { .. } | Mode::Holding { .. } | Mode::Approaching { .. }
        );
        let own_hold = quality != Quality::Good
            || operator != Freshness::Fresh
            || feedback != Freshness::Fresh;
        LaneStanding {
            blocked: !blocking.is_empty() && !engaged,
            follows_well: engaged
                && !own_hold
                && blocking.without(Inhibit::ApproachTooFar).is_empty(),
            engaging: matches!(self.mode, Mode::Engaging { .. }),
            engaged,
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
            let sent_before = self.stream.as_ref().is_some_and(|s| s.baseline.sent);
            if self.missed >= MISSED_MAX && sent_before {
                // The arm has come to rest on the last target by itself; the stream begins anew from where it is measured.
                self.stream = None;
                self.stream_broke = true;
            }
        }
    }

    /// The arm's own stop has gone out.
    pub fn arm_stop_sent(&mut self) {
        if !self.stop.arm_stop_sent {
            self.stop.arm_stop_sent = true;
            self.stop.arm_stop_wanted = false;
            self.stream = None;
            self.candidate = None;
        }
    }

    fn feedback_freshness(&self, inputs: &LaneInputs<'_, N>) -> Freshness {
        let limits = self.params.feedback_stale;
        let oldest = match (inputs.arm.tcp.age(inputs.now), inputs.arm.q.age(inputs.now)) {
            (Some(a), Some(b)) => Some(a.max(b)),
            _ => None,
        };
        Freshness::of(oldest, limits.hold_after, limits.hard_after)
    }

    fn clutch(&self, inputs: &LaneInputs<'_, N>) -> Option<bool> {
        let (holder, other) = match inputs.clutch_sample {
            Some(sample) => (Some(sample), true),
            None => (inputs.sample, false),
        };
        let sample = holder?;
        let fresh = inputs.now.age_of(sample.received_at) <= self.params.operator_stale.hold_after;
        let pressed = sample.clutch_pressed.or_else(|| {
            let pinch = sample.opening.map(|o| o.get() <= PINCH_CLOSED);
            if other || self.params.mapping.is_absolute() {
                pinch
            } else {
                None
            }
        });
        // A clutch that is not heard of is a clutch let go.
        pressed.map(|p| p && fresh && sample.quality == Quality::Good)
    }

    /// The goal of the hand, if it can be told now. Before engaging it is only used to judge an absolute approach.
    fn hand_goal(&self, inputs: &LaneInputs<'_, N>) -> Option<Pose<ArmBase, Tcp>> {
        let hand = inputs.sample?.usable_pose()?;
        let here = self.stream.as_ref()?.baseline.tcp;
        let anchor = match (&self.anchor, self.params.mapping.is_absolute()) {
            (Some(anchor), _) => *anchor,
            (None, true) => Anchor { hand, tcp: here },
            (None, false) => return None,
        };
        Some(self.params.mapping.goal(&anchor, &hand))
    }

    /// The hand's goal, moved into the workspace.
    fn reachable_goal(&self, inputs: &LaneInputs<'_, N>) -> Option<Pose<ArmBase, Tcp>> {
        let projected = project(&self.params.workspace, inputs.model, &self.hand_goal(inputs)?);
        (!projected.failed).then_some(projected.pose)
    }

    /// Where the tracker has the goal at this instant: moving with it inside the workspace, waiting for it at the edge.
    fn tracked_goal(&mut self, inputs: &LaneInputs<'_, N>) -> Goal<N> {
        let (Some(goal), Some(sample)) = (self.hand_goal(inputs), inputs.sample) else { return Goal::Rest };
        if self.tracked != Some(sample.received_at) {
            self.tracked = Some(sample.received_at);
            self.tracker.push(goal, sample.received_at);
        }
        let moving = self.tracker.at(inputs.now);
        let projected = project(&self.params.workspace, inputs.model, &moving.pose);
        if projected.failed {
            Goal::Rest
        } else if projected.moved_m > 0.0 {
            Goal::Edge(projected.pose)
        } else {
            Goal::Follow(moving)
        }
    }

    fn too_far(&self, goal: Option<&Pose<ArmBase, Tcp>>) -> bool {
        let (Some(stream), Some(goal)) = (&self.stream, goal) else {
            return true;
        };
        let here = stream.baseline.tcp;
        (goal.position() - here.position()).norm() > self.params.approach.max_m
            || angle_between(goal.rotation(), here.rotation()) > self.params.approach.max_rad
    }

    fn blocking(
        &self,
        inputs: &LaneInputs<'_, N>,
        operator: Freshness,
        feedback: Freshness,
        quality: Quality,
        goal: Option<&Pose<ArmBase, Tcp>>,
    ) -> InhibitSet {
        let now = inputs.now;
        let mut set = InhibitSet::NONE;
        set.set(Inhibit::TakenOver, inputs.taken_over);
        set.set(
            Inhibit::StopLatched,
            inputs.stop.is_some() || matches!(self.mode, Mode::Stopped { .. }),
        );
        let faulted = matches!(inputs.arm.phase, ArmPhase::Faulted(_));
        set.set(
            Inhibit::ArmFault,
            faulted || matches!(self.mode, Mode::Fault { .. }),
        );
        let up = inputs.arm.phase == ArmPhase::Up;
        set.set(Inhibit::FeedbackStale, up && feedback != Freshness::Fresh);
        set.set(
            Inhibit::ArmStarting,
            matches!(inputs.arm.phase, ArmPhase::Starting(_)) || self.mode == Mode::Starting,
        );
        let link = inputs.sample.map(|s| now.age_of(s.received_at));
        let silent = link.is_none_or(|age| age > self.params.operator_stale.hold_after);
        set.set(Inhibit::OperatorSilent, link.is_none());
        set.set(Inhibit::OperatorStale, link.is_some() && silent);
        if link.is_some() && !silent {
            let unusable = quality == Quality::Good && operator != Freshness::Fresh;
            set.set(
                Inhibit::TrackingLost,
                quality == Quality::Untracked || unusable,
            );
            set.set(Inhibit::TrackingJumped, quality == Quality::Jumped);
            set.set(Inhibit::TrackingFrozen, quality == Quality::Frozen);
        }
        set.set(Inhibit::FrameUnverified, !self.params.frame_verified);
        set.set(Inhibit::Homing, matches!(self.mode, Mode::Homing { .. }));
        if self.mode == Mode::Ready && up {
            let outside = inputs
                .arm
                .tcp
                .value()
                .is_none_or(|p| self.params.workspace.violation_m(&p, inputs.model) > 0.0);
            set.set(Inhibit::OutsideWorkspace, outside);
            set.set(
                Inhibit::ArmMoving,
                self.rest.at_rest(now) != Some(true) || self.stream.is_none(),
            );
            let absolute = self.params.mapping.is_absolute() && link.is_some();
            set.set(Inhibit::ApproachTooFar, absolute && self.too_far(goal));
        }
        set
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
            hold_to_run: f.clutch == Some(true),
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
            Mode::Stopped { .. } => {
                self.stop = StopProgress {
                    since: Some(inputs.now),
                    ..StopProgress::default()
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
            Mode::Holding { .. } | Mode::Approaching { .. } => {}
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

    /// Watches over the stop: `on_stop`, and the escalation when the arm does not come to rest.
    fn stop_progress(&mut self, inputs: &LaneInputs<'_, N>, f: &Findings) -> bool {
        let (Mode::Stopped { .. }, Some(since)) = (self.mode, self.stop.since) else {
            return false;
        };
        if self.stop.arm_stop_sent {
            return false;
        }
        if self.params.on_stop == OnStop::ArmStop {
            self.stop.arm_stop_wanted = true;
        } else if !self.stop.arm_stop_wanted && inputs.arm.phase == ArmPhase::Up {
            let late = inputs.now.age_of(since) > self.params.stop_within;
            let moving = late && self.rest.at_rest(inputs.now) == Some(false);
            let blind = matches!(f.feedback, Freshness::Hard | Freshness::Never);
            if moving || blind {
                self.stop.arm_stop_wanted = true;
                self.counters.escalations += 1;
            }
        }
        self.stop.arm_stop_wanted
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

    fn take_anchor(&mut self, inputs: &LaneInputs<'_, N>) {
        if !self.mode.follows() {
            return;
        }
        let (Some(stream), Some(sample)) = (&self.stream, inputs.sample) else {
            return;
        };
        if self.params.isomorphic {
            if self.leader_anchor.is_none()
                && let Some(leader) = leader_joints::<N>(sample)
            {
                self.leader_anchor = Some((leader, stream.baseline.q));
                self.counters.anchors += 1;
            }
        } else if self.anchor.is_none()
            && let Some(hand) = sample.usable_pose()
            && stream.motion.is_at_rest()
        {
            let tcp = stream.baseline.tcp;
            self.anchor = Some(Anchor { hand, tcp });
            // From this sample on, the goal begins at rest where the arm stands.
            self.tracker.reset(self.params.mapping.goal(&Anchor { hand, tcp }, &hand));
            self.tracked = None;
            self.counters.anchors += 1;
        }
    }

    fn goal(&mut self, inputs: &LaneInputs<'_, N>, f: &Findings) -> Goal<N> {
        match self.mode {
            Mode::Active { .. } if self.params.isomorphic => self.leader_goal(inputs),
            Mode::Active { .. } => self.tracked_goal(inputs),
            Mode::Approaching { .. } if f.clutch == Some(true) => {
                self.reachable_goal(inputs).map_or(Goal::Rest, Goal::Approach)
            }
            Mode::Homing { .. } => Goal::Home(self.params.home.q),
            _ => Goal::Rest,
        }
    }

    fn leader_goal(&self, inputs: &LaneInputs<'_, N>) -> Goal<N> {
        let (Some((leader0, q0)), Some(leader)) = (
            self.leader_anchor,
            inputs.sample.and_then(leader_joints::<N>),
        ) else {
            return Goal::Rest;
        };
        let mut q = q0;
        for (((q, l), l0), &(low, high)) in q
            .iter_mut()
            .zip(leader)
            .zip(leader0)
            .zip(inputs.model.joint_limits())
        {
            *q = (*q + l - l0).clamp(low, high);
        }
        Goal::Joint(q)
    }

    fn gripper_goal(&mut self, inputs: &LaneInputs<'_, N>) -> Option<f64> {
        if !matches!(self.mode, Mode::Active { .. }) {
            return None;
        }
        let sample = inputs.gripper_sample.or(inputs.sample)?;
        let limit = self.params.operator_stale.hold_after;
        if sample.quality != Quality::Good || inputs.now.age_of(sample.received_at) > limit {
            return None;
        }
        let measured = inputs.arm.opening.value().map(crate::units::Opening::get);
        let goal = self.pickup.goal(sample.opening, self.opening, measured)?;
        let stream = self.stream.as_mut()?;
        if stream.gripper.is_none() {
            // Never commanded: the slew starts where the gripper is.
            stream.gripper = Some(ScalarState::at_rest(self.opening.or(measured)?));
        }
        Some(goal)
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

fn leader_joints<const N: usize>(sample: &OperatorSample) -> Option<[f64; N]> {
    if usize::from(sample.leader_joints_len) != N || sample.quality != Quality::Good {
        return None;
    }
    sample.leader_joints.first_chunk::<N>().copied()
}
