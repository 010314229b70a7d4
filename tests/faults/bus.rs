//! What the bus between laptop and arm can do wrong.

use telearm::rt::clock;

use crate::rig::{BRAKING, Rig, Setup, Side, pause};

/// A fault of the bus while the arm follows, and its end: named, nothing sent meanwhile, nothing moves by itself afterwards.
fn fault_and_cure(on: impl Fn(&Side), off: impl Fn(&Side), names: &[&str]) {
    let rig = Rig::new();
    rig.follow();
    on(rig.side());
    let status = rig.wait("a fault", |s| s.mode(0) == "fault");
    assert!(
        names.iter().any(|name| status.detail(0).contains(name)),
        "{}",
        status.detail(0)
    );
    let seen = clock::now();
    pause(300);
    rig.side().tap().assert_frozen(seen, clock::now());
    off(rig.side());
    rig.wait_up();
    rig.never("nothing comes back by itself", 500, |s| {
        s.mode(0) != "fault"
    });
    rig.reset();
    rig.wait_mode("ready");
    rig.side().tap().assert_frozen(clock::now(), clock::now());
    rig.follow();
    rig.finish();
}

#[test]
fn can_down_and_up() {
    fault_and_cure(
        |s| s.bus.set_down(true),
        |s| s.bus.set_down(false),
        &["bus_down"],
    );
}

#[test]
fn bus_gone_and_back() {
    fault_and_cure(
        |s| s.bus.set_gone(true).unwrap(),
        |s| s.bus.set_gone(false).unwrap(),
        &["bus_gone"],
    );
}

#[test]
fn bus_off_and_restart() {
    fault_and_cure(|s| s.bus.bus_off(), |s| s.bus.restart(), &["bus_off"]);
}

#[test]
fn nobody_acknowledges() {
    // Nothing is delivered either, so the arm falls silent in the same moment.
    fault_and_cure(
        |s| s.bus.set_acknowledged(false),
        |s| s.bus.set_acknowledged(true),
        &["bus_not_sending", "feedback_lost"],
    );
}

#[test]
fn send_queue_full() {
    fault_and_cure(
        |s| s.bus.set_full(true),
        |s| s.bus.set_full(false),
        &["bus_not_sending"],
    );
}

/// Guards: a queue that is full for a moment costs commands and nothing else; what is sent afterwards goes on from what was sent before.
#[test]
fn send_queue_full_for_a_moment() {
    let rig = Rig::new();
    rig.follow();
    for _ in 0..10 {
        rig.side().bus.set_full(true);
        pause(8);
        rig.side().bus.set_full(false);
        pause(150);
    }
    let status = rig.wait("usable", |s| s.phase(0) == "up");
    assert!(status.number("/lanes/0/not_sent") > 0);
    if status.mode(0) != "active" {
        rig.engage();
    }
    rig.finish();
}

/// Guards: a bus that takes nothing for a while: no burst afterwards, no torn target.
#[test]
fn bus_stalls() {
    let rig = Rig::new();
    rig.follow();
    for stall in [30, 80, 500] {
        rig.side().bus.set_stalled(true);
        pause(stall);
        rig.side().bus.set_stalled(false);
        let on = clock::now();
        pause(300);
        let sent = rig
            .side()
            .tap()
            .targets_between(on, on + telearm::time::Span::from_ms(100))
            .len();
        assert!(
            sent <= 24,
            "{sent} commands in 100 ms after a stall of {stall} ms"
        );
        rig.wait_up();
        if rig.status().is_some_and(|s| s.mode(0) == "fault") {
            rig.reset();
        }
        rig.follow();
    }
    rig.finish();
}

/// Guards: a bus that is gone while the stop is latched does not lose the stop.
#[test]
fn bus_down_while_stopped() {
    let rig = Rig::with(Setup {
        may_stop_arm: true,
        ..Setup::default()
    });
    rig.follow();
    rig.ask_ok(&telearm::app::socket::Request::Stop);
    let stopped = clock::now();
    rig.wait_mode("stopped");
    rig.side().bus.set_down(true);
    pause(800);
    rig.side().bus.set_down(false);
    pause(1000);
    let status = rig.status().unwrap();
    assert!(
        status.stop_reason().is_some() && status.mode(0) != "ready",
        "{:#}",
        status.0
    );
    rig.side().assert_frozen_since(stopped + BRAKING);
    rig.finish();
}
