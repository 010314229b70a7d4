//! The devices that are there. A new device is one folder and one line in [`DEVICES`]. Start-up and command line only.
#![allow(clippy::disallowed_types)] // start-up

use std::io;
use std::sync::atomic::AtomicBool;

use super::{DatagramSession, glove, rctp};

/// Every operator device.
pub static DEVICES: &[&dyn Device] = &[&rctp::Descriptor, &glove::Descriptor];

/// The device with this id.
#[must_use]
pub fn find(id: &str) -> Option<&'static dyn Device> {
    DEVICES.iter().copied().find(|d| d.id() == id)
}

/// The protocol with this name, whichever device speaks it.
#[must_use]
pub fn find_protocol(name: &str) -> Option<&'static Protocol> {
    let mut all = DEVICES.iter().flat_map(|d| d.protocols());
    all.find(|p| p.name == name)
}

/// A packet format that a device speaks. Golden vectors are called after it: `NAME.jsonl`, `NAME_seq.jsonl`.
#[derive(Debug, Clone, Copy)]
pub struct Protocol {
    /// As on the command line: `telearm decode NAME`.
    pub name: &'static str,
    /// One packet, decoded for people.
    pub decode: fn(packet: &[u8]) -> serde_json::Value,
}

/// What a device's samples carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "four independent facts, not a state"
)]
pub struct Yields {
    /// A hand pose.
    pub pose: bool,
    /// Joint angles of a leader arm.
    pub joints: bool,
    /// A gripper opening.
    pub opening: bool,
    /// A hold-to-run state.
    pub clutch: bool,
}

/// A port that a device's sender talks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Port {
    /// Number.
    pub number: u16,
    /// "udp" or "tcp".
    pub transport: &'static str,
    /// What arrives there.
    pub carries: &'static str,
}

/// Default limits of a device, milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct StaleDefaults {
    /// Hold after.
    pub hold_after_ms: u32,
    /// Disengage after.
    pub disengage_after_ms: u32,
}

/// Makes another packet out of one.
pub type Rewrite = fn(packet: &[u8]) -> Vec<u8>;

/// What the conformance tests need to treat every datagram device alike.
pub struct DatagramKit {
    /// Name of this set-up, for messages.
    pub name: &'static str,
    /// A session of this set-up.
    pub session: fn() -> Box<dyn DatagramSession>,
    /// The `n`-th packet of a believable stream: in order, tracked, moving slowly.
    pub good: fn(n: u32) -> Vec<u8>,
    /// The same packet with the stop bit; `None` for a device without one.
    pub with_stop: Option<Rewrite>,
    /// The same packet saying that the hand is not seen; `None` for a device that cannot say so.
    pub untracked: Option<Rewrite>,
}

/// What the program knows of a device apart from its streams.
pub trait Device: Sync {
    /// Short name, as in plans and on the command line.
    fn id(&self) -> &'static str;
    /// Name for people.
    fn name(&self) -> &'static str;
    /// Where its sender talks to.
    fn ports(&self) -> &'static [Port];
    /// What its samples carry.
    fn yields(&self) -> Yields;
    /// Default limits.
    fn stale_defaults(&self) -> StaleDefaults;
    /// Why its packets are refused, by index.
    fn drop_reasons(&self) -> &'static [&'static str];
    /// What to set on the device so that it talks to us, a line each, `{host}` and `{port}` to be filled in.
    fn setup(&self) -> &'static [&'static str];
    /// The packet formats that it speaks.
    fn protocols(&self) -> &'static [Protocol];
    /// Arguments of its emulator, as a subcommand of `telearm emulate`.
    fn emulator(&self) -> clap::Command;
    /// Runs its emulator until it is done or `quit` is set; gives a sentence about what was sent.
    ///
    /// # Errors
    /// When the arguments name no reachable address, or no socket can be opened.
    fn emulate(&self, arguments: &clap::ArgMatches, quit: &AtomicBool) -> io::Result<String>;
    /// For the conformance tests, one for each way that its sessions can be set up; none for a device that does not send datagrams.
    fn datagrams(&self) -> Vec<DatagramKit>;
}

impl std::fmt::Debug for dyn Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id())
    }
}
