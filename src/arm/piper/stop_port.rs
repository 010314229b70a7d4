//! [`PiperStopPort`]: the watchdog's way to a Piper: its own socket, its own bytes, nothing shared with the control thread but the bus.
//!
//! What it lacks: it cannot unsend what the control thread's last write has already put into the interface's queue (at most one cycle's
//! frames, see the link), and on a bus that is down, off or gone it can do no more than control could.

use super::wire::{Command, Feedback, MotionOrder, id};
use crate::arm::can::{CanLink, CanPort, FrameFormat, IdFilter, KernelFrame, OpenError};
use crate::arm::frame::Frame;
use crate::arm::{HOLD_FRAMES_MAX, HoldFrames, RestVerdict, SendOutcome, StopPort};
use crate::signal::Aged;
use crate::time::{Span, Stamp};

/// Slower than this in every joint is rest. The arm's own noise and the sink under its stop lie on either side [not measured].
const REST_MAX_MRAD_S: u16 = 20;
/// Speeds (200 Hz) must not be older.
const FRESH: Span = Span::from_ms(50);
/// Drains that empty the queue of what nobody read before the takeover.
const CATCH_UP_DRAINS: usize = 8;

/// The watchdog's way to a Piper.
pub struct PiperStopPort {
    port: CanPort,
    stop: KernelFrame,
    speeds_mrad_s: [Aged<u16>; 6],
    caught_up: bool,
}

impl PiperStopPort {
    /// Opens an own socket on the link's bus.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(link: &CanLink) -> Result<Self, OpenError> {
        Ok(Self {
            port: link.open_port(&[IdFilter::sixteen(id::MOTOR)])?,
            stop: KernelFrame::encode(
                &Command::Motion(MotionOrder::DAMPED_STOP).encode(),
                FrameFormat::Classic,
            ),
            speeds_mrad_s: [Aged::NEVER; 6],
            caught_up: false,
        })
    }
}

fn note(speeds: &mut [Aged<u16>; 6], frame: &Frame, at: Stamp) {
    if let Ok(Feedback::Motor(joint, motor)) = Feedback::decode(frame.id, frame.payload())
        && let Some(slot) = speeds.get_mut(joint.index())
    {
        *slot = Aged::at(motor.speed_mrad_s.unsigned_abs(), at);
    }
}

impl StopPort for PiperStopPort {
    fn send_hold(&mut self, frames: &HoldFrames) -> SendOutcome {
        let mut group: heapless::Vec<KernelFrame, HOLD_FRAMES_MAX> = heapless::Vec::new();
        group.extend(
            frames
                .iter()
                .filter_map(|f| KernelFrame::from_bytes(f.as_bytes())),
        );
        if group.is_empty() {
            return SendOutcome::NotReady;
        }
        self.port.send(&group)
    }

    fn arm_stop(&mut self) -> SendOutcome {
        self.port.send(&[self.stop])
    }

    fn poll_rest(&mut self, now: Stamp) -> RestVerdict {
        if !self.caught_up {
            // Until now nobody read this socket: its queue holds the oldest frames since the start, which say nothing of the present.
            for _ in 0..CATCH_UP_DRAINS {
                if self.port.drain(now, |_, _| {}) {
                    break;
                }
            }
            self.caught_up = true;
            return RestVerdict::Unknown;
        }
        let Self {
            port,
            speeds_mrad_s,
            ..
        } = self;
        port.drain(now, |frame, at| note(speeds_mrad_s, frame, at));
        let fresh = self.speeds_mrad_s.map(|speed| speed.fresh(now, FRESH));
        if fresh
            .iter()
            .any(|speed| speed.is_some_and(|v| v > REST_MAX_MRAD_S))
        {
            RestVerdict::Moving
        } else if fresh.iter().all(Option::is_some) {
            RestVerdict::AtRest
        } else {
            RestVerdict::Unknown
        }
    }
}
