//! The soak: the real program for minutes or hours, with random faults from a printed seed, and then the question whether anything has
//! grown, drifted, leaked or moved that should not have.
//!
//! `run` plays `mishaps` one after another with calm in between, in which the ages are sampled; `judge` makes a row of each
//! question. Everything random comes from the seed; what the machine does in between does not.

mod judge;
mod mishaps;

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use super::stand::{Setup, Stand, pause};
use super::tap::Allowed;
use super::witness::Witness;
use crate::rt::clock;

pub use judge::Row;
pub use mishaps::Dice;

/// Calm between two mishaps, milliseconds: from, and how much more at most.
const CALM_MS: (u64, u64) = (800, 1_600);
/// Samples of the ages in calm.
const SAMPLE_EVERY: Duration = Duration::from_millis(20);
/// The status shows the counters of up to one turn of the service loop ago.
const STATUS_LAG_MS: u64 = 80;

/// How to soak.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program under test.
    pub exe: PathBuf,
    /// For how long.
    pub length: Duration,
    /// Where everything random comes from.
    pub seed: u64,
}

/// One look at the running program.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sample {
    /// Seconds since the beginning.
    pub t_s: f64,
    /// Resident memory, bytes.
    pub resident: u64,
    /// Open descriptors.
    pub descriptors: usize,
    /// Cycles done.
    pub cycles: u64,
    /// Of those late.
    pub late: u64,
    /// Times that a thread which only sleeps was kept waiting for a period.
    pub starved: u64,
}

/// What a run leaves behind.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Record {
    /// How long it lasted, seconds.
    pub length_s: f64,
    /// Mishaps played, by name.
    pub played: std::collections::BTreeMap<&'static str, u64>,
    /// Looks, in order.
    pub samples: Vec<Sample>,
    /// Age of the newest sample while following: when, and milliseconds.
    pub ages_ms: Vec<(f64, f64)>,
    /// What did not go as it had to, with the number of the mishap.
    pub failures: Vec<String>,
    /// Complaints of the bus, and how many there were.
    pub complaints: (u64, Vec<String>),
    /// Pose targets that were on the bus.
    pub targets: u64,
    /// Datagrams sent by the hand; read, accepted, refused, thrown away by the kernel.
    pub datagrams: Datagrams,
    /// Frames that the program says it sent, and the least and most that were on the bus or known to be lost when it said so.
    pub frames: Frames,
    /// Braking commands refused.
    pub brake_vetoes: u64,
    /// Heap operations of control; `None`: not counted by this build.
    pub heap_operations: Option<u64>,
    /// The longest wait of a thread that only sleeps, milliseconds.
    pub starved_ms: f64,
}

/// Counts of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Datagrams {
    /// Sent by the hand.
    pub sent: u64,
    /// Read by the program.
    pub read: u64,
    /// Accepted.
    pub accepted: u64,
    /// Refused.
    pub refused: u64,
    /// Thrown away by the kernel.
    pub kernel_drops: u64,
}

/// Counts of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Frames {
    /// As the program says.
    pub said: u64,
    /// On the bus or lost, shortly before it said so.
    pub least: u64,
    /// On the bus or lost, shortly after.
    pub most: u64,
}

struct Soak {
    stand: Stand,
    dice: Dice,
    began: Instant,
    witness: Witness,
    record: Record,
    sent_before: u64,
    /// Frames that a pulled adapter may have swallowed.
    swallowed: u64,
}

/// Soaks; `say` is told what is going on, about once a minute.
///
/// # Errors
/// When the stand cannot be set up, or the program does not answer at the end.
pub fn run(options: &Options, say: impl Fn(&str)) -> Result<(Record, Vec<Row>), String> {
    let setup = Setup {
        allowed: Allowed {
            arm_stop: false,
            cut_off: true,
        },
        ..Setup::default()
    };
    let stand = Stand::new(&options.exe, &setup)?;
    stand.hand.set(|h| h.silent = true);
    pause(STATUS_LAG_MS);
    let status = stand.status()?;
    // What the hand sent before the program listened.
    let sent_before = stand.hand.sent().saturating_sub(status.packets());
    stand.hand.set(|h| h.silent = false);
    let mut soak = Soak {
        stand,
        dice: Dice::new(options.seed),
        began: Instant::now(),
        witness: Witness::start(),
        record: Record::default(),
        sent_before,
        swallowed: 0,
    };
    soak.play(options.length, say);
    soak.finish()?;
    let rows = judge::rows(&soak.record);
    Ok((soak.record, rows))
}

impl Soak {
    fn play(&mut self, length: Duration, say: impl Fn(&str)) {
        let mut told = Instant::now();
        let mut number = 0_u64;
        while self.began.elapsed() < length && self.record.failures.len() < 3 {
            let calm = self.calm();
            let mishap = self.dice.pick(mishaps::ALL);
            number += 1;
            *self.record.played.entry(mishap.name).or_insert(0) += 1;
            self.swallowed += mishap.swallows;
            let outcome = calm
                .and_then(|()| (mishap.play)(&mut self.stand, &mut self.dice))
                .and_then(|()| mishaps::recover(&mut self.stand));
            if let Err(why) = outcome {
                let worst = self.witness.worst().as_secs_f64() * 1e3;
                self.record.failures.push(format!(
                    "mishap {number} ({}): {why} [longest wait of a sleeping thread so far: {worst:.0} ms]",
                    mishap.name
                ));
                if self.stand.status().is_ok_and(|s| s.taken_over()) {
                    break;
                }
                // Whatever it was, the next mishap begins from a good state, or the failures end the soak.
                let _ = mishaps::recover(&mut self.stand);
            }
            if told.elapsed() > Duration::from_secs(60) {
                told = Instant::now();
                say(&format!(
                    "{:.0} s, {number} mishaps, {} failures",
                    self.began.elapsed().as_secs_f64(),
                    self.record.failures.len()
                ));
            }
        }
    }

    /// Follows for a while, and looks.
    fn calm(&mut self) -> Result<(), String> {
        self.stand.follow()?;
        let length = Duration::from_millis(CALM_MS.0 + self.dice.below(CALM_MS.1));
        let since = Instant::now();
        while since.elapsed() < length {
            let status = self.stand.status()?;
            if status.mode() == "active"
                && let Some(age) = status.input_age_ms()
            {
                let t_s = self.began.elapsed().as_secs_f64();
                self.record.ages_ms.push((t_s, age));
            }
            thread::sleep(SAMPLE_EVERY);
        }
        let status = self.stand.status()?;
        let t_s = self.began.elapsed().as_secs_f64();
        let starved = self.witness.kept_waiting();
        let daemon = self.stand.daemon()?;
        let descriptors =
            fs::read_dir(format!("/proc/{}/fd", daemon.pid())).map_or(0, Iterator::count);
        self.record.samples.push(Sample {
            t_s,
            resident: daemon.resident_bytes().unwrap_or(0),
            descriptors,
            cycles: status.cycles(),
            late: status.late_cycles(),
            starved,
        });
        // Keeps the record of the bus short, and judges it.
        self.stand.tap();
        Ok(())
    }

    fn on_bus_or_lost(&mut self) -> u64 {
        let arm = super::stand::ARM_MEMBER;
        let lost: u64 = self
            .stand
            .bus
            .lost_by_member()
            .into_iter()
            .filter(|(member, _)| *member != arm && !self.stand.tap().is_arm(*member))
            .map(|(_, n)| n)
            .sum();
        self.stand.tap().host_frames() + lost
    }

    fn finish(&mut self) -> Result<(), String> {
        self.stand.hand.set(|h| h.silent = true);
        pause(STATUS_LAG_MS);
        let least = self.on_bus_or_lost();
        pause(STATUS_LAG_MS);
        let status = self.stand.status()?;
        pause(STATUS_LAG_MS);
        let most = self.on_bus_or_lost();
        let r = &mut self.record;
        r.length_s = self.began.elapsed().as_secs_f64();
        r.frames = Frames {
            said: status.frames_out(),
            least,
            most: most + self.swallowed,
        };
        r.datagrams = Datagrams {
            sent: self.stand.hand.sent() - self.sent_before,
            read: status.packets(),
            accepted: status.accepted(),
            refused: status.dropped(),
            kernel_drops: status.kernel_drops(),
        };
        r.brake_vetoes = status.brake_vetoes();
        r.heap_operations = status
            .0
            .pointer("/process/heap_operations")
            .and_then(serde_json::Value::as_u64);
        r.starved_ms = self.witness.worst().as_secs_f64() * 1e3;
        // The end is part of it: nothing jumps when the program winds down.
        if let Err(why) = self.stand.quit() {
            self.record.failures.push(format!("at the end: {why}"));
        }
        let last = clock::now();
        pause(100);
        let tap = self.stand.tap();
        if tap.last_host_frame().is_some_and(|at| at > last) {
            self.record
                .failures
                .push("frames came after the end".to_owned());
        }
        let tap = self.stand.tap();
        self.record.complaints = (tap.complained(), tap.complaints().to_vec());
        self.record.targets = tap.whole();
        Ok(())
    }
}
