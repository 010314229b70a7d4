//! The wait of the control cycle: sleep to an absolute deadline, unless somebody calls.
//!
//! The epoch is a word of its own and not the latch word: a repeated stop bit changes the latch's generation with every packet, and must
//! not wake control with every packet. The waiter's order is *epoch, then latch, then wait*; the tripper's is *latch, then epoch, then
//! wake*. So either the waiter sees the latch, or it sees (or the kernel compares) an epoch that has moved: no wake-up is lost.

#[cfg(not(loom))]
use super::sync::{AtomicU32, Ordering};
#[cfg(not(loom))]
use super::sys::{self, FutexWait};
use super::{SourceId, StopLatch, StopReason};
#[cfg(not(loom))]
use crate::time::Stamp;

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// The deadline has come.
    Deadline,
    /// Somebody called before it.
    Early,
}

/// A futex word that counts calls.
#[cfg(not(loom))]
#[derive(Debug, Default)]
pub struct WakeEpoch {
    epoch: AtomicU32,
}

#[cfg(not(loom))]
impl WakeEpoch {
    /// Nobody has called yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The calls so far (wrapping): read it before looking at what a call may announce, then hand it to [`WakeEpoch::wait_until`].
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// Sleeps until `deadline`, or until somebody has called since `seen` was read; returns at once if that has happened already. Signals
    /// neither end nor lengthen the sleep. A call and a deadline at the same time count as the call.
    pub fn wait_until(&self, seen: u32, deadline: Stamp) -> Woken {
        // Each turn ends by a call, a signal or the deadline; the deadline bounds them all.
        loop {
            if self.epoch() != seen {
                return Woken::Early;
            }
            match sys::futex_wait(&self.epoch, seen, deadline) {
                FutexWait::LookAgain => {}
                FutexWait::TimedOut => {
                    return if self.epoch() == seen {
                        Woken::Deadline
                    } else {
                        Woken::Early
                    };
                }
                FutexWait::Unusable => {
                    // No futex (a sandbox): keep the rate, lose only the early wake.
                    sys::sleep_until(deadline);
                    return if self.epoch() == seen {
                        Woken::Deadline
                    } else {
                        Woken::Early
                    };
                }
            }
        }
    }

    /// Calls: whoever waits, or is about to, returns early.
    pub fn bump_and_wake(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
        sys::futex_wake_all(&self.epoch);
    }
}

#[cfg(loom)]
pub use modelled::WakeEpoch;

/// The kernel's half of a futex as the model checker can see it: under the bucket lock the kernel compares the word and queues the waiter,
/// and a wake takes the same lock. A modelled wait has no deadline, so that a lost wake-up shows as a deadlock.
#[cfg(loom)]
#[expect(
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "exists in models only"
)]
#[allow(missing_docs, reason = "same interface as the real one")]
mod modelled {
    use super::super::sync::{AtomicU32, Ordering};
    use super::Woken;
    use crate::time::Stamp;

    #[derive(Debug)]
    pub struct WakeEpoch {
        epoch: AtomicU32,
        bucket: loom::sync::Mutex<()>,
        queue: loom::sync::Condvar,
    }

    impl Default for WakeEpoch {
        fn default() -> Self {
            Self::new()
        }
    }

    impl WakeEpoch {
        pub fn new() -> Self {
            Self {
                epoch: AtomicU32::new(0),
                bucket: loom::sync::Mutex::new(()),
                queue: loom::sync::Condvar::new(),
            }
        }

        pub fn epoch(&self) -> u32 {
            self.epoch.load(Ordering::SeqCst)
        }

        pub fn wait_until(&self, seen: u32, _deadline: Stamp) -> Woken {
            let mut bucket = self.bucket.lock().unwrap();
            while self.epoch() == seen {
                bucket = self.queue.wait(bucket).unwrap();
            }
            Woken::Early
        }

        pub fn bump_and_wake(&self) {
            self.epoch.fetch_add(1, Ordering::SeqCst);
            drop(self.bucket.lock().unwrap());
            self.queue.notify_all();
        }
    }
}

/// The latch and the wake epoch of one control thread, tripped together.
#[derive(Debug, Default)]
pub struct StopLine {
    /// The sticky stop.
    pub latch: StopLatch,
    /// What control sleeps on.
    pub wake: WakeEpoch,
}

impl StopLine {
    /// A clear line.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Latches the stop and wakes control, which then runs its stop path at once. Only the change from clear to tripped wakes: a device
    /// that repeats its stop bit at 1 kHz does not make control spin. True for that change.
    pub fn trip(&self, reason: StopReason, source: SourceId) -> bool {
        let changed = self.latch.trip(reason, source);
        if changed {
            self.wake.bump_and_wake();
        }
        changed
    }
}
