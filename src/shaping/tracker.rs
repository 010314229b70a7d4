//! From samples at 50-120 Hz with noise and jitter to a goal that moves smoothly at the cycle rate.
//!
//! ```text
//! sample ──> estimator ──> state a little in the past ──> moving goal ──> linear law (follow.rs) ──> command
//!            Kalman, white jerk      DELAY                velocity told      three equal poles
//!            p, v, a                 soft HORIZON         a share too low
//! ```
//!
//! Four numbers shape the answer, found by search on made-up motions of the golden file's kind and confirmed on it and on other seeds:
//!
//! - `agility`: how much jerk the estimator believes in, per noise. More follows faster and passes more noise.
//! - `delay_s`: the goal is where the hand was this long ago. That turns most of the prediction into smoothing.
//! - `velocity_share`: the goal's velocity is told a little too low. The linear law then trails in proportion to speed, and that reserve
//!   is what keeps the command from shooting past the end of a reach.
//! - `horizon_s`: when samples are late the estimate is carried on, but never further than this; the goal eases to a halt.
//!
//! The estimator's gains depend on agility and sample times alone, not on the unit or the size of the noise: one recursion serves
//! metres, radians and openings, and six components cost hardly more than one.

use nalgebra::{UnitQuaternion, Vector3};

use crate::geometry::{ArmBase, Pose, Tcp, log_rotation, rotation_from_log};
use crate::time::Stamp;

use super::brake::Moved;
use super::pose::State;
use super::scalar::{JointState, ScalarState};

/// The tracker's numbers; see the module's text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tuning {
    /// White jerk's power density over the sample's noise variance, 1/s5.
    pub agility: f64,
    /// Age of the state that the goal shows, s.
    pub delay_s: f64,
    /// Share of the estimated velocity that the goal is said to have.
    pub velocity_share: f64,
    /// Furthest extrapolation, s.
    pub horizon_s: f64,
}

impl Tuning {
    /// Found by measurement.
    pub const DEFAULT: Self = Self {
        agility: 1.2e8,
        delay_s: 0.013,
        velocity_share: 0.84,
        horizon_s: 0.03,
    };
}

impl Default for Tuning {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Samples further apart than this do not belong to one motion, s.
const GAP_S_MAX: f64 = 0.25;
/// A sample further from the prediction than this is a new start, m.
const LINEAR_STEP_MAX: f64 = 0.06;
/// The same for rotations, rad.
const ANGULAR_STEP_MAX: f64 = 0.6;
/// A surprise larger than this share of the largest step moves the estimate, but adds no more velocity than one of this share.
const SURPRISE_SHARE: f64 = 1.0 / 3.0;

/// What became of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It refined the estimate.
    Tracked,
    /// It was too far from the last one, in place or time: the goal starts anew there, at rest.
    Restarted,
    /// A number was not finite; nothing changed.
    Refused,
}

/// Covariance of (position, velocity, acceleration) in units of the sample's noise, upper triangle.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Uncertainty {
    pp: f64,
    pv: f64,
    pa: f64,
    vv: f64,
    va: f64,
    aa: f64,
}

impl Uncertainty {
    /// One sample's noise in position; velocity and acceleration of a hand near rest (0.1 m/s, 1 m/s2 at 0.7 mm noise).
    const START: Self = Self {
        pp: 1.0,
        pv: 0.0,
        pa: 0.0,
        vv: 2e4,
        va: 0.0,
        aa: 2e6,
    };

    /// After `dt` seconds of white jerk.
    fn grown(self, dt: f64, agility: f64) -> Self {
        let Self {
            pp,
            pv,
            pa,
            vv,
            va,
            aa,
        } = self;
        let half = 0.5 * dt;
        // F P F', with F the constant-acceleration step.
        let (vv1, va1) = (vv + dt * (2.0 * va + dt * aa), va + dt * aa);
        let pa1 = pa + dt * (va + half * aa);
        let pv1 = pv + dt * (vv + half * va) + dt * (pa + dt * (va + half * aa));
        let pp1 = pp + 2.0 * dt * (pv + half * pa) + dt * dt * (vv + dt * va + half * half * aa);
        let noise = agility * dt;
        let dt2 = dt * dt;
        Self {
            pp: pp1 + noise * dt2 * dt2 / 20.0,
            pv: pv1 + noise * dt2 * dt / 8.0,
            pa: pa1 + noise * dt2 / 6.0,
            vv: vv1 + noise * dt2 / 3.0,
            va: va1 + noise * half,
            aa: aa + noise,
        }
    }

    /// Takes in one sample: the gains for position, velocity and acceleration, and what is still uncertain.
    fn with_sample(self) -> ([f64; 3], Self) {
        let Self {
            pp,
            pv,
            pa,
            vv,
            va,
            aa,
        } = self;
        let scale = 1.0 / (pp + 1.0);
        let gains @ [on_p, on_v, on_a] = [pp * scale, pv * scale, pa * scale];
        let rest = Self {
            pp: pp - on_p * pp,
            pv: pv - on_p * pv,
            pa: pa - on_p * pa,
            vv: (vv - on_v * pv).max(0.0),
            va: va - on_v * pa,
            aa: (aa - on_a * pa).max(0.0),
        };
        (gains, rest)
    }
}

/// When the last sample came, and how far the estimate can be trusted since.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Clock {
    tuning: Tuning,
    last: Option<Stamp>,
    uncertainty: Uncertainty,
}

impl Clock {
    const fn new(tuning: Tuning) -> Self {
        Self {
            tuning,
            last: None,
            uncertainty: Uncertainty::START,
        }
    }

    /// Seconds since the last sample (0 for the first and for one out of order); `None` when they do not belong together.
    fn since_last_s(&self, received: Stamp) -> Option<f64> {
        let dt_s = self.last.map_or(0.0, |last| received.age_of(last).as_s());
        (dt_s <= GAP_S_MAX).then_some(dt_s)
    }

    fn restart(&mut self, received: Option<Stamp>) {
        self.last = received;
        self.uncertainty = Uncertainty::START;
    }

    fn gains(&mut self, received: Stamp, dt_s: f64) -> [f64; 3] {
        // Never less than half a millisecond, so that a burst of equal stamps does not freeze the gains.
        let grown = self.uncertainty.grown(dt_s.max(5e-4), self.tuning.agility);
        let (gains, rest) = grown.with_sample();
        self.uncertainty = rest;
        self.last = Some(self.last.map_or(received, |last| last.max(received)));
        gains
    }

    /// How far to carry the estimate for the goal at `now`, s (negative: back), and how fast that time itself still runs (0..=1).
    fn carry(&self, now: Stamp) -> (f64, f64) {
        let Some(last) = self.last else {
            return (0.0, 0.0);
        };
        let ahead_s = (now - last).as_s() - self.tuning.delay_s;
        if ahead_s <= 0.0 {
            return (ahead_s.max(-self.tuning.delay_s), 1.0);
        }
        let pace = (-ahead_s / self.tuning.horizon_s).exp();
        (self.tuning.horizon_s * (1.0 - pace), pace)
    }
}

/// Carries one component on by `dt` seconds.
fn carried(x: Moved, dt: f64) -> Moved {
    x.after(dt, 0.0)
}

/// Corrects one component by its surprise; velocity and acceleration by the tempered one.
fn corrected(x: Moved, [on_p, on_v, on_a]: [f64; 3], surprise: f64, tempered: f64) -> Moved {
    Moved {
        d: x.d + on_p * surprise,
        v: x.v + on_v * tempered,
        a: x.a + on_a * tempered,
    }
}

/// The component as part of a moving goal: carried, its velocity told by share, its time running at `pace`.
fn shown(x: Moved, (dt, pace): (f64, f64), velocity_share: f64) -> Moved {
    let now = carried(x, dt);
    Moved {
        d: now.d,
        v: now.v * velocity_share * pace,
        a: now.a * pace * pace,
    }
}

/// Three components.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Trio([Moved; 3]);

impl Trio {
    fn at_rest(p: Vector3<f64>) -> Self {
        let [x, y, z] = p.into();
        Self([x, y, z].map(|d| Moved { d, v: 0.0, a: 0.0 }))
    }

    fn carried(self, dt: f64) -> Self {
        Self(self.0.map(|x| carried(x, dt)))
    }

    fn corrected(mut self, gains: [f64; 3], surprise: Vector3<f64>, step_max: f64) -> Self {
        let size = surprise.norm();
        let temper = if size > step_max * SURPRISE_SHARE {
            step_max * SURPRISE_SHARE / size
        } else {
            1.0
        };
        for (x, s) in self.0.iter_mut().zip(&surprise) {
            *x = corrected(*x, gains, *s, *s * temper);
        }
        self
    }

    fn p(&self) -> Vector3<f64> {
        self.0.map(|x| x.d).into()
    }

    fn v(&self) -> Vector3<f64> {
        self.0.map(|x| x.v).into()
    }

    fn a(&self) -> Vector3<f64> {
        self.0.map(|x| x.a).into()
    }

    /// Position back to zero: it has been folded into a rotation.
    fn folded(self) -> Self {
        Self(self.0.map(|x| Moved { d: 0.0, ..x }))
    }
}

/// Tracker of a tool goal. `Copy`, heap-free, bounded work; safe for any input.
///
/// Rotations are tracked through the rotation vector from the prediction to the sample: `q` and `-q` are the same sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tracker {
    clock: Clock,
    linear: Trio,
    rotation: UnitQuaternion<f64>,
    /// Rate and acceleration of `rotation` in arm base axes; its positions are always zero between calls.
    angular: Trio,
}

impl Tracker {
    /// A goal at rest at `pose`, with the default tuning.
    #[must_use]
    pub fn new(pose: Pose<ArmBase, Tcp>) -> Self {
        Self::with_tuning(pose, Tuning::DEFAULT)
    }

    /// A goal at rest at `pose`.
    #[must_use]
    pub fn with_tuning(pose: Pose<ArmBase, Tcp>, tuning: Tuning) -> Self {
        Self {
            clock: Clock::new(tuning),
            linear: Trio::at_rest(pose.position()),
            rotation: pose.rotation(),
            angular: Trio::at_rest(Vector3::zeros()),
        }
    }

    /// Forgets everything: the goal rests at `pose` until samples move it. For engaging, with the anchor's goal.
    pub fn reset(&mut self, pose: Pose<ArmBase, Tcp>) {
        *self = Self::with_tuning(pose, self.clock.tuning);
    }

    /// Takes in the goal of a sample received at `received`.
    pub fn push(&mut self, goal: Pose<ArmBase, Tcp>, received: Stamp) -> Taken {
        if !goal.is_finite() {
            return Taken::Refused;
        }
        let Some(dt_s) = self.clock.since_last_s(received) else {
            return self.restart(goal, received);
        };
        let linear = self.linear.carried(dt_s);
        let turned = self.angular.carried(dt_s);
        let rotation = rotation_from_log(turned.p()) * self.rotation;
        let linear_surprise = goal.position() - linear.p();
        let angular_surprise = log_rotation(goal.rotation() * rotation.inverse());
        let expected = linear_surprise.norm() <= LINEAR_STEP_MAX
            && angular_surprise.norm() <= ANGULAR_STEP_MAX;
        if !expected {
            return self.restart(goal, received);
        }
        let gains = self.clock.gains(received, dt_s);
        self.linear = linear.corrected(gains, linear_surprise, LINEAR_STEP_MAX);
        let turned = turned
            .folded()
            .corrected(gains, angular_surprise, ANGULAR_STEP_MAX);
        self.rotation =
            UnitQuaternion::new_normalize((rotation_from_log(turned.p()) * rotation).into_inner());
        self.angular = turned.folded();
        Taken::Tracked
    }

    fn restart(&mut self, goal: Pose<ArmBase, Tcp>, received: Stamp) -> Taken {
        self.reset(goal);
        self.clock.restart(Some(received));
        Taken::Restarted
    }

    /// The moving goal for the command at `now`, for `Target::Follow`.
    #[must_use]
    pub fn at(&self, now: Stamp) -> State {
        let carry = self.clock.carry(now);
        let share = self.clock.tuning.velocity_share;
        let linear = Trio(self.linear.0.map(|x| shown(x, carry, share)));
        let angular = Trio(self.angular.0.map(|x| shown(x, carry, share)));
        let rotation = if angular.p() == Vector3::zeros() {
            self.rotation
        } else {
            rotation_from_log(angular.p()) * self.rotation
        };
        State {
            pose: Pose::from_parts(linear.p(), rotation),
            lin_vel: linear.v(),
            lin_acc: linear.a(),
            ang_vel: angular.v(),
            ang_acc: angular.a(),
        }
    }
}

/// Tracker of `N` scalar goals that arrive together: a leader rig's joints, or one gripper opening.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JointTracker<const N: usize> {
    clock: Clock,
    step_max: f64,
    joints: [Moved; N],
}

impl<const N: usize> JointTracker<N> {
    /// A goal at rest at `q` (own units, base first). A sample with any component further than `step_max` from its prediction is a new
    /// start (0.6 rad is a good value for joints, 0.5 for an opening).
    #[must_use]
    pub fn new(q: [f64; N], step_max: f64) -> Self {
        Self {
            clock: Clock::new(Tuning::DEFAULT),
            step_max,
            joints: q.map(|d| Moved { d, v: 0.0, a: 0.0 }),
        }
    }

    /// Forgets everything: the goal rests at `q` until samples move it.
    pub fn reset(&mut self, q: [f64; N]) {
        *self = Self::new(q, self.step_max);
    }

    /// Takes in the goal of a sample received at `received`.
    pub fn push(&mut self, q: [f64; N], received: Stamp) -> Taken {
        if !q.iter().all(|q| q.is_finite()) {
            return Taken::Refused;
        }
        let Some(dt_s) = self.clock.since_last_s(received) else {
            return self.restart(q, received);
        };
        let mut joints = self.joints.map(|x| carried(x, dt_s));
        let expected = joints
            .iter()
            .zip(&q)
            .all(|(x, q)| (q - x.d).abs() <= self.step_max);
        if !expected {
            return self.restart(q, received);
        }
        let gains = self.clock.gains(received, dt_s);
        let tempered_max = self.step_max * SURPRISE_SHARE;
        for (x, q) in joints.iter_mut().zip(q) {
            let surprise = q - x.d;
            *x = corrected(
                *x,
                gains,
                surprise,
                surprise.clamp(-tempered_max, tempered_max),
            );
        }
        self.joints = joints;
        Taken::Tracked
    }

    fn restart(&mut self, q: [f64; N], received: Stamp) -> Taken {
        self.reset(q);
        self.clock.restart(Some(received));
        Taken::Restarted
    }

    /// The moving goal for the command at `now`, for `JointTarget::Follow`.
    #[must_use]
    pub fn at(&self, now: Stamp) -> JointState<N> {
        let carry = self.clock.carry(now);
        let joints = self.joints.map(|x| {
            let x = shown(x, carry, self.clock.tuning.velocity_share);
            ScalarState {
                p: x.d,
                v: x.v,
                a: x.a,
            }
        });
        JointState { joints }
    }
}
