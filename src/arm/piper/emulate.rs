//! `EmulatedPiper`: an arm in software, as far as the device's document describes it. Pure: frames and time in, frames out.
//!
//! It does not echo targets. A pose target goes through its own closed-form inverse kinematics (which know no present joints, see
//! `Choice::Unseeded`) and the joints move there with `speed_percent` of 3 rad/s and 5 rad/s²; a target without solution or beyond the
//! limits gives status 2 or 4 and the arm stays. Under its stop it sinks, without power it falls, and only a reset leaves the stop.
//! What is a guess is marked so; timing of the bus, friction, gravity and motor heat are not modelled.

#![allow(clippy::disallowed_types, reason = "not on a real-time path")]

pub use super::emulate_faults::{EmulatorFaults, FAULT_NAMES};
use super::model::{
    Choice, DhVariant, IkFailure, JOINT_ACCELERATION_RAD_S2, JOINT_RANGES, JOINT_SPEED_MAX_RAD_S,
    PiperModel,
};
use super::wire::{
    ArmStatus, Command, ConfigAck, ControlMode, ControlOrder, EndPose, Feedback, GripperOrder,
    GripperParamState, GripperPower, Joint, JointLimits, JointSelect, LimitQuery, LinkRole,
    MotionOrder, MotorSelect, MoveMode, MoveOrder, ParamQuery, StopOrder, id,
};
use crate::arm::frame::Frame;
use crate::units::{MilliDegrees, round_i32};

/// One step of the simulation, s.
pub const STEP_S: f64 = 0.001;
/// Steps of one 200 Hz period.
pub(super) const FAST_STEPS: u64 = 5;
/// Steps of one 40 Hz period.
pub(super) const SLOW_STEPS: u64 = 25;
/// Sink under the arm's own stop, rad/s (guess).
const SINK_RAD_S: f64 = 0.1;
/// Fall without power, rad/s² (guess).
const FALL_RAD_S2: f64 = 8.0;
/// What a drifting joint does, rad/s.
const DRIFT_RAD_S: f64 = 0.15;
/// Gripper speed, m/s (guess).
const GRIPPER_M_S: f64 = 0.1;
/// After a reset the arm needs so many enable orders.
const ENABLES_AFTER_RESET: u8 = 2;
/// A posture that the arm's own inverse kinematics give back: elbow up, tool forward.
pub const START_POSTURE: [f64; 6] = [0.0, 1.3, -1.2, 0.0, 0.5, 0.0];

/// How the arm is when the emulator starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StartState {
    /// Joint angles, rad.
    pub q: [f64; 6],
    /// Motors and gripper already have power, and the arm is in CAN mode P.
    pub enabled: bool,
    /// The arm is in its own stop.
    pub stopped: bool,
    /// Firmware generation of the geometry.
    pub variant: DhVariant,
    /// Gripper opening, 0.001 mm.
    pub gripper_um: i32,
}

impl Default for StartState {
    fn default() -> Self {
        Self {
            q: START_POSTURE,
            enabled: false,
            stopped: false,
            variant: DhVariant::Offset,
            gripper_um: 35_000,
        }
    }
}

/// An emulated arm.
#[derive(Debug, Clone)]
pub struct EmulatedPiper {
    /// What goes wrong.
    pub faults: EmulatorFaults,
    pub(super) model: PiperModel,
    pub(super) q: [f64; 6],
    pub(super) dq: [f64; 6],
    pub(super) q_goal: [f64; 6],
    pub(super) enabled: [bool; 6],
    pub(super) enables_needed: u8,
    /// An arm that never had power since the start lies on its support.
    pub(super) supported: bool,
    pub(super) control: ControlMode,
    pub(super) movement: MoveMode,
    pub(super) speed_percent: u8,
    pub(super) stopped: bool,
    pub(super) refusal: ArmStatus,
    pub(super) pose_parts: EndPose,
    pub(super) joint_parts: [MilliDegrees; 6],
    pub(super) gripper_um: f64,
    pub(super) gripper_goal_um: f64,
    pub(super) gripper_on: bool,
    pub(super) frozen: Option<([f64; 6], f64)>,
    pub(super) steps: u64,
    pub(super) answers: Vec<Frame>,
}

impl EmulatedPiper {
    /// An arm.
    #[must_use]
    pub fn new(start: StartState) -> Self {
        Self {
            faults: EmulatorFaults::default(),
            model: PiperModel::new(start.variant),
            q: start.q,
            dq: [0.0; 6],
            q_goal: start.q,
            enabled: [start.enabled; 6],
            enables_needed: 1,
            supported: !start.enabled,
            control: if start.enabled {
                ControlMode::Can
            } else {
                ControlMode::Standby
            },
            movement: MoveMode::P,
            speed_percent: 50,
            stopped: start.stopped,
            refusal: ArmStatus::Normal,
            pose_parts: EndPose::default(),
            joint_parts: [MilliDegrees(0); 6],
            gripper_um: f64::from(start.gripper_um),
            gripper_goal_um: f64::from(start.gripper_um),
            gripper_on: start.enabled,
            frozen: None,
            steps: 0,
            answers: Vec::new(),
        }
    }

    /// Joint angles, rad.
    #[must_use]
    pub const fn q(&self) -> [f64; 6] {
        self.q
    }

    /// Whether all six motors have power.
    #[must_use]
    pub fn powered(&self) -> bool {
        self.enabled.iter().all(|on| *on)
    }

    /// One step of `STEP_S`: takes what was on the bus, gives what the arm sends.
    pub fn step(&mut self, heard: &[Frame], out: &mut Vec<Frame>) {
        for frame in heard {
            if !self.faults.silent && !self.faults.bus_off && !self.faults.leader {
                self.obey(frame);
            }
        }
        if let Some(joint) = self.faults.joint_disabled
            && let Some(on) = self.enabled.get_mut(joint.index())
        {
            *on = false;
        }
        self.move_joints();
        self.move_gripper();
        let shown = self.steps;
        self.steps += 1;
        if self.faults.silent || self.faults.bus_off {
            self.answers.clear();
            return;
        }
        if self.faults.leader {
            return self.lead(shown, out);
        }
        out.append(&mut self.answers);
        self.report(shown, out);
        if self.faults.foreign && shown % FAST_STEPS == 3 {
            out.extend(EndPose::default().frames());
        }
    }

    fn obey(&mut self, frame: &Frame) {
        let Ok(command) = Command::decode(frame.id, frame.payload()) else {
            return;
        };
        match command {
            Command::Motion(order) => self.obey_motion(&order),
            Command::Mode(order)
                if !self.stopped && !self.faults.mode_refused && !self.faults.teach =>
            {
                self.control = match order.control() {
                    ControlOrder::Can => ControlMode::Can,
                    ControlOrder::Standby => ControlMode::Standby,
                    other => ControlMode::from_u8(other.as_u8()),
                };
                if order.movement() != MoveOrder::Keep {
                    self.movement = MoveMode::from_u8(order.movement().as_u8());
                }
                self.speed_percent = order.speed_percent();
            }
            Command::Pose(part) => {
                self.pose_parts.set(part);
                // When the firmware takes a pose up is not documented; here it is the last of the three frames.
                if frame.id == id::POSE + 2 {
                    self.take_pose();
                }
            }
            Command::Joints(part) => {
                for (joint, angle) in part.pair.joints().into_iter().zip(part.angles) {
                    if let Some(slot) = self.joint_parts.get_mut(joint.index()) {
                        *slot = angle;
                    }
                }
                if frame.id == id::JOINTS + 2 {
                    self.take_joints();
                }
            }
            Command::Gripper(order) => self.obey_gripper(&order),
            Command::Power { motors, on } => self.obey_power(motors, on),
            Command::Link(config) if config.role == LinkRole::Leader => self.faults.leader = true,
            query if !self.faults.mute_queries => self.answer(&query),
            _ => {}
        }
    }

    fn obey_motion(&mut self, order: &MotionOrder) {
        match order.stop {
            StopOrder::None => {}
            StopOrder::DampedStop => self.stopped = true,
            StopOrder::ResetDropsArm => {
                self.stopped = false;
                self.faults.teach = false;
                self.faults.joint_fault = None;
                self.faults.collision = None;
                self.refusal = ArmStatus::Normal;
                self.control = ControlMode::Standby;
                self.enabled = [false; 6];
                self.enables_needed = ENABLES_AFTER_RESET;
            }
        }
    }

    fn obey_power(&mut self, motors: MotorSelect, on: bool) {
        self.answers.push(
            Feedback::Ack(ConfigAck {
                of: 0x71,
                zero_code: 0,
                point: 0,
            })
            .encode(),
        );
        if on && (self.faults.enable_refused || self.stopped) {
            return;
        }
        if on {
            self.enables_needed = self.enables_needed.saturating_sub(1);
            if self.enables_needed > 0 {
                return;
            }
            self.enables_needed = 1;
        }
        for joint in Joint::ALL {
            let concerned = match motors {
                MotorSelect::One(one) => one == joint,
                MotorSelect::Joints | MotorSelect::Everything => true,
            };
            if concerned
                && let (Some(slot), Some(q), Some(goal)) = (
                    self.enabled.get_mut(joint.index()),
                    self.q.get(joint.index()),
                    self.q_goal.get_mut(joint.index()),
                )
            {
                if on && !*slot {
                    *goal = *q;
                }
                *slot = on;
            }
        }
        if motors == MotorSelect::Everything {
            self.gripper_on = on;
        }
    }

    fn obey_gripper(&mut self, order: &GripperOrder) {
        self.gripper_on = matches!(
            order.power(),
            GripperPower::Enable | GripperPower::EnableClear
        );
        if self.gripper_on {
            self.gripper_goal_um = f64::from(order.stroke().0.clamp(0, 70_000));
        }
    }

    fn commanded(&self, movement: MoveMode) -> bool {
        self.powered()
            && !self.stopped
            && self.control == ControlMode::Can
            && self.movement == movement
    }

    fn take_pose(&mut self) {
        if !self.commanded(MoveMode::P) {
            return;
        }
        match self.model.ik(&self.pose_parts.to_pose(), Choice::Unseeded) {
            Ok(q) => {
                self.q_goal = q;
                self.refusal = ArmStatus::Normal;
            }
            Err(IkFailure::BeyondLimits) => self.refusal = ArmStatus::TargetBeyondLimit,
            Err(_) => self.refusal = ArmStatus::NoSolution,
        }
    }

    fn take_joints(&mut self) {
        if !self.commanded(MoveMode::J) {
            return;
        }
        let q = self.joint_parts.map(MilliDegrees::as_rad);
        let within = q
            .iter()
            .zip(&JOINT_RANGES)
            .all(|(q, r)| (r.lower - 1e-4..=r.upper + 1e-4).contains(q));
        if within {
            self.q_goal = q;
            self.refusal = ArmStatus::Normal;
        } else {
            self.refusal = ArmStatus::TargetBeyondLimit;
        }
    }

    fn move_joints(&mut self) {
        self.supported &= !self.powered();
        if self.supported {
            return;
        }
        if !self.powered() {
            return self.sag(FALL_RAD_S2, f64::INFINITY);
        }
        if self.stopped {
            self.q_goal = self.q;
            return self.sag(FALL_RAD_S2, SINK_RAD_S);
        }
        let speed = JOINT_SPEED_MAX_RAD_S * f64::from(self.speed_percent) / 100.0;
        let change = JOINT_ACCELERATION_RAD_S2 * STEP_S;
        let [first, ..] = self.q;
        for ((q, dq), goal) in self.q.iter_mut().zip(self.dq.iter_mut()).zip(self.q_goal) {
            let error = goal - *q;
            if error.abs() < 1e-6 && dq.abs() <= change {
                (*q, *dq) = (goal, 0.0);
                continue;
            }
            // The speed from which the joint can still brake to the goal, minus half a step.
            let brake = (2.0 * JOINT_ACCELERATION_RAD_S2 * error.abs())
                .sqrt()
                .min(error.abs() / STEP_S)
                .min(speed);
            let wanted = brake.copysign(error);
            *dq += (wanted - *dq).clamp(-change, change);
            *q += *dq * STEP_S;
        }
        if self.faults.drifting {
            self.q[0] = first + DRIFT_RAD_S * STEP_S;
            self.dq[0] = DRIFT_RAD_S;
        }
    }

    /// Joints 2, 3 and 5 give way so that the flange goes down, until it lies on the table.
    fn sag(&mut self, acceleration: f64, speed_max: f64) {
        let height = |q: &[f64; 6]| self.model.fk(q).position().z;
        let now = height(&self.q);
        let mut down = [0.0; 6];
        for joint in [1_usize, 2, 4] {
            let mut moved = self.q;
            if let (Some(q), Some(slot)) = (moved.get_mut(joint), down.get_mut(joint)) {
                *q += 1e-4;
                *slot = if now <= 0.0 {
                    0.0
                } else {
                    -(height(&moved) - now).signum()
                };
            }
        }
        for (((q, dq), sign), range) in self
            .q
            .iter_mut()
            .zip(self.dq.iter_mut())
            .zip(down)
            .zip(&JOINT_RANGES)
        {
            *dq = if sign == 0.0 {
                0.0
            } else {
                (*dq + sign * acceleration * STEP_S).clamp(-speed_max, speed_max)
            };
            let next = (*q + *dq * STEP_S).clamp(range.lower, range.upper);
            if next == *q {
                *dq = 0.0;
            }
            *q = next;
        }
        self.q_goal = self.q;
    }

    fn move_gripper(&mut self) {
        if self.gripper_on && !self.faults.stroke_unset {
            let most = GRIPPER_M_S * 1e6 * STEP_S;
            self.gripper_um += (self.gripper_goal_um - self.gripper_um).clamp(-most, most);
        }
    }

    fn answer(&mut self, query: &Command) {
        match *query {
            Command::QueryLimits(joints, LimitQuery::AngleAndSpeed) => {
                for (joint, range) in Joint::ALL.into_iter().zip(&JOINT_RANGES) {
                    if joints == JointSelect::All || joints == JointSelect::One(joint) {
                        let decideg = |rad: f64| {
                            round_i32(rad.to_degrees() * 10.0)
                                .and_then(|d| i16::try_from(d).ok())
                                .unwrap_or(0)
                        };
                        let limits = if self.faults.absurd_limits {
                            JointLimits {
                                joint,
                                max_decideg: -1,
                                min_decideg: -1,
                                speed_crad_s: 300,
                            }
                        } else {
                            JointLimits {
                                joint,
                                max_decideg: decideg(range.upper),
                                min_decideg: decideg(range.lower),
                                speed_crad_s: 300,
                            }
                        };
                        self.answers.push(Feedback::Limits(limits).encode());
                    }
                }
            }
            Command::QueryLimits(joints, LimitQuery::Acceleration) => {
                for joint in Joint::ALL {
                    if joints == JointSelect::All || joints == JointSelect::One(joint) {
                        self.answers
                            .push(Feedback::Acceleration(joint, 500).encode());
                    }
                }
            }
            Command::Param(order) if order.query == ParamQuery::GripperParam => {
                let range_mm = if self.faults.stroke_unset { 0 } else { 70 };
                self.answers.push(
                    Feedback::GripperParam(GripperParamState {
                        stroke_percent: 100,
                        range_mm,
                        friction: 1,
                    })
                    .encode(),
                );
            }
            Command::QueryFirmware => {
                let text = firmware_text(if self.faults.old_firmware {
                    "S-V1.5-1"
                } else {
                    "S-V1.8-5"
                });
                self.answers.extend(
                    text.as_chunks::<8>()
                        .0
                        .iter()
                        .map(|block| Feedback::Firmware(*block).encode()),
                );
            }
            _ => {}
        }
    }
}

/// Eleven blocks of eight characters, laid out as the device's document says.
fn firmware_text(version: &str) -> [u8; 88] {
    let mut text = [0; 88];
    for (at, part) in [
        (0, "H-V1.2-1"),
        (16, "B1"),
        (32, "ARM_MC"),
        (60, version),
        (68, "250630"),
        (76, "01"),
    ] {
        for (slot, byte) in text.iter_mut().skip(at).zip(part.bytes()) {
            *slot = byte;
        }
    }
    text
}
