//! The live view: repaints in place on a terminal, one line a second elsewhere.

use std::io::{self, Write};
use std::time::{Duration, Instant};

/// How often a line is written where nothing can be repainted.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// Paints status texts one over the other.
#[derive(Debug)]
pub struct Live {
    terminal: bool,
    /// Lines painted last time, to go up by.
    painted: usize,
    last_line: Option<Instant>,
}

impl Live {
    /// For standard output, or whatever `terminal` says about the writer.
    #[must_use]
    pub const fn new(terminal: bool) -> Self {
        Self {
            terminal,
            painted: 0,
            last_line: None,
        }
    }

    /// Whether it repaints.
    #[must_use]
    pub const fn repaints(&self) -> bool {
        self.terminal
    }

    /// Shows `view` on a terminal, else `line` when a second has passed since the last one.
    ///
    /// # Errors
    /// When the writer fails; a closed pipe is the usual reason.
    pub fn paint(
        &mut self,
        out: &mut impl Write,
        view: &str,
        line: &str,
        now: Instant,
    ) -> io::Result<()> {
        if !self.terminal {
            let due = self
                .last_line
                .is_none_or(|last| now.saturating_duration_since(last) >= LINE_EVERY);
            if due {
                self.last_line = Some(now);
                writeln!(out, "{line}")?;
                out.flush()?;
            }
            return Ok(());
        }
        // One write: up, and each line cleared to its end, so that nothing flickers; then whatever is left below.
        let mut frame = String::with_capacity(view.len() + 256);
        if self.painted > 0 {
            frame.push_str(&format!("\x1b[{}A\r", self.painted));
        }
        self.painted = 0;
        for text in view.lines() {
            frame.push_str(text);
            frame.push_str("\x1b[K\n");
            self.painted += 1;
        }
        frame.push_str("\x1b[J");
        out.write_all(frame.as_bytes())?;
        out.flush()
    }
}
