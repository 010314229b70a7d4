//! Policy, priority, core, name and timer slack of a thread: asked for, then read back, because what counts is what the kernel says.

use std::fmt;

use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
};

use super::Refusal;
use crate::handoff::sys;

const FIX_FIFO: &str = "allow real-time priorities: `LimitRTPRIO=95` in the unit, or an `rtprio` line in /etc/security/limits.d and a new log-in";
const FIX_RT_GROUP: &str = "this control group has no real-time budget (CONFIG_RT_GROUP_SCHED): run in the root group or set cpu.rt_runtime_us";
const FIX_AFFINITY: &str = "choose a core that is online and that this process may use (`taskset -p`, CPUAffinity=, cgroup cpuset)";
const FIX_SLACK: &str = "no fix known; cycles of a thread without SCHED_FIFO may be 50 us late";

/// How a thread is scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The ordinary, fair scheduler.
    Other,
    /// SCHED_FIFO with this priority, 1..=99, larger wins.
    Fifo(u8),
    /// Something else, by the kernel's number.
    Unknown(i32),
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other => f.write_str("SCHED_OTHER"),
            Self::Fifo(priority) => write!(f, "SCHED_FIFO {priority}"),
            Self::Unknown(number) => write!(f, "policy {number}"),
        }
    }
}

/// What a thread should get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The thread's name in `ps` and `top`; cut after 15 bytes by the kernel.
    pub name: &'static str,
    /// Policy and priority.
    pub policy: Policy,
    /// The one core to run on; `None` leaves the choice to the kernel.
    pub cpu: Option<usize>,
}

/// What a thread got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedReport {
    /// What was asked for.
    pub wanted: Wanted,
    /// Read back: policy and priority.
    pub policy: Policy,
    /// Read back: the cores that the thread may use, ascending.
    pub cpus: Vec<usize>,
    /// Read back: timer slack in nanoseconds, if the kernel tells.
    pub timer_slack_ns: Option<u64>,
    /// What was not granted.
    pub refusals: Vec<Refusal>,
}

impl SchedReport {
    /// Everything as asked?
    #[must_use]
    pub fn is_granted(&self) -> bool {
        self.refusals.is_empty()
    }
}

impl fmt::Display for SchedReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} on cores {:?}",
            self.wanted.name, self.policy, self.cpus
        )?;
        for refusal in &self.refusals {
            write!(f, "; refused {refusal}")?;
        }
        Ok(())
    }
}

/// Applies `wanted` to the calling thread and reads it back. Never fails: what was refused is in the report, and the thread runs anyway.
#[must_use]
pub fn apply(wanted: Wanted) -> SchedReport {
    let mut refusals = Vec::new();
    set_name(wanted.name);
    if let Some(cpu) = wanted.cpu {
        pin(cpu, &mut refusals);
    }
    set_policy(wanted, &mut refusals);
    // Even a thread without real-time rights must not be woken 50 us late on purpose. After the policy, because the kernel ignores this while
    // a thread is SCHED_FIFO (it then has no slack) and sets it anew when it ceases to be.
    if let Err(errno) = set_timer_slack_1_ns() {
        refusals.push(Refusal::from_errno("timer slack of 1 ns", errno, FIX_SLACK));
    }
    SchedReport {
        wanted,
        policy: policy(),
        cpus: affinity(),
        timer_slack_ns: timer_slack_ns(),
        refusals,
    }
}

/// Brings a helper thread back to SCHED_OTHER, which it must be even if a real-time thread started it: the policy is inherited.
#[must_use]
pub fn ensure_other(name: &'static str) -> SchedReport {
    apply(Wanted {
        name,
        policy: Policy::Other,
        cpu: None,
    })
}

/// The calling thread's policy and priority, from the kernel.
#[must_use]
pub fn policy() -> Policy {
    let mut param = libc::sched_param { sched_priority: 0 };
    #[expect(unsafe_code, reason = "no safe form")]
    // SAFETY: thread 0 is the caller; `param` is valid and writable.
    let number = unsafe {
        if libc::sched_getparam(0, &raw mut param) != 0 {
            return Policy::Unknown(-1);
        }
        libc::sched_getscheduler(0)
    };
    match (
        number & !libc::SCHED_RESET_ON_FORK,
        u8::try_from(param.sched_priority),
    ) {
        (libc::SCHED_OTHER, _) => Policy::Other,
        (libc::SCHED_FIFO, Ok(priority)) => Policy::Fifo(priority),
        (other, _) => Policy::Unknown(other),
    }
}

/// The cores that the calling thread may use, ascending, from the kernel.
#[must_use]
pub fn affinity() -> Vec<usize> {
    core_affinity::get_core_ids()
        .unwrap_or_default()
        .into_iter()
        .map(|core| core.id)
        .collect()
}

/// The number of cores that this process may use; 1 if unknown.
#[must_use]
pub fn cpu_count() -> usize {
    affinity().len().max(1)
}

fn pin(cpu: usize, refusals: &mut Vec<Refusal>) {
    let what = || format!("core {cpu}");
    // The crate indexes a fixed set with the number.
    if cpu >= usize::try_from(libc::CPU_SETSIZE).unwrap_or(0) {
        refusals.push(Refusal::from_errno(what(), libc::EINVAL, FIX_AFFINITY));
        return;
    }
    if !core_affinity::set_for_current(core_affinity::CoreId { id: cpu }) {
        refusals.push(Refusal::from_errno(what(), sys::errno(), FIX_AFFINITY));
    } else if affinity() != [cpu] {
        refusals.push(Refusal {
            what: what(),
            errno: 0,
            text: format!("got cores {:?}", affinity()),
            fix: FIX_AFFINITY,
        });
    }
}

fn set_policy(wanted: Wanted, refusals: &mut Vec<Refusal>) {
    let what = || format!("{} for `{}`", wanted.policy, wanted.name);
    let set = match wanted.policy {
        Policy::Fifo(priority) => set_fifo(priority),
        Policy::Other => set_other(),
        Policy::Unknown(_) => Err(libc::EINVAL),
    };
    match set {
        Err(errno) => {
            let fix = if errno == libc::EPERM && is_root() {
                FIX_RT_GROUP
            } else {
                FIX_FIFO
            };
            refusals.push(Refusal::from_errno(what(), errno, fix));
        }
        Ok(()) if policy() != wanted.policy => {
            refusals.push(Refusal {
                what: what(),
                errno: 0,
                text: format!("got {}", policy()),
                fix: FIX_FIFO,
            });
        }
        Ok(()) => {}
    }
}

fn set_fifo(priority: u8) -> Result<(), i32> {
    let value = ThreadPriorityValue::try_from(priority).map_err(|_| libc::EINVAL)?;
    thread_priority::set_thread_priority_and_policy(
        thread_priority::thread_native_id(),
        ThreadPriority::Crossplatform(value),
        ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo),
    )
    .map_err(|error| match error {
        thread_priority::Error::OS(errno) => errno,
        _ => libc::EINVAL,
    })
}

/// Not through the crate, which would also turn its priority into a nice value.
fn set_other() -> Result<(), i32> {
    let param = libc::sched_param { sched_priority: 0 };
    #[expect(unsafe_code, reason = "no safe form")]
    // SAFETY: thread 0 is the caller; `param` is valid.
    let rc = unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const param) };
    if rc == 0 { Ok(()) } else { Err(sys::errno()) }
}

fn set_name(name: &str) {
    let mut bytes = [0_u8; 16];
    for (to, from) in bytes.iter_mut().take(15).zip(name.bytes()) {
        *to = from;
    }
    #[expect(unsafe_code, reason = "no safe form for a running thread")]
    // SAFETY: sixteen bytes that end in a zero, which is all that this call reads.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, bytes.as_ptr());
    }
}

fn set_timer_slack_1_ns() -> Result<(), i32> {
    #[expect(unsafe_code, reason = "no safe form")]
    // SAFETY: takes a number, touches no memory of ours.
    let rc = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
    if rc == 0 { Ok(()) } else { Err(sys::errno()) }
}

/// Threads of real-time policy have no slack; the kernel then says 0.
fn timer_slack_ns() -> Option<u64> {
    #[expect(unsafe_code, reason = "no safe form")]
    // SAFETY: takes and touches no memory of ours.
    let rc = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
    u64::try_from(rc).ok()
}

/// Is the effective user root?
#[must_use]
pub(super) fn is_root() -> bool {
    #[expect(unsafe_code, reason = "no safe form")]
    // SAFETY: always succeeds, touches no memory.
    let uid = unsafe { libc::geteuid() };
    uid == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_thread<R: Send>(f: impl FnOnce() -> R + Send) -> R {
        std::thread::scope(|scope| scope.spawn(f).join().unwrap())
    }

    /// What is reported is what the kernel says, whether or not this user may have real-time priorities; a refusal says how to get them.
    #[test]
    fn fifo_is_granted_or_explained() {
        in_thread(|| {
            let cpu = affinity()[0];
            let report = apply(Wanted {
                name: "telearm-test",
                policy: Policy::Fifo(1),
                cpu: Some(cpu),
            });
            assert_eq!(report.cpus, [cpu]);
            assert_eq!(report.policy, policy());
            if report.is_granted() {
                assert_eq!(policy(), Policy::Fifo(1));
            } else {
                assert_eq!(policy(), Policy::Other);
                assert!(
                    report.refusals[0].what.contains("SCHED_FIFO 1")
                        && !report.refusals[0].fix.is_empty()
                );
            }
            let name = std::fs::read_to_string("/proc/thread-self/comm").unwrap();
            assert_eq!(name.trim_end(), "telearm-test");
        });
    }

    /// A helper thread of a real-time thread inherits its policy, and comes back from it.
    #[test]
    fn a_helper_comes_back_to_other() {
        in_thread(|| {
            let may = apply(Wanted {
                name: "parent",
                policy: Policy::Fifo(1),
                cpu: None,
            })
            .is_granted();
            let (inherited, report) =
                in_thread(|| (policy(), ensure_other("a name that is too long")));
            assert_eq!(inherited, if may { Policy::Fifo(1) } else { Policy::Other });
            assert!(report.is_granted(), "{report}");
            assert_eq!(
                (report.policy, report.timer_slack_ns),
                (Policy::Other, Some(1))
            );
        });
    }

    /// A core that does not exist and a priority out of range are refusals, not panics.
    #[test]
    fn nonsense_is_refused() {
        in_thread(|| {
            for cpu in [1023, 1024, usize::MAX] {
                let report = apply(Wanted {
                    name: "nonsense",
                    policy: Policy::Other,
                    cpu: Some(cpu),
                });
                assert_eq!(report.refusals.len(), 1, "{report}");
                assert_eq!(report.refusals[0].errno, libc::EINVAL);
            }
            for policy in [Policy::Fifo(0), Policy::Fifo(100), Policy::Unknown(77)] {
                assert!(
                    !apply(Wanted {
                        name: "nonsense",
                        policy,
                        cpu: None
                    })
                    .is_granted()
                );
            }
            assert_eq!(policy(), Policy::Other);
        });
    }
}
