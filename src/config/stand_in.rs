//! Stand-in for the arm's own parameters.

use serde::{Deserialize, Serialize};

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
