//! `Tap`: reads along on the bus and judges what the program sends. Pure: frames in, complaints out.
//!
//! * no jump: each commanded pose is within one period's speed and acceleration of the one before, plus the wire's rounding; where the
//!   stream was interrupted it goes on where it was, or where the arm was measured;
//! * whole: the three frames of a pose are together and in order, from each sender;
//! * no order that cuts motor power and no reset of the arm, ever; the arm's own stop only where a fault is meant to end in it;
//! * still: between two instants no target differs from the first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use nalgebra::Vector3;

use crate::arm::can::local_bus::OnBus;
use crate::arm::piper::wire::{Command, EndPose, Feedback, PosePart, StopOrder, id};
use crate::geometry::{ArmBase, Pose, Tcp, angle_between};
use crate::shaping::Limits;
use crate::time::{Span, Stamp};

/// A rounding of 0.5 um per axis at each end of a step.
const LIN_ROUNDING: f64 = 4e-6;
/// 0.0005 deg per Euler angle; near the gimbal lock two of them add up.
const ANG_ROUNDING: f64 = 2e-4;
/// A margin for the arithmetic of accelerations.
const ACC_MARGIN: f64 = 1.02;
/// Periods without a command that make the next one the beginning of a stream.
const BREAK_PERIODS: f64 = 2.4;
/// A stream begins within this of a pose that the arm reported lately: tolerance of rest, and one report.
const SEAT_M: f64 = 0.003;
const SEAT_RAD: f64 = 0.03;
const SEAT_WITHIN: Span = Span::from_ms(300);
/// Targets kept for questions, a minute at 200 Hz; what is older was judged when it came.
const TARGETS_MAX: usize = 12_000;
/// Complaints kept.
const COMPLAINTS_MAX: usize = 8;

/// What the commanded poses must keep to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Time between two commands, s.
    pub period_s: f64,
    /// Speed of the tool, m/s.
    pub lin_vel_max: f64,
    /// Acceleration of each axis of the arm base, m/s2.
    pub lin_acc_max: f64,
    /// Turning speed, rad/s.
    pub ang_vel_max: f64,
    /// Turning acceleration, rad/s2.
    pub ang_acc_max: f64,
}

impl Bounds {
    /// The limits of a lane with its command period.
    #[must_use]
    pub const fn new(limits: &Limits, period_s: f64) -> Self {
        Self {
            period_s,
            lin_vel_max: limits.lin_vel_max,
            lin_acc_max: limits.lin_acc_max,
            ang_vel_max: limits.ang_vel_max,
            ang_acc_max: limits.ang_acc_max,
        }
    }
}

/// What a fault is allowed to cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Allowed {
    /// The arm's own stop (0x150 01).
    pub arm_stop: bool,
    /// A pose that the bus cut off in the middle; its rest never comes, and the next one begins anew.
    pub cut_off: bool,
}

/// A pose target that went out whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target {
    /// When its last frame was on the bus.
    pub at: Stamp,
    /// As on the wire.
    pub raw: EndPose,
    /// As a pose.
    pub pose: Pose<ArmBase, Tcp>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Group {
    pose: EndPose,
    /// Parts that have come, 0..=2.
    parts: u32,
}

/// Whether only arms send this. Answers are left out: the firmware's shares its identifier with the query.
fn is_feedback(id: u32) -> bool {
    matches!(id, 0x251..=0x256 | 0x261..=0x266 | 0x2A1..=0x2AC)
}

/// Reads along.
#[derive(Debug)]
pub struct Tap {
    bounds: Bounds,
    allowed: Allowed,
    arms: BTreeSet<u32>,
    groups: BTreeMap<u32, Group>,
    targets: VecDeque<Target>,
    /// The last step, if the stream was not interrupted there: way and angle.
    step: Option<(Vector3<f64>, f64)>,
    measuring: EndPose,
    measured: VecDeque<(Stamp, Pose<ArmBase, Tcp>)>,
    /// Frames of hosts by identifier.
    host_frames: BTreeMap<u32, u64>,
    last_host_frame: Option<Stamp>,
    complaints: Vec<String>,
    complained: u64,
    whole: u64,
}

impl Tap {
    /// A tap on a bus where `arm` is the member that is the arm; others are known by their feedback.
    #[must_use]
    pub fn new(bounds: Bounds, allowed: Allowed, arm: u32) -> Self {
        Self {
            bounds,
            allowed,
            arms: BTreeSet::from([arm]),
            groups: BTreeMap::new(),
            targets: VecDeque::new(),
            step: None,
            measuring: EndPose::default(),
            measured: VecDeque::new(),
            host_frames: BTreeMap::new(),
            last_host_frame: None,
            complaints: Vec::new(),
            complained: 0,
            whole: 0,
        }
    }

    /// Takes the next frame.
    pub fn take(&mut self, frame: &OnBus) {
        if is_feedback(frame.frame.id) {
            self.arms.insert(frame.from);
        }
        // Member 0 is the hub itself: a node that the fault plays.
        if self.arms.contains(&frame.from) {
            self.take_feedback(frame);
        } else if frame.from != 0 {
            self.take_order(frame);
        }
    }

    fn take_feedback(&mut self, f: &OnBus) {
        let Ok(Feedback::Pose(part)) = Feedback::decode(f.frame.id, f.frame.payload()) else {
            return;
        };
        self.measuring.set(part);
        if f.frame.id == id::POSE_STATE + 2 {
            self.measured.push_back((f.at, self.measuring.to_pose()));
            while self
                .measured
                .front()
                .is_some_and(|(at, _)| f.at.age_of(*at) > SEAT_WITHIN)
            {
                self.measured.pop_front();
            }
        }
    }

    fn take_order(&mut self, f: &OnBus) {
        *self.host_frames.entry(f.frame.id).or_insert(0) += 1;
        self.last_host_frame = Some(f.at);
        match Command::decode(f.frame.id, f.frame.payload()) {
            Ok(Command::Pose(part)) => self.take_part(f, part),
            Ok(Command::Power { on: false, .. }) => self.complain(f.at, "motor power was cut"),
            Ok(Command::Motion(order)) => match order.stop {
                StopOrder::ResetDropsArm => self.complain(f.at, "the arm was reset, it drops"),
                StopOrder::DampedStop if !self.allowed.arm_stop => {
                    self.complain(f.at, "the arm's own stop was sent");
                }
                _ => {}
            },
            Ok(_) => {}
            Err(why) => {
                let id = f.frame.id;
                self.complain(f.at, &format!("a frame 0x{id:X} that is none: {why}"));
            }
        }
    }

    fn take_part(&mut self, f: &OnBus, part: PosePart) {
        let group = self.groups.entry(f.from).or_default();
        let number = f.frame.id - id::POSE;
        let expected = group.parts;
        let in_order = number == expected || (number == 0 && self.allowed.cut_off);
        group.pose.set(part);
        group.parts = (number + 1) % 3;
        let pose = group.pose;
        if !in_order {
            let (got, from) = (f.frame.id, f.from);
            self.complain(
                f.at,
                &format!(
                    "a torn pose: 0x{got:X} from member {from}, expected 0x{:X}",
                    id::POSE + expected
                ),
            );
        }
        if number == 2 {
            self.whole += 1;
            self.take_target(Target {
                at: f.at,
                raw: pose,
                pose: pose.to_pose(),
            });
        }
    }

    fn take_target(&mut self, next: Target) {
        if let Some(before) = self.targets.back().copied() {
            self.judge_step(&before, &next);
        }
        if self.targets.len() == TARGETS_MAX {
            self.targets.pop_front();
        }
        self.targets.push_back(next);
    }

    fn judge_step(&mut self, before: &Target, next: &Target) {
        let b = self.bounds;
        let way = next.pose.position() - before.pose.position();
        let turn = angle_between(before.pose.rotation(), next.pose.rotation());
        let within = way.norm() <= b.lin_vel_max * b.period_s + LIN_ROUNDING
            && turn <= b.ang_vel_max * b.period_s + ANG_ROUNDING;
        let gap = next.at.age_of(before.at);
        let interrupted = gap > Span::from_s(BREAK_PERIODS * b.period_s);
        if interrupted {
            // Whether the speed from before goes on is no question when nothing was sent in between.
            self.step = None;
        }
        if !within {
            if !(interrupted && self.is_seated(next)) {
                self.complain(
                    next.at,
                    &format!(
                        "a jump of {:.3} mm and {:.3} deg, {:.1} ms after the command before",
                        way.norm() * 1e3,
                        turn.to_degrees(),
                        gap.as_ms()
                    ),
                );
            }
            self.step = None;
            return;
        }
        if let Some((way_before, turn_before)) = self.step {
            let square = b.period_s * b.period_s;
            let change = (way - way_before).amax();
            if change > b.lin_acc_max * square * ACC_MARGIN + 2.0 * LIN_ROUNDING {
                let acc = change / square;
                self.complain(next.at, &format!("an acceleration of {acc:.2} m/s2"));
            }
            let change = (turn - turn_before).abs();
            if change > b.ang_acc_max * square * ACC_MARGIN + 2.0 * ANG_ROUNDING {
                let acc = (change / square).to_degrees();
                self.complain(
                    next.at,
                    &format!("a turning acceleration of {acc:.0} deg/s2"),
                );
            }
        }
        self.step = Some((way, turn));
    }

    fn is_seated(&self, target: &Target) -> bool {
        self.measured.iter().any(|(at, pose)| {
            target.at.age_of(*at) <= SEAT_WITHIN
                && (pose.position() - target.pose.position()).norm() <= SEAT_M
                && angle_between(pose.rotation(), target.pose.rotation()) <= SEAT_RAD
        })
    }

    fn complain(&mut self, at: Stamp, what: &str) {
        self.complained += 1;
        if self.complaints.len() < COMPLAINTS_MAX {
            self.complaints
                .push(format!("{what} (at {:.3} s)", at.as_s()));
        }
    }

    /// Whether this member of the bus is an arm.
    #[must_use]
    pub fn is_arm(&self, member: u32) -> bool {
        self.arms.contains(&member)
    }

    /// What was wrong so far, the first few.
    #[must_use]
    pub fn complaints(&self) -> &[String] {
        &self.complaints
    }

    /// How often something was wrong.
    #[must_use]
    pub const fn complained(&self) -> u64 {
        self.complained
    }

    /// Whole pose targets so far.
    #[must_use]
    pub const fn whole(&self) -> u64 {
        self.whole
    }

    /// Frames that hosts sent, all identifiers.
    #[must_use]
    pub fn host_frames(&self) -> u64 {
        self.host_frames.values().sum()
    }

    /// Frames that hosts sent with one of these identifiers.
    #[must_use]
    pub fn count(&self, ids: std::ops::RangeInclusive<u32>) -> u64 {
        self.host_frames.range(ids).map(|(_, n)| n).sum()
    }

    /// When a host was last heard.
    #[must_use]
    pub const fn last_host_frame(&self) -> Option<Stamp> {
        self.last_host_frame
    }

    /// The newest target.
    #[must_use]
    pub fn last_target(&self) -> Option<Target> {
        self.targets.back().copied()
    }

    /// The newest measured pose.
    #[must_use]
    pub fn last_measured(&self) -> Option<Pose<ArmBase, Tcp>> {
        self.measured.back().map(|(_, pose)| *pose)
    }

    /// Targets from an instant on.
    pub fn since(&self, from: Stamp) -> impl DoubleEndedIterator<Item = &Target> + Clone {
        self.targets.iter().filter(move |t| t.at >= from)
    }

    /// Length of the commanded way since an instant, metres.
    #[must_use]
    pub fn travel_m(&self, from: Stamp) -> f64 {
        let targets = self.since(from);
        targets
            .clone()
            .zip(targets.skip(1))
            .map(|(a, b)| (b.pose.position() - a.pose.position()).norm())
            .sum()
    }

    /// Largest distance and angle of a target since an instant from the first one.
    #[must_use]
    pub fn strayed(&self, from: Stamp) -> (f64, f64) {
        let mut targets = self.since(from);
        let Some(first) = targets.next() else {
            return (0.0, 0.0);
        };
        targets.fold((0.0, 0.0), |(way, turn): (f64, f64), t| {
            (
                way.max((t.pose.position() - first.pose.position()).norm()),
                turn.max(angle_between(t.pose.rotation(), first.pose.rotation())),
            )
        })
    }

    /// All targets between two instants are the same, to the last digit.
    ///
    /// # Errors
    /// The first one that is not.
    pub fn still(&self, from: Stamp, to: Stamp) -> Result<(), String> {
        let mut targets = self.since(from).take_while(|t| t.at <= to);
        let Some(first) = targets.next() else {
            return Ok(());
        };
        match targets.find(|t| t.raw != first.raw) {
            None => Ok(()),
            Some(odd) => Err(format!(
                "the target moved by {:.3} mm, {:.0} ms after it had to be still",
                (odd.pose.position() - first.pose.position()).norm() * 1e3,
                odd.at.age_of(from).as_ms()
            )),
        }
    }
}
