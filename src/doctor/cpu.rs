//! The core that control runs on: whether it has it for itself, and how fast it wakes up.

use super::host::{Host, cpu_list};
use super::rights::Granted;
use super::{Check, FIX_SETUP, Finding};
use crate::rt::Refusal;

const CPU: &str = "/sys/devices/system/cpu";
const FIX_CMDLINE: &str =
    "add the line that `scripts/rt_host_setup --dry-run` prints to the kernel command line";

/// What is known about one core.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CoreFacts {
    /// The core.
    pub core: usize,
    /// How many cores there are.
    pub count: usize,
    /// Cores that the scheduler leaves alone.
    pub isolated: Vec<usize>,
    /// Cores without a periodic tick.
    pub nohz_full: Vec<usize>,
    /// Cores whose deferred kernel work runs elsewhere.
    pub rcu_nocbs: Vec<usize>,
    /// Hardware threads of the same core, itself included.
    pub siblings: Vec<usize>,
    /// Frequency governor; `None` where the kernel does not control the frequency.
    pub governor: Option<String>,
    /// What Intel and AMD processors are asked to prefer.
    pub preference: Option<String>,
    /// Name and wake-up latency in microseconds of the sleep states in use.
    pub sleep_states: Vec<(String, u64)>,
}

impl CoreFacts {
    /// Reads them.
    #[must_use]
    pub fn read(host: &Host, core: usize) -> Self {
        let list = |name: &str| host.text(name).map(|t| cpu_list(&t)).unwrap_or_default();
        let cpu = format!("{CPU}/cpu{core}");
        let cmdline = host.text("/proc/cmdline").unwrap_or_default();
        let rcu_nocbs = cmdline
            .split_whitespace()
            .find_map(|word| word.strip_prefix("rcu_nocbs="))
            .map(cpu_list)
            .unwrap_or_default();
        Self {
            core,
            count: list(&format!("{CPU}/online")).len(),
            isolated: list(&format!("{CPU}/isolated")),
            nohz_full: list(&format!("{CPU}/nohz_full")),
            rcu_nocbs,
            siblings: list(&format!("{cpu}/topology/thread_siblings_list")),
            governor: host.text(&format!("{cpu}/cpufreq/scaling_governor")),
            preference: host.text(&format!("{cpu}/cpufreq/energy_performance_preference")),
            sleep_states: read_sleep_states(host, &format!("{cpu}/cpuidle")),
        }
    }
}

fn read_sleep_states(host: &Host, folder: &str) -> Vec<(String, u64)> {
    host.names(folder)
        .iter()
        .filter(|state| host.number(&format!("{folder}/{state}/disable")) == Some(0))
        .filter_map(|state| {
            Some((
                host.text(&format!("{folder}/{state}/name"))?,
                host.number(&format!("{folder}/{state}/latency"))?,
            ))
        })
        .collect()
}

/// A core of its own.
#[must_use]
pub fn judge_isolation(facts: &CoreFacts) -> Finding {
    let check = Check::should("isolation", "control core set apart");
    let core = facts.core;
    if facts.count < 2 {
        return check.told("one core: everything shares it");
    }
    if facts.isolated.contains(&core) {
        return check.good(format!("core {core} is isolated"));
    }
    match facts.isolated.first() {
        Some(other) => check.bad(
            format!("control runs on core {core}, but core {other} is the isolated one"),
            format!("core = {other} in the plan's [control]"),
        ),
        None => check.bad(
            format!("core {core} is shared with everything else"),
            FIX_CMDLINE,
        ),
    }
}

/// Nor the tick, nor the kernel's own housekeeping.
#[must_use]
pub fn judge_quiet(facts: &CoreFacts) -> Finding {
    let check = Check::should("quiet_core", "kernel's own work kept off it");
    if facts.count < 2 {
        return check.told("one core");
    }
    let missing: Vec<String> = [
        ("nohz_full", &facts.nohz_full),
        ("rcu_nocbs", &facts.rcu_nocbs),
    ]
    .iter()
    .filter(|(_, cores)| !cores.contains(&facts.core))
    .map(|(name, _)| format!("{name}={}", facts.core))
    .collect();
    let value = if missing.is_empty() {
        "nohz_full, rcu_nocbs".to_owned()
    } else {
        format!("not: {}", missing.join(", "))
    };
    check.judge(missing.is_empty(), value, FIX_CMDLINE)
}

/// The other hardware thread of the same core takes half of it when it likes.
#[must_use]
pub fn judge_siblings(facts: &CoreFacts) -> Finding {
    let check = Check::should("smt", "core not shared with a sibling");
    let busy: Vec<String> = facts
        .siblings
        .iter()
        .filter(|cpu| **cpu != facts.core && !facts.isolated.contains(cpu))
        .map(ToString::to_string)
        .collect();
    if facts.siblings.is_empty() {
        return check.unknown("the kernel tells no siblings");
    }
    check.judge(
        busy.is_empty(),
        if busy.is_empty() {
            "no busy sibling".to_owned()
        } else {
            format!("hyper-threading with core {}", busy.join(", "))
        },
        "isolate the sibling as well, or nosmt on the kernel command line",
    )
}

/// A core that has slowed down needs milliseconds to be fast again.
#[must_use]
pub fn judge_frequency(facts: &CoreFacts) -> Finding {
    let check = Check::should("governor", "full speed");
    let Some(governor) = &facts.governor else {
        return check.told("the kernel does not set the frequency here");
    };
    let preference = facts.preference.as_deref();
    let value = match preference {
        Some(p) => format!("governor {governor}, preference {p}"),
        None => format!("governor {governor}"),
    };
    check.judge(
        governor == "performance" && matches!(preference, None | Some("performance")),
        value,
        FIX_SETUP,
    )
}

/// Sleep states are fine as long as telearm may ask for short ones while it runs.
#[must_use]
pub fn judge_sleep(facts: &CoreFacts, dma: &Result<(), Refusal>) -> Finding {
    let check = Check::should("sleep_states", "short sleep while it runs");
    let deepest = facts
        .sleep_states
        .iter()
        .max_by_key(|(_, latency)| *latency);
    let value = match deepest {
        None => "no sleep states".to_owned(),
        Some((name, latency)) => format!("deepest is {name}, {latency} us to wake up"),
    };
    match (deepest, dma) {
        (None, _) => check.good(value),
        (Some(_), Ok(())) => {
            check.good(format!("{value}; telearm holds /dev/cpu_dma_latency at 0"))
        }
        (Some(_), Err(refusal)) => check.bad(
            format!("{value}; /dev/cpu_dma_latency: {}", refusal.text),
            format!("{FIX_SETUP} (a device rule for the group realtime)"),
        ),
    }
}

pub(super) fn examine(host: &Host, core: usize, granted: &Granted) -> Vec<Finding> {
    let facts = CoreFacts::read(host, core);
    vec![
        judge_isolation(&facts),
        judge_quiet(&facts),
        judge_siblings(&facts),
        judge_frequency(&facts),
        judge_sleep(&facts, &granted.dma),
    ]
}
