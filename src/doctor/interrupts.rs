//! Interrupts: which ones reach the control core, and how urgent the threads are that serve the bus and the network.

use std::collections::BTreeMap;
use std::path::Path;

use super::host::{Host, Process, cpu_list, names_in, text_of};
use super::subject::Subject;
use super::{Check, FIX_SETUP, Finding};

/// Above the control thread (80), so that a cycle sees the newest frames; below the watchdog (90).
const CAN_PRIORITIES: std::ops::RangeInclusive<u32> = 81..=89;
/// Above what all other interrupts have (50); below the input threads (75) that wait for the packets.
const NETWORK_PRIORITIES: std::ops::RangeInclusive<u32> = 51..=79;
/// How many names a line may hold.
const NAMES_MAX: usize = 4;
/// `ARPHRD_CAN`.
const TYPE_CAN: &str = "280";

/// How often each device interrupt has reached one core so far: number -> (what it is, count).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters(BTreeMap<u32, (String, u64)>);

impl Counters {
    /// Reads them.
    #[must_use]
    pub fn read(host: &Host, core: usize) -> Self {
        let text = host.text("/proc/interrupts").unwrap_or_default();
        let mut lines = text.lines();
        let heading = format!("CPU{core}");
        let columns: Vec<&str> = lines.next().unwrap_or("").split_whitespace().collect();
        let Some(column) = columns.iter().position(|c| *c == heading) else {
            return Self::default();
        };
        let counts = lines.filter_map(|line| {
            // `NMI:`, `LOC:` and the like are the core's own; only devices have numbers.
            let (number, rest) = line.split_once(':')?;
            let words: Vec<&str> = rest.split_whitespace().collect();
            let name = words.get(columns.len()..)?.last()?;
            Some((
                number.trim().parse().ok()?,
                ((*name).to_owned(), words.get(column)?.parse().ok()?),
            ))
        });
        Self(counts.collect())
    }

    /// What came since an earlier reading, most frequent first.
    fn since(&self, earlier: &Self) -> Vec<(String, u64)> {
        let mut grown: Vec<(String, u64)> = self
            .0
            .iter()
            .filter_map(|(number, (name, count))| {
                let before = earlier.0.get(number).map_or(0, |(_, count)| *count);
                let grown = count.saturating_sub(before);
                (grown > 0).then(|| (format!("{name} ({number})"), grown))
            })
            .collect();
        grown.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        grown
    }
}

/// The kernel thread that serves one interrupt of one network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptThread {
    /// Its name: `irq/125-xhci_hcd`.
    pub name: String,
    /// Its SCHED_FIFO priority.
    pub priority: u32,
    /// The interface that it serves.
    pub interface: String,
    /// Is that one a bus?
    pub is_can: bool,
}

/// Device interrupts on the control core steal from its cycles.
#[must_use]
pub fn judge_placement(core: usize, cores: usize, before: &Counters, after: &Counters) -> Finding {
    let check = Check::should("irq_placement", "no interrupts on it");
    if cores < 2 {
        return check.told("one core");
    }
    if after.0.is_empty() {
        return check.unknown(format!("/proc/interrupts tells nothing about core {core}"));
    }
    let grown = after.since(before);
    if grown.is_empty() {
        return check.good(format!(
            "no device interrupted core {core} while we watched"
        ));
    }
    let names: Vec<String> = grown
        .iter()
        .take(NAMES_MAX)
        .map(|(name, count)| format!("{name} {count}x"))
        .collect();
    check.bad(
        format!(
            "core {core} was interrupted by {}{}",
            names.join(", "),
            if grown.len() > NAMES_MAX { ", ..." } else { "" }
        ),
        FIX_SETUP,
    )
}

/// The order that keeps frames and packets moving while everything is busy.
#[must_use]
pub fn judge_threads(threads: &[InterruptThread]) -> Finding {
    let check = Check::should("irq_priority", "urgency of bus and network");
    if threads.is_empty() {
        return check.told("interrupts have no threads here (no PREEMPT_RT, no threadirqs)");
    }
    let wanted = |thread: &&InterruptThread| {
        let range = if thread.is_can {
            CAN_PRIORITIES
        } else {
            NETWORK_PRIORITIES
        };
        !range.contains(&thread.priority)
    };
    let line = |thread: &InterruptThread| {
        format!(
            "{} {} at {}",
            thread.interface, thread.name, thread.priority
        )
    };
    let wrong: Vec<String> = threads.iter().filter(wanted).map(line).collect();
    if wrong.is_empty() {
        let all: Vec<String> = threads.iter().take(NAMES_MAX).map(line).collect();
        check.good(all.join(", "))
    } else {
        check.bad(
            format!("{} (bus 85, network 70 are right)", wrong.join(", ")),
            FIX_SETUP,
        )
    }
}

/// irqbalance moves interrupts about, also onto a core that somebody cleared, unless it is told otherwise.
#[must_use]
pub fn judge_irqbalance(is_running: bool, is_isolated: bool, is_banned: bool) -> Finding {
    let check = Check::should("irqbalance", "interrupts stay where they are");
    match (is_running, is_isolated, is_banned) {
        (false, ..) => check.good("irqbalance does not run"),
        (true, true, _) => check.good("irqbalance leaves isolated cores alone"),
        (true, _, true) => check.good("irqbalance is told to leave the control core alone"),
        (true, false, false) => {
            check.bad("irqbalance runs and may use the control core", FIX_SETUP)
        }
    }
}

/// The interrupts of the device behind an interface: those of its nearest ancestor that has any. For a USB adapter that is the host
/// controller, with everything else on it.
fn interrupts_of(host: &Host, interface: &str) -> Vec<u32> {
    let Some(device) = host.resolve(&format!("/sys/class/net/{interface}/device")) else {
        return Vec::new();
    };
    let of = |dir: &Path| -> Vec<u32> {
        let numbers = names_in(&dir.join("msi_irqs"));
        if numbers.is_empty() {
            let own = text_of(&dir.join("irq")).and_then(|t| t.parse().ok());
            own.filter(|irq| *irq != 0).into_iter().collect()
        } else {
            numbers.iter().filter_map(|n| n.parse().ok()).collect()
        }
    };
    device
        .ancestors()
        .map(of)
        .find(|irqs| !irqs.is_empty())
        .unwrap_or_default()
}

fn read_threads(host: &Host, processes: &[Process], subject: &Subject) -> Vec<InterruptThread> {
    let mut found: Vec<InterruptThread> = Vec::new();
    let mut interfaces: Vec<(bool, String)> = host
        .names("/sys/class/net")
        .into_iter()
        .map(|name| {
            let kind = host.text(&format!("/sys/class/net/{name}/type"));
            (kind.as_deref() == Some(TYPE_CAN), name)
        })
        .filter(|(is_can, name)| !is_can || subject.wants(name))
        .collect();
    // Buses first: where one controller serves a bus and a network card, the bus decides what is right.
    interfaces.sort_by_key(|(is_can, name)| (!is_can, name.clone()));
    for (is_can, interface) in interfaces {
        for irq in interrupts_of(host, &interface) {
            let prefix = format!("irq/{irq}-");
            for process in processes.iter().filter(|p| p.name.starts_with(&prefix)) {
                if found.iter().all(|thread| thread.name != process.name) {
                    found.push(InterruptThread {
                        name: process.name.clone(),
                        priority: process.rt_priority,
                        interface: interface.clone(),
                        is_can,
                    });
                }
            }
        }
    }
    found
}

fn is_banned(host: &Host, core: usize) -> bool {
    let drop_ins = "/etc/systemd/system/irqbalance.service.d";
    let texts = host
        .names(drop_ins)
        .into_iter()
        .map(|name| format!("{drop_ins}/{name}"))
        .chain(["/etc/default/irqbalance".to_owned()])
        .filter_map(|file| host.text(&file));
    texts
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .filter(|line| !line.trim_start().starts_with('#'))
        .filter_map(|line| {
            let list = line.split_once("IRQBALANCE_BANNED_CPULIST=")?.1.to_owned();
            Some(cpu_list(list.trim_matches('"')))
        })
        .any(|cores| cores.contains(&core))
}

pub(super) fn examine(
    host: &Host,
    core: usize,
    subject: &Subject,
    before: &Counters,
    after: &Counters,
) -> Vec<Finding> {
    let list = |name: &str| host.text(name).map(|t| cpu_list(&t)).unwrap_or_default();
    let cores = list("/sys/devices/system/cpu/online").len();
    let isolated = list("/sys/devices/system/cpu/isolated");
    let processes = host.processes();
    vec![
        judge_placement(core, cores, before, after),
        judge_threads(&read_threads(host, &processes, subject)),
        judge_irqbalance(
            processes.iter().any(|p| p.name == "irqbalance"),
            isolated.contains(&core),
            is_banned(host, core),
        ),
    ]
}
