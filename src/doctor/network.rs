//! The network: free ports, packets lost in our own buffers, Wi-Fi that dozes, and what to type into the device.

use serde_json::Value;

use super::host::Host;
use super::subject::{ListenWanted, Subject};
use super::{Check, Finding};

/// Sockets of `/proc/net/udp` hold the local address as `HEX:PORT` in this field, and the inode in that one.
const LOCAL_ADDRESS_FIELD: usize = 1;
const INODE_FIELD: usize = 9;

/// Whether the port can be had. `holder` is who has it: name and process id, if they can be known.
#[must_use]
pub fn judge_port(wanted: &ListenWanted, is_taken: bool, holder: Option<(String, u32)>) -> Finding {
    let check = Check::must("port", format!("UDP port {}", wanted.port));
    if !is_taken {
        return check.good(format!("free, for operator {}", wanted.operator));
    }
    match holder {
        Some((name, pid)) if name.starts_with("telearm") => check.bad(
            format!("taken by {name}, process {pid}"),
            "it runs already: telearm status tells more, telearm quit ends it",
        ),
        Some((name, pid)) => check.bad(
            format!("taken by {name}, process {pid}"),
            format!(
                "end that program, or give operator {} another port",
                wanted.operator
            ),
        ),
        None => check.bad(
            "taken, by a process of another user",
            format!("sudo ss -ulpn | grep :{} names it", wanted.port),
        ),
    }
}

/// Packets that came and found no room in their socket's buffer.
#[must_use]
pub fn judge_lost(before: Option<u64>, after: Option<u64>) -> Finding {
    let check = Check::should("udp_lost", "no packets lost in buffers");
    match (before, after) {
        (Some(before), Some(after)) => {
            let grown = after.saturating_sub(before);
            check.judge(
                grown == 0,
                format!("{grown} while we watched, {after} since boot"),
                "some program here does not read its socket: ss -uamp shows full ones",
            )
        }
        _ => check.unknown("/proc/net/snmp cannot be read"),
    }
}

/// A radio that sleeps between beacons delays packets by up to a tenth of a second. `is_saving`: `None` if it could not be asked.
#[must_use]
pub fn judge_wifi(interface: &str, is_saving: Option<bool>) -> Finding {
    let check = Check::should("wifi_power_save", format!("{interface}: Wi-Fi awake"));
    match is_saving {
        None => check.unknown("cannot ask: the program `iw` is missing (package iw)"),
        Some(false) => check.good("power save off"),
        Some(true) => check.bad(
            "power save on: packets come late and in bursts",
            format!("sudo iw dev {interface} set power_save off"),
        ),
    }
}

/// What to type into the device.
#[must_use]
pub fn tell_addresses(addresses: &[(String, String)], listen: &[ListenWanted]) -> Finding {
    let check = Check::info("addresses", "type into the device");
    if addresses.is_empty() {
        return check.unknown("this computer has no address that a device could reach");
    }
    let hosts: Vec<String> = addresses
        .iter()
        .map(|(interface, address)| format!("{address} ({interface})"))
        .collect();
    let ports: Vec<String> = listen
        .iter()
        .map(|want| {
            let note = if want.only_local {
                ", this computer only"
            } else {
                ""
            };
            format!("port {} for {}{note}", want.port, want.operator)
        })
        .collect();
    let separator = if ports.is_empty() { "" } else { "; " };
    check.told(format!(
        "{}{separator}{}",
        hosts.join(", "),
        ports.join(", ")
    ))
}

/// A firewall that is on lets nothing in by default.
#[must_use]
pub fn judge_firewall(ufw_config: Option<&str>, listen: &[ListenWanted]) -> Option<Finding> {
    let check = Check::info("firewall", "firewall");
    let is_on = ufw_config?
        .lines()
        .any(|line| line.trim().eq_ignore_ascii_case("ENABLED=yes"));
    if !is_on {
        return None;
    }
    let ports: Vec<String> = listen
        .iter()
        .filter(|want| !want.only_local)
        .map(|want| format!("sudo ufw allow {}/udp", want.port))
        .collect();
    Some(check.told(if ports.is_empty() {
        "ufw is on: open the ports that your plan listens on".to_owned()
    } else {
        format!("ufw is on; if nothing arrives: {}", ports.join("; "))
    }))
}

/// `RcvbufErrors` of the two `Udp:` lines of `/proc/net/snmp`: names above, values below.
pub(super) fn read_udp_lost(host: &Host) -> Option<u64> {
    let text = host.text("/proc/net/snmp")?;
    let mut lines = text.lines().filter(|line| line.starts_with("Udp:"));
    let place = lines
        .next()?
        .split_whitespace()
        .position(|name| name == "RcvbufErrors")?;
    lines.next()?.split_whitespace().nth(place)?.parse().ok()
}

/// The inode of a UDP socket on this port, if there is one.
fn socket_on(host: &Host, port: u16) -> Option<u64> {
    ["/proc/net/udp", "/proc/net/udp6"].iter().find_map(|file| {
        host.text(file)?.lines().skip(1).find_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (_, local) = fields.get(LOCAL_ADDRESS_FIELD)?.rsplit_once(':')?;
            (u16::from_str_radix(local, 16).ok()? == port).then_some(())?;
            fields.get(INODE_FIELD)?.parse().ok()
        })
    })
}

/// The process with this socket among its open files; only those that we may look into are found.
fn holder_of(host: &Host, inode: u64) -> Option<(String, u32)> {
    let wanted = format!("socket:[{inode}]");
    host.processes().into_iter().find_map(|process| {
        let folder = format!("/proc/{}/fd", process.pid);
        host.names(&folder)
            .iter()
            .any(|fd| {
                std::fs::read_link(host.path(&format!("{folder}/{fd}")))
                    .is_ok_and(|target| target.to_string_lossy() == wanted)
            })
            .then_some((process.name, process.pid))
    })
}

fn examine_port(host: &Host, wanted: &ListenWanted) -> Finding {
    let socket = socket_on(host, wanted.port);
    let holder = socket.and_then(|inode| holder_of(host, inode));
    judge_port(wanted, socket.is_some(), holder)
}

fn examine_wifi(host: &Host) -> Vec<Finding> {
    host.names("/sys/class/net")
        .iter()
        .filter(|name| {
            host.has(&format!("/sys/class/net/{name}/phy80211"))
                && host
                    .text(&format!("/sys/class/net/{name}/operstate"))
                    .as_deref()
                    == Some("up")
        })
        .map(|name| {
            let told = host.output("iw", &["dev", name, "get", "power_save"]);
            let is_saving = told.map(|text| text.trim() == "Power save: on");
            judge_wifi(name, is_saving)
        })
        .collect()
}

/// Addresses that another device could reach, with their interface: version 4 first come, none of this computer's own.
fn read_addresses(host: &Host) -> Vec<(String, String)> {
    let links: Vec<Value> = host
        .output("ip", &["-j", "addr", "show"])
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let mut found = Vec::new();
    for link in &links {
        for address in link["addr_info"].as_array().into_iter().flatten() {
            if address["family"] == "inet"
                && address["scope"] == "global"
                && let (Some(name), Some(local)) =
                    (link["ifname"].as_str(), address["local"].as_str())
            {
                found.push((name.to_owned(), local.to_owned()));
            }
        }
    }
    found
}

pub(super) fn examine(
    host: &Host,
    subject: &Subject,
    lost_before: Option<u64>,
    lost_after: Option<u64>,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = subject
        .listen
        .iter()
        .map(|wanted| examine_port(host, wanted))
        .collect();
    findings.push(judge_lost(lost_before, lost_after));
    findings.extend(examine_wifi(host));
    findings.push(tell_addresses(&read_addresses(host), &subject.listen));
    findings.extend(judge_firewall(
        host.text("/etc/ufw/ufw.conf").as_deref(),
        &subject.listen,
    ));
    findings
}
