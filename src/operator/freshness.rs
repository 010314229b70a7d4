//! Order of the packets of one sender, judged with the sender's own clock and with nothing else.
//!
//! Age is no business of this module: control and watchdog judge it from our receive stamps.
//!
//! | sender time against the last one | verdict |
//! |---|---|
//! | later (by any amount) | [`Order::Next`] |
//! | equal | [`Order::Duplicate`], refused |
//! | earlier by at most 1 s | [`Order::Late`], refused |
//! | earlier by more than 1 s | [`Order::Restart`]: the sender's application was started again; accepted as a new session |
//!
//! A single absurd stamp in the future therefore locks nobody out: the next honest packet is far in its past, which reads as a restart,
//! and the stream goes on from there (disengaged, which is the price). A packet that was on its way for more than a second reads as a
//! restart as well; that errs on the side of disengaging.

use crate::time::SenderTime;

/// A fall-back of the sender's clock by more than this means that the sender was started again, seconds.
pub const RESTART_BEYOND_S: f64 = 1.0;

/// How a packet stands to the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Newer than everything before, or the first.
    Next,
    /// The sender was started again.
    Restart,
    /// The same packet again.
    Duplicate,
    /// Overtaken on the way.
    Late,
}

/// The newest sender time that was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Freshness {
    last: Option<SenderTime>,
}

impl Freshness {
    /// Judges a packet and, if it is to be accepted, remembers its time. `time` must be finite (a NaN reads as late, and is refused).
    pub fn admit(&mut self, time: SenderTime) -> Order {
        let order = self.judge(time);
        if matches!(order, Order::Next | Order::Restart) {
            self.last = Some(time);
        }
        order
    }

    fn judge(self, time: SenderTime) -> Order {
        let Some(last) = self.last else {
            return if time.as_s().is_finite() {
                Order::Next
            } else {
                Order::Late
            };
        };
        let ahead_s = time.since_s(last);
        if ahead_s > 0.0 {
            Order::Next
        } else if ahead_s == 0.0 {
            Order::Duplicate
        } else if ahead_s < -RESTART_BEYOND_S {
            Order::Restart
        } else {
            Order::Late
        }
    }

    /// The newest accepted time.
    #[must_use]
    pub const fn last(&self) -> Option<SenderTime> {
        self.last
    }

    /// Forgets the sender: the next packet is a first one.
    pub fn forget(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_types)]
mod tests {
    use super::*;

    fn judge_all(times: &[f64]) -> Vec<Order> {
        let mut freshness = Freshness::default();
        times
            .iter()
            .map(|t| freshness.admit(SenderTime::from_s(*t)))
            .collect()
    }

    /// Guards: duplicates and late packets are refused without moving the reference.
    #[test]
    fn late_packets_do_not_move_the_reference() {
        use Order::{Duplicate, Late, Next};
        assert_eq!(
            judge_all(&[10.0, 10.04, 10.02, 10.04, 10.04, 10.06]),
            [Next, Next, Late, Duplicate, Duplicate, Next]
        );
    }

    /// Guards: exactly one second back is late, more is a restart; the restarted clock counts from there.
    #[test]
    fn restart_needs_more_than_a_second() {
        use Order::{Late, Next, Restart};
        assert_eq!(
            judge_all(&[5.0, 4.0, 3.5, 3.52]),
            [Next, Late, Restart, Next]
        );
    }

    /// Guards: one absurd stamp in the future does not lock the stream out, whatever its size.
    #[test]
    fn poisoned_clock_heals() {
        use Order::{Next, Restart};
        for absurd in [1e3, 1e12, 1e300, f64::MAX] {
            assert_eq!(
                judge_all(&[10.0, absurd, 10.04, 10.06]),
                [Next, Next, Restart, Next],
                "{absurd}"
            );
        }
        assert_eq!(
            judge_all(&[f64::MAX, -f64::MAX, 1.0]),
            [Next, Restart, Next]
        );
    }

    #[test]
    fn nan_is_never_remembered() {
        assert_eq!(
            judge_all(&[f64::NAN, 1.0, f64::NAN, 1.02]),
            [Order::Late, Order::Next, Order::Late, Order::Next]
        );
    }
}
