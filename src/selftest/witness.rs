//! Tells whether the machine was too busy to judge: threads that only sleep, with the priority of the emulated hardware, and note how
//! late they wake. A part that failed while even they were kept waiting is played again, and the row says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::rt::sched::{self, Policy, Wanted};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(2);
/// Later than this, and timing says nothing about the program: half of what the watchdog allows control's heartbeat.
pub const STARVED: Duration = Duration::from_millis(10);
/// Later than this is one period of the control cycle lost.
const PERIOD: Duration = Duration::from_millis(5);

/// Running witnesses; they end with this.
#[derive(Debug)]
pub struct Witness {
    /// Longest lateness so far, nanoseconds.
    worst_ns: Arc<AtomicU64>,
    /// Times that a look came later than a period.
    late: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Witness {
    /// Starts a witness where control runs by default, and one that may run anywhere.
    #[must_use]
    pub fn start() -> Self {
        let (worst_ns, late) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let ended = Arc::new(AtomicBool::new(false));
        let threads = [sched::affinity().last().copied(), None]
            .into_iter()
            .filter_map(|cpu| {
                let (worst_ns, late) = (Arc::clone(&worst_ns), Arc::clone(&late));
                let ended = Arc::clone(&ended);
                thread::Builder::new()
                    .name("witness".into())
                    .spawn(move || watch(cpu, &worst_ns, &late, &ended))
                    .ok()
            })
            .collect();
        Self {
            worst_ns,
            late,
            ended,
            threads,
        }
    }

    /// Times so far that it was kept waiting for a period or more.
    #[must_use]
    pub fn kept_waiting(&self) -> u64 {
        self.late.load(Ordering::Relaxed)
    }

    /// The longest lateness so far.
    #[must_use]
    pub fn worst(&self) -> Duration {
        Duration::from_nanos(self.worst_ns.load(Ordering::Relaxed))
    }
}

fn watch(cpu: Option<usize>, worst_ns: &AtomicU64, late_count: &AtomicU64, ended: &AtomicBool) {
    let _ = sched::apply(Wanted {
        name: "witness",
        policy: Policy::Fifo(50),
        cpu,
    });
    while !ended.load(Ordering::Relaxed) {
        let due = Instant::now() + LOOK;
        thread::sleep(LOOK);
        let late = due.elapsed();
        late_count.fetch_add(u64::from(late > PERIOD), Ordering::Relaxed);
        worst_ns.fetch_max(
            u64::try_from(late.as_nanos()).unwrap_or(u64::MAX),
            Ordering::Relaxed,
        );
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It cannot panic; and if it did, the hook has said so.
            let _ = thread.join();
        }
    }
}
