//! Latency histograms that a real-time thread fills, and how they reach another thread.
//!
//! A set of histograms has one owner at a time and is handed over whole, so neither side copies, locks or waits: the collector puts an empty
//! set into a one-place queue; control swaps it for its full one when it next looks; the full one comes back through another
//! one-place queue and is added to the totals.
//!
//! ```text
//! collector:  empty set ---request--->  recorder (in the control thread)
//!             totals   <---filled set-  swap, at the end of a cycle
//! ```

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::disallowed_macros
)]

use heapless::spsc;

use crate::time::Span;

/// The largest value that is told apart; larger ones count as this, and [`LatencyHistogram::max`] still has them exactly.
pub const HIGHEST: Span = Span::from_ms(10_000);
/// Significant decimal digits.
const DIGITS: u8 = 3;

/// A histogram of latencies: 1 ns to 10 s in three digits, about 100 KiB, with the exact maximum kept aside.
#[derive(Debug, Clone)]
pub struct LatencyHistogram {
    counts: hdrhistogram::Histogram<u32>,
    max: Span,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl LatencyHistogram {
    /// An empty one. Allocates; no later call except `clone` does.
    #[must_use]
    #[expect(
        clippy::expect_used,
        reason = "start-up; the bounds are constants, and a test makes one"
    )]
    pub fn new() -> Self {
        let counts = hdrhistogram::Histogram::new_with_bounds(1, HIGHEST.as_ns_clamped(), DIGITS)
            .expect("constant bounds are valid");
        Self {
            counts,
            max: Span::ZERO,
        }
    }

    /// Adds one value; a negative one counts as zero.
    pub fn record(&mut self, value: Span) {
        self.counts.saturating_record(value.as_ns_clamped());
        self.max = self.max.max(value);
    }

    /// How many values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// The exact largest value; zero if there is none.
    #[must_use]
    pub const fn max(&self) -> Span {
        self.max
    }

    /// The value that the share `quantile` (0..=1) of all values does not exceed, within 0.1 %.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Span {
        let ns = i64::try_from(self.counts.value_at_quantile(quantile)).unwrap_or(i64::MAX);
        Span::from_ns(ns).min(self.max)
    }

    /// The mean of all values.
    #[must_use]
    pub fn mean(&self) -> Span {
        Span::from_s(self.counts.mean() * 1e-9)
    }

    /// Adds all values of another.
    pub fn add(&mut self, other: &Self) {
        // Same bounds, so it neither fails nor grows.
        let _ = self.counts.add(&other.counts);
        self.max = self.max.max(other.max);
    }

    /// Forgets everything; keeps the memory.
    pub fn clear(&mut self) {
        self.counts.reset();
        self.max = Span::ZERO;
    }

    /// The counts themselves, in nanoseconds, for a report.
    #[must_use]
    pub const fn counts(&self) -> &hdrhistogram::Histogram<u32> {
        &self.counts
    }
}

/// What is measured in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Latency {
    /// Deadline -> the control thread runs.
    WakeUp,
    /// Deadline -> the last frame of the cycle is handed to the kernel.
    Cycle,
    /// Packet received -> the frame that follows it is handed to the kernel.
    PacketToFrame,
    /// Packet with a stop bit received -> the first stop frame is handed to the kernel.
    StopPath,
    /// The age of the sample that a cycle used.
    InputAge,
    /// The lateness of cycles that missed a further deadline.
    Late,
}

impl Latency {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 6] = [
        Self::WakeUp,
        Self::Cycle,
        Self::PacketToFrame,
        Self::StopPath,
        Self::InputAge,
        Self::Late,
    ];

    /// A short name, stable for file names and `--json`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WakeUp => "wake_up",
            Self::Cycle => "cycle",
            Self::PacketToFrame => "packet_to_frame",
            Self::StopPath => "stop_path",
            Self::InputAge => "input_age",
            Self::Late => "late",
        }
    }
}

/// One histogram for each [`Latency`].
#[derive(Debug, Clone, Default)]
pub struct LatencySet {
    wake_up: LatencyHistogram,
    cycle: LatencyHistogram,
    packet_to_frame: LatencyHistogram,
    stop_path: LatencyHistogram,
    input_age: LatencyHistogram,
    late: LatencyHistogram,
}

impl LatencySet {
    /// The histogram of `what`.
    #[must_use]
    pub const fn get(&self, what: Latency) -> &LatencyHistogram {
        match what {
            Latency::WakeUp => &self.wake_up,
            Latency::Cycle => &self.cycle,
            Latency::PacketToFrame => &self.packet_to_frame,
            Latency::StopPath => &self.stop_path,
            Latency::InputAge => &self.input_age,
            Latency::Late => &self.late,
        }
    }

    /// The histogram of `what`, to change it.
    pub const fn get_mut(&mut self, what: Latency) -> &mut LatencyHistogram {
        match what {
            Latency::WakeUp => &mut self.wake_up,
            Latency::Cycle => &mut self.cycle,
            Latency::PacketToFrame => &mut self.packet_to_frame,
            Latency::StopPath => &mut self.stop_path,
            Latency::InputAge => &mut self.input_age,
            Latency::Late => &mut self.late,
        }
    }

    /// Adds one value.
    pub fn record(&mut self, what: Latency, value: Span) {
        self.get_mut(what).record(value);
    }

    /// Adds all values of another set.
    pub fn add(&mut self, other: &Self) {
        for what in Latency::ALL {
            self.get_mut(what).add(other.get(what));
        }
    }

    /// Forgets everything; keeps the memory.
    pub fn clear(&mut self) {
        for what in Latency::ALL {
            self.get_mut(what).clear();
        }
    }
}

/// A set that is handed over by moving a pointer. Made at start-up, never freed by the real-time side.
#[expect(
    clippy::disallowed_types,
    reason = "allocated at start-up; moving it costs no heap"
)]
type OwnedSet = Box<LatencySet>;

/// One place is enough: there are two sets, and each is somewhere.
type SetQueue = spsc::Queue<OwnedSet, 2>;

/// The real-time end: owns the set that is being filled.
pub struct LatencyRecorder {
    active: OwnedSet,
    requests: spsc::Consumer<'static, OwnedSet>,
    filled: spsc::Producer<'static, OwnedSet>,
}

/// The plain end: asks for what was recorded, and keeps the totals.
pub struct LatencyCollector {
    totals: OwnedSet,
    spare: Option<OwnedSet>,
    requests: spsc::Producer<'static, OwnedSet>,
    filled: spsc::Consumer<'static, OwnedSet>,
}

/// Makes both ends. Start-up only: the queues are kept until the process ends.
#[must_use]
#[expect(clippy::disallowed_types, reason = "start-up")]
pub fn latency_exchange() -> (LatencyRecorder, LatencyCollector) {
    let requests: &'static mut SetQueue = Box::leak(Box::new(SetQueue::new()));
    let filled: &'static mut SetQueue = Box::leak(Box::new(SetQueue::new()));
    let ((ask, asked), (give, given)) = (requests.split(), filled.split());
    (
        LatencyRecorder {
            active: OwnedSet::default(),
            requests: asked,
            filled: give,
        },
        LatencyCollector {
            totals: OwnedSet::default(),
            spare: Some(OwnedSet::default()),
            requests: ask,
            filled: given,
        },
    )
}

impl LatencyRecorder {
    /// Adds one value.
    pub fn record(&mut self, what: Latency, value: Span) {
        self.active.record(what, value);
    }

    /// Hands over what was recorded if the collector has asked. Once a cycle, after the last frame.
    pub fn serve(&mut self) {
        if let Some(empty) = self.requests.dequeue() {
            let full = core::mem::replace(&mut self.active, empty);
            if let Err(full) = self.filled.enqueue(full) {
                // Cannot be: the place is free because the collector asked with the set that it took from there. Keep on counting in it.
                let _empty_is_lost = core::mem::replace(&mut self.active, full);
                debug_assert!(false, "two sets, two places");
            }
        }
    }

    /// What was recorded and not yet handed over; at the end of the thread.
    #[must_use]
    pub fn into_set(self) -> LatencySet {
        *self.active
    }
}

impl LatencyCollector {
    /// Asks for what was recorded since the last time; the answer comes with a later [`LatencyCollector::collect`]. False if an answer is still
    /// outstanding.
    pub fn request(&mut self) -> bool {
        match self.spare.take().map(|empty| self.requests.enqueue(empty)) {
            Some(Ok(())) => true,
            Some(Err(empty)) => {
                self.spare = Some(empty);
                false
            }
            None => false,
        }
    }

    /// Adds an answer to the totals, if one has come.
    pub fn collect(&mut self) -> bool {
        let Some(mut full) = self.filled.dequeue() else {
            return false;
        };
        self.totals.add(&full);
        full.clear();
        self.spare = Some(full);
        true
    }

    /// Adds a set directly: what the recorder still had when its thread ended.
    pub fn add(&mut self, rest: &LatencySet) {
        self.totals.add(rest);
    }

    /// Everything collected so far.
    #[must_use]
    pub fn totals(&self) -> &LatencySet {
        &self.totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quantiles are within three digits, the maximum is exact, and values out of range are neither lost nor panics.
    #[test]
    fn quantiles_and_the_exact_maximum() {
        let mut histogram = LatencyHistogram::new();
        for us in 1..=10_000 {
            histogram.record(Span::from_us(us));
        }
        for (quantile, us) in [(0.5, 5_000.0), (0.99, 9_900.0), (0.999, 9_990.0)] {
            let got = histogram.quantile(quantile).as_us();
            assert!(
                (got / us - 1.0_f64).abs() < 1e-3,
                "{quantile}: {got} for {us}"
            );
        }
        let odd = Span::from_ns(7_777_777_777);
        histogram.record(odd);
        assert_eq!((histogram.max(), histogram.quantile(1.0)), (odd, odd));
        histogram.record(Span::from_s(25.0));
        assert_eq!(
            (histogram.max(), histogram.count()),
            (Span::from_s(25.0), 10_002)
        );
        histogram.record(Span::from_ns(-5));
        assert_eq!(
            histogram.quantile(0.0),
            Span::ZERO,
            "a negative value counts as zero"
        );
        histogram.clear();
        assert_eq!((histogram.count(), histogram.max()), (0, Span::ZERO));
    }

    /// Adding two histograms is as if all values had gone into one.
    #[test]
    fn adding_is_recording() {
        let (mut a, mut b, mut both) = (
            LatencyHistogram::new(),
            LatencyHistogram::new(),
            LatencyHistogram::new(),
        );
        for n in 0..1000_i64 {
            let value = Span::from_ns(n * n);
            if n % 3 == 0 {
                a.record(value)
            } else {
                b.record(value)
            }
            both.record(value);
        }
        a.add(&b);
        assert_eq!(a.counts(), both.counts());
        assert_eq!(a.max(), both.max());
    }

    /// Each name has its own histogram.
    #[test]
    fn names_do_not_mix() {
        let mut set = LatencySet::default();
        for (n, what) in Latency::ALL.into_iter().enumerate() {
            for _ in 0..=n {
                set.record(what, Span::from_us(1));
            }
        }
        for (n, what) in Latency::ALL.into_iter().enumerate() {
            assert_eq!(set.get(what).count(), n as u64 + 1, "{}", what.name());
        }
    }

    /// Nothing recorded is lost or counted twice while a thread records and another collects.
    #[test]
    fn an_exchange_loses_nothing() {
        let (mut recorder, mut collector) = latency_exchange();
        let enough = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let control = scope.spawn(|| {
                let mut recorded = 0_i64;
                while !enough.load(std::sync::atomic::Ordering::Relaxed) {
                    recorded += 1;
                    recorder.record(Latency::WakeUp, Span::from_ns(recorded));
                    recorder.serve();
                }
                (recorded, recorder.into_set())
            });
            let mut answers = 0;
            while answers < 100 {
                collector.request();
                answers += u32::from(collector.collect());
            }
            enough.store(true, std::sync::atomic::Ordering::Relaxed);
            let (recorded, rest) = control.join().unwrap();
            collector.collect();
            collector.add(&rest);
            let wake_up = collector.totals().get(Latency::WakeUp);
            assert_eq!(wake_up.count(), recorded.unsigned_abs());
            assert_eq!(wake_up.max(), Span::from_ns(recorded));
        });
    }

    /// One request at a time: a second one before the answer is refused, and a recorder that never serves blocks nobody.
    #[test]
    fn a_request_waits_for_its_answer() {
        let (mut recorder, mut collector) = latency_exchange();
        recorder.record(Latency::Cycle, Span::from_us(3));
        assert!(collector.request());
        assert!(!collector.request());
        assert!(!collector.collect());
        recorder.serve();
        assert!(collector.collect());
        assert!(collector.request());
        assert_eq!(collector.totals().get(Latency::Cycle).count(), 1);
    }
}
