//! Receiving datagrams with the time at which they *arrived*, not the time at which we got round to reading them.
//!
//! The kernel stamps a datagram with its wall clock (`SO_TIMESTAMPNS`). A wall-clock stamp is worthless as a time, but the difference
//! "wall clock now minus stamp" is how long the datagram waited in the queue; that much is taken off our monotonic clock. If the wall
//! clock is set in between, the difference is wrong once; it is clamped to 0..=[`QUEUE_DELAY_MAX`] here, and the caller clamps it
//! further with what it knows (nothing in a queue can be older than the last time the queue was seen empty). So setting the wall clock
//! neither makes a datagram younger than now nor poisons later ones.
//!
//! The kernel switches stamping on for the whole machine when the first socket asks for it, and does so in the background: until then it
//! stamps a datagram when it is *read*, which looks like no delay at all. [`wait_for_stamps`] waits that out at start-up.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::disallowed_macros
)]

use std::io;
use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;
use std::thread;
use std::time::Duration;

use crate::handoff::sys;
use crate::time::{Span, Stamp};

/// Longest queue delay that is believed.
pub const QUEUE_DELAY_MAX: Span = Span::from_ms(1000);

/// One datagram; its bytes are in the caller's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Valid bytes in the buffer.
    pub len: usize,
    /// The datagram was longer than the buffer; the rest is gone.
    pub is_truncated: bool,
    /// Sender.
    pub from: SocketAddr,
    /// When it arrived: our monotonic clock minus the time in the queue. Without a kernel stamp, the time of reading.
    pub received_at: Stamp,
    /// The kernel gave a stamp.
    pub is_stamped: bool,
    /// How many datagrams the socket had to drop for lack of room, up to this one; wraps. `None` when the kernel does not say (it says
    /// nothing until the first drop).
    pub kernel_drops: Option<u32>,
}

/// Asks the kernel for stamps and for its drop counter, and sets the size of the receive buffer (bytes; the kernel has its own maximum).
/// All three are improvements: a kernel that refuses one is used without it.
pub fn prepare(fd: BorrowedFd<'_>, receive_buffer_bytes: i32) {
    for (option, value) in [
        (libc::SO_TIMESTAMPNS, 1),
        (libc::SO_RXQ_OVFL, 1),
        (libc::SO_RCVBUF, receive_buffer_bytes),
    ] {
        set_option(fd, option, value);
    }
}

/// Waits until datagrams are stamped on arrival, at most `limit`; true if they are. For start-up, after the first socket was prepared and
/// while it stays open. Sends itself datagrams over loopback.
///
/// # Errors
/// When no loopback socket can be had.
pub fn wait_for_stamps(limit: Span) -> io::Result<bool> {
    const QUEUED: Duration = Duration::from_millis(2);
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect(socket.local_addr()?)?;
    prepare(socket.as_fd(), 4096);
    let started = sys::now();
    while sys::now().age_of(started) <= limit {
        socket.send(b"stamp?")?;
        let sent = sys::now();
        thread::sleep(QUEUED);
        let received = recv_stamped(socket.as_fd(), &mut [0; 16])?;
        // Read at least 2 ms after `sent`: a stamp of the reading would be later than that.
        if received.is_stamped && received.received_at < sent + Span::from_ms(1) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn set_option(fd: BorrowedFd<'_>, option: libc::c_int, value: libc::c_int) {
    #[expect(
        unsafe_code,
        reason = "setsockopt has no safe form in the standard library"
    )]
    // SAFETY: `value` is a live c_int and the length given is its size; the descriptor is borrowed, so it stays open.
    unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw const value).cast(),
            socklen::<libc::c_int>(),
        );
    }
}

/// Room for a time stamp and a drop counter, aligned as control messages want it.
#[repr(C, align(8))]
struct ControlBuffer([u8; 128]);

/// Receives one datagram without blocking. No allocation, on success and on failure.
///
/// # Errors
/// `WouldBlock` when the queue is empty; otherwise what the kernel says. `InvalidData` if the sender's address is neither IPv4 nor IPv6.
pub fn recv_stamped(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Received> {
    let mut control = ControlBuffer([0; 128]);
    let mut iov = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    #[expect(
        unsafe_code,
        reason = "recvmsg has no safe form in the standard library"
    )]
    // SAFETY: both are plain C structures for which all zeros is a valid value.
    let (mut name, mut msg): (libc::sockaddr_storage, libc::msghdr) =
        unsafe { (mem::zeroed(), mem::zeroed()) };
    msg.msg_name = (&raw mut name).cast();
    msg.msg_namelen = socklen::<libc::sockaddr_storage>();
    msg.msg_iov = &raw mut iov;
    msg.msg_iovlen = 1;
    msg.msg_control = control.0.as_mut_ptr().cast();
    msg.msg_controllen = control.0.len();
    #[expect(
        unsafe_code,
        reason = "recvmsg has no safe form in the standard library"
    )]
    // SAFETY: every pointer in `msg` points to a live local or to `buffer`, with its true length; the kernel writes within them.
    let len = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut msg, libc::MSG_DONTWAIT) };
    // Monotonic before wall clock: if we are preempted between the two, the delay comes out too long, so the datagram older, not younger.
    let now = sys::now();
    let wall_now = sys::read_clock(libc::CLOCK_REALTIME);
    let Ok(len) = usize::try_from(len) else {
        return Err(io::Error::last_os_error());
    };
    let Some(from) = address(&name) else {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    };
    let notes = control_notes(&msg);
    let delay = notes.wall_stamp.map(|stamp| queue_delay(wall_now, stamp));
    Ok(Received {
        len: len.min(buffer.len()),
        is_truncated: msg.msg_flags & libc::MSG_TRUNC != 0,
        from,
        received_at: now - delay.unwrap_or(Span::ZERO),
        is_stamped: delay.is_some(),
        kernel_drops: notes.drops,
    })
}

/// Both of the wall clock. A stamp from the future (the clock was set back) counts as no delay.
fn queue_delay(wall_now: Stamp, stamp: Stamp) -> Span {
    wall_now.age_of(stamp).min(QUEUE_DELAY_MAX)
}

#[derive(Default)]
struct Notes {
    wall_stamp: Option<Stamp>,
    drops: Option<u32>,
}

/// Walks the control messages. Bounded by the size of the control buffer.
fn control_notes(msg: &libc::msghdr) -> Notes {
    let mut notes = Notes::default();
    #[expect(unsafe_code, reason = "control messages are walked with pointers")]
    // SAFETY: `msg` was filled by a successful recvmsg; its control pointer and length describe a live, aligned buffer.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(msg) };
    while !header.is_null() {
        #[expect(unsafe_code, reason = "control messages are walked with pointers")]
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR give only headers that lie in the control buffer, data included. The data are copied
        // with unaligned reads, and only for types whose payload is at least as long.
        unsafe {
            let data = libc::CMSG_DATA(header);
            if (*header).cmsg_level == libc::SOL_SOCKET {
                match (*header).cmsg_type {
                    libc::SCM_TIMESTAMPNS => {
                        let at: libc::timespec = ptr::read_unaligned(data.cast());
                        notes.wall_stamp = Some(stamp_of(at));
                    }
                    libc::SO_RXQ_OVFL => notes.drops = Some(ptr::read_unaligned(data.cast())),
                    _ => {}
                }
            }
            header = libc::CMSG_NXTHDR(msg, header);
        }
    }
    notes
}

fn stamp_of(at: libc::timespec) -> Stamp {
    let s = u64::try_from(at.tv_sec).unwrap_or(0);
    let ns = u64::try_from(at.tv_nsec).unwrap_or(0);
    Stamp::from_ns(s.saturating_mul(1_000_000_000).saturating_add(ns))
}

fn address(name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match i32::from(name.ss_family) {
        libc::AF_INET => {
            #[expect(unsafe_code, reason = "a socket address is a C union by family")]
            // SAFETY: the family says that the storage holds this type, and the storage is large and aligned enough for every type.
            let v4 = unsafe { &*ptr::from_ref(name).cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Some(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
        }
        libc::AF_INET6 => {
            #[expect(unsafe_code, reason = "a socket address is a C union by family")]
            // SAFETY: as above.
            let v6 = unsafe { &*ptr::from_ref(name).cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            let port = u16::from_be(v6.sin6_port);
            Some(SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id).into())
        }
        _ => None,
    }
}

/// Sizes of socket structures: a few hundred bytes at most.
#[expect(clippy::cast_possible_truncation, reason = "structures of a few bytes")]
const fn socklen<T>() -> libc::socklen_t {
    size_of::<T>() as libc::socklen_t
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::disallowed_macros)]
mod tests {
    use super::*;

    fn pair(bind: &str) -> (UdpSocket, UdpSocket) {
        let receiver = UdpSocket::bind(bind).unwrap();
        prepare(receiver.as_fd(), 65_536);
        let sender = UdpSocket::bind(bind).unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        (receiver, sender)
    }

    /// Guards: a datagram that waited in the queue is dated to its arrival, not to our reading.
    #[test]
    fn time_in_the_queue_is_taken_off() {
        let (receiver, sender) = pair("127.0.0.1:0");
        assert!(wait_for_stamps(Span::from_ms(20_000)).unwrap());
        let before = sys::now();
        sender.send(b"hello").unwrap();
        let sent = sys::now();
        thread::sleep(Duration::from_millis(60));
        let mut buffer = [0; 16];
        let got = recv_stamped(receiver.as_fd(), &mut buffer).unwrap();
        assert_eq!(
            (got.len, got.is_truncated, got.is_stamped),
            (5, false, true)
        );
        assert_eq!(got.from, sender.local_addr().unwrap());
        // Far more than the time between two clock reads, far less than the wait.
        let slack = Span::from_ms(5);
        let (early, late) = (got.received_at - before, got.received_at - sent);
        assert!(
            early + slack >= Span::ZERO && late <= slack,
            "arrived {early:?} after the first look, {late:?} after the second"
        );
    }

    /// Guards: an empty queue is WouldBlock at once; a datagram longer than the buffer is cut and says so.
    #[test]
    fn empty_and_too_long() {
        let (receiver, sender) = pair("127.0.0.1:0");
        let mut buffer = [0; 16];
        let error = recv_stamped(receiver.as_fd(), &mut buffer).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        sender.send(&[7; 17]).unwrap();
        let got = recv_stamped(receiver.as_fd(), &mut buffer).unwrap();
        assert_eq!((got.len, got.is_truncated, buffer), (16, true, [7; 16]));
    }

    /// Guards: the kernel's own drops are reported by a datagram that came after them.
    #[test]
    fn kernel_drops_are_counted() {
        let (receiver, sender) = pair("127.0.0.1:0");
        set_option(receiver.as_fd(), libc::SO_RCVBUF, 4096);
        for _ in 0..200 {
            sender.send(&[1; 45]).unwrap();
        }
        let mut buffer = [0; 64];
        let mut taken = 0u32;
        while recv_stamped(receiver.as_fd(), &mut buffer).is_ok() {
            taken += 1;
        }
        sender.send(b"after").unwrap();
        let got = recv_stamped(receiver.as_fd(), &mut buffer).unwrap();
        assert_eq!(got.kernel_drops, Some(200 - taken));
    }

    /// Guards: a wall clock that was set gives a bounded delay, never a negative one.
    #[test]
    fn set_wall_clock_is_bounded() {
        let hour = Span::from_ms(3_600_000);
        let now = Stamp::from_ms(1_700_000_000_000);
        assert_eq!(queue_delay(now, now + hour), Span::ZERO);
        assert_eq!(queue_delay(now, now - hour), QUEUE_DELAY_MAX);
        assert_eq!(queue_delay(now, now - Span::from_ms(3)), Span::from_ms(3));
    }

    #[test]
    fn ipv6_senders_are_read() {
        if UdpSocket::bind("[::1]:0").is_err() {
            eprintln!("no IPv6 here: not tested");
            return;
        }
        let (receiver, sender) = pair("[::1]:0");
        sender.send(b"six").unwrap();
        let got = recv_stamped(receiver.as_fd(), &mut [0; 16]).unwrap();
        assert_eq!(got.from, sender.local_addr().unwrap());
    }
}
