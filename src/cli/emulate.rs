//! `telearm emulate`: devices and arms made of software.

use std::io::Write;
use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use clap::Subcommand;

use super::Outcome;
use crate::operator::rctp::emulate::{self, EmulateArgs, Sent};

/// Emulate an operator device or an arm, with faults.
#[derive(Debug, Subcommand)]
pub(super) enum EmulateCommand {
    /// A Quest hand: RCTP packets over UDP, 50 a second
    Rctp(EmulateArgs),
}

impl EmulateCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let Self::Rctp(args) = self;
        rctp(&args)
    }
}

fn rctp(args: &EmulateArgs) -> anyhow::Result<Outcome> {
    let to = args
        .to
        .to_socket_addrs()
        .ok()
        .and_then(|mut addresses| addresses.next())
        .with_context(|| format!("{:?} is not an address like 192.168.1.5:8888", args.to))?;
    let quit = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&quit))?;
    }
    let length = args
        .seconds
        .map(Duration::try_from_secs_f64)
        .transpose()
        .context("--seconds")?;
    let sent = Sent::default();
    writeln!(
        std::io::stderr(),
        "Sending a {:?} hand to UDP {to}, 50 packets a second. Ctrl-C ends it.",
        args.script
    )?;
    emulate::run(to, args.config(), length, &quit, &sent)?;
    writeln!(
        std::io::stderr(),
        "{} datagrams sent, {} refused by the network.",
        sent.datagrams.load(Ordering::Relaxed),
        sent.refused.load(Ordering::Relaxed)
    )?;
    Ok(Outcome::Good)
}
