//! [`BareBus`]: the least that reads and writes a bus. A baseline for benchmarks, not part of any arm.
//!
//! It has the same socket options and makes the same system calls as [`CanLink`](super::CanLink), with the same numbers of bytes, and
//! does nothing else: frames are not decoded, echoes not counted, failures not told apart.

use std::os::fd::{AsRawFd, OwnedFd};

use super::address::CanAddress;
use super::bytes::{FD_BYTES, FrameFormat, KernelFrame};
use super::link_types::LinkOptions;
use super::open::{self, OpenError, SocketPlan};
use super::sys::{self, BATCH_MAX, StampSource};
use crate::arm::frame::Frame;

/// As much room for control messages as the link has.
const CONTROL_BYTES: usize = 64;

#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Slot {
    control: [u8; CONTROL_BYTES],
    data: [u8; FD_BYTES],
}

/// A socket with prepared buffers.
#[expect(clippy::disallowed_types, reason = "made at start-up, kept for good")]
pub struct BareBus {
    fd: OwnedFd,
    _slots: Box<[Slot; BATCH_MAX]>,
    _vectors: Box<[libc::iovec; BATCH_MAX]>,
    headers: Box<[libc::mmsghdr; BATCH_MAX]>,
}

#[expect(unsafe_code, reason = "kernel structures hold raw pointers")]
// SAFETY: the pointers point into boxes that this object owns and never moves out of; only the kernel follows them, during `read`.
unsafe impl Send for BareBus {}

impl BareBus {
    /// Joins as an arm's link would.
    ///
    /// # Errors
    /// See [`OpenError`].
    #[expect(clippy::disallowed_types, reason = "start-up")]
    #[expect(unsafe_code, reason = "all-zero kernel structures")]
    pub fn join(options: &LinkOptions) -> Result<Self, OpenError> {
        let fd = open::open(&SocketPlan {
            address: options.address.clone(),
            filters: options.filters.clone(),
            format: options.format,
            own_messages: true,
            send_queue_bytes: Some(open::LOCAL_SEND_QUEUE_BYTES),
        })?;
        let slot = Slot {
            control: [0; CONTROL_BYTES],
            data: [0; FD_BYTES],
        };
        // SAFETY: all-zero bytes are a valid `iovec` and `mmsghdr` (null pointers and zero lengths).
        let (vector, header) = unsafe {
            (
                core::mem::zeroed::<libc::iovec>(),
                core::mem::zeroed::<libc::mmsghdr>(),
            )
        };
        let mut slots = Box::new([slot; BATCH_MAX]);
        let mut vectors = Box::new([vector; BATCH_MAX]);
        let mut headers = Box::new([header; BATCH_MAX]);
        for ((slot, vector), header) in slots
            .iter_mut()
            .zip(vectors.iter_mut())
            .zip(headers.iter_mut())
        {
            vector.iov_base = slot.data.as_mut_ptr().cast();
            vector.iov_len = slot.data.len();
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = slot.control.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = slot.control.len() as _;
        }
        Ok(Self {
            fd,
            _slots: slots,
            _vectors: vectors,
            headers,
        })
    }

    /// Takes up to 64 frames with one call, as the link does when fewer are there. Gives how many came.
    pub fn read(&mut self) -> usize {
        #[expect(unsafe_code, reason = "recvmmsg has no safe form")]
        // SAFETY: the headers point to vectors, data and control buffers in boxes of this object, alive and not otherwise used meanwhile.
        let got = unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                self.headers.as_mut_ptr(),
                BATCH_MAX as libc::c_uint,
                libc::MSG_DONTWAIT,
                core::ptr::null_mut(),
            )
        };
        let got = usize::try_from(got).unwrap_or(0);
        for header in self.headers.iter_mut().take(got) {
            // The kernel has written here how much it used.
            header.msg_hdr.msg_controllen = CONTROL_BYTES as _;
        }
        got
    }

    /// Hands frames to the kernel with one call; gives how many it took.
    #[must_use]
    pub fn write(&self, frames: &[KernelFrame]) -> usize {
        sys::send_group(self.fd.as_raw_fd(), frames).unwrap_or(0)
    }
}

/// Frames laid out for [`BareBus::write`].
#[must_use]
#[expect(clippy::disallowed_types, reason = "start-up")]
pub fn lay_out(frames: &[Frame]) -> Box<[KernelFrame]> {
    frames
        .iter()
        .map(|f| KernelFrame::encode(f, FrameFormat::Classic))
        .collect()
}

/// The options of an arm's link on a local bus, for a baseline beside it.
#[must_use]
#[expect(clippy::disallowed_types, reason = "start-up")]
pub fn options(address: &CanAddress) -> LinkOptions {
    LinkOptions {
        address: address.clone(),
        filters: Box::new([]),
        format: FrameFormat::Classic,
        cycle_frames: 0,
        stamps: StampSource::Kernel,
    }
}
