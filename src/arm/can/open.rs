//! Opening a bus: the only place where the two back ends differ.

#![allow(clippy::disallowed_types, reason = "start-up and plain threads only")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

use socketcan::{CanFdSocket, CanFilter, CanSocket, Socket, SocketOptions};

use super::address::CanAddress;
use super::bytes::FrameFormat;
use super::sys::{self, UnixName};

/// Sockets of control and stop port get the same priority: a stop socket with a higher one overtook up to 27 queued motion frames.
/// 6 is the highest that needs no privilege and lies in the first band of `pfifo_fast`.
const QUEUE_PRIORITY: i32 = 6;

/// Receive queue, bytes as the kernel counts them (some 700 for a frame): about a quarter of a second of a talking arm.
const RECEIVE_QUEUE_BYTES: i32 = 512 * 1024;

/// Send queue of a motion link on a local bus: some sixteen frames, like a CAN interface with a short `txqueuelen`.
pub(super) const LOCAL_SEND_QUEUE_BYTES: i32 = 6 * 1024;

/// Which identifiers to receive: `received & mask == id & mask`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdFilter {
    /// Identifier.
    pub id: u32,
    /// Bits that must agree.
    pub mask: u32,
}

impl IdFilter {
    /// One identifier.
    #[must_use]
    pub const fn one(id: u32) -> Self {
        Self { id, mask: 0x7FF }
    }

    /// The sixteen identifiers that share all but the last hexadecimal digit with `id`.
    #[must_use]
    pub const fn sixteen(id: u32) -> Self {
        Self { id, mask: 0x7F0 }
    }

    /// Whether it lets `id` through.
    #[must_use]
    pub const fn passes(self, id: u32) -> bool {
        id & self.mask == self.id & self.mask
    }
}

/// Why a bus could not be opened, in words for the user.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The kernel has no CAN at all.
    #[error("this kernel has no CAN sockets (load can and can_raw), so {0} cannot be opened")]
    NoCanSockets(CanAddress),
    /// No interface of that name.
    #[error("there is no CAN interface {name}; present: {present}")]
    NoInterface {
        /// What was asked for.
        name: CanAddress,
        /// What there is.
        present: String,
    },
    /// Nobody serves the local bus.
    #[error("nobody serves {0}: start the emulator first")]
    NoHub(CanAddress),
    /// Somebody else has the bus.
    #[error("{address} is in use by process {holder}; one program per bus, stop that one first")]
    InUse {
        /// Which bus.
        address: CanAddress,
        /// Process id, or "unknown".
        holder: String,
    },
    /// Anything else.
    #[error("cannot open {address}: {source}")]
    Io {
        /// Which bus.
        address: CanAddress,
        /// The system's reason.
        source: io::Error,
    },
}

impl OpenError {
    pub(super) fn io(address: &CanAddress, source: io::Error) -> Self {
        Self::Io {
            address: address.clone(),
            source,
        }
    }
}

/// What a socket shall be.
#[derive(Debug, Clone)]
pub(super) struct SocketPlan {
    pub(super) address: CanAddress,
    pub(super) filters: Box<[IdFilter]>,
    pub(super) format: FrameFormat,
    pub(super) own_messages: bool,
    /// Limits the send queue of a local bus; a CAN interface has its own (`txqueuelen`).
    pub(super) send_queue_bytes: Option<i32>,
}

/// Opens a non-blocking socket on the bus. Allocates and may wait for kernel locks: never on a real-time thread.
///
/// # Errors
/// See [`OpenError`].
pub(super) fn open(plan: &SocketPlan) -> Result<OwnedFd, OpenError> {
    match &plan.address {
        CanAddress::Interface(name) => open_interface(name, plan),
        local => open_local(local, plan.send_queue_bytes),
    }
}

fn open_interface(name: &str, plan: &SocketPlan) -> Result<OwnedFd, OpenError> {
    let fault = |error: io::Error| match error.raw_os_error() {
        Some(libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT) => {
            OpenError::NoCanSockets(plan.address.clone())
        }
        Some(libc::ENODEV | libc::ENXIO) => OpenError::NoInterface {
            name: plan.address.clone(),
            present: super::adapters::names(),
        },
        _ => OpenError::io(&plan.address, error),
    };
    let fd: OwnedFd = match plan.format {
        FrameFormat::Classic => {
            prepare(CanSocket::open(name).map_err(fault)?, plan).map_err(fault)?
        }
        FrameFormat::Fd => prepare(CanFdSocket::open(name).map_err(fault)?, plan).map_err(fault)?,
    };
    Ok(fd)
}

fn prepare<S: Socket + SocketOptions + IntoRawFd>(
    socket: S,
    plan: &SocketPlan,
) -> io::Result<OwnedFd> {
    let filters: Vec<CanFilter> = plan
        .filters
        .iter()
        .map(|f| CanFilter::new(f.id, f.mask | libc::CAN_EFF_FLAG | libc::CAN_RTR_FLAG))
        .collect();
    socket.set_filters(&filters)?;
    socket.set_error_filter_accept_all()?;
    socket.set_loopback(true)?;
    socket.set_recv_own_msgs(plan.own_messages)?;
    socket.set_nonblocking(true)?;
    socket.set_recv_timestamp(true)?;
    let fd = socket.as_raw_fd();
    sys::set_option(fd, libc::SOL_SOCKET, libc::SO_PRIORITY, QUEUE_PRIORITY)?;
    sys::set_option(fd, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)?;
    // A smaller queue than asked for only loses frames earlier, and lost frames are counted.
    let _ = sys::set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, RECEIVE_QUEUE_BYTES);
    #[expect(
        unsafe_code,
        reason = "the crate gives its descriptor up only as a number"
    )]
    // SAFETY: into_raw_fd hands the ownership over; nobody else closes this number.
    Ok(unsafe { OwnedFd::from_raw_fd(socket.into_raw_fd()) })
}

fn open_local(address: &CanAddress, send_queue_bytes: Option<i32>) -> Result<OwnedFd, OpenError> {
    let Some(name) = UnixName::of(address) else {
        return Err(OpenError::io(address, io::ErrorKind::InvalidInput.into()));
    };
    let fd = sys::connect(&name).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            OpenError::NoHub(address.clone())
        }
        _ => OpenError::io(address, error),
    })?;
    sys::set_option(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
        .map_err(|e| OpenError::io(address, e))?;
    if let Some(bytes) = send_queue_bytes {
        sys::set_option(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, bytes)
            .map_err(|e| OpenError::io(address, e))?;
    }
    Ok(fd)
}
