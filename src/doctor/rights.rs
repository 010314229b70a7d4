//! What the kernel grants to this process: priorities, locked memory, wake-up latency.

use super::host::{Host, cpu_list};
use super::{Check, FIX_SETUP, Finding};
use crate::rt::memory::DmaLatency;
use crate::rt::{Refusal, preflight};

/// The highest priority that telearm asks for: the watchdog's.
pub const PRIORITY: u8 = 90;

/// What was granted when it was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// SCHED_FIFO with [`PRIORITY`].
    pub fifo: Result<(), Refusal>,
    /// A fair amount of locked memory.
    pub lock: Result<(), Refusal>,
    /// No deep sleep of the cores while telearm runs.
    pub dma: Result<(), Refusal>,
}

impl Granted {
    /// Tries, in a thread of its own and for a moment only.
    #[must_use]
    pub fn probe() -> Self {
        let facts = preflight::probe(PRIORITY);
        Self {
            fifo: facts.fifo,
            lock: facts.lock,
            dma: DmaLatency::hold().map(drop),
        }
    }
}

/// Real-time time that a control group may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBudget {
    /// No such accounting, the usual case.
    None,
    /// Microseconds per period of this process's group; 0 refuses every real-time thread.
    Microseconds(i64),
}

/// Priorities: granted, or refused with what else is known about the reason.
#[must_use]
pub fn judge_fifo(fifo: &Result<(), Refusal>, limit: Option<&str>, budget: GroupBudget) -> Finding {
    let check = Check::must("fifo", "real-time priorities");
    match fifo {
        Ok(()) => check.good(format!("SCHED_FIFO {PRIORITY} granted")),
        Err(_) if budget == GroupBudget::Microseconds(0) => check.bad(
            "refused: this control group has a real-time budget of 0 (CONFIG_RT_GROUP_SCHED)",
            "boot a kernel without CONFIG_RT_GROUP_SCHED, or raise cpu.rt_runtime_us of the group and of all above it",
        ),
        Err(refusal) => check.bad(
            format!(
                "SCHED_FIFO {PRIORITY} refused: {}; limit of this login: {}",
                refusal.text,
                limit.unwrap_or("unknown")
            ),
            format!("{FIX_SETUP}, then log out and in again (over SSH only with UsePAM yes)"),
        ),
    }
}

/// Locked memory.
#[must_use]
pub fn judge_lock(lock: &Result<(), Refusal>, limit: Option<&str>) -> Finding {
    let check = Check::must("mlock", "locked memory");
    match lock {
        Ok(()) => check.good("granted"),
        Err(refusal) => check.bad(
            format!(
                "refused: {}; limit of this login: {}",
                refusal.text,
                limit.map_or("unknown".to_owned(), |l| format!("{l} bytes"))
            ),
            format!("{FIX_SETUP}, then log out and in again (over SSH only with UsePAM yes)"),
        ),
    }
}

/// The kernel's net under spinning real-time threads: `runtime_us` of each `period_us`, -1 for no net.
#[must_use]
pub fn judge_throttling(runtime_us: Option<i64>, any_isolated: bool) -> Finding {
    let check = Check::should("throttling", "net under spinning threads");
    match runtime_us {
        None => check.unknown("/proc/sys/kernel/sched_rt_runtime_us cannot be read"),
        Some(-1) if any_isolated => check.good("off (with an isolated core)"),
        Some(-1) => check.bad(
            "off: a thread that spins freezes this computer",
            "sudo sysctl kernel.sched_rt_runtime_us=950000",
        ),
        Some(us) => check.judge(
            us >= 800_000,
            format!("real-time threads may use {} % of a core", us / 10_000),
            "sudo sysctl kernel.sched_rt_runtime_us=950000",
        ),
    }
}

/// `sched_rt_runtime_us` and the rest of the facts, from the host.
pub(super) fn examine(host: &Host, granted: &Granted) -> Vec<Finding> {
    let limits = host.text("/proc/self/limits").unwrap_or_default();
    let runtime = host
        .text("/proc/sys/kernel/sched_rt_runtime_us")
        .and_then(|t| t.parse().ok());
    let isolated = host
        .text("/sys/devices/system/cpu/isolated")
        .is_some_and(|list| !cpu_list(&list).is_empty());
    vec![
        judge_fifo(
            &granted.fifo,
            soft_limit(&limits, "Max realtime priority"),
            read_budget(host),
        ),
        judge_lock(&granted.lock, soft_limit(&limits, "Max locked memory")),
        judge_throttling(runtime, isolated),
    ]
}

/// The soft limit of a line of `/proc/self/limits`.
fn soft_limit<'a>(limits: &'a str, name: &str) -> Option<&'a str> {
    limits
        .lines()
        .find_map(|line| line.strip_prefix(name))?
        .split_whitespace()
        .next()
}

/// Only the old control groups have a budget that can be read: `N:cpu,cpuacct:/path` in `/proc/self/cgroup`.
fn read_budget(host: &Host) -> GroupBudget {
    let groups = host.text("/proc/self/cgroup").unwrap_or_default();
    groups
        .lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            controllers.split(',').any(|c| c == "cpu").then_some(())?;
            let folder = format!("/sys/fs/cgroup/{controllers}{path}");
            host.text(&format!("{folder}/cpu.rt_runtime_us"))?
                .parse()
                .ok()
        })
        .next()
        .map_or(GroupBudget::None, GroupBudget::Microseconds)
}
