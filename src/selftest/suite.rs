//! Plays faults, some at a time, and gives a row each.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::witness::{STARVED, Witness};
use super::{Fault, Stand};

/// Parts at a time, at most: each is a whole program with an arm that talks 3000 frames a second.
const JOBS_MAX: usize = 6;
/// A part that failed while the machine was too busy is played so often.
const TRIES: u32 = 3;

/// How to play.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program under test.
    pub exe: PathBuf,
    /// Parts at a time; `None`: two for each processor.
    pub jobs: Option<usize>,
}

/// What came of one fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// What went wrong.
    pub what: &'static str,
    /// What had to happen.
    pub expected: &'static str,
    /// What happened.
    pub happened: String,
    /// It happened as it had to.
    pub passed: bool,
    /// How long it took, milliseconds.
    pub took_ms: u64,
}

/// Plays the faults; `each` sees the rows as they come. The rows come back in the order of the faults.
pub fn play(options: &Options, faults: &[&Fault], each: impl Fn(&Row) + Sync) -> Vec<Row> {
    let jobs = options
        .jobs
        .unwrap_or_else(|| 2 * thread::available_parallelism().map_or(1, Into::into))
        .clamp(1, JOBS_MAX);
    let next = AtomicUsize::new(0);
    let rows: Mutex<Vec<(usize, Row)>> = Mutex::default();
    thread::scope(|scope| {
        for _ in 0..jobs.min(faults.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(fault) = faults.get(at) else { break };
                    let row = one(options, fault);
                    each(&row);
                    if let Ok(mut rows) = rows.lock() {
                        rows.push((at, row));
                    }
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap_or_default();
    rows.sort_by_key(|(at, _)| *at);
    rows.into_iter().map(|(_, row)| row).collect()
}

fn one(options: &Options, fault: &Fault) -> Row {
    let began = Instant::now();
    // A part that breaks is a failed row, not the end of the suite.
    let try_once = || {
        catch_unwind(AssertUnwindSafe(|| {
            let mut stand = Stand::new(&options.exe, &(fault.setup)())?;
            let happened = (fault.play)(&mut stand)?;
            stand.finish()?;
            Ok(happened)
        }))
        .unwrap_or_else(|_| Err("this part of the selftest itself broke".to_owned()))
    };
    let mut outcome;
    let mut busy = Vec::new();
    loop {
        let witness = Witness::start();
        outcome = try_once();
        let starved = witness.worst() > STARVED;
        if outcome.is_ok() || !starved {
            break;
        }
        busy.push(format!("{:.0} ms", witness.worst().as_secs_f64() * 1e3));
        if busy.len() as u32 == TRIES {
            break;
        }
    }
    let passed = outcome.is_ok();
    if !busy.is_empty() {
        let note = format!(
            " [failed {} times while this machine kept real-time threads waiting for {}]",
            busy.len(),
            busy.join(", ")
        );
        outcome = match outcome {
            Ok(happened) => Ok(happened + &note),
            Err(why) => Err(why + &note),
        };
    }
    Row {
        name: fault.name,
        what: fault.what,
        expected: fault.expected,
        happened: outcome.unwrap_or_else(|why| why),
        passed,
        took_ms: u64::try_from(began.elapsed().min(Duration::from_secs(3600)).as_millis())
            .unwrap_or(u64::MAX),
    }
}
