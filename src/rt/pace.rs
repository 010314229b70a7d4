//! The exact-rate pacer of the control cycle.
//!
//! Deadline N is `t0 + N / rate`, computed from N and not by adding a rounded period, so the rate has no error at any N. A cycle that comes
//! late is run once and the deadlines that have passed meanwhile are counted as missed and skipped: no burst of catch-up cycles, and
//! the phase stays. The lateness of a cycle is measured from the *first* deadline it missed, so a stall shows in the histogram at its
//! full length and is not hidden by waiting for it (coordinated omission).
//!
//! ```text
//! deadlines   |0    |1    |2    |3    |4    |5    |6
//! cycles      ^     ^...................^     ^     ^
//! n, missed   0,0   1,3 (late by 3.2 T)       5,0   6,0
//! ```

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::disallowed_macros
)]

use super::clock;
use crate::handoff::{WakeEpoch, Woken};
use crate::time::{Span, Stamp};

const NS_PER_S: u64 = 1_000_000_000;

/// One cycle, as the pacer sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CycleTick {
    /// The index of the deadline that this cycle belongs to.
    pub n: u64,
    /// That deadline.
    pub deadline: Stamp,
    /// When the thread really ran.
    pub woke: Stamp,
    /// How many further deadlines had passed by then. The next cycle is `n + missed + 1`.
    pub missed: u64,
}

impl CycleTick {
    /// From the deadline to the wake-up.
    #[must_use]
    pub const fn late(&self) -> Span {
        self.woke.age_of(self.deadline)
    }
}

/// The deadlines and nothing else; time is an argument.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    t0: Stamp,
    rate_hz: u64,
    next: u64,
}

impl Pace {
    /// Deadline 0 is `t0`. A rate of zero counts as 1 Hz.
    #[must_use]
    pub const fn new(t0: Stamp, rate_hz: u32) -> Self {
        let rate_hz = if rate_hz == 0 { 1 } else { rate_hz as u64 };
        Self {
            t0,
            rate_hz,
            next: 0,
        }
    }

    /// Deadline N.
    #[must_use]
    pub const fn deadline_of(&self, n: u64) -> Stamp {
        // Whole seconds and the rest of one, so that nothing overflows in the lifetime of a machine.
        let seconds = (n / self.rate_hz).saturating_mul(NS_PER_S);
        let rest = (n % self.rate_hz).saturating_mul(NS_PER_S) / self.rate_hz;
        Stamp::from_ns(self.t0.as_ns().saturating_add(seconds).saturating_add(rest))
    }

    /// The deadline to wait for.
    #[must_use]
    pub const fn deadline(&self) -> Stamp {
        self.deadline_of(self.next)
    }

    /// The nominal period, to the nanosecond below.
    #[must_use]
    pub const fn period(&self) -> Span {
        Span::from_ns((NS_PER_S / self.rate_hz).cast_signed())
    }

    /// The cycle that runs at `woke`; `None` if its deadline has not come yet.
    pub fn tick(&mut self, woke: Stamp) -> Option<CycleTick> {
        let (n, deadline) = (self.next, self.deadline());
        if woke < deadline {
            return None;
        }
        let newest = self.newest_passed(woke).max(n);
        self.next = newest.saturating_add(1);
        Some(CycleTick {
            n,
            deadline,
            woke,
            missed: newest.saturating_sub(n),
        })
    }

    /// The largest N whose deadline is not after `at`, for an `at` not before `t0`.
    const fn newest_passed(&self, at: Stamp) -> u64 {
        // deadline_of(n) = t0 + floor(n s / rate) <= at  <=>  n < (at - t0 + 1) rate / s
        let beyond = at.as_ns().saturating_sub(self.t0.as_ns()).saturating_add(1);
        let whole = (beyond / NS_PER_S).saturating_mul(self.rate_hz);
        let rest = (beyond % NS_PER_S)
            .saturating_mul(self.rate_hz)
            .div_ceil(NS_PER_S);
        whole.saturating_add(rest).saturating_sub(1)
    }
}

/// How a wait of the [`Pacer`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// A deadline has come: run the cycle.
    Cycle(CycleTick),
    /// Somebody called before the deadline: run the stop path, then wait again, for the same deadline.
    Early,
}

/// [`Pace`] on the real clock and a [`WakeEpoch`].
#[derive(Debug)]
pub struct Pacer {
    pace: Pace,
    spin: Span,
}

impl Pacer {
    /// A pacer whose deadline 0 is `t0`.
    #[must_use]
    pub const fn new(t0: Stamp, rate_hz: u32) -> Self {
        Self {
            pace: Pace::new(t0, rate_hz),
            spin: Span::ZERO,
        }
    }

    /// Wakes `spin` before each deadline and spins the rest. It costs that share of a core and wins the wake-up latency; only for a core that
    /// nothing else needs. At most a fifth of the period is taken.
    #[must_use]
    pub fn with_spin(mut self, spin: Span) -> Self {
        self.spin = spin.clamp(Span::ZERO, Span::from_ns(self.pace.period().as_ns() / 5));
        self
    }

    /// The deadlines.
    #[must_use]
    pub const fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Waits for the next deadline or a call. `seen` is the epoch that was read before the caller last looked at the latch. A call at a
    /// deadline counts as the deadline, so that calls cannot keep cycles from running; each cycle looks at the latch anyway.
    pub fn wait(&mut self, wake: &WakeEpoch, seen: u32) -> Turn {
        let deadline = self.pace.deadline();
        let sleep_until = if self.spin > Span::ZERO {
            deadline - self.spin
        } else {
            deadline
        };
        let mut woken = wake.wait_until(seen, sleep_until);
        loop {
            if let Some(tick) = self.pace.tick(clock::now()) {
                return Turn::Cycle(tick);
            }
            if woken == Woken::Early || wake.epoch() != seen {
                return Turn::Early;
            }
            // Before the deadline without a call: the spin, which the deadline ends.
            woken = Woken::Deadline;
            core::hint::spin_loop();
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::indexing_slicing
)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    const T0: Stamp = Stamp::from_ms(5_000);

    fn at(periods: f64) -> Stamp {
        T0 + Span::from_s(periods * 1e-3) // 1 kHz
    }

    /// On time, each cycle has its own deadline and misses none.
    #[test]
    fn cycles_on_time() {
        let mut pace = Pace::new(T0, 1000);
        for n in 0..5_000_u64 {
            assert_eq!(
                pace.tick(pace.deadline() - Span::from_ns(1)),
                None,
                "not yet"
            );
            let tick = pace.tick(pace.deadline() + Span::from_us(10)).unwrap();
            assert_eq!(
                (tick.n, tick.missed, tick.late()),
                (n, 0, Span::from_us(10))
            );
        }
    }

    /// A stall of 7.3 periods is one sample of 7.3 periods and 7 missed deadlines; afterwards the phase is the old one and nothing is
    /// caught up.
    #[test]
    fn a_stall_is_seen_once_and_whole() {
        let mut pace = Pace::new(T0, 1000);
        assert_eq!(pace.tick(at(0.0)).unwrap().missed, 0);
        let tick = pace.tick(at(1.0 + 7.3)).unwrap();
        assert_eq!((tick.n, tick.missed), (1, 7));
        assert_eq!(tick.late(), Span::from_us(7_300));
        assert_eq!(pace.tick(at(8.9)), None, "no burst");
        let tick = pace.tick(at(9.0)).unwrap();
        assert_eq!((tick.n, tick.missed, tick.deadline), (9, 0, at(9.0)));
    }

    /// A rate whose period is no whole number of nanoseconds keeps its phase for a day: 30 Hz for 86 400 s is 2 592 000 cycles.
    #[test]
    fn the_rate_has_no_error() {
        for rate in [30, 60, 125, 333, 999, 1000] {
            let pace = Pace::new(T0, rate);
            assert_eq!(
                pace.deadline_of(86_400 * u64::from(rate)),
                T0 + Span::from_s(86_400.0),
                "{rate} Hz"
            );
        }
    }

    proptest! {
        /// Whatever the delays: deadlines are exact, every index is run or counted as missed, and a cycle never runs before its deadline or a
        /// second time for the same one.
        #[test]
        fn run_plus_missed_is_everything(rate in 1_u32..2000, delays_ns in prop::collection::vec(0_u64..50_000_000, 1..200)) {
            let mut pace = Pace::new(T0, rate);
            let mut accounted = 0;
            for delay in delays_ns {
                let woke = pace.deadline() + Span::from_ns(delay.cast_signed());
                let tick = pace.tick(woke).unwrap();
                prop_assert_eq!(tick.n, accounted);
                prop_assert_eq!(tick.deadline, pace.deadline_of(tick.n));
                accounted += 1 + tick.missed;
                prop_assert!(pace.deadline_of(accounted - 1) <= woke && woke < pace.deadline());
                prop_assert_eq!(pace.deadline(), pace.deadline_of(accounted));
                prop_assert_eq!(tick.missed, delay_periods(rate, tick.n, woke), "as counted one by one");
            }
        }
    }

    /// The deadlines after `n` that are not after `woke`, counted.
    fn delay_periods(rate: u32, n: u64, woke: Stamp) -> u64 {
        let pace = Pace::new(T0, rate);
        (n + 1..)
            .take_while(|n| pace.deadline_of(*n) <= woke)
            .count() as u64
    }

    /// On the real clock: an early call returns early, and the next wait is for the same deadline.
    #[test]
    fn an_early_call_keeps_the_deadline() {
        let wake = Arc::new(WakeEpoch::new());
        let mut pacer = Pacer::new(clock::now() + Span::from_ms(30), 10);
        let deadline = pacer.pace().deadline();
        let seen = wake.epoch();
        wake.bump_and_wake();
        assert_eq!(pacer.wait(&wake, seen), Turn::Early);
        let Turn::Cycle(tick) = pacer.wait(&wake, wake.epoch()) else {
            panic!("nobody called")
        };
        assert_eq!((tick.n, tick.deadline), (0, deadline));
        assert!(tick.woke >= deadline);
    }

    /// Calls without end do not keep a cycle from running: a deadline that has come wins.
    #[test]
    fn calls_do_not_starve_the_cycle() {
        let wake = WakeEpoch::new();
        let mut pacer = Pacer::new(clock::now() + Span::from_ms(2), 1000);
        let mut early = 0;
        loop {
            let seen = wake.epoch();
            wake.bump_and_wake();
            match pacer.wait(&wake, seen) {
                Turn::Early => early += 1,
                Turn::Cycle(_) => break,
            }
        }
        assert!(early > 0);
    }

    /// Spinning the last stretch ends at the deadline, not before, and a call still ends it.
    #[test]
    fn spinning_ends_at_the_deadline() {
        let wake = WakeEpoch::new();
        let mut pacer =
            Pacer::new(clock::now() + Span::from_ms(2), 100).with_spin(Span::from_s(1.0));
        assert_eq!(
            pacer.spin,
            Span::from_ms(2),
            "capped at a fifth of the period"
        );
        for _ in 0..3 {
            let Turn::Cycle(tick) = pacer.wait(&wake, wake.epoch()) else {
                panic!("nobody called")
            };
            assert!(tick.woke >= tick.deadline);
        }
    }
}
