//! A UDP port and the session that its datagrams belong to.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

use mio::net::UdpSocket;
use mio::{Interest, Registry, Token};

use super::port::BoundPort;
use super::stats::{NOT_ALLOWED, OTHER_SENDER, SourceStats, THREAD_AWAY};
use super::{Drained, Source};
use crate::handoff::{LastUsable, Publisher, SourceId, StopLine, StopReason};
use crate::operator::pin::{Pin, Standing};
use crate::operator::{Body, Break, DatagramSession};
use crate::rt::clock;
use crate::rt::net::{self, Received};
use crate::signal::{OperatorSample, Quality};
use crate::time::Stamp;

/// Most datagrams of one socket in one turn.
pub const DATAGRAMS_PER_TURN: usize = 64;
/// Larger than any valid packet of any device: a smaller buffer would cut a too long packet to a valid length.
pub const BUFFER_BYTES: usize = 2048;

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
            let asked_at = clock::now();
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
