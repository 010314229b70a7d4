//! Where the lane wants to be: anchor, mapping, tracker, workspace, gripper.

use crate::geometry::{ArmBase, Pose, Tcp};
use crate::guard::project;
use crate::retarget::Anchor;
use crate::shaping::ScalarState;
use crate::signal::{OperatorSample, Quality};
use crate::supervisor::Mode;

use super::{Clutch, Findings, Lane, LaneInputs};
use crate::control::motion::Goal;

impl<const N: usize> Lane<N> {
    /// The goal of the hand, if it can be told now. Before engaging it is only used to judge an absolute approach.
    pub(super) fn hand_goal(&self, inputs: &LaneInputs<'_, N>) -> Option<Pose<ArmBase, Tcp>> {
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
    pub(super) fn reachable_goal(&self, inputs: &LaneInputs<'_, N>) -> Option<Pose<ArmBase, Tcp>> {
        let projected = project(
            &self.params.workspace,
            inputs.model,
            &self.hand_goal(inputs)?,
        );
        (!projected.failed).then_some(projected.pose)
    }

    /// Where the tracker has the goal at this instant: moving with it inside the workspace, waiting for it at the edge.
    pub(super) fn tracked_goal(&mut self, inputs: &LaneInputs<'_, N>) -> Goal<N> {
        let (Some(goal), Some(sample)) = (self.hand_goal(inputs), inputs.sample) else {
            return Goal::Rest;
        };
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

    pub(super) fn take_anchor(&mut self, inputs: &LaneInputs<'_, N>) {
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
            self.tracker
                .reset(self.params.mapping.goal(&Anchor { hand, tcp }, &hand));
            self.tracked = None;
            self.counters.anchors += 1;
        }
    }

    pub(super) fn goal(&mut self, inputs: &LaneInputs<'_, N>, f: &Findings) -> Goal<N> {
        match self.mode {
            Mode::Active { .. } if self.params.isomorphic => self.leader_goal(inputs),
            Mode::Active { .. } => self.tracked_goal(inputs),
            Mode::Approaching { .. } if f.clutch == Clutch::Pressed => self
                .reachable_goal(inputs)
                .map_or(Goal::Rest, Goal::Approach),
            Mode::Homing { .. } => Goal::Home(self.params.home.q),
            _ => Goal::Rest,
        }
    }

    pub(super) fn leader_goal(&self, inputs: &LaneInputs<'_, N>) -> Goal<N> {
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

    pub(super) fn gripper_goal(&mut self, inputs: &LaneInputs<'_, N>) -> Option<f64> {
        if !matches!(self.mode, Mode::Active { .. }) {
            return None;
        }
        let sample = inputs.gripper_sample.or(inputs.sample)?;
        let limit = self.params.gripper_hold_after;
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
}

fn leader_joints<const N: usize>(sample: &OperatorSample) -> Option<[f64; N]> {
    if usize::from(sample.leader_joints_len) != N || sample.quality != Quality::Good {
        return None;
    }
    sample.leader_joints.first_chunk::<N>().copied()
}
