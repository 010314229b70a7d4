//! The buses: is the adapter there, up, at the right bitrate and in good health, and will it stay so?

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::host::{Host, last_of, text_of};
use super::subject::{CanWanted, Subject};
use super::{Check, Finding, Group};

/// `ARPHRD_CAN`.
const TYPE_CAN: &str = "280";
/// Shortest queue that holds two cycles of a six-joint arm.
const QUEUE_MIN: u64 = 16;
/// A queue that takes longer than this many frames to drain holds commands of the past.
const QUEUE_MAX: u64 = 128;
/// USB speed from which on an adapter is asked every 125 us instead of every millisecond, Mbit/s.
const USB_HIGH_SPEED: u64 = 480;

/// What is known about one bus.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BusFacts {
    /// Interface.
    pub name: String,
    /// `can`, `vcan`, `vxcan`; `None` if `ip` could not be asked.
    pub kind: Option<String>,
    /// Administratively up.
    pub is_up: bool,
    /// `ERROR-ACTIVE` and so on.
    pub state: Option<String>,
    /// Bits per second.
    pub bitrate: Option<u64>,
    /// Automatic restart after bus-off, milliseconds.
    pub restart_ms: Option<u64>,
    /// Control modes that are on.
    pub modes: Vec<String>,
    /// Error counters of the controller: transmit, receive.
    pub errors: Option<(u64, u64)>,
    /// Times that the controller fell off the bus since it was plugged in.
    pub bus_off: Option<u64>,
    /// Transmit queue, frames.
    pub queue: Option<u64>,
    /// Queue discipline.
    pub discipline: Option<String>,
    /// The adapter; `None` for a virtual bus.
    pub adapter: Option<Adapter>,
}

/// The hardware behind a bus.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Adapter {
    /// Kernel driver.
    pub driver: Option<String>,
    /// Place on its bus, as `ethtool -i` calls it.
    pub bus_path: String,
    /// USB serial number.
    pub serial: Option<String>,
    /// USB speed, Mbit/s; `None` if it is not a USB adapter.
    pub usb_speed: Option<u64>,
    /// May the kernel put it to sleep?
    pub may_sleep: bool,
}

/// All buses of a host, by name.
#[must_use]
pub fn read(host: &Host) -> BTreeMap<String, BusFacts> {
    let told: Vec<Value> = host
        .output("ip", &["-d", "-s", "-j", "link", "show"])
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    host.names("/sys/class/net")
        .into_iter()
        .filter(|name| {
            host.text(&format!("/sys/class/net/{name}/type")).as_deref() == Some(TYPE_CAN)
        })
        .map(|name| {
            let link = told.iter().find(|link| link["ifname"] == name.as_str());
            let mut facts = link.map(facts_of_link).unwrap_or_default();
            facts.adapter = host
                .resolve(&format!("/sys/class/net/{name}/device"))
                .map(|device| adapter_of(&device));
            facts.name.clone_from(&name);
            (name, facts)
        })
        .collect()
}

/// From one entry of `ip -d -s -j link show`.
fn facts_of_link(link: &Value) -> BusFacts {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let texts = |value: &Value| {
        value
            .as_array()
            .map(|all| all.iter().filter_map(text).collect::<Vec<_>>())
            .unwrap_or_default()
    };
    let info = &link["linkinfo"]["info_data"];
    let errors = &info["berr_counter"];
    BusFacts {
        name: String::new(),
        kind: text(&link["linkinfo"]["info_kind"]),
        is_up: texts(&link["flags"]).iter().any(|flag| flag == "UP"),
        state: text(&info["state"]),
        bitrate: info["bittiming"]["bitrate"].as_u64(),
        restart_ms: info["restart_ms"].as_u64(),
        modes: texts(&info["ctrlmode"]),
        errors: errors["tx"].as_u64().zip(errors["rx"].as_u64()),
        bus_off: link["linkinfo"]["info_xstats"]["bus_off"].as_u64(),
        queue: link["txqlen"].as_u64(),
        discipline: text(&link["qdisc"]),
        adapter: None,
    }
}

fn adapter_of(device: &Path) -> Adapter {
    let usb: Option<PathBuf> = device
        .ancestors()
        .take(3)
        .find(|dir| dir.join("idVendor").exists())
        .map(Path::to_owned);
    let of_usb = |file: &str| text_of(&usb.as_ref()?.join(file));
    Adapter {
        driver: std::fs::canonicalize(device.join("driver"))
            .ok()
            .and_then(|path| last_of(&path)),
        bus_path: last_of(device).unwrap_or_default(),
        serial: of_usb("serial"),
        // "1.5" for the slowest devices: not a whole number, and slow enough to count as 1.
        usb_speed: of_usb("speed").map(|t| t.parse().unwrap_or(1)),
        may_sleep: of_usb("power/control").is_some_and(|t| t != "on"),
    }
}

/// Whether the bus can carry commands at all. `wanted` is what a plan needs; without one this is a hint, not a must.
#[must_use]
pub fn judge_link(name: &str, facts: Option<&BusFacts>, wanted: Option<&CanWanted>) -> Finding {
    let group = if wanted.is_some() {
        Group::Must
    } else {
        Group::Should
    };
    let check = Check::new("can_link", group, format!("{name}: link"));
    let bitrate = wanted.map_or(1_000_000, |w| w.bitrate);
    let activate = format!("sudo scripts/can_activate {name} {bitrate}");
    let Some(facts) = facts else {
        return check.bad(
            "there is no such interface",
            "scripts/can_activate --list shows what is plugged in, and how to give it this name",
        );
    };
    let is_virtual = facts.adapter.is_none();
    if !facts.is_up {
        return match (&facts.kind, is_virtual) {
            (None, _) => {
                check.unknown("cannot ask: the program `ip` (package iproute2) is missing")
            }
            (_, true) => check.bad("down", format!("sudo ip link set {name} up")),
            (_, false) => check.bad("down", activate),
        };
    }
    if is_virtual {
        return check.good("up, virtual: no arm is on it");
    }
    let (state, rate) = (facts.state.as_deref().unwrap_or("up"), facts.bitrate);
    let value = match (rate, facts.errors) {
        (Some(rate), Some((tx, rx))) => format!("{state}, {rate} bit/s, errors tx {tx} rx {rx}"),
        (Some(rate), None) => format!("{state}, {rate} bit/s"),
        (None, _) => format!("{state}, no bitrate told"),
    };
    if rate.is_some_and(|rate| rate != u64::from(bitrate)) && wanted.is_some() {
        return check.bad(format!("{value}; the arm needs {bitrate}"), activate);
    }
    if let Some(mode) = facts
        .modes
        .iter()
        .find(|m| matches!(m.as_str(), "LISTEN-ONLY" | "LOOPBACK" | "ONE-SHOT"))
    {
        return check.bad(format!("{value}, {mode} is on"), activate);
    }
    match state {
        "BUS-OFF" | "STOPPED" => check.bad(value, activate),
        "ERROR-PASSIVE" => check.bad(
            value,
            "nobody acknowledges: is the arm powered, CAN-H and CAN-L right, 120 ohm at both ends, the bitrate the same?",
        ),
        _ => check.good(value),
    }
}

/// Whether it comes back by itself after a disturbance.
#[must_use]
pub fn judge_recovery(facts: &BusFacts) -> Finding {
    let check = Check::should("can_recovery", format!("{}: recovery", facts.name));
    let fix = format!("sudo scripts/can_activate {}", facts.name);
    let fallen = facts.bus_off.filter(|count| *count > 0);
    match (facts.restart_ms, fallen) {
        (None | Some(0), _) => check.bad("stays off the bus after a disturbance (restart-ms 0)", fix),
        (Some(ms), None) => check.good(format!("restarts after {ms} ms")),
        (Some(ms), Some(count)) => check.bad(
            format!("restarts after {ms} ms; fell off the bus {count} times so far"),
            "look at plugs, cable length and the two 120 ohm resistors; unplug the adapter to clear the count",
        ),
    }
}

/// Whether the queue is short and fair.
#[must_use]
pub fn judge_queue(facts: &BusFacts) -> Finding {
    let check = Check::should("can_queue", format!("{}: queue", facts.name));
    let (Some(length), Some(discipline)) = (facts.queue, facts.discipline.as_deref()) else {
        return check.unknown("the program `ip` (package iproute2) is missing");
    };
    let in_order = matches!(discipline, "pfifo" | "pfifo_fast" | "noqueue" | "noop");
    check.judge(
        (QUEUE_MIN..=QUEUE_MAX).contains(&length) && in_order,
        format!("{length} frames, {discipline}"),
        format!(
            "sudo scripts/can_activate {} (16 frames, in order)",
            facts.name
        ),
    )
}

/// Whether the adapter answers quickly, always, and to one arm only. `shared_with` is another bus of the plan on the same adapter.
#[must_use]
pub fn judge_adapter(name: &str, adapter: &Adapter, shared_with: Option<&str>) -> Finding {
    let check = Check::should("can_adapter", format!("{name}: adapter"));
    let value = format!(
        "{} at {}{}{}",
        adapter.driver.as_deref().unwrap_or("unknown driver"),
        adapter.bus_path,
        adapter
            .serial
            .as_ref()
            .map_or_else(String::new, |s| format!(", serial {s}")),
        adapter
            .usb_speed
            .map_or_else(String::new, |s| format!(", USB {s} Mbit/s")),
    );
    if let Some(other) = shared_with {
        return check.bad(
            format!("{value}; {other} is on the same adapter"),
            "one adapter per arm: a cable pulled from one channel can block the other",
        );
    }
    if adapter.may_sleep {
        return check.bad(
            format!("{value}; it may be put to sleep"),
            format!(
                "{} (a device rule), then plug it in again",
                super::FIX_SETUP
            ),
        );
    }
    check.judge(
        adapter.usb_speed.is_none_or(|s| s >= USB_HIGH_SPEED),
        value,
        "works, with up to a millisecond of delay each way: an adapter with USB high speed (480 Mbit/s) has an eighth of it",
    )
}

pub(super) fn examine(host: &Host, subject: &Subject) -> Vec<Finding> {
    let buses = read(host);
    let Some(wanted) = &subject.can else {
        return examine_any(&buses);
    };
    let mut findings = Vec::new();
    for want in wanted {
        let facts = buses.get(&want.interface);
        findings.push(judge_link(&want.interface, facts, Some(want)));
        if let Some(facts) = facts {
            let shared_with = wanted
                .iter()
                .filter(|other| other.interface != want.interface)
                .filter_map(|other| buses.get(&other.interface))
                .find(|other| is_same_adapter(facts, other))
                .map(|other| other.name.as_str());
            findings.extend(examine_hardware(facts, shared_with));
        }
    }
    findings
}

/// Without a plan: every bus that is there, none of them a must.
fn examine_any(buses: &BTreeMap<String, BusFacts>) -> Vec<Finding> {
    if buses.is_empty() {
        let none = Check::info("can_link", "CAN buses");
        return vec![none.told("none here; scripts/can_activate --list tells why")];
    }
    buses
        .values()
        .filter(|facts| facts.adapter.is_some())
        .flat_map(|facts| {
            let mut findings = vec![judge_link(&facts.name, Some(facts), None)];
            findings.extend(examine_hardware(facts, None));
            findings
        })
        .collect()
}

/// What is judged of a bus with an adapter; a virtual one has nothing of it. A bus that is down has no settings to judge yet.
fn examine_hardware(facts: &BusFacts, shared_with: Option<&str>) -> Vec<Finding> {
    let Some(adapter) = &facts.adapter else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    if facts.is_up {
        findings.push(judge_recovery(facts));
        findings.push(judge_queue(facts));
    }
    findings.push(judge_adapter(&facts.name, adapter, shared_with));
    findings
}

/// Two channels of one adapter share its place on the bus.
fn is_same_adapter(one: &BusFacts, other: &BusFacts) -> bool {
    match (&one.adapter, &other.adapter) {
        (Some(one), Some(other)) => one.bus_path == other.bus_path,
        _ => false,
    }
}
