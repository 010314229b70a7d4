//! What a trajectory may do.

/// Limits of one axis, per second, second squared and second cubed of its own unit (m, rad, opening).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AxisLimits {
    /// Largest speed.
    pub vel_max: f64,
    /// Largest acceleration.
    pub acc_max: f64,
    /// Largest jerk.
    pub jerk_max: f64,
}

/// Limits of a tool pose: linear m/s, m/s2, m/s3; angular rad/s, rad/s2, rad/s3.
///
/// Linear speed is limited by its norm, linear acceleration and jerk per axis of the arm base; all three angular quantities by norm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Largest norm of the linear velocity, m/s.
    pub lin_vel_max: f64,
    /// Largest linear acceleration per axis, m/s2.
    pub lin_acc_max: f64,
    /// Largest linear jerk per axis, m/s3.
    pub lin_jerk_max: f64,
    /// Largest norm of the angular rate, rad/s.
    pub ang_vel_max: f64,
    /// Largest norm of the angular acceleration, rad/s2.
    pub ang_acc_max: f64,
    /// Largest norm of the angular jerk, rad/s3.
    pub ang_jerk_max: f64,
}

/// Why limits were refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LimitsError {
    /// A limit is not a finite number within 1e-3..=1e6.
    #[error("every limit must lie within 0.001 and 1000000")]
    Range,
    /// Reaching full speed would take longer than ten seconds.
    #[error(
        "acceleration or jerk is too small for the speed: full speed would take more than 10 s"
    )]
    Sluggish,
}

/// Smallest and largest limit that the planner is trusted with.
const LIMIT_RANGE: core::ops::RangeInclusive<f64> = 1e-3..=1e6;
/// Longest time to full speed, s.
const RAMP_S_MAX: f64 = 10.0;

impl AxisLimits {
    /// Are these limits usable?
    ///
    /// # Errors
    /// [`LimitsError`] says what is wrong.
    pub fn check(&self) -> Result<(), LimitsError> {
        let all = [self.vel_max, self.acc_max, self.jerk_max];
        if !all.iter().all(|limit| LIMIT_RANGE.contains(limit)) {
            return Err(LimitsError::Range);
        }
        if self.ramp_s() > RAMP_S_MAX {
            return Err(LimitsError::Sluggish);
        }
        Ok(())
    }

    /// The nearest limits that [`check`](Self::check) accepts; NaN becomes the smallest. Never larger than asked where that is possible.
    pub(super) fn tamed(self) -> Self {
        let tame = |x: f64| {
            if x.is_nan() {
                *LIMIT_RANGE.start()
            } else {
                x.clamp(*LIMIT_RANGE.start(), *LIMIT_RANGE.end())
            }
        };
        let mut limits = Self {
            vel_max: tame(self.vel_max),
            acc_max: tame(self.acc_max),
            jerk_max: tame(self.jerk_max),
        };
        // Lower the limits that are too large for the smaller ones below them.
        limits.acc_max = limits.acc_max.min(limits.jerk_max * 0.5 * RAMP_S_MAX);
        limits.vel_max = limits.vel_max.min(limits.acc_max * 0.5 * RAMP_S_MAX);
        limits
    }

    /// The same limits times `k` for acceleration and jerk.
    pub(super) fn with_forces_times(self, k: f64) -> Self {
        Self {
            acc_max: self.acc_max * k,
            jerk_max: self.jerk_max * k,
            ..self
        }
    }

    /// Time to full speed, s.
    fn ramp_s(&self) -> f64 {
        self.vel_max / self.acc_max + self.acc_max / self.jerk_max
    }

    /// The same limits with another speed.
    pub(super) fn with_speed(self, vel_max: f64) -> Self {
        Self { vel_max, ..self }
    }

    /// A way that no start-up plus braking covers.
    pub(super) fn far(&self) -> f64 {
        4.0 * self.vel_max * (self.ramp_s() + 1.0)
    }
}

impl Limits {
    /// Are these limits usable?
    ///
    /// # Errors
    /// [`LimitsError`] says what is wrong.
    pub fn check(&self) -> Result<(), LimitsError> {
        self.linear().check()?;
        self.angular().check()
    }

    /// The linear half.
    #[must_use]
    pub const fn linear(&self) -> AxisLimits {
        AxisLimits {
            vel_max: self.lin_vel_max,
            acc_max: self.lin_acc_max,
            jerk_max: self.lin_jerk_max,
        }
    }

    /// The angular half.
    #[must_use]
    pub const fn angular(&self) -> AxisLimits {
        AxisLimits {
            vel_max: self.ang_vel_max,
            acc_max: self.ang_acc_max,
            jerk_max: self.ang_jerk_max,
        }
    }
}
