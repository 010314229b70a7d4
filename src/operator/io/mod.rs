//! The input thread: polls sockets, drains them, and hands every byte to its source. Steady state: no heap, no lock, no log.
//!
//! mio reports a socket once per edge, so a source that was not drained to the end has to be remembered by us:
//! ```text
//!   poll ── readable ──► on_ready ── Empty ──► wait for the next edge
//!    ▲                      ▲  │
//!    │                      │  ├── More ───► next turn, poll with zero timeout (other sockets get their turn in between)
//!    └──────────────────────┴──┴── Later ──► next turn, poll with the usual timeout (the socket has an error)
//! ```
//! Poll never sleeps longer than [`TURN_MAX`]. A turn that comes much later than that means that the thread was away (stopped process,
//! paused machine): every source is told, breaks its session off and discards what queued up meanwhile, stop bits excepted. A suspend of
//! the machine shows as growth of the boot clock over the monotonic one, and is treated the same.

mod port;
mod stats;
pub mod udp;

pub use port::{BoundPort, OpenError, PortHolder, port_holder};
pub use stats::{COUNT_NAMES, IO_REASONS, PeerCell, SourceStats, StatsSnapshot, StopLevel};

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mio::{Events, Poll, Registry, Token, Waker};

use crate::handoff::{Heartbeat, SourceId, StopLine, StopReason};
use crate::rt::clock::{self, SuspendDetector};
use crate::time::{Span, Stamp};

/// Longest sleep of the input thread.
pub const TURN_MAX: Span = Span::from_ms(10);
/// A thread that is told to end does so within one turn, unless it hangs.
pub const STOP_MAX: Duration = Duration::from_millis(500);
/// Most sources of one input thread.
pub const SOURCES_MAX: usize = 16;
/// Tokens that each source has for its sockets.
pub const TOKENS_PER_SOURCE: usize = 16;

const TOKENS_MAX: usize = SOURCES_MAX * TOKENS_PER_SOURCE;
const WAKER: Token = Token(TOKENS_MAX);

/// How far a source drained its socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// To the end: the next edge will tell.
    Empty,
    /// Its share of this turn is used up; there may be more.
    More,
    /// The socket has an error; try again next turn.
    Later,
}

/// Something that owns sockets and turns their bytes into samples. Lives in an input thread. No call blocks.
pub trait Source: Send {
    /// Registers its sockets with tokens from `first` on, fewer than [`TOKENS_PER_SOURCE`]. A socket that is opened later is registered
    /// with the registry handed to `on_ready` and `on_timer`.
    ///
    /// # Errors
    /// What the poller says.
    fn register(&mut self, registry: &Registry, first: Token) -> io::Result<()>;

    /// The socket of this token became readable, or was not drained last time. Bounded work.
    fn on_ready(&mut self, token: Token, registry: &Registry, now: Stamp) -> Drained;

    /// Called when `next_deadline` has passed.
    fn on_timer(&mut self, registry: &Registry, now: Stamp);

    /// When `on_timer` wants to be called; `None` for never.
    fn next_deadline(&self) -> Option<Stamp>;

    /// The thread was away until `now`, longer than the sources can tolerate: break the session off, discard what queued up, stop bits
    /// excepted.
    fn on_away(&mut self, now: Stamp);
}

/// How an input thread runs.
pub struct InputOptions {
    /// Thread name, at most 15 bytes.
    pub name: &'static str,
    /// A turn later than this means that the thread was away: the shortest `hold_after` of its sources.
    pub away_after: Span,
    /// Runs first in the thread: scheduling policy, priority, affinity.
    #[expect(clippy::disallowed_types, reason = "start-up")]
    pub set_up: Box<dyn FnOnce() + Send>,
    /// Tripped if the thread ends although nobody asked it to.
    pub stop_line: Arc<StopLine>,
}

/// What an input thread counts about itself.
#[derive(Debug, Default)]
pub struct LoopCounters {
    /// One per turn; stands still when the thread hangs.
    pub heartbeat: Heartbeat,
    /// Times that the thread was away.
    pub away: AtomicU64,
    /// Suspends of the machine.
    pub suspends: AtomicU64,
    /// Errors of the poller itself.
    pub poll_errors: AtomicU64,
}

/// A running input thread; ends when dropped.
pub struct InputThread {
    waker: Waker,
    quit: Arc<AtomicBool>,
    counters: Arc<LoopCounters>,
    join: Option<JoinHandle<()>>,
}

impl InputThread {
    /// Registers the sources and starts the thread.
    ///
    /// # Errors
    /// When there are too many sources, a socket cannot be registered, or no thread can be started.
    #[expect(clippy::disallowed_types, reason = "start-up")]
    pub fn spawn(sources: Vec<Box<dyn Source>>, options: InputOptions) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let mut slots = heapless::Vec::new();
        for mut source in sources {
            let first = Token(slots.len() * TOKENS_PER_SOURCE);
            source.register(poll.registry(), first)?;
            if slots.push(source).is_err() {
                return Err(io::Error::other("too many sources for one input thread"));
            }
        }
        let quit = Arc::new(AtomicBool::new(false));
        let counters = Arc::new(LoopCounters::default());
        let turns = Turns {
            poll,
            events: Events::with_capacity(64),
            sources: slots,
            unfinished: heapless::Vec::new(),
            hurry: false,
            away_after: options.away_after,
            last_turn: Stamp::default(),
            suspends: SuspendDetector::new(clock::suspended_so_far()),
            quit: Arc::clone(&quit),
            counters: Arc::clone(&counters),
        };
        let alarm = EndAlarm {
            quit: Arc::clone(&quit),
            stop_line: options.stop_line,
        };
        let set_up = options.set_up;
        let join = thread::Builder::new()
            .name(options.name.to_owned())
            .spawn(move || {
                let _alarm = alarm;
                set_up();
                turns.run();
            })?;
        Ok(Self {
            waker,
            quit,
            counters,
            join: Some(join),
        })
    }

    /// Its counters.
    #[must_use]
    pub fn counters(&self) -> &Arc<LoopCounters> {
        &self.counters
    }

    /// Ends the thread and waits for it, for at most [`STOP_MAX`]. The sources, and their sockets, are gone afterwards; `false` if the
    /// thread hangs and they are not.
    pub fn stop(&mut self) -> bool {
        self.quit.store(true, Ordering::Release);
        // A refused wake-up costs at most one turn.
        let _ = self.waker.wake();
        let Some(join) = self.join.take() else {
            return true;
        };
        let began = Instant::now();
        while !join.is_finished() {
            if began.elapsed() > STOP_MAX {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
        // A panic in there has tripped the stop line already; there is nothing more to do with it here.
        let _ = join.join();
        true
    }
}

impl Drop for InputThread {
    fn drop(&mut self) {
        // A thread that hangs is left behind: whoever drops this is about to end.
        let _ = self.stop();
    }
}

/// Trips the stop line when the thread ends unasked, by panic or otherwise.
struct EndAlarm {
    quit: Arc<AtomicBool>,
    stop_line: Arc<StopLine>,
}

impl Drop for EndAlarm {
    fn drop(&mut self) {
        if !self.quit.load(Ordering::Acquire) {
            self.stop_line
                .trip(StopReason::InputThreadDied, SourceId::PROCESS);
        }
    }
}

#[expect(clippy::disallowed_types, reason = "built at start-up")]
struct Turns {
    poll: Poll,
    events: Events,
    sources: heapless::Vec<Box<dyn Source>, SOURCES_MAX>,
    /// Tokens that were not drained.
    unfinished: heapless::Vec<Token, TOKENS_MAX>,
    /// One of them is worth not sleeping for.
    hurry: bool,
    away_after: Span,
    last_turn: Stamp,
    suspends: SuspendDetector,
    quit: Arc<AtomicBool>,
    counters: Arc<LoopCounters>,
}

impl Turns {
    fn run(mut self) {
        self.last_turn = clock::now();
        while !self.quit.load(Ordering::Acquire) {
            self.turn();
        }
    }

    fn turn(&mut self) {
        let timeout = self.timeout();
        if let Err(error) = self.poll.poll(&mut self.events, Some(timeout))
            && error.kind() != io::ErrorKind::Interrupted
        {
            self.counters.poll_errors.fetch_add(1, Ordering::Relaxed);
        }
        let now = clock::now();
        self.notice_absence(now);
        self.last_turn = now;
        self.counters.heartbeat.beat();
        self.serve_ready(now);
        self.serve_timers(now);
    }

    fn timeout(&self) -> Duration {
        if self.hurry {
            return Duration::ZERO;
        }
        let now = clock::now();
        let next = self.sources.iter().filter_map(|s| s.next_deadline()).min();
        let sleep = next.map_or(TURN_MAX, |at| (at - now).min(TURN_MAX));
        Duration::from_nanos(sleep.as_ns_clamped())
    }

    fn notice_absence(&mut self, now: Stamp) {
        let was_suspended = self.suspends.observe(clock::suspended_so_far()).is_some();
        let was_away = now.age_of(self.last_turn) > self.away_after;
        if was_suspended {
            self.counters.suspends.fetch_add(1, Ordering::Relaxed);
        }
        if was_away {
            self.counters.away.fetch_add(1, Ordering::Relaxed);
        }
        if was_away || was_suspended {
            for source in &mut self.sources {
                source.on_away(now);
            }
        }
    }

    fn serve_ready(&mut self, now: Stamp) {
        let again = core::mem::take(&mut self.unfinished);
        self.hurry = false;
        for event in &self.events {
            let token = event.token();
            if token != WAKER && !again.contains(&token) {
                let drained = ready(&mut self.sources, self.poll.registry(), token, now);
                note(&mut self.unfinished, &mut self.hurry, token, drained);
            }
        }
        for token in again {
            let drained = ready(&mut self.sources, self.poll.registry(), token, now);
            note(&mut self.unfinished, &mut self.hurry, token, drained);
        }
    }

    fn serve_timers(&mut self, now: Stamp) {
        for source in &mut self.sources {
            if source.next_deadline().is_some_and(|at| at <= now) {
                source.on_timer(self.poll.registry(), now);
            }
        }
    }
}

#[expect(clippy::disallowed_types, reason = "built at start-up")]
fn ready(
    sources: &mut [Box<dyn Source>],
    registry: &Registry,
    token: Token,
    now: Stamp,
) -> Drained {
    match sources.get_mut(token.0 / TOKENS_PER_SOURCE) {
        Some(source) => source.on_ready(token, registry, now),
        None => Drained::Empty,
    }
}

/// The list has room for every token that exists, and holds each at most once.
fn note(
    unfinished: &mut heapless::Vec<Token, TOKENS_MAX>,
    hurry: &mut bool,
    token: Token,
    drained: Drained,
) {
    if drained != Drained::Empty && !unfinished.contains(&token) {
        let _ = unfinished.push(token);
    }
    *hurry |= drained == Drained::More;
}
