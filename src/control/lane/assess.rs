//! First pass: looks at everything, decides nothing.

use crate::geometry::{ArmBase, Pose, Tcp, angle_between};
use crate::signal::{ArmPhase, Quality};
use crate::supervisor::{Freshness, Inhibit, InhibitSet, Mode};
use crate::time::Span;

use super::{Clutch, Findings, Lane, LaneInputs};
use crate::control::group::LaneStanding;

/// A pinch this closed counts as hold-to-run where the device has no clutch of its own.
const PINCH_CLOSED: f64 = 0.3;

/// After an absence of our own, feedback is old because nobody read it: it counts as lost only when it is still old after this.
const AWAY_GRACE: Span = Span::from_ms(50);

impl<const N: usize> Lane<N> {
    /// First pass: looks at everything, decides nothing.
    pub fn assess(&mut self, inputs: &LaneInputs<'_, N>) -> LaneStanding {
        let now = inputs.now;
        if inputs.away {
            self.feedback_lost_from = now + AWAY_GRACE;
        }
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
        let blocking = self.blocking(inputs, operator, feedback, quality, clutch, goal.as_ref());
        let clear = blocking.is_empty() && !self.group_blocked;
        let news = self.edges.update(
            sample,
            if self.params.hold_to_run {
                clutch.is_held()
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

    pub(super) fn feedback_freshness(&self, inputs: &LaneInputs<'_, N>) -> Freshness {
        let limits = self.params.feedback_stale;
        let oldest = match (inputs.arm.tcp.age(inputs.now), inputs.arm.q.age(inputs.now)) {
            (Some(a), Some(b)) => Some(a.max(b)),
            _ => None,
        };
        let freshness = Freshness::of(oldest, limits.hold_after, limits.hard_after);
        if freshness == Freshness::Hard && inputs.now < self.feedback_lost_from {
            Freshness::Soft
        } else {
            freshness
        }
    }

    pub(super) fn clutch(&self, inputs: &LaneInputs<'_, N>) -> Clutch {
        let other = self.params.clutch_is_other;
        let none = if other { Clutch::Lost } else { Clutch::Absent };
        let holder = if other {
            inputs.clutch_sample
        } else {
            inputs.sample
        };
        let Some(sample) = holder else {
            return none;
        };
        let pressed = sample.clutch_pressed.or_else(|| {
            let pinch = sample.opening.map(|o| o.get() <= PINCH_CLOSED);
            if other || self.params.mapping.is_absolute() {
                pinch
            } else {
                None
            }
        });
        let fresh = inputs.now.age_of(sample.received_at) <= self.params.clutch_release_after;
        match pressed {
            None => none,
            Some(_) if !fresh || sample.quality != Quality::Good => Clutch::Lost,
            Some(true) => Clutch::Pressed,
            Some(false) => Clutch::Released,
        }
    }

    pub(super) fn too_far(&self, goal: Option<&Pose<ArmBase, Tcp>>) -> bool {
        let (Some(stream), Some(goal)) = (&self.stream, goal) else {
            return true;
        };
        let here = stream.baseline.tcp;
        (goal.position() - here.position()).norm() > self.params.approach.max_m
            || angle_between(goal.rotation(), here.rotation()) > self.params.approach.max_rad
    }

    pub(super) fn blocking(
        &self,
        inputs: &LaneInputs<'_, N>,
        operator: Freshness,
        feedback: Freshness,
        quality: Quality,
        clutch: Clutch,
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
        // It also makes the lane unclear, so that a clutch that comes back pressed has to be let go first.
        let clutch_lost = self.params.hold_to_run && clutch == Clutch::Lost;
        set.set(Inhibit::ClutchLost, clutch_lost);
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
}
