//! Events from a real-time thread to the logger: a bounded ring and a counter per kind.
//!
//! The real-time side pushes small `Copy` values; a plain thread turns them into text. When the logger falls behind, events are dropped
//! and counted, never waited for; the counters still say that each kind happened, and how often.

use super::sync::{AtomicU64, Ordering};

/// A set of event kinds with a counter each.
pub trait EventKind: Copy + Send + 'static {
    /// How many kinds there are.
    const KINDS: usize;

    /// The kind of this event, below [`EventKind::KINDS`]; anything else is counted nowhere.
    fn kind(&self) -> usize;
}

/// Counts of one kind of event.
#[derive(Debug)]
struct Tally {
    pushed: AtomicU64,
    dropped: AtomicU64,
}

/// The end that a real-time thread pushes into; one per ring.
pub struct EventSender<E: EventKind> {
    queue: heapless::spsc::Producer<'static, E>,
    tallies: &'static [Tally],
}

/// The end that a plain thread drains; one per ring.
pub struct EventReceiver<E: EventKind> {
    queue: heapless::spsc::Consumer<'static, E>,
    tallies: &'static [Tally],
}

/// Makes a ring that holds `N - 1` events. Start-up only: its memory is allocated here and kept until the process ends, as its users are.
#[must_use]
#[expect(clippy::disallowed_types, reason = "start-up")]
pub fn event_ring<E: EventKind, const N: usize>() -> (EventSender<E>, EventReceiver<E>) {
    let queue: &'static mut heapless::spsc::Queue<E, N> =
        Box::leak(Box::new(heapless::spsc::Queue::new()));
    let tallies: Vec<Tally> = (0..E::KINDS)
        .map(|_| Tally {
            pushed: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        })
        .collect();
    let tallies: &'static [Tally] = Vec::leak(tallies);
    let (producer, consumer) = queue.split();
    (
        EventSender {
            queue: producer,
            tallies,
        },
        EventReceiver {
            queue: consumer,
            tallies,
        },
    )
}

impl<E: EventKind> EventSender<E> {
    /// Counts the event and puts it into the ring; false if the ring was full and the event itself is lost.
    pub fn push(&mut self, event: E) -> bool {
        let fits = self.queue.enqueue(event).is_ok();
        if let Some(tally) = self.tallies.get(event.kind()) {
            tally.pushed.fetch_add(1, Ordering::Relaxed);
            if !fits {
                tally.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
        fits
    }
}

impl<E: EventKind> EventReceiver<E> {
    /// The oldest event that is still there.
    pub fn pop(&mut self) -> Option<E> {
        self.queue.dequeue()
    }

    /// How often this kind happened, dropped ones included.
    #[must_use]
    pub fn happened(&self, kind: usize) -> u64 {
        self.tallies
            .get(kind)
            .map_or(0, |tally| tally.pushed.load(Ordering::Relaxed))
    }

    /// How many events of this kind did not fit.
    #[must_use]
    pub fn dropped(&self, kind: usize) -> u64 {
        self.tallies
            .get(kind)
            .map_or(0, |tally| tally.dropped.load(Ordering::Relaxed))
    }

    /// How many events did not fit, over all kinds.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        (0..E::KINDS).map(|kind| self.dropped(kind)).sum()
    }
}
