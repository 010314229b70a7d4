//! `telearm demo`.

use std::time::Duration;

use clap::Args;

use super::Outcome;
use super::run::finish;
use crate::app::RunOptions;
use crate::config::{self, Strictness};

/// The plan of the demo; also shipped as rt-config/demo.toml.
const PLAN: &str = include_str!("../../rt-config/demo.toml");

/// See it work: an emulated Quest hand over real UDP drives an emulated Piper. No hardware, no root.
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// How long, seconds
    #[arg(long, value_name = "S", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// No live view, only the report at the end
    #[arg(long)]
    quiet: bool,
}

impl DemoArgs {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let plan = config::parse("rt-config/demo.toml", PLAN, Strictness::Strict)?.plan;
        let options = RunOptions {
            time_limit: Some(Duration::from_secs(self.seconds.into())),
            live_view: !self.quiet,
            socket_optional: true,
            emulate: true,
            ..RunOptions::default()
        };
        finish(plan, options)
    }
}
