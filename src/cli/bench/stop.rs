//! `telearm bench stop`.

use std::fmt::Write as _;

use clap::Args;
use serde_json::json;

use super::Common;
use super::runs::{Runs, print};
use crate::app::bench::{StopSetup, stop};
use crate::cli::Outcome;
use crate::rt::measure::STOP_BAR;

/// The slowest rate and the fastest: a stop must not depend on it.
const RATES: [u32; 2] = [30, 1000];
/// By so much the median at one rate, over its baseline, may differ from that at the other.
const INDEPENDENCE: f64 = 0.2;

/// Packet with a stop bit in, first stop frame out, beside a bare receive and write.
#[derive(Debug, Args)]
pub(in crate::cli) struct StopArgs {
    /// Cycles per second [default: 30 and 1000 in turn]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(30..=1000))]
    rate: Option<u32>,
    #[command(flatten)]
    common: Common,
}

impl StopArgs {
    pub(super) fn run(&self) -> anyhow::Result<Outcome> {
        let rates = self.rate.map_or_else(|| RATES.to_vec(), |rate| vec![rate]);
        let mut cases: Vec<(u32, Runs, u64)> = rates
            .into_iter()
            .map(|rate| {
                (
                    rate,
                    Runs::new(format!("stop at {rate} Hz"), Some(STOP_BAR)),
                    0,
                )
            })
            .collect();
        for _ in 0..self.common.runs {
            for (rate_hz, runs, unserved) in &mut cases {
                let run = stop(&StopSetup {
                    rate_hz: *rate_hz,
                    seconds: self.common.seconds,
                })?;
                runs.add(&run.ours, "bare loop", &run.bare);
                runs.refusals(&run.refusals);
                for report in run.threads.iter().filter(|r| !r.is_granted()) {
                    runs.note(report.to_string());
                }
                *unserved += run.unserved;
            }
        }
        let (mut text, mut good) = (String::new(), true);
        for (_, runs, unserved) in &cases {
            let _ = writeln!(
                text,
                "{}stops without a frame at once: {unserved}\n",
                runs.text()
            );
            good &= runs.is_good() && *unserved == 0;
        }
        let independence = match cases.as_slice() {
            [(_, slow, _), (_, fast, _)] => {
                slow.median().zip(fast.median()).map(|(s, f)| s.p50 / f.p50)
            }
            _ => None,
        };
        if let Some(ratio) = independence {
            let within = (ratio - 1.0).abs() <= INDEPENDENCE;
            good &= within;
            let verdict = if within { "within" } else { "MISSED" };
            let _ = writeln!(
                text,
                "p50 at {} Hz over {} Hz, each over its baseline: {ratio:.2}; bar: 1 +- {INDEPENDENCE}: {verdict}",
                RATES[0], RATES[1]
            );
        }
        let value = json!({
            "bench": "stop",
            "rates": cases.iter().map(|(rate, runs, unserved)| {
                json!({ "rate_hz": rate, "comparison": runs.value(), "unserved": unserved })
            }).collect::<Vec<_>>(),
            "independence_p50": independence,
            "within_bar": good,
        });
        print(&text, &value, self.common.json)?;
        Ok(Outcome::of(good))
    }
}
