//! The CAN interfaces of this machine, for `telearm can list`. Never on a real-time path.

#![allow(clippy::disallowed_types, reason = "command line only")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// `ARPHRD_CAN`: what /sys/class/net/NAME/type says for a CAN interface.
const TYPE_CAN: &str = "280";

/// One CAN interface.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Adapter {
    /// Interface name, `can0`.
    pub name: String,
    /// `up`, `down`, `unknown` (a vcan that is up says `unknown`).
    pub operstate: String,
    /// Kernel driver, `gs_usb`; `None` for a virtual interface.
    pub driver: Option<String>,
    /// Bus path of the device, `1-2.3:1.0` for USB: the same socket gives the same path.
    pub bus_path: Option<String>,
    /// USB serial number.
    pub usb_serial: Option<String>,
    /// Length of the send queue, frames.
    pub tx_queue_len: Option<u32>,
    /// 16 for classic CAN, 72 for CAN FD.
    pub mtu: Option<u32>,
}

/// The CAN interfaces, by name.
///
/// # Errors
/// When /sys/class/net cannot be read.
pub fn list() -> io::Result<Vec<Adapter>> {
    list_under(Path::new("/sys/class/net"))
}

/// The same below another folder.
///
/// # Errors
/// When the folder cannot be read.
pub fn list_under(class_net: &Path) -> io::Result<Vec<Adapter>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(class_net)? {
        let entry = entry?;
        let dir = entry.path();
        if text(&dir, "type").as_deref() == Some(TYPE_CAN) {
            found.push(read(entry.file_name().to_string_lossy().into_owned(), &dir));
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// The names in one line, for messages.
#[must_use]
pub fn names() -> String {
    match list() {
        Ok(found) if !found.is_empty() => found
            .iter()
            .map(|a| a.name.as_str())
            .collect::<Vec<_>>()
            .join(", "),
        _ => "none".to_owned(),
    }
}

fn read(name: String, dir: &Path) -> Adapter {
    let device = fs::canonicalize(dir.join("device")).ok();
    Adapter {
        name,
        operstate: text(dir, "operstate").unwrap_or_else(|| "unknown".to_owned()),
        driver: fs::canonicalize(dir.join("device/driver"))
            .ok()
            .and_then(|p| last(&p)),
        bus_path: device.as_deref().and_then(last),
        usb_serial: device.as_deref().and_then(usb_serial),
        tx_queue_len: text(dir, "tx_queue_len").and_then(|t| t.parse().ok()),
        mtu: text(dir, "mtu").and_then(|t| t.parse().ok()),
    }
}

/// The serial number stands at the USB device, above its interface.
fn usb_serial(device: &Path) -> Option<String> {
    device
        .ancestors()
        .take(3)
        .find_map(|dir| text(dir, "serial"))
}

fn last(path: &Path) -> Option<String> {
    path.file_name().map(|n| n.to_string_lossy().into_owned())
}

fn text(dir: &Path, name: &str) -> Option<String> {
    let file: PathBuf = dir.join(name);
    fs::read_to_string(file)
        .ok()
        .map(|t| t.trim().to_owned())
        .filter(|t| !t.is_empty())
}
