//! From hand to command: the plan's limits measured on a recorded kind of hand motion, beside two yardsticks.

use std::io::Write;

use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};

use super::Outcome;
use crate::shaping::measure::{Figures, HandSample, Way, Workload, measure};
use crate::shaping::{Limits, Tuning};

/// One axis of a hand: reaches of 3 to 25 cm with rests, a device's noise, a network's delay. The same file that the tests use.
const MOTION: &str = include_str!("../../tests/golden/hand_motion.json");
/// The bars, at 1 m/s, 10 m/s2, 600 m/s3.
const LAG_MS_MAX: f64 = 40.0;
const JERK_RATIO_MAX: f64 = 10.0;
const OVERSHOOT_MM_MAX: f64 = 2.5;
/// A motion scaled to a plan's speed cap stays this far below it: what is left is the lag of acceleration, jerk and tracking.
const SPEED_SHARE: f64 = 0.8;

/// Hand to command: lag, jerk and overshoot of tracker and limiter, beside the plain limiter and a Kalman filter.
#[derive(Debug, Args)]
pub(super) struct TrackArgs {
    /// Speed limit, m/s
    #[arg(long, default_value_t = 1.0)]
    speed: f64,
    /// Acceleration limit, m/s2
    #[arg(long, default_value_t = 10.0)]
    accel: f64,
    /// Jerk limit, m/s3
    #[arg(long, default_value_t = 600.0)]
    jerk: f64,
    /// As JSON
    #[arg(long)]
    json: bool,
}

impl TrackArgs {
    pub(super) fn run(&self) -> anyhow::Result<Outcome> {
        let limits = Limits {
            lin_vel_max: self.speed,
            lin_acc_max: self.accel,
            lin_jerk_max: self.jerk,
            ang_vel_max: 3.0,
            ang_acc_max: 30.0,
            ang_jerk_max: 1500.0,
        };
        limits.check()?;
        let motion = Motion::load()?;
        let rows = [
            ("telearm", Way::Tracker(Tuning::default())),
            ("newest sample, limiter alone", Way::NewestSample),
            ("constant-velocity Kalman", Way::ConstantVelocityKalman),
        ]
        .map(|(name, way)| (name, measure(&motion.workload(), limits, way)));
        let ours = rows[0].1;
        let good = ours.lag_s * 1e3 <= LAG_MS_MAX
            && ours.jerk_ratio <= JERK_RATIO_MAX
            && ours.overshoot_median_m * 1e3 <= OVERSHOOT_MM_MAX;
        let mut out = std::io::stdout().lock();
        if self.json {
            let value = json!({
                "bench": "track",
                "limits": { "speed_m_s": self.speed, "accel_m_s2": self.accel, "jerk_m_s3": self.jerk },
                "ways": rows.iter().map(|(name, f)| numbers(name, f)).collect::<Vec<_>>(),
                "bar": { "lag_ms": LAG_MS_MAX, "jerk_ratio": JERK_RATIO_MAX, "overshoot_median_mm": OVERSHOOT_MM_MAX },
                "within_bar": good,
            });
            writeln!(out, "{}", serde_json::to_string_pretty(&value)?)?;
            return Ok(Outcome::of(good));
        }
        writeln!(
            out,
            "hand to command, {} m/s, {} m/s2, {} m/s3",
            self.speed, self.accel, self.jerk
        )?;
        for (name, figures) in &rows {
            writeln!(out, "  {name:30} {}", line(figures))?;
        }
        writeln!(
            out,
            "bar: lag {LAG_MS_MAX} ms, jerk {JERK_RATIO_MAX} x the hand's, overshoot p50 {OVERSHOOT_MM_MAX} mm: {}",
            if good { "within" } else { "MISSED" }
        )?;
        Ok(Outcome::of(good))
    }
}

/// What a lane's limits do to a hand motion that stays within its speed cap, a line for people.
pub(super) fn plan_lag(limits: Limits, command_hz: u32) -> anyhow::Result<String> {
    let motion = Motion::load()?;
    let scale = (SPEED_SHARE * limits.lin_vel_max / motion.speed_max()).min(1.0);
    let motion = motion.scaled(scale).resampled(1.0 / f64::from(command_hz));
    let figures = measure(&motion.workload(), limits, Way::Tracker(Tuning::default()));
    Ok(format!(
        "{} (hand motion of up to {:.2} m/s, network of about 6 ms included; the arm's own lag comes on top)",
        line(&figures),
        motion.speed_max()
    ))
}

fn line(f: &Figures) -> String {
    format!(
        "lag {:5.1} ms, jerk {:5.1} x the hand's, overshoot p50 {:.1} mm, worst {:.1} mm",
        f.lag_s * 1e3,
        f.jerk_ratio,
        f.overshoot_median_m * 1e3,
        f.overshoot_worst_m * 1e3
    )
}

fn numbers(name: &str, f: &Figures) -> Value {
    json!({
        "way": name,
        "lag_ms": f.lag_s * 1e3,
        "jerk_ratio": f.jerk_ratio,
        "overshoot_median_mm": f.overshoot_median_m * 1e3,
        "overshoot_worst_mm": f.overshoot_worst_m * 1e3,
        "error_rms_mm": f.error_rms_m * 1e3,
        "shape_rms_mm": f.shape_rms_m * 1e3,
        "rest_rms_mm": f.rest_rms_m * 1e3,
    })
}

/// A hand motion.
struct Motion {
    samples: Vec<HandSample>,
    truth_m: Vec<f64>,
    period_s: f64,
}

impl Motion {
    fn load() -> anyhow::Result<Self> {
        let json: Value = serde_json::from_str(MOTION)?;
        let numbers = |value: &Value| -> Option<Vec<f64>> {
            value.as_array()?.iter().map(Value::as_f64).collect()
        };
        let read = || -> Option<Self> {
            let samples = json["samples"]
                .as_array()?
                .iter()
                .map(|sample| {
                    let [_, received_s, measured_m] = numbers(sample)?.try_into().ok()?;
                    Some(HandSample {
                        received_s,
                        measured_m,
                    })
                })
                .collect::<Option<_>>()?;
            Some(Self {
                samples,
                truth_m: numbers(&json["truth_m"])?,
                period_s: json["truth_dt_s"].as_f64()?,
            })
        };
        read().context("the built-in hand motion is damaged")
    }

    fn workload(&self) -> Workload<'_> {
        Workload {
            samples: &self.samples,
            truth_m: &self.truth_m,
            period_s: self.period_s,
        }
    }

    fn speed_max(&self) -> f64 {
        self.truth_m
            .windows(2)
            .map(|pair| (pair[1] - pair[0]).abs() / self.period_s)
            .fold(0.0, f64::max)
    }

    /// A smaller motion in the same time.
    fn scaled(mut self, scale: f64) -> Self {
        self.truth_m.iter_mut().for_each(|x| *x *= scale);
        self.samples.iter_mut().for_each(|s| s.measured_m *= scale);
        self
    }

    /// The same motion with its truth on another grid.
    fn resampled(mut self, period_s: f64) -> Self {
        if (period_s - self.period_s).abs() < 1e-9 {
            return self;
        }
        let last = self.truth_m.len().saturating_sub(1);
        let count = (last as f64 * self.period_s / period_s) as usize;
        self.truth_m = (0..count)
            .map(|k| {
                let at = k as f64 * period_s / self.period_s;
                let (i, part) = (at as usize, at.fract());
                let next = self.truth_m[(i + 1).min(last)];
                self.truth_m[i.min(last)] * (1.0 - part) + next * part
            })
            .collect();
        self.period_s = period_s;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards: the built-in motion is the one that the bars were set on, and resampling keeps its course.
    #[test]
    fn motion_is_whole() {
        let motion = Motion::load().unwrap();
        assert_eq!((motion.samples.len(), motion.truth_m.len()), (2999, 12_000));
        let speed = motion.speed_max();
        assert!((0.4..1.2).contains(&speed), "{speed}");
        let at_6_s = motion.truth_m[1200];
        let coarse = motion.resampled(0.02);
        assert_eq!(coarse.truth_m.len(), 2999);
        assert!((coarse.truth_m[300] - at_6_s).abs() < 1e-9);
    }
}
