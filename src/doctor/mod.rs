//! `telearm doctor`: is this computer ready to drive an arm in real time? Measured, judged, and with a line that helps.
//!
//! | module | looks at |
//! |---|---|
//! | [`kernel`] | the kernel, its clock and timers, virtual machines |
//! | [`rights`] | what the kernel grants to this process |
//! | [`cpu`] | the control thread's core: isolation, siblings, frequency, sleep states |
//! | [`interrupts`] | which interrupts reach that core, and how urgent those of the bus are |
//! | [`memory`] | swap, page merging, watchdogs |
//! | [`power`] | battery, power profile, throttling |
//! | [`can`] | the buses: link, bitrate, queue, adapter |
//! | [`network`] | ports, lost packets, Wi-Fi, the addresses to type into a device |
//! | [`live`] | loops run on the real core, beside a bare one |
//!
//! Each check is two functions: a reader that takes facts from a [`Host`], and `judge_*`, which makes a [`Finding`] of facts and nothing
//! else. A host is rooted at a path, so that tests put a made-up computer there. Nothing here changes the computer.
//!
//! Counters (lost packets, interrupts, throttling) are read twice, with the live test or a second of waiting between, and judged by their
//! growth: what went wrong last week is no reason to refuse today.

pub mod can;
pub mod cpu;
pub mod host;
pub mod interrupts;
pub mod kernel;
pub mod live;
pub mod memory;
pub mod network;
pub mod power;
mod render;
pub mod rights;
mod subject;

#[cfg(test)]
mod tests;

use std::thread;
use std::time::Duration;

use serde::Serialize;

pub use host::{Commands, Host};
pub use live::{LiveOutcome, LiveTest};
pub use subject::{CanWanted, ListenWanted, Subject};

/// How much a failed check matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// The arm will not be driven well, or not at all.
    Must,
    /// It will work; some cycles will be late, or a fault will be harder to survive.
    Should,
    /// For the reader.
    Info,
}

/// What became of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Good,
    /// Not so; the finding has a fix.
    Bad,
    /// Could not be found out; the value says why.
    Unknown,
    /// Nothing to judge.
    Told,
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Short name that does not change between versions, for programs.
    pub id: &'static str,
    /// How much it matters.
    pub group: Group,
    /// What was looked at, in words.
    pub name: String,
    /// What became of it.
    pub verdict: Verdict,
    /// What was seen.
    pub value: String,
    /// One line that helps, where the verdict is [`Verdict::Bad`].
    pub fix: Option<String>,
}

/// A check that still wants its verdict.
#[derive(Debug, Clone)]
struct Check {
    id: &'static str,
    group: Group,
    name: String,
}

impl Check {
    fn must(id: &'static str, name: impl Into<String>) -> Self {
        Self::new(id, Group::Must, name)
    }

    fn should(id: &'static str, name: impl Into<String>) -> Self {
        Self::new(id, Group::Should, name)
    }

    fn info(id: &'static str, name: impl Into<String>) -> Self {
        Self::new(id, Group::Info, name)
    }

    fn new(id: &'static str, group: Group, name: impl Into<String>) -> Self {
        let name = name.into();
        Self { id, group, name }
    }

    fn good(self, value: impl Into<String>) -> Finding {
        self.end(Verdict::Good, value, None)
    }

    fn bad(self, value: impl Into<String>, fix: impl Into<String>) -> Finding {
        self.end(Verdict::Bad, value, Some(fix.into()))
    }

    fn unknown(self, why: impl Into<String>) -> Finding {
        self.end(Verdict::Unknown, why, None)
    }

    fn told(self, value: impl Into<String>) -> Finding {
        self.end(Verdict::Told, value, None)
    }

    /// Good if so, otherwise bad with this fix.
    fn judge(self, is_good: bool, value: impl Into<String>, fix: impl Into<String>) -> Finding {
        if is_good {
            self.good(value)
        } else {
            self.bad(value, fix)
        }
    }

    fn end(self, verdict: Verdict, value: impl Into<String>, fix: Option<String>) -> Finding {
        Finding {
            id: self.id,
            group: self.group,
            name: self.name,
            verdict,
            value: value.into(),
            fix,
        }
    }
}

/// All findings of one examination.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// In the order in which they were made; sorted by group when rendered.
    pub findings: Vec<Finding>,
    /// What the live test measured, if it ran.
    pub live: Option<LiveOutcome>,
}

impl Report {
    /// Is every must met? A must that could not be found out counts as met: it is shown, and the run itself will tell.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self
            .findings
            .iter()
            .any(|f| f.group == Group::Must && f.verdict == Verdict::Bad)
    }

    /// The report for people: grouped, aligned, with a fix under each line that needs one.
    #[must_use]
    pub fn text(&self) -> String {
        render::text(self)
    }
}

/// How long counters are watched when no live test fills the time.
const WATCH: Duration = Duration::from_secs(1);

/// Examines a host for a subject. `live` is the live test, if it is to run; it takes as long as it takes.
#[must_use]
pub fn examine(
    host: &Host,
    rights: &rights::Granted,
    subject: &Subject,
    live: Option<&dyn LiveTest>,
) -> Report {
    let core = subject.control_core();
    let before = Counters::read(host, core);
    let outcome = live.map(|test| test.run(core, subject.rate_hz));
    if outcome.is_none() {
        thread::sleep(WATCH);
    }
    let after = Counters::read(host, core);

    let mut findings = rights::examine(host, rights);
    findings.extend(kernel::examine(host, &before.kernel, &after.kernel));
    findings.extend(cpu::examine(host, core, rights));
    findings.extend(interrupts::examine(
        host,
        core,
        subject,
        &before.interrupts,
        &after.interrupts,
    ));
    findings.extend(memory::examine(host, core, rights));
    findings.extend(power::examine(host, before.throttled, after.throttled));
    findings.extend(can::examine(host, subject));
    findings.extend(network::examine(
        host,
        subject,
        before.udp_lost,
        after.udp_lost,
    ));
    findings.push(judge_build(cfg!(debug_assertions)));
    let live = match outcome {
        None => None,
        Some(Ok(outcome)) => {
            findings.push(live::judge(&outcome));
            Some(outcome)
        }
        Some(Err(why)) => {
            findings.push(Check::should("live", "live test").unknown(why));
            None
        }
    };
    Report { findings, live }
}

/// Everything that is judged by its growth.
struct Counters {
    kernel: kernel::Counters,
    interrupts: interrupts::Counters,
    throttled: Option<u64>,
    udp_lost: Option<u64>,
}

impl Counters {
    fn read(host: &Host, core: usize) -> Self {
        Self {
            kernel: kernel::Counters::read(host),
            interrupts: interrupts::Counters::read(host, core),
            throttled: power::read_throttled(host),
            udp_lost: network::read_udp_lost(host),
        }
    }
}

/// A debug build keeps its rate on a fast machine and none of its latencies.
fn judge_build(is_debug: bool) -> Finding {
    Check::should("build", "this program").judge(
        !is_debug,
        if is_debug {
            "debug build"
        } else {
            "release build"
        },
        "cargo build --release",
    )
}

/// What helps with most of what this module finds.
const FIX_SETUP: &str = "sudo scripts/rt_host_setup";
