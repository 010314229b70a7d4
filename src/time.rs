//! Two kinds of time that must never be mixed.
//!
//! [`Stamp`] is our own monotonic clock (`CLOCK_MONOTONIC`, nanoseconds since boot). Staleness, ordering against deadlines and every
//! age is judged with it. [`SenderTime`] is whatever clock the device has; only two stamps of the same sender can be compared, and
//! no function takes one of each.

use core::ops::{Add, Sub};
use core::time::Duration;

/// A length of time in nanoseconds, signed: `a - b` of two stamps may be negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Span(i64);

impl Span {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// From nanoseconds.
    #[must_use]
    pub const fn from_ns(ns: i64) -> Self {
        Self(ns)
    }

    /// From microseconds, saturating.
    #[must_use]
    pub const fn from_us(us: i64) -> Self {
        Self(us.saturating_mul(1_000))
    }

    /// From milliseconds, saturating.
    #[must_use]
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// From seconds; non-finite input gives zero, out-of-range input saturates (the meaning of a float-to-int `as`).
    #[must_use]
    pub fn from_s(s: f64) -> Self {
        Self((s * 1e9) as i64)
    }

    /// Nanoseconds.
    #[must_use]
    pub const fn as_ns(self) -> i64 {
        self.0
    }

    /// Seconds.
    #[must_use]
    pub fn as_s(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// Milliseconds.
    #[must_use]
    pub fn as_ms(self) -> f64 {
        self.0 as f64 * 1e-6
    }

    /// Microseconds.
    #[must_use]
    pub fn as_us(self) -> f64 {
        self.0 as f64 * 1e-3
    }

    /// Nanoseconds as an unsigned number; negative spans count as zero.
    #[must_use]
    pub const fn as_ns_clamped(self) -> u64 {
        if self.0 < 0 { 0 } else { self.0.unsigned_abs() }
    }

    /// This span times a whole number, saturating.
    #[must_use]
    pub const fn times(self, n: i64) -> Self {
        Self(self.0.saturating_mul(n))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl Sub for Span {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl From<Duration> for Span {
    fn from(d: Duration) -> Self {
        Self(i64::try_from(d.as_nanos()).unwrap_or(i64::MAX))
    }
}

/// An instant of our own monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Stamp(u64);

impl Stamp {
    /// From nanoseconds of `CLOCK_MONOTONIC`.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// From milliseconds; for tests with a fake clock.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// Nanoseconds of `CLOCK_MONOTONIC`.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Seconds of `CLOCK_MONOTONIC`.
    #[must_use]
    pub fn as_s(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// How long ago `earlier` was; a stamp of the future gives zero, so that an age is never negative.
    #[must_use]
    pub const fn age_of(self, earlier: Self) -> Span {
        let ns = self.0.saturating_sub(earlier.0);
        Span(if ns > i64::MAX as u64 {
            i64::MAX
        } else {
            ns.cast_signed()
        })
    }
}

impl Add<Span> for Stamp {
    type Output = Self;
    fn add(self, rhs: Span) -> Self {
        Self(self.0.saturating_add_signed(rhs.0))
    }
}

impl Sub<Span> for Stamp {
    type Output = Self;
    fn sub(self, rhs: Span) -> Self {
        Self(self.0.saturating_add_signed(rhs.0.saturating_neg()))
    }
}

impl Sub for Stamp {
    type Output = Span;
    fn sub(self, rhs: Self) -> Span {
        Span(self.0.cast_signed().wrapping_sub(rhs.0.cast_signed()))
    }
}

/// A device's own clock in seconds. It orders the packets of one sender and measures its jitter; it is never compared with a [`Stamp`].
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct SenderTime(f64);

impl SenderTime {
    /// From seconds of the sender's clock.
    #[must_use]
    pub const fn from_s(s: f64) -> Self {
        Self(s)
    }

    /// Seconds of the sender's clock.
    #[must_use]
    pub const fn as_s(self) -> f64 {
        self.0
    }

    /// Seconds from `earlier` to this, both of the same sender.
    #[must_use]
    pub fn since_s(self, earlier: Self) -> f64 {
        self.0 - earlier.0
    }
}
