//! [`PiperParams`]: what a plan says about a Piper.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "start-up only"
)]

use serde::{Deserialize, Serialize};

use super::model::JOINT_RANGES;
use crate::arm::can::CanAddress;

/// Fastest command rate: the arm plans at 200 Hz, and faster frames only load the bus.
pub const COMMAND_HZ_MAX: u32 = 200;

/// A pose with room in every direction: tool forward and down, wrist in front of the base. The factory zero pose is no such place: there the
/// wrist centre lies behind the axis of J1.
const HOME_DEG: [f64; 6] = [0.0, 70.0, -65.0, 0.0, 45.0, 0.0];

/// What the arm is driven by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriveMode {
    /// Tool poses; the arm solves its own inverse kinematics (move mode P).
    #[default]
    Pose,
    /// Joint angles (move mode J).
    Joint,
}

/// Which geometry the firmware computes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DhChoice {
    /// The one that fits the measured joints and pose at the start.
    #[default]
    Auto,
    /// Firmware from S-V1.6-3: J2 and J3 with the 2 degree offset.
    Offset,
    /// Older firmware.
    NoOffset,
}

/// The `[arm]` table of a plan for a Piper. Keys carry their units; unknown keys are errors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PiperParams {
    /// CAN interface (`can0`), or a local bus (`local:/path.sock`, `local:@name`).
    pub can: CanAddress,
    /// The arm's own speed setting, percent of 3 rad/s per joint.
    pub speed_percent: u8,
    /// What the arm is driven by.
    pub mode: DriveMode,
    /// Commands per second, a divisor of the plan's rate.
    pub command_hz: u32,
    /// Whether a gripper is mounted.
    pub gripper: bool,
    /// Stroke of the open gripper, 0.001 mm: 70000 or 100000.
    pub gripper_max_um: i32,
    /// Gripper effort, 0.001 N.m.
    pub gripper_effort_mnm: u16,
    /// Geometry of the firmware.
    pub dh: DhChoice,
    /// Joints of `telearm home`, degrees.
    pub home_deg: [f64; 6],
}

impl Default for PiperParams {
    fn default() -> Self {
        Self {
            can: CanAddress::Interface("can0".into()),
            speed_percent: 25,
            mode: DriveMode::Pose,
            command_hz: COMMAND_HZ_MAX,
            gripper: true,
            gripper_max_um: 70_000,
            gripper_effort_mnm: 1000,
            dh: DhChoice::Auto,
            home_deg: HOME_DEG,
        }
    }
}

/// One thing wrong with the parameters of an arm.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct ParamError {
    /// Key below the arm's table.
    pub key: &'static str,
    /// What is wrong, with the value and the bound.
    pub problem: String,
}

impl PiperParams {
    /// Everything that is wrong, at once.
    ///
    /// # Errors
    /// One [`ParamError`] for each key out of its bounds.
    pub fn validate(&self) -> Result<(), Vec<ParamError>> {
        let mut wrong = Vec::new();
        let mut need = |good: bool, key: &'static str, problem: String| {
            if !good {
                wrong.push(ParamError { key, problem });
            }
        };
        need(
            (1..=100).contains(&self.speed_percent),
            "speed_percent",
            format!("{} is not within 1..=100 percent", self.speed_percent),
        );
        need(
            (1..=COMMAND_HZ_MAX).contains(&self.command_hz),
            "command_hz",
            format!(
                "{} is not within 1..={COMMAND_HZ_MAX}; the arm does not plan faster",
                self.command_hz
            ),
        );
        need(
            (1..=150_000).contains(&self.gripper_max_um),
            "gripper_max_um",
            format!(
                "{} is not within 1..=150000 (0.001 mm; 70000 for the small, 100000 for the large gripper)",
                self.gripper_max_um
            ),
        );
        need(
            self.gripper_effort_mnm <= 5000,
            "gripper_effort_mnm",
            format!("{} is beyond 5000 (0.001 N.m)", self.gripper_effort_mnm),
        );
        for (joint, (angle, range)) in (1..).zip(self.home_deg.iter().zip(&JOINT_RANGES)) {
            let (low, high) = (range.lower.to_degrees(), range.upper.to_degrees());
            need(
                (low..=high).contains(angle),
                "home_deg",
                format!("joint {joint} at {angle} is not within {low:.0}..={high:.0} degrees"),
            );
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards: defaults are valid, unknown keys are errors, all errors come at once.
    #[test]
    fn defaults_and_errors() {
        let empty: PiperParams = toml::from_str("").unwrap();
        assert_eq!(empty, PiperParams::default());
        assert!(empty.validate().is_ok());
        assert!(toml::from_str::<PiperParams>("speed = 3").is_err());
        assert!(toml::from_str::<PiperParams>("can = \"local:nowhere\"").is_err());
        let bad: PiperParams = toml::from_str("speed_percent = 0\ncommand_hz = 250\ngripper_max_um = 0\ngripper_effort_mnm = 6000\nmode = \"joint\"").unwrap();
        let keys: Vec<&str> = bad.validate().unwrap_err().iter().map(|e| e.key).collect();
        assert_eq!(
            keys,
            [
                "speed_percent",
                "command_hz",
                "gripper_max_um",
                "gripper_effort_mnm"
            ]
        );
    }
}
