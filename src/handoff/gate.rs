//! Who may send: the gate between control, which sends motion frames, and the watchdog, which may take the arm away from it for good.
//!
//! ```text
//! control                                  watchdog, when control hangs
//!   sending = 1                              trip the latch
//!   latch clear and not taken over?          taken over = 1
//!     no:  sending = 0, nothing is sent      swap control's descriptor for /dev/null
//!     yes: write the group                   sleep until sending = 0, at most 1 ms
//!          sending = 0                       send the hold frames
//! ```
//! Either control sees the latch, or the watchdog sees `sending` (a store and a load on each side, with a full fence between). The three
//! parts answer three ways of hanging. Control between two groups: its next look at the latch refuses. Control preempted inside a
//! write: the wait lets it finish, so the watchdog must *sleep*, not spin, on a machine with one core. Control stuck between its look
//! and the write for longer than the wait: the write ends in `/dev/null`. What is left is a thread that the kernel itself holds inside
//! one send for longer than the wait.
//!
//! While the stop is latched but nobody has taken over, control still sends its braking ramp ([`ControlGate::begin_braking`]).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use super::StopLatch;
use super::sync::{AtomicBool, Ordering, fence};
use super::sys;
use crate::time::Span;

/// Between two looks of the watchdog at `sending`.
const QUIET_POLL: Span = Span::from_us(20);

/// Why a group of frames must not be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TxRefused {
    /// The stop is latched: only braking and hold frames go out.
    Tripped,
    /// The watchdog has the arm, until the process ends.
    TakenOver,
}

#[derive(Debug)]
struct Shared {
    sending: AtomicBool,
    taken_over: AtomicBool,
}

/// Control's side of the gate. One permit at a time: each `begin` borrows it mutably.
#[derive(Debug)]
pub struct ControlGate(Arc<Shared>);

/// The watchdog's side of the gate.
#[derive(Debug)]
pub struct WatchdogGate(Arc<Shared>);

/// The right to hand one group of frames to the kernel; dropping it ends the group. Keep it no longer than the write.
#[derive(Debug)]
#[must_use = "without the permit the write is not covered"]
pub struct SendPermit<'a>(&'a Shared);

/// Makes a gate that is open.
#[must_use]
pub fn tx_gate() -> (ControlGate, WatchdogGate) {
    let shared = Arc::new(Shared {
        sending: AtomicBool::new(false),
        taken_over: AtomicBool::new(false),
    });
    (ControlGate(Arc::clone(&shared)), WatchdogGate(shared))
}

impl ControlGate {
    /// Asks to send a group that may contain motion frames.
    ///
    /// # Errors
    /// Nothing may be sent: the stop is latched, or the watchdog has taken over.
    pub fn begin(&mut self, latch: &StopLatch) -> Result<SendPermit<'_>, TxRefused> {
        let permit = self.begin_braking()?;
        // A refusal drops the permit, which clears the flag.
        if latch.is_tripped() {
            Err(TxRefused::Tripped)
        } else {
            Ok(permit)
        }
    }

    /// Asks to send a group without motion frames: the braking ramp of a stop, then hold frames.
    ///
    /// # Errors
    /// Nothing may be sent any more: the watchdog has taken over.
    pub fn begin_braking(&mut self) -> Result<SendPermit<'_>, TxRefused> {
        self.0.sending.store(true, Ordering::SeqCst);
        let permit = SendPermit(&self.0);
        // Pairs with the fence in `is_quiet`. The SeqCst accesses alone would do; the fence makes the same promise in the form that the
        // model checker understands (it takes a SeqCst access for acquire-release, but a SeqCst fence for what it is).
        fence(Ordering::SeqCst);
        if self.is_taken_over() {
            Err(TxRefused::TakenOver)
        } else {
            Ok(permit)
        }
    }

    /// Has the watchdog taken the arm? True for ever after.
    #[must_use]
    pub fn is_taken_over(&self) -> bool {
        self.0.taken_over.load(Ordering::SeqCst)
    }
}

impl Drop for SendPermit<'_> {
    fn drop(&mut self) {
        self.0.sending.store(false, Ordering::SeqCst);
    }
}

impl WatchdogGate {
    /// Takes the arm for good. The latch must have been tripped before; [`Revoker::revoke`] and [`WatchdogGate::wait_quiet`] come next.
    pub fn take_over(&self) {
        self.0.taken_over.store(true, Ordering::SeqCst);
    }

    /// Has the arm been taken?
    #[must_use]
    pub fn is_taken_over(&self) -> bool {
        self.0.taken_over.load(Ordering::SeqCst)
    }

    /// Is control outside every write? Once true after [`WatchdogGate::take_over`], it stays so.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        fence(Ordering::SeqCst);
        !self.0.sending.load(Ordering::SeqCst)
    }

    /// Sleeps until control is outside every write, at most `max`. False if it still was inside: then the revoked descriptor has to do.
    pub fn wait_quiet(&self, max: Span) -> bool {
        let deadline = sys::now() + max;
        self.wait_quiet_while(|| {
            let more = sys::now() < deadline;
            if more {
                sys::sleep(QUIET_POLL);
            }
            more
        })
    }

    /// The wait itself: looks, and asks `more` between two looks, which also passes the time. For a model or a fake clock.
    pub fn wait_quiet_while(&self, mut more: impl FnMut() -> bool) -> bool {
        while !self.is_quiet() {
            if !more() {
                return self.is_quiet();
            }
        }
        true
    }
}

/// Takes descriptors away from their users by putting `/dev/null` in their place, in one atomic step of the kernel.
#[derive(Debug)]
pub struct Revoker {
    null: OwnedFd,
}

impl Revoker {
    /// Opens `/dev/null` now, so that the takeover needs no new descriptor.
    ///
    /// # Errors
    /// As opening a file.
    pub fn new() -> io::Result<Self> {
        let null = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/null")?;
        Ok(Self { null: null.into() })
    }

    /// From now on whatever is written to `fd` goes nowhere: `write` succeeds, `send` and `sendmmsg` fail with `ENOTSOCK`; `read` says
    /// end of file. A write that the kernel has begun is not undone. `fd` must be a descriptor that its owner keeps open; it stays valid and may be closed.
    ///
    /// # Errors
    /// `EBADF` if `fd` is out of range, `EBUSY` in a race with an `open`: try again.
    pub fn revoke(&self, fd: RawFd) -> io::Result<()> {
        #[expect(
            unsafe_code,
            reason = "replacing a descriptor that another object owns is the whole point"
        )]
        // SAFETY: dup3 touches no memory. The number stays open, so the owner's later close is still correct; that its writes go
        // nowhere is what the caller wants.
        let rc = unsafe { libc::dup3(self.null.as_raw_fd(), fd, libc::O_CLOEXEC) };
        if rc < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }
}
