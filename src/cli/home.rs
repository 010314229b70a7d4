//! `telearm home`: hold-to-run, or confirmed once with `--yes`.

use std::io::{self, IsTerminal, Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;

use super::{Outcome, SocketArgs, say};
use crate::app::socket::{HomeRun, Reply, Request};

/// A held key repeats; the first repeat can take this long.
const FIRST_REPEAT: Duration = Duration::from_millis(800);
/// Later repeats come this often at the slowest.
const NEXT_REPEAT: Duration = Duration::from_millis(250);

/// Move the arm to its home joints, slowly, while a key is held.
#[derive(Debug, Args)]
pub(super) struct HomeArgs {
    /// Lane of the plan
    lane: String,
    /// Go all the way without holding a key; end it with `telearm disengage` or `telearm stop`
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    socket: SocketArgs,
}

impl HomeArgs {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        if self.yes {
            return self.socket.ask(&self.request(HomeRun::Confirmed));
        }
        if !io::stdin().is_terminal() {
            bail!("there is no key to hold without a terminal; --yes goes all the way");
        }
        self.hold_to_run()
    }

    fn request(&self, run: HomeRun) -> Request {
        Request::Home {
            lane: self.lane.clone(),
            run,
        }
    }

    /// Sends `held` while the space bar repeats, and `released` when it does not any more.
    fn hold_to_run(&self) -> anyhow::Result<Outcome> {
        let mut client = self.socket.connect()?;
        let raw = RawKeys::new()?;
        let mut out = io::stdout();
        writeln!(
            out,
            "Hold SPACE to move {} home; release to stop; q to leave.",
            self.lane
        )?;
        let mut held = Held::default();
        loop {
            let now = Instant::now();
            match raw.key()? {
                Some(b'q' | 3 | 4 | 27) => {
                    client.ask(&self.request(HomeRun::Released))?;
                    return Ok(Outcome::Good);
                }
                Some(b' ') => {
                    held.press(now);
                    if let refused @ Reply::Refused(_) = client.ask(&self.request(HomeRun::Held))? {
                        return say(&refused);
                    }
                }
                _ if held.is_over(now) => {
                    client.ask(&self.request(HomeRun::Released))?;
                }
                _ => {}
            }
        }
    }
}

/// Tells a held key from a released one by its repeats: a terminal never reports the release.
#[derive(Debug, Default)]
struct Held {
    last: Option<Instant>,
    repeats: bool,
}

impl Held {
    fn press(&mut self, now: Instant) {
        self.repeats = self.last.is_some();
        self.last = Some(now);
    }

    /// The key has been released; true once.
    fn is_over(&mut self, now: Instant) -> bool {
        let patience = if self.repeats {
            NEXT_REPEAT
        } else {
            FIRST_REPEAT
        };
        let over = self.last.is_some_and(|last| now - last > patience);
        if over {
            *self = Self::default();
        }
        over
    }
}

/// The terminal without line buffering and echo, put back on drop. `stty` does it, so that no terminal code is needed here.
struct RawKeys {
    before: String,
}

impl RawKeys {
    fn new() -> anyhow::Result<Self> {
        let before = stty(&["-g"])?;
        // Reads return after at most 0.1 s.
        stty(&["-icanon", "-echo", "-isig", "min", "0", "time", "1"])?;
        Ok(Self {
            before: before.trim().to_owned(),
        })
    }

    fn key(&self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        // One byte at a time, past the buffer of `Stdin`.
        let n = io::stdin().lock().read(&mut byte)?;
        Ok((n > 0).then_some(byte[0]))
    }
}

impl Drop for RawKeys {
    fn drop(&mut self) {
        let _ = stty(&[&self.before]);
    }
}

fn stty(args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("stty")
        .args(args)
        .stdin(Stdio::inherit())
        .output()
        .context("cannot run stty; --yes goes all the way without holding a key")?;
    if !output.status.success() {
        bail!("stty refused this terminal; --yes goes all the way without holding a key");
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards: one press alone runs for less than a second, a held key runs on, and its release ends the motion within a quarter second.
    #[test]
    fn release_is_noticed() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut held = Held::default();
        assert!(!held.is_over(at(0)));
        held.press(at(0));
        assert!(!held.is_over(at(700)));
        assert!(held.is_over(at(801)));
        assert!(!held.is_over(at(5000)), "once");

        held.press(at(6000));
        for ms in (6500..8000).step_by(33) {
            held.press(at(ms));
            assert!(!held.is_over(at(ms + 30)));
        }
        assert!(held.is_over(at(8300)));
    }
}
