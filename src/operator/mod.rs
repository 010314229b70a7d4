//! Operator devices: one folder per device, one registry line each.
//!
//! A device folder holds `wire.rs` (pure codec), `session.rs` (what one stream of packets means: order, quality, gestures), its
//! parameters and its emulator. Sessions are pure: bytes and our receive stamp in, a [`Verdict`] out. Sockets, threads and publishing
//! belong to [`io`].
//!
//! The way of one datagram, in this order (nothing later can undo anything earlier):
//! ```text
//! rt::net::recv_stamped ─► whose? ─► stop bit: level, latch, wake ─► allow-list, pin ─► session (order, jump, frozen, gesture)
//!                                                                                        ├─ Drop(reason): counted, nothing else
//!                                                                                        └─ Sample: mailbox, then age if it is good
//! ```
//!
//! Rules that the conformance tests check for every registered device:
//! * the stop bit is seen on every packet that is long enough and carries the magic, whatever else is wrong with it, whoever sent it;
//! * a packet that is refused is counted by a named reason and changes nothing else;
//! * nothing allocates, on good and on bad input;
//! * an unusable sample never refreshes the age that the watchdog judges.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::disallowed_macros
)]

pub mod emulate;
pub mod freshness;
pub mod gesture;
pub mod glove;
pub mod io;
pub mod jump;
pub mod params;
pub mod pin;
pub mod rctp;
pub mod registry;

use crate::signal::OperatorSample;
use crate::time::Stamp;

/// What one packet was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// The packet asks for a software stop; latched before anything else is looked at. The *level* is asserted by any packet with the
    /// bit, and cleared only by an accepted one without it: a late or broken packet proves nothing about the present.
    pub stop: bool,
    /// What to do with the rest.
    pub body: Body,
}

/// The rest of a packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Body {
    /// A sample to publish. It refreshes the age only if its quality is good.
    Sample(OperatorSample),
    /// Refused; the index names the reason in the device's table.
    Drop(u8),
}

/// What can be said of a packet without knowing the stream that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glance {
    /// It carries a stop bit that counts.
    pub stop: bool,
    /// Its fields are acceptable; order and motion were not judged.
    pub valid: bool,
}

/// Why a session is broken off from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// Another source owns the port now; its clock has nothing to do with the old one's.
    NewOwner,
    /// The input thread was away (stopped process, paused or suspended machine); the sender is the same.
    Away,
}

/// Things that a session counts besides refusals. All only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionCounts {
    /// The sender was started again.
    pub restarts: u64,
    /// The pose jumped.
    pub jumps: u64,
    /// Samples of a frozen stream.
    pub frozen: u64,
    /// Samples without a tracked hand.
    pub untracked: u64,
    /// Finished engage gestures.
    pub engages: u64,
    /// Openings slightly out of range, clamped.
    pub openings_clamped: u64,
    /// Openings far out of range, not used.
    pub openings_refused: u64,
    /// Packets with bits set that the device's document does not define.
    pub reserved_bits: u64,
    /// Packets that the sender numbered and that never came, as far as its numbers tell. A statistic, never a fault.
    pub lost: u64,
}

/// What one stream of datagrams means. Pure: the clock is an argument. No call allocates, blocks or panics.
pub trait DatagramSession: Send {
    /// Names of the reasons that [`Body::Drop`] may carry, by index.
    fn drop_reasons(&self) -> &'static [&'static str];

    /// Is this datagram addressed to this operator, where several share a port? Asked only to choose between them: what nobody claims
    /// goes to the port's first operator, whose session refuses it by name. A device with a port of its own claims everything.
    fn claims(&self, bytes: &[u8]) -> bool {
        let _ = bytes;
        true
    }

    /// Looks at a datagram without taking it: what other senders' packets, and packets that nobody owns yet, are judged by.
    fn glance(&self, bytes: &[u8]) -> Glance;

    /// Takes the next datagram of the owner.
    fn on_datagram(&mut self, bytes: &[u8], received_at: Stamp) -> Verdict;

    /// Breaks the session off: `edges.session` grows, motion and gestures start afresh.
    fn on_break(&mut self, why: Break);

    /// Counters for the status.
    fn counts(&self) -> SessionCounts;
}
