//! What goes into a link and comes out of it, as plain data.

use super::address::CanAddress;
use super::bytes::FrameFormat;
use super::open::IdFilter;
use super::sys::StampSource;
use crate::arm::frame::Frame;
use crate::time::Stamp;

/// How to open a link.
#[derive(Debug, Clone)]
#[expect(clippy::disallowed_types, reason = "start-up")]
pub struct LinkOptions {
    /// Which bus.
    pub address: CanAddress,
    /// Identifiers to receive. Must cover everything that is sent as well, or echoes are never seen.
    pub filters: Box<[IdFilter]>,
    /// Frame format out.
    pub format: FrameFormat,
    /// The most frames that one cycle sends; at most so many are in flight when motion starts, twice as many when braking does.
    pub cycle_frames: u16,
    /// Where receive stamps come from.
    pub stamps: StampSource,
}

/// Who sent a received frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// This link: the frame is on the wire.
    Own,
    /// Somebody else: the arm, another program on this machine, another node.
    Bus,
}

/// A received data frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// The frame.
    pub frame: Frame,
    /// When it arrived.
    pub at: Stamp,
    /// Who sent it.
    pub origin: Origin,
}

/// What a group of frames is, which decides what may go before what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKind {
    /// A target that advances.
    Motion,
    /// A whole target that brakes or stays: replaces the rest of a torn group.
    Hold,
    /// Not a target.
    Config,
    /// The arm's own stop: goes before everything, room or not.
    Stop,
}

/// Counters of a link; all only grow, but `in_flight`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkCounters {
    /// Frames handed to the kernel.
    pub frames_out: u64,
    /// Data frames received from others.
    pub frames_in: u64,
    /// Own frames confirmed.
    pub confirmed: u64,
    /// Groups refused: no room, or a full queue.
    pub busy: u64,
    /// Groups of which the kernel took only a part.
    pub torn: u64,
    /// Datagrams that are no data frame of ours (extended, remote, odd size).
    pub odd: u64,
    /// Error frames of the controller, all kinds.
    pub bus_errors: u64,
    /// Of those: bus-off.
    pub bus_off: u64,
    /// Of those: nobody acknowledged.
    pub no_ack: u64,
    /// Of those: error-passive.
    pub passive: u64,
    /// Received frames that the kernel dropped because our queue was full.
    pub dropped: u64,
    /// Echoes given up as lost.
    pub echoes_lost: u64,
    /// Errors of the socket that are none of the known ones.
    pub strange_errors: u64,
    /// The last of those.
    pub last_strange_errno: i32,
    /// The interface was re-opened.
    pub reopened: u64,
    /// Frames handed over and not confirmed yet (a gauge).
    pub in_flight: u64,
}
