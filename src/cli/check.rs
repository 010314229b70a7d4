//! `telearm check`.

use std::fmt::Write as _;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::PathBuf;

use clap::Args;

use super::{Outcome, frame_check, load_plan, track};
use crate::config::frame::FrameStore;
use crate::config::{OperatorPlan, Plan};
use crate::operator::registry;

/// Check a plan: what it means, what to set on the device, which ports to open. Nothing is sent to an arm.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// The plan
    plan: PathBuf,
    /// Find out whether the device's axes are the plan's: you push the hand forward and turn it left
    #[arg(long)]
    frame: bool,
    /// With --frame: only this operator [default: all whose axes are not verified]
    #[arg(long, value_name = "NAME", requires = "frame")]
    operator: Option<String>,
    /// Unknown keys are warnings, not errors
    #[arg(long)]
    lenient: bool,
}

impl CheckArgs {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let plan = load_plan(&self.plan, self.lenient)?.plan;
        if self.frame {
            return frame_check::run(&plan, self.operator.as_deref());
        }
        let mut text = String::new();
        write_plan(&mut text, &plan)?;
        write_lanes(&mut text, &plan)?;
        write_operators(&mut text, &plan)?;
        std::io::stdout().write_all(text.as_bytes())?;
        Ok(Outcome::Good)
    }
}

fn write_plan(out: &mut String, plan: &Plan) -> std::fmt::Result {
    let lanes = plan.lanes.len();
    writeln!(
        out,
        "{} is good: {lanes} lane{}, {} cycles a second.",
        plan.file,
        if lanes == 1 { "" } else { "s" },
        plan.rate_hz
    )?;
    writeln!(
        out,
        "The resolved plan; lines with * differ from the defaults or have none:\n"
    )?;
    let mut sections: Vec<&str> = Vec::new();
    for setting in &plan.settings {
        if !sections.contains(&setting.section.as_str()) {
            sections.push(&setting.section);
        }
    }
    for section in sections {
        if !section.is_empty() {
            writeln!(out, "  [{section}]")?;
        }
        for setting in plan.settings.iter().filter(|s| s.section == section) {
            let mark = if setting.is_default { ' ' } else { '*' };
            writeln!(out, "{mark} {} = {}", setting.key, setting.value)?;
        }
    }
    Ok(())
}

fn write_lanes(out: &mut String, plan: &Plan) -> anyhow::Result<()> {
    for lane in &plan.lanes {
        if let (Some(operator), Some(arm)) =
            (plan.operators.get(lane.operator), plan.arms.get(lane.arm))
        {
            writeln!(
                out,
                "\nLane {}: {} drives {}, {} commands a second.\n  simulated: {}",
                lane.name,
                operator.name,
                arm.name,
                arm.command_hz,
                track::plan_lag(lane.limits, arm.command_hz)?
            )?;
        }
    }
    Ok(())
}

fn write_operators(out: &mut String, plan: &Plan) -> std::fmt::Result {
    let addresses = own_addresses();
    let store = FrameStore::load();
    for operator in &plan.operators {
        let listen = operator.device.listen();
        let host = host_text(listen.ip(), &addresses);
        writeln!(
            out,
            "\nOperator {}: listens on UDP {}; open this port in the firewall.",
            operator.name, listen
        )?;
        if let Some(device) = registry::find(operator.device.kind()) {
            writeln!(out, "On the device ({}):", device.name())?;
            for line in device.setup() {
                let line = line
                    .replace("{host}", &host)
                    .replace("{port}", &listen.port().to_string());
                writeln!(out, "  - {line}")?;
            }
        }
        write_frame(out, operator, plan, &store)?;
    }
    Ok(())
}

fn write_frame(
    out: &mut String,
    operator: &OperatorPlan,
    plan: &Plan,
    store: &Result<FrameStore, crate::config::frame::StoreError>,
) -> std::fmt::Result {
    let Some(frame) = operator.device.frame() else {
        return Ok(());
    };
    match store {
        Ok(store) if store.is_verified(&operator.name, operator.device.kind(), frame) => {
            writeln!(out, "Axes {frame}: verified ({}).", store.path().display())
        }
        Ok(_) => writeln!(
            out,
            "Axes {frame}: NOT verified; a lane with this operator stays inhibited (frame_unverified) until\n  telearm check {} --frame\nhas been done once with this device.",
            plan.file
        ),
        Err(error) => writeln!(out, "Axes {frame}: not known to be verified: {error}"),
    }
}

/// What to type into the device: the bound address, or our own ones.
fn host_text(bound: IpAddr, own: &[Ipv4Addr]) -> String {
    if !bound.is_unspecified() {
        return bound.to_string();
    }
    match own {
        [] => "of this machine (no network address found)".to_owned(),
        [only] => only.to_string(),
        [first, rest @ ..] => {
            let rest: Vec<_> = rest.iter().map(ToString::to_string).collect();
            format!("{first} (or {})", rest.join(", "))
        }
    }
}

/// Our IPv4 addresses, that of the default route first; loopback left out.
fn own_addresses() -> Vec<Ipv4Addr> {
    let table = std::fs::read_to_string("/proc/net/fib_trie").unwrap_or_default();
    let mut own = local_addresses(&table);
    if let Some(first) = default_route_address() {
        own.retain(|a| *a != first);
        own.insert(0, first);
    }
    own
}

/// Addresses marked as ours in the kernel's routing table.
fn local_addresses(fib_trie: &str) -> Vec<Ipv4Addr> {
    let mut own = Vec::new();
    let mut last: Option<Ipv4Addr> = None;
    for line in fib_trie.lines() {
        if let Some((_, address)) = line.split_once("|-- ") {
            last = address.trim().parse().ok();
        } else if line.contains("/32 host LOCAL")
            && let Some(address) = last.filter(|a| !a.is_loopback())
            && !own.contains(&address)
        {
            own.push(address);
        }
    }
    own
}

/// The address that packets to the world would carry. Connecting a UDP socket sends nothing.
fn default_route_address() -> Option<Ipv4Addr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // An address reserved for documentation.
    socket.connect("192.0.2.1:9").ok()?;
    match socket.local_addr().ok()?.ip() {
        IpAddr::V4(address) if !address.is_loopback() && !address.is_unspecified() => Some(address),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards: our own addresses are found, broadcast and loopback are not taken for one.
    #[test]
    fn own_addresses_from_the_routing_table() {
        let table = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     +-- 127.0.0.0/8 2 0 2\n        |-- 127.0.0.1\n           /32 host LOCAL\n     +-- 192.168.1.0/24 2 0 2\n        |-- 192.168.1.5\n           /32 host LOCAL\n        |-- 192.168.1.255\n           /32 link BROADCAST\nLocal:\n        |-- 192.168.1.5\n           /32 host LOCAL\n";
        assert_eq!(local_addresses(table), [Ipv4Addr::new(192, 168, 1, 5)]);
    }

    /// Guards: a plan that binds one address names that one.
    #[test]
    fn host_to_type() {
        let own = [Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 1, 2)];
        assert_eq!(
            host_text("0.0.0.0".parse().unwrap(), &own),
            "10.0.0.2 (or 10.0.1.2)"
        );
        assert_eq!(host_text("10.0.1.2".parse().unwrap(), &own), "10.0.1.2");
    }
}
