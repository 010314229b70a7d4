//! Commands that are one request to the daemon.

use anyhow::bail;
use clap::Args;

use super::{Outcome, SocketArgs};
use crate::app::socket::Request;

/// Follow the operator, with a fresh anchor: nothing jumps.
#[derive(Debug, Args)]
pub(super) struct EngageArgs {
    /// Lane of the plan [default: all]
    lane: Option<String>,
    #[command(flatten)]
    socket: SocketArgs,
}

/// Stop following; the arm brakes and stays where it is.
#[derive(Debug, Args)]
pub(super) struct DisengageArgs {
    /// Lane of the plan [default: all]
    lane: Option<String>,
    #[command(flatten)]
    socket: SocketArgs,
}

/// Software stop of all lanes. Latched; not an emergency stop, which is hard-wired.
#[derive(Debug, Args)]
pub(super) struct StopArgs {
    #[command(flatten)]
    socket: SocketArgs,
}

/// Clear the software stop. Never moves an arm and never engages.
#[derive(Debug, Args)]
pub(super) struct ResetArgs {
    #[command(flatten)]
    socket: SocketArgs,
}

/// Bring an arm out of its own stop or fault. THIS MAY DROP THE ARM: a Piper cuts its power first.
#[derive(Debug, Args)]
pub(super) struct RecoverArgs {
    /// Lane of the plan
    lane: String,
    /// You hold or support the arm, and know that it will fall
    #[arg(long)]
    arm_will_drop: bool,
    #[command(flatten)]
    socket: SocketArgs,
}

/// End the daemon as a signal would: the arms brake and stay.
#[derive(Debug, Args)]
pub(super) struct QuitArgs {
    #[command(flatten)]
    socket: SocketArgs,
}

impl EngageArgs {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        self.socket.ask(&Request::Engage(self.lane))
    }
}

impl DisengageArgs {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        self.socket.ask(&Request::Disengage(self.lane))
    }
}

impl StopArgs {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        self.socket.ask(&Request::Stop)
    }
}

impl ResetArgs {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        self.socket.ask(&Request::Reset)
    }
}

impl RecoverArgs {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        if !self.arm_will_drop {
            bail!(
                "recovery may cut the arm's power, and the arm falls: support it, then say so with --arm-will-drop"
            );
        }
        self.socket.ask(&Request::Recover {
            lane: self.lane,
            arm_will_drop: true,
        })
    }
}

impl QuitArgs {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        self.socket.ask(&Request::Quit)
    }
}
