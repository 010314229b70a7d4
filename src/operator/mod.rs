//! Operator devices: one folder per device, one registry line each.
//!
//! A device folder holds `wire.rs` (pure codec), `session.rs` (what one stream of packets means: order, quality, gestures), its
//! parameters and its emulator. Sessions are pure: bytes and our receive stamp in, a [`Verdict`] and samples out. Sockets, threads
//! and publishing belong to `io`.
//!
//! Rules that the conformance tests check for every registered device:
//! * the stop bit is seen on every packet that is long enough and carries the magic, whatever else is wrong with it, whoever sent it;
//! * a packet that is refused is counted by a named reason and changes nothing else;
//! * nothing allocates, on good and on bad input;
//! * an unusable sample never refreshes the age that the watchdog judges.

use crate::signal::OperatorSample;

/// What one packet was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// The packet asks for a software stop; latched before anything else is looked at.
    pub stop: bool,
    /// Whether the packet carried the stop *level* at all: `Some(bit)` for a packet that could be judged. Reset is refused while the last judged packet asserted it.
    pub stop_level: Option<bool>,
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

impl Verdict {
    /// A refused packet without a stop bit.
    #[must_use]
    pub const fn dropped(reason: u8) -> Self {
        Self {
            stop: false,
            stop_level: None,
            body: Body::Drop(reason),
        }
    }
}
