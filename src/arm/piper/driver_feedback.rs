//! What the arm has said so far, each value with its age. Pure.

use super::wire::{
    Command, DriverState, EndPose, Feedback, FirmwareText, GripperFeedback, GripperParamState,
    Joint, JointLimits, JointPart, MotorState, Pair, PosePart, Status, id,
};
use crate::arm::can::{Origin, Received};
use crate::signal::Aged;
use crate::time::{Span, Stamp};
use crate::units::MilliDegrees;

/// Three frames of one pose (or of one set of joints) come within this time of one another, or they are not of one moment.
const TRIPLE_WITHIN: Span = Span::from_ms(3);

/// Puts three frames together that must come in order.
#[derive(Debug, Clone, Copy, Default)]
struct InOrder {
    expected: Option<(Pair, Stamp)>,
}

impl InOrder {
    /// Takes in a part; gives the stamp of the oldest part when this one completes the three, and whether parts had to be thrown away.
    fn take(&mut self, pair: Pair, at: Stamp) -> (Option<Stamp>, bool) {
        let pending = self.expected.take();
        match (pair, pending) {
            (Pair::First, _) => {
                self.expected = Some((Pair::Second, at));
                (None, pending.is_some())
            }
            (_, Some((expected, first)))
                if expected == pair && at.age_of(first) <= TRIPLE_WITHIN =>
            {
                if pair == Pair::Third {
                    return (Some(first), false);
                }
                self.expected = Some((Pair::Third, first));
                (None, false)
            }
            _ => (None, true),
        }
    }
}

/// Everything the arm has said.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Table {
    pub(super) status: Aged<Status>,
    pub(super) pose: Aged<EndPose>,
    pub(super) joints: Aged<[MilliDegrees; 6]>,
    pub(super) motors: [Aged<MotorState>; 6],
    pub(super) drivers: [Aged<DriverState>; 6],
    pub(super) gripper: Aged<GripperFeedback>,
    pub(super) limits: [Option<JointLimits>; 6],
    pub(super) gripper_param: Option<GripperParamState>,
    pub(super) firmware: FirmwareText,
    /// The last frame that only a following arm sends.
    pub(super) heard_at: Option<Stamp>,
    /// The last command frame that is not ours, and its identifier.
    pub(super) foreign: Aged<u32>,
    /// Frames refused by the decoder.
    pub(super) rejected: u64,
    /// Parts of poses and joint sets thrown away because the others were missing.
    pub(super) incomplete: u64,
    /// Complete poses.
    pub(super) pulses: u64,
    pose_parts: EndPose,
    pose_order: InOrder,
    joint_parts: [MilliDegrees; 6],
    joint_order: InOrder,
}

impl Table {
    /// Takes in a received frame. `ignore_commands`: the watchdog's own port is speaking.
    pub(super) fn take(&mut self, received: &Received, ignore_commands: bool) {
        let Received { frame, at, origin } = *received;
        if origin == Origin::Own {
            return;
        }
        if (id::MOTION..=id::MIT + 5).contains(&frame.id) {
            if !ignore_commands {
                self.foreign = Aged::at(frame.id, at);
            }
            return;
        }
        match Feedback::decode(frame.id, frame.payload()) {
            Ok(feedback) => self.note(feedback, at),
            // Another program may configure or query; that is no feedback and no fault.
            Err(_) if Command::decode(frame.id, frame.payload()).is_ok() => {}
            Err(_) => self.rejected += 1,
        }
    }

    fn note(&mut self, feedback: Feedback, at: Stamp) {
        match feedback {
            Feedback::Status(status) => self.status = Aged::at(status, at),
            Feedback::Pose(part) => self.note_pose(part, at),
            Feedback::Joints(part) => self.note_joints(part, at),
            Feedback::Gripper(gripper) => self.gripper = Aged::at(gripper, at),
            Feedback::Motor(joint, motor) => set(&mut self.motors, joint, Aged::at(motor, at)),
            Feedback::Driver(joint, driver) => set(&mut self.drivers, joint, Aged::at(driver, at)),
            Feedback::Limits(limits) => set(&mut self.limits, limits.joint, Some(limits)),
            Feedback::GripperParam(param) => self.gripper_param = Some(param),
            Feedback::Firmware(block) => {
                self.firmware.push(&block);
            }
            // Not asked for.
            Feedback::IkJoints(_)
            | Feedback::Acceleration(..)
            | Feedback::Ack(_)
            | Feedback::EndLimits(_)
            | Feedback::CrashLevels(_)
            | Feedback::LinkMotion(..)
            | Feedback::Assistance(_)
            | Feedback::Cpv(..) => return,
        }
        self.heard_at = Some(at);
    }

    fn note_pose(&mut self, part: PosePart, at: Stamp) {
        let pair = match part {
            PosePart::Xy(..) => Pair::First,
            PosePart::ZRx(..) => Pair::Second,
            PosePart::RyRz(..) => Pair::Third,
        };
        self.pose_parts.set(part);
        let (complete, lost) = self.pose_order.take(pair, at);
        self.incomplete += u64::from(lost);
        if let Some(oldest) = complete {
            self.pose = Aged::at(self.pose_parts, oldest);
            self.pulses += 1;
        }
    }

    fn note_joints(&mut self, part: JointPart, at: Stamp) {
        for (joint, angle) in part.pair.joints().into_iter().zip(part.angles) {
            set(&mut self.joint_parts, joint, angle);
        }
        let (complete, lost) = self.joint_order.take(part.pair, at);
        self.incomplete += u64::from(lost);
        if let Some(oldest) = complete {
            self.joints = Aged::at(self.joint_parts, oldest);
        }
    }

    /// Measured joint velocities, rad/s, at the stamp of the oldest of the six.
    pub(super) fn velocities(&self) -> Aged<[f64; 6]> {
        let mut dq = [0.0; 6];
        let mut oldest: Option<Stamp> = None;
        for (slot, motor) in dq.iter_mut().zip(&self.motors) {
            let (Some(state), Some(at)) = (motor.value(), motor.stamp()) else {
                return Aged::NEVER;
            };
            *slot = f64::from(state.speed_mrad_s) * 1e-3;
            oldest = Some(oldest.map_or(at, |o| o.min(at)));
        }
        oldest.map_or(Aged::NEVER, |at| Aged::at(dq, at))
    }

    /// Whether all six drivers report power, each not older than `age_max` and received after `since`.
    pub(super) fn all_enabled(&self, now: Stamp, age_max: Span, since: Stamp) -> bool {
        self.drivers.iter().all(|d| {
            d.stamp().is_some_and(|at| at >= since)
                && d.fresh(now, age_max).is_some_and(|s| s.flags.enabled())
        })
    }

    /// The group that a complete start needs and that has not been heard within `age_max`, in words; `None` when all are there.
    pub(super) fn missing(&self, now: Stamp, age_max: Span) -> Option<&'static str> {
        if self.heard_at.is_none_or(|at| now.age_of(at) > age_max) {
            return Some(
                "waiting for feedback: nothing heard from the arm (power, wiring, 1 Mbit/s?)",
            );
        }
        if self.status.fresh(now, age_max).is_none() {
            return Some("waiting for the arm's status (0x2A1)");
        }
        if self.pose.fresh(now, age_max).is_none() {
            return Some("waiting for a complete measured pose (0x2A2..0x2A4)");
        }
        if self.joints.fresh(now, age_max).is_none() {
            return Some("waiting for the measured joints (0x2A5..0x2A7)");
        }
        if self.drivers.iter().any(|d| d.fresh(now, age_max).is_none()) {
            return Some("waiting for all six joint drivers (0x261..0x266)");
        }
        if self.motors.iter().any(|m| m.fresh(now, age_max).is_none()) {
            return Some("waiting for all six motors (0x251..0x256)");
        }
        None
    }
}

fn set<T>(values: &mut [T; 6], joint: Joint, value: T) {
    if let Some(slot) = values.get_mut(joint.index()) {
        *slot = value;
    }
}

#[cfg(test)]
#[allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::arithmetic_side_effects
)]
mod tests {
    use super::*;
    use crate::arm::frame::Frame;

    fn heard(frame: Frame, at_us: i64) -> Received {
        Received {
            frame,
            at: Stamp::from_ms(1000) + Span::from_us(at_us),
            origin: Origin::Bus,
        }
    }

    /// Guards: a pose is the three frames of one moment in their order, its stamp that of the first; anything else is thrown away.
    #[test]
    fn poses_are_complete_or_absent() {
        let pose = |n: i32| EndPose {
            x: crate::units::Micrometres(n),
            ry: MilliDegrees(n),
            ..EndPose::default()
        };
        let mut table = Table::default();
        let [a, b, c] = pose(1).feedback_frames();
        for (frame, at) in [(a, 0), (b, 100), (c, 200)] {
            assert_eq!(table.pose, Aged::NEVER);
            table.take(&heard(frame, at), false);
        }
        assert_eq!(table.pose, Aged::at(pose(1), Stamp::from_ms(1000)));
        // Middle frame lost.
        let [a, _, c] = pose(2).feedback_frames();
        table.take(&heard(a, 5000), false);
        table.take(&heard(c, 5200), false);
        assert_eq!(table.pose.value(), Some(pose(1)));
        // Two halves of two poses.
        let [a, b, _] = pose(3).feedback_frames();
        let [_, _, c] = pose(4).feedback_frames();
        table.take(&heard(a, 10_000), false);
        table.take(&heard(b, 10_100), false);
        table.take(&heard(c, 15_000), false);
        assert_eq!(table.pose.value(), Some(pose(1)));
        // Out of order.
        let [a, b, c] = pose(5).feedback_frames();
        for (frame, at) in [(a, 20_000), (c, 20_100), (b, 20_200)] {
            table.take(&heard(frame, at), false);
        }
        assert_eq!(table.pose.value(), Some(pose(1)));
        assert_eq!((table.pulses, table.incomplete), (1, 4));
    }

    /// Guards: own echoes are neither feedback nor foreign; a command of somebody else is foreign; a query of somebody else is neither.
    #[test]
    fn who_commands() {
        let mut table = Table::default();
        let [first, ..] = EndPose::default().frames();
        table.take(
            &Received {
                origin: Origin::Own,
                ..heard(first, 0)
            },
            false,
        );
        assert_eq!(table.foreign, Aged::NEVER);
        table.take(&heard(first, 1), true);
        assert_eq!(
            table.foreign,
            Aged::NEVER,
            "the watchdog's port is not foreign"
        );
        table.take(&heard(Command::QueryFirmware.encode(), 2), false);
        assert_eq!(
            (table.foreign.value(), table.rejected, table.heard_at),
            (None, 0, None)
        );
        table.take(&heard(first, 3), false);
        assert_eq!(table.foreign.value(), Some(0x152));
        table.take(&heard(Frame::short(0x2A1, [1, 2]), 4), false);
        assert_eq!(
            (table.rejected, table.status),
            (1, Aged::NEVER),
            "a short frame is not a status"
        );
    }
}
