//! Rules that every registered operator device keeps, and the RCTP golden vectors.

#[path = "golden_families/rctp.rs"]
mod rctp;

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;

/// Runs every line of a golden file and names those that fail.
fn every_line(file: &str, check: fn(&Value)) {
    let path = format!("{}/tests/golden/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("golden file");
    let mut failed = Vec::new();
    let mut lines = 0;
    for line in text.lines().filter(|l| !l.trim().is_empty()) {
        lines += 1;
        let line: Value = serde_json::from_str(line).expect("one JSON value a line");
        if catch_unwind(AssertUnwindSafe(|| check(&line))).is_err() {
            failed.push(line["id"].to_string());
        }
    }
    assert!(lines > 0, "{file} is empty");
    assert!(
        failed.is_empty(),
        "{} of {lines} lines of {file} failed: {failed:?}",
        failed.len()
    );
}

/// Guards: every single packet of the vectors is judged as the device's document wants.
#[test]
fn golden_rctp() {
    every_line("rctp.jsonl", rctp::check_packet);
}

/// Guards: every sequence of the vectors: order, restarts, stops, loss.
#[test]
fn golden_rctp_seq() {
    every_line("rctp_seq.jsonl", rctp::check_sequence);
}
