//! What other threads may know of a source: plain atomics, written by its input thread alone.

use core::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::operator::SessionCounts;
use crate::time::{Span, Stamp};

/// Refusals by the input thread itself; the device's own reasons follow in the same table.
pub const IO_REASONS: &[&str] = &["other_sender", "not_allowed", "thread_away"];

pub(super) const OTHER_SENDER: usize = 0;
pub(super) const NOT_ALLOWED: usize = 1;
pub(super) const THREAD_AWAY: usize = 2;

/// Room for the reasons of the input thread and of any device.
pub(super) const REASONS_MAX: usize = 32;

/// Names of the counts in [`StatsSnapshot::counts`], in their order.
pub const COUNT_NAMES: [&str; 9] = [
    "restarts",
    "jumps",
    "frozen",
    "untracked",
    "engages",
    "openings_clamped",
    "openings_refused",
    "reserved_bits",
    "lost",
];

const fn counts_in_order(c: &SessionCounts) -> [u64; COUNT_NAMES.len()] {
    [
        c.restarts,
        c.jumps,
        c.frozen,
        c.untracked,
        c.engages,
        c.openings_clamped,
        c.openings_refused,
        c.reserved_bits,
        c.lost,
    ]
}

/// Counters of one source. Every datagram is counted once in `packets`, and once in `accepted` or under one reason: at rest,
/// packets = accepted + sum of the drops, exactly.
#[derive(Debug)]
pub struct SourceStats {
    device_reasons: &'static [&'static str],
    packets: AtomicU64,
    accepted: AtomicU64,
    drops: [AtomicU64; REASONS_MAX],
    counts: [AtomicU64; COUNT_NAMES.len()],
    kernel_drops: AtomicU64,
    socket_errors: AtomicU64,
    stop_bits: AtomicU64,
    last_packet_at: AtomicU64,
    /// Who drives.
    pub owner: PeerCell,
    /// The last sender that was not let in.
    pub stranger: PeerCell,
    /// The stop level.
    pub stop_level: StopLevel,
}

/// Counters read at one moment; while packets come in, they may be one packet apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatsSnapshot {
    /// Datagrams read from the socket.
    pub packets: u64,
    /// Datagrams that became a sample.
    pub accepted: u64,
    /// Refused datagrams by reason; see [`SourceStats::reasons`].
    pub drops: [u64; REASONS_MAX],
    /// What the session counted; see [`COUNT_NAMES`].
    pub counts: [u64; COUNT_NAMES.len()],
    /// Datagrams that the kernel threw away because the socket was full; they are not in `packets`.
    pub kernel_drops: u64,
    /// Errors of the socket other than "nothing there".
    pub socket_errors: u64,
    /// Packets with a stop bit that counts, whoever sent them.
    pub stop_bits: u64,
    /// When the last datagram came, of whatever kind.
    pub last_packet_at: Option<Stamp>,
}

impl StatsSnapshot {
    /// All refused datagrams.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.drops.iter().sum()
    }
}

impl SourceStats {
    /// Zeros. `device_reasons` are the session's drop reasons; more than there is room for are counted under the last one.
    #[must_use]
    pub fn new(device_reasons: &'static [&'static str]) -> Self {
        Self {
            device_reasons,
            packets: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            drops: [const { AtomicU64::new(0) }; REASONS_MAX],
            counts: [const { AtomicU64::new(0) }; COUNT_NAMES.len()],
            kernel_drops: AtomicU64::new(0),
            socket_errors: AtomicU64::new(0),
            stop_bits: AtomicU64::new(0),
            last_packet_at: AtomicU64::new(0),
            owner: PeerCell::new(),
            stranger: PeerCell::new(),
            stop_level: StopLevel::new(),
        }
    }

    /// Names of the drop reasons, in the order of [`StatsSnapshot::drops`].
    pub fn reasons(&self) -> impl Iterator<Item = &'static str> {
        IO_REASONS.iter().chain(self.device_reasons).copied()
    }

    /// All counters.
    #[must_use]
    pub fn snapshot(&self) -> StatsSnapshot {
        let load = |a: &AtomicU64| a.load(Ordering::Relaxed);
        let last = load(&self.last_packet_at);
        StatsSnapshot {
            packets: load(&self.packets),
            accepted: load(&self.accepted),
            drops: core::array::from_fn(|i| self.drops.get(i).map_or(0, load)),
            counts: core::array::from_fn(|i| self.counts.get(i).map_or(0, load)),
            kernel_drops: load(&self.kernel_drops),
            socket_errors: load(&self.socket_errors),
            stop_bits: load(&self.stop_bits),
            last_packet_at: (last != 0).then_some(Stamp::from_ns(last)),
        }
    }

    pub(super) fn packet(&self, at: Stamp) {
        self.packets.fetch_add(1, Ordering::Relaxed);
        self.last_packet_at.store(at.as_ns(), Ordering::Relaxed);
    }

    pub(super) fn accepted(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    /// `reason` counts in the joint table.
    pub(super) fn dropped(&self, reason: usize) {
        if let Some(counter) = self.drops.get(reason.min(REASONS_MAX - 1)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn dropped_by_device(&self, reason: u8) {
        self.dropped(IO_REASONS.len() + usize::from(reason));
    }

    pub(super) fn session(&self, counts: &SessionCounts) {
        for (cell, value) in self.counts.iter().zip(counts_in_order(counts)) {
            cell.store(value, Ordering::Relaxed);
        }
    }

    pub(super) fn stop_bit(&self) {
        self.stop_bits.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn socket_error(&self) {
        self.socket_errors.fetch_add(1, Ordering::Relaxed);
    }

    /// The kernel's counter is 32 bits and wraps; `last` is what it said before.
    pub(super) fn kernel_dropped(&self, last: u32, now: u32) {
        self.kernel_drops
            .fetch_add(now.wrapping_sub(last).into(), Ordering::Relaxed);
    }
}

/// Whether a source asserts its stop bit *now*: a level, for refusing a reset. The latch itself is elsewhere.
///
/// The owner's level is set by any of its packets with the bit and cleared by an accepted packet without it. Other senders' packets set a
/// level of their own, which only time clears: a stranger cannot be followed packet by packet. Both end `limit` after the last packet
/// that asserted them.
#[derive(Debug)]
pub struct StopLevel {
    owner_at: AtomicU64,
    other_at: AtomicU64,
}

/// No assertion. Stamp 0 is the boot of the machine: nothing is received then.
const CLEAR: u64 = 0;

impl Default for StopLevel {
    fn default() -> Self {
        Self::new()
    }
}

impl StopLevel {
    /// Nobody asserts.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            owner_at: AtomicU64::new(CLEAR),
            other_at: AtomicU64::new(CLEAR),
        }
    }

    /// Does anybody assert the stop bit at `now`, seen at most `limit` ago? Load the latch's generation *before* asking: a stop bit that
    /// comes after the question then makes the reset fail.
    #[must_use]
    pub fn is_asserted(&self, now: Stamp, limit: Span) -> bool {
        [&self.owner_at, &self.other_at].iter().any(|cell| {
            let at = cell.load(Ordering::SeqCst);
            at != CLEAR && now.age_of(Stamp::from_ns(at)) <= limit
        })
    }

    /// Called before the latch is tripped, so that whoever sees the trip sees the level.
    pub(super) fn assert(&self, by_owner: bool, at: Stamp) {
        let cell = if by_owner {
            &self.owner_at
        } else {
            &self.other_at
        };
        cell.store(at.as_ns().max(CLEAR + 1), Ordering::SeqCst);
    }

    pub(super) fn clear_owner(&self) {
        self.owner_at.store(CLEAR, Ordering::SeqCst);
    }
}

/// A sender's address for the status line. Written by one thread; a reader that comes in between may see half of an old one, once.
#[derive(Debug)]
pub struct PeerCell {
    is_set: AtomicBool,
    high: AtomicU64,
    low: AtomicU64,
    port: AtomicU16,
}

impl Default for PeerCell {
    fn default() -> Self {
        Self::new()
    }
}

impl PeerCell {
    const fn new() -> Self {
        Self {
            is_set: AtomicBool::new(false),
            high: AtomicU64::new(0),
            low: AtomicU64::new(0),
            port: AtomicU16::new(0),
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the two halves of 128 bits"
    )]
    pub(super) fn store(&self, peer: SocketAddr) {
        let bits = match peer.ip() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        }
        .to_bits();
        self.high.store((bits >> 64) as u64, Ordering::Relaxed);
        self.low.store(bits as u64, Ordering::Relaxed);
        self.port.store(peer.port(), Ordering::Relaxed);
        self.is_set.store(true, Ordering::Release);
    }

    /// The address; `None` before the first.
    #[must_use]
    pub fn load(&self) -> Option<SocketAddr> {
        if !self.is_set.load(Ordering::Acquire) {
            return None;
        }
        let bits = (u128::from(self.high.load(Ordering::Relaxed)) << 64)
            | u128::from(self.low.load(Ordering::Relaxed));
        let ip = IpAddr::V6(Ipv6Addr::from_bits(bits)).to_canonical();
        Some(SocketAddr::new(ip, self.port.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Span = Span::from_ms(500);

    /// Guards: a level ends by an accepted packet without the bit or by age; a stranger's only by age.
    #[test]
    fn stop_level_ends_by_the_owner_or_by_age() {
        let level = StopLevel::new();
        assert!(!level.is_asserted(Stamp::from_ms(0), LIMIT));
        level.assert(true, Stamp::from_ms(1000));
        assert!(level.is_asserted(Stamp::from_ms(1500), LIMIT));
        assert!(!level.is_asserted(Stamp::from_ms(1501), LIMIT));
        level.assert(false, Stamp::from_ms(1600));
        level.clear_owner();
        assert!(level.is_asserted(Stamp::from_ms(1700), LIMIT));
        assert!(!level.is_asserted(Stamp::from_ms(2101), LIMIT));
    }

    /// Guards: addresses of both families come back whole.
    #[test]
    fn peers_come_back() {
        let cell = PeerCell::new();
        assert_eq!(cell.load(), None);
        for peer in ["192.168.1.20:40000", "[2001:db8::1:2]:65535"] {
            let peer: SocketAddr = peer.parse().unwrap();
            cell.store(peer);
            assert_eq!(cell.load(), Some(peer));
        }
    }

    /// Guards: names and counters are one table; the kernel's counter may wrap.
    #[test]
    fn table_of_reasons() {
        let stats = SourceStats::new(&["short", "bad_magic"]);
        stats.dropped(OTHER_SENDER);
        stats.dropped_by_device(1);
        stats.kernel_dropped(u32::MAX, 3);
        let snapshot = stats.snapshot();
        let hit = |name| {
            stats
                .reasons()
                .position(|r| r == name)
                .map(|i| snapshot.drops[i])
        };
        assert_eq!(
            (hit("other_sender"), hit("short"), hit("bad_magic")),
            (Some(1), Some(0), Some(1))
        );
        assert_eq!((snapshot.dropped(), snapshot.kernel_drops), (2, 4));
    }
}
