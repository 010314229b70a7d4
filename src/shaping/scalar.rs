//! Shaping of one degree of freedom, and of `N` joints side by side.

use super::brake::{Brake, Moved};
use super::follow::{Aim, Follower, peak_of_step};
use super::limits::AxisLimits;
use super::planner::Planner;

/// A goal nearer than this (own unit) is not worth starting for.
const NEAR: f64 = 1e-9;

/// Commanded motion of one degree of freedom; copy it to be able to go back.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ScalarState {
    /// Position, own unit (m, rad, opening).
    pub p: f64,
    /// Velocity, per second.
    pub v: f64,
    /// Acceleration, per second squared.
    pub a: f64,
}

impl ScalarState {
    /// At rest at `p`.
    #[must_use]
    pub const fn at_rest(p: f64) -> Self {
        Self { p, v: 0.0, a: 0.0 }
    }

    /// Velocity and acceleration are exactly zero.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.v == 0.0 && self.a == 0.0
    }

    /// This state after a relative step.
    fn moved(&self, by: Moved) -> Self {
        Self {
            // Adding nothing must not turn -0.0 into 0.0: rest keeps its bits.
            p: if by.d == 0.0 { self.p } else { self.p + by.d },
            v: by.v,
            a: by.a,
        }
    }

    pub(super) fn is_finite(&self) -> bool {
        self.p.is_finite() && self.v.is_finite() && self.a.is_finite()
    }
}

/// Where one degree of freedom shall go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ScalarTarget {
    /// To rest at this position, own unit, in minimal time.
    Goal(f64),
    /// Along with this moving goal, where it will be at the end of the period.
    Follow(ScalarState),
    /// To rest, as fast as the limits allow.
    Brake,
}

/// What one command period brings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScalarStep {
    /// The state one period later.
    pub state: ScalarState,
    /// The goal was unusable or no profile to it was found: this step brakes instead.
    pub fell_back: bool,
}

/// Limiter of one degree of freedom. Holds limits and scratch space, no motion: the result depends on the arguments alone.
#[derive(Debug, Clone)]
pub struct ScalarShaper {
    limits: AxisLimits,
    engine: Engine,
}

impl ScalarShaper {
    /// For commands every `period_s` seconds. Unusable limits are lowered to usable ones; see [`AxisLimits::check`].
    #[must_use]
    pub fn new(limits: AxisLimits, period_s: f64) -> Self {
        Self {
            limits: limits.tamed(),
            engine: Engine::new(period_s),
        }
    }

    /// The limits in force.
    #[must_use]
    pub const fn limits(&self) -> AxisLimits {
        self.limits
    }

    /// One command period on from `state`. Heap-free; a goal that is not finite brakes.
    pub fn advance(&mut self, state: &ScalarState, target: &ScalarTarget) -> ScalarStep {
        if !state.is_finite() {
            return ScalarStep {
                state: *state,
                fell_back: true,
            };
        }
        let (wish, usable) = match *target {
            ScalarTarget::Goal(goal) if goal.is_finite() => (Wish::To(goal - state.p), true),
            ScalarTarget::Follow(goal) if goal.is_finite() => (
                Wish::Along(Aim {
                    way: goal.p - state.p,
                    v: goal.v,
                    a: goal.a,
                }),
                true,
            ),
            ScalarTarget::Brake => (Wish::Brake, true),
            ScalarTarget::Goal(_) | ScalarTarget::Follow(_) => (Wish::Brake, false),
        };
        let (moved, found) = self.engine.step(wish, state.v, state.a, self.limits);
        ScalarStep {
            state: state.moved(moved),
            fell_back: !(usable && found),
        }
    }

    /// Where braking from `state` ends, own unit.
    #[must_use]
    pub fn stopping_point(&self, state: &ScalarState) -> f64 {
        if state.is_at_rest() {
            return state.p;
        }
        let AxisLimits {
            acc_max, jerk_max, ..
        } = self.limits;
        state.p + Brake::new(state.v, state.a, acc_max, jerk_max).distance()
    }
}

/// Commanded motion of `N` joints, rad (or m).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JointState<const N: usize> {
    /// One state per joint, base first.
    pub joints: [ScalarState; N],
}

impl<const N: usize> JointState<N> {
    /// At rest at `q` (rad or m, base first).
    #[must_use]
    pub fn at_rest(q: [f64; N]) -> Self {
        Self {
            joints: q.map(ScalarState::at_rest),
        }
    }

    /// Positions, base first.
    #[must_use]
    pub fn q(&self) -> [f64; N] {
        self.joints.map(|joint| joint.p)
    }

    /// Velocities, base first.
    #[must_use]
    pub fn qd(&self) -> [f64; N] {
        self.joints.map(|joint| joint.v)
    }

    /// Every joint is exactly at rest.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.joints.iter().all(ScalarState::is_at_rest)
    }
}

/// Where `N` joints shall go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum JointTarget<const N: usize> {
    /// To rest at these positions, rad (or m), base first, in minimal time.
    Goal([f64; N]),
    /// Along with this moving goal, where it will be at the end of the period.
    Follow(JointState<N>),
    /// To rest, as fast as the limits allow.
    Brake,
}

/// What one command period brings to `N` joints.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JointStep<const N: usize> {
    /// The state one period later.
    pub state: JointState<N>,
    /// At least one joint braked because its goal was unusable or no profile to it was found.
    pub fell_back: bool,
}

/// Limiter of `N` joints, each on its own limits and as fast as these allow; joints are not made to arrive together.
#[derive(Debug, Clone)]
pub struct JointShaper<const N: usize> {
    limits: [AxisLimits; N],
    engine: Engine,
}

impl<const N: usize> JointShaper<N> {
    /// For commands every `period_s` seconds. Unusable limits are lowered to usable ones; see [`AxisLimits::check`].
    #[must_use]
    pub fn new(limits: [AxisLimits; N], period_s: f64) -> Self {
        Self {
            limits: limits.map(AxisLimits::tamed),
            engine: Engine::new(period_s),
        }
    }

    /// One command period on from `state`. Heap-free; a goal with a number that is not finite brakes every joint.
    pub fn advance(&mut self, state: &JointState<N>, target: &JointTarget<N>) -> JointStep<N> {
        let (goal, follow) = match target {
            JointTarget::Goal(q) => (Some(JointState::at_rest(*q)), false),
            JointTarget::Follow(goal) => (Some(*goal), true),
            JointTarget::Brake => (None, false),
        };
        let usable = goal.is_none_or(|goal| goal.joints.iter().all(ScalarState::is_finite));
        let goal = if usable { goal } else { None };
        let mut step = JointStep {
            state: *state,
            fell_back: !usable,
        };
        let mut goals = goal.iter().flat_map(|goal| goal.joints.iter());
        for (joint, limits) in step.state.joints.iter_mut().zip(self.limits) {
            let goal = goals.next();
            if !joint.is_finite() {
                step.fell_back = true;
                continue;
            }
            let wish = match goal {
                None => Wish::Brake,
                Some(goal) => {
                    let aim = Aim {
                        way: goal.p - joint.p,
                        v: goal.v,
                        a: goal.a,
                    };
                    if follow {
                        Wish::Along(aim)
                    } else {
                        Wish::To(aim.way)
                    }
                }
            };
            let (moved, found) = self.engine.step(wish, joint.v, joint.a, limits);
            *joint = joint.moved(moved);
            step.fell_back |= !found;
        }
        step
    }

    /// Where braking from `state` ends, rad (or m), base first.
    #[must_use]
    pub fn stopping_point(&self, state: &JointState<N>) -> [f64; N] {
        let mut q = state.q();
        for ((q, joint), limits) in q.iter_mut().zip(&state.joints).zip(&self.limits) {
            if !joint.is_at_rest() {
                *q += Brake::new(joint.v, joint.a, limits.acc_max, limits.jerk_max).distance();
            }
        }
        q
    }
}

/// What one axis shall do in a period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Wish {
    Brake,
    /// To rest at this distance in minimal time.
    To(f64),
    /// By the linear law where it may, else in minimal time.
    Along(Aim),
}

/// The three ways to make one step of one axis, in falling order of comfort: linear law, planner, brake.
#[derive(Debug, Clone)]
pub(super) struct Engine {
    follower: Follower,
    planner: Planner,
}

impl Engine {
    pub(super) fn new(period_s: f64) -> Self {
        Self {
            follower: Follower::new(tame_period_s(period_s)),
            planner: Planner::default(),
        }
    }

    pub(super) const fn period_s(&self) -> f64 {
        self.follower.period_s()
    }

    /// The linear law's step, if it keeps jerk and acceleration. Speed is for the caller.
    pub(super) fn follow(&self, aim: Aim, v: f64, a: f64, limits: AxisLimits) -> Option<Moved> {
        let calm = aim.way.abs() <= NEAR && aim.v.abs() <= NEAR && aim.a.abs() <= NEAR;
        if calm && v.abs() <= NEAR && a.abs() <= NEAR {
            // Arrived: end the exponential tail in exact rest.
            return Some(Moved {
                d: 0.0,
                v: 0.0,
                a: 0.0,
            });
        }
        self.follower.step(aim, v, a, limits)
    }

    /// One axis, one period, with `limits.vel_max` as its speed cap. Says whether the wish was granted; if not, it brakes. Inputs finite.
    pub(super) fn step(&mut self, wish: Wish, v: f64, a: f64, limits: AxisLimits) -> (Moved, bool) {
        let planned = match wish {
            Wish::Brake => None,
            Wish::To(way) => self.plan(way, v, a, limits),
            Wish::Along(aim) => self
                .follow(aim, v, a, limits)
                .filter(|next| peak_of_step(v, a, *next, self.period_s(), limits) <= limits.vel_max)
                .or_else(|| self.plan(aim.way + CATCH_UP_LEAD_S * aim.v, v, a, limits)),
        };
        match planned {
            Some(moved) => (moved, true),
            None => {
                let brake = Brake::new(v, a, limits.acc_max, limits.jerk_max);
                (brake.at(self.period_s()), wish == Wish::Brake)
            }
        }
    }

    fn plan(&mut self, way: f64, v: f64, a: f64, limits: AxisLimits) -> Option<Moved> {
        if v == 0.0 && a == 0.0 && way.abs() <= NEAR {
            return Some(Moved { d: 0.0, v, a });
        }
        self.planner.step(way, v, a, limits, self.period_s())
    }
}

/// When the limits keep a command from following, the planner heads for where the goal will be so much later, s. That undoes about half
/// of the tracker's deliberate lateness: measured, it gains lag at low limits (71 to 62 ms at 5 m/s2) before overshoot shows.
const CATCH_UP_LEAD_S: f64 = 0.015;

/// A period that the planner is trusted with: 0.1 ms to 1 s.
fn tame_period_s(period_s: f64) -> f64 {
    if period_s.is_nan() {
        1e-4
    } else {
        period_s.clamp(1e-4, 1.0)
    }
}
