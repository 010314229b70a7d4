//! What the emulated arm says.

#![allow(clippy::disallowed_types, reason = "not on a real-time path")]

use super::emulate::{EmulatedPiper, FAST_STEPS, SLOW_STEPS};
use super::wire::{
    ArmStatus, Command, ControlMode, DriverFlags, DriverState, EndPose, Feedback, GripperFeedback,
    GripperFlags, Joint, JointPart, JointSet, MotionState, MotorState, Status, TeachState,
};
use crate::arm::frame::Frame;
use crate::units::{Micrometres, MilliDegrees, round_i32};

impl EmulatedPiper {
    /// What a leader arm sends: commands.
    pub(super) fn lead(&mut self, step: u64, out: &mut Vec<Frame>) {
        self.answers.clear();
        if step.is_multiple_of(FAST_STEPS) {
            out.extend(Command::joint_frames(self.q.map(millidegrees)));
        }
    }

    pub(super) fn report(&mut self, step: u64, out: &mut Vec<Frame>) {
        let (q, gripper_um) = if self.faults.frozen {
            *self.frozen.get_or_insert((self.q, self.gripper_um))
        } else {
            self.frozen = None;
            (self.q, self.gripper_um)
        };
        let joint_silent = |joint: Joint| self.faults.joint_silent == Some(joint);
        // The frames of one period are spread over it, as on a real bus.
        match step % FAST_STEPS {
            0 => {
                out.push(Feedback::Status(self.status()).encode());
                let pose = self.model.fk(&q);
                if let Ok(pose) = EndPose::from_pose(&pose, &EndPose::default()) {
                    out.extend(pose.feedback_frames());
                }
            }
            1 => {
                out.extend(
                    JointPart::split(q.map(millidegrees))
                        .map(|part| Feedback::Joints(part).encode()),
                );
                if !self.faults.gripper_absent {
                    out.push(Feedback::Gripper(self.gripper_state(gripper_um)).encode());
                }
            }
            2 => {
                let dq = if self.faults.frozen {
                    [0.0; 6]
                } else {
                    self.dq
                };
                for ((joint, q), dq) in Joint::ALL.into_iter().zip(q).zip(dq) {
                    if !joint_silent(joint) {
                        let speed_mrad_s = round_i32(dq * 1e3)
                            .and_then(|v| i16::try_from(v).ok())
                            .unwrap_or(i16::MAX);
                        let motor = MotorState {
                            speed_mrad_s,
                            current_ma: 200,
                            position_mrad: round_i32(q * 1e3).unwrap_or(0),
                        };
                        out.push(Feedback::Motor(joint, motor).encode());
                    }
                }
            }
            _ => {}
        }
        if step % SLOW_STEPS == 4 {
            for joint in Joint::ALL {
                if !joint_silent(joint) {
                    out.push(Feedback::Driver(joint, self.driver_state(joint)).encode());
                }
            }
        }
    }

    fn status(&self) -> Status {
        let f = &self.faults;
        let status = if self.stopped {
            ArmStatus::Stopped
        } else if f.collision.is_some() {
            ArmStatus::Collision
        } else if f.joint_fault.is_some() {
            ArmStatus::JointFault
        } else {
            self.refusal
        };
        let there = self
            .q
            .iter()
            .zip(&self.q_goal)
            .all(|(q, goal)| (q - goal).abs() < 1e-3);
        Status {
            control: if f.teach {
                ControlMode::Teach
            } else {
                self.control
            },
            status,
            movement: self.movement,
            teach: if f.teach {
                TeachState::Record
            } else {
                TeachState::Off
            },
            motion: if there {
                MotionState::Reached
            } else {
                MotionState::NotReached
            },
            trajectory_point: 0,
            beyond_limit: JointSet::default(),
            silent: JointSet(f.joint_silent.map_or(0, |joint| 1 << joint.index())),
        }
    }

    fn driver_state(&self, joint: Joint) -> DriverState {
        let f = &self.faults;
        let hot = f.over_temperature == Some(joint);
        let bits = [
            (f.under_voltage == Some(joint), 0),
            (hot, 1),
            (f.collision == Some(joint), 4),
            (f.joint_fault == Some(joint), 5),
            (self.enabled.get(joint.index()).is_some_and(|on| *on), 6),
        ];
        let flags = bits
            .iter()
            .fold(0_u8, |flags, (on, bit)| flags | (u8::from(*on) << bit));
        DriverState {
            bus_decivolt: if f.under_voltage == Some(joint) {
                180
            } else {
                240
            },
            driver_temp_c: 35,
            motor_temp_c: if hot { 95 } else { 38 },
            flags: DriverFlags(flags),
            bus_current_ma: 300,
        }
    }

    fn gripper_state(&self, um: f64) -> GripperFeedback {
        GripperFeedback {
            stroke: Micrometres(round_i32(um).unwrap_or(0)),
            effort_mnm: 0,
            flags: GripperFlags(0x80 | (u8::from(self.gripper_on) << 6)),
        }
    }
}

fn millidegrees(rad: f64) -> MilliDegrees {
    MilliDegrees::from_rad(rad).unwrap_or_default()
}
