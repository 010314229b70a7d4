//! A UDP port and the session that its datagrams belong to.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

use mio::net::UdpSocket;
use mio::{Interest, Registry, Token};

use super::stats::{NOT_ALLOWED, OTHER_SENDER, SourceStats, THREAD_AWAY};
use super::{Drained, Source};
use crate::handoff::{LastUsable, Publisher, SourceId, StopLine, StopReason, sys};
use crate::operator::pin::{Pin, Standing};
use crate::operator::{Body, Break, DatagramSession};
use crate::rt::net::{self, Received};
use crate::signal::{OperatorSample, Quality};
use crate::time::Stamp;

/// Most datagrams of one socket in one turn.
pub const DATAGRAMS_PER_TURN: usize = 64;
/// Larger than any valid packet of any device: a smaller buffer would cut a too long packet to a valid length.
pub const BUFFER_BYTES: usize = 2048;
/// Some hundred small datagrams: seconds of a 50 Hz sender. More would only keep old ones.
const RECEIVE_BUFFER_BYTES: i32 = 212_992;

/// Where a source's results go.
pub struct Outlets {
    /// The mailbox that control reads.
    pub publisher: Publisher<OperatorSample>,
    /// The age that the watchdog judges.
    pub last_usable: Arc<LastUsable>,
    /// The stop.
    pub stop_line: Arc<StopLine>,
    /// Counters and stop level.
    pub stats: Arc<SourceStats>,
    /// Who we are, for the latch.
    pub id: SourceId,
}

/// Why a port cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Somebody else has it.
    #[error("UDP port {port} is in use{}; end that program, or give another `port`", holder_text(.holder.as_ref()))]
    PortInUse {
        /// The port.
        port: u16,
        /// Who has it, as far as we may know.
        holder: Option<PortHolder>,
    },
    /// Anything else.
    #[error("cannot listen on UDP {listen}: {error}")]
    Bind {
        /// The address.
        listen: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
}

/// A process that has a port open.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::disallowed_types, reason = "start-up")]
pub struct PortHolder {
    /// Process id.
    pub pid: u32,
    /// Its command name.
    pub name: String,
}

#[expect(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "start-up"
)]
fn holder_text(holder: Option<&PortHolder>) -> String {
    match holder {
        Some(holder) => format!(" by {} (pid {})", holder.name, holder.pid),
        None => String::new(),
    }
}

/// A bound UDP port, not served yet: binding early shows a busy port before anything is started.
#[derive(Debug)]
pub struct BoundPort(UdpSocket);

impl BoundPort {
    /// Binds without blocking and without sharing: a port belongs to one program.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn bind(listen: SocketAddr) -> Result<Self, OpenError> {
        match UdpSocket::bind(listen) {
            Ok(socket) => {
                net::prepare(socket.as_fd(), RECEIVE_BUFFER_BYTES);
                Ok(Self(socket))
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(OpenError::PortInUse {
                port: listen.port(),
                holder: port_holder(listen.port()),
            }),
            Err(error) => Err(OpenError::Bind { listen, error }),
        }
    }

    /// The address, with the port that the kernel chose if 0 was asked for.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// Finds the process that has a UDP port open: the socket's inode from /proc/net/udp, then whose descriptor points to it. Best effort:
/// another user's process stays unnamed.
#[must_use]
#[expect(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "start-up"
)]
pub fn port_holder(port: u16) -> Option<PortHolder> {
    let inode_in = |table: &str| {
        let text = std::fs::read_to_string(table).ok()?;
        text.lines().skip(1).find_map(|line| {
            let mut fields = line.split_whitespace();
            let local = fields.nth(1)?;
            let (_, local_port) = local.rsplit_once(':')?;
            let is_ours = u16::from_str_radix(local_port, 16).ok()? == port;
            is_ours.then(|| fields.nth(7).map(str::to_owned)).flatten()
        })
    };
    let inode = inode_in("/proc/net/udp").or_else(|| inode_in("/proc/net/udp6"))?;
    let wanted = format!("socket:[{inode}]");
    for process in std::fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        let Ok(descriptors) = std::fs::read_dir(process.path().join("fd")) else {
            continue;
        };
        let has_it = descriptors.flatten().any(|fd| {
            std::fs::read_link(fd.path()).is_ok_and(|to| to.as_os_str() == wanted.as_str())
        });
        if has_it {
            let name = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            return Some(PortHolder {
                pid,
                name: name.trim().to_owned(),
            });
        }
    }
    None
}

/// What is done with datagrams that queued up while the thread was away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backlog {
    /// There is none.
    None,
    /// Everything that arrived before this is discarded.
    Before(Stamp),
}

/// A UDP port, served.
pub struct UdpSource<S> {
    socket: UdpSocket,
    session: S,
    pin: Pin,
    outlets: Outlets,
    backlog: Backlog,
    /// When the queue was last seen empty: nothing that is received later can have arrived before.
    empty_at: Stamp,
    kernel_drops: u32,
    buffer: [u8; BUFFER_BYTES],
}

impl<S: DatagramSession> UdpSource<S> {
    /// Serves a bound port.
    #[must_use]
    pub fn new(port: BoundPort, session: S, pin: Pin, outlets: Outlets) -> Self {
        Self {
            socket: port.0,
            session,
            pin,
            outlets,
            backlog: Backlog::None,
            empty_at: Stamp::default(),
            kernel_drops: 0,
            buffer: [0; BUFFER_BYTES],
        }
    }

    fn take(&mut self, received: &Received) {
        let bytes = self.buffer.get(..received.len).unwrap_or(&[]);
        // The kernel's stamp is of the wall clock: if that was set, this bound is what keeps the age right.
        let at = received.received_at.max(self.empty_at);
        let (from, stats) = (received.from, &self.outlets.stats);
        let standing = self.pin.standing(from, at);
        let glance = self.session.glance(bytes);
        if glance.stop {
            let by_owner = matches!(standing, Standing::Owner | Standing::MayTake { .. });
            stats.stop_level.assert(by_owner, at);
            self.outlets
                .stop_line
                .trip(StopReason::OperatorStopBit, self.outlets.id);
            stats.stop_bit();
        }
        stats.packet(at);
        if let Some(drops) = received.kernel_drops {
            stats.kernel_dropped(self.kernel_drops, drops);
            self.kernel_drops = drops;
        }
        if self.is_backlog(received, at) {
            self.outlets.stats.dropped(THREAD_AWAY);
            return;
        }
        match standing {
            Standing::NotAllowed => return self.turn_away(from, NOT_ALLOWED),
            Standing::Other => return self.turn_away(from, OTHER_SENDER),
            Standing::MayTake { replaces: true } if glance.valid => {
                self.session.on_break(Break::NewOwner)
            }
            Standing::MayTake { .. } | Standing::Owner => {}
        }
        self.judge(received, at);
    }

    fn judge(&mut self, received: &Received, at: Stamp) {
        let bytes = self.buffer.get(..received.len).unwrap_or(&[]);
        let verdict = self.session.on_datagram(bytes, at);
        let stats = &self.outlets.stats;
        match verdict.body {
            Body::Drop(reason) => stats.dropped_by_device(reason),
            Body::Sample(sample) => {
                self.pin.transition_to_owned(received.from, at);
                if !verdict.stop {
                    stats.stop_level.clear_owner();
                }
                // The age after the sample: who sees the new age can read the new sample.
                self.outlets.publisher.publish(sample);
                if sample.quality == Quality::Good {
                    self.outlets.last_usable.store(sample.received_at);
                }
                stats.owner.store(received.from);
                stats.accepted();
            }
        }
        stats.session(&self.session.counts());
    }

    fn turn_away(&mut self, from: SocketAddr, reason: usize) {
        self.outlets.stats.stranger.store(from);
        self.outlets.stats.dropped(reason);
    }

    fn is_backlog(&mut self, received: &Received, at: Stamp) -> bool {
        let Backlog::Before(back_at) = self.backlog else {
            return false;
        };
        // Without the kernel's stamp every datagram looks new; then all go until the queue is empty.
        if received.is_stamped && at >= back_at {
            self.backlog = Backlog::None;
            return false;
        }
        true
    }
}

impl<S: DatagramSession> Source for UdpSource<S> {
    fn register(&mut self, registry: &Registry, first: Token) -> io::Result<()> {
        registry.register(&mut self.socket, first, Interest::READABLE)
    }

    fn on_ready(&mut self, _token: Token, _registry: &Registry, _now: Stamp) -> Drained {
        for _ in 0..DATAGRAMS_PER_TURN {
            let asked_at = sys::now();
            match net::recv_stamped(self.socket.as_fd(), &mut self.buffer) {
                Ok(received) => self.take(&received),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.empty_at = asked_at;
                    self.backlog = Backlog::None;
                    return Drained::Empty;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.outlets.stats.socket_error();
                    return Drained::Later;
                }
            }
        }
        Drained::More
    }

    fn on_timer(&mut self, _registry: &Registry, _now: Stamp) {}

    fn next_deadline(&self) -> Option<Stamp> {
        None
    }

    fn on_away(&mut self, now: Stamp) {
        self.session.on_break(Break::Away);
        self.backlog = Backlog::Before(now);
    }
}

#[cfg(test)]
#[path = "udp_tests.rs"]
mod tests;
