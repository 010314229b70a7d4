//! Everything that was on a bus, and what must hold of it.

use std::collections::{BTreeMap, BTreeSet};

use telearm::arm::can::local_bus::OnBus;
use telearm::arm::piper::wire::{Command, EndPose, Feedback, PosePart, id};
use telearm::geometry::{ArmBase, Pose, Tcp, angle_between};
use telearm::time::{Span, Stamp};

/// The plans of the rig have the default limits.
const PERIOD_S: f64 = 0.005;
const LIN_VEL_MAX: f64 = 0.25;
const LIN_ACC_MAX: f64 = 10.0;
const ANG_VEL_MAX: f64 = 90.0 * DEG;
const ANG_ACC_MAX: f64 = 2000.0 * DEG;
const DEG: f64 = std::f64::consts::PI / 180.0;
/// A rounding of 0.5 um per axis at each end of a step, twice for a difference of steps, and a little for the arithmetic.
const LIN_ROUNDING: f64 = 4e-6;
/// 0.0005 deg per Euler angle; near the gimbal lock two of them add up.
const ANG_ROUNDING: f64 = 2e-4;
/// Commands further apart than this belong to two streams: the second begins where the arm is measured.
const STREAM_BREAK: Span = Span::from_ms(12);
/// A stream begins within this of a measured pose: rest tolerance of the lane, and one report.
const SEAT_M: f64 = 0.003;
const SEAT_RAD: f64 = 0.03;
/// The same for the pose that was measured: reports this recent count.
const SEAT_WITHIN: Span = Span::from_ms(300);

/// A pose target that went out whole.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    pub at: Stamp,
    pub from: u32,
    pub raw: EndPose,
    pub pose: Pose<ArmBase, Tcp>,
}

/// A bus, recorded.
#[derive(Default)]
pub struct Tap {
    frames: Vec<OnBus>,
    arms: BTreeSet<u32>,
}

impl Tap {
    pub fn extend(&mut self, frames: Vec<OnBus>) {
        // Whoever reports a status is the arm; all others are hosts.
        self.arms.extend(
            frames
                .iter()
                .filter(|f| f.frame.id == id::STATUS)
                .map(|f| f.from),
        );
        self.frames.extend(frames);
    }

    fn is_host(&self, frame: &OnBus) -> bool {
        frame.from != 0 && !self.arms.contains(&frame.from)
    }

    /// What hosts sent, in order.
    pub fn host_frames(&self) -> impl Iterator<Item = &OnBus> {
        self.frames.iter().filter(|f| self.is_host(f))
    }

    /// How many frames with this identifier hosts sent.
    pub fn count(&self, id: u32) -> usize {
        self.host_frames().filter(|f| f.frame.id == id).count()
    }

    /// The last host frame.
    pub fn last_host_frame(&self) -> Option<&OnBus> {
        self.host_frames().last()
    }

    /// Orders to cut motor power.
    pub fn power_off_orders(&self) -> usize {
        self.host_frames()
            .filter(|f| f.frame.id == id::POWER && f.frame.payload().get(1) == Some(&1))
            .count()
    }

    /// Whole targets, in order.
    pub fn targets(&self) -> Vec<Target> {
        let mut open: BTreeMap<u32, EndPose> = BTreeMap::new();
        let mut targets = Vec::new();
        for f in self.host_frames() {
            let Some(part) = pose_part(f) else { continue };
            let pose = open.entry(f.from).or_default();
            pose.set(part);
            if f.frame.id == id::POSE + 2 {
                targets.push(Target {
                    at: f.at,
                    from: f.from,
                    raw: *pose,
                    pose: pose.to_pose(),
                });
            }
        }
        targets
    }

    /// Targets between two instants.
    pub fn targets_between(&self, from: Stamp, to: Stamp) -> Vec<Target> {
        self.targets()
            .into_iter()
            .filter(|t| t.at >= from && t.at <= to)
            .collect()
    }

    /// Length of the commanded way between two instants, metres.
    pub fn travel_m(&self, from: Stamp, to: Stamp) -> f64 {
        self.targets_between(from, to)
            .windows(2)
            .map(|w| (w[1].pose.position() - w[0].pose.position()).norm())
            .sum()
    }

    /// Gripper strokes ordered between two instants.
    pub fn strokes_between(&self, from: Stamp, to: Stamp) -> Vec<i32> {
        self.host_frames()
            .filter(|f| f.at >= from && f.at <= to)
            .filter_map(|f| match Command::decode(f.frame.id, f.frame.payload()) {
                Ok(Command::Gripper(order)) => Some(order.stroke().0),
                _ => None,
            })
            .collect()
    }

    /// Measured poses, in order.
    fn measured(&self) -> Vec<(Stamp, Pose<ArmBase, Tcp>)> {
        let mut pose = EndPose::default();
        let mut out = Vec::new();
        for f in self.frames.iter().filter(|f| !self.is_host(f)) {
            if let Ok(Feedback::Pose(part)) = Feedback::decode(f.frame.id, f.frame.payload()) {
                pose.set(part);
                if f.frame.id == id::POSE_STATE + 2 {
                    out.push((f.at, pose.to_pose()));
                }
            }
        }
        out
    }

    /// No jump: every target is within one period's speed and acceleration of the one before; where the stream was interrupted, it begins
    /// again where the arm was measured.
    pub fn assert_continuous(&self) {
        let (targets, measured) = (self.targets(), self.measured());
        let mut last_step: Option<(f64, f64)> = None;
        let mut last_vector: Option<nalgebra::Vector3<f64>> = None;
        for pair in targets.windows(2) {
            let [before, next] = [&pair[0], &pair[1]];
            let vector = next.pose.position() - before.pose.position();
            let turn = angle_between(before.pose.rotation(), next.pose.rotation());
            let within = vector.norm() <= LIN_VEL_MAX * PERIOD_S + LIN_ROUNDING
                && turn <= ANG_VEL_MAX * PERIOD_S + ANG_ROUNDING;
            if !within {
                let gap = next.at.age_of(before.at);
                assert!(
                    gap > STREAM_BREAK && is_seated(next, &measured),
                    "a jump of {:.3} mm and {:.3} deg, {gap:?} after the command before, at {:?}",
                    vector.norm() * 1e3,
                    turn / DEG,
                    next.at,
                );
                last_step = None;
                last_vector = None;
                continue;
            }
            if next.at.age_of(before.at) > STREAM_BREAK {
                // A command without followers: the arm came to rest on it by itself.
                last_step = None;
                last_vector = None;
                continue;
            }
            if let (Some((_, turned)), Some(before)) = (last_step, last_vector) {
                let change = (vector - before).norm();
                assert!(
                    change <= LIN_ACC_MAX * PERIOD_S * PERIOD_S * 1.02 + 2.0 * LIN_ROUNDING,
                    "an acceleration of {:.2} m/s2 at {:?}",
                    change / PERIOD_S / PERIOD_S,
                    next.at
                );
                assert!(
                    (turn - turned).abs()
                        <= ANG_ACC_MAX * PERIOD_S * PERIOD_S * 1.02 + 2.0 * ANG_ROUNDING,
                    "a turning acceleration of {:.0} deg/s2 at {:?}",
                    (turn - turned).abs() / PERIOD_S / PERIOD_S / DEG,
                    next.at
                );
            }
            last_step = Some((vector.norm(), turn));
            last_vector = Some(vector);
        }
    }

    /// The three frames of a target are together and in order, from each sender.
    pub fn assert_whole(&self) {
        let mut expected: BTreeMap<u32, u32> = BTreeMap::new();
        for f in self.host_frames() {
            let next = expected.entry(f.from).or_insert(0);
            let part = f.frame.id.wrapping_sub(id::POSE);
            assert!(
                if part < 3 { part == *next } else { *next == 0 },
                "a torn target: 0x{:X} from member {} at {:?}",
                f.frame.id,
                f.from,
                f.at
            );
            if part < 3 {
                *next = (part + 1) % 3;
            }
        }
    }

    /// Between two instants all targets are the same, to the last digit.
    pub fn assert_frozen(&self, from: Stamp, to: Stamp) {
        let targets = self.targets_between(from, to);
        if let Some(first) = targets.first() {
            let odd = targets.iter().find(|t| t.raw != first.raw);
            assert!(
                odd.is_none(),
                "the target moved between {from:?} and {to:?}: {first:?}, then {odd:?}"
            );
        }
    }
}

fn pose_part(f: &OnBus) -> Option<PosePart> {
    match Command::decode(f.frame.id, f.frame.payload()) {
        Ok(Command::Pose(part)) => Some(part),
        _ => None,
    }
}

fn is_seated(target: &Target, measured: &[(Stamp, Pose<ArmBase, Tcp>)]) -> bool {
    measured
        .iter()
        .filter(|(at, _)| *at <= target.at && target.at.age_of(*at) <= SEAT_WITHIN)
        .any(|(_, pose)| {
            (pose.position() - target.pose.position()).norm() <= SEAT_M
                && angle_between(pose.rotation(), target.pose.rotation()) <= SEAT_RAD
        })
}
