//! The one door to atomics, so that a model checker can take their place.

#[cfg(not(loom))]
pub(super) use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
