//! What the parameters of all devices have in common. Start-up only.
#![expect(clippy::disallowed_types, reason = "start-up")]

/// A parameter that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct ParamError {
    /// The key in the device's table.
    pub key: &'static str,
    /// Value, bound and reason, for the user.
    pub problem: String,
}
