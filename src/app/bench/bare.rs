//! The baseline of a cycle: at each deadline one read and one write per bus, with as many frames as the program sends, and no thought.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::Result;

use super::rig::Hardware;
use crate::arm::can::KernelFrame;
use crate::arm::can::bare::{BareBus, lay_out, options};
use crate::arm::piper::emulate::{START_POSTURE, StartState};
use crate::arm::piper::model::{DhVariant, PiperModel};
use crate::arm::piper::wire::{
    Command, ControlOrder, EndPose, FollowOrder, GripperOrder, GripperPower, ModeOrder, MoveOrder,
};
use crate::handoff::sys;
use crate::rt::clock;
use crate::rt::histogram::LatencyHistogram;
use crate::rt::pace::Pace;
use crate::time::{Span, Stamp};
use crate::units::Micrometres;

/// As the program: the mode every 200 ms, the gripper, while it moves, every 20 ms.
const MODE_EVERY: Span = Span::from_ms(200);
const GRIPPER_EVERY: Span = Span::from_ms(20);
/// Mode, three frames of the target, gripper.
const TARGET: core::ops::Range<usize> = 1..4;

/// Buses with emulated arms of their own.
pub(super) struct BareRig {
    _hardware: Vec<Hardware>,
    pub(super) buses: Vec<BareBus>,
    pub(super) frames: Box<[KernelFrame]>,
}

impl BareRig {
    /// As many as the program has. Call it off control's core.
    ///
    /// # Errors
    /// A bus cannot be served.
    pub(super) fn new(lanes: usize) -> Result<Self> {
        let start = StartState {
            enabled: true,
            ..StartState::default()
        };
        let hardware = (0..lanes)
            .map(|_| Hardware::start(start))
            .collect::<Result<Vec<_>>>()?;
        let buses = hardware
            .iter()
            .map(|h| Ok(BareBus::join(&options(&h.address))?))
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            _hardware: hardware,
            buses,
            frames: group()?,
        })
    }
}

/// A whole group that keeps the arm where it started.
fn group() -> Result<Box<[KernelFrame]>> {
    let broken = |what| anyhow::anyhow!("the baseline's {what} does not encode");
    let pose = PiperModel::new(DhVariant::Offset).fk(&START_POSTURE);
    let pose = EndPose::from_pose(&pose, &EndPose::default()).map_err(|_| broken("target"))?;
    let mode = ModeOrder::new(ControlOrder::Can, MoveOrder::P, 100, FollowOrder::Planned)
        .map_err(|_| broken("mode"))?;
    let gripper = GripperOrder::new(Micrometres(35_000), 1000, GripperPower::Enable, false)
        .map_err(|_| broken("gripper order"))?;
    let mut frames = vec![Command::Mode(mode).encode()];
    frames.extend(pose.frames());
    frames.push(Command::Gripper(gripper).encode());
    Ok(lay_out(&frames))
}

/// What the loop shares with the measurement.
#[derive(Debug, Default)]
pub(super) struct BareShared {
    /// Count and record now.
    pub(super) recording: AtomicBool,
    pub(super) quit: AtomicBool,
    pub(super) frames_in: AtomicU64,
    pub(super) frames_out: AtomicU64,
    pub(super) cycles: AtomicU64,
}

/// Runs until `quit`. `divisor`: a group every so many cycles, staggered over the buses as the program does.
pub(super) fn run(
    mut rig: BareRig,
    t0: Stamp,
    rate_hz: u32,
    divisor: u64,
    shared: &Arc<BareShared>,
) -> LatencyHistogram {
    let mut histogram = LatencyHistogram::new();
    let mut pace = Pace::new(t0, rate_hz);
    let commands = |span: Span| {
        let per_second = u64::from(rate_hz) / divisor;
        (span.as_ns_clamped() * per_second / 1_000_000_000).max(1)
    };
    let (mode_every, gripper_every) = (commands(MODE_EVERY), commands(GRIPPER_EVERY));
    while !shared.quit.load(Ordering::Relaxed) {
        sys::sleep_until(pace.deadline());
        let Some(tick) = pace.tick(clock::now()) else {
            continue;
        };
        let got: usize = rig.buses.iter_mut().map(BareBus::read).sum();
        let mut sent = 0;
        for (i, bus) in (0..).zip(&rig.buses) {
            if tick.n % divisor != i % divisor {
                continue;
            }
            let command = tick.n / divisor;
            let first = TARGET.start - usize::from(command.is_multiple_of(mode_every));
            let end = TARGET.end + usize::from(command.is_multiple_of(gripper_every));
            sent += bus.write(&rig.frames[first..end]);
        }
        let done = clock::now();
        if shared.recording.load(Ordering::Relaxed) {
            if sent > 0 {
                histogram.record(done - tick.deadline);
            }
            shared.frames_in.fetch_add(got as u64, Ordering::Relaxed);
            shared.frames_out.fetch_add(sent as u64, Ordering::Relaxed);
            shared.cycles.fetch_add(1, Ordering::Relaxed);
        }
    }
    histogram
}
