//! [`CanPort`]: the watchdog's own way to the bus.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::bytes::{Content, KernelFrame};
use super::receive::{Event, Receiver};
use super::sys;
use crate::arm::SendOutcome;
use crate::arm::frame::Frame;
use crate::time::Stamp;

/// The watchdog's own socket on the bus.
pub struct CanPort {
    pub(super) fd: Arc<OwnedFd>,
    pub(super) receiver: Receiver,
    pub(super) used: Arc<AtomicBool>,
}

impl CanPort {
    /// Hands frames to the kernel. A queue without room gives `Busy`: try again.
    pub fn send(&mut self, frames: &[KernelFrame]) -> SendOutcome {
        self.used.store(true, Ordering::Relaxed);
        let fd = self.fd.as_raw_fd();
        let result = match sys::send_group(fd, frames) {
            // Nobody reads this socket, so an interface that was down at some time has left its error pending: the first call only takes
            // it away, and the second tells how things are.
            Err(libc::ENETDOWN | libc::ENODEV) => sys::send_group(fd, frames),
            other => other,
        };
        match result {
            Ok(taken) if taken == frames.len() => SendOutcome::Sent,
            Ok(_) | Err(libc::ENOBUFS | libc::EAGAIN) => SendOutcome::Busy,
            Err(_) => SendOutcome::NotReady,
        }
    }

    /// Takes what has arrived. `false` when there may be more.
    pub fn drain(&mut self, now: Stamp, mut sink: impl FnMut(&Frame, Stamp)) -> bool {
        self.receiver.drain(self.fd.as_raw_fd(), now, |event| {
            if let Event::Frame {
                content: Content::Data { frame, .. },
                at,
                ..
            } = event
            {
                sink(&frame, at);
            }
        })
    }
}
