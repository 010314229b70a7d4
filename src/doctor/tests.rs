//! A made-up laptop that is tuned in every respect; then one thing is broken at a time.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::unwrap_used
)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::live::{Quantiles, judge};
use super::rights::{Granted, GroupBudget, judge_fifo, judge_throttling};
use super::*;
use crate::rt::Refusal;

/// Core of the control thread on the made-up laptop.
const CORE: usize = 3;
const LEFT: &str = "sys/devices/pci0000:00/0000:00:14.0/usb1/1-2";
const RIGHT: &str = "sys/devices/pci0000:00/0000:00:14.0/usb1/1-3";
const ETHERNET: &str = "sys/devices/pci0000:00/0000:00:1f.6";
const WIFI: &str = "sys/devices/pci0000:00/0000:00:14.3";

/// Something done to a link as `ip` tells it.
type Change = fn(&mut Value);

struct Laptop {
    dir: TempDir,
    commands: BTreeMap<String, String>,
    subject: Subject,
    granted: Granted,
}

impl Laptop {
    /// Everything as it should be: two Pipers on two adapters, an isolated core, a real-time kernel, mains.
    fn tuned() -> Self {
        let can = |interface: &str, arm: &str| CanWanted {
            interface: interface.into(),
            bitrate: 1_000_000,
            arm: arm.into(),
        };
        let laptop = Self {
            dir: tempfile::tempdir().unwrap(),
            commands: BTreeMap::from([
                (
                    "ip -d -s -j link show".to_owned(),
                    json!([link("can_left"), link("can_right")]).to_string(),
                ),
                ("ip -j addr show".to_owned(), addresses().to_string()),
                (
                    "iw dev wlan0 get power_save".to_owned(),
                    "Power save: off\n".to_owned(),
                ),
            ]),
            subject: Subject {
                core: Some(CORE),
                allowed: vec![0, 1, 2],
                rate_hz: 200,
                can: Some(vec![can("can_left", "left"), can("can_right", "right")]),
                listen: vec![ListenWanted {
                    operator: "hand".into(),
                    port: 8888,
                    only_local: false,
                }],
            },
            granted: Granted {
                fifo: Ok(()),
                lock: Ok(()),
                dma: Ok(()),
            },
        };
        for (path, text) in FILES {
            laptop.write(path, text);
        }
        laptop.write("dev/cpu/0/msr", &"\0".repeat(64));
        for (device, interface) in [(LEFT, "can_left"), (RIGHT, "can_right")] {
            laptop.adapter(device, interface);
        }
        laptop.card(ETHERNET, "eth0");
        laptop.card(WIFI, "wlan0");
        laptop.write(&format!("{WIFI}/net/wlan0/phy80211/name"), "phy0");
        laptop.write("sys/devices/pci0000:00/0000:00:14.0/msi_irqs/125", "msi");
        laptop.write(&format!("{ETHERNET}/msi_irqs/126"), "msi");
        laptop.write(&format!("{WIFI}/irq"), "127");
        laptop.process(41, "irq/125-xhci_hcd", 85);
        laptop.process(42, "irq/126-eth0", 70);
        laptop.process(43, "irq/127-iwlwifi", 70);
        laptop.process(44, "irq/9-acpi", 50);
        laptop.process(900, "Web Content (1)", 0);
        laptop
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn remove(&self, path: &str) {
        fs::remove_file(self.dir.path().join(path)).unwrap();
    }

    /// A USB adapter as `/sys` shows it.
    fn adapter(&self, device: &str, interface: &str) {
        let name = device.rsplit('/').next().unwrap();
        let usb_interface = format!("{device}/{name}:1.0");
        self.write(&format!("{device}/idVendor"), "1d50\n");
        self.write(&format!("{device}/serial"), "00420031\n");
        self.write(&format!("{device}/speed"), "480\n");
        self.write(&format!("{device}/power/control"), "on\n");
        self.write("sys/bus/usb/drivers/gs_usb/bind", "");
        self.link(
            &format!("{usb_interface}/driver"),
            "sys/bus/usb/drivers/gs_usb",
        );
        self.net(&usb_interface, interface, "280");
    }

    fn card(&self, device: &str, interface: &str) {
        self.net(device, interface, "1");
    }

    fn net(&self, device: &str, interface: &str, kind: &str) {
        let folder = format!("{device}/net/{interface}");
        self.write(&format!("{folder}/type"), kind);
        self.write(&format!("{folder}/operstate"), "up\n");
        self.link(&format!("{folder}/device"), device);
        self.link(&format!("sys/class/net/{interface}"), &folder);
    }

    fn link(&self, from: &str, to: &str) {
        let from = self.dir.path().join(from);
        fs::create_dir_all(from.parent().unwrap()).unwrap();
        symlink(self.dir.path().join(to), from).unwrap();
    }

    fn process(&self, pid: u32, name: &str, rt_priority: u32) {
        // Fields 3 to 39 do not matter here.
        let between = "0 ".repeat(36);
        self.write(
            &format!("proc/{pid}/stat"),
            &format!("{pid} ({name}) S {between}{rt_priority} 1 0\n"),
        );
    }

    /// Answers of `ip link` with something changed.
    fn change_link(&mut self, interface: &str, change: impl Fn(&mut Value)) {
        let mut links: Vec<Value> =
            serde_json::from_str(&self.commands["ip -d -s -j link show"]).unwrap();
        let link = links.iter_mut().find(|l| l["ifname"] == interface).unwrap();
        change(link);
        self.commands
            .insert("ip -d -s -j link show".to_owned(), json!(links).to_string());
    }

    fn host(&self) -> Host {
        Host::made_up(
            self.dir.path().to_owned(),
            Commands::Canned(self.commands.clone()),
        )
    }

    /// The report, with `during` done while counters are watched.
    fn examine_while(&self, during: impl Fn(&Self)) -> Report {
        struct During<'a, F>(&'a Laptop, F);
        impl<F: Fn(&Laptop)> LiveTest for During<'_, F> {
            fn run(&self, core: usize, rate_hz: u32) -> Result<LiveOutcome, String> {
                (self.1)(self.0);
                Ok(outcome(core, rate_hz, 20.0, 15.0))
            }
        }
        examine(
            &self.host(),
            &self.granted,
            &self.subject,
            Some(&During(self, during)),
        )
    }

    fn examine(&self) -> Report {
        self.examine_while(|_| ())
    }
}

const FILES: &[(&str, &str)] = &[
    ("proc/sys/kernel/osrelease", "6.12.0-rt-amd64\n"),
    ("proc/sys/kernel/version", "#1 SMP PREEMPT_RT Debian\n"),
    ("sys/kernel/realtime", "1\n"),
    (
        "proc/timer_list",
        "cpu: 0\n clock 0:\n  .resolution: 1 nsecs\n",
    ),
    (
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
        "tsc\n",
    ),
    (
        "sys/devices/system/clocksource/clocksource0/available_clocksource",
        "tsc hpet acpi_pm\n",
    ),
    ("proc/cpuinfo", "processor : 0\nflags : fpu vme\n"),
    ("proc/stat", "cpu  1 2 3 4 5 6 7 0 0 0\n"),
    (
        "proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units\n\
         Max locked memory         unlimited            unlimited            bytes\n\
         Max realtime priority     95                   95\n",
    ),
    ("proc/self/cgroup", "0::/user.slice\n"),
    ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
    (
        "proc/cmdline",
        "quiet isolcpus=managed_irq,domain,3 nohz_full=3 rcu_nocbs=3\n",
    ),
    ("sys/devices/system/cpu/online", "0-3\n"),
    ("sys/devices/system/cpu/isolated", "3\n"),
    ("sys/devices/system/cpu/nohz_full", "3\n"),
    (
        "sys/devices/system/cpu/cpu3/topology/thread_siblings_list",
        "3\n",
    ),
    (
        "sys/devices/system/cpu/cpu3/cpufreq/scaling_governor",
        "performance\n",
    ),
    (
        "sys/devices/system/cpu/cpu3/cpufreq/energy_performance_preference",
        "performance\n",
    ),
    ("sys/devices/system/cpu/cpu3/cpuidle/state0/name", "POLL\n"),
    ("sys/devices/system/cpu/cpu3/cpuidle/state0/latency", "0\n"),
    ("sys/devices/system/cpu/cpu3/cpuidle/state0/disable", "0\n"),
    ("sys/devices/system/cpu/cpu3/cpuidle/state1/name", "C6\n"),
    (
        "sys/devices/system/cpu/cpu3/cpuidle/state1/latency",
        "133\n",
    ),
    ("sys/devices/system/cpu/cpu3/cpuidle/state1/disable", "0\n"),
    (
        "sys/devices/system/cpu/cpu3/thermal_throttle/core_throttle_count",
        "17\n",
    ),
    ("proc/interrupts", INTERRUPTS),
    ("proc/swaps", "Filename Type Size Used Priority\n"),
    (
        "sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never\n",
    ),
    ("sys/kernel/mm/ksm/run", "0\n"),
    ("proc/sys/kernel/numa_balancing", "0\n"),
    ("proc/sys/kernel/nmi_watchdog", "0\n"),
    ("sys/class/power_supply/AC/type", "Mains\n"),
    ("sys/class/power_supply/AC/online", "1\n"),
    ("sys/class/power_supply/BAT0/type", "Battery\n"),
    ("sys/firmware/acpi/platform_profile", "performance\n"),
    (
        "sys/firmware/acpi/platform_profile_choices",
        "low-power balanced performance\n",
    ),
    (
        "proc/net/snmp",
        "Ip: Forwarding\nIp: 1\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdp: 9 8 7 6 5\n",
    ),
    ("proc/net/udp", UDP_FREE),
];

const INTERRUPTS: &str = "            CPU0       CPU1       CPU2       CPU3
 125:       9000          0          0         12  PCI-MSI xhci_hcd
 126:         10          0          0          0  PCI-MSI eth0
 LOC:      10000      10000      10000        700  Local timer interrupts
";
/// The same a second later: only the timer and another core went on.
const INTERRUPTS_LATER: &str = "            CPU0       CPU1       CPU2       CPU3
 125:       9900          0          0         12  PCI-MSI xhci_hcd
 126:         10          0          0          0  PCI-MSI eth0
 LOC:      11000      11000      11000        900  Local timer interrupts
";
const INTERRUPTS_HIT: &str = "            CPU0       CPU1       CPU2       CPU3
 125:       9900          0          0         15  PCI-MSI xhci_hcd
 126:         10          0          0          0  PCI-MSI eth0
";
const UDP_FREE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
  1: 00000000:14E9 00000000:0000 07 00000000:00000000 00:00000000 00000000   0        0 555 2 0 0
";
/// Port 8888 is 22B8.
const UDP_TAKEN: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
  1: 0100007F:22B8 00000000:0000 07 00000000:00000000 00:00000000 00000000   0        0 777 2 0 0
";

/// A healthy bus as `ip -d -s -j link show` tells it.
fn link(name: &str) -> Value {
    json!({
        "ifname": name, "flags": ["NOARP", "UP", "LOWER_UP", "ECHO"], "mtu": 16, "qdisc": "pfifo", "txqlen": 16,
        "linkinfo": {
            "info_kind": "can",
            "info_data": {
                "ctrlmode": ["BERR-REPORTING"], "state": "ERROR-ACTIVE", "berr_counter": {"tx": 0, "rx": 0},
                "restart_ms": 100, "bittiming": {"bitrate": 1_000_000}
            },
            "info_xstats": {"restarts": 0, "bus_error": 0, "bus_off": 0}
        }
    })
}

fn addresses() -> Value {
    json!([
        {"ifname": "lo", "addr_info": [{"family": "inet", "local": "127.0.0.1", "scope": "host"}]},
        {"ifname": "wlan0", "addr_info": [
            {"family": "inet", "local": "192.168.1.20", "scope": "global"},
            {"family": "inet6", "local": "fe80::1", "scope": "link"}
        ]}
    ])
}

fn outcome(core: usize, rate_hz: u32, ours_us: f64, bare_us: f64) -> LiveOutcome {
    let quantiles = |p999_us: f64| Quantiles {
        count: 2000,
        p50_us: p999_us / 3.0,
        p99_us: p999_us / 2.0,
        p999_us,
        max_us: p999_us * 2.0,
    };
    LiveOutcome {
        core,
        rate_hz,
        ours: quantiles(ours_us),
        what: "made up",
        bare: quantiles(bare_us),
        missed: 0,
        notes: Vec::new(),
    }
}

fn refusal() -> Refusal {
    Refusal::from_errno("made up", 1, "made up")
}

/// The ids of bad findings, each once. The build is left out: these tests are one themselves.
fn bad(report: &Report) -> Vec<&'static str> {
    let mut ids: Vec<_> = report
        .findings
        .iter()
        .filter(|f| f.verdict == Verdict::Bad && f.id != "build")
        .map(|f| f.id)
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

fn find<'a>(report: &'a Report, id: &str) -> &'a Finding {
    report.findings.iter().find(|f| f.id == id).unwrap()
}

/// Guards: on a computer that is right in every respect nothing is complained about and nothing is unknown.
#[test]
fn a_tuned_laptop_is_good_throughout() {
    let laptop = Laptop::tuned();
    let report = laptop.examine_while(|l| l.write("proc/interrupts", INTERRUPTS_LATER));
    let complaints: Vec<_> = report
        .findings
        .iter()
        .filter(|f| matches!(f.verdict, Verdict::Bad | Verdict::Unknown) && f.id != "build")
        .collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
    assert!(report.is_ready());
    assert!(report.findings.len() > 25, "{}", report.findings.len());
    // What has two channels to be looked at was looked at twice.
    let links = report.findings.iter().filter(|f| f.id == "can_link");
    assert_eq!(links.count(), 2);
}

/// Guards: every check that reads a file can fail, and one wrong thing makes one finding bad and no other.
#[test]
fn each_wrong_file_is_found() {
    let cpu3 = "sys/devices/system/cpu/cpu3";
    let cases: &[(&str, &str, &str)] = &[
        (
            "proc/timer_list",
            "  .resolution: 4000000 nsecs\n",
            "timers",
        ),
        (
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            "hpet\n",
            "clocksource",
        ),
        ("proc/cpuinfo", "flags : fpu hypervisor vme\n", "virtual"),
        (
            "proc/sys/kernel/sched_rt_runtime_us",
            "100000\n",
            "throttling",
        ),
        ("sys/devices/system/cpu/nohz_full", "1\n", "quiet_core"),
        ("proc/cmdline", "quiet rcu_nocbs=1-2\n", "quiet_core"),
        (
            &format!("{cpu3}/topology/thread_siblings_list"),
            "1,3\n",
            "smt",
        ),
        (
            &format!("{cpu3}/cpufreq/scaling_governor"),
            "powersave\n",
            "governor",
        ),
        (
            &format!("{cpu3}/cpufreq/energy_performance_preference"),
            "balance_power\n",
            "governor",
        ),
        (
            "sys/kernel/mm/transparent_hugepage/enabled",
            "[always] madvise never\n",
            "pages",
        ),
        ("sys/kernel/mm/ksm/run", "1\n", "pages"),
        ("proc/sys/kernel/numa_balancing", "1\n", "pages"),
        ("proc/sys/kernel/nmi_watchdog", "1\n", "nmi_watchdog"),
        ("sys/class/power_supply/AC/online", "0\n", "mains"),
        (
            "sys/firmware/acpi/platform_profile",
            "low-power\n",
            "power_profile",
        ),
        ("proc/net/udp", UDP_TAKEN, "port"),
        ("proc/41/stat", "41 (irq/125-xhci_hcd) S 0 0", ""),
        (&format!("{LEFT}/power/control"), "auto\n", "can_adapter"),
        (&format!("{RIGHT}/speed"), "12\n", "can_adapter"),
    ];
    for (path, text, id) in cases {
        let laptop = Laptop::tuned();
        laptop.write(path, text);
        let expected: &[&str] = if id.is_empty() { &[] } else { &[id] };
        assert_eq!(bad(&laptop.examine()), expected, "{path} = {text}");
    }
}

/// Guards: a kernel is real-time by either of its marks; without both it is named for what it is.
#[test]
fn kernels_are_told_apart() {
    let laptop = Laptop::tuned();
    laptop.remove("sys/kernel/realtime");
    assert_eq!(bad(&laptop.examine()), [""; 0]);
    laptop.write("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC @0\n");
    let report = laptop.examine();
    assert_eq!(bad(&report), ["rt_kernel"]);
    assert!(find(&report, "rt_kernel").value.contains("PREEMPT_DYNAMIC"));
    laptop.write("sys/kernel/realtime", "1\n");
    assert_eq!(bad(&laptop.examine()), [""; 0]);
}

/// Guards: an isolated core is no use if control runs on another one, and the fix says which key to set.
#[test]
fn the_isolated_core_must_be_the_one_in_use() {
    let mut laptop = Laptop::tuned();
    laptop.subject.core = None;
    let report = laptop.examine();
    let finding = find(&report, "isolation");
    assert_eq!(finding.verdict, Verdict::Bad);
    assert!(finding.value.contains("core 2") && finding.value.contains("core 3"));
    assert!(finding.fix.as_ref().unwrap().contains("core = 3"));

    let laptop = Laptop::tuned();
    laptop.write("sys/devices/system/cpu/isolated", "\n");
    assert!(bad(&laptop.examine()).contains(&"isolation"));

    // With one core there is nothing to set apart, and nothing to complain about.
    let mut laptop = Laptop::tuned();
    laptop.subject.core = Some(0);
    laptop.write("sys/devices/system/cpu/online", "0\n");
    laptop.write("sys/devices/system/cpu/isolated", "\n");
    let report = laptop.examine();
    for id in ["isolation", "quiet_core", "irq_placement"] {
        assert_eq!(find(&report, id).verdict, Verdict::Told, "{id}");
    }
}

/// Guards: counters are judged by their growth, so that old trouble is not held against today, and new trouble is.
#[test]
fn counters_are_judged_by_growth() {
    let laptop = Laptop::tuned();
    let report = laptop.examine_while(|l| l.write("proc/interrupts", INTERRUPTS_HIT));
    assert_eq!(bad(&report), ["irq_placement"]);
    assert!(
        find(&report, "irq_placement")
            .value
            .contains("xhci_hcd (125) 3x"),
        "{}",
        find(&report, "irq_placement").value
    );
    let report = laptop.examine_while(|l| {
        l.write(
            "proc/net/snmp",
            "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdp: 9 8 7 6 8\n",
        );
    });
    assert_eq!(bad(&report), ["udp_lost"]);
    let heat = "sys/devices/system/cpu/cpu3/thermal_throttle/core_throttle_count";
    let report = laptop.examine_while(|l| l.write(heat, "19\n"));
    assert_eq!(bad(&report), ["throttled"]);
    let report = laptop.examine_while(|l| {
        let mut raw = vec![0_u8; 64];
        raw[0x34] = 2;
        fs::write(l.dir.path().join("dev/cpu/0/msr"), raw).unwrap();
    });
    assert_eq!(bad(&report), ["smi"]);
}

/// Guards: the bus is urgent, the network less so; a stranger's interrupts are nobody's business.
#[test]
fn interrupt_threads_have_an_order() {
    for (pid, name, priority, is_bad) in [
        (41, "irq/125-xhci_hcd", 50, true),
        (41, "irq/125-xhci_hcd", 90, true),
        (42, "irq/126-eth0", 50, true),
        (42, "irq/126-eth0", 85, true),
        (44, "irq/9-acpi", 10, false),
    ] {
        let laptop = Laptop::tuned();
        laptop.process(pid, name, priority);
        let expected: &[&str] = if is_bad { &["irq_priority"] } else { &[] };
        assert_eq!(bad(&laptop.examine()), expected, "{name} {priority}");
    }
}

/// Guards: irqbalance is a complaint only where it may touch the control core.
#[test]
fn irqbalance_may_run_if_told_off() {
    let laptop = Laptop::tuned();
    laptop.process(77, "irqbalance", 0);
    assert_eq!(bad(&laptop.examine()), [""; 0]);
    laptop.write("sys/devices/system/cpu/isolated", "\n");
    assert_eq!(bad(&laptop.examine()), ["irqbalance", "isolation"]);
    let drop_in = "etc/systemd/system/irqbalance.service.d/telearm.conf";
    laptop.write(
        drop_in,
        "[Service]\n#Environment=IRQBALANCE_BANNED_CPULIST=3\n",
    );
    assert_eq!(bad(&laptop.examine()), ["irqbalance", "isolation"]);
    laptop.write(
        drop_in,
        "[Service]\nEnvironment=IRQBALANCE_BANNED_CPULIST=2-3\n",
    );
    assert_eq!(bad(&laptop.examine()), ["isolation"]);
}

/// Guards: each way in which a bus cannot carry commands is a failed must, with a command that mends it.
#[test]
fn a_bus_that_cannot_carry_commands_fails() {
    let cases: &[(&str, Change)] = &[
        ("down", |l| l["flags"] = json!(["NOARP"])),
        ("BUS-OFF", |l| {
            l["linkinfo"]["info_data"]["state"] = json!("BUS-OFF")
        }),
        ("the arm needs 1000000", |l| {
            l["linkinfo"]["info_data"]["bittiming"]["bitrate"] = json!(500_000);
        }),
        ("LISTEN-ONLY", |l| {
            l["linkinfo"]["info_data"]["ctrlmode"] = json!(["LISTEN-ONLY"]);
        }),
        ("ERROR-PASSIVE", |l| {
            l["linkinfo"]["info_data"]["state"] = json!("ERROR-PASSIVE");
        }),
    ];
    for (words, change) in cases {
        let mut laptop = Laptop::tuned();
        laptop.change_link("can_right", change);
        let report = laptop.examine();
        assert_eq!(bad(&report), ["can_link"], "{words}");
        assert!(!report.is_ready(), "{words}");
        let finding = report
            .findings
            .iter()
            .find(|f| f.id == "can_link" && f.verdict == Verdict::Bad)
            .unwrap();
        assert!(finding.name.starts_with("can_right"), "{finding:?}");
        assert!(finding.value.contains(words), "{finding:?}");
        assert!(finding.fix.is_some(), "{finding:?}");
    }

    let mut laptop = Laptop::tuned();
    laptop.subject.can.as_mut().unwrap()[0].interface = "can9".into();
    let report = laptop.examine();
    assert!(bad(&report).contains(&"can_link") && !report.is_ready());
}

/// Guards: what makes a bus fragile is told, and does not stop the run.
#[test]
fn a_fragile_bus_is_told() {
    let cases: &[(&str, Change)] = &[
        ("can_recovery", |l| {
            l["linkinfo"]["info_data"]["restart_ms"] = json!(0)
        }),
        ("can_recovery", |l| {
            l["linkinfo"]["info_xstats"]["bus_off"] = json!(2)
        }),
        ("can_queue", |l| l["txqlen"] = json!(10)),
        ("can_queue", |l| l["txqlen"] = json!(1000)),
        ("can_queue", |l| l["qdisc"] = json!("fq_codel")),
    ];
    for (id, change) in cases {
        let mut laptop = Laptop::tuned();
        laptop.change_link("can_left", change);
        let report = laptop.examine();
        assert_eq!(bad(&report), [*id]);
        assert!(report.is_ready(), "{id}");
    }
}

/// Guards: two arms on one adapter are named as such: pulling one cable can block the other arm.
#[test]
fn two_arms_on_one_adapter_are_found() {
    let laptop = Laptop::tuned();
    laptop.remove("sys/class/net/can_right");
    laptop.net(&format!("{LEFT}/1-2:1.0"), "can_right", "280");
    let report = laptop.examine();
    assert_eq!(bad(&report), ["can_adapter"]);
    assert!(
        find(&report, "can_adapter")
            .value
            .contains("can_right is on the same adapter")
    );
}

/// Guards: without a plan what is there is looked at, and nothing that is not there is missed.
#[test]
fn without_a_plan_nothing_is_missed() {
    let mut laptop = Laptop::tuned();
    laptop.subject = Subject {
        core: Some(CORE),
        ..Subject::anything(vec![0, 1, 2])
    };
    laptop.change_link("can_right", |l| l["flags"] = json!(["NOARP"]));
    let report = laptop.examine();
    assert_eq!(bad(&report), ["can_link"]);
    assert!(report.is_ready(), "a bus that nobody asked for is no must");
    laptop.remove("sys/class/net/can_left");
    laptop.remove("sys/class/net/can_right");
    assert_eq!(find(&laptop.examine(), "can_link").verdict, Verdict::Told);
}

/// Guards: who holds a port is named, and our own daemon is recognised.
#[test]
fn the_holder_of_a_port_is_named() {
    let laptop = Laptop::tuned();
    laptop.write("proc/net/udp", UDP_TAKEN);
    assert!(
        find(&laptop.examine(), "port")
            .value
            .contains("another user")
    );
    laptop.process(4711, "python3", 0);
    fs::create_dir_all(laptop.dir.path().join("proc/4711/fd")).unwrap();
    symlink("socket:[777]", laptop.dir.path().join("proc/4711/fd/5")).unwrap();
    let report = laptop.examine();
    assert!(
        find(&report, "port")
            .value
            .contains("python3, process 4711")
    );
    assert!(!report.is_ready());
    laptop.process(4711, "telearm", 0);
    let report = laptop.examine();
    assert!(
        find(&report, "port")
            .fix
            .as_ref()
            .unwrap()
            .contains("telearm status")
    );
}

/// Guards: the address that a device can reach is told, and those that it cannot are not.
#[test]
fn addresses_for_the_device() {
    let laptop = Laptop::tuned();
    let report = laptop.examine();
    let value = &find(&report, "addresses").value;
    assert!(value.contains("192.168.1.20 (wlan0)") && value.contains("port 8888 for hand"));
    assert!(!value.contains("127.0.0.1") && !value.contains("fe80"));
    laptop.write("etc/ufw/ufw.conf", "# x\nENABLED=yes\n");
    assert!(
        find(&laptop.examine(), "firewall")
            .value
            .contains("ufw allow 8888/udp")
    );
}

/// Guards: a dozing radio is found; one that cannot be asked is no complaint.
#[test]
fn wifi_power_save() {
    let mut laptop = Laptop::tuned();
    let question = "iw dev wlan0 get power_save".to_owned();
    laptop
        .commands
        .insert(question.clone(), "Power save: on\n".into());
    assert_eq!(bad(&laptop.examine()), ["wifi_power_save"]);
    laptop.commands.remove(&question);
    assert_eq!(
        find(&laptop.examine(), "wifi_power_save").verdict,
        Verdict::Unknown
    );
}

/// Guards: refused rights are a failed must, with the reason that is known.
#[test]
fn refused_rights_fail() {
    let mut laptop = Laptop::tuned();
    laptop.granted.fifo = Err(refusal());
    let report = laptop.examine();
    assert_eq!(bad(&report), ["fifo"]);
    assert!(!report.is_ready());
    assert!(
        find(&report, "fifo")
            .value
            .contains("limit of this login: 95")
    );

    let mut laptop = Laptop::tuned();
    laptop.granted.lock = Err(refusal());
    laptop.write("proc/swaps", "Filename Type\n/dev/sda2 partition\n");
    assert_eq!(bad(&laptop.examine()), ["mlock", "swap"]);

    let mut laptop = Laptop::tuned();
    laptop.granted.dma = Err(refusal());
    assert_eq!(bad(&laptop.examine()), ["sleep_states"]);

    // The trap: a control group without a real-time budget refuses root as well.
    let finding = judge_fifo(&Err(refusal()), None, GroupBudget::Microseconds(0));
    assert!(finding.value.contains("CONFIG_RT_GROUP_SCHED"));
    let laptop = Laptop {
        granted: Granted {
            fifo: Err(refusal()),
            ..Laptop::tuned().granted
        },
        ..Laptop::tuned()
    };
    laptop.write("proc/self/cgroup", "4:cpu,cpuacct:/user.slice\n");
    laptop.write(
        "sys/fs/cgroup/cpu,cpuacct/user.slice/cpu.rt_runtime_us",
        "0\n",
    );
    assert!(
        find(&laptop.examine(), "fifo")
            .value
            .contains("CONFIG_RT_GROUP_SCHED")
    );
}

/// Guards: without the kernel's net a spinning thread freezes the computer, unless it spins on a core of its own.
#[test]
fn the_net_may_only_be_off_with_an_isolated_core() {
    assert_eq!(judge_throttling(Some(-1), true).verdict, Verdict::Good);
    assert_eq!(judge_throttling(Some(-1), false).verdict, Verdict::Bad);
    assert_eq!(judge_throttling(None, false).verdict, Verdict::Unknown);
}

/// Guards: the live test is judged against the period, is a must where the rate cannot be had, and a figure that is no number is not good.
#[test]
fn the_live_test_is_judged_against_the_period() {
    let at = |us| judge(&outcome(3, 200, us, 10.0));
    assert_eq!(at(499.0).verdict, Verdict::Good);
    assert_eq!(
        (at(501.0).verdict, at(501.0).group),
        (Verdict::Bad, Group::Should)
    );
    assert_eq!(
        (at(2600.0).verdict, at(2600.0).group),
        (Verdict::Bad, Group::Must)
    );
    assert_eq!(at(f64::NAN).verdict, Verdict::Bad);
    // Whose fault it is shows beside the bare loop.
    assert!(at(600.0).fix.unwrap().contains("report this"));
    let fix = judge(&outcome(3, 200, 600.0, 590.0)).fix.unwrap();
    assert!(fix.contains("it is the computer"));
}

/// Guards: a computer of which nothing can be read is a computer of unknowns, not a crash and not a list of accusations.
#[test]
fn an_unreadable_computer_is_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let host = Host::made_up(dir.path().to_owned(), Commands::Canned(BTreeMap::new()));
    let report = examine(
        &host,
        &Laptop::tuned().granted,
        &Subject::anything(Vec::new()),
        None,
    );
    assert!(report.is_ready());
    // Not knowing that a kernel is real-time is as good as knowing that it is not.
    assert_eq!(bad(&report), ["rt_kernel"]);
}

/// Guards: an examination only looks.
#[test]
fn nothing_is_changed() {
    fn contents(dir: &Path, out: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_symlink() {
                out.insert(
                    path.display().to_string(),
                    fs::read_link(&path)
                        .unwrap()
                        .into_os_string()
                        .into_encoded_bytes(),
                );
            } else if path.is_dir() {
                contents(&path, out);
            } else {
                out.insert(path.display().to_string(), fs::read(&path).unwrap());
            }
        }
    }
    let laptop = Laptop::tuned();
    let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
    contents(laptop.dir.path(), &mut before);
    let _ = laptop.examine();
    contents(laptop.dir.path(), &mut after);
    assert!(before.len() > 60);
    assert_eq!(before, after);
}

/// Guards: musts stand first, each fix under its line, in columns; the last line counts.
#[test]
fn the_report_reads_well() {
    let report = Report {
        findings: vec![
            Check::info("a", "address").told("10.0.0.1"),
            Check::should("b", "kernel").bad("no", "install it"),
            Check::must("c", "priorities").good("granted"),
            Check::must("d", "bus").bad("down", "bring it up"),
            Check::should("e", "firmware").unknown("not counted"),
        ],
        live: None,
    };
    assert_eq!(
        report.text(),
        "\
Must be so
  ok    priorities  granted
  FAIL  bus         down
                    fix: bring it up

Should be so
  bad   kernel      no
                    fix: install it
  ?     firmware    not counted

For your information
  -     address     10.0.0.1

Not ready: 1 failed, 1 more to improve. 1 could not be found out.
"
    );
}

/// Guards: the words of the last line fit the numbers.
#[test]
fn the_last_line_counts() {
    let last = |findings: Vec<Finding>| {
        let report = Report {
            findings,
            live: None,
        };
        report.text().lines().last().unwrap().to_owned()
    };
    let bad_should = || Check::should("b", "b").bad("", "");
    assert_eq!(last(vec![Check::must("a", "a").good("")]), "Ready.");
    assert_eq!(last(vec![bad_should()]), "Ready, with 1 thing to improve.");
    assert_eq!(
        last(vec![bad_should(), bad_should()]),
        "Ready, with 2 things to improve."
    );
    assert_eq!(
        last(vec![Check::must("a", "a").bad("", "")]),
        "Not ready: 1 failed."
    );
}

/// Guards: the machine-readable report has the fields that programs rely on.
#[test]
fn the_json_has_its_fields() {
    let report = Laptop::tuned().examine();
    let value = serde_json::to_value(&report).unwrap();
    let finding = &value["findings"][0];
    for (field, expected) in [("id", "fifo"), ("group", "must"), ("verdict", "good")] {
        assert_eq!(finding[field], expected);
    }
    assert!(value["live"]["ours"]["p999_us"].is_number());
}

/// Guards: the readers cope with the real `/proc` and `/sys` of the machine that runs this test.
#[test]
fn this_computer_can_be_examined() {
    let report = examine(
        &Host::this(),
        &Granted::probe(),
        &Subject::anything(vec![0]),
        None,
    );
    assert!(find(&report, "rt_kernel").value.len() > 5);
    assert!(
        find(&report, "irq_placement").verdict != Verdict::Unknown
            || !Path::new("/proc/interrupts").exists()
    );
}
