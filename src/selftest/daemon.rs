//! The program under test: a process of its own, so that it can be paused, killed, and started twice, and so that what one fault
//! leaves behind cannot help the next.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Ending takes braking and a few cycles; more is a hang.
const END_WITHIN: Duration = Duration::from_secs(10);
/// Lines of its log that go into a message.
const LINES_SHOWN: usize = 12;

/// A running `telearm run`.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    log: PathBuf,
}

/// The program with its state in `dir`.
#[must_use]
pub fn program(exe: &Path, dir: &Path) -> Command {
    let mut command = Command::new(exe);
    command
        .env("STATE_DIRECTORY", dir)
        .env("XDG_RUNTIME_DIR", dir)
        .env("RUST_LOG", "info");
    command
}

impl Daemon {
    /// Starts `command`; what it prints goes to a file in `dir`.
    ///
    /// # Errors
    /// When the program or the file cannot be opened.
    pub fn start(mut command: Command, dir: &Path) -> io::Result<Self> {
        let log = dir.join("telearm.log");
        let file = File::options().create(true).append(true).open(&log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()?;
        Ok(Self { child, log })
    }

    /// Process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name, like `TERM`. Through the shell: its `kill` is built in, and this needs no unsafe code.
    ///
    /// # Errors
    /// When there is no such process, or no shell.
    pub fn signal(&self, name: &str) -> io::Result<()> {
        let status = Command::new("sh")
            .args(["-c", &format!("kill -{name} {}", self.pid())])
            .stderr(Stdio::null())
            .status()?;
        if status.success() {
            Ok(())
        } else {
            Err(io::Error::other(format!("SIG{name} was not delivered")))
        }
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it does not end in time.
    pub fn wait_end(&mut self) -> io::Result<ExitStatus> {
        let since = Instant::now();
        while since.elapsed() < END_WITHIN {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(Duration::from_millis(10));
        }
        Err(io::Error::other(format!(
            "it did not end within {END_WITHIN:?}"
        )))
    }

    /// The last lines that it printed.
    #[must_use]
    pub fn said(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n")
    }

    /// Resident memory in bytes; `None` once it has ended.
    #[must_use]
    pub fn resident_bytes(&self) -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.pid())).ok()?;
        let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
        let kb: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kb * 1024)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It has ended already, or nothing else ends it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
