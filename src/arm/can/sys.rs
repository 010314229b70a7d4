//! The system calls of the link, each wrapped once. Nothing here allocates except [`RecvBuffer::new`].

#![expect(
    unsafe_code,
    reason = "socket calls that std and the socketcan crate lack: sendmmsg, recvmmsg with stamps, seqpacket sockets, dup3"
)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::{SystemTime, UNIX_EPOCH};

use super::address::CanAddress;
use super::bytes::{Content, FD_BYTES, KernelFrame, content};
use crate::time::Stamp;

/// A raw error number. `io::Error` is left out of the paths that must not allocate.
pub(super) type Errno = i32;

/// Most frames in one group.
pub(super) const GROUP_MAX: usize = 16;
/// Most datagrams taken by one call.
pub(super) const BATCH_MAX: usize = 64;

/// Room for one `SCM_TIMESTAMPNS` and one `SO_RXQ_OVFL`, aligned as control messages must be.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; 64]);

#[derive(Clone, Copy)]
struct Slot {
    data: [u8; FD_BYTES],
    control: Control,
}

/// Where received datagrams land. Made once.
#[expect(clippy::disallowed_types, reason = "made at start-up, kept for good")]
pub(super) struct RecvBuffer {
    slots: Box<[Slot; BATCH_MAX]>,
    headers: Box<[libc::mmsghdr; BATCH_MAX]>,
    vectors: Box<[libc::iovec; BATCH_MAX]>,
}

// SAFETY: the raw pointers inside `headers` and `vectors` point into boxes that this object owns, are rewritten before each call of the
// kernel, and are never read by us otherwise.
unsafe impl Send for RecvBuffer {}

/// One received datagram.
#[derive(Debug, Clone, Copy)]
pub(super) struct Datagram {
    /// What it carries; `None` for an empty one (end of file of a seqpacket socket).
    pub(super) content: Option<Content>,
    /// A control byte of the local bus.
    pub(super) control: Option<u8>,
    /// The kernel says that this frame was sent by this very socket (`MSG_CONFIRM`).
    pub(super) confirmed: bool,
    /// Arrival in nanoseconds of the wall clock.
    pub(super) arrival_ns: Option<i64>,
    /// Datagrams that the kernel dropped so far because the socket's queue was full.
    pub(super) dropped: Option<u32>,
}

/// Where receive stamps come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StampSource {
    /// The kernel's arrival stamp, moved to the monotonic clock.
    #[default]
    Kernel,
    /// The time of the poll: for tests with a fake clock.
    Poll,
}

impl RecvBuffer {
    #[expect(clippy::disallowed_types, reason = "start-up")]
    pub(super) fn new() -> Self {
        let slot = Slot {
            data: [0; FD_BYTES],
            control: Control([0; 64]),
        };
        // SAFETY: all-zero bytes are a valid `mmsghdr` and `iovec` (null pointers and zero lengths).
        let (header, vector) = unsafe {
            (
                core::mem::zeroed::<libc::mmsghdr>(),
                core::mem::zeroed::<libc::iovec>(),
            )
        };
        Self {
            slots: Box::new([slot; BATCH_MAX]),
            headers: Box::new([header; BATCH_MAX]),
            vectors: Box::new([vector; BATCH_MAX]),
        }
    }

    /// Takes up to [`BATCH_MAX`] datagrams without waiting.
    ///
    /// # Errors
    /// The error number; `EAGAIN` when there is nothing.
    pub(super) fn fill(&mut self, fd: RawFd) -> Result<usize, Errno> {
        for ((slot, header), vector) in self
            .slots
            .iter_mut()
            .zip(self.headers.iter_mut())
            .zip(self.vectors.iter_mut())
        {
            vector.iov_base = slot.data.as_mut_ptr().cast();
            vector.iov_len = slot.data.len();
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = slot.control.0.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = slot.control.0.len() as _;
            header.msg_hdr.msg_flags = 0;
            header.msg_len = 0;
        }
        // SAFETY: `headers` holds BATCH_MAX headers whose vectors and control buffers point into boxes of this object, alive and
        // borrowed mutably for the whole call.
        let got = unsafe {
            libc::recvmmsg(
                fd,
                self.headers.as_mut_ptr(),
                BATCH_MAX as libc::c_uint,
                libc::MSG_DONTWAIT,
                core::ptr::null_mut(),
            )
        };
        usize::try_from(got).map_err(|_| last_errno())
    }

    /// The `index`-th datagram of the last batch.
    pub(super) fn get(&self, index: usize) -> Option<Datagram> {
        let (slot, header) = (self.slots.get(index)?, self.headers.get(index)?);
        let raw = slot.data.get(..usize::try_from(header.msg_len).ok()?)?;
        let (arrival_ns, dropped) = control_messages(&header.msg_hdr);
        let truncated = header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
        Some(Datagram {
            content: match raw.len() {
                0 => None,
                _ if truncated => Some(Content::Other),
                _ => Some(content(raw)),
            },
            control: match raw {
                [only] => Some(*only),
                _ => None,
            },
            confirmed: header.msg_hdr.msg_flags & libc::MSG_CONFIRM != 0,
            arrival_ns,
            dropped,
        })
    }
}

impl RecvBuffer {
    /// The bytes of the `index`-th datagram of the last batch.
    pub(super) fn raw(&self, index: usize) -> &[u8] {
        let len = self
            .headers
            .get(index)
            .and_then(|h| usize::try_from(h.msg_len).ok());
        self.slots
            .get(index)
            .and_then(|s| s.data.get(..len?))
            .unwrap_or(&[])
    }
}

/// Arrival stamp and drop count in the control messages of a received datagram.
fn control_messages(header: &libc::msghdr) -> (Option<i64>, Option<u32>) {
    let (mut arrival_ns, mut dropped) = (None, None);
    // SAFETY: `header` was filled by a successful recvmmsg; the macros walk its control buffer within `msg_controllen`. Each payload is
    // read only if its message is long enough, and unaligned.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        // Two kinds are enabled and 64 bytes hold no more than two messages; the bound keeps a kernel surprise finite.
        for _ in 0..4 {
            let Some(head) = message.as_ref() else { break };
            let data = libc::CMSG_DATA(message);
            let stamp_len = libc::CMSG_LEN(size_of::<libc::timespec>() as u32) as usize;
            let count_len = libc::CMSG_LEN(size_of::<u32>() as u32) as usize;
            match (head.cmsg_level, head.cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) if head.cmsg_len >= stamp_len => {
                    let t = data.cast::<libc::timespec>().read_unaligned();
                    arrival_ns = t
                        .tv_sec
                        .checked_mul(1_000_000_000)
                        .and_then(|s| s.checked_add(t.tv_nsec));
                }
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) if head.cmsg_len >= count_len => {
                    dropped = Some(data.cast::<u32>().read_unaligned());
                }
                _ => {}
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
    (arrival_ns, dropped)
}

/// Wall clock, nanoseconds since 1970.
pub(super) fn wall_ns() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX))
}

/// Our monotonic clock.
pub(super) fn monotonic() -> Stamp {
    // SAFETY: all-zero bytes are a valid timespec, which the kernel fills; CLOCK_MONOTONIC always exists.
    let t = unsafe {
        let mut t: libc::timespec = core::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut t);
        t
    };
    let (s, ns) = (
        u64::try_from(t.tv_sec).unwrap_or(0),
        u64::try_from(t.tv_nsec).unwrap_or(0),
    );
    Stamp::from_ns(s.saturating_mul(1_000_000_000).saturating_add(ns))
}

/// Hands a group to the kernel with one call, without waiting. Gives how many frames were taken, from the front.
///
/// # Errors
/// The error number when none was taken.
pub(super) fn send_group(fd: RawFd, frames: &[KernelFrame]) -> Result<usize, Errno> {
    // SAFETY: all-zero bytes are a valid `mmsghdr` and `iovec`.
    let (header, vector) = unsafe {
        (
            core::mem::zeroed::<libc::mmsghdr>(),
            core::mem::zeroed::<libc::iovec>(),
        )
    };
    let mut headers = [header; GROUP_MAX];
    let mut vectors = [vector; GROUP_MAX];
    for ((header, vector), frame) in headers.iter_mut().zip(vectors.iter_mut()).zip(frames) {
        let bytes = frame.as_bytes();
        vector.iov_base = bytes.as_ptr().cast_mut().cast();
        vector.iov_len = bytes.len();
        header.msg_hdr.msg_iov = vector;
        header.msg_hdr.msg_iovlen = 1;
    }
    let count = frames.len().min(GROUP_MAX) as libc::c_uint;
    // SAFETY: the first `count` headers point to vectors and frames that live until the call returns; the kernel only reads the frames.
    let taken = unsafe {
        libc::sendmmsg(
            fd,
            headers.as_mut_ptr(),
            count,
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        )
    };
    usize::try_from(taken).map_err(|_| last_errno())
}

fn last_errno() -> Errno {
    // Reading the number makes no heap object.
    io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EIO)
}

/// Sends one short datagram without waiting: the control bytes of the local bus.
pub(super) fn send_bytes(fd: RawFd, bytes: &[u8]) -> Result<(), Errno> {
    // SAFETY: the kernel reads `bytes.len()` bytes from a live slice.
    let sent = unsafe {
        libc::send(
            fd,
            bytes.as_ptr().cast(),
            bytes.len(),
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        )
    };
    if sent < 0 { Err(last_errno()) } else { Ok(()) }
}

/// Sets an integer socket option.
pub(super) fn set_option(fd: RawFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: pointer and length describe a live i32.
    let rc = unsafe {
        libc::setsockopt(
            fd,
            level,
            name,
            (&raw const value).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    if rc < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Process id of whoever called `listen` (or `connect`) at the other end of a Unix socket.
pub(super) fn peer_pid(fd: RawFd) -> Option<i32> {
    // SAFETY: all-zero bytes are a valid `ucred`; pointer and length describe it.
    unsafe {
        let mut who: libc::ucred = core::mem::zeroed();
        let mut len = size_of::<libc::ucred>() as libc::socklen_t;
        let rc = libc::getsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut who).cast(),
            &raw mut len,
        );
        (rc == 0 && who.pid > 0).then_some(who.pid)
    }
}

/// The name of a Unix socket.
pub(super) enum UnixName<'a> {
    Path(&'a str),
    Abstract(&'a str),
}

impl<'a> UnixName<'a> {
    /// The socket of a local bus; `None` for an interface.
    pub(super) fn of(address: &'a CanAddress) -> Option<Self> {
        match address {
            CanAddress::Interface(_) => None,
            CanAddress::LocalPath(path) => Some(Self::Path(path)),
            CanAddress::LocalAbstract(name) => Some(Self::Abstract(name)),
        }
    }

    fn sockaddr(&self) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
        // SAFETY: all-zero bytes are a valid `sockaddr_un`.
        let mut address: libc::sockaddr_un = unsafe { core::mem::zeroed() };
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        // An abstract name starts with a zero byte and has no end mark; a path ends with a zero.
        let (skip, text, tail) = match self {
            Self::Path(path) => (0, path, 1),
            Self::Abstract(name) => (1, name, 0),
        };
        let room = address.sun_path.get_mut(skip..).unwrap_or(&mut []);
        if text.len() + tail > room.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (slot, byte) in room.iter_mut().zip(text.bytes()) {
            *slot = byte as libc::c_char;
        }
        let used = core::mem::offset_of!(libc::sockaddr_un, sun_path) + skip + text.len() + tail;
        Ok((address, used as libc::socklen_t))
    }
}

/// A non-blocking Unix seqpacket socket.
fn seqpacket() -> io::Result<OwnedFd> {
    // SAFETY: no memory is passed; a non-negative result is a new descriptor that nobody else owns.
    unsafe {
        let fd = libc::socket(
            libc::AF_UNIX,
            libc::SOCK_SEQPACKET | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC,
            0,
        );
        if fd < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(OwnedFd::from_raw_fd(fd))
        }
    }
}

/// Connects to a seqpacket socket.
pub(super) fn connect(name: &UnixName<'_>) -> io::Result<OwnedFd> {
    let (address, len) = name.sockaddr()?;
    let fd = seqpacket()?;
    // SAFETY: pointer and length describe a live sockaddr_un.
    let rc = unsafe { libc::connect(fd.as_raw_fd(), (&raw const address).cast(), len) };
    if rc < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(fd)
    }
}

/// Binds and listens.
pub(super) fn listen(name: &UnixName<'_>, backlog: i32) -> io::Result<OwnedFd> {
    let (address, len) = name.sockaddr()?;
    let fd = seqpacket()?;
    // SAFETY: pointer and length describe a live sockaddr_un; listen takes no memory.
    let rc = unsafe {
        match libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) {
            0 => libc::listen(fd.as_raw_fd(), backlog),
            bad => bad,
        }
    };
    if rc < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(fd)
    }
}

/// Takes one waiting connection, if any.
pub(super) fn accept(listener: RawFd) -> io::Result<Option<OwnedFd>> {
    // SAFETY: no address is asked for; a non-negative result is a new descriptor that nobody else owns.
    unsafe {
        let fd = libc::accept4(
            listener,
            core::ptr::null_mut(),
            core::ptr::null_mut(),
            libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC,
        );
        if fd >= 0 {
            return Ok(Some(OwnedFd::from_raw_fd(fd)));
        }
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::WouldBlock {
        Ok(None)
    } else {
        Err(error)
    }
}

/// Puts the file behind `from` also behind the number `onto`, in one step of the kernel.
pub(super) fn replace(from: RawFd, onto: RawFd) -> Result<(), Errno> {
    // SAFETY: dup3 touches no memory; both numbers belong to objects of the caller, `onto` stays open and owned as before.
    let rc = unsafe { libc::dup3(from, onto, libc::O_CLOEXEC) };
    if rc < 0 { Err(last_errno()) } else { Ok(()) }
}

/// Waits until one of the descriptors can be read or has failed, at most `timeout_ms`. `false` after the time or a signal.
pub(super) fn wait_readable(fds: &mut [libc::pollfd], timeout_ms: i32) -> bool {
    // SAFETY: pointer and length describe a live slice of pollfd.
    unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout_ms) > 0 }
}
