//! What this host allows a real-time process: a few facts, found by trying.

use std::fs;

use super::{Refusal, sched};
use crate::handoff::sys;

const FIX_LOCK: &str = "allow locked memory: `LimitMEMLOCK=infinity` in the unit, or a `memlock unlimited` line in /etc/security/limits.d";
/// As much as the program needs locked with some room.
const LOCK_PROBE_BYTES: usize = 64 * 1024 * 1024;

/// The facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preflight {
    /// Is this a PREEMPT_RT kernel?
    pub preempt_rt: bool,
    /// The kernel's own words: release and version.
    pub kernel: String,
    /// May this process have SCHED_FIFO with the priority that was probed?
    pub fifo: Result<(), Refusal>,
    /// May this process lock a fair amount of memory?
    pub lock: Result<(), Refusal>,
    /// How many cores may this process use?
    pub cpus: usize,
}

impl Preflight {
    /// Everything that `--require-rt` asks for?
    #[must_use]
    pub const fn is_real_time(&self) -> bool {
        self.preempt_rt && self.fifo.is_ok() && self.lock.is_ok()
    }
}

/// Finds out, by trying in a thread of its own. `priority` is the highest that will be needed.
#[must_use]
pub fn probe(priority: u8) -> Preflight {
    let version = fs::read_to_string("/proc/sys/kernel/version").unwrap_or_default();
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let realtime = fs::read_to_string("/sys/kernel/realtime").unwrap_or_default();
    Preflight {
        preempt_rt: is_preempt_rt(&version, &realtime),
        kernel: format!("{} {}", release.trim(), version.trim()),
        fifo: probe_fifo(priority),
        lock: probe_lock(),
        cpus: sched::cpu_count(),
    }
}

/// Both, because some real-time kernels lack the file and others the word.
fn is_preempt_rt(version: &str, realtime_file: &str) -> bool {
    realtime_file.trim() == "1" || version.split_whitespace().any(|word| word == "PREEMPT_RT")
}

fn probe_fifo(priority: u8) -> Result<(), Refusal> {
    let probe = std::thread::Builder::new()
        .name("fifo-probe".into())
        .spawn(move || {
            let wanted = sched::Wanted {
                name: "fifo-probe",
                policy: sched::Policy::Fifo(priority),
                cpu: None,
            };
            sched::apply(wanted).refusals.into_iter().next()
        });
    let refusal = match probe.map(std::thread::JoinHandle::join) {
        Ok(Ok(refusal)) => refusal,
        Ok(Err(_)) => Some(Refusal::from_errno(
            "a probe thread",
            libc::EFAULT,
            "report this: the probe panicked",
        )),
        Err(error) => Some(Refusal::from_io(
            "a probe thread",
            &error,
            "allow more threads (ulimit -u)",
        )),
    };
    refusal.map_or(Ok(()), Err)
}

fn probe_lock() -> Result<(), Refusal> {
    let what = || format!("locking {} MiB", LOCK_PROBE_BYTES / (1024 * 1024));
    #[expect(
        unsafe_code,
        reason = "a private mapping, so that nothing else gets locked or unlocked"
    )]
    // SAFETY: a fresh anonymous mapping that only this function knows; locked and unmapped with the address and length it was made with.
    let errno = unsafe {
        let mapping = libc::mmap(
            core::ptr::null_mut(),
            LOCK_PROBE_BYTES,
            libc::PROT_READ,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if mapping == libc::MAP_FAILED {
            return Err(Refusal::from_errno(what(), sys::errno(), FIX_LOCK));
        }
        let errno = if libc::mlock(mapping, LOCK_PROBE_BYTES) == 0 {
            0
        } else {
            sys::errno()
        };
        libc::munmap(mapping, LOCK_PROBE_BYTES);
        errno
    };
    if errno == 0 {
        Ok(())
    } else {
        Err(Refusal::from_errno(what(), errno, FIX_LOCK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both marks of a real-time kernel count alone; a kernel that only has PREEMPT or says that it *could* be RT does not.
    #[test]
    fn real_time_kernels_are_told_apart() {
        assert!(is_preempt_rt(
            "#1 SMP PREEMPT_RT Debian 6.1.192-1 (2026-01-01)",
            ""
        ));
        assert!(is_preempt_rt("#1 SMP", "1\n"));
        assert!(!is_preempt_rt("#1 SMP PREEMPT_DYNAMIC @0", "0\n"));
        assert!(!is_preempt_rt("#1 SMP PREEMPT Wed", ""));
    }

    /// The probe leaves the calling thread as it was, and its answers are answers: granted, or refused with a reason and a fix.
    #[test]
    fn probing_changes_nothing() {
        let before = (sched::policy(), sched::affinity());
        let facts = probe(80);
        assert_eq!((sched::policy(), sched::affinity()), before);
        assert!(!facts.kernel.trim().is_empty() && facts.cpus >= 1);
        for refusal in [facts.fifo, facts.lock].into_iter().filter_map(Result::err) {
            assert!(!refusal.text.is_empty() && !refusal.fix.is_empty());
        }
    }
}
