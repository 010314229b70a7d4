//! The daemon as a child process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A running daemon; killed when dropped.
pub struct Daemon {
    child: Child,
    said: Arc<Mutex<String>>,
    collector: Option<JoinHandle<()>>,
}

impl Daemon {
    /// Starts it with standard error collected and standard output thrown away.
    pub fn start(mut command: Command) -> Self {
        Self::watch(
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap(),
        )
    }

    /// Takes a child; its standard error is collected if it is a pipe.
    pub fn watch(mut child: Child) -> Self {
        let said = Arc::new(Mutex::new(String::new()));
        let collector = child.stderr.take().map(|stderr| {
            let said = Arc::clone(&said);
            thread::spawn(move || {
                for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                    let mut said = said.lock().unwrap();
                    said.push_str(&line);
                    said.push('\n');
                }
            })
        });
        Self {
            child,
            said,
            collector,
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Standard error so far.
    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    pub fn signal(&self, signal: i32) {
        let pid = i32::try_from(self.pid()).unwrap();
        #[expect(unsafe_code, reason = "the standard library can only kill")]
        // SAFETY: touches no memory; the child has not been waited for, so the number is still its own.
        let sent = unsafe { libc::kill(pid, signal) };
        assert_eq!(sent, 0);
    }

    /// Whether it has ended, and how.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits for the end.
    pub fn end(mut self) -> (ExitStatus, String) {
        let began = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                // The pipe ends with the process.
                let _ = self.collector.take().map(JoinHandle::join);
                return (status, self.said());
            }
            assert!(
                began.elapsed() < super::PATIENCE,
                "the daemon does not end; it said\n{}",
                self.said()
            );
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
