//! [`Receiver`]: takes what is in a socket's queue and gives every frame its arrival time.

use std::os::fd::RawFd;

use super::bytes::Content;
use super::sys::{BATCH_MAX, Datagram, Errno, RecvBuffer, StampSource, wall_ns};
use crate::time::{Span, Stamp};

/// Calls of the kernel per poll, at most: 512 frames, some 150 ms of a talking arm and its echoes. The rest waits for the next poll.
const BATCHES_MAX: usize = 8;

/// Something taken from the queue.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    /// A frame (or an error frame, or something odd) with its arrival time.
    Frame {
        content: Content,
        own: bool,
        at: Stamp,
    },
    /// A control byte of the local bus.
    Control(u8),
    /// The other end of the local bus closed.
    Closed,
    /// An error of the socket.
    Errno(Errno),
}

/// Takes datagrams and stamps them.
pub(super) struct Receiver {
    buffer: RecvBuffer,
    stamps: StampSource,
    /// When the queue was last seen empty: nothing taken later can have arrived before.
    emptied_at: Stamp,
    dropped_seen: u32,
    /// Frames that the kernel dropped because our queue was full.
    pub(super) dropped: u64,
}

impl Receiver {
    pub(super) fn new(stamps: StampSource) -> Self {
        Self {
            buffer: RecvBuffer::new(),
            stamps,
            emptied_at: Stamp::default(),
            dropped_seen: 0,
            dropped: 0,
        }
    }

    /// Empties the queue into `sink`, within the bound. `true` when it was emptied.
    pub(super) fn drain(&mut self, fd: RawFd, now: Stamp, mut sink: impl FnMut(Event)) -> bool {
        for _ in 0..BATCHES_MAX {
            match self.buffer.fill(fd) {
                Ok(count) => {
                    let wall = match self.stamps {
                        StampSource::Kernel => wall_ns(),
                        StampSource::Poll => 0,
                    };
                    let mut closed = false;
                    for datagram in (0..count).filter_map(|i| self.buffer.get(i)) {
                        let at = stamp(&datagram, self.stamps, wall, now, self.emptied_at);
                        if let Some(total) = datagram.dropped {
                            self.dropped += u64::from(total.wrapping_sub(self.dropped_seen));
                            self.dropped_seen = total;
                        }
                        match (datagram.content, datagram.control) {
                            (_, Some(byte)) => sink(Event::Control(byte)),
                            (None, None) => closed = true,
                            (Some(content), None) => {
                                let marked = matches!(content, Content::Data { marked: true, .. });
                                sink(Event::Frame {
                                    content,
                                    own: datagram.confirmed || marked,
                                    at,
                                });
                            }
                        }
                    }
                    if closed {
                        sink(Event::Closed);
                        return true;
                    }
                    if count < BATCH_MAX {
                        self.emptied_at = now;
                        return true;
                    }
                }
                Err(libc::EAGAIN) => {
                    self.emptied_at = now;
                    return true;
                }
                Err(libc::EINTR) => {}
                Err(libc::ENOTSOCK | libc::EBADF) => {
                    sink(Event::Errno(libc::ENOTSOCK));
                    return true;
                }
                // A pending error of the socket is told once; what is behind it can still be read.
                Err(errno) => sink(Event::Errno(errno)),
            }
        }
        false
    }
}

/// When a datagram arrived, on the monotonic clock.
///
/// The kernel stamps with the wall clock, which can be set. A stamp is therefore believed only between the last moment the queue was
/// empty and now; a clock that was set costs at most one poll period of accuracy.
fn stamp(
    datagram: &Datagram,
    source: StampSource,
    wall: i64,
    now: Stamp,
    emptied_at: Stamp,
) -> Stamp {
    match (source, datagram.arrival_ns) {
        (StampSource::Kernel, Some(arrival)) => {
            let queued = Span::from_ns(wall.saturating_sub(arrival).max(0));
            (now - queued).clamp(emptied_at.min(now), now)
        }
        _ => now,
    }
}
