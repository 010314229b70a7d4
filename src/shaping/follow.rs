//! Following a moving goal with a linear law while that stays within the limits.
//!
//! The planner is time-optimal: fed with noise it answers with full jerk, and it always plans to stop at the goal, which costs lag.
//! A linear law does neither. It is used only when its step, unclipped, keeps every limit; a clipped linear law would wind up.

use super::brake::{Moved, inevitable_peak};
use super::limits::AxisLimits;

/// Triple closed-loop pole of the law, rad/s. Chosen together with the tracker's numbers (`tracker.rs`).
const BANDWIDTH: f64 = 32.0;

/// A moving goal of one axis, seen from the command: at the end of the coming period it shall be there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Aim {
    /// Way from the present command to the goal's position.
    pub(super) way: f64,
    /// The goal's velocity.
    pub(super) v: f64,
    /// The goal's acceleration.
    pub(super) a: f64,
}

/// Feedback gains on position, velocity and acceleration error for one period length.
#[derive(Debug, Clone, Copy)]
pub(super) struct Follower {
    gains: [f64; 3],
    period_s: f64,
}

impl Follower {
    /// Places three poles of the sampled triple integrator at `exp(-BANDWIDTH * period_s)`.
    pub(super) fn new(period_s: f64) -> Self {
        let b = 1.0 - (-BANDWIDTH * period_s).exp();
        Self {
            gains: [
                b.powi(3) / period_s.powi(3),
                (3.0 - b) * b * b / (period_s * period_s),
                (3.0 - 1.5 * b + b * b / 3.0) * b / period_s,
            ],
            period_s,
        }
    }

    /// The period.
    pub(super) const fn period_s(&self) -> f64 {
        self.period_s
    }

    /// One period of constant jerk after `aim`; `None` when its jerk or acceleration would exceed the limits. Speed is for the caller.
    pub(super) fn step(&self, aim: Aim, v: f64, a: f64, limits: AxisLimits) -> Option<Moved> {
        let dt = self.period_s;
        // The error now, against where the goal was one period before.
        let behind = aim.way - dt * (aim.v - 0.5 * dt * aim.a);
        let [on_p, on_v, on_a] = self.gains;
        let jerk = on_p * behind + on_v * (aim.v - dt * aim.a - v) + on_a * (aim.a - a);
        let next = Moved { d: 0.0, v, a }.after(dt, jerk);
        (jerk.abs() <= limits.jerk_max && next.a.abs() <= limits.acc_max).then_some(next)
    }
}

/// Largest speed of a step of constant jerk from (`v`, `a`) to `next`, inside it or inevitable after it.
///
/// A gentle jerk lets the velocity rise a little further inside the step than full jerk would have: both ends may keep a limit that
/// the way between them does not.
pub(super) fn peak_of_step(v: f64, a: f64, next: Moved, dt_s: f64, limits: AxisLimits) -> f64 {
    let after = inevitable_peak(next.v, next.a, limits.jerk_max);
    if a * next.a < 0.0 {
        let turn_s = dt_s * a / (a - next.a);
        after.max((v + 0.5 * a * turn_s).abs())
    } else {
        after
    }
}
