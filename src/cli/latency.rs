//! `telearm latency`.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};

use super::{Outcome, SocketArgs, say};
use crate::app::socket::{ClientError, LatencyFormat, Reply, Request};
use crate::config::frame::state_dir;

/// Latency histograms of the running daemon, or of the last run.
#[derive(Debug, Args)]
pub(super) struct LatencyArgs {
    /// A table, the percentile file that HdrHistogram plotters read, or a picture
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    socket: SocketArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Hdr,
    Svg,
}

impl Format {
    const fn of_request(self) -> LatencyFormat {
        match self {
            Self::Text => LatencyFormat::Text,
            Self::Hdr => LatencyFormat::Hdr,
            Self::Svg => LatencyFormat::Svg,
        }
    }
}

impl LatencyArgs {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let text = match self.socket.connect() {
            Ok(mut client) => match client.ask(&Request::Latency(self.format.of_request()))? {
                Reply::Ok(text) => text,
                refused @ Reply::Refused(_) => return say(&refused),
            },
            Err(error) => {
                let nobody = matches!(
                    error.downcast_ref::<ClientError>(),
                    Some(ClientError::NotRunning(_) | ClientError::Stale(_))
                );
                if !nobody || self.socket.socket.is_some() {
                    return Err(error);
                }
                self.last_run()?
            }
        };
        match &self.output {
            Some(path) => {
                fs::write(path, text)
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
            None => std::io::stdout().write_all(text.as_bytes())?,
        }
        Ok(Outcome::Good)
    }

    /// What the last run left in the state directory.
    fn last_run(&self) -> anyhow::Result<String> {
        let path = state_dir().join(self.format.of_request().file_name());
        match fs::read_to_string(&path) {
            Ok(text) => Ok(text),
            Err(_) => bail!(
                "no telearm is running, and no run has left its histograms at {}",
                path.display()
            ),
        }
    }
}
