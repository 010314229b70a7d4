//! Stand-ins for the device's and the arm's own parameters.

use serde::{Deserialize, Serialize};

/// How a hand engages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engage {
    /// Pinch closed at rest, then opened.
    PinchHold,
    /// The hand at rest.
    Rest,
    /// `telearm engage`.
    Command,
    /// The other hand's pinch.
    OtherHand,
}

/// RCTP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct RctpParams {
    pub port: u16,
    pub frame: String,
    pub engage: Engage,
    pub hold_after_ms: u32,
    pub disengage_after_ms: u32,
}

impl Default for RctpParams {
    fn default() -> Self {
        Self {
            port: 8888,
            frame: "openxr_rh".into(),
            engage: Engage::PinchHold,
            hold_after_ms: 100,
            disengage_after_ms: 500,
        }
    }
}

/// Piper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct PiperParams {
    pub can: String,
    pub speed_percent: u8,
    pub gripper_max_um: u32,
}

impl Default for PiperParams {
    fn default() -> Self {
        Self {
            can: "can0".into(),
            speed_percent: 25,
            gripper_max_um: 70_000,
        }
    }
}
