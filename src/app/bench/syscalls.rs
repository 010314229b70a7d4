//! System calls of one thread, counted by `strace -c` from outside: what the kernel was really asked for, not what the code seems to ask.

use std::process::{Command, Stdio};

/// Calls per cycle wait, by name, most frequent first.
pub type Calls = Vec<(String, f64)>;

/// The cycle wait; every cycle makes it exactly once.
const WAIT: &str = "futex";

/// Counts for about a second.
///
/// # Errors
/// Why not: strace is missing, or may not trace, or saw no cycle.
pub(super) fn of_thread(thread_id: u64) -> Result<Calls, String> {
    let output = Command::new("timeout")
        .args(["--signal=INT", "1.2", "strace", "-c", "-p"])
        .arg(thread_id.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| format!("timeout: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    parse(&text).ok_or_else(|| {
        let line = text.lines().find(|l| !l.trim().is_empty());
        format!("strace: {}", line.unwrap_or("no output").trim())
    })
}

/// Reads the table: share, seconds, microseconds per call, calls, errors (may be empty), name.
pub(super) fn parse(text: &str) -> Option<Calls> {
    let mut rows: Vec<(String, f64)> = text
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (calls, name) = match words.as_slice() {
                [share, _, _, calls, .., name] if share.parse::<f64>().is_ok() => (calls, name),
                _ => return None,
            };
            (*name != "total").then_some(((*name).to_owned(), calls.parse().ok()?))
        })
        .collect();
    let waits = rows.iter().find(|(name, _)| name == WAIT)?.1;
    // A cycle that was cut by the beginning or the end of the count must not hide a call; a few of a thousand are told apart all the same.
    rows.iter_mut().for_each(|(_, calls)| *calls /= waits);
    rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    Some(rows)
}
