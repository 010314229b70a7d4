//! Ages and signs of life, for a thread that must not touch the mailboxes (the watchdog).

use super::sync::{AtomicU64, Ordering};
use crate::time::{Span, Stamp};

/// No stamp reaches this: 584 years after boot.
const NEVER: u64 = u64::MAX;

/// When the newest usable sample of a source was received.
///
/// The writer stores it *after* publishing the sample, the watchdog loads it *before* reading the clock: so the stamp is never younger
/// than what control can read, and the age is never negative. [`LastUsable::age`] keeps the reader's half of this rule by construction.
#[derive(Debug)]
pub struct LastUsable(AtomicU64);

impl Default for LastUsable {
    fn default() -> Self {
        Self::new()
    }
}

impl LastUsable {
    /// Nothing was ever received.
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU64::new(NEVER))
    }

    /// Notes the receive time of a sample that has just been published.
    pub fn store(&self, received: Stamp) {
        self.0.store(received.as_ns(), Ordering::Release);
    }

    /// The receive time of the newest usable sample; `None` if there never was one.
    #[must_use]
    pub fn load(&self) -> Option<Stamp> {
        match self.0.load(Ordering::Acquire) {
            NEVER => None,
            ns => Some(Stamp::from_ns(ns)),
        }
    }

    /// The age of the newest usable sample, with the clock read after the stamp was loaded; `None` if there never was one.
    #[must_use]
    pub fn age(&self, now: impl FnOnce() -> Stamp) -> Option<Span> {
        let received = self.load();
        let now = now();
        received.map(|received| now.age_of(received))
    }
}

/// Counts the turns of a thread; an observer that sees it unchanged for too long knows that the thread hangs.
#[derive(Debug)]
pub struct Heartbeat(AtomicU64);

impl Default for Heartbeat {
    fn default() -> Self {
        Self::new()
    }
}

impl Heartbeat {
    /// Not a single turn yet.
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// One turn more. Called by the one thread that it watches.
    pub fn beat(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }

    /// The turns so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}
