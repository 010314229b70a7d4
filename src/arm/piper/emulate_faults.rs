//! What can go wrong with the emulated arm.

use super::wire::Joint;

/// What goes wrong, switchable at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct EmulatorFaults {
    /// Says nothing and hears nothing.
    pub silent: bool,
    /// Leader: sends commands, and no feedback.
    pub leader: bool,
    /// This joint's motor and driver frames stop.
    pub joint_silent: Option<Joint>,
    /// This joint's driver reports an error, the arm status 9.
    pub joint_fault: Option<Joint>,
    /// This joint's motor is too hot.
    pub over_temperature: Option<Joint>,
    /// This joint's supply is too low.
    pub under_voltage: Option<Joint>,
    /// The arm reports a collision, and this joint's driver too.
    pub collision: Option<Joint>,
    /// Feedback keeps flowing with the same numbers.
    pub frozen: bool,
    /// Joint 1 turns slowly, whatever is ordered.
    pub drifting: bool,
    /// Enable orders have no effect.
    pub enable_refused: bool,
    /// This joint loses its power.
    pub joint_disabled: Option<Joint>,
    /// Mode orders have no effect.
    pub mode_refused: bool,
    /// In drag teaching.
    pub teach: bool,
    /// Somebody else sends commands as well.
    pub foreign: bool,
    /// The controller is bus-off: an error frame, then silence.
    pub bus_off: bool,
    /// Answers with firmware S-V1.5-1.
    pub old_firmware: bool,
    /// Does not answer queries.
    pub mute_queries: bool,
    /// Joint limits read -0.1..-0.1 deg.
    pub absurd_limits: bool,
    /// The gripper's stroke was never set.
    pub stroke_unset: bool,
    /// No gripper.
    pub gripper_absent: bool,
}

/// Names for the command line, in the order of [`EmulatorFaults::set`].
pub const FAULT_NAMES: &[&str] = &[
    "silent",
    "leader",
    "joint_silent",
    "joint_fault",
    "over_temperature",
    "under_voltage",
    "collision",
    "frozen",
    "drifting",
    "enable_refused",
    "joint_disabled",
    "mode_refused",
    "teach",
    "foreign",
    "bus_off",
    "old_firmware",
    "mute_queries",
    "absurd_limits",
    "stroke_unset",
    "gripper_absent",
];

impl EmulatorFaults {
    /// Switches a fault by name, `silent` or `joint_fault=3` (joint 2 when none is given). `None`: no such fault.
    pub fn set(&mut self, text: &str, on: bool) -> Option<()> {
        let (name, joint) = match text.split_once('=') {
            Some((name, number)) => (name, Joint::from_number(number.parse().ok()?)?),
            None => (text, Joint::J2),
        };
        let joint = on.then_some(joint);
        match name {
            "silent" => self.silent = on,
            "leader" => self.leader = on,
            "joint_silent" => self.joint_silent = joint,
            "joint_fault" => self.joint_fault = joint,
            "over_temperature" => self.over_temperature = joint,
            "under_voltage" => self.under_voltage = joint,
            "collision" => self.collision = joint,
            "frozen" => self.frozen = on,
            "drifting" => self.drifting = on,
            "enable_refused" => self.enable_refused = on,
            "joint_disabled" => self.joint_disabled = joint,
            "mode_refused" => self.mode_refused = on,
            "teach" => self.teach = on,
            "foreign" => self.foreign = on,
            "bus_off" => self.bus_off = on,
            "old_firmware" => self.old_firmware = on,
            "mute_queries" => self.mute_queries = on,
            "absurd_limits" => self.absurd_limits = on,
            "stroke_unset" => self.stroke_unset = on,
            "gripper_absent" => self.gripper_absent = on,
            _ => return None,
        }
        Some(())
    }
}
