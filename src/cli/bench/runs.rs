//! Repeated runs of one comparison, told as text or JSON, their median judged.

use std::fmt::Write as _;
use std::io::Write;

use serde_json::{Value, json};

use crate::cli::Outcome;
use crate::rt::histogram::LatencyHistogram;
use crate::rt::measure::{Bar, Ratios};
use crate::rt::report::{Named, table};

/// Collects runs, judges their median.
pub(super) struct Runs {
    title: String,
    /// `None`: shown, not judged.
    bar: Option<Bar>,
    ratios: Vec<Ratios>,
    text: String,
    notes: Vec<String>,
    json: Vec<Value>,
}

impl Runs {
    pub(super) fn new(title: impl Into<String>, bar: Option<Bar>) -> Self {
        Self {
            title: title.into(),
            bar,
            ratios: Vec::new(),
            text: String::new(),
            notes: Vec::new(),
            json: Vec::new(),
        }
    }

    pub(super) fn add(
        &mut self,
        ours: &LatencyHistogram,
        baseline_name: &str,
        baseline: &LatencyHistogram,
    ) {
        let ratios = Ratios::of(ours, baseline);
        let rows = [
            Named {
                name: &self.title,
                histogram: ours,
            },
            Named {
                name: baseline_name,
                histogram: baseline,
            },
        ];
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{}ratio: {ratios}\n", table(&rows));
        self.json.push(json!({
            "baseline": baseline_name,
            "ours_us": quantiles(ours),
            "baseline_us": quantiles(baseline),
            "ratio": numbers(&ratios),
        }));
        self.ratios.push(ratios);
    }

    pub(super) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    pub(super) fn refusals(&mut self, refusals: &[crate::rt::Refusal]) {
        for refusal in refusals {
            self.note(refusal.to_string());
        }
    }

    /// The median of the ratios so far.
    pub(super) fn median(&self) -> Option<Ratios> {
        Ratios::median(&self.ratios)
    }

    /// Within its bar, if it has one.
    pub(super) fn is_good(&self) -> bool {
        match (&self.bar, self.median()) {
            (Some(bar), Some(median)) => median.within(bar),
            (Some(_), None) => false,
            (None, _) => true,
        }
    }

    /// Everything as JSON.
    pub(super) fn value(&self) -> Value {
        json!({
            "title": self.title,
            "runs": self.json,
            "median_ratio": self.median().as_ref().map(numbers),
            "bar": self.bar.as_ref().map(bar_numbers),
            "within_bar": self.bar.as_ref().map(|_| self.is_good()),
            "notes": self.notes,
        })
    }

    /// Everything for people.
    pub(super) fn text(&self) -> String {
        let mut text = self.text.clone();
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        let Some(median) = self.median() else {
            return text;
        };
        let _ = write!(
            text,
            "{}: median of {} runs: {median}",
            self.title,
            self.ratios.len()
        );
        if let Some(bar) = &self.bar {
            let _ = write!(text, "; bar: p50 {}, p99 {}", bar.p50, bar.p99);
            if bar.p999.is_finite() {
                let _ = write!(text, ", p99.9 {}", bar.p999);
            }
            let verdict = if self.is_good() { "within" } else { "MISSED" };
            let _ = write!(text, ": {verdict}");
        }
        text.push('\n');
        text
    }

    /// Prints a benchmark that consists of this comparison alone.
    pub(super) fn finish(self, id: &str, as_json: bool) -> anyhow::Result<Outcome> {
        let mut value = self.value();
        if let Some(fields) = value.as_object_mut() {
            fields.insert("bench".to_owned(), id.into());
        }
        print(&self.text(), &value, as_json)?;
        Ok(Outcome::of(self.is_good()))
    }
}

/// Prints one or the other.
pub(super) fn print(text: &str, value: &Value, as_json: bool) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if as_json {
        writeln!(out, "{}", serde_json::to_string_pretty(value)?)?;
    } else {
        write!(out, "{text}")?;
    }
    Ok(())
}

/// Quantiles in microseconds.
pub(super) fn quantiles(histogram: &LatencyHistogram) -> Value {
    json!({
        "count": histogram.count(),
        "p50": histogram.quantile(0.5).as_us(),
        "p99": histogram.quantile(0.99).as_us(),
        "p999": histogram.quantile(0.999).as_us(),
        "max": histogram.max().as_us(),
    })
}

fn numbers(ratios: &Ratios) -> Value {
    json!({ "p50": ratios.p50, "p99": ratios.p99, "p999": ratios.p999, "max": ratios.max })
}

/// A figure that is not judged is null.
fn bar_numbers(bar: &Bar) -> Value {
    json!({ "p50": bar.p50, "p99": bar.p99, "p999": bar.p999 })
}
