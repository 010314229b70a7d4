//! Latency histograms for people: a table, the percentile file that the HdrHistogram plotter reads, and a picture.

mod svg;

use std::fmt::Write as _;

use super::histogram::{LatencyHistogram, LatencySet};
use crate::rt::histogram::Latency;

pub use svg::svg;

/// The quantiles of the table, with their headings.
pub const QUANTILES: [(&str, f64); 4] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
/// Lines per halving of the distance to 100 % in a percentile file; what HdrHistogram itself writes by default.
const TICKS_PER_HALF_DISTANCE: u32 = 5;
const NS_PER_US: f64 = 1000.0;

/// A histogram with its heading.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// The heading.
    pub name: &'a str,
    /// The values.
    pub histogram: &'a LatencyHistogram,
}

/// The histograms of a set that have values, in their usual order.
#[must_use]
pub fn filled(set: &LatencySet) -> Vec<Named<'_>> {
    Latency::ALL
        .into_iter()
        .map(|what| Named {
            name: what.name(),
            histogram: set.get(what),
        })
        .filter(|named| named.histogram.count() > 0)
        .collect()
}

/// A table, one line per histogram: count, quantiles and the exact maximum in microseconds. A quantile with fewer than ten values beyond it is
/// marked with `~`: it is little more than the maximum.
#[must_use]
pub fn table(rows: &[Named<'_>]) -> String {
    let width = rows
        .iter()
        .map(|row| row.name.chars().count())
        .max()
        .unwrap_or(0)
        .max("latency, us".len());
    let mut out = format!("{:<width$} {:>9}", "latency, us", "count");
    for (heading, _) in QUANTILES {
        let _ = write!(out, " {heading:>10}");
    }
    let _ = writeln!(out, " {:>10}", "max");
    for row in rows {
        let _ = write!(out, "{:<width$} {:>9}", row.name, row.histogram.count());
        for (_, quantile) in QUANTILES {
            let beyond = row.histogram.count() as f64 * (1.0 - quantile);
            let value = row.histogram.quantile(quantile).as_us();
            let cell = match row.histogram.count() {
                0 => "-".to_owned(),
                _ if beyond < 10.0 => format!("~{value:.1}"),
                _ => format!("{value:.1}"),
            };
            let _ = write!(out, " {cell:>10}");
        }
        let max = if row.histogram.count() == 0 {
            "-".to_owned()
        } else {
            format!("{:.1}", row.histogram.max().as_us())
        };
        let _ = writeln!(out, " {max:>10}");
    }
    out
}

/// The percentile distribution in microseconds, in the text form of the HdrHistogram libraries (`.hgrm`).
#[must_use]
pub fn hgrm(histogram: &LatencyHistogram) -> String {
    let counts = histogram.counts();
    let max_us = histogram.max().as_us();
    let mut out = format!(
        "{:>12} {:>14} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let mut total = 0_u64;
    for step in counts.iter_quantiles(TICKS_PER_HALF_DISTANCE) {
        total += step.count_since_last_iteration();
        let quantile = step.quantile_iterated_to();
        let value_us = (step.value_iterated_to() as f64 / NS_PER_US).min(max_us);
        let _ = write!(out, "{value_us:>12.3} {quantile:>2.12} {total:>10}");
        if quantile < 1.0 {
            let _ = write!(out, " {:>14.2}", 1.0 / (1.0 - quantile));
        }
        out.push('\n');
    }
    let _ = writeln!(
        out,
        "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]",
        counts.mean() / NS_PER_US,
        counts.stdev() / NS_PER_US
    );
    let _ = writeln!(
        out,
        "#[Max     = {max_us:>12.3}, Total count    = {:>12}]",
        counts.len()
    );
    let sub_buckets = 2_u32.pow(11); // the power of two that holds three digits
    let _ = writeln!(
        out,
        "#[Buckets = {:>12}, SubBuckets     = {sub_buckets:>12}]",
        counts.buckets()
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    fn ramp(n: i64) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::new();
        (1..=n).for_each(|us| histogram.record(Span::from_us(us)));
        histogram
    }

    /// The table has the numbers, marks quantiles that rest on too few values, and shows an empty histogram as such.
    #[test]
    fn the_table_reads_as_meant() {
        let (many, few, none) = (ramp(100_000), ramp(200), LatencyHistogram::new());
        let text = table(&[
            Named {
                name: "many",
                histogram: &many,
            },
            Named {
                name: "few",
                histogram: &few,
            },
            Named {
                name: "none",
                histogram: &none,
            },
        ]);
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(
            lines[0],
            [
                "latency,", "us", "count", "p50", "p90", "p99", "p99.9", "max"
            ]
        );
        assert_eq!(lines[1][..2], ["many", "100000"]);
        assert_eq!(lines[1][6], "100000.0", "the maximum is exact");
        assert!(lines[1][2..].iter().all(|cell| !cell.contains('~')));
        assert_eq!(
            lines[2][2..],
            ["100.0", "180.1", "~198.0", "~200.0", "200.0"],
            "within 0.1 %:\n{text}"
        );
        assert_eq!(lines[3], ["none", "0", "-", "-", "-", "-", "-"]);
        assert!(
            text.lines()
                .all(|line| line.len() == text.lines().next().unwrap().len()),
            "columns line up"
        );
    }

    /// The percentile file parses as the plotter parses it (four numbers a line, the last line three), grows in every column, and ends with all
    /// values at 100 % and the exact maximum.
    #[test]
    fn the_percentile_file_is_well_formed() {
        let text = hgrm(&ramp(5_000));
        assert!(text.starts_with("       Value     Percentile TotalCount 1/(1-Percentile)\n\n"));
        let rows: Vec<Vec<f64>> = text
            .lines()
            .skip(2)
            .filter(|line| !line.starts_with('#'))
            .map(|line| {
                line.split_whitespace()
                    .map(|number| number.parse().unwrap())
                    .collect()
            })
            .collect();
        assert!(rows.len() > 20);
        for pair in rows.windows(2) {
            assert!(
                pair[0][0] <= pair[1][0] && pair[0][1] <= pair[1][1] && pair[0][2] <= pair[1][2],
                "{pair:?}"
            );
            assert_eq!(pair[0].len(), 4);
        }
        assert_eq!(rows.last().unwrap(), &[5_000.0, 1.0, 5_000.0]);
        let footer: Vec<&str> = text.lines().filter(|line| line.starts_with("#[")).collect();
        assert_eq!(footer.len(), 3);
        assert!(footer[1].contains("5000.000") && footer[1].contains("5000]"));
    }

    /// An empty histogram gives a file, not a panic.
    #[test]
    fn an_empty_percentile_file() {
        assert!(
            hgrm(&LatencyHistogram::new())
                .contains("#[Max     =        0.000, Total count    =            0]")
        );
    }
}
