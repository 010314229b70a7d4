//! A plan becomes threads, runs, and ends.

pub mod bench;
mod build;
mod demo;
mod dry;
mod events;
pub mod options;
mod service;
mod snapshot;
pub mod socket;
pub mod status;
mod threads;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::config::Plan;
use crate::control::thread::ControlView;
use crate::handoff::{SourceId, StopLine, StopReason};
use crate::rt::{memory, preflight, report};

pub use options::{ExitReport, RunOptions};

use service::Service;
use snapshot::Rates;
use socket::Server;
use status::Live;

/// Winding down takes no longer: braking, and a few cycles.
const WIND_MAX: Duration = Duration::from_millis(600);
/// The arm gets this long at rest on its last target before the threads end.
const WIND_REST: Duration = Duration::from_millis(100);

/// Runs a plan until a signal, a `quit`, the time limit, or a failure. Every way out of here disengages and brakes first.
///
/// # Errors
/// One clear sentence: why it could not start, or why it had to end.
pub fn run(mut plan: Plan, options: RunOptions) -> Result<ExitReport> {
    let ended = signals()?;
    let emulated = if options.emulate {
        Some(demo::prepare(&mut plan)?)
    } else {
        None
    };
    let host = preflight::probe(threads::WATCHDOG_PRIORITY);
    let require_rt = options.require_rt || plan.control.require_rt;
    if require_rt && let Some(why) = lacks(&host) {
        bail!("real-time rights are required and missing: {why}");
    }
    let locked = memory::lock_all();
    let _dma = memory::DmaLatency::hold();
    memory::prefault_heap(8 << 20);
    let line = Arc::new(StopLine::new());
    let server = open_socket(&plan, &options, &line)?;
    let mut opened = build::open(&plan, &line, options.emulate, options.dry_run)?;
    let _operators = match emulated {
        Some(demo) => Some(demo.start_operators(&plan, &opened.operators)?),
        None => None,
    };
    let threads = threads::start(&plan, &mut opened, line, require_rt)?;
    let mut service = Service {
        real_time: real_time(&host, &threads, locked.err()),
        plan: &plan,
        threads,
        operators: opened.operators,
        reports: opened.reports,
        server,
        live: options
            .live_view
            .then(|| Live::new(std::io::stdout().is_terminal())),
        dry_run: options.dry_run,
        began: Instant::now(),
        pending: Vec::new(),
        next_id: 0,
        rates: Rates::default(),
        events: Vec::new(),
        quit_asked: false,
        view: ControlView::default(),
    };
    log::info!("{}", service.real_time.1);
    let limit = options.time_limit;
    while !ended.asked() && limit.is_none_or(|l| service.began.elapsed() < l) {
        if !service.turn() {
            break;
        }
        if ended.dump() {
            eprint!(
                "{}",
                report::table(&report::filled(service.threads.latencies.totals()))
            );
        }
    }
    finish(service)
}

/// Every lane disengages, brakes and stays; then the threads end.
fn finish(mut service: Service<'_>) -> Result<ExitReport> {
    service.live = None;
    service.wind();
    let began = Instant::now();
    while began.elapsed() < WIND_MAX && !(service.threads.is_quiet() && began.elapsed() > WIND_REST)
    {
        if !service.threads.control_runs() {
            break;
        }
        service.turn();
    }
    let status = service.snapshot();
    let control_ran = service.threads.control_runs();
    if !control_ran {
        // The watchdog keeps the arms; give it the time to bring them to rest.
        std::thread::sleep(WIND_MAX);
    }
    let took_over = service.threads.took_over.load(Ordering::Acquire);
    let Service {
        threads, server, ..
    } = service;
    drop(server);
    let (wrong, latencies) = threads.end();
    let text = format!(
        "{}\n\n{}",
        status.view(),
        report::table(&report::filled(latencies.totals()))
    );
    save_latencies(latencies.totals());
    if took_over || !control_ran {
        bail!("control failed and the watchdog took the arms over; last status:\n{text}");
    }
    if !wrong.is_empty() {
        bail!("{}; last status:\n{text}", wrong.join(", "));
    }
    Ok(ExitReport { good: true, text })
}

/// Signals as flags.
struct Ended {
    end: Arc<AtomicBool>,
    dump: Arc<AtomicBool>,
}

impl Ended {
    fn asked(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }

    /// SIGUSR1 since the last look.
    fn dump(&self) -> bool {
        self.dump.swap(false, Ordering::Relaxed)
    }
}

fn signals() -> Result<Ended> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
    let ended = Ended {
        end: Arc::new(AtomicBool::new(false)),
        dump: Arc::new(AtomicBool::new(false)),
    };
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // A second signal of the kind ends at once: a hung wind-down must not keep the user from ending the process.
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&ended.end))
            .context("cannot listen to signals")?;
        signal_hook::flag::register(signal, Arc::clone(&ended.end))
            .context("cannot listen to signals")?;
    }
    signal_hook::flag::register(SIGUSR1, Arc::clone(&ended.dump))
        .context("cannot listen to SIGUSR1")?;
    Ok(ended)
}

fn open_socket(plan: &Plan, options: &RunOptions, line: &Arc<StopLine>) -> Result<Option<Server>> {
    let named = options
        .socket
        .clone()
        .or_else(|| plan.control.socket.clone());
    let paths: Vec<PathBuf> = named.map_or_else(socket::default_paths, |path| vec![path]);
    let line = Arc::clone(line);
    let on_stop: socket::OnStop = Arc::new(move || {
        line.trip(StopReason::Command, SourceId::SERVICE);
    });
    let mut refused = None;
    for path in &paths {
        match Server::open(path, Arc::clone(&on_stop)) {
            Ok(server) => return Ok(Some(server)),
            Err(error) => refused = Some(error),
        }
    }
    match refused {
        Some(error) if !options.socket_optional => Err(error.into()),
        Some(error) => {
            log::warn!("running without a control socket: {error}");
            Ok(None)
        }
        None => Ok(None),
    }
}

fn lacks(host: &preflight::Preflight) -> Option<String> {
    if !host.preempt_rt {
        return Some(format!("this is not a PREEMPT_RT kernel ({})", host.kernel));
    }
    let refused = host.fifo.as_ref().err().or(host.lock.as_ref().err())?;
    Some(refused.to_string())
}

fn real_time(
    host: &preflight::Preflight,
    threads: &threads::Threads,
    unlocked: Option<crate::rt::Refusal>,
) -> (bool, String) {
    let refused = threads
        .granted
        .iter()
        .flat_map(|r| &r.refusals)
        .next()
        .map(ToString::to_string);
    match refused.or(unlocked.map(|r| r.to_string())) {
        Some(why) => (false, format!("not real-time: {why}")),
        None if host.preempt_rt => (
            true,
            format!("real-time on a PREEMPT_RT kernel ({})", host.kernel),
        ),
        None => (
            true,
            "real-time scheduling on an ordinary kernel: latencies are measured, not bounded"
                .to_owned(),
        ),
    }
}

/// The last run's histograms, for `telearm latency` without a daemon. Not being able to keep them is no failure of the run.
fn save_latencies(totals: &crate::rt::histogram::LatencySet) {
    let rows = report::filled(totals);
    let dir = crate::config::frame::state_dir().join("last-run");
    let result = std::fs::create_dir_all(&dir)
        .and_then(|()| std::fs::write(dir.join("latency.txt"), report::table(&rows)))
        .and_then(|()| {
            std::fs::write(
                dir.join("latency.svg"),
                report::svg("telearm latencies", &rows),
            )
        })
        .and_then(|()| {
            rows.iter().try_for_each(|row| {
                std::fs::write(
                    dir.join(format!("{}.hgrm", row.name)),
                    report::hgrm(row.histogram),
                )
            })
        });
    if let Err(error) = result {
        log::debug!("cannot keep the histograms in {}: {error}", dir.display());
    }
}
