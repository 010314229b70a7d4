//! Memory that is there before it is needed: locked, touched, and counted when it was not.

use std::fs::File;
use std::io::{self, Write};

use super::Refusal;
use crate::handoff::sys;

const FIX_LOCK: &str = "allow locked memory: `LimitMEMLOCK=infinity` in the unit, or a `memlock unlimited` line in /etc/security/limits.d and a new log-in";
const FIX_DMA: &str = "let this user open /dev/cpu_dma_latency (udev rule in rt-config; `PrivateDevices=yes` in a unit hides it)";

/// How much stack a real-time thread touches beforehand. Give such a thread at least twice of this.
pub const STACK_PREFAULT_BYTES: usize = 256 * 1024;
const PAGE_BYTES: usize = 4096;

/// Locks all memory of the process, present and future. Call it before threads are started: their stacks are then locked and present when they
/// start, at the price of their full size, so give each a modest one.
///
/// # Errors
/// The limit on locked memory, with the way to raise it. Everything then still runs, with page faults.
pub fn lock_all() -> Result<(), Refusal> {
    #[expect(unsafe_code, reason = "no safe form")]
    // SAFETY: takes flags, touches no memory of ours.
    let rc = unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) };
    if rc == 0 {
        Ok(())
    } else {
        Err(Refusal::from_errno(
            "locking all memory",
            sys::errno(),
            FIX_LOCK,
        ))
    }
}

/// Undoes [`lock_all`].
pub fn unlock_all() {
    #[expect(unsafe_code, reason = "no safe form")]
    // SAFETY: touches no memory of ours.
    unsafe {
        libc::munlockall();
    }
}

/// Touches [`STACK_PREFAULT_BYTES`] of the calling thread's stack, so that no later call within that depth faults.
#[inline(never)]
pub fn prefault_stack() {
    let mut stack = [0_u8; STACK_PREFAULT_BYTES];
    for page in stack.chunks_mut(PAGE_BYTES) {
        if let Some(byte) = page.first_mut() {
            *byte = 1;
        }
        std::hint::black_box(page);
    }
}

/// Keeps freed memory inside the process and fills the calling thread's pool with `bytes` of touched memory. Only a cushion for code that
/// allocates although it should not; the control cycle does not.
pub fn prefault_heap(bytes: usize) {
    #[cfg(target_env = "gnu")]
    {
        #[expect(unsafe_code, reason = "no safe form")]
        // SAFETY: sets two parameters of the allocator; -1 means never to give memory back, 0 means no separate mappings.
        unsafe {
            libc::mallopt(libc::M_TRIM_THRESHOLD, -1);
            libc::mallopt(libc::M_MMAP_MAX, 0);
        }
    }
    let mut pool = vec![0_u8; bytes];
    for page in pool.chunks_mut(PAGE_BYTES) {
        if let Some(byte) = page.first_mut() {
            *byte = 1;
        }
    }
    std::hint::black_box(&pool);
}

/// Keeps the cores out of deep sleep states for as long as it lives.
#[derive(Debug)]
pub struct DmaLatency {
    /// The kernel withdraws the request when this is closed.
    _file: File,
}

impl DmaLatency {
    /// Asks the kernel for a wake-up latency of zero on all cores.
    ///
    /// # Errors
    /// The device is missing or not ours to open, with a fix.
    pub fn hold() -> Result<Self, Refusal> {
        let open = || -> io::Result<File> {
            let mut file = File::options().write(true).open("/dev/cpu_dma_latency")?;
            file.write_all(&0_i32.to_ne_bytes())?;
            Ok(file)
        };
        open()
            .map(|file| Self { _file: file })
            .map_err(|error| Refusal::from_io("holding /dev/cpu_dma_latency at 0", &error, FIX_DMA))
    }
}

/// Page faults and involuntary switches of one thread since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Disturbances {
    /// Faults served from memory.
    pub minor_faults: u64,
    /// Faults served from a disk.
    pub major_faults: u64,
    /// Times that the thread was switched out although it wanted to run.
    pub involuntary_switches: u64,
}

impl Disturbances {
    /// Of the calling thread, up to now. One system call, no heap.
    #[must_use]
    pub fn of_this_thread() -> Self {
        #[expect(unsafe_code, reason = "no safe form")]
        // SAFETY: all-zero is a valid rusage, and the call writes a whole one.
        let usage = unsafe {
            let mut usage: libc::rusage = core::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
            usage
        };
        Self {
            minor_faults: usage.ru_minflt.unsigned_abs(),
            major_faults: usage.ru_majflt.unsigned_abs(),
            involuntary_switches: usage.ru_nivcsw.unsigned_abs(),
        }
    }

    /// What was added since `earlier`.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
        }
    }
}

/// Locked memory is a property of the whole process: tests that lock it, or that count page faults, take turns.
#[cfg(test)]
pub(super) static TESTS_TAKE_TURNS: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[cfg(test)]
mod tests {
    use super::*;

    fn my_turn() -> std::sync::MutexGuard<'static, ()> {
        TESTS_TAKE_TURNS
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    #[inline(never)]
    fn deep() {
        let stack = [1_u8; STACK_PREFAULT_BYTES / 2];
        std::hint::black_box(&stack);
    }

    fn faults_of(f: impl FnOnce()) -> u64 {
        let before = Disturbances::of_this_thread();
        f();
        Disturbances::of_this_thread().since(before).minor_faults
    }

    /// A deep call faults in a fresh thread and does not in one that has touched its stack: the counter counts and the touching helps.
    #[test]
    fn a_touched_stack_does_not_fault() {
        let _turn = my_turn();
        // So large that the C library has none of it left over, touched, from another thread.
        let in_new_stack = |f: fn() -> u64| {
            std::thread::Builder::new()
                .stack_size(64 << 20)
                .spawn(f)
                .unwrap()
                .join()
                .unwrap()
        };
        let fresh = in_new_stack(|| faults_of(deep));
        assert!(fresh >= 8, "the counter sees faults: {fresh}");
        let touched = in_new_stack(|| {
            prefault_stack();
            faults_of(deep)
        });
        assert_eq!(touched, 0);
    }

    /// Locked memory is locked by the kernel's account, or the refusal names the limit.
    #[test]
    fn memory_is_locked_or_explained() {
        let _turn = my_turn();
        match lock_all() {
            Ok(()) => {
                let status = std::fs::read_to_string("/proc/self/status").unwrap();
                unlock_all();
                let locked = status
                    .lines()
                    .find_map(|line| line.strip_prefix("VmLck:"))
                    .unwrap();
                let kib: u64 = locked.trim().trim_end_matches(" kB").parse().unwrap();
                assert!(kib > 0, "{locked}");
            }
            Err(refusal) => assert!(
                refusal.errno != 0 && refusal.fix.contains("MEMLOCK"),
                "{refusal}"
            ),
        }
    }

    /// The C-state request is held or explained.
    #[test]
    fn dma_latency_is_held_or_explained() {
        if let Err(refusal) = DmaLatency::hold() {
            assert!(!refusal.text.is_empty() && refusal.fix.contains("cpu_dma_latency"));
        }
    }
}
