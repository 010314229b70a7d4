//! `telearm bench cycle`.

use std::fmt::Write as _;

use clap::Args;
use serde_json::{Value, json};

use super::Common;
use super::runs::{Runs, print, quantiles};
use crate::app::bench::{CycleCost, CycleRun, CycleSetup, LoopCount, cycle, cycle_cost};
use crate::cli::Outcome;
use crate::rt::measure::CYCLE_BAR;
use crate::time::Span;

/// Length of the run that looks inside a cycle.
const COST_SECONDS: u32 = 2;

/// The whole cycle, deadline to last frame, beside a bare loop that does the same reads and writes.
///
/// Hands over UDP, input thread, lanes that follow, the driver of the Piper, and emulated arms on buses inside this machine.
#[derive(Debug, Args)]
pub(in crate::cli) struct CycleArgs {
    /// Cycles per second
    #[arg(long, value_name = "HZ", default_value_t = 200, value_parser = clap::value_parser!(u32).range(30..=1000))]
    rate: u32,
    /// Measure with 1 up to this many lanes; the bar is for one
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4))]
    lanes: u32,
    #[command(flatten)]
    common: Common,
}

/// What is told of the runs with one number of lanes.
struct Lanes {
    count: u32,
    runs: Runs,
    ours_us: Vec<f64>,
    bare_us: Vec<f64>,
    all: Totals,
}

#[derive(Default)]
struct Totals {
    ours: LoopCount,
    bare: LoopCount,
    missed: u64,
    faults: u64,
    heap: Option<u64>,
    following: f64,
}

impl CycleArgs {
    pub(super) fn run(&self) -> anyhow::Result<Outcome> {
        let mut cases: Vec<Lanes> = (1..=self.lanes).map(Lanes::new).collect();
        for rotation in 0..self.common.runs {
            for case in &mut cases {
                let run = cycle(&CycleSetup {
                    rate_hz: self.rate,
                    seconds: self.common.seconds,
                    lanes: case.count as usize,
                    rotation,
                })?;
                case.add(&run);
            }
        }
        let cost = cycle_cost(self.rate, 1, COST_SECONDS)?;
        let mut text = String::new();
        for case in &cases {
            let _ = writeln!(
                text,
                "{}{}",
                case.runs.text(),
                case.all.text(self.common.runs)
            );
        }
        let slope = per_lane(&cases);
        if let Some((ours, bare)) = slope {
            let _ = writeln!(
                text,
                "each further lane adds {ours:.1} us at the median, the bare loop's {bare:.1} us\n"
            );
        }
        text += &cost_text(&cost);
        let value = json!({
            "bench": "cycle",
            "rate_hz": self.rate,
            "lanes": cases.iter().map(Lanes::value).collect::<Vec<_>>(),
            "us_per_further_lane": slope.map(|(ours, bare)| json!({ "ours": ours, "bare": bare })),
            "cost": cost_value(&cost),
            "within_bar": cases.iter().all(|case| case.runs.is_good()),
        });
        print(&text, &value, self.common.json)?;
        let clean = cases.iter().all(|case| case.all.is_clean());
        Ok(Outcome::of(
            clean && cases.iter().all(|case| case.runs.is_good()),
        ))
    }
}

impl Lanes {
    fn new(count: u32) -> Self {
        let title = match count {
            1 => "cycle, 1 lane".to_owned(),
            n => format!("cycle, {n} lanes"),
        };
        Self {
            count,
            runs: Runs::new(title, (count == 1).then_some(CYCLE_BAR)),
            ours_us: Vec::new(),
            bare_us: Vec::new(),
            all: Totals::default(),
        }
    }

    fn add(&mut self, run: &CycleRun) {
        self.runs.add(&run.ours, "bare loop", &run.bare);
        self.runs.refusals(&run.refusals);
        for report in run.threads.iter().filter(|r| !r.is_granted()) {
            self.runs.note(report.to_string());
        }
        self.ours_us.push(run.ours.quantile(0.5).as_us());
        self.bare_us.push(run.bare.quantile(0.5).as_us());
        self.all.add(run);
    }

    fn value(&self) -> Value {
        let mut value = self.runs.value();
        if let Some(fields) = value.as_object_mut() {
            fields.insert("lanes".to_owned(), self.count.into());
            fields.insert("cycles".to_owned(), self.all.ours.cycles.into());
            fields.insert("missed".to_owned(), self.all.missed.into());
            fields.insert("page_faults".to_owned(), self.all.faults.into());
            fields.insert("heap_operations".to_owned(), self.all.heap.into());
        }
        value
    }
}

impl Totals {
    fn add(&mut self, run: &CycleRun) {
        for (sum, part) in [
            (&mut self.ours, run.our_count),
            (&mut self.bare, run.bare_count),
        ] {
            sum.cycles += part.cycles;
            sum.frames_in += part.frames_in;
            sum.frames_out += part.frames_out;
        }
        self.missed += run.missed;
        self.faults += run.disturbances.minor_faults + run.disturbances.major_faults;
        if let Some(heap) = run.heap_operations {
            *self.heap.get_or_insert(0) += heap;
        }
        self.following += run.following;
    }

    fn is_clean(&self) -> bool {
        self.faults == 0 && self.heap.is_none_or(|operations| operations == 0)
    }

    fn text(&self, runs: u32) -> String {
        let per_cycle = |frames: u64, count: &LoopCount| frames as f64 / count.cycles.max(1) as f64;
        let heap = self.heap.map_or_else(
            || "heap operations not counted".to_owned(),
            |n| format!("{n} heap operations"),
        );
        format!(
            "in {} cycles: {heap}, {} page faults, {} deadlines missed; lanes followed {:.0} % of the time\n             frames per cycle: ours {:.1} out, {:.1} in; bare {:.1} out, {:.1} in\n",
            self.ours.cycles,
            self.faults,
            self.missed,
            100.0 * self.following / f64::from(runs.max(1)),
            per_cycle(self.ours.frames_out, &self.ours),
            per_cycle(self.ours.frames_in, &self.ours),
            per_cycle(self.bare.frames_out, &self.bare),
            per_cycle(self.bare.frames_in, &self.bare),
        )
    }
}

/// Microseconds per further lane, ours and bare: the slope through the medians of all numbers of lanes.
fn per_lane(cases: &[Lanes]) -> Option<(f64, f64)> {
    if cases.len() < 2 {
        return None;
    }
    let slope = |of: fn(&Lanes) -> &Vec<f64>| {
        let n = cases.len() as f64;
        let points = cases.iter().map(|c| (f64::from(c.count), median(of(c))));
        let (x, y) = points
            .clone()
            .fold((0.0, 0.0), |(a, b), (x, y)| (a + x / n, b + y / n));
        let (xy, xx) = points.fold((0.0, 0.0), |(a, b), (px, py)| {
            (a + (px - x) * (py - y), b + (px - x) * (px - x))
        });
        xy / xx
    };
    Some((slope(|c| &c.ours_us), slope(|c| &c.bare_us)))
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn cost_text(cost: &CycleCost) -> String {
    let mut text = String::from("a lane's share of a cycle, looked at from inside (p50 / p99):\n");
    let us = |span: Span| span.as_us();
    for (name, histogram) in [
        ("poll: drain the bus, decode", &cost.poll),
        ("assess and act: sample to vetted command", &cost.think),
        ("send: encode, system call, hold frames", &cost.send),
    ] {
        let _ = writeln!(
            text,
            "  {name:42} {:6.2} us / {:6.2} us",
            us(histogram.quantile(0.5)),
            us(histogram.quantile(0.99))
        );
    }
    let _ = writeln!(
        text,
        "  each contains a clock reading or two of {} ns",
        cost.clock_reading.as_ns()
    );
    match &cost.calls {
        Some(Ok(calls)) => {
            let calls: Vec<String> = calls
                .iter()
                .map(|(name, n)| format!("{name} {n:.2}"))
                .collect();
            let _ = writeln!(
                text,
                "system calls per cycle, by strace: {}",
                calls.join(", ")
            );
        }
        Some(Err(why)) => {
            let _ = writeln!(text, "system calls not counted: {why}");
        }
        None => {}
    }
    text
}

fn cost_value(cost: &CycleCost) -> Value {
    let calls = match &cost.calls {
        Some(Ok(calls)) => calls
            .iter()
            .map(|(name, n)| (name.clone(), json!(n)))
            .collect(),
        _ => Value::Null,
    };
    json!({
        "poll_us": quantiles(&cost.poll),
        "assess_and_act_us": quantiles(&cost.think),
        "send_us": quantiles(&cost.send),
        "clock_reading_ns": cost.clock_reading.as_ns(),
        "system_calls_per_cycle": calls,
    })
}
