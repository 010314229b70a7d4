//! The few system calls that the hand-over itself needs: clock, futex, a short sleep.
#![cfg_attr(
    loom,
    allow(dead_code, reason = "the models replace the futex and never sleep")
)]

use crate::time::{Span, Stamp};

/// Nanoseconds of one second.
const NS_PER_S: u64 = 1_000_000_000;

/// Reads `CLOCK_MONOTONIC`.
#[must_use]
pub(crate) fn now() -> Stamp {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// Reads a clock of the kernel that cannot fail: one that every supported kernel has.
#[must_use]
pub(crate) fn read_clock(clock: libc::clockid_t) -> Stamp {
    let mut ts = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    #[expect(
        unsafe_code,
        reason = "clock_gettime has no safe form in the standard library"
    )]
    // SAFETY: `ts` is a valid, writable timespec for the whole call.
    unsafe {
        libc::clock_gettime(clock, &raw mut ts);
    }
    Stamp::from_ns(
        ts.tv_sec
            .unsigned_abs()
            .saturating_mul(NS_PER_S)
            .saturating_add(ts.tv_nsec.unsigned_abs()),
    )
}

/// A stamp as the kernel wants it. Both parts fit: a `u64` of nanoseconds is 584 years.
#[must_use]
pub(crate) const fn timespec(at: Stamp) -> libc::timespec {
    libc::timespec {
        tv_sec: (at.as_ns() / NS_PER_S).cast_signed(),
        tv_nsec: (at.as_ns() % NS_PER_S).cast_signed(),
    }
}

/// Sleeps until `deadline` of `CLOCK_MONOTONIC`; a signal does not shorten the sleep.
pub(crate) fn sleep_until(deadline: Stamp) {
    let ts = timespec(deadline);
    loop {
        #[expect(
            unsafe_code,
            reason = "absolute sleeps have no safe form in the standard library"
        )]
        // SAFETY: `ts` is a valid timespec; an absolute sleep writes no remainder, so null is allowed.
        let rc = unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &raw const ts,
                core::ptr::null_mut(),
            )
        };
        if rc != libc::EINTR {
            return;
        }
    }
}

/// Sleeps for `span`.
pub(crate) fn sleep(span: Span) {
    sleep_until(now() + span);
}

/// How one futex wait ended.
#[cfg(not(loom))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FutexWait {
    /// Woken, interrupted by a signal, or the word had already changed: look again.
    LookAgain,
    /// The deadline passed.
    TimedOut,
    /// The kernel refuses the call itself; waiting again would spin.
    Unusable,
}

/// Waits while `*word == seen`, at the latest until `deadline` of `CLOCK_MONOTONIC`.
#[cfg(not(loom))]
#[must_use]
pub(super) fn futex_wait(
    word: &core::sync::atomic::AtomicU32,
    seen: u32,
    deadline: Stamp,
) -> FutexWait {
    let ts = timespec(deadline);
    #[expect(unsafe_code, reason = "futex has no safe form")]
    // SAFETY: the word outlives the call and is four-byte aligned; `ts` is valid; the second address is ignored by this operation.
    // FUTEX_WAIT_BITSET takes an absolute time, of CLOCK_MONOTONIC as FUTEX_CLOCK_REALTIME is not set.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
            seen,
            &raw const ts,
            core::ptr::null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        )
    };
    if rc == 0 {
        return FutexWait::LookAgain;
    }
    match errno() {
        libc::EAGAIN | libc::EINTR => FutexWait::LookAgain,
        libc::ETIMEDOUT => FutexWait::TimedOut,
        _ => FutexWait::Unusable,
    }
}

/// Wakes every thread that waits on `word`.
#[cfg(not(loom))]
pub(super) fn futex_wake_all(word: &core::sync::atomic::AtomicU32) {
    #[expect(unsafe_code, reason = "futex has no safe form")]
    // SAFETY: the word outlives the call; waking reads nothing through it and takes no further pointer.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            i32::MAX,
        );
    }
}

/// The calling thread's last error number.
#[must_use]
pub(crate) fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}
