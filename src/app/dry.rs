//! `--dry-run`: everything but sending. Feedback is read as ever; configuration, commands and stops stay here.

use std::io;
use std::os::fd::RawFd;

use crate::arm::{Arm, ArmCounters, HoldFrames, RestVerdict, SendOutcome, StopPort};
use crate::guard::Vetted;
use crate::kinematics::ArmModel;
use crate::signal::{ArmCommand, ArmState};
use crate::time::Stamp;

/// An arm that is only listened to.
pub(super) struct DryArm<const N: usize> {
    arm: Box<dyn Arm<N>>,
}

impl<const N: usize> DryArm<N> {
    /// Keeps `arm` from being told anything.
    #[must_use]
    pub(super) fn new(arm: Box<dyn Arm<N>>) -> Self {
        Self { arm }
    }
}

impl<const N: usize> Arm<N> for DryArm<N> {
    fn poll(&mut self, now: Stamp, _may_configure: bool) {
        self.arm.poll(now, false);
    }

    fn state(&self) -> &ArmState<N> {
        self.arm.state()
    }

    fn model(&self) -> &dyn ArmModel<N> {
        self.arm.model()
    }

    fn has_room(&mut self, _now: Stamp, _motion: bool) -> bool {
        true
    }

    fn send(&mut self, _command: &Vetted<ArmCommand<N>>, _now: Stamp) -> SendOutcome {
        SendOutcome::Sent
    }

    fn hold_frames(&self, _command: &Vetted<ArmCommand<N>>) -> HoldFrames {
        HoldFrames::EMPTY
    }

    fn arm_stop(&mut self, _now: Stamp) -> SendOutcome {
        SendOutcome::Sent
    }

    fn recover(&mut self, _now: Stamp) {}

    fn stop_port(&self) -> io::Result<Box<dyn StopPort>> {
        Ok(Box::new(DryPort))
    }

    fn motion_fd(&self) -> Option<RawFd> {
        None
    }

    fn counters(&self) -> ArmCounters {
        self.arm.counters()
    }
}

struct DryPort;

impl StopPort for DryPort {
    fn send_hold(&mut self, _frames: &HoldFrames) -> SendOutcome {
        SendOutcome::Sent
    }

    fn arm_stop(&mut self) -> SendOutcome {
        SendOutcome::Sent
    }

    fn poll_rest(&mut self, _now: Stamp) -> RestVerdict {
        RestVerdict::AtRest
    }
}
