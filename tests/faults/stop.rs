//! The software stop: from every source, and the way out of it.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use telearm::app::socket::{Reply, Request};
use telearm::arm::piper::wire::id;
use telearm::operator::rctp::wire::{Flags, Packet, emit};
use telearm::rt::clock;

use crate::rig::{BRAKING, Rig, Setup, pause};

/// Sends the stop bit in exactly one packet.
fn stop_once(rig: &Rig) {
    let mut done = false;
    rig.hand().edit(move |p| {
        let mut packet = *p;
        if !done {
            packet.flags = Flags(p.flags.0 | Flags::STOP);
            done = true;
        }
        vec![emit(&packet).to_vec()]
    });
    rig.hand().wait_sent(1);
}

/// Guards: the stop bit of one single packet, in a flood of rubbish, stops; 500 good packets with the engage gesture again and again do not
/// move the arm; the reset does not either; after it, a fresh gesture does.
#[test]
fn stop_bit_for_exactly_one_packet_under_load() {
    let rig = Rig::with(Setup {
        engage: "pinch_hold",
        ..Setup::default()
    });
    let flooding = Arc::new(AtomicBool::new(true));
    let flood = {
        let (flooding, port) = (Arc::clone(&flooding), rig.side().port);
        thread::spawn(move || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            while flooding.load(Ordering::Relaxed) {
                for _ in 0..20 {
                    let _ = socket.send_to(&[0x52; 45], ("127.0.0.1", port));
                }
                pause(10);
            }
        })
    };
    let gesture = |rig: &Rig| {
        for _ in 0..10 {
            rig.hand().pinch_and_open();
            if rig.status().is_some_and(|s| s.mode(0) == "active") {
                return;
            }
        }
        panic!("the gesture does not engage: {}", rig.said());
    };
    rig.wait("ready for the gesture", |s| {
        s.reasons(0) == ["awaiting_engage"]
    });
    gesture(&rig);
    rig.hand().set(|h| h.sway_m = 0.05);
    pause(1000);

    stop_once(&rig);
    let stopped = clock::now();
    let status = rig.wait_mode("stopped");
    assert_eq!(status.stop_reason(), Some("operator_stop_bit"));
    let sent = rig.hand().sent();
    while rig.hand().sent() < sent + 500 {
        rig.hand().pinch_and_open();
    }
    assert_eq!(
        rig.wait_mode("stopped").stop_reason(),
        Some("operator_stop_bit")
    );
    rig.side().assert_frozen_since(stopped + BRAKING);

    rig.reset();
    rig.wait("reset is not engaging", |s| {
        s.reasons(0) == ["awaiting_engage"]
    });
    rig.never("nor does it follow", 500, |s| s.mode(0) != "ready");
    rig.side().assert_frozen_since(stopped + BRAKING);
    gesture(&rig);
    flooding.store(false, Ordering::Relaxed);
    flood.join().unwrap();
    rig.follow();
    rig.finish();
}

/// Guards: as long as a source asserts its stop, a reset is refused and says who.
#[test]
fn reset_while_the_stop_is_asserted() {
    let rig = Rig::new();
    rig.follow();
    rig.hand().set(|h| h.stop = true);
    rig.wait_mode("stopped");
    let why = rig.ask_refused(&Request::Reset);
    assert!(why.contains("hand_right"), "{why}");
    rig.hand().set(|h| h.stop = false);
    rig.hand().wait_sent(3);
    rig.reset();
    rig.follow();
    rig.finish();
}

/// Guards: a reset with the hand tracked and moving all the time neither moves the arm nor engages.
#[test]
fn reset_with_the_hand_still_tracked() {
    let rig = Rig::new();
    rig.follow();
    rig.ask_ok(&Request::Stop);
    let stopped = clock::now();
    rig.wait_mode("stopped");
    pause(300);
    rig.reset();
    rig.wait_mode("ready");
    rig.never("inert", 1000, |s| s.mode(0) != "ready");
    rig.side().assert_frozen_since(stopped + BRAKING);
    rig.follow();
    rig.finish();
}

/// Guards: `telearm stop` brakes at once, is latched, refuses to engage, and needs a reset.
#[test]
fn telearm_stop_over_the_socket() {
    let rig = Rig::new();
    rig.follow();
    let asked = clock::now();
    rig.ask_ok(&Request::Stop);
    let status = rig.wait_mode("stopped");
    assert_eq!(status.stop_reason(), Some("command"));
    let _ = rig.ask(&Request::Engage(None));
    rig.never("engage does not leave a stop", 500, |s| {
        s.mode(0) != "stopped"
    });
    rig.side().assert_frozen_since(asked + BRAKING);
    // The way of braking is short: 6 mm from full speed, and this was not full speed.
    assert!(rig.side().tap().travel_m(asked, clock::now()) < 0.02);
    rig.reset();
    rig.follow();
    rig.finish();
}

/// Guards: `on_stop = "arm_stop"` sends the arm's own stop, once; the way out is the recovery, which says that the arm drops.
#[test]
fn telearm_stop_where_the_plan_asks_for_the_arms_own() {
    let rig = Rig::with(Setup {
        tables: "[stop]\non_stop = \"arm_stop\"",
        may_stop_arm: true,
        ..Setup::default()
    });
    rig.follow();
    rig.ask_ok(&Request::Stop);
    rig.wait("the arm is in its own stop", |s| s.phase(0) == "faulted");
    pause(300);
    let own_stops = rig.side().tap().count(id::MOTION);
    assert_eq!(own_stops, 1);
    rig.reset();
    rig.wait("a reset does not recover the arm", |s| {
        s.has(0, "arm_fault")
    });
    pause(300);
    assert_eq!(
        rig.side().tap().count(id::MOTION),
        1,
        "no 0x150 02 by itself"
    );
    let why = rig.ask_refused(&Request::Recover {
        lane: "right".into(),
        arm_will_drop: false,
    });
    assert!(why.contains("drop"), "{why}");
    rig.ask_ok(&Request::Recover {
        lane: "right".into(),
        arm_will_drop: true,
    });
    rig.wait_up();
    rig.wait("reset after the recovery", |s| {
        s.mode(0) == "ready"
            || matches!(rig.ask(&Request::Reset), Reply::Ok(_)) && s.mode(0) == "ready"
    });
    rig.side().tap().assert_whole();
    rig.finish();
}

/// Guards: when nothing is heard of the arm any more after a stop, its own stop is sent, once: what cannot be seen to rest is not trusted
/// to.
#[test]
fn stop_and_then_feedback_lost() {
    let rig = Rig::with(Setup {
        may_stop_arm: true,
        ..Setup::default()
    });
    rig.follow();
    rig.ask_ok(&Request::Stop);
    rig.wait_mode("stopped");
    pause(200);
    assert_eq!(rig.side().tap().count(id::MOTION), 0, "not before");
    rig.side().fault("silent", true);
    rig.wait("feedback is lost", |s| s.has(0, "arm_fault"));
    pause(500);
    assert_eq!(rig.side().tap().count(id::MOTION), 1, "{}", rig.said());
    rig.finish();
}

/// Guards: an arm that does not come to rest within `stop_within_ms` after a stop gets its own stop.
#[test]
fn stop_of_an_arm_that_goes_on_moving() {
    let rig = Rig::with(Setup {
        may_stop_arm: true,
        ..Setup::default()
    });
    rig.follow();
    rig.ask_ok(&Request::Stop);
    rig.wait_mode("stopped");
    // Somebody pushes: the arm gives way to one side for as long as it goes on.
    rig.side().fault("drifting", true);
    rig.wait("the arm's own stop is sent", |_| {
        rig.side().tap().count(id::MOTION) > 0
    });
    rig.side().fault("drifting", false);
    pause(300);
    assert_eq!(rig.side().tap().count(id::MOTION), 1);
    rig.finish();
}

/// Guards: a stop bit before anything is engaged is latched too, and a packet that is rubbish but for its stop bit counts.
#[test]
fn stop_bit_in_a_packet_that_is_refused() {
    let rig = Rig::new();
    rig.wait("ready", |s| s.reasons(0) == ["awaiting_engage"]);
    rig.hand().edit(|p| {
        vec![
            emit(&Packet {
                position_m: [f32::NAN; 3],
                flags: Flags(Flags::TRACKED | Flags::STOP),
                ..*p
            })
            .to_vec(),
        ]
    });
    rig.wait_mode("stopped");
    rig.hand().honest();
    rig.hand().wait_sent(5);
    rig.reset();
    rig.follow();
    rig.finish();
}
