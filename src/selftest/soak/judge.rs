//! From the record of a soak to a row for each question. Pure.

use serde::Serialize;

use super::{Record, Sample};

/// Ages may grow by this factor from the first to the last third ...
const AGE_GROWTH: f64 = 1.5;
/// ... plus this, milliseconds: half a packet period.
const AGE_SLACK_MS: f64 = 10.0;
/// Late cycles of the last third may be this factor of those of the first, plus the slack, plus those that the machine accounts for.
const LATE_GROWTH: f64 = 1.5;
const LATE_SLACK: f64 = 10.0;
/// A thread that was kept waiting once costs control this many cycles at most.
const LATE_PER_STARVED: f64 = 4.0;
/// Memory may grow by this after the first third, bytes.
const MEMORY_GROWTH_MAX: u64 = 2 << 20;
/// Descriptors may differ by what one look over the control socket holds open.
const DESCRIPTORS_SLACK: usize = 2;

/// One question with its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// What is asked.
    pub what: &'static str,
    /// What must be.
    pub bar: String,
    /// What was.
    pub measured: String,
    /// It was as it must be.
    pub passed: bool,
}

/// All questions.
#[must_use]
pub(super) fn rows(r: &Record) -> Vec<Row> {
    let mut rows = vec![
        Row {
            what: "mishaps end as they must",
            bar: "0 failures".into(),
            measured: format!(
                "{} of {} failed",
                r.failures.len(),
                r.played.values().sum::<u64>()
            ),
            passed: r.failures.is_empty() && !r.played.is_empty(),
        },
        Row {
            what: "bus: no jump, nothing torn, no power off",
            bar: "0 complaints".into(),
            measured: format!("{} in {} targets", r.complaints.0, r.targets),
            passed: r.complaints.0 == 0 && r.targets > 0,
        },
        Row {
            what: "braking commands refused by the guard",
            bar: "0".into(),
            measured: r.brake_vetoes.to_string(),
            passed: r.brake_vetoes == 0,
        },
    ];
    rows.push(ages(r));
    rows.push(late(r));
    rows.push(memory(r));
    rows.push(descriptors(r));
    rows.extend(datagrams(r));
    rows.push(frames(r));
    if let Some(operations) = r.heap_operations {
        rows.push(Row {
            what: "heap operations of control",
            bar: "0".into(),
            measured: operations.to_string(),
            passed: operations == 0,
        });
    }
    rows
}

/// The 99th percentile; `None` of nothing.
fn p99(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    values.get((last as f64 * 0.99).round() as usize).copied()
}

fn ages(r: &Record) -> Row {
    let third = r.length_s / 3.0;
    let within = |from: f64, to: f64| {
        p99(r
            .ages_ms
            .iter()
            .filter(move |(t, _)| (from..to).contains(t))
            .map(|(_, age)| *age))
    };
    let (first, last) = (within(0.0, third), within(2.0 * third, f64::INFINITY));
    let (measured, passed) = match (first, last) {
        (Some(a), Some(b)) => (
            format!("{a:.1} -> {b:.1} ms"),
            b <= AGE_GROWTH * a + AGE_SLACK_MS,
        ),
        _ => ("no samples".to_owned(), false),
    };
    Row {
        what: "p99 of the input's age, first -> last third",
        bar: format!("<= {AGE_GROWTH} x + {AGE_SLACK_MS} ms"),
        measured,
        passed,
    }
}

/// The last look of the first third, the first of the last, and the very last one.
fn looks(r: &Record) -> Option<(Sample, Sample, Sample)> {
    let third = r.length_s / 3.0;
    let first = r.samples.iter().rev().find(|s| s.t_s <= third)?;
    let begin = r.samples.iter().find(|s| s.t_s >= 2.0 * third)?;
    Some((*first, *begin, *r.samples.last()?))
}

fn late(r: &Record) -> Row {
    let (measured, passed) = match (looks(r), r.samples.first()) {
        (Some((first, begin, end)), Some(zero)) => {
            let a = first.late.saturating_sub(zero.late) as f64;
            let b = end.late.saturating_sub(begin.late) as f64;
            let starved = end.starved.saturating_sub(begin.starved) as f64;
            (
                format!("{a:.0} -> {b:.0} (machine busy {starved:.0} times)"),
                b <= LATE_GROWTH * a + LATE_SLACK + LATE_PER_STARVED * starved,
            )
        }
        _ => ("no samples".to_owned(), false),
    };
    Row {
        what: "late cycles, first -> last third",
        bar: format!("<= {LATE_GROWTH} x + {LATE_SLACK}, the machine's own apart"),
        measured,
        passed,
    }
}

fn memory(r: &Record) -> Row {
    let (measured, passed) = match looks(r) {
        Some((first, _, end)) => {
            let kib = |bytes: u64| bytes >> 10;
            (
                format!("{} -> {} KiB", kib(first.resident), kib(end.resident)),
                first.resident > 0 && end.resident < first.resident + MEMORY_GROWTH_MAX,
            )
        }
        None => ("no samples".to_owned(), false),
    };
    Row {
        what: "resident memory after the first third",
        bar: format!("grows < {} KiB", MEMORY_GROWTH_MAX >> 10),
        measured,
        passed,
    }
}

fn descriptors(r: &Record) -> Row {
    let (measured, passed) = match looks(r) {
        Some((first, _, end)) => (
            format!("{} -> {}", first.descriptors, end.descriptors),
            first.descriptors > 0 && end.descriptors <= first.descriptors + DESCRIPTORS_SLACK,
        ),
        None => ("no samples".to_owned(), false),
    };
    Row {
        what: "open descriptors after the first third",
        bar: format!("grow by <= {DESCRIPTORS_SLACK}"),
        measured,
        passed,
    }
}

fn datagrams(r: &Record) -> [Row; 2] {
    let d = r.datagrams;
    [
        Row {
            what: "datagrams read = accepted + refused by reason",
            bar: "equal".into(),
            measured: format!("{} = {} + {}", d.read, d.accepted, d.refused),
            passed: d.read == d.accepted + d.refused && d.read > 0,
        },
        Row {
            what: "datagrams sent = read + dropped by the kernel",
            bar: "equal".into(),
            measured: format!("{} = {} + {}", d.sent, d.read, d.kernel_drops),
            passed: d.sent == d.read + d.kernel_drops,
        },
    ]
}

fn frames(r: &Record) -> Row {
    let f = r.frames;
    Row {
        what: "frames sent = on the bus, or lost with the bus",
        bar: format!("{}..={}", f.least, f.most),
        measured: f.said.to_string(),
        passed: (f.least..=f.most).contains(&f.said) && f.said > 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Record {
        let sample = |t_s: f64| Sample {
            t_s,
            resident: 20 << 20,
            descriptors: 30,
            cycles: (t_s * 200.0) as u64,
            late: 0,
            starved: 0,
        };
        Record {
            length_s: 90.0,
            played: [("silence", 10)].into(),
            samples: (0..90).map(|t| sample(f64::from(t))).collect(),
            ages_ms: (0..900)
                .map(|i| (f64::from(i) / 10.0, f64::from(i % 20)))
                .collect(),
            targets: 1000,
            datagrams: super::super::Datagrams {
                sent: 102,
                read: 100,
                accepted: 90,
                refused: 10,
                kernel_drops: 2,
            },
            frames: super::super::Frames {
                said: 500,
                least: 490,
                most: 510,
            },
            heap_operations: Some(0),
            ..Record::default()
        }
    }

    fn failed(r: &Record) -> Vec<&'static str> {
        rows(r)
            .into_iter()
            .filter(|row| !row.passed)
            .map(|row| row.what)
            .collect()
    }

    /// Guards: a good run passes, and each thing that can go wrong over time fails the row that asks for it, and no other.
    #[test]
    fn each_question_can_fail() {
        assert_eq!(failed(&good()), Vec::<&str>::new());
        type Spoil = fn(&mut Record);
        let cases: &[(Spoil, &str)] = &[
            (|r| r.failures.push("x".into()), "mishaps"),
            (|r| r.complaints.0 = 1, "bus:"),
            (|r| r.brake_vetoes = 1, "braking"),
            (
                |r| {
                    r.ages_ms
                        .iter_mut()
                        .for_each(|(t, age)| *age *= 1.0 + *t / 20.0)
                },
                "p99",
            ),
            (
                |r| {
                    for s in &mut r.samples {
                        s.late = if s.t_s > 60.0 {
                            (s.t_s - 60.0) as u64
                        } else {
                            0
                        };
                    }
                },
                "late",
            ),
            (
                |r| {
                    for s in &mut r.samples {
                        s.resident += (s.t_s * 50_000.0) as u64;
                    }
                },
                "resident",
            ),
            (
                |r| {
                    for s in &mut r.samples {
                        s.descriptors += (s.t_s / 15.0) as usize;
                    }
                },
                "open",
            ),
            (|r| r.datagrams.refused += 1, "datagrams read"),
            (|r| r.datagrams.sent += 1, "datagrams sent"),
            (|r| r.frames.said = 511, "frames"),
            (|r| r.heap_operations = Some(1), "heap"),
        ];
        for (spoil, begins) in cases {
            let mut record = good();
            spoil(&mut record);
            let failed = failed(&record);
            assert_eq!(failed.len(), 1, "{begins}: {failed:?}");
            assert!(failed[0].starts_with(begins), "{begins}: {failed:?}");
        }
        // Nothing measured is nothing shown.
        assert!(failed(&Record::default()).len() > 5);
    }
}
