//! A picture of latency by percentile. The horizontal axis is logarithmic in the distance to 100 %, so that the tail, which is what matters, gets
//! most of the room; the vertical axis is logarithmic in microseconds.

use std::fmt::Write as _;

use super::Named;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 540.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 910.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 480.0;
/// Told apart in grey print and by most colour-blind eyes; the dash pattern helps further.
const STROKES: [(&str, &str); 6] = [
    ("#0072b2", "none"),
    ("#d55e00", "8 4"),
    ("#009e73", "2 3"),
    ("#cc79a7", "12 3 3 3"),
    ("#56b4e9", "5 2"),
    ("#444444", "1 4"),
];
/// Steps per decade of the distance to 100 %.
const STEPS_PER_DECADE: u32 = 40;

/// Draws the curves of all histograms that have values. `title` stands on top, as text.
#[must_use]
pub fn svg(title: &str, curves: &[Named<'_>]) -> String {
    let curves: Vec<Named<'_>> = curves
        .iter()
        .filter(|curve| curve.histogram.count() > 0)
        .copied()
        .collect();
    let scale = Scale::of(&curves);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n\
         <text x=\"{LEFT}\" y=\"28\" font-size=\"17\">{}</text>\n",
        escaped(title)
    );
    axes(&mut out, &scale);
    for (curve, (colour, dash)) in curves.iter().zip(STROKES.iter().cycle()) {
        let points: Vec<String> = points_of(curve, &scale)
            .into_iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"/>",
            points.join(" ")
        );
    }
    legend(&mut out, &curves);
    out.push_str("</svg>\n");
    out
}

/// From values to places in the picture.
struct Scale {
    /// The axis goes to 1 - 10^-nines.
    nines: u32,
    /// Powers of ten of a microsecond at the bottom and the top.
    low: i32,
    high: i32,
}

impl Scale {
    fn of(curves: &[Named<'_>]) -> Self {
        let largest = curves
            .iter()
            .map(|curve| curve.histogram.count())
            .max()
            .unwrap_or(1)
            .max(10);
        let bottom = curves
            .iter()
            .map(|curve| curve.histogram.quantile(0.0).as_us())
            .fold(f64::INFINITY, f64::min);
        let top = curves
            .iter()
            .map(|curve| curve.histogram.max().as_us())
            .fold(0.0, f64::max);
        let low = if bottom.is_finite() {
            bottom.max(0.01).log10().floor() as i32
        } else {
            0
        };
        let high = top.max(0.1).log10().ceil() as i32;
        Self {
            nines: largest.ilog10().clamp(2, 9),
            low,
            high: high.max(low + 1),
        }
    }

    fn x(&self, quantile: f64) -> f64 {
        let nines = -(1.0 - quantile)
            .max(0.1_f64.powi(self.nines.cast_signed()))
            .log10();
        LEFT + (RIGHT - LEFT) * nines / f64::from(self.nines)
    }

    fn y(&self, us: f64) -> f64 {
        let share = (us.max(10_f64.powi(self.low)).log10() - f64::from(self.low))
            / f64::from(self.high - self.low);
        BOTTOM - (BOTTOM - TOP) * share.clamp(0.0, 1.0)
    }
}

fn points_of(curve: &Named<'_>, scale: &Scale) -> Vec<(f64, f64)> {
    // Beyond its own number of values a curve has nothing to say.
    let own_nines = (curve.histogram.count() as f64).log10();
    let steps = scale.nines * STEPS_PER_DECADE;
    let mut points: Vec<(f64, f64)> = (0..=steps)
        .map(|step| f64::from(step) / f64::from(STEPS_PER_DECADE))
        .filter(|nines| *nines <= own_nines)
        .map(|nines| 1.0 - 0.1_f64.powf(nines))
        .map(|quantile| {
            (
                scale.x(quantile),
                scale.y(curve.histogram.quantile(quantile).as_us()),
            )
        })
        .collect();
    // The curve ends at the exact maximum.
    points.push((
        scale.x(1.0 - 0.1_f64.powf(own_nines)),
        scale.y(curve.histogram.max().as_us()),
    ));
    points
}

fn axes(out: &mut String, scale: &Scale) {
    for nines in 0..=scale.nines {
        let quantile = 1.0 - 0.1_f64.powi(nines.cast_signed());
        let x = scale.x(quantile);
        let label = match nines {
            0 => "0 %".to_owned(),
            1 => "90 %".to_owned(),
            2 => "99 %".to_owned(),
            _ => format!("99.{} %", "9".repeat(nines as usize - 2)),
        };
        let _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{BOTTOM}\" stroke=\"#dddddd\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
            BOTTOM + 20.0
        );
    }
    let half = scale.x(0.5);
    let _ = writeln!(
        out,
        "<line x1=\"{half:.1}\" y1=\"{TOP}\" x2=\"{half:.1}\" y2=\"{BOTTOM}\" stroke=\"#eeeeee\"/>\
         <text x=\"{half:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#666666\">50 %</text>",
        BOTTOM + 20.0
    );
    for decade in scale.low..=scale.high {
        for step in 1..10 {
            let us = f64::from(step) * 10_f64.powi(decade);
            if step > 1 && decade == scale.high {
                break;
            }
            let (y, colour) = (scale.y(us), if step == 1 { "#bbbbbb" } else { "#eeeeee" });
            let _ = writeln!(
                out,
                "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{RIGHT}\" y2=\"{y:.1}\" stroke=\"{colour}\"/>"
            );
            if step == 1 {
                let _ = writeln!(
                    out,
                    "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                    LEFT - 8.0,
                    y + 4.0,
                    latency_label(decade)
                );
            }
        }
    }
    let _ = writeln!(
        out,
        "<rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#333333\"/>\n\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">share of all values that are not slower</text>\n\
         <text transform=\"translate(20 {:.1}) rotate(-90)\" text-anchor=\"middle\">latency</text>",
        RIGHT - LEFT,
        BOTTOM - TOP,
        (LEFT + RIGHT) / 2.0,
        BOTTOM + 44.0,
        (TOP + BOTTOM) / 2.0
    );
}

/// 10^decade microseconds, with the unit that reads best.
fn latency_label(decade: i32) -> String {
    let (power, unit) = match decade {
        ..0 => (decade + 3, "ns"),
        0..3 => (decade, "\u{b5}s"),
        3..6 => (decade - 3, "ms"),
        _ => (decade - 6, "s"),
    };
    format!("{} {unit}", 10_f64.powi(power))
}

fn legend(out: &mut String, curves: &[Named<'_>]) {
    for (row, (curve, (colour, dash))) in curves.iter().zip(STROKES.iter().cycle()).enumerate() {
        let y = TOP + 22.0 + 20.0 * row as f64;
        let _ = writeln!(
            out,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"/>\
             <text x=\"{:.1}\" y=\"{y:.1}\" paint-order=\"stroke\" stroke=\"#ffffff\" stroke-width=\"4\">{}, max {:.0} \u{b5}s</text>",
            LEFT + 12.0,
            y - 4.0,
            LEFT + 48.0,
            y - 4.0,
            LEFT + 56.0,
            escaped(curve.name),
            curve.histogram.max().as_us()
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::histogram::LatencyHistogram;
    use crate::time::Span;

    fn ramp(n: i64) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::new();
        (1..=n).for_each(|us| histogram.record(Span::from_us(us)));
        histogram
    }

    fn points(text: &str) -> Vec<Vec<(f64, f64)>> {
        text.split("points=\"")
            .skip(1)
            .map(|rest| {
                let list = &rest[..rest.find('"').unwrap()];
                list.split(' ')
                    .map(|point| point.split_once(',').unwrap())
                    .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
                    .collect()
            })
            .collect()
    }

    /// Every curve stays inside its frame, goes right and never down, and ends at its maximum; texts are escaped.
    #[test]
    fn curves_stay_in_the_frame() {
        let (a, b, none) = (ramp(20_000), ramp(50), LatencyHistogram::new());
        let text = svg(
            "a < b & c",
            &[
                Named {
                    name: "a",
                    histogram: &a,
                },
                Named {
                    name: "b<",
                    histogram: &b,
                },
                Named {
                    name: "empty",
                    histogram: &none,
                },
            ],
        );
        assert!(
            text.contains("a &lt; b &amp; c")
                && text.contains("b&lt;, max 50")
                && !text.contains("empty")
        );
        let curves = points(&text);
        assert_eq!(curves.len(), 2);
        for curve in &curves {
            assert!(
                curve
                    .iter()
                    .all(|(x, y)| (LEFT..=RIGHT).contains(x) && (TOP..=BOTTOM).contains(y)),
                "{curve:?}"
            );
            assert!(
                curve
                    .windows(2)
                    .all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 >= pair[1].1),
                "{curve:?}"
            );
        }
        assert!(
            curves[0].last().unwrap().0 > curves[1].last().unwrap().0,
            "fewer values, shorter curve"
        );
        for label in [
            "90 %",
            "99 %",
            "99.9 %",
            "99.99 %",
            "1 \u{b5}s",
            "10 ms",
            "100 ms",
        ] {
            assert!(text.contains(&format!(">{label}<")), "{label}");
        }
    }

    /// Nothing to draw is an empty picture, not a panic.
    #[test]
    fn an_empty_picture() {
        let text = svg("", &[]);
        assert!(text.starts_with("<svg") && text.ends_with("</svg>\n"));
    }
}
