//! The kernel, its clock and timers, and whether there is another system below it.

use super::host::Host;
use super::{Check, Finding};

/// The model-specific register that counts system management interrupts on Intel processors.
const MSR_SMI_COUNT: u64 = 0x34;

/// What grows while we watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Time that the system below us took, in clock ticks of 10 ms.
    pub steal_ticks: Option<u64>,
    /// System management interrupts; readable by root only, with the `msr` driver.
    pub smi: Option<u64>,
}

impl Counters {
    /// Reads them.
    #[must_use]
    pub fn read(host: &Host) -> Self {
        Self {
            steal_ticks: host
                .text("/proc/stat")
                .and_then(|t| t.lines().next().and_then(steal_of)),
            smi: read_smi(host),
        }
    }
}

/// The eighth figure of `cpu user nice system idle iowait irq softirq steal`.
fn steal_of(line: &str) -> Option<u64> {
    line.strip_prefix("cpu ")?
        .split_whitespace()
        .nth(7)?
        .parse()
        .ok()
}

fn read_smi(host: &Host) -> Option<u64> {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::open(host.path("/dev/cpu/0/msr")).ok()?;
    let mut raw = [0; 8];
    file.read_exact_at(&mut raw, MSR_SMI_COUNT).ok()?;
    Some(u64::from_le_bytes(raw))
}

/// Both marks count alone: some real-time kernels lack the file, others the word.
#[must_use]
pub fn judge_rt_kernel(
    release: Option<&str>,
    version: Option<&str>,
    realtime_file: Option<&str>,
) -> Finding {
    let check = Check::should("rt_kernel", "PREEMPT_RT kernel");
    let is_rt = realtime_file == Some("1")
        || version.is_some_and(|v| v.split_whitespace().any(|word| word == "PREEMPT_RT"));
    let preemption = version
        .and_then(|v| {
            v.split_whitespace()
                .find(|word| word.starts_with("PREEMPT"))
        })
        .unwrap_or("no preemption");
    check.judge(
        is_rt,
        format!(
            "{} {}",
            release.unwrap_or("unknown release"),
            if is_rt { "PREEMPT_RT" } else { preemption }
        ),
        "install a PREEMPT_RT kernel (Debian: linux-image-rt-amd64), see rt-config/kernel-cmdline.md",
    )
}

/// Timers that can fire at any nanosecond, not only at the tick.
#[must_use]
pub fn judge_timers(timer_list: Option<&str>) -> Finding {
    let check = Check::must("timers", "high-resolution timers");
    let Some(text) = timer_list else {
        return check.unknown("only root may read /proc/timer_list");
    };
    let resolution = text
        .lines()
        .find_map(|line| line.trim().strip_prefix(".resolution:"))
        .map(str::trim);
    check.judge(
        resolution == Some("1 nsecs"),
        resolution.unwrap_or("no resolution told"),
        "remove highres=off from the kernel command line, or boot a kernel with CONFIG_HIGH_RES_TIMERS",
    )
}

/// A clock that is read without a system call.
#[must_use]
pub fn judge_clocksource(current: Option<&str>, available: Option<&str>) -> Finding {
    let check = Check::should("clocksource", "clock source");
    let Some(current) = current else {
        return check.unknown("/sys/devices/system/clocksource cannot be read");
    };
    let has_tsc = available.is_some_and(|list| list.split_whitespace().any(|c| c == "tsc"));
    check.judge(
        matches!(current, "tsc" | "kvm-clock" | "arch_sys_counter"),
        current,
        if has_tsc {
            "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource"
        } else {
            "dmesg | grep -i tsc tells why the kernel gave the fast clock up; if it is wrong: tsc=reliable on the kernel command line"
        },
    )
}

/// Another system below ours delays us without our knowing; how much it took while we watched is known.
#[must_use]
pub fn judge_virtual(cpuinfo: Option<&str>, stolen_ticks: Option<u64>) -> Finding {
    let check = Check::should("virtual", "own hardware");
    let Some(cpuinfo) = cpuinfo else {
        return check.unknown("/proc/cpuinfo cannot be read");
    };
    let is_virtual = cpuinfo
        .lines()
        .filter(|line| line.starts_with("flags"))
        .any(|line| line.split_whitespace().any(|flag| flag == "hypervisor"));
    if !is_virtual {
        return check.good("yes");
    }
    let stolen = stolen_ticks.map_or_else(String::new, |t| {
        format!(
            ", {} ms taken from us while we watched",
            t.saturating_mul(10)
        )
    });
    check.bad(
        format!("virtual machine{stolen}"),
        "drive arms from a computer of its own: a virtual machine stops for milliseconds and cannot know it",
    )
}

/// System management interrupts stop every core, unseen by the kernel.
#[must_use]
pub fn judge_smi(before: Option<u64>, after: Option<u64>) -> Finding {
    let check = Check::should("smi", "firmware interrupts");
    match (before, after) {
        (Some(before), Some(after)) => {
            let count = after.saturating_sub(before);
            check.judge(
                count == 0,
                format!("{count} while we watched"),
                "firmware setup: switch off power-saving profiles and USB legacy support",
            )
        }
        _ => check.unknown("not counted: needs root, an Intel processor and `modprobe msr`"),
    }
}

pub(super) fn examine(host: &Host, before: &Counters, after: &Counters) -> Vec<Finding> {
    let text = |name: &str| host.text(name);
    let clock = "/sys/devices/system/clocksource/clocksource0";
    let stolen = before
        .steal_ticks
        .zip(after.steal_ticks)
        .map(|(before, after)| after.saturating_sub(before));
    vec![
        judge_rt_kernel(
            text("/proc/sys/kernel/osrelease").as_deref(),
            text("/proc/sys/kernel/version").as_deref(),
            text("/sys/kernel/realtime").as_deref(),
        ),
        judge_timers(text("/proc/timer_list").as_deref()),
        judge_clocksource(
            text(&format!("{clock}/current_clocksource")).as_deref(),
            text(&format!("{clock}/available_clocksource")).as_deref(),
        ),
        judge_virtual(text("/proc/cpuinfo").as_deref(), stolen),
        judge_smi(before.smi, after.smi),
    ]
}
