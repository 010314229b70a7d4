//! What a stream of one hand's packets means: whose, which protocol, order, quality, opening, clutch.
//!
//! Per packet: field checks (`wire`) -> whose hand -> FSNH allowed? -> the protocol that is followed -> order -> frozen detector -> opening
//! and curl. Only a packet that passed everything up to "order" changes anything here. There is no stop bit in either protocol.
//!
//! One hand follows one protocol at a time. A sender may send both to the port; their frame numbers have nothing to do with each other
//! and their measures differ, so the first one that is accepted is followed until it has been silent for `disengage_after`.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::disallowed_macros
)]

use super::fingers::{Calibration, CurlClutch, Fingers, FsnhTips};
use super::order::FrameOrder;
use super::params::Settings;
use super::wire::{AnyFrame, Hand, Reject, parse_any};
use crate::operator::freshness::Order;
use crate::operator::{Body, Break, DatagramSession, Glance, SessionCounts, Verdict};
use crate::signal::{Edges, OperatorSample, Quality};
use crate::time::{SenderTime, Span, Stamp};

/// Names of [`Reject`], then of the session's own refusals.
pub const DROP_REASONS: &[&str] = &[
    "bad_length",
    "bad_magic",
    "bad_version",
    "bad_quat_order",
    "bad_hand",
    "other_hand",
    "fsnh_off",
    "other_protocol",
    "duplicate",
    "out_of_order",
];
const OTHER_HAND: u8 = 5;
const FSNH_OFF: u8 = 6;
const OTHER_PROTOCOL: u8 = 7;
const DUPLICATE: u8 = 8;
const OUT_OF_ORDER: u8 = 9;

/// So many packets in a row with the same measures, bit for bit, are a sender that repeats itself: half a second. The magnetic field is
/// never that quiet.
pub const FROZEN_AFTER: u32 = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Fnim,
    Fsnh,
}

impl Protocol {
    const fn of(frame: &AnyFrame) -> Self {
        match frame {
            AnyFrame::Fnim(_) => Self::Fnim,
            AnyFrame::Fsnh(_) => Self::Fsnh,
        }
    }
}

/// One hand's stream.
#[derive(Debug, Clone)]
pub struct Session {
    hand: Hand,
    experimental_fsnh: bool,
    tips: FsnhTips,
    calibration: Calibration,
    hold_after: Span,
    disengage_after: Span,
    /// What is followed, and when it was last accepted.
    followed: Option<(Protocol, Stamp)>,
    order: FrameOrder,
    clutch: CurlClutch,
    last_fingers: Fingers,
    equal_in_a_row: u32,
    edges: Edges,
    counts: SessionCounts,
}

impl Session {
    /// A session that has seen nothing.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            hand: settings.hand,
            experimental_fsnh: settings.experimental_fsnh,
            tips: settings.fsnh_tips,
            calibration: settings.calibration,
            hold_after: settings.door.hold_after,
            disengage_after: settings.door.disengage_after,
            followed: None,
            order: FrameOrder::default(),
            clutch: CurlClutch::default(),
            last_fingers: Fingers::default(),
            equal_in_a_row: 0,
            edges: Edges::default(),
            counts: SessionCounts::default(),
        }
    }

    /// The counters as the next sample would carry them.
    #[must_use]
    pub const fn edges(&self) -> &Edges {
        &self.edges
    }

    /// What can be said of a packet without knowing the stream.
    fn read(&self, bytes: &[u8]) -> Result<AnyFrame, u8> {
        let frame = parse_any(bytes).map_err(|reject: Reject| reject as u8)?;
        if frame.header().hand != self.hand {
            return Err(OTHER_HAND);
        }
        if Protocol::of(&frame) == Protocol::Fsnh && !self.experimental_fsnh {
            return Err(FSNH_OFF);
        }
        Ok(frame)
    }

    fn judge(&mut self, bytes: &[u8], received_at: Stamp) -> Result<OperatorSample, u8> {
        let frame = self.read(bytes)?;
        self.follow(Protocol::of(&frame), received_at)?;
        self.admit(&frame)?;
        self.note_pause(received_at);
        self.followed = Some((Protocol::of(&frame), received_at));
        let has_undefined_bits = match &frame {
            AnyFrame::Fnim(frame) => frame.has_undefined_bits,
            AnyFrame::Fsnh(frame) => frame.header.reserved != 0,
        };
        if has_undefined_bits {
            self.counts.reserved_bits = self.counts.reserved_bits.wrapping_add(1);
        }
        Ok(self.sample(&frame, received_at))
    }

    /// The protocol that is followed, or another one once that is silent for good.
    fn follow(&mut self, protocol: Protocol, now: Stamp) -> Result<(), u8> {
        match self.followed {
            Some((followed, at)) if followed != protocol => {
                if now.age_of(at) <= self.disengage_after {
                    return Err(OTHER_PROTOCOL);
                }
                self.followed = None;
                self.order.forget();
                self.begin_session();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Judges order; a restart of the sender begins a new session.
    fn admit(&mut self, frame: &AnyFrame) -> Result<(), u8> {
        match self.order.admit(frame.header()) {
            Order::Next => {}
            Order::Restart => {
                self.counts.restarts = self.counts.restarts.wrapping_add(1);
                self.begin_session();
            }
            Order::Duplicate => return Err(DUPLICATE),
            Order::Late => return Err(OUT_OF_ORDER),
        }
        self.counts.lost = self.order.lost();
        Ok(())
    }

    /// By the time that control holds, the clutch counts as let go; it has to be let go for real before it counts again.
    fn note_pause(&mut self, received_at: Stamp) {
        if self
            .followed
            .is_some_and(|(_, at)| received_at.age_of(at) > self.hold_after)
        {
            self.clutch.lost();
        }
    }

    fn begin_session(&mut self) {
        self.edges.session = self.edges.session.wrapping_add(1);
        self.clutch.lost();
        self.equal_in_a_row = 0;
    }

    fn sample(&mut self, frame: &AnyFrame, received_at: Stamp) -> OperatorSample {
        let fingers = Fingers::of(frame, self.tips);
        let quality = self.quality(&fingers);
        let is_good = quality == Quality::Good;
        self.clutch
            .look(self.calibration.curl(&fingers).filter(|_| is_good));
        OperatorSample {
            received_at,
            sender_time: Some(SenderTime::from_s(
                frame.header().sender_time_ns as f64 * 1e-9,
            )),
            opening: self.calibration.opening(&fingers).filter(|_| is_good),
            quality,
            // Always told, so that nobody takes the opening for a pinch that holds the clutch.
            clutch_pressed: Some(self.clutch.is_held()),
            edges: self.edges,
            ..OperatorSample::default()
        }
    }

    fn quality(&mut self, fingers: &Fingers) -> Quality {
        let is_same = *fingers == self.last_fingers && !fingers.is_empty();
        self.equal_in_a_row = if is_same {
            self.equal_in_a_row.saturating_add(1)
        } else {
            1
        };
        self.last_fingers = *fingers;
        if !fingers.is_seen {
            self.counts.untracked = self.counts.untracked.wrapping_add(1);
            Quality::Untracked
        } else if self.equal_in_a_row >= FROZEN_AFTER {
            self.counts.frozen = self.counts.frozen.wrapping_add(1);
            Quality::Frozen
        } else {
            Quality::Good
        }
    }
}

impl DatagramSession for Session {
    fn drop_reasons(&self) -> &'static [&'static str] {
        DROP_REASONS
    }

    /// By hand, in whichever protocol, allowed or not: its refusal belongs to that hand too.
    fn claims(&self, bytes: &[u8]) -> bool {
        parse_any(bytes).is_ok_and(|frame| frame.header().hand == self.hand)
    }

    fn glance(&self, bytes: &[u8]) -> Glance {
        Glance {
            stop: false,
            valid: self.read(bytes).is_ok(),
        }
    }

    fn on_datagram(&mut self, bytes: &[u8], received_at: Stamp) -> Verdict {
        Verdict {
            stop: false,
            body: match self.judge(bytes, received_at) {
                Ok(sample) => Body::Sample(sample),
                Err(reason) => Body::Drop(reason),
            },
        }
    }

    fn on_break(&mut self, why: Break) {
        if why == Break::NewOwner {
            self.order.forget();
            self.followed = None;
        }
        self.begin_session();
    }

    fn counts(&self) -> SessionCounts {
        self.counts
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
