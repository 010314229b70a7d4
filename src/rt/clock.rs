//! The monotonic clock, and how to notice that the machine slept.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::disallowed_macros
)]

use crate::handoff::sys;
use crate::time::{Span, Stamp};

/// Now, on `CLOCK_MONOTONIC`. No system call (vDSO) on the machines we run on.
#[must_use]
pub fn now() -> Stamp {
    sys::now()
}

/// How long this machine has been suspended since it booted: `CLOCK_BOOTTIME` minus `CLOCK_MONOTONIC`. The two reads are not one instant, so
/// the value wobbles by the time between them, always upwards; see [`SuspendDetector`].
#[must_use]
pub fn suspended_so_far() -> Span {
    let monotonic = sys::now();
    sys::read_clock(libc::CLOCK_BOOTTIME) - monotonic
}

/// Tells a suspend from the time between two clock reads.
#[derive(Debug, Clone, Copy)]
pub struct SuspendDetector {
    known: Span,
}

impl SuspendDetector {
    /// Shorter than any real suspend, longer than a preemption between two clock reads is likely to be. A preemption of this length
    /// is worth disengaging for as well.
    pub const THRESHOLD: Span = Span::from_ms(50);

    /// Takes the suspend time so far as known.
    #[must_use]
    pub const fn new(suspended_so_far: Span) -> Self {
        Self {
            known: suspended_so_far,
        }
    }

    /// Gives the length of a suspend since the last call, if there was one.
    pub fn observe(&mut self, suspended_so_far: Span) -> Option<Span> {
        let gained = suspended_so_far - self.known;
        if gained > Self::THRESHOLD {
            self.known = suspended_so_far;
            Some(gained)
        } else {
            if gained < Span::ZERO {
                self.known = suspended_so_far; // the first read was the one that wobbled
            }
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A jump of the difference is one suspend, reported once; the wobble of the two reads is none.
    #[test]
    fn a_suspend_is_seen_once() {
        let mut detector = SuspendDetector::new(Span::from_us(3));
        assert_eq!(detector.observe(Span::from_us(900)), None);
        assert_eq!(detector.observe(Span::from_us(1)), None);
        let asleep = Span::from_s(12.0) + Span::from_us(1);
        assert_eq!(detector.observe(asleep), Some(Span::from_s(12.0)));
        assert_eq!(detector.observe(asleep), None);
    }

    /// The real clocks: monotonic does not go back, and no suspend happens while the test runs.
    #[test]
    fn the_real_clocks_behave() {
        let mut detector = SuspendDetector::new(suspended_so_far());
        let first = now();
        assert!(now() >= first);
        assert!(suspended_so_far() >= Span::ZERO);
        let _ = detector.observe(suspended_so_far());
    }
}
