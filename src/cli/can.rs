//! `telearm can`: which CAN adapter is which, and what is on its bus.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde::Serialize;

use super::Outcome;
use crate::arm::probe::{ProbeReport, ProbeRequest, Weight, ranges};
use crate::arm::registry;

/// Type of a CAN interface in sysfs (ARPHRD_CAN).
const ARPHRD_CAN: &str = "280";

/// CAN adapters.
#[derive(Debug, Subcommand)]
pub(super) enum CanCommand {
    List(ListArgs),
    Probe(ProbeArgs),
}

/// List CAN interfaces with their USB place and serial number: names like can0 depend on plugging order, these do not.
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Look whether the expected arm answers on a bus: who talks and how often, joints, power, faults, geometry. Nothing moves.
///
/// It only listens, unless --ask is given. Exit status 1 when the arm could not be driven like this.
#[derive(Debug, Args)]
pub(super) struct ProbeArgs {
    /// Bus: a CAN interface like can0, or a local bus like local:@name
    bus: String,
    /// Kind of the arm that should be there
    #[arg(long, value_name = "KIND", default_value = "piper")]
    arm: String,
    /// How long to listen
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    seconds: f64,
    /// Ask for firmware and joint limits too (0x4AF and 0x472 of a Piper: no power, no motion)
    #[arg(long)]
    ask: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

impl ProbeArgs {
    fn run(&self) -> anyhow::Result<Outcome> {
        let Some(kind) = registry::find(&self.arm) else {
            bail!("this build has no arm named {}", self.arm);
        };
        if !(0.1..=60.0).contains(&self.seconds) {
            bail!("--seconds must lie within 0.1..=60");
        }
        let request = ProbeRequest {
            bus: self
                .bus
                .parse()
                .with_context(|| format!("{:?} is no bus", self.bus))?,
            listen: Duration::from_secs_f64(self.seconds),
            ask: self.ask,
        };
        let report = kind.probe(&request).map_err(anyhow::Error::msg)?;
        let mut out = std::io::stdout().lock();
        if self.json {
            writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?;
        } else {
            write!(out, "{}", shown(&report, kind.name()))?;
        }
        Ok(Outcome::of(report.is_good()))
    }
}

/// A probe's report for people.
fn shown(report: &ProbeReport, name: &str) -> String {
    let mut text = format!(
        "{name} on {}, {:.1} s: bus load about {:.0} %, {} error frames\n",
        report.bus,
        report.listened_s,
        report.bus_load * 100.0,
        report.error_frames
    );
    // Identifiers in a row that carry the same are one line.
    for rows in report
        .ids
        .chunk_by(|a, b| a.id + 1 == b.id && a.name == b.name)
    {
        let rates = rows.iter().map(|r| r.rate_hz);
        let (low, high) = rates.fold((f64::INFINITY, 0.0_f64), |(low, high), rate| {
            (low.min(rate), high.max(rate))
        });
        let rate = if high - low < 1.0 {
            format!("{high:.0}")
        } else {
            format!("{low:.0}..{high:.0}")
        };
        let expected = rows
            .first()
            .and_then(|r| r.expected_hz)
            .map_or_else(String::new, |hz| format!(" of {hz:.0}"));
        let rejected = match rows.iter().map(|r| r.rejected).sum() {
            0_u64 => String::new(),
            n => format!(", {n} do not decode"),
        };
        text += &format!(
            "  {:13} {:>16}  {}{rejected}\n",
            ranges(rows.iter().map(|r| r.id)),
            format!("{rate}{expected} Hz"),
            rows.first().map_or("", |r| r.name)
        );
    }
    for finding in &report.findings {
        let mark = match finding.weight {
            Weight::Good => "ok  ",
            Weight::Note => "note",
            Weight::Bad => "BAD ",
        };
        text += &format!("{mark} {}\n", finding.text);
        if let Some(fix) = &finding.fix {
            text += &format!("     -> {fix}\n");
        }
    }
    text += if report.is_good() {
        "The expected arm answers; nothing is in the way.\n"
    } else {
        "The arm cannot be driven like this.\n"
    };
    text
}

impl CanCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let args = match self {
            Self::List(args) => args,
            Self::Probe(args) => return args.run(),
        };
        let interfaces = list(Path::new("/sys/class/net"));
        let mut out = std::io::stdout().lock();
        if args.json {
            writeln!(out, "{}", serde_json::to_string_pretty(&interfaces)?)?;
            return Ok(Outcome::Good);
        }
        if interfaces.is_empty() {
            writeln!(
                out,
                "No CAN interface. Is the adapter plugged in, and the gs_usb driver loaded? scripts/can_activate brings one up."
            )?;
        }
        for i in &interfaces {
            write!(out, "{i}")?;
        }
        Ok(Outcome::Good)
    }
}

/// One CAN interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Interface {
    name: String,
    /// "up", "down", "unknown", as the kernel says.
    state: String,
    driver: Option<String>,
    /// Where it is plugged in, like "1-2.3:1.0".
    usb_path: Option<String>,
    serial: Option<String>,
    product: Option<String>,
    tx_queue_len: Option<u32>,
}

impl std::fmt::Display for Interface {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:8} {:8}", self.name, self.state)?;
        match (&self.usb_path, &self.driver) {
            (Some(path), _) => write!(f, " usb {path}")?,
            (None, Some(driver)) => write!(f, " {driver}, not USB")?,
            (None, None) => write!(f, " virtual")?,
        }
        if let Some(serial) = &self.serial {
            write!(f, " serial {serial}")?;
        }
        if let Some(product) = &self.product {
            write!(f, " ({product})")?;
        }
        if let Some(length) = self.tx_queue_len.filter(|l| *l < 16) {
            write!(
                f,
                "  txqueuelen {length} is short: scripts/can_activate sets it"
            )?;
        }
        writeln!(f)
    }
}

/// The CAN interfaces below a `/sys/class/net`, by name.
fn list(net: &Path) -> Vec<Interface> {
    let mut found: Vec<_> = fs::read_dir(net)
        .into_iter()
        .flatten()
        .filter_map(|entry| interface(&entry.ok()?.path()))
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn interface(path: &Path) -> Option<Interface> {
    let text = |file: &Path| Some(fs::read_to_string(file).ok()?.trim().to_owned());
    if text(&path.join("type"))? != ARPHRD_CAN {
        return None;
    }
    let device = fs::canonicalize(path.join("device")).ok();
    let usb = device.as_deref().and_then(usb_device);
    let of_usb = |file: &str| text(&usb.as_ref()?.join(file));
    let last = |p: &Path| Some(p.file_name()?.to_string_lossy().into_owned());
    Some(Interface {
        name: last(path)?,
        state: text(&path.join("operstate")).unwrap_or_else(|| "unknown".to_owned()),
        driver: device
            .as_ref()
            .and_then(|d| fs::canonicalize(d.join("driver")).ok())
            .and_then(|d| last(&d)),
        usb_path: usb.as_ref().and_then(|_| last(device.as_deref()?)),
        serial: of_usb("serial"),
        product: of_usb("product"),
        tx_queue_len: text(&path.join("tx_queue_len")).and_then(|t| t.parse().ok()),
    })
}

/// The USB device above an interface's device directory: the nearest directory with a vendor id.
fn usb_device(device: &Path) -> Option<PathBuf> {
    device
        .ancestors()
        .take(4)
        .find(|dir| dir.join("idVendor").exists())
        .map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Guards: only CAN interfaces are listed, with the USB path and serial of their adapter, whatever their name.
    #[test]
    fn usb_and_virtual() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("bus/usb1/1-2/idVendor", "1d50\n");
        write("bus/usb1/1-2/serial", "0042002A\n");
        write("bus/usb1/1-2/product", "canable gs_usb\n");
        write("drivers/gs_usb/x", "");
        fs::create_dir_all(root.join("bus/usb1/1-2/1-2:1.0")).unwrap();
        symlink(
            root.join("drivers/gs_usb"),
            root.join("bus/usb1/1-2/1-2:1.0/driver"),
        )
        .unwrap();
        write("net/arm_left/type", "280\n");
        write("net/arm_left/operstate", "up\n");
        write("net/arm_left/tx_queue_len", "10\n");
        symlink(
            root.join("bus/usb1/1-2/1-2:1.0"),
            root.join("net/arm_left/device"),
        )
        .unwrap();
        write("net/vcan0/type", "280\n");
        write("net/vcan0/operstate", "unknown\n");
        write("net/eth0/type", "1\n");

        let found = list(&root.join("net"));
        let names: Vec<_> = found.iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["arm_left", "vcan0"]);
        assert_eq!(found[0].usb_path.as_deref(), Some("1-2:1.0"));
        assert_eq!(found[0].serial.as_deref(), Some("0042002A"));
        assert_eq!(found[0].driver.as_deref(), Some("gs_usb"));
        let shown = found[0].to_string();
        assert!(shown.contains("serial 0042002A") && shown.contains("txqueuelen 10 is short"));
        assert!(found[1].to_string().contains("virtual"));
    }
}
