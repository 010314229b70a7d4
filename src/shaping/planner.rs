//! One axis towards rest at a goal in minimal time: rsruckig's step-1 solver, called below its front door.
//!
//! `Ruckig::update` formats its error texts on the heap (even when the error is ignored) and reads the clock. The solver under it
//! works on plain values, says "no profile" with a `bool`, and never allocates; that is all that is used here. What it returns is
//! checked against the limits before it is believed. `None` is the caller's sign to brake.

use rsruckig::block::Block;
use rsruckig::brake::BrakeProfile;
use rsruckig::position_third_step1::PositionThirdOrderStep1;
use rsruckig::profile::Profile;

use super::brake::{Moved, inevitable_peak};
use super::limits::AxisLimits;

/// Relative slack of the check on a planned step; rounding, not a licence.
const SLACK: f64 = 1e-9;

/// Scratch space of the solver: results never depend on what was planned before.
#[derive(Debug, Clone, Default)]
pub(super) struct Planner {
    solver: PositionThirdOrderStep1,
    profile: Profile,
    block: Block,
}

impl Planner {
    /// One period of `dt_s` from (`v`, `a`) towards rest at distance `way`. All inputs must be finite. Heap-free.
    /// `None` when no profile was found or the step would break a limit.
    pub(super) fn step(
        &mut self,
        way: f64,
        v: f64,
        a: f64,
        limits: AxisLimits,
        dt_s: f64,
    ) -> Option<Moved> {
        let AxisLimits {
            vel_max: speed_cap,
            acc_max,
            jerk_max,
        } = limits;
        // A goal beyond the way of any start-up and braking only lengthens the cruise; the step is the same, the digits are not.
        let far = limits.far();
        let way = way.clamp(-far, far);
        let p = &mut self.profile;
        p.brake = BrakeProfile::default();
        p.brake.get_position_brake_trajectory(
            v, a, speed_cap, -speed_cap, acc_max, -acc_max, jerk_max,
        );
        let [mut d0, mut v0, mut a0] = [0.0, v, a];
        p.brake.finalize(&mut d0, &mut v0, &mut a0);
        p.set_boundary(d0, v0, a0, way, 0.0, 0.0);
        self.solver.reset(
            d0, v0, a0, way, 0.0, 0.0, speed_cap, -speed_cap, acc_max, -acc_max, jerk_max,
        );
        if !self.solver.get_profile(&self.profile, &mut self.block) {
            return None;
        }
        let next = self.sample(way, Moved { d: 0.0, v, a }, dt_s);
        believable(next, v, a, limits, dt_s).then_some(next)
    }

    /// The planned state at `dt_s`, exactly at the goal when the plan is shorter than that.
    fn sample(&self, way: f64, start: Moved, dt_s: f64) -> Moved {
        let plan = &self.block.p_min;
        let mut left_s = dt_s;
        let mut now = start;
        let brake = plan.brake.t.iter().zip(&plan.brake.j);
        let braking = if plan.brake.duration > 0.0 { 2 } else { 0 };
        for (&dt, &jerk) in brake.take(braking).chain(plan.t.iter().zip(&plan.j)) {
            if left_s < dt {
                return now.after(left_s, jerk);
            }
            if dt > 0.0 {
                now = now.after(dt, jerk);
                left_s -= dt;
            }
        }
        Moved {
            d: way,
            v: 0.0,
            a: 0.0,
        }
    }
}

/// The step keeps acceleration, jerk and speed within the limits, or within what was inevitable.
fn believable(next: Moved, v: f64, a: f64, limits: AxisLimits, dt_s: f64) -> bool {
    let AxisLimits {
        vel_max,
        acc_max,
        jerk_max,
    } = limits;
    let peak = vel_max.max(inevitable_peak(v, a, jerk_max));
    // The mean velocity of the step lies within the peak as well: that ties the way to the rest.
    next.d.abs() <= peak * dt_s * (1.0 + SLACK) + 2e-8
        && next.a.abs() <= acc_max.max(a.abs()) * (1.0 + SLACK)
        && (next.a - a).abs() <= jerk_max * dt_s * (1.0 + SLACK) + 1e-9
        && inevitable_peak(next.v, next.a, jerk_max) <= peak * (1.0 + SLACK) + 1e-9
}
