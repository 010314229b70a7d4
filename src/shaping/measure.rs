//! From hand to command: what shaping costs, measured on a recorded or made-up motion of one axis.
//!
//! Not on the real-time path. It drives the same [`Tracker`] and [`Shaper`] as the cycle, along the X axis.

#![expect(
    clippy::disallowed_types,
    reason = "measures offline; its series live on the heap"
)]

use nalgebra::{UnitQuaternion, Vector3};

use crate::geometry::{ArmBase, Pose, Tcp};
use crate::time::{Span, Stamp};

use super::{Limits, Shaper, State, Target, Tracker, Tuning};

/// One sample of the hand on the measured axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HandSample {
    /// When we received it, s from the start of the motion.
    pub received_s: f64,
    /// What the device measured, m.
    pub measured_m: f64,
}

/// A motion of one axis: what the device said and where the hand was.
#[derive(Debug, Clone, Copy)]
pub struct Workload<'a> {
    /// Samples in the order of receipt.
    pub samples: &'a [HandSample],
    /// True position on a grid from 0, m.
    pub truth_m: &'a [f64],
    /// Spacing of the grid and period of the commands, s.
    pub period_s: f64,
}

/// How samples become commands. The first two are the yardsticks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Way {
    /// The limiter chases the newest sample.
    NewestSample,
    /// The limiter chases a constant-velocity Kalman estimate carried on to now.
    ConstantVelocityKalman,
    /// The tracker, and the limiter around it.
    Tracker(Tuning),
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// Shift of the truth that fits the commands best, s. Holds everything: network, sampling, filter, limits.
    pub lag_s: f64,
    /// Root mean square of command minus truth, m.
    pub error_rms_m: f64,
    /// The same after the best shift: what the shape of the motion lost, m.
    pub shape_rms_m: f64,
    /// Root mean square of the commands' jerk over that of the truth.
    pub jerk_ratio: f64,
    /// Median over the reaches of the way past their end, m.
    pub overshoot_median_m: f64,
    /// Largest of them, m.
    pub overshoot_worst_m: f64,
    /// Root mean square of command minus truth while the hand rests, m.
    pub rest_rms_m: f64,
    /// Steps in which the limiter braked for want of a usable goal or profile.
    pub fell_back: usize,
}

/// Runs `workload` through `way` within `limits`, one command per period.
#[must_use]
pub fn measure(workload: &Workload<'_>, limits: Limits, way: Way) -> Figures {
    let (commands, fell_back) = commands(workload, limits, way);
    figures(workload, &commands, fell_back)
}

/// The commands along the axis, m, and how often the limiter fell back.
#[must_use]
pub fn commands(workload: &Workload<'_>, limits: Limits, way: Way) -> (Vec<f64>, usize) {
    let start = workload.truth_m.first().copied().unwrap_or(0.0);
    let mut shaper = Shaper::new(limits, workload.period_s);
    let mut state = State::at_rest(on_axis(start));
    let mut source = Source::new(way, start);
    let mut samples = workload.samples.iter().peekable();
    let mut fell_back = 0;
    let mut out = Vec::with_capacity(workload.truth_m.len());
    for k in 0..workload.truth_m.len() {
        let now_s = k as f64 * workload.period_s;
        // A mailbox keeps the newest only: what came within one period hides what came before it.
        let mut newest = None;
        while let Some(sample) = samples.next_if(|sample| sample.received_s <= now_s) {
            newest = Some(*sample);
        }
        if let Some(sample) = newest {
            source.push(sample);
        }
        let step = shaper.advance(&state, &source.target(now_s));
        fell_back += usize::from(step.fell_back);
        state = step.state;
        out.push(state.pose.position().x);
    }
    (out, fell_back)
}

#[expect(
    clippy::large_enum_variant,
    reason = "one of them, on the stack, for a whole run"
)]
enum Source {
    Newest(f64),
    Kalman(ConstantVelocity),
    Tracker(Tracker),
}

impl Source {
    fn new(way: Way, start_m: f64) -> Self {
        match way {
            Way::NewestSample => Self::Newest(start_m),
            Way::ConstantVelocityKalman => Self::Kalman(ConstantVelocity::at_rest(start_m)),
            Way::Tracker(tuning) => Self::Tracker(Tracker::with_tuning(on_axis(start_m), tuning)),
        }
    }

    fn push(&mut self, sample: HandSample) {
        match self {
            Self::Newest(goal) => *goal = sample.measured_m,
            Self::Kalman(kalman) => kalman.push(sample),
            Self::Tracker(tracker) => {
                tracker.push(on_axis(sample.measured_m), stamp(sample.received_s));
            }
        }
    }

    fn target(&self, now_s: f64) -> Target {
        match self {
            Self::Newest(goal) => Target::goal(on_axis(*goal)),
            Self::Kalman(kalman) => Target::goal(on_axis(kalman.at(now_s))),
            Self::Tracker(tracker) => Target::Follow {
                goal: tracker.at(stamp(now_s)),
            },
        }
    }
}

fn on_axis(x_m: f64) -> Pose<ArmBase, Tcp> {
    Pose::from_parts(Vector3::new(x_m, 0.0, 0.0), UnitQuaternion::identity())
}

fn stamp(s: f64) -> Stamp {
    Stamp::from_ns(0) + Span::from_s(s)
}

/// The usual way: position and velocity, white acceleration.
struct ConstantVelocity {
    last_s: f64,
    p: f64,
    v: f64,
    pp: f64,
    pv: f64,
    vv: f64,
}

impl ConstantVelocity {
    /// Noise of a sample, m (hand tracking).
    const NOISE_M: f64 = 0.0007;
    /// Power density of the acceleration, m2/s3; lag, jerk and overshoot hardly depend on it from 0.1 to 5.
    const ACCELERATION: f64 = 1.0;

    fn at_rest(p: f64) -> Self {
        Self {
            last_s: 0.0,
            p,
            v: 0.0,
            pp: 1e-6,
            pv: 0.0,
            vv: 1.0,
        }
    }

    fn push(&mut self, sample: HandSample) {
        let dt = (sample.received_s - self.last_s).max(0.0);
        let q = Self::ACCELERATION * dt;
        self.last_s = sample.received_s;
        self.p += self.v * dt;
        let pp = self.pp + dt * (2.0 * self.pv + dt * self.vv) + q * dt * dt / 3.0;
        let pv = self.pv + dt * self.vv + q * dt / 2.0;
        let vv = self.vv + q;
        let scale = 1.0 / (pp + Self::NOISE_M * Self::NOISE_M);
        let surprise = sample.measured_m - self.p;
        self.p += pp * scale * surprise;
        self.v += pv * scale * surprise;
        (self.pp, self.pv, self.vv) = (
            pp - pp * pp * scale,
            pv - pp * pv * scale,
            vv - pv * pv * scale,
        );
    }

    fn at(&self, now_s: f64) -> f64 {
        self.p + self.v * (now_s - self.last_s)
    }
}

/// Largest lag that is looked for, s.
const LAG_S_MAX: f64 = 0.4;
/// The first commands are left out of lag and error, s: the motion begins at once, no filter can know it.
const SKIP_S: f64 = 0.4;
/// A rest counts as such from this long after the end of a reach, s.
const SETTLED_S: f64 = 0.25;
/// Overshoot is looked for until the next reach starts, but not after this long, s.
const OVERSHOOT_S: f64 = 0.4;
/// Reaches that are followed by the next one sooner than this have no end to shoot past, s.
const PAUSE_S_MIN: f64 = 0.1;

/// Compares commands (m, one per truth sample) with the truth.
#[must_use]
pub fn figures(workload: &Workload<'_>, commands: &[f64], fell_back: usize) -> Figures {
    let skipped = count(SKIP_S, workload.period_s);
    let error = |lag_s: f64| {
        let squares = commands
            .iter()
            .enumerate()
            .skip(skipped)
            .map(|(k, command)| {
                (command - truth_at(workload, k as f64 * workload.period_s - lag_s)).powi(2)
            });
        mean(squares).sqrt()
    };
    let best = |candidates: &mut dyn Iterator<Item = f64>| {
        candidates
            .map(|lag_s| (error(lag_s), lag_s))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap_or((0.0, 0.0))
    };
    let (_, coarse_s) = best(&mut (0..=40).map(|k| f64::from(k) * LAG_S_MAX / 40.0));
    let (shape_rms_m, lag_s) =
        best(&mut (-20..=20).map(|k| (coarse_s + f64::from(k) * 0.0005).max(0.0)));

    let reaches = reaches(workload);
    let mut overshoots: Vec<f64> = reaches
        .iter()
        .filter_map(|reach| reach.overshoot(workload, commands))
        .collect();
    overshoots.sort_by(f64::total_cmp);
    let settled = count(SETTLED_S, workload.period_s);
    let rests = reaches.iter().flat_map(|reach| {
        (reach.end + settled..reach.next)
            .filter_map(|k| Some((commands.get(k)? - workload.truth_m.get(k)?).powi(2)))
    });
    Figures {
        lag_s,
        error_rms_m: error(0.0),
        shape_rms_m,
        jerk_ratio: rms_jerk(commands, workload.period_s, 1)
            / rms_jerk(workload.truth_m, workload.period_s, 2),
        overshoot_median_m: overshoots.get(overshoots.len() / 2).copied().unwrap_or(0.0),
        overshoot_worst_m: overshoots.last().copied().unwrap_or(0.0),
        rest_rms_m: mean(rests).sqrt(),
        fell_back,
    }
}

fn count(span_s: f64, period_s: f64) -> usize {
    (span_s / period_s).round() as usize
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0.0), |(sum, n), x| (sum + x, n + 1.0));
    if n > 0.0 { sum / n } else { 0.0 }
}

fn truth_at(workload: &Workload<'_>, t_s: f64) -> f64 {
    let x = (t_s / workload.period_s).max(0.0);
    let k = x as usize;
    let last = workload.truth_m.last().copied().unwrap_or(0.0);
    let a = workload.truth_m.get(k).copied().unwrap_or(last);
    let b = workload.truth_m.get(k + 1).copied().unwrap_or(last);
    a + (b - a) * (x - k as f64)
}

/// Root mean square of the third difference over `stride` periods. The truth is rounded to a micrometre in the golden file, which would
/// add a third to its jerk at 5 ms: it is taken over two periods, which makes the ratio the stricter one.
fn rms_jerk(x: &[f64], period_s: f64, stride: usize) -> f64 {
    let dt = period_s * stride as f64;
    let at = |k: usize| x.get(k).copied().unwrap_or(0.0);
    let jerk = |k: usize| {
        (at(k) - 3.0 * at(k - stride) + 3.0 * at(k - 2 * stride) - at(k - 3 * stride)) / dt.powi(3)
    };
    mean((3 * stride..x.len()).map(|k| jerk(k).powi(2))).sqrt()
}

/// One reach of the truth: moves from `start` to `end`, rests until `next` (indices).
#[derive(Debug, Clone, Copy)]
struct Reach {
    start: usize,
    end: usize,
    next: usize,
}

impl Reach {
    fn overshoot(&self, workload: &Workload<'_>, commands: &[f64]) -> Option<f64> {
        if self.next - self.end < count(PAUSE_S_MIN, workload.period_s) {
            return None;
        }
        let from = workload.truth_m.get(self.start)?;
        let to = workload.truth_m.get(self.end)?;
        let until = self
            .next
            .min(self.end + count(OVERSHOOT_S, workload.period_s));
        let past = commands
            .get(self.end..until)?
            .iter()
            .map(|command| (command - to) * (to - from).signum());
        past.max_by(f64::total_cmp)
    }
}

fn reaches(workload: &Workload<'_>) -> Vec<Reach> {
    /// Slower than this is rest, m/s.
    const REST_SPEED: f64 = 3e-4;
    let step_m = REST_SPEED * workload.period_s;
    let moving: Vec<bool> = workload
        .truth_m
        .iter()
        .zip(workload.truth_m.iter().skip(1))
        .map(|(a, b)| (b - a).abs() > step_m)
        .collect();
    let mut reaches = Vec::new();
    let mut k = 0;
    let run = |k: &mut usize, state: bool| {
        while moving.get(*k) == Some(&state) {
            *k += 1;
        }
        *k
    };
    loop {
        let start = run(&mut k, false);
        let end = run(&mut k, true);
        let next = run(&mut k, false);
        if end == start || end >= moving.len() {
            return reaches;
        }
        reaches.push(Reach { start, end, next });
        k = next;
    }
}
