//! `telearm status` and `telearm watch`.

use std::io::{self, IsTerminal};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use super::{Outcome, SocketArgs, say};
use crate::app::socket::{Reply, Request, StatusFormat};
use crate::app::status::Live;

/// How often the live view asks.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// One line about the running daemon: mode, why not moving, ages, rate, real time.
#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// Everything, as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    socket: SocketArgs,
}

/// Live view of the running daemon; one line a second without a terminal.
#[derive(Debug, Args)]
pub(super) struct WatchArgs {
    /// End after this many seconds
    #[arg(long, value_name = "S")]
    seconds: Option<u32>,
    #[command(flatten)]
    socket: SocketArgs,
}

impl StatusArgs {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let format = if self.json {
            StatusFormat::Json
        } else {
            StatusFormat::Line
        };
        self.socket.ask(&Request::Status(format))
    }
}

impl WatchArgs {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let mut client = self.socket.connect()?;
        let mut out = io::stdout();
        let mut live = Live::new(out.is_terminal());
        let end = self
            .seconds
            .map(|s| Instant::now() + Duration::from_secs(s.into()));
        let format = if live.repaints() {
            StatusFormat::View
        } else {
            StatusFormat::Line
        };
        while end.is_none_or(|end| Instant::now() < end) {
            match client.ask(&Request::Status(format))? {
                Reply::Ok(text) => live.paint(&mut out, &text, text.trim_end(), Instant::now())?,
                refused => return say(&refused),
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(Outcome::Good)
    }
}
