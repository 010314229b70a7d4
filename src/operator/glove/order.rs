//! Order of numbered packets of one hand.
//!
//! | number against the last one, modulo 2^32 | sender's clock | verdict |
//! |---|---|---|
//! | any | fell back by more than 1 s | restart |
//! | equal | | duplicate, refused |
//! | ahead (by less than 2^31) | | next; the numbers in between are counted as lost |
//! | behind by at most 1200 (10 s) | | late, refused |
//! | behind by more | | restart |
//!
//! Whether the sender counts each hand by itself or both together is not said, so each hand is followed by itself; with a shared counter
//! every other number looks lost. That is why loss is a statistic and never a fault.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::arithmetic_side_effects
)]

use super::wire::Header;
use crate::operator::freshness::Order;

/// A fall-back of the sender's clock by more than this means that it was started again, nanoseconds.
const RESTART_BEYOND_NS: u64 = 1_000_000_000;
/// So far behind no packet is late: ten seconds of packets.
const LATE_MAX: u32 = 1200;

/// The newest accepted packet, and how many never came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrameOrder {
    last: Option<(u32, u64)>,
    lost: u64,
}

impl FrameOrder {
    /// Judges a packet and, if it is to be accepted, remembers it.
    pub fn admit(&mut self, header: &Header) -> Order {
        let (number, time_ns) = (header.frame_number, header.sender_time_ns);
        let order = self.judge(number, time_ns);
        if matches!(order, Order::Next | Order::Restart) {
            if let (Order::Next, Some((last, _))) = (order, self.last) {
                let between = number.wrapping_sub(last).saturating_sub(1);
                self.lost = self.lost.saturating_add(between.into());
            }
            self.last = Some((number, time_ns));
        }
        order
    }

    fn judge(&self, number: u32, time_ns: u64) -> Order {
        let Some((last, last_ns)) = self.last else {
            return Order::Next;
        };
        if last_ns.saturating_sub(time_ns) > RESTART_BEYOND_NS {
            return Order::Restart;
        }
        let ahead = number.wrapping_sub(last).cast_signed();
        match ahead {
            0 => Order::Duplicate,
            1.. => Order::Next,
            _ if ahead.unsigned_abs() > LATE_MAX => Order::Restart,
            _ => Order::Late,
        }
    }

    /// Numbers that were jumped over, since the beginning.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Forgets the sender: the next packet is a first one.
    pub fn forget(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(frame_number: u32, sender_time_ns: u64) -> Header {
        Header {
            frame_number,
            sender_time_ns,
            ..Header::default()
        }
    }

    /// Judges `second` after `first`, both on a clock that goes on.
    fn after(first: u32, second: u32) -> Order {
        let mut order = FrameOrder::default();
        assert_eq!(order.admit(&header(first, 5_000_000_000)), Order::Next);
        order.admit(&header(second, 5_000_000_001))
    }

    /// Guards: every row of the table, on both sides of each bound, across the wrap.
    #[test]
    fn table() {
        assert_eq!(after(5, 6), Order::Next);
        assert_eq!(after(5, 5), Order::Duplicate);
        assert_eq!(after(u32::MAX, 0), Order::Next);
        assert_eq!(after(0, u32::MAX), Order::Late);
        assert_eq!(after(2000, 800), Order::Late);
        assert_eq!(after(2000, 799), Order::Restart);
        assert_eq!(after(0, i32::MAX.cast_unsigned()), Order::Next);
        assert_eq!(after(0, i32::MIN.cast_unsigned()), Order::Restart);
    }

    /// Guards: the sender's clock alone tells a restart, whatever the new numbers are; a fall-back of one second does not.
    #[test]
    fn clock_tells_a_restart() {
        for number in [1, 90_000, 90_001] {
            let mut order = FrameOrder::default();
            order.admit(&header(90_000, 5_000_000_000));
            assert_eq!(order.admit(&header(number, 3_999_999_999)), Order::Restart);
        }
        let mut order = FrameOrder::default();
        order.admit(&header(90_000, 5_000_000_000));
        assert_eq!(order.admit(&header(89_999, 4_000_000_000)), Order::Late);
    }

    /// Guards: an absurd number locks nobody out, and what is refused is not remembered.
    #[test]
    fn nobody_is_locked_out() {
        let mut order = FrameOrder::default();
        order.admit(&header(100, 10));
        order.admit(&header(100 + i32::MAX.cast_unsigned(), 11));
        assert_eq!(order.admit(&header(101, 12)), Order::Restart);
        assert_eq!(order.admit(&header(99, 13)), Order::Late);
        assert_eq!(order.admit(&header(102, 14)), Order::Next);
    }

    /// Guards: loss counts what was jumped over, the wrap included, and neither restarts nor refusals.
    #[test]
    fn loss_is_counted() {
        let mut order = FrameOrder::default();
        for (number, lost) in [(u32::MAX - 1, 0), (2, 3), (1, 3), (3, 3), (10, 9)] {
            order.admit(&header(number, 10));
            assert_eq!(order.lost(), lost, "{number}");
        }
        order.admit(&header(10u32.wrapping_sub(2000), 10));
        assert_eq!(order.lost(), 9, "a restart loses nothing");
    }
}
