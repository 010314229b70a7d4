//! What else moves pages about or interrupts every core: swap, page merging, balancing, lock-up detectors.

use super::host::{Host, chosen, cpu_list};
use super::rights::Granted;
use super::{Check, FIX_SETUP, Finding};

/// Swap is harmless to locked memory and deadly to the rest.
#[must_use]
pub fn judge_swap(swaps: Option<&str>, may_lock: bool) -> Finding {
    let check = Check::should("swap", "nothing swapped out");
    let Some(swaps) = swaps else {
        return check.unknown("/proc/swaps cannot be read");
    };
    let devices = swaps.lines().skip(1).count();
    match (devices, may_lock) {
        (0, _) => check.good("no swap"),
        (_, true) => check.good("there is swap; telearm's memory is locked"),
        (_, false) => check.bad(
            "there is swap, and telearm may not lock its memory",
            "allow locked memory (above), or sudo swapoff -a",
        ),
    }
}

/// Merging and moving pages behind a thread's back, with a fault when it comes to them next.
#[must_use]
pub fn judge_pages(huge: Option<&str>, ksm: Option<u64>, numa: Option<u64>) -> Finding {
    let check = Check::should("pages", "pages left where they are");
    let mut wrong = Vec::new();
    if huge.map(chosen) == Some("always") {
        wrong.push("transparent huge pages always");
    }
    if ksm.is_some_and(|v| v != 0) {
        wrong.push("page merging (ksm) on");
    }
    if numa.is_some_and(|v| v != 0) {
        wrong.push("numa_balancing on");
    }
    let value = if wrong.is_empty() {
        "no merging, no balancing".to_owned()
    } else {
        wrong.join(", ")
    };
    check.judge(wrong.is_empty(), value, FIX_SETUP)
}

/// The hard lock-up detector interrupts each core once in a while.
#[must_use]
pub fn judge_watchdog(enabled: Option<u64>, cores: Option<&str>, core: usize) -> Finding {
    let check = Check::should("nmi_watchdog", "no lock-up detector on it");
    let is_watched =
        enabled.is_some_and(|v| v != 0) && cores.is_none_or(|list| cpu_list(list).contains(&core));
    check.judge(
        !is_watched,
        if is_watched {
            format!("it interrupts core {core}")
        } else {
            "off".to_owned()
        },
        FIX_SETUP,
    )
}

pub(super) fn examine(host: &Host, core: usize, granted: &Granted) -> Vec<Finding> {
    vec![
        judge_swap(host.text("/proc/swaps").as_deref(), granted.lock.is_ok()),
        judge_pages(
            host.text("/sys/kernel/mm/transparent_hugepage/enabled")
                .as_deref(),
            host.number("/sys/kernel/mm/ksm/run"),
            host.number("/proc/sys/kernel/numa_balancing"),
        ),
        judge_watchdog(
            host.number("/proc/sys/kernel/nmi_watchdog"),
            host.text("/proc/sys/kernel/watchdog_cpumask").as_deref(),
            core,
        ),
    ]
}
