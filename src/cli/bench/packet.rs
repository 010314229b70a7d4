//! `telearm bench packet`.

use std::fmt::Write as _;

use clap::Args;
use serde_json::json;

use super::Common;
use super::runs::{print, quantiles};
use crate::app::bench::{LiveSetup, live, packet};
use crate::cli::Outcome;
use crate::rt::histogram::LatencyHistogram;

/// What a packet costs in CPU time, and how long it takes to become frames.
///
/// Judges nothing by itself: `scripts/bench_python` sets both figures beside those of a Python stack.
#[derive(Debug, Args)]
pub(in crate::cli) struct PacketArgs {
    /// Cycles per second of the live part
    #[arg(long, value_name = "HZ", default_value_t = 200, value_parser = clap::value_parser!(u32).range(30..=1000))]
    rate: u32,
    /// Packets of the CPU part, per run
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(10..=10_000_000))]
    packets: u32,
    /// Only the CPU part
    #[arg(long)]
    no_live: bool,
    #[command(flatten)]
    common: Common,
}

impl PacketArgs {
    pub(super) fn run(&self) -> anyhow::Result<Outcome> {
        let mut cpu: [LatencyHistogram; 5] = Default::default();
        let (mut beyond, mut whole) = (LatencyHistogram::new(), LatencyHistogram::new());
        let (mut clock_ns, mut cycles, mut sent) = (0, 0, 0);
        for _ in 0..self.common.runs {
            let run = packet(self.packets)?;
            let parts = [
                &run.take,
                &run.think,
                &run.encode,
                &run.whole,
                &run.whole_with_sockets,
            ];
            cpu.iter_mut()
                .zip(parts)
                .for_each(|(sum, part)| sum.add(part));
            (clock_ns, cycles) = (run.clock_reading.as_ns(), run.cycles_per_packet);
            if !self.no_live {
                let run = live(&LiveSetup {
                    rate_hz: self.rate,
                    seconds: self.common.seconds,
                })?;
                beyond.add(&run.beyond);
                whole.add(&run.whole);
                sent += run.sent;
            }
        }
        let [take, think, encode, one, with_sockets] = &cpu;
        let p50 = |h: &LatencyHistogram| h.quantile(0.5).as_us();
        let per_packet = p50(take) + f64::from(cycles) * (p50(think) + p50(encode));
        let mut text = String::from("CPU time, us (p50 / p99)\n");
        for (name, histogram) in [
            ("packet parsed, judged in its stream", take),
            ("cycle: mapped, tracked, shaped, vetted", think),
            ("command encoded", encode),
            ("one packet all the way, one command", one),
            ("the same with recvmsg and sendmmsg", with_sockets),
        ] {
            let p99 = histogram.quantile(0.99).as_us();
            let _ = writeln!(text, "  {name:42} {:7.3} / {p99:7.3}", p50(histogram));
        }
        let _ = writeln!(
            text,
            "  each contains one clock reading of {clock_ns} ns\n\
             at 200 cycles and 50 packets a second a packet costs one parsing and {cycles} cycles: {per_packet:.2} us"
        );
        if !self.no_live {
            let _ = writeln!(
                text,
                "live at {} Hz, {} of {sent} packets: sent to frame {:.0} us p50, {:.0} us p99; beyond the wait for the deadline {:.1} us p50, {:.1} us p99",
                self.rate,
                whole.count(),
                p50(&whole),
                whole.quantile(0.99).as_us(),
                p50(&beyond),
                beyond.quantile(0.99).as_us(),
            );
        }
        let value = json!({
            "bench": "packet",
            "clock_reading_ns": clock_ns,
            "cycles_per_packet": cycles,
            "take_us": quantiles(take),
            "think_us": quantiles(think),
            "encode_us": quantiles(encode),
            "one_command_us": quantiles(one),
            "one_command_with_sockets_us": quantiles(with_sockets),
            "packet_with_all_its_cycles_us": per_packet,
            "live": (!self.no_live).then(|| json!({
                "rate_hz": self.rate,
                "sent": sent,
                "sent_to_frame_us": quantiles(&whole),
                "beyond_deadline_us": quantiles(&beyond),
            })),
        });
        print(&text, &value, self.common.json)?;
        Ok(Outcome::Good)
    }
}
