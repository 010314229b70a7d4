//! Something that the kernel did not grant.

use std::fmt;

/// What was asked, what the kernel said, and what the user can do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The act, in words: "SCHED_FIFO 80 for `control`".
    pub what: String,
    /// The error number; 0 if the call succeeded but reading back gave something else.
    pub errno: i32,
    /// The kernel's words, or what was read back.
    pub text: String,
    /// One line that helps.
    pub fix: &'static str,
}

impl Refusal {
    /// From an error number.
    #[must_use]
    pub fn from_errno(what: impl Into<String>, errno: i32, fix: &'static str) -> Self {
        Self {
            what: what.into(),
            errno,
            text: std::io::Error::from_raw_os_error(errno).to_string(),
            fix,
        }
    }

    /// From an I/O error.
    #[must_use]
    pub fn from_io(what: impl Into<String>, error: &std::io::Error, fix: &'static str) -> Self {
        Self {
            what: what.into(),
            errno: error.raw_os_error().unwrap_or(0),
            text: error.to_string(),
            fix,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (fix: {})", self.what, self.text, self.fix)
    }
}
