//! Shaping of one degree of freedom, and of `N` joints side by side.

use super::brake::{Brake, Moved};
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

    fn is_finite(&self) -> bool {
        self.p.is_finite() && self.v.is_finite() && self.a.is_finite()
    }
}

/// Where one degree of freedom shall go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ScalarTarget {
    /// To rest at this position, own unit.
    Goal(f64),
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
    period_s: f64,
    planner: Planner,
}

impl ScalarShaper {
    /// For commands every `period_s` seconds. Unusable limits are lowered to usable ones; see [`AxisLimits::check`].
    #[must_use]
    pub fn new(limits: AxisLimits, period_s: f64) -> Self {
        Self {
            limits: limits.tamed(),
            period_s: tame_period_s(period_s),
            planner: Planner::default(),
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
        let goal = match *target {
            ScalarTarget::Goal(goal) if goal.is_finite() => Some(goal),
            ScalarTarget::Goal(_) | ScalarTarget::Brake => None,
        };
        let asked_to_brake = matches!(target, ScalarTarget::Brake);
        if state.is_at_rest() && goal.is_none_or(|goal| (goal - state.p).abs() <= NEAR) {
            return ScalarStep {
                state: *state,
                fell_back: goal.is_none() && !asked_to_brake,
            };
        }
        let (moved, planned) = step_axis(
            &mut self.planner,
            goal.map(|goal| goal - state.p),
            state.v,
            state.a,
            self.limits.vel_max,
            self.limits,
            self.period_s,
        );
        ScalarStep {
            state: ScalarState {
                p: state.p + moved.d,
                v: moved.v,
                a: moved.a,
            },
            fell_back: !planned && !asked_to_brake,
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
    /// To rest at these positions, rad (or m), base first.
    Goal([f64; N]),
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
    period_s: f64,
    planner: Planner,
}

impl<const N: usize> JointShaper<N> {
    /// For commands every `period_s` seconds. Unusable limits are lowered to usable ones; see [`AxisLimits::check`].
    #[must_use]
    pub fn new(limits: [AxisLimits; N], period_s: f64) -> Self {
        Self {
            limits: limits.map(AxisLimits::tamed),
            period_s: tame_period_s(period_s),
            planner: Planner::default(),
        }
    }

    /// One command period on from `state`. Heap-free; a goal with a number that is not finite brakes every joint.
    pub fn advance(&mut self, state: &JointState<N>, target: &JointTarget<N>) -> JointStep<N> {
        let goal = match target {
            JointTarget::Goal(goal) if goal.iter().all(|q| q.is_finite()) => Some(goal),
            JointTarget::Goal(_) | JointTarget::Brake => None,
        };
        let asked_to_brake = matches!(target, JointTarget::Brake);
        let mut step = JointStep {
            state: *state,
            fell_back: goal.is_none() && !asked_to_brake,
        };
        let goals = goal.map(|goal| goal.iter());
        let mut goals = goals.into_iter().flatten();
        for (joint, limits) in step.state.joints.iter_mut().zip(self.limits) {
            let goal = goals.next().copied();
            if !joint.is_finite() {
                step.fell_back = true;
                continue;
            }
            if joint.is_at_rest() && goal.is_none_or(|goal| (goal - joint.p).abs() <= NEAR) {
                continue;
            }
            let (moved, planned) = step_axis(
                &mut self.planner,
                goal.map(|goal| goal - joint.p),
                joint.v,
                joint.a,
                limits.vel_max,
                limits,
                self.period_s,
            );
            *joint = ScalarState {
                p: joint.p + moved.d,
                v: moved.v,
                a: moved.a,
            };
            step.fell_back |= !planned && !asked_to_brake;
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

/// One axis, one period: towards rest at distance `way`, or braking when there is none or the planner finds nothing.
/// Says whether the planner's step was taken. Inputs must be finite.
pub(super) fn step_axis(
    planner: &mut Planner,
    way: Option<f64>,
    v: f64,
    a: f64,
    speed_cap: f64,
    limits: AxisLimits,
    period_s: f64,
) -> (Moved, bool) {
    let planned = way.and_then(|way| {
        if v == 0.0 && a == 0.0 && way.abs() <= NEAR {
            return Some(Moved { d: 0.0, v, a });
        }
        planner.step(way, v, a, speed_cap, limits, period_s)
    });
    match planned {
        Some(moved) => (moved, true),
        None => {
            let brake = Brake::new(v, a, limits.acc_max, limits.jerk_max);
            (brake.at(period_s), false)
        }
    }
}

/// A period that the planner is trusted with: 0.1 ms to 1 s.
pub(super) fn tame_period_s(period_s: f64) -> f64 {
    if period_s.is_nan() {
        1e-4
    } else {
        period_s.clamp(1e-4, 1.0)
    }
}
