//! Standard error for the log, behind a bounded queue and a thread of its own: a reader that stops reading (a paused terminal, a stuck pipe)
//! must not keep the service thread from answering, or SIGTERM from ending the program.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, TrySendError, bounded};

/// Lines that may wait; more are dropped and counted.
const LINES_MAX: usize = 1024;
/// At the end of the program the waiting lines get this long.
const FLUSH_MAX: Duration = Duration::from_millis(200);

static LINES: OnceLock<Sender<Vec<u8>>> = OnceLock::new();
static TAKEN: AtomicU64 = AtomicU64::new(0);
static WRITTEN: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Where the logger writes to. It writes one whole line at a time.
pub(super) struct LogPipe;

impl Write for LogPipe {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let lines = LINES.get_or_init(start);
        match lines.try_send(line.to_vec()) {
            Ok(()) => {
                TAKEN.fetch_add(1, Ordering::Relaxed);
            }
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                DROPPED.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn start() -> Sender<Vec<u8>> {
    let (sender, lines) = bounded::<Vec<u8>>(LINES_MAX);
    let run = move || {
        for line in lines {
            let dropped = DROPPED.swap(0, Ordering::Relaxed);
            let mut out = io::stderr();
            if dropped > 0 {
                let _ = writeln!(
                    out,
                    "({dropped} lines of the log were dropped: nobody read it)"
                );
            }
            // Nobody can be told that standard error fails.
            let _ = out.write_all(&line);
            WRITTEN.fetch_add(1, Ordering::Release);
        }
    };
    // Without the thread the receiver is gone and every line counts as dropped.
    let _ = std::thread::Builder::new()
        .name("log".to_owned())
        .spawn(run);
    sender
}

/// Waits until everything is written, for a moment at most.
pub(super) fn flush() {
    let began = Instant::now();
    while WRITTEN.load(Ordering::Acquire) < TAKEN.load(Ordering::Relaxed)
        && began.elapsed() < FLUSH_MAX
    {
        std::thread::sleep(Duration::from_millis(1));
    }
}
