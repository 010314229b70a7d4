//! `telearm bench`: each loop beside a bare one in the same milliseconds; what is judged is the ratio.

mod cycle;
mod instructions;
mod packet;
mod runs;
mod stop;
mod wake;

use clap::{Args, Subcommand};

use super::Outcome;
use super::track::TrackArgs;

/// Measure this machine and this program, each figure beside a baseline of the same run. Exit status 1 on a missed bar.
#[derive(Debug, Subcommand)]
pub(super) enum BenchCommand {
    Wake(wake::WakeArgs),
    Cycle(cycle::CycleArgs),
    Stop(stop::StopArgs),
    Packet(packet::PacketArgs),
    Track(TrackArgs),
    #[command(hide = true)]
    Instructions(instructions::InstructionsArgs),
}

/// How long, how often, and how it is told.
#[derive(Debug, Args)]
struct Common {
    /// Length of each run, seconds
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Runs; the median of their ratios is judged
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    runs: u32,
    /// As JSON
    #[arg(long)]
    json: bool,
}

impl BenchCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        match self {
            Self::Wake(args) => args.run(),
            Self::Cycle(args) => args.run(),
            Self::Stop(args) => args.run(),
            Self::Packet(args) => args.run(),
            Self::Track(args) => args.run(),
            Self::Instructions(args) => args.run(),
        }
    }
}
