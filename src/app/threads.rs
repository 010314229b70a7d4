//! The real-time threads: started, set up, read back, ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use crossbeam_channel::{Receiver, Sender, bounded};

use crate::config::Plan;
use crate::control::thread::{
    AnswerReceiver, ControlEvent, ControlLoop, ControlView, Numbered, REQUEST_QUEUE, RequestSender,
};
use crate::control::{Engine, EngineParts, StopAsserted};
use crate::handoff::{
    EventReceiver, Heartbeat, LaneBoard, Reader, Revoker, SourceId, StopLine, StopReason,
    event_ring, mailbox, tx_gate,
};
use crate::operator::io::{InputOptions, InputThread, LoopCounters};
use crate::rt::histogram::{LatencyCollector, latency_exchange};
use crate::rt::pace::Pacer;
use crate::rt::sched::{self, Policy, SchedReport, Wanted};
use crate::rt::{clock, memory, panic as rt_panic};
use crate::time::Span;
use crate::watchdog::{Judge, Watchdog, WatchdogEvent};

use super::build::Opened;

/// SCHED_FIFO priority of the threads that carry stop bits.
pub(super) const INPUT_PRIORITY: u8 = 75;
/// SCHED_FIFO priority of the watchdog.
pub(super) const WATCHDOG_PRIORITY: u8 = 90;
/// A real-time thread that is told to end does so within a cycle, unless it hangs.
const END_MAX: Duration = Duration::from_millis(500);
/// Events that fit between two looks of the service thread.
const EVENTS: usize = 256;

/// The running threads and the plain thread's ends of everything.
pub(super) struct Threads {
    /// Latch and wake.
    pub line: Arc<StopLine>,
    /// Requests to control.
    pub requests: RequestSender,
    /// Its answers.
    pub answers: AnswerReceiver,
    /// Control's events.
    pub control_events: EventReceiver<ControlEvent>,
    /// The watchdog's events.
    pub watchdog_events: EventReceiver<WatchdogEvent>,
    /// Control's view.
    pub view: Reader<ControlView>,
    /// Histograms.
    pub latencies: LatencyCollector,
    /// The watchdog holds the arms.
    pub took_over: Arc<AtomicBool>,
    /// What each thread asked for and got.
    pub granted: Vec<SchedReport>,
    /// Core of the control thread.
    pub core: Option<usize>,
    /// What the input threads count.
    pub input: Arc<LoopCounters>,
    input_thread: Option<InputThread>,
    control: Option<JoinHandle<ControlLoop>>,
    watchdog: Option<JoinHandle<()>>,
    quit: Arc<AtomicBool>,
    board: Arc<LaneBoard>,
}

/// Starts watchdog, control and input, in this order: whoever can move an arm is watched from its first cycle.
///
/// # Errors
/// When a thread cannot be started, or real-time rights are required and not granted.
pub(super) fn start(
    plan: &Plan,
    opened: &mut Opened,
    line: Arc<StopLine>,
    require_rt: bool,
) -> Result<Threads> {
    rt_panic::install(Arc::clone(&line));
    let quit = Arc::new(AtomicBool::new(false));
    let board = Arc::new(LaneBoard::default());
    let heartbeat = Arc::new(Heartbeat::new());
    let took_over = Arc::new(AtomicBool::new(false));
    let (control_gate, watchdog_gate) = tx_gate();
    let (reports_out, reports) = bounded(8);
    let period = Span::from_s(1.0 / f64::from(plan.rate_hz));

    let (watchdog_tx, watchdog_events) = event_ring::<WatchdogEvent, EVENTS>();
    let watchdog = Watchdog {
        wards: std::mem::take(&mut opened.wards),
        judge: Judge::new(period),
        line: Arc::clone(&line),
        board: Arc::clone(&board),
        heartbeat: Arc::clone(&heartbeat),
        gate: watchdog_gate,
        revoker: Revoker::new().context("cannot open /dev/null")?,
        events: watchdog_tx,
        quit: Arc::clone(&quit),
        took_over: Arc::clone(&took_over),
    };
    let core = control_core(plan);
    let watchdog_core = other_core(core);
    let watchdog = spawn_watchdog(watchdog, watchdog_core, reports_out.clone())?;

    let (requests, requests_in) = queue();
    let (answers_out, answers) = queue();
    let (control_tx, control_events) = event_ring::<ControlEvent, EVENTS>();
    let (recorder, latencies) = latency_exchange();
    let (view_out, view) = mailbox(ControlView::default());
    let away_after = opened
        .operators
        .iter()
        .map(|o| o.limits.0)
        .min()
        .unwrap_or(Span::from_ms(100));
    let engine = Engine::new(EngineParts {
        lanes: std::mem::take(&mut opened.lanes),
        readers: std::mem::take(&mut opened.readers),
        gate: control_gate,
        line: Arc::clone(&line),
        board: Arc::clone(&board),
        coupling: plan.coupling.hold,
        stop_asserted: stop_asserted(opened),
    });
    let spin = Span::from_us(i64::from(plan.control.spin_us));
    let rate_hz = plan.rate_hz;
    let make = {
        let (line, quit, heartbeat) =
            (Arc::clone(&line), Arc::clone(&quit), Arc::clone(&heartbeat));
        move || ControlLoop {
            engine,
            pacer: Pacer::new(clock::now() + period, rate_hz).with_spin(spin),
            rate_hz,
            line,
            heartbeat,
            requests: requests_in,
            answers: answers_out,
            events: control_tx,
            latencies: recorder,
            view: view_out,
            away_after,
            quit,
        }
    };
    let wanted = Wanted {
        name: "control",
        policy: Policy::Fifo(plan.control.priority),
        cpu: core,
    };
    let (go, wait) = bounded(1);
    let control = spawn_control(make, wanted, reports_out.clone(), wait)?;

    let sources = std::mem::take(&mut opened.sources);
    let set_up_line = reports_out;
    let input_thread = InputThread::spawn(
        sources,
        InputOptions {
            name: "input",
            away_after,
            set_up: Box::new(move || {
                // On control's own core: it cannot preempt control there, and waking control needs no interrupt across cores.
                let wanted = Wanted {
                    name: "input",
                    policy: Policy::Fifo(INPUT_PRIORITY),
                    cpu: core,
                };
                let _ = set_up_line.send(sched::apply(wanted));
                rt_panic::stop_on_panic("input", SourceId::PROCESS, StopReason::InputThreadDied);
            }),
            stop_line: Arc::clone(&line),
        },
    )
    .context("cannot start the input thread")?;

    let granted: Vec<SchedReport> = reports.iter().take(3).collect();
    let threads = Threads {
        line,
        requests,
        answers,
        control_events,
        watchdog_events,
        view,
        latencies,
        took_over,
        core,
        input: Arc::clone(input_thread.counters()),
        input_thread: Some(input_thread),
        control: Some(control),
        watchdog: Some(watchdog),
        quit,
        board,
        granted,
    };
    if require_rt && let Some(refused) = threads.granted.iter().find(|r| !r.is_granted()) {
        bail!("real-time scheduling is required and was refused: {refused}");
    }
    // Only now may control touch the arms.
    go.send(())
        .context("the control thread ended before its first cycle")?;
    Ok(threads)
}

impl Threads {
    /// Whether control still runs. If not, it panicked.
    pub(super) fn control_runs(&self) -> bool {
        self.control.as_ref().is_some_and(|c| !c.is_finished())
    }

    /// Every lane has stopped following.
    pub(super) fn is_quiet(&self) -> bool {
        (0..crate::handoff::LANES_MAX)
            .all(|i| self.board.lane(i).is_none_or(|line| !line.follows()))
    }

    /// Ends the threads: input first, control next, the watchdog last. A thread that hangs is not waited for; the process ends under it. Gives
    /// what went wrong.
    pub(super) fn end(mut self) -> (Vec<&'static str>, LatencyCollector) {
        let mut wrong = Vec::new();
        if let Some(mut input) = self.input_thread.take()
            && !input.stop()
        {
            wrong.push("the input thread hangs");
        }
        self.quit.store(true, Ordering::Relaxed);
        self.line.wake.bump_and_wake();
        match self.control.take().map(join_in_time) {
            Some(Ended::Well(control)) => self.latencies.add(&control.latencies.into_set()),
            Some(Ended::Panicked) => wrong.push("control panicked"),
            Some(Ended::Hangs) => wrong.push("control hangs"),
            None => {}
        }
        match self.watchdog.take().map(join_in_time) {
            Some(Ended::Panicked) => wrong.push("the watchdog panicked"),
            Some(Ended::Hangs) => wrong.push("the watchdog hangs"),
            Some(Ended::Well(())) | None => {}
        }
        (wrong, self.latencies)
    }
}

/// How a thread ended that was told to.
enum Ended<T> {
    Well(T),
    Panicked,
    Hangs,
}

/// Joins a thread that was told to end. Joining one that hangs would hang too, and with it the end of the program.
fn join_in_time<T>(thread: JoinHandle<T>) -> Ended<T> {
    let began = Instant::now();
    while !thread.is_finished() {
        if began.elapsed() > END_MAX {
            return Ended::Hangs;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    match thread.join() {
        Ok(value) => Ended::Well(value),
        Err(_) => Ended::Panicked,
    }
}

fn spawn_watchdog(
    watchdog: Watchdog,
    cpu: Option<usize>,
    reports: Sender<SchedReport>,
) -> Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name("watchdog".to_owned())
        .spawn(move || {
            let wanted = Wanted {
                name: "watchdog",
                policy: Policy::Fifo(WATCHDOG_PRIORITY),
                cpu,
            };
            let _ = reports.send(sched::apply(wanted));
            drop(reports);
            memory::prefault_stack();
            rt_panic::stop_on_panic("watchdog", SourceId::WATCHDOG, StopReason::Panic);
            watchdog.run();
        })
        .context("cannot start the watchdog thread")
}

fn spawn_control(
    make: impl FnOnce() -> ControlLoop + Send + 'static,
    wanted: Wanted,
    reports: Sender<SchedReport>,
    go: Receiver<()>,
) -> Result<JoinHandle<ControlLoop>> {
    std::thread::Builder::new()
        .name("control".to_owned())
        .spawn(move || {
            let _ = reports.send(sched::apply(wanted));
            drop(reports);
            memory::prefault_stack();
            rt_panic::stop_on_panic("control", SourceId::CONTROL, StopReason::Panic);
            // Without a go the process ends anyway: the loop then sees `quit` at once.
            let _ = go.recv();
            make().run()
        })
        .context("cannot start the control thread")
}

/// The core of the plan, or the last one we may use: the first ones serve interrupts on most machines. A machine with one core has no
/// choice, and pinning to it means nothing.
pub(super) fn control_core(plan: &Plan) -> Option<usize> {
    let allowed = sched::affinity();
    if let Some(core) = plan.control.core {
        return Some(core as usize);
    }
    if allowed.len() > 1 {
        allowed.last().copied()
    } else {
        None
    }
}

/// Another core than control's, where there is one.
pub(super) fn other_core(core: Option<usize>) -> Option<usize> {
    sched::affinity().into_iter().find(|c| Some(*c) != core)
}

/// A queue between two threads.
pub(super) fn queue<T: 'static>() -> (
    heapless::spsc::Producer<'static, Numbered<T>>,
    heapless::spsc::Consumer<'static, Numbered<T>>,
) {
    // Lives as long as the process: both ends are in threads that end with it.
    let queue: &'static mut heapless::spsc::Queue<Numbered<T>, REQUEST_QUEUE> =
        Box::leak(Box::default());
    queue.split()
}

fn stop_asserted(opened: &Opened) -> StopAsserted {
    let levels: Vec<_> = opened
        .operators
        .iter()
        .map(|o| (Arc::clone(&o.stats), o.limits.1))
        .collect();
    Box::new(move |now| {
        let found = levels
            .iter()
            .position(|(stats, limit)| stats.stop_level.is_asserted(now, *limit))?;
        u8::try_from(found).ok()
    })
}
