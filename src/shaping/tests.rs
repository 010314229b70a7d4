//! Properties of the limiter, checked on the real derivatives and on the commands themselves.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

use nalgebra::{UnitQuaternion, Vector3};

use super::*;
use crate::geometry::{Pose, log_rotation, rotation_from_log};

/// A small deterministic generator for long random walks (SplitMix64).
struct Random(u64);

impl Random {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn within(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Spread evenly over the orders of magnitude.
    fn log_within(&mut self, low: f64, high: f64) -> f64 {
        self.within(low.ln(), high.ln()).exp()
    }

    fn vector(&mut self, size: f64) -> Vector3<f64> {
        Vector3::from_fn(|_, _| self.within(-size, size))
    }

    fn rotation(&mut self) -> UnitQuaternion<f64> {
        rotation_from_log(self.vector(3.0))
    }

    /// Mostly a goal of some nature, sometimes a brake; sizes from nanometres to hundreds of metres.
    fn target(&mut self, state: &State, last: &Target) -> Target {
        let scale = self.log_within(1e-9, 3.0);
        match self.next_u64() % 16 {
            0..=6 => *last,
            7..=8 => Target::Brake,
            9..=12 => Target::goal(Pose::from_parts(
                state.pose.position() + self.vector(scale),
                rotation_from_log(self.vector(scale)) * state.pose.rotation(),
            )),
            13 => Target::goal(Pose::from_parts(self.vector(500.0), self.rotation())),
            14 => Target::goal(state.pose),
            // One axis only: the other caps get what is left.
            _ => Target::goal(Pose::from_parts(
                state.pose.position() + Vector3::new(0.0, self.within(-2.0, 2.0), 0.0),
                state.pose.rotation(),
            )),
        }
    }

    fn limits(&mut self) -> Limits {
        let lin_vel_max = self.log_within(0.05, 3.0);
        let lin_acc_max = lin_vel_max * self.log_within(1.0, 30.0);
        let ang_vel_max = self.log_within(0.1, 8.0);
        let ang_acc_max = ang_vel_max * self.log_within(1.0, 30.0);
        Limits {
            lin_vel_max,
            lin_acc_max,
            lin_jerk_max: lin_acc_max * self.log_within(4.0, 200.0),
            ang_vel_max,
            ang_acc_max,
            ang_jerk_max: ang_acc_max * self.log_within(4.0, 200.0),
        }
    }
}

const LIMITS: Limits = Limits {
    lin_vel_max: 1.0,
    lin_acc_max: 10.0,
    lin_jerk_max: 600.0,
    ang_vel_max: 3.0,
    ang_acc_max: 30.0,
    ang_jerk_max: 1500.0,
};

/// Asserts that one step obeys every limit and that the pose is the integral of its own derivatives.
fn assert_step(limits: &Limits, dt: f64, old: &State, new: &State) {
    let tol = 1.0 + 1e-6;
    assert!(
        new.lin_vel.norm() <= limits.lin_vel_max * tol,
        "{old:?} {new:?}"
    );
    assert!(
        new.ang_vel.norm() <= limits.ang_vel_max * tol,
        "{old:?} {new:?}"
    );
    assert!(
        new.lin_acc.amax() <= limits.lin_acc_max * tol,
        "{old:?} {new:?}"
    );
    assert!(
        new.ang_acc.norm() <= limits.ang_acc_max * tol,
        "{old:?} {new:?}"
    );
    let tol = 1.0 + 1e-4;
    let jerk = (new.lin_acc - old.lin_acc) / dt;
    assert!(jerk.amax() <= limits.lin_jerk_max * tol, "{jerk:?}");
    let jerk = (new.ang_acc - old.ang_acc) / dt;
    assert!(jerk.norm() <= limits.ang_jerk_max * tol, "{jerk:?}");

    // Between two commands velocity stays within a band of jerk * dt^2 / 4 around the line, acceleration within jerk * dt / 2:
    // that bounds how far the way may be from the trapezoid, and the velocity change from that of the accelerations.
    let way = new.pose.position() - old.pose.position();
    let trapezoid = (old.lin_vel + new.lin_vel) * (0.5 * dt);
    let slack = limits.lin_jerk_max * dt.powi(3) / 4.0 + 3e-8;
    assert!((way - trapezoid).amax() <= slack, "{way:?} {trapezoid:?}");
    let gain = new.lin_vel - old.lin_vel - (old.lin_acc + new.lin_acc) * (0.5 * dt);
    assert!(
        gain.amax() <= limits.lin_jerk_max * dt * dt / 4.0 + 1e-7,
        "{gain:?}"
    );

    let turn = log_rotation(new.pose.rotation() * old.pose.rotation().inverse());
    let trapezoid = (old.ang_vel + new.ang_vel) * (0.5 * dt);
    let turning = limits.ang_vel_max * limits.ang_acc_max * dt.powi(3) / 6.0;
    let slack = limits.ang_jerk_max * dt.powi(3) / 4.0 + turning + 3e-8;
    assert!((turn - trapezoid).amax() <= slack, "{turn:?} {trapezoid:?}");
    let gain = new.ang_vel - old.ang_vel - (old.ang_acc + new.ang_acc) * (0.5 * dt);
    assert!(
        gain.amax() <= limits.ang_jerk_max * dt * dt / 4.0 + 1e-7,
        "{gain:?}"
    );
    assert!((new.pose.rotation().into_inner().norm() - 1.0).abs() < 1e-12);
}

fn walk(seed: u64, steps: usize, limits: Limits, dt: f64) -> usize {
    let mut random = Random(seed);
    let mut shaper = Shaper::new(limits, dt);
    let mut state = State::at_rest(Pose::from_parts(random.vector(1.0), random.rotation()));
    let mut target = Target::Brake;
    let mut fell_back = 0;
    for _ in 0..steps {
        target = random.target(&state, &target);
        let step = shaper.advance(&state, &target);
        assert_step(&limits, dt, &state, &step.state);
        fell_back += usize::from(step.fell_back);
        state = step.state;
    }
    fell_back
}

/// Guards: no jump. Limits hold on every step of 200 000 with goals and brakes in any order; falling back stays a rarity.
#[test]
fn limits_hold_over_long_random_walks() {
    let mut fell_back = 0;
    for seed in 0..10 {
        fell_back += walk(seed, 20_000, LIMITS, 0.005);
    }
    assert!(
        fell_back <= 20,
        "{fell_back} of 200000 steps braked for want of a profile"
    );
}

/// Guards: the same with random limits and periods.
#[test]
fn limits_hold_for_any_limits_and_period() {
    let mut random = Random(99);
    let mut fell_back = 0;
    for seed in 0..300 {
        let limits = random.limits();
        let dt = random.log_within(0.001, 0.03);
        fell_back += walk(seed, 500, limits, dt);
    }
    assert!(
        fell_back <= 30,
        "{fell_back} of 150000 steps braked for want of a profile"
    );
}
