//! Arms: one folder per arm, one registry line each.
//!
//! A driver is polled by the control thread and never blocks: `Arm::poll` drains feedback and advances bring-up, `Arm::send` takes
//! one vetted command. Bring-up and configuration are state machines inside `poll`; they never send a motion frame.
//!
//! Life of an arm, as `ArmState::phase` shows it:
//! ```text
//!             poll: feedback, identity, limits, power, mode, first target = measured pose
//!   Starting ─────────────────────────────────────────────────────────────────────────────► Up
//!      ▲                                                                                     │ fault
//!      │ recover (Piper: the arm drops) or the fault's own cure                              ▼
//!      └───────────────────────────────────────────────────────────────────────────────── Faulted
//! ```
//!
//! Rules that the conformance tests check for every registered arm:
//! * nothing but configuration frames leaves before `Up`, and the first target equals the measured pose;
//! * a command goes out whole or not at all (`SendOutcome`);
//! * feedback never received is `Aged::NEVER`, never zero;
//! * a lost bus, a foreign command, a silent joint become named faults; none of them sends a motion or a power-off frame;
//! * the stop port works without the control thread.

pub mod can;
/// CAN frames as plain data.
pub mod frame;
/// AgileX Piper.
pub mod piper;
pub mod probe;
pub mod registry;

use std::io;
use std::os::fd::RawFd;

use crate::guard::Vetted;
use crate::kinematics::ArmModel;
use crate::signal::{ArmCommand, ArmState};
use crate::time::Stamp;

/// What became of a command or frame group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendOutcome {
    /// Handed to the kernel, whole.
    Sent,
    /// Nothing was handed over: frames in flight leave no room for a whole group. Counted; the shaper stays at the last sent state.
    Busy,
    /// Nothing was handed over: the arm is not up, or the bus is not usable. The state's phase says why.
    NotReady,
}

/// Encoded frames that keep the arm where it is: what the watchdog streams after a takeover. Opaque bytes of the arm's own transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldFrames {
    /// Frames in order; `len` are valid. Each is a length byte and up to 79 bytes, enough for a CAN FD frame as the kernel has it
    /// or one serial adapter frame.
    pub frames: [HoldFrame; HOLD_FRAMES_MAX],
    /// How many are valid. 0: nothing has been commanded yet, stream nothing.
    pub len: u8,
}

/// Most frames of one hold.
pub const HOLD_FRAMES_MAX: usize = 9;

/// One encoded frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldFrame {
    /// Bytes as written to the descriptor.
    pub bytes: [u8; 79],
    /// How many are valid.
    pub len: u8,
}

impl HoldFrame {
    /// No bytes.
    pub const EMPTY: Self = Self {
        bytes: [0; 79],
        len: 0,
    };

    /// The valid bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&[])
    }

    /// A frame from its bytes; more than fit give `None`.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut frame = Self::EMPTY;
        frame.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        frame.len = u8::try_from(bytes.len()).ok()?;
        Some(frame)
    }
}

impl HoldFrames {
    /// Nothing commanded yet.
    pub const EMPTY: Self = Self {
        frames: [HoldFrame::EMPTY; HOLD_FRAMES_MAX],
        len: 0,
    };

    /// Appends a frame; `false` when full or too long.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        let (Some(slot), Some(frame)) = (
            self.frames.get_mut(usize::from(self.len)),
            HoldFrame::from_bytes(bytes),
        ) else {
            return false;
        };
        *slot = frame;
        self.len += 1;
        true
    }

    /// The valid frames.
    pub fn iter(&self) -> impl Iterator<Item = &HoldFrame> {
        self.frames.iter().take(usize::from(self.len))
    }
}

impl Default for HoldFrames {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// A driver for an arm with `N` joints.
pub trait Arm<const N: usize>: Send {
    /// Drains feedback, judges it, and advances bring-up by at most one step. `may_configure` is false while a stop is latched: then
    /// nothing at all is sent from here. Never blocks; bounded work.
    fn poll(&mut self, now: Stamp, may_configure: bool);

    /// What is known of the arm.
    fn state(&self) -> &ArmState<N>;

    /// The arm's geometry as its own controller sees it (firmware variant included, once known).
    fn model(&self) -> &dyn ArmModel<N>;

    /// Whether a whole command group can be started now (frames in flight + group fit). Cheap; asked before the stop latch is checked.
    /// A command that brakes or stays (`motion` false) may use more of the queue: the first one of a stop follows right behind a motion group.
    fn has_room(&mut self, now: Stamp, motion: bool) -> bool;

    /// Sends one vetted command, whole or not at all.
    fn send(&mut self, command: &Vetted<ArmCommand<N>>, now: Stamp) -> SendOutcome;

    /// The frames that keep the arm at this command's target, for the watchdog.
    fn hold_frames(&self, command: &Vetted<ArmCommand<N>>) -> HoldFrames;

    /// The arm's own stop (Piper: 0x150 01, a damped sink). A refusal by the queue is retried by the caller on the next cycle.
    fn arm_stop(&mut self, now: Stamp) -> SendOutcome;

    /// Starts the arm's recovery from its own stop or fault. It may drop the arm; the caller has made sure that the operator knows.
    fn recover(&mut self, now: Stamp);

    /// A second way to the arm for the watchdog, independent of the control thread and its descriptor.
    ///
    /// # Errors
    /// When the descriptor cannot be opened.
    fn stop_port(&self) -> io::Result<Box<dyn StopPort>>;

    /// The descriptor that carries motion frames, for revocation by the watchdog. `None` for an arm that publishes through a thread.
    fn motion_fd(&self) -> Option<RawFd>;

    /// Counters for the status and the log, by name: frames out, in, refused, echoes, bus errors.
    fn counters(&self) -> ArmCounters;
}

/// Whether the arm has come to rest, as the stop port sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestVerdict {
    /// Measured at rest.
    AtRest,
    /// Measured moving.
    Moving,
    /// No fresh feedback.
    Unknown,
}

/// The watchdog's way to an arm.
pub trait StopPort: Send {
    /// Hands the frames to the kernel.
    fn send_hold(&mut self, frames: &HoldFrames) -> SendOutcome;

    /// The arm's own stop.
    fn arm_stop(&mut self) -> SendOutcome;

    /// Drains feedback and judges whether the arm rests. Only asked after a takeover.
    fn poll_rest(&mut self, now: Stamp) -> RestVerdict;
}

/// Counters of a driver. All only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArmCounters {
    /// Frames handed to the kernel.
    pub frames_out: u64,
    /// Frames received.
    pub frames_in: u64,
    /// Command groups not started for lack of room.
    pub busy: u64,
    /// Frames refused by the decoder.
    pub rejected: u64,
    /// Bus error frames.
    pub bus_errors: u64,
    /// Own frames confirmed on the wire.
    pub confirmed: u64,
    /// Frames handed over and not confirmed yet (a gauge).
    pub in_flight: u64,
    /// The link was re-opened.
    pub reopened: u64,
}
