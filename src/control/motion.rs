//! The commanded stream of one lane: shaped state, last vetted command, and what becomes of a candidate.
//!
//! A command that could not be sent never happened: the candidate is dropped and the next one starts from the last *sent* state. So the
//! sequence of sent commands obeys the limits period by period, whatever was refused in between.

use crate::geometry::{ArmBase, Pose, Tcp};
use crate::guard::{Baseline, Guard, KeepOut, Surroundings, Verdict, Veto, Vetted};
use crate::kinematics::ArmModel;
use crate::shaping::{
    JointShaper, JointState, JointTarget, ScalarShaper, ScalarState, ScalarTarget, Shaper, State,
    Target as ShapeTarget,
};
use crate::signal::{ArmCommand, Target};
use crate::units::Opening;

use super::params::ArmSpace;
use super::report::Slowed;

/// Braking is looked at every so many command periods before a moving command is accepted ...
const FORESEEN_EVERY: f64 = 1.0;
/// ... at so many points at most; a longer way is looked at more coarsely.
const FORESEEN_POINTS_MAX: f64 = 24.0;

/// Shaped state, in the space it is shaped in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Motion<const N: usize> {
    /// Tool pose.
    Tcp(State),
    /// Joints (homing, isomorphic leaders).
    Joint(JointState<N>),
}

impl<const N: usize> Motion<N> {
    pub(super) fn is_at_rest(&self) -> bool {
        match self {
            Self::Tcp(s) => s.is_at_rest(),
            Self::Joint(s) => s.is_at_rest(),
        }
    }
}

/// What a lane wants in this period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Goal<const N: usize> {
    /// Come to rest and stay.
    Rest,
    /// Along with a moving tool goal, inside the workspace.
    Follow(State),
    /// To a tool pose at the edge of the workspace, where a moving goal would lead out.
    Edge(Pose<ArmBase, Tcp>),
    /// Approach a tool pose, slowly.
    Approach(Pose<ArmBase, Tcp>),
    /// Move joints: an isomorphic leader.
    Joint([f64; N]),
    /// Move joints: home.
    Home([f64; N]),
}

/// A stream of commands without a break.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stream<const N: usize> {
    pub(super) motion: Motion<N>,
    pub(super) gripper: Option<ScalarState>,
    pub(super) baseline: Baseline<N>,
}

impl<const N: usize> Stream<N> {
    /// Begins at the measured pose, at rest.
    pub(super) fn seat(tcp: Pose<ArmBase, Tcp>, q: [f64; N], gripper: Option<ScalarState>) -> Self {
        Self {
            motion: Motion::Tcp(State::at_rest(tcp)),
            gripper: gripper.map(|g| ScalarState::at_rest(g.p)),
            baseline: Baseline {
                tcp,
                q,
                sent: false,
            },
        }
    }
}

/// The shapers of one lane.
#[derive(Debug, Clone)]
pub(super) struct Shapers<const N: usize> {
    pub(super) follow: Shaper,
    pub(super) approach: Shaper,
    pub(super) joints: JointShaper<N>,
    pub(super) home: JointShaper<N>,
    pub(super) gripper: ScalarShaper,
}

/// What a command is made and judged with.
pub(super) struct Context<'a, const N: usize> {
    pub(super) guard: &'a Guard,
    /// Joint-space ways are judged by joints; their tool speed has a generous cap of its own.
    pub(super) guard_joints: &'a Guard,
    pub(super) model: &'a dyn ArmModel<N>,
    pub(super) measured: Option<Pose<ArmBase, Tcp>>,
    pub(super) keep_outs: &'a [KeepOut],
    pub(super) arm_space: ArmSpace,
    pub(super) home_in_joints: bool,
    pub(super) stiffness: f64,
}

/// A vetted command and the stream as it will be once the command has been sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Candidate<const N: usize> {
    pub(super) command: Vetted<ArmCommand<N>>,
    pub(super) stream: Stream<N>,
}

/// What came of one period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Made<const N: usize> {
    pub(super) candidate: Option<Candidate<N>>,
    pub(super) slowed: Slowed,
    /// The moving command was refused for this reason and braking took its place.
    pub(super) veto: Option<Veto>,
    /// Braking was refused too; the last target is repeated.
    pub(super) brake_veto: Option<Veto>,
    /// A limiter found no profile.
    pub(super) fell_back: bool,
}

impl<const N: usize> Shapers<N> {
    /// One command period on from `stream`.
    pub(super) fn make(
        &mut self,
        stream: &Stream<N>,
        goal: &Goal<N>,
        gripper_goal: Option<f64>,
        ctx: &Context<'_, N>,
    ) -> Made<N> {
        let mut made = Made {
            candidate: None,
            slowed: Slowed::No,
            veto: None,
            brake_veto: None,
            fell_back: false,
        };
        let gripper = self.gripper_step(stream.gripper, gripper_goal);
        let motion = settle(stream, goal, ctx);
        if stream.baseline.sent {
            match self.advance(&motion, goal, &mut made) {
                Some(next) => match self.accept(stream, next, gripper, ctx) {
                    Ok(candidate) => {
                        made.candidate = Some(candidate);
                        return made;
                    }
                    Err(veto) => {
                        made.veto = Some(veto);
                        made.slowed = slowed_by(veto);
                    }
                },
                None if matches!(goal, Goal::Rest) => {}
                None => {}
            }
        }
        self.brake(stream, motion, gripper, ctx, &mut made);
        made
    }

    /// The next state towards the goal; `None` when the goal is rest or the motion is still in the other space.
    fn advance(
        &mut self,
        motion: &Motion<N>,
        goal: &Goal<N>,
        made: &mut Made<N>,
    ) -> Option<Motion<N>> {
        let (next, fell_back) = match (motion, goal) {
            (Motion::Tcp(state), Goal::Follow(goal)) => {
                let step = self
                    .follow
                    .advance(state, &ShapeTarget::Follow { goal: *goal });
                (Motion::Tcp(step.state), step.fell_back)
            }
            (Motion::Tcp(state), Goal::Edge(pose)) => {
                let step = self.follow.advance(state, &ShapeTarget::goal(*pose));
                (Motion::Tcp(step.state), step.fell_back)
            }
            (Motion::Tcp(state), Goal::Approach(pose)) => {
                let step = self.approach.advance(state, &ShapeTarget::goal(*pose));
                (Motion::Tcp(step.state), step.fell_back)
            }
            (Motion::Joint(state), Goal::Joint(q)) => {
                let step = self.joints.advance(state, &JointTarget::Goal(*q));
                (Motion::Joint(step.state), step.fell_back)
            }
            (Motion::Joint(state), Goal::Home(q)) => {
                let step = self.home.advance(state, &JointTarget::Goal(*q));
                (Motion::Joint(step.state), step.fell_back)
            }
            (_, Goal::Rest)
            | (Motion::Tcp(_), Goal::Joint(_) | Goal::Home(_))
            | (Motion::Joint(_), Goal::Follow(_) | Goal::Edge(_) | Goal::Approach(_)) => {
                return None;
            }
        };
        made.fell_back |= fell_back;
        Some(next)
    }

    /// Vets a moving step: where braking from it would end must be admissible, then the step itself.
    fn accept(
        &self,
        stream: &Stream<N>,
        next: Motion<N>,
        gripper: Option<ScalarState>,
        ctx: &Context<'_, N>,
    ) -> Result<Candidate<N>, Veto> {
        let guard = guard_of(&next, ctx);
        let (last, measured) = (&stream.baseline, ctx.measured.as_ref());
        let around = Surroundings {
            model: ctx.model,
            keep_outs: ctx.keep_outs,
        };
        match &next {
            Motion::Tcp(state) => {
                let braking = self.follow.braking(state);
                let duration_s = braking.duration_s();
                let fine_s = FORESEEN_EVERY * self.follow.period_s();
                let dt_s = fine_s.max(duration_s / FORESEEN_POINTS_MAX);
                let last_point = (duration_s / dt_s).ceil() as u32;
                let points = (0..=last_point).map(|i| braking.pose_at(dt_s * f64::from(i)));
                guard.foresee(points, dt_s, last, measured, &around)?;
            }
            Motion::Joint(state) => {
                let stop = ctx.model.forward(&self.joints.stopping_point(state));
                // Joint ways are limited joint by joint; only where they end is asked here.
                guard.foresee(
                    core::iter::once(stop),
                    f64::INFINITY,
                    last,
                    measured,
                    &around,
                )?;
            }
        }
        self.vet(stream, next, gripper, true, ctx)
    }

    fn brake(
        &mut self,
        stream: &Stream<N>,
        motion: Motion<N>,
        gripper: Option<ScalarState>,
        ctx: &Context<'_, N>,
        made: &mut Made<N>,
    ) {
        let next = match &motion {
            Motion::Tcp(state) => {
                let step = self.follow.advance(state, &ShapeTarget::Brake);
                made.fell_back |= step.fell_back;
                Motion::Tcp(step.state)
            }
            Motion::Joint(state) => {
                let step = self.joints.advance(state, &JointTarget::Brake);
                made.fell_back |= step.fell_back;
                Motion::Joint(step.state)
            }
        };
        made.candidate = match self.vet(stream, next, gripper, false, ctx) {
            Ok(candidate) => Some(candidate),
            Err(veto) => {
                // The way out of a refused brake is to stay at the last target: abrupt within one step limit, never a move.
                made.brake_veto = Some(veto);
                self.vet(stream, frozen(stream), gripper, false, ctx).ok()
            }
        };
    }

    fn vet(
        &self,
        stream: &Stream<N>,
        next: Motion<N>,
        gripper: Option<ScalarState>,
        motion: bool,
        ctx: &Context<'_, N>,
    ) -> Result<Candidate<N>, Veto> {
        let target = match &next {
            Motion::Tcp(state) if ctx.arm_space == ArmSpace::Joint => Target::Joint(
                ctx.model
                    .inverse_near(&state.pose, &stream.baseline.q)
                    .ok_or(Veto::NoSolution)?,
            ),
            Motion::Tcp(state) => Target::Tcp(state.pose),
            Motion::Joint(state) if ctx.arm_space == ArmSpace::Joint || ctx.home_in_joints => {
                Target::Joint(state.q())
            }
            Motion::Joint(state) => Target::Tcp(ctx.model.forward(&state.q())),
        };
        let q_velocity = match &next {
            Motion::Joint(state) => state.qd(),
            Motion::Tcp(_) => [0.0; N],
        };
        let opening = gripper.and_then(|g| Opening::clamped(g.p));
        let command = ArmCommand {
            target,
            q_velocity,
            opening,
            stiffness: ctx.stiffness,
            motion,
        };
        let Verdict { command, baseline } = guard_of(&next, ctx).vet(
            command,
            &stream.baseline,
            ctx.measured.as_ref(),
            ctx.model,
        )?;
        Ok(Candidate {
            command,
            stream: Stream {
                motion: next,
                gripper,
                baseline,
            },
        })
    }

    fn gripper_step(
        &mut self,
        state: Option<ScalarState>,
        goal: Option<f64>,
    ) -> Option<ScalarState> {
        let state = state?;
        let target = goal.map_or(ScalarTarget::Brake, ScalarTarget::Goal);
        Some(self.gripper.advance(&state, &target).state)
    }
}

/// The motion in the space the goal wants, if it is at rest and may change over; else unchanged (it then brakes first).
fn settle<const N: usize>(stream: &Stream<N>, goal: &Goal<N>, ctx: &Context<'_, N>) -> Motion<N> {
    if !stream.motion.is_at_rest() {
        return stream.motion;
    }
    match (&stream.motion, goal) {
        (Motion::Tcp(_), Goal::Joint(_) | Goal::Home(_)) => {
            Motion::Joint(JointState::at_rest(stream.baseline.q))
        }
        (
            Motion::Joint(state),
            Goal::Rest | Goal::Follow(_) | Goal::Edge(_) | Goal::Approach(_),
        ) if ctx.arm_space == ArmSpace::Tcp => {
            Motion::Tcp(State::at_rest(ctx.model.forward(&state.q())))
        }
        (Motion::Joint(state), Goal::Follow(_) | Goal::Edge(_) | Goal::Approach(_)) => {
            Motion::Tcp(State::at_rest(ctx.model.forward(&state.q())))
        }
        _ => stream.motion,
    }
}

/// At rest where the last sent command stands.
pub(super) fn frozen<const N: usize>(stream: &Stream<N>) -> Motion<N> {
    match &stream.motion {
        Motion::Tcp(_) => Motion::Tcp(State::at_rest(stream.baseline.tcp)),
        Motion::Joint(_) => Motion::Joint(JointState::at_rest(stream.baseline.q)),
    }
}

fn guard_of<'a, const N: usize>(motion: &Motion<N>, ctx: &Context<'a, N>) -> &'a Guard {
    match motion {
        Motion::Tcp(_) => ctx.guard,
        Motion::Joint(_) => ctx.guard_joints,
    }
}

const fn slowed_by(veto: Veto) -> Slowed {
    match veto {
        Veto::Workspace => Slowed::AtEdge,
        Veto::TooNear => Slowed::Neighbour,
        Veto::Leash => Slowed::Leash,
        Veto::JointLimit | Veto::JointSpeed | Veto::NoSolution => Slowed::Joints,
        Veto::NotFinite
        | Veto::LinearStep
        | Veto::AngularStep
        | Veto::FirstNotMeasured
        | Veto::NoBaseline => Slowed::Guard,
    }
}
