//! `telearm latency`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
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
        let dir = state_dir().join("last-run");
        let text = match self.format {
            Format::Text => fs::read_to_string(dir.join("latency.txt")).ok(),
            Format::Svg => fs::read_to_string(dir.join("latency.svg")).ok(),
            Format::Hdr => percentile_files(&dir),
        };
        text.with_context(|| {
            format!(
                "no telearm is running, and no run has left its histograms in {}",
                dir.display()
            )
        })
    }
}

/// All percentile files of a directory, one after the other with their names.
fn percentile_files(dir: &Path) -> Option<String> {
    let mut files: Vec<_> = fs::read_dir(dir)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "hgrm"))
        .collect();
    files.sort();
    let mut text = String::new();
    for file in &files {
        let name = file.file_stem()?.to_string_lossy();
        text += &format!("# {name}\n{}", fs::read_to_string(file).ok()?);
    }
    (!text.is_empty()).then_some(text)
}
