//! Shaping of a tool pose: three linear axes and three components of the angular rate, all in the arm base frame.

use nalgebra::{UnitQuaternion, Vector3};

use crate::geometry::{ArmBase, Pose, Tcp, log_rotation, rotation_from_log};

use super::brake::{Brake, inevitable_peak};
use super::follow::{Aim, peak_of_step};
use super::limits::{AxisLimits, Limits};
use super::scalar::{Engine, Wish};

/// Commanded motion of a tool. Copy it before advancing to be able to go back when a command could not be sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct State {
    /// Tool in the arm base.
    pub pose: Pose<ArmBase, Tcp>,
    /// Linear velocity in the arm base, m/s.
    pub lin_vel: Vector3<f64>,
    /// Linear acceleration in the arm base, m/s2.
    pub lin_acc: Vector3<f64>,
    /// Angular rate in the arm base, rad/s.
    pub ang_vel: Vector3<f64>,
    /// Angular acceleration in the arm base, rad/s2.
    pub ang_acc: Vector3<f64>,
}

impl State {
    /// At rest at `pose`.
    #[must_use]
    pub fn at_rest(pose: Pose<ArmBase, Tcp>) -> Self {
        Self {
            pose,
            lin_vel: Vector3::zeros(),
            lin_acc: Vector3::zeros(),
            ang_vel: Vector3::zeros(),
            ang_acc: Vector3::zeros(),
        }
    }

    /// All velocities and accelerations are exactly zero.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        [self.lin_vel, self.lin_acc, self.ang_vel, self.ang_acc]
            .iter()
            .all(|v| *v == Vector3::zeros())
    }

    fn is_finite(&self) -> bool {
        self.pose.is_finite()
            && [self.lin_vel, self.lin_acc, self.ang_vel, self.ang_acc]
                .iter()
                .all(|v| v.iter().all(|x| x.is_finite()))
    }
}

/// Where the tool shall go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// To rest at `pose` in minimal time.
    Goal {
        /// Tool in the arm base.
        pose: Pose<ArmBase, Tcp>,
    },
    /// Along with a moving goal, as the tracker gives it.
    Follow {
        /// Where the goal is at the instant of the command that this step makes, and how it moves.
        goal: State,
    },
    /// To rest, as fast as the limits allow.
    Brake,
}

impl Target {
    /// To rest at `pose` in minimal time.
    #[must_use]
    pub const fn goal(pose: Pose<ArmBase, Tcp>) -> Self {
        Self::Goal { pose }
    }
}

/// What one command period brings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The state one command period later.
    pub state: State,
    /// The goal was unusable, or an axis found no profile to it and brakes in this step.
    pub fell_back: bool,
}

/// Limiter of a tool pose. Holds limits and scratch space, no motion: the result depends on the arguments alone.
///
/// The angular rate is shaped in arm-base components: the way is the rotation vector of `goal * command^-1`, taken anew each period.
/// Rate, acceleration and jerk of the command are therefore the shaped ones themselves, exactly, and stay continuous from period to period.
#[derive(Debug, Clone)]
pub struct Shaper {
    linear: AxisLimits,
    angular: AxisLimits,
    engine: Engine,
}

impl Shaper {
    /// For commands every `period_s` seconds. Unusable limits are lowered to usable ones; see [`Limits::check`].
    #[must_use]
    pub fn new(limits: Limits, period_s: f64) -> Self {
        Self {
            linear: limits.linear().tamed(),
            // Per axis 1/sqrt(3) of acceleration and jerk, so that the norm holds.
            angular: limits
                .angular()
                .with_forces_times(3f64.sqrt().recip())
                .tamed(),
            engine: Engine::new(period_s),
        }
    }

    /// The command period, s.
    #[must_use]
    pub const fn period_s(&self) -> f64 {
        self.engine.period_s()
    }

    /// One command period on from `state`. Heap-free; a goal that is not finite brakes.
    ///
    /// A state from within the limits stays within them, whatever the sequence of goals and brakes. A state beyond them (limits were
    /// lowered) is brought back as fast as acceleration and jerk allow. Braking at rest returns the same bits.
    pub fn advance(&mut self, state: &State, target: &Target) -> Step {
        if !state.is_finite() {
            return Step {
                state: *state,
                fell_back: true,
            };
        }
        let (goal, follow) = match *target {
            Target::Goal { pose } => (Some(State::at_rest(pose)), false),
            Target::Follow { goal } => (Some(goal), true),
            Target::Brake => (None, false),
        };
        let usable = goal.is_none_or(|goal| goal.is_finite());
        let goal = if usable { goal } else { None };
        if goal.is_none() && state.is_at_rest() {
            return Step {
                state: *state,
                fell_back: !usable,
            };
        }
        let lin_aim = goal.map(|goal| VectorAim {
            way: goal.pose.position() - state.pose.position(),
            vel: goal.lin_vel,
            acc: goal.lin_acc,
            follow,
        });
        let ang_aim = goal.map(|goal| VectorAim {
            way: way_round(goal.pose.rotation(), state.pose.rotation(), state.ang_vel),
            vel: goal.ang_vel,
            acc: goal.ang_acc,
            follow,
        });
        let lin = self.advance_vector(lin_aim, state.lin_vel, state.lin_acc, self.linear);
        let ang = self.advance_vector(ang_aim, state.ang_vel, state.ang_acc, self.angular);
        Step {
            state: self.assemble(state, &lin, &ang),
            fell_back: !(usable && lin.granted && ang.granted),
        }
    }

    fn assemble(&self, state: &State, lin: &Advanced, ang: &Advanced) -> State {
        let position = if lin.way == Vector3::zeros() {
            state.pose.position()
        } else {
            state.pose.position() + lin.way
        };
        let rotation = if ang.way == Vector3::zeros() {
            state.pose.rotation()
        } else {
            // Second term of the Magnus series: the rate turns its direction within the period.
            let dt = self.period_s();
            let turning = ang.vel.cross(&state.ang_vel) * (dt * dt / 12.0);
            turned(state.pose.rotation(), ang.way + turning)
        };
        State {
            pose: Pose::from_parts(position, rotation),
            lin_vel: lin.vel,
            lin_acc: lin.acc,
            ang_vel: ang.vel,
            ang_acc: ang.acc,
        }
    }

    /// Where braking from `state` ends. Exact in position; in rotation to second order of the way left (a few milliradians from full rate).
    #[must_use]
    pub fn stopping_point(&self, state: &State) -> Pose<ArmBase, Tcp> {
        if state.is_at_rest() {
            return state.pose;
        }
        let way = |v: Vector3<f64>, a: Vector3<f64>, limits: AxisLimits| {
            v.zip_map(&a, |v, a| {
                Brake::new(v, a, limits.acc_max, limits.jerk_max).distance()
            })
        };
        let lin = way(state.lin_vel, state.lin_acc, self.linear);
        let ang = way(state.ang_vel, state.ang_acc, self.angular);
        Pose::from_parts(
            state.pose.position() + lin,
            turned(state.pose.rotation(), ang),
        )
    }

    /// The way of braking from `state`, to look at before it is ever taken.
    #[must_use]
    pub fn braking(&self, state: &State) -> Braking {
        let plan = |v: Vector3<f64>, a: Vector3<f64>, limits: AxisLimits| {
            [0, 1, 2].map(|i| {
                let of = |vector: &Vector3<f64>| vector.get(i).copied().unwrap_or_default();
                Brake::new(of(&v), of(&a), limits.acc_max, limits.jerk_max)
            })
        };
        Braking {
            from: state.pose,
            linear: plan(state.lin_vel, state.lin_acc, self.linear),
            angular: plan(state.ang_vel, state.ang_acc, self.angular),
        }
    }

    fn advance_vector(
        &mut self,
        aim: Option<VectorAim>,
        vel: Vector3<f64>,
        acc: Vector3<f64>,
        limits: AxisLimits,
    ) -> Advanced {
        if let Some(next) = aim.and_then(|aim| self.follow_vector(aim, vel, acc, limits)) {
            return next;
        }
        let caps = speed_caps(aim.map(|aim| aim.way).unwrap_or_default(), vel, acc, limits);
        let mut next = Advanced::still();
        let outs = next.way.iter_mut().zip(&mut next.vel).zip(&mut next.acc);
        let ins = vel.iter().zip(&acc).zip(&caps);
        let mut wishes = aim.iter().flat_map(VectorAim::wishes);
        for (((out_way, out_vel), out_acc), ((&v, &a), &cap)) in outs.zip(ins) {
            let wish = wishes.next().unwrap_or(Wish::Brake);
            let (moved, granted) = self.engine.step(wish, v, a, limits.with_speed(cap));
            (*out_way, *out_vel, *out_acc) = (moved.d, moved.v, moved.a);
            next.granted &= granted;
        }
        next
    }

    /// The linear law on all three axes, if it keeps all limits on all of them.
    fn follow_vector(
        &self,
        aim: VectorAim,
        vel: Vector3<f64>,
        acc: Vector3<f64>,
        limits: AxisLimits,
    ) -> Option<Advanced> {
        let mut next = Advanced::still();
        let mut peaks_squared = 0.0;
        let outs = next.way.iter_mut().zip(&mut next.vel).zip(&mut next.acc);
        for (((out_way, out_vel), out_acc), ((&v, &a), wish)) in
            outs.zip(vel.iter().zip(&acc).zip(aim.wishes()))
        {
            let Wish::Along(aim) = wish else { return None };
            let moved = self.engine.follow(aim, v, a, limits)?;
            (*out_way, *out_vel, *out_acc) = (moved.d, moved.v, moved.a);
            peaks_squared += peak_of_step(v, a, moved, self.period_s(), limits).powi(2);
        }
        (peaks_squared <= speed_budget(limits)).then_some(next)
    }
}

/// A goal of three axes, seen from the command.
#[derive(Debug, Clone, Copy)]
struct VectorAim {
    way: Vector3<f64>,
    vel: Vector3<f64>,
    acc: Vector3<f64>,
    follow: bool,
}

impl VectorAim {
    /// The wish of each axis.
    fn wishes(&self) -> impl Iterator<Item = Wish> + '_ {
        let aims = self.way.iter().zip(&self.vel).zip(&self.acc);
        aims.map(|((&way, &v), &a)| {
            let aim = Aim { way, v, a };
            if self.follow {
                Wish::Along(aim)
            } else {
                Wish::To(aim.way)
            }
        })
    }
}

/// The way of braking to rest: exact in position, in rotation to second order of the way.
#[derive(Debug, Clone, Copy)]
pub struct Braking {
    from: Pose<ArmBase, Tcp>,
    linear: [Brake; 3],
    angular: [Brake; 3],
}

impl Braking {
    /// Time to rest, s.
    #[must_use]
    pub fn duration_s(&self) -> f64 {
        self.linear
            .iter()
            .chain(&self.angular)
            .map(Brake::duration_s)
            .fold(0.0, f64::max)
    }

    /// Pose `t_s` after braking began.
    #[must_use]
    pub fn pose_at(&self, t_s: f64) -> Pose<ArmBase, Tcp> {
        let moved = |brakes: &[Brake; 3]| Vector3::from(brakes.map(|brake| brake.at(t_s).d));
        Pose::from_parts(
            self.from.position() + moved(&self.linear),
            turned(self.from.rotation(), moved(&self.angular)),
        )
    }
}

struct Advanced {
    way: Vector3<f64>,
    vel: Vector3<f64>,
    acc: Vector3<f64>,
    granted: bool,
}

impl Advanced {
    fn still() -> Self {
        Self {
            way: Vector3::zeros(),
            vel: Vector3::zeros(),
            acc: Vector3::zeros(),
            granted: true,
        }
    }
}

/// What the squares of the inevitable peaks may sum to: a hair below the squared limit, so that rounding does not add up beyond it.
fn speed_budget(limits: AxisLimits) -> f64 {
    limits.vel_max * limits.vel_max * (1.0 - 1e-7)
}

/// Speed cap per axis such that the norm of the velocity stays within the limit, now and from then on.
///
/// Each axis keeps the peak that it cannot avoid any more; what is left of the squared limit is shared in the direction of the way.
/// The planner ends every step with an inevitable peak within its cap, so the squares of the next step's peaks sum to the squared
/// limit at most: the rule carries itself, and the full speed is there in every direction.
fn speed_caps(
    way: Vector3<f64>,
    vel: Vector3<f64>,
    acc: Vector3<f64>,
    limits: AxisLimits,
) -> Vector3<f64> {
    // A cap of zero is no cap to plan with; this one is lost in the budget's reserve.
    let smallest = 1e-6 * limits.vel_max;
    let budget = speed_budget(limits);
    let peaks = vel.zip_map(&acc, |v, a| inevitable_peak(v, a, limits.jerk_max));
    let used = peaks.norm_squared();
    if used >= budget {
        // At or (after lowered limits) beyond the speed limit: nobody gains, everybody comes down.
        let scale = (budget / used).sqrt();
        return peaks.map(|peak| (peak * scale).max(smallest));
    }
    let bounded = way.map(|d| d.clamp(-1e3, 1e3));
    let squares = bounded.component_mul(&bounded);
    let total = squares.sum();
    // A few percent for axes with no way to go, which may still have noise to follow.
    let floor = 0.02 * total + 1e-12;
    let left = (budget - used) / (total + 3.0 * floor);
    peaks.zip_map(&squares, |peak, square| {
        (peak * peak + (square + floor) * left).sqrt().max(smallest)
    })
}

/// Rotation vector (arm base axes, rad) from `now` to `goal` by the short way; nearly opposite, the way that `rate` already turns.
fn way_round(
    goal: UnitQuaternion<f64>,
    now: UnitQuaternion<f64>,
    rate: Vector3<f64>,
) -> Vector3<f64> {
    use core::f64::consts::{PI, TAU};
    const OPPOSITE_RAD: f64 = PI - 0.2;
    let short = log_rotation(goal * now.inverse());
    let angle = short.norm();
    if angle > OPPOSITE_RAD && short.dot(&rate) < 0.0 {
        return short * ((angle - TAU) / angle);
    }
    short
}

/// `rotation` turned by a rotation vector in arm base axes, kept at norm one.
fn turned(rotation: UnitQuaternion<f64>, by: Vector3<f64>) -> UnitQuaternion<f64> {
    UnitQuaternion::new_normalize((rotation_from_log(by) * rotation).into_inner())
}
