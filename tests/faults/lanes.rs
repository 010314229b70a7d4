//! Two lanes: what happens to one, and what that means for the other.

use telearm::app::socket::Request;
use telearm::rt::clock;
use telearm::time::Span;

use crate::rig::{BRAKING, Rig, Setup, pause};

const RIGHT: usize = 0;
const LEFT: usize = 1;

fn two(tables: &'static str) -> Rig {
    Rig::with(Setup {
        lanes: 2,
        tables,
        ..Setup::default()
    })
}

/// Guards: engaging is joint: one lane alone waits for the other, and both follow together.
#[test]
fn engaging_is_joint() {
    let rig = two("");
    rig.wait("both ready", |s| {
        s.lanes().all(|l| s.reasons(l) == ["awaiting_engage"])
    });
    rig.wait("one waits", |s| {
        if s.mode(RIGHT) == "ready" {
            let _ = rig.ask(&Request::Engage(Some("right".into())));
        }
        s.mode(RIGHT) == "engaging" && s.mode(LEFT) == "ready"
    });
    rig.wait("not for ever", |s| s.mode(RIGHT) == "ready");
    rig.never("nor does it go on alone", 300, |s| s.mode(RIGHT) != "ready");
    rig.wait("together", |s| {
        for lane in s.lanes().filter(|lane| s.mode(*lane) == "ready") {
            let name = rig.sides[lane].name.to_owned();
            let _ = rig.ask(&Request::Engage(Some(name)));
        }
        s.lanes().all(|lane| s.mode(lane) == "active")
    });
    rig.follow();
    rig.finish();
}

/// Guards: one lane's hold holds the other at the same moment, and both go on by themselves within the hard limit.
#[test]
fn one_hand_lost_holds_both() {
    let rig = two("");
    rig.follow();
    rig.sides[LEFT].hand.set(|h| h.tracked = false);
    let lost = clock::now();
    rig.wait("both hold", |s| {
        s.mode(LEFT) == "holding" && s.mode(RIGHT) == "holding" && s.detail(RIGHT) == "group_holds"
    });
    pause(300);
    for side in &rig.sides {
        side.tap()
            .assert_frozen(lost + BRAKING + Span::from_ms(50), clock::now());
    }
    rig.sides[LEFT].hand.set(|h| h.tracked = true);
    rig.wait_mode("active");
    rig.sides[LEFT].hand.set(|h| h.tracked = false);
    rig.wait("too long: both let go", |s| {
        s.mode(LEFT) == "ready" && s.mode(RIGHT) == "ready"
    });
    rig.sides[LEFT].hand.set(|h| h.tracked = true);
    rig.never("inert", 500, |s| s.lanes().any(|l| s.mode(l) != "ready"));
    rig.follow();
    rig.finish();
}

/// Guards: the stop bit on either port stops both arms.
#[test]
fn stop_bit_on_either_port_stops_both() {
    let rig = two("");
    for by in [RIGHT, LEFT] {
        rig.follow();
        rig.sides[by].hand.set(|h| h.stop = true);
        let stopped = clock::now();
        rig.wait_mode("stopped");
        rig.sides[by].hand.set(|h| h.stop = false);
        pause(300);
        for side in &rig.sides {
            side.assert_frozen_since(stopped + BRAKING);
        }
        rig.reset();
    }
    rig.finish();
}

/// Guards: a fault of one arm holds the other, and does not fault it.
#[test]
fn one_arms_fault_holds_the_other() {
    let rig = two("");
    rig.follow();
    rig.sides[LEFT].fault("joint_fault=2", true);
    rig.wait("one faulted, the other has let go", |s| {
        s.mode(LEFT) == "fault" && s.mode(RIGHT) == "ready" && s.phase(RIGHT) == "up"
    });
    let seen = clock::now();
    pause(300);
    rig.sides[RIGHT].assert_frozen_since(seen + BRAKING);
    let _ = rig.ask(&Request::Engage(Some("right".into())));
    rig.never("it does not follow alone", 500, |s| {
        s.mode(RIGHT) == "active"
    });
    rig.sides[LEFT].fault("joint_fault=2", false);
    rig.wait_up();
    rig.reset();
    rig.follow();
    rig.finish();
}

/// Guards: with `coupling.hold = "lane"` each lane engages and holds for itself; a stop still stops both.
#[test]
fn uncoupled_lanes_hold_for_themselves() {
    let rig = two("[coupling]\nhold = \"lane\"");
    rig.follow();
    rig.sides[LEFT].hand.set(|h| h.tracked = false);
    rig.wait("one lets go", |s| s.mode(LEFT) == "ready");
    let status = rig.wait("the other follows", |s| s.mode(RIGHT) == "active");
    assert_eq!(status.mode(LEFT), "ready");
    let since = clock::now();
    pause(1000);
    assert!(rig.sides[RIGHT].tap().travel_m(since, clock::now()) > 0.02);
    rig.ask_ok(&Request::Stop);
    rig.wait_mode("stopped");
    rig.finish();
}
