//! Braking of one axis in closed form: the fastest way to rest within an acceleration and a jerk limit.
//!
//! Up to four phases of constant jerk. The speed never rises above what the present acceleration makes
//! inevitable ([`inevitable_peak`]), so braking can follow anything at any moment without breaking a limit.

/// Velocity of one axis once its acceleration has been taken to zero at full jerk, unit of `v`.
///
/// The velocity passes through this value whatever is done from now on (if it speeds up).
pub(super) fn coasting_velocity(v: f64, a: f64, jerk_max: f64) -> f64 {
    v + 0.5 * a * a.abs() / jerk_max
}

/// Largest speed (>= 0) that one axis cannot avoid any more, unit of `v`.
pub(super) fn inevitable_peak(v: f64, a: f64, jerk_max: f64) -> f64 {
    v.abs().max(coasting_velocity(v, a, jerk_max).abs())
}

/// Position gained, velocity and acceleration of one axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Moved {
    /// Way since the start.
    pub(super) d: f64,
    /// Velocity.
    pub(super) v: f64,
    /// Acceleration.
    pub(super) a: f64,
}

impl Moved {
    /// After `dt_s` more at constant `jerk`.
    pub(super) fn after(self, dt_s: f64, jerk: f64) -> Self {
        let Self { d, v, a } = self;
        Self {
            d: d + dt_s * (v + dt_s * (0.5 * a + dt_s * jerk / 6.0)),
            v: v + dt_s * (a + 0.5 * dt_s * jerk),
            a: a + dt_s * jerk,
        }
    }
}

/// The way to rest from one velocity and acceleration: phases of (duration in s, jerk).
#[derive(Debug, Clone, Copy)]
pub(super) struct Brake {
    start: Moved,
    phases: [(f64, f64); 4],
}

impl Brake {
    /// Plans from velocity `v` and acceleration `a`. An acceleration beyond `acc_max` is first brought back at full jerk.
    pub(super) fn new(v: f64, a: f64, acc_max: f64, jerk_max: f64) -> Self {
        let start = Moved { d: 0.0, v, a };
        let excess = a.abs() - acc_max;
        let back = if excess > 0.0 {
            (excess / jerk_max, -jerk_max.copysign(a))
        } else {
            (0.0, 0.0)
        };
        let now = start.after(back.0, back.1);

        // Mirror the axis so that the coasting velocity is not negative: the braking acceleration is then.
        let side = 1.0_f64.copysign(coasting_velocity(now.v, now.a, jerk_max));
        let (v, a) = (side * now.v, side * now.a);
        let peak_squared = (jerk_max * v + 0.5 * a * a).max(0.0);
        let peak = peak_squared.sqrt().min(acc_max);
        let plateau = if peak_squared > acc_max * acc_max {
            (v + (0.5 * a * a - acc_max * acc_max) / jerk_max) / acc_max
        } else {
            0.0
        };
        Self {
            start,
            phases: [
                back,
                (((a + peak) / jerk_max).max(0.0), -side * jerk_max),
                (plateau.max(0.0), 0.0),
                (peak / jerk_max, side * jerk_max),
            ],
        }
    }

    /// Time to rest, s.
    pub(super) fn duration_s(&self) -> f64 {
        self.phases.iter().map(|(dt, _)| dt).sum()
    }

    /// State `t_s` after the start; at rest, exactly, from the end on.
    pub(super) fn at(&self, t_s: f64) -> Moved {
        let mut left_s = t_s;
        let mut now = self.start;
        for (dt, jerk) in self.phases {
            if left_s < dt {
                return now.after(left_s, jerk);
            }
            now = now.after(dt, jerk);
            left_s -= dt;
        }
        // What is left of velocity and acceleration is rounding.
        Moved {
            d: now.d,
            v: 0.0,
            a: 0.0,
        }
    }

    /// Way to the point of rest, signed.
    pub(super) fn distance(&self) -> f64 {
        self.at(f64::INFINITY).d
    }
}
