//! The whole program on real sockets: an emulated headset, an emulated arm on a local bus, the real pipeline between them.

use std::path::Path;
use std::time::Duration;

use telearm::app::{ExitReport, RunOptions, run};
use telearm::config::{Plan, Strictness, load};

fn shipped(plan: &str) -> Plan {
    load(Path::new(plan), Strictness::Strict)
        .expect("the shipped plan loads")
        .plan
}

fn emulated(plan: Plan, seconds: u64) -> ExitReport {
    let dir = tempfile::tempdir().expect("a directory");
    let options = RunOptions {
        emulate: true,
        socket: Some(dir.path().join("telearm.sock")),
        time_limit: Some(Duration::from_secs(seconds)),
        ..RunOptions::default()
    };
    run(plan, options).expect("a good run")
}

/// How often each lane engaged and how far its tool was sent, from the text of the report.
fn histogram_count(text: &str, name: &str) -> u64 {
    let line = text.lines().find(|l| l.starts_with(name));
    let count = line.and_then(|l| l.split_whitespace().nth(1));
    count.and_then(|c| c.parse().ok()).unwrap_or(0)
}

/// Guards the main job: the emulated hand engages and moves the emulated arm, the run ends well, and the histograms are filled.
#[test]
fn demo_moves_the_arm() {
    let report = emulated(shipped("rt-config/demo.toml"), 8);
    assert!(report.good);
    assert!(
        report.text.contains("engaging -> active"),
        "{}",
        report.text
    );
    // A count for each sample that moved the arm: following took place, with 50 samples a second.
    let moved = histogram_count(&report.text, "packet_to_frame");
    assert!(moved > 20, "{}", report.text);
    assert!(
        histogram_count(&report.text, "cycle") > 1_000,
        "{}",
        report.text
    );
}

/// Guards: two hands drive two arms in one cycle, and engage together.
#[test]
fn two_hands_drive_two_arms() {
    let report = emulated(shipped("rt-config/quest-two-pipers.toml"), 8);
    assert!(report.good);
    let active = report.text.matches("engaging -> active").count();
    assert!(active >= 2, "{}", report.text);
}
