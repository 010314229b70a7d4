//! A UDP port and the operators that its datagrams belong to.

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
use crate::operator::params::DatagramSettings;
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

/// Most operators that share a port: two hands, and room for two wearers.
pub const SEATS_MAX: usize = 4;

/// One operator at a port: its stream, who may send it, and where its results go.
#[expect(
    clippy::disallowed_types,
    reason = "boxed once at start-up; one virtual call a packet"
)]
pub struct Seat {
    session: Box<dyn DatagramSession>,
    pin: Pin,
    outlets: Outlets,
}

impl Seat {
    /// The pin is the seat's own: two hands on one port may come from two machines, and none of them takes the other's place.
    #[must_use]
    #[expect(clippy::disallowed_types, reason = "start-up")]
    pub const fn new(session: Box<dyn DatagramSession>, pin: Pin, outlets: Outlets) -> Self {
        Self {
            session,
            pin,
            outlets,
        }
    }

    /// The seat of an operator with these parameters.
    #[must_use]
    pub fn of(settings: &dyn DatagramSettings, outlets: Outlets) -> Self {
        let door = settings.door();
        let pin = Pin::new(door.allow.clone(), door.disengage_after);
        Self::new(settings.session(), pin, outlets)
    }

    /// Everything about a datagram that comes before the session: stop bit, counters. Gives how its sender stands, and whether the
    /// packet is acceptable at a glance.
    fn look(&self, bytes: &[u8], received: &Received, at: Stamp) -> (Standing, bool) {
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
        (standing, glance.valid)
    }

    /// Lets the datagram of an owner, or of who may become it, through to the session.
    fn admit(
        &mut self,
        bytes: &[u8],
        from: SocketAddr,
        (standing, valid): (Standing, bool),
        at: Stamp,
    ) {
        match standing {
            Standing::NotAllowed => self.turn_away(from, NOT_ALLOWED),
            Standing::Other => self.turn_away(from, OTHER_SENDER),
            Standing::MayTake { replaces } => {
                if replaces && valid {
                    self.session.on_break(Break::NewOwner);
                }
                self.judge(bytes, from, at);
            }
            Standing::Owner => self.judge(bytes, from, at),
        }
    }

    fn judge(&mut self, bytes: &[u8], from: SocketAddr, at: Stamp) {
        let verdict = self.session.on_datagram(bytes, at);
        let stats = &self.outlets.stats;
        match verdict.body {
            Body::Drop(reason) => stats.dropped_by_device(reason),
            Body::Sample(sample) => {
                self.pin.transition_to_owned(from, at);
                if !verdict.stop {
                    stats.stop_level.clear_owner();
                }
                // The age after the sample: who sees the new age can read the new sample.
                self.outlets.publisher.publish(sample);
                if sample.quality == Quality::Good {
                    self.outlets.last_usable.store(sample.received_at);
                }
                stats.owner.store(from);
                stats.accepted();
            }
        }
        stats.session(&self.session.counts());
    }

    fn turn_away(&self, from: SocketAddr, reason: usize) {
        self.outlets.stats.stranger.store(from);
        self.outlets.stats.dropped(reason);
    }
}

/// A UDP port, served: one socket, and a seat for each operator that listens to it.
///
/// A datagram belongs to the first seat whose session claims it, or else to the first seat, so that each is counted exactly once. What
/// concerns the socket and not a hand stays with the port: the receive stamp's lower bound, the backlog after an absence, and the
/// kernel's own drops, which nobody can assign and which the first seat counts.
pub struct UdpSource {
    socket: UdpSocket,
    seats: heapless::Vec<Seat, SEATS_MAX>,
    backlog: Backlog,
    /// When the queue was last seen empty: nothing that is received later can have arrived before.
    empty_at: Stamp,
    kernel_drops: u32,
    buffer: [u8; BUFFER_BYTES],
}

impl UdpSource {
    /// Serves a bound port.
    #[must_use]
    pub fn new(port: BoundPort, first: Seat) -> Self {
        let mut seats = heapless::Vec::new();
        // There is room for the first of SEATS_MAX.
        let _ = seats.push(first);
        Self {
            socket: port.0,
            seats,
            backlog: Backlog::None,
            empty_at: Stamp::default(),
            kernel_drops: 0,
            buffer: [0; BUFFER_BYTES],
        }
    }

    /// One more operator at this port. Start-up only.
    ///
    /// # Errors
    /// Gives the seat back when all [`SEATS_MAX`] are taken.
    #[expect(clippy::result_large_err, reason = "start-up; the caller keeps it")]
    pub fn share(&mut self, seat: Seat) -> Result<(), Seat> {
        self.seats.push(seat)
    }

    fn take(&mut self, received: &Received) {
        let bytes = self.buffer.get(..received.len).unwrap_or(&[]);
        // The kernel's stamp is of the wall clock: if that was set, this bound is what keeps the age right.
        let at = received.received_at.max(self.empty_at);
        let is_backlog = is_backlog(&mut self.backlog, received, at);
        if let (Some(drops), Some(first)) = (received.kernel_drops, self.seats.first()) {
            first.outlets.stats.kernel_dropped(self.kernel_drops, drops);
            self.kernel_drops = drops;
        }
        let claimed = self.seats.iter().position(|s| s.session.claims(bytes));
        let Some(seat) = self.seats.get_mut(claimed.unwrap_or(0)) else {
            return;
        };
        let looked = seat.look(bytes, received, at);
        if is_backlog {
            seat.outlets.stats.dropped(THREAD_AWAY);
        } else {
            seat.admit(bytes, received.from, looked, at);
        }
    }
}

fn is_backlog(backlog: &mut Backlog, received: &Received, at: Stamp) -> bool {
    let Backlog::Before(back_at) = *backlog else {
        return false;
    };
    // Without the kernel's stamp every datagram looks new; then all go until the queue is empty.
    if received.is_stamped && at >= back_at {
        *backlog = Backlog::None;
        return false;
    }
    true
}

impl Source for UdpSource {
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
                    if let Some(first) = self.seats.first() {
                        first.outlets.stats.socket_error();
                    }
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
        for seat in &mut self.seats {
            seat.session.on_break(Break::Away);
        }
        self.backlog = Backlog::Before(now);
    }
}

#[cfg(test)]
#[path = "udp_tests.rs"]
mod tests;
