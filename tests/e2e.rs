//! The whole program on real sockets: an emulated headset, an emulated arm on a local bus, the real pipeline between them.

use std::path::Path;
use std::time::Duration;

use telearm::app::socket::{Client, Reply, Request, StatusFormat};
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

/// How many values a histogram has, from the text of the report.
fn histogram_count(text: &str, name: &str) -> u64 {
    let table = text.lines().skip_while(|l| !l.starts_with("latency, us"));
    let line = table.into_iter().find(|l| l.starts_with(name));
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

/// Guards the pairing of a Quest hand with a glove, all three made of software: curled fingers engage the lane and straight ones let go, and
/// the gripper goes through the glove's whole stroke, which the Quest's own pinch never does.
#[test]
fn the_gripper_follows_the_glove() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("telearm.sock");
    let options = RunOptions {
        emulate: true,
        socket: Some(socket.clone()),
        time_limit: Some(Duration::from_secs(18)),
        ..RunOptions::default()
    };
    let runs =
        std::thread::spawn(move || run(shipped("rt-config/quest-glove-piper.toml"), options));
    let (mut openings, mut while_straight) = (Vec::new(), Vec::new());
    while !runs.is_finished() {
        std::thread::sleep(Duration::from_millis(100));
        let Some(status) = status(&socket) else {
            continue;
        };
        // The Quest's engage pinch is over by then; while it reaches it closes no further than 0.3.
        let at_s = status["uptime_s"].as_f64().expect("a time");
        // The first moments have no lanes to show yet.
        let Some(mode) = status["lanes"][0]["mode"].as_str() else {
            continue;
        };
        if at_s > 7.0 && mode == "active" {
            openings.extend(status["arms"][0]["opening"].as_f64());
        }
        // The glove's fingers are straight from 10 s to 13.5 s of its own time, which begins a moment after the run's.
        if (11.5..13.0).contains(&at_s) {
            while_straight.push(mode.to_owned());
        }
    }
    let report = runs.join().expect("no panic").expect("a good run");
    assert!(report.good);
    let (least, most) = openings
        .iter()
        .fold((1.0, 0.0), |(a, b), o| (f64::min(a, *o), f64::max(b, *o)));
    assert!(
        least < 0.15 && most > 0.85,
        "{least}..{most} in {} samples\n{}",
        openings.len(),
        report.text
    );
    let let_go = while_straight.iter().all(|mode| mode == "ready");
    assert!(
        let_go && while_straight.len() > 3,
        "straight fingers let go: {while_straight:?}\n{}",
        report.text
    );
}

fn status(socket: &Path) -> Option<serde_json::Value> {
    let mut client = Client::connect(Some(socket)).ok()?;
    match client.ask(&Request::Status(StatusFormat::Json)).ok()? {
        Reply::Ok(text) => serde_json::from_str(&text).ok(),
        Reply::Refused(_) => None,
    }
}
