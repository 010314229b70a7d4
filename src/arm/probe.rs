//! Motion-free look at a bus: who talks, how often, and whether it is the arm that is expected. Each arm's own reading of it is in its
//! folder; this is what they share.
//!
//! A probe listens. Only when asked to does it send queries, never an order.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "command line only"
)]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::can::local_bus::{BusNode, Heard};
use super::can::{BusError, CanAddress, FrameFormat};
use super::frame::Frame;
use crate::time::Stamp;

/// Bits of a classic frame with an 11-bit identifier without its payload: start to end of frame, and the gap behind it.
const FRAME_BITS: f64 = 47.0;
/// Stuffing puts in one bit for five at worst; half of that is usual.
const STUFFING_USUAL: f64 = 0.10;
/// One look at the bus waits so long.
const WAIT_MS: i32 = 10;

/// What a probe is to do.
#[derive(Debug, Clone)]
pub struct ProbeRequest {
    /// Which bus.
    pub bus: CanAddress,
    /// How long to listen.
    pub listen: Duration,
    /// Send queries too: firmware and limits. No power, no mode, no motion.
    pub ask: bool,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// As it should be, or just a fact.
    Good,
    /// Worth knowing; the arm can be driven.
    Note,
    /// The arm cannot be driven like this.
    Bad,
}

/// One thing found out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub weight: Weight,
    /// What it is.
    pub text: String,
    /// What to do about it.
    pub fix: Option<String>,
}

impl Finding {
    /// A fact.
    #[must_use]
    pub fn good(text: impl Into<String>) -> Self {
        Self {
            weight: Weight::Good,
            text: text.into(),
            fix: None,
        }
    }

    /// Worth knowing.
    #[must_use]
    pub fn note(text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            weight: Weight::Note,
            text: text.into(),
            fix: Some(fix.into()),
        }
    }

    /// In the way.
    #[must_use]
    pub fn bad(text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            weight: Weight::Bad,
            text: text.into(),
            fix: Some(fix.into()),
        }
    }
}

/// One identifier that was heard, or was expected and was not.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IdRow {
    /// Identifier.
    pub id: u32,
    /// What it carries.
    pub name: &'static str,
    /// Frames a second.
    pub rate_hz: f64,
    /// Frames a second that an arm as documented sends; `None`: only now and then, or not at all.
    pub expected_hz: Option<f64>,
    /// Frames that do not decode.
    pub rejected: u64,
}

/// What a probe found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProbeReport {
    /// Kind of the arm that was expected.
    pub arm: &'static str,
    /// Which bus.
    pub bus: String,
    /// How long it listened, seconds.
    pub listened_s: f64,
    /// Identifiers, in order.
    pub ids: Vec<IdRow>,
    /// Estimated share of the bus that is in use, 0..=1.
    pub bus_load: f64,
    /// Error frames of the controller.
    pub error_frames: u64,
    /// Everything found out.
    pub findings: Vec<Finding>,
}

impl ProbeReport {
    /// The expected arm answers, and nothing is in the way.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.findings.iter().all(|f| f.weight != Weight::Bad)
    }
}

/// What was heard on a bus.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Listened {
    /// Frames, by identifier.
    pub counts: BTreeMap<u32, u64>,
    /// Error frames of the controller.
    pub error_frames: u64,
    /// All causes that error frames named.
    pub errors: BusError,
    /// Bits on the wire, stuffing estimated.
    pub bits: f64,
    /// How long, seconds.
    pub listened_s: f64,
    /// The bus went away.
    pub lost: bool,
    /// The interface was down, at least for a while.
    pub down: bool,
}

impl Listened {
    /// Frames a second of an identifier.
    #[must_use]
    pub fn rate_hz(&self, id: u32) -> f64 {
        let count = self.counts.get(&id).copied().unwrap_or(0);
        if self.listened_s > 0.0 {
            count as f64 / self.listened_s
        } else {
            0.0
        }
    }

    /// Share of a bus with so many bits a second, 0..=1.
    #[must_use]
    pub fn load(&self, bits_per_s: f64) -> f64 {
        if self.listened_s > 0.0 {
            self.bits / self.listened_s / bits_per_s
        } else {
            0.0
        }
    }

    fn note(&mut self, frame: &Frame) {
        *self.counts.entry(frame.id).or_insert(0) += 1;
        self.bits += FRAME_BITS + f64::from(frame.len) * 8.0 * (1.0 + STUFFING_USUAL);
    }
}

/// Bits of the words that name an error.
fn merge(all: &mut BusError, one: BusError) {
    all.bus_off |= one.bus_off;
    all.restarted |= one.restarted;
    all.no_ack |= one.no_ack;
    all.passive |= one.passive;
    all.warning |= one.warning;
    all.overflow |= one.overflow;
    all.tx_timeout |= one.tx_timeout;
    all.violation |= one.violation;
    all.transceiver |= one.transceiver;
}

/// Listens on a bus. `each` sees every frame with its arrival time, and may give frames to be sent.
///
/// # Errors
/// When the bus cannot be opened.
pub fn listen(
    request: &ProbeRequest,
    mut each: impl FnMut(Option<&Frame>, Stamp) -> Vec<Frame>,
) -> Result<Listened, String> {
    let mut node = BusNode::join(&request.bus, FrameFormat::Classic).map_err(|e| e.to_string())?;
    let mut heard = Listened::default();
    let began = Instant::now();
    while began.elapsed() < request.listen && !heard.lost {
        node.wait(WAIT_MS);
        let mut out = Vec::new();
        let alive = node.listen(|event| match event {
            Heard::Frame(frame, at) => {
                heard.note(&frame);
                out.extend(each(Some(&frame), at));
            }
            Heard::Error(error) => {
                heard.error_frames += 1;
                merge(&mut heard.errors, error);
            }
            Heard::Down => heard.down = true,
        });
        out.extend(each(None, crate::rt::clock::now()));
        if request.ask && !out.is_empty() {
            node.send(&out);
        }
        heard.lost = !alive;
    }
    heard.listened_s = began.elapsed().as_secs_f64();
    Ok(heard)
}

/// What error frames say, in words; nothing when there were none.
#[must_use]
pub fn bus_findings(heard: &Listened, bus: &CanAddress) -> Vec<Finding> {
    let mut found = Vec::new();
    let e = heard.errors;
    if e.bus_off {
        found.push(Finding::bad(
            "the controller went bus-off",
            format!("check wiring, termination and bit rate; then sudo scripts/can_activate {bus} 1000000"),
        ));
    } else if e.no_ack {
        found.push(Finding::bad(
            "nobody acknowledges frames",
            "the arm has no power, the cable is off, or the bit rate is not its own",
        ));
    } else if e.passive || e.violation || e.transceiver {
        found.push(Finding::bad(
            format!("{} error frames: the bus is disturbed", heard.error_frames),
            "check plug, cable length, termination (60 ohm between H and L) and bit rate",
        ));
    } else if heard.error_frames > 0 {
        found.push(Finding::note(
            format!("{} error frames, none of them severe", heard.error_frames),
            "watch whether they go on: `ip -details -statistics link show`",
        ));
    }
    if heard.down {
        found.push(Finding::bad(
            "the interface is down",
            format!("sudo scripts/can_activate {bus} 1000000"),
        ));
    }
    if heard.lost {
        found.push(Finding::bad(
            "the bus went away while listening",
            "look after the adapter's plug",
        ));
    }
    found
}

/// Identifiers in short: `0x261-0x266, 0x2A8`.
#[must_use]
pub fn ranges(ids: impl IntoIterator<Item = u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for id in ids {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == id => *last = id,
            _ => runs.push((id, id)),
        }
    }
    let texts: Vec<_> = runs
        .iter()
        .map(|(first, last)| {
            if first == last {
                format!("0x{first:X}")
            } else {
                format!("0x{first:X}-0x{last:X}")
            }
        })
        .collect();
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards: identifiers in a row are one range; the load of a bus counts overhead and payload.
    #[test]
    fn ranges_and_load() {
        assert_eq!(ranges([0x261, 0x262, 0x263, 0x2A8]), "0x261-0x263, 0x2A8");
        assert_eq!(ranges([]), "");
        let mut heard = Listened {
            listened_s: 1.0,
            ..Listened::default()
        };
        for _ in 0..3040 {
            heard.note(&Frame::new(0x2A1, [0; 8]));
        }
        // The arm's idle traffic is 34 % unstuffed, 41 % at worst.
        assert!(
            (0.34..0.41).contains(&heard.load(1e6)),
            "{}",
            heard.load(1e6)
        );
        assert!((heard.rate_hz(0x2A1) - 3040.0).abs() < 1e-9);
    }
}
