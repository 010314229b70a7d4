//! What an operator's device, its network and its wearer can do wrong.

use std::net::UdpSocket;

use nalgebra::{UnitQuaternion, Vector3};
use telearm::app::socket::Request;
use telearm::geometry::angle_between;
use telearm::operator::rctp::wire::{Packet, emit};
use telearm::rt::clock;
use telearm::time::{Span, Stamp};

use crate::rig::{BRAKING, Rig, pause};

/// Makes the hand leap until the lane holds for it, and waits until it has gone on by itself. More than once, because a leap that comes after
/// a hiccup of this machine is a believable motion. The log tells, since a hold this short is easily missed in the status.
fn leap_and_resume(rig: &Rig, leap: impl Fn()) {
    let holds = || {
        rig.said()
            .matches("active -> holding (tracking_jumped)")
            .count()
    };
    let before = holds();
    for _ in 0..20 {
        leap();
        for _ in 0..25 {
            pause(20);
            if holds() > before {
                rig.wait_mode("active");
                return;
            }
        }
    }
    panic!("no hold for a leap: {}", rig.said());
}

/// Guards: where the hand is when it is first seen does not matter: engaging moves nothing, however far away and however turned it is.
#[test]
fn first_frame_60_cm_and_60_degrees_away() {
    let rig = Rig::new();
    rig.hand().set(|h| {
        h.position += Vector3::new(0.4, 0.4, -0.2);
        h.rotation = UnitQuaternion::from_euler_angles(0.3, 1.0, 0.2);
    });
    pause(300);
    let since = clock::now();
    rig.engage();
    pause(300);
    // The breath of the hand is 0.5 mm.
    assert!(rig.side().tap().travel_m(since, clock::now()) < 0.01);
    rig.follow();
    rig.finish();
}

/// Guards: engaging again takes position *and* rotation anew: the angle that the hand turned while it was let go is not caught up with.
#[test]
fn re_engage_after_the_hand_moved_and_turned_40_degrees() {
    let rig = Rig::new();
    rig.follow();
    rig.ask_ok(&Request::Disengage(None));
    rig.wait_mode("ready");
    rig.hand().set(|h| {
        h.sway_m = 0.0;
        h.position += Vector3::new(-0.1, 0.2, 0.1);
        h.rotation = UnitQuaternion::from_euler_angles(0.0, 0.2, 40_f64.to_radians());
    });
    pause(300);
    let since = clock::now();
    rig.engage();
    pause(300);
    let targets = rig.side().tap().targets_between(since, clock::now());
    let (first, last) = (targets[0].pose, targets[targets.len() - 1].pose);
    assert!(angle_between(first.rotation(), last.rotation()) < 1_f64.to_radians());
    assert!((first.position() - last.position()).norm() < 0.002);
    rig.follow();
    rig.finish();
}

/// Guards: either sign of a quaternion is the same rotation, in any packet.
#[test]
fn quaternion_sign_flips_from_packet_to_packet() {
    let rig = Rig::new();
    rig.follow();
    let mut flip = false;
    rig.hand().edit(move |p| {
        flip = !flip;
        let sign = if flip { -1.0 } else { 1.0 };
        vec![
            emit(&Packet {
                orientation_xyzw: p.orientation_xyzw.map(|c| sign * c),
                ..*p
            })
            .to_vec(),
        ]
    });
    let since = clock::now();
    rig.never("a flipped sign is no fault", 1500, |s| {
        s.mode(0) == "holding" && s.detail(0) == "tracking_jumped"
    });
    assert!(rig.side().tap().travel_m(since, clock::now()) > 0.05);
    rig.finish();
}

/// Guards: NaN, both infinities, 1e30 and a zero quaternion, in every field: dropped by name, and the good packets in between are followed
/// as if nothing were.
#[test]
fn not_a_number_infinity_1e30_and_zero_in_every_field() {
    let rig = Rig::new();
    rig.follow();
    rig.hand().edit(|p| {
        let mut out = vec![emit(p).to_vec()];
        let mut later = *p;
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30] {
            for field in 0..7 {
                later.sender_time_s += 1e-5;
                let mut packet = later;
                match field {
                    0..=2 => packet.position_m[field] = bad,
                    _ => packet.orientation_xyzw[field - 3] = bad,
                }
                out.push(emit(&packet).to_vec());
            }
            let time = if bad.is_finite() {
                f64::NAN
            } else {
                f64::from(bad)
            };
            out.push(
                emit(&Packet {
                    sender_time_s: time,
                    ..*p
                })
                .to_vec(),
            );
        }
        out.push(
            emit(&Packet {
                orientation_xyzw: [0.0; 4],
                ..later
            })
            .to_vec(),
        );
        out
    });
    let since = clock::now();
    rig.hand().wait_sent(34 * 75);
    let status = rig.wait_mode("active");
    for reason in [
        "nonfinite_timestamp",
        "nonfinite_pose",
        "position_range",
        "bad_quaternion",
    ] {
        assert!(status.drops(0, reason) > 100, "{reason}");
    }
    assert!(rig.side().tap().travel_m(since, clock::now()) > 0.05);
    rig.finish();
}

/// Guards: packets that are too short, too long, doubled or overtaken: the stream around them is followed.
#[test]
fn short_long_duplicate_and_reordered_packets() {
    let rig = Rig::new();
    rig.follow();
    let mut kept: Vec<Vec<u8>> = Vec::new();
    let mut n = 0;
    rig.hand().edit(move |p| {
        n += 1;
        let good = emit(p).to_vec();
        let mut long = emit(&Packet {
            sender_time_s: p.sender_time_s + 0.001,
            ..*p
        })
        .to_vec();
        long.resize(10_000, 0xAA);
        match n % 4 {
            0 => vec![good[..44].to_vec(), good.clone(), Vec::new(), good],
            1 => vec![good, long],
            2 => {
                kept.push(good);
                Vec::new()
            }
            _ => std::iter::once(good).chain(kept.drain(..)).collect(),
        }
    });
    let since = clock::now();
    rig.hand().wait_sent(200);
    let status = rig.wait_mode("active");
    for reason in ["short", "duplicate", "out_of_order"] {
        assert!(status.drops(0, reason) > 5, "{reason}");
    }
    assert!(rig.side().tap().travel_m(since, clock::now()) > 0.05);
    rig.finish();
}

/// Guards: of a burst the newest sample counts, nothing is caught up with, and the stop is not delayed by it.
#[test]
fn burst_of_1000_packets() {
    let rig = Rig::new();
    rig.follow();
    for _ in 0..3 {
        rig.hand().edit(|p| {
            (0..1000)
                .map(|i| {
                    emit(&Packet {
                        sender_time_s: p.sender_time_s + 1e-6 * f64::from(i),
                        ..*p
                    })
                    .to_vec()
                })
                .collect()
        });
        rig.hand().wait_sent(1000);
        rig.hand().honest();
        pause(200);
    }
    rig.wait_mode("active");
    let since = clock::now();
    pause(500);
    assert!(rig.side().tap().travel_m(since, clock::now()) > 0.01);
    rig.finish();
}

/// Guards: a second headset on the port is refused and counted while the first one lives; its stop bit counts all the same.
#[test]
fn second_sender() {
    let rig = Rig::new();
    rig.follow();
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = ("127.0.0.1", rig.side().port);
    let far = crate::rig::hand::packet(
        Vector3::new(0.9, 0.5, 1.5),
        UnitQuaternion::identity(),
        0.0,
        true,
        false,
    );
    for tick in 0..50 {
        let packet = Packet {
            sender_time_s: 900.0 + 0.02 * f64::from(tick),
            ..far
        };
        other.send_to(&emit(&packet), to).unwrap();
        pause(20);
    }
    let status = rig.wait_mode("active");
    assert!(status.drops(0, "other_sender") >= 45);
    let stop = crate::rig::hand::packet(
        Vector3::zeros(),
        UnitQuaternion::identity(),
        0.0,
        true,
        true,
    );
    other.send_to(&emit(&stop), to).unwrap();
    let stopped = clock::now();
    let status = rig.wait_mode("stopped");
    assert_eq!(status.stop_reason(), Some("operator_stop_bit"));
    pause(300);
    rig.side().assert_frozen_since(stopped + BRAKING);
    rig.finish();
}

/// Guards: ages come from our clock: a sender clock that is ahead changes nothing, one that falls back is a new session (disengaged, and
/// inert), one that stands still goes stale, and none of it moves the arm.
#[test]
fn sender_clock_steps() {
    let rig = Rig::new();
    rig.follow();
    let since = clock::now();
    rig.hand().set(|h| h.clock_s += 5.0);
    rig.never("a step ahead is no event", 800, |s| s.mode(0) == "ready");
    assert!(rig.side().tap().travel_m(since, clock::now()) > 0.02);

    for step in [-5.0, -3600.0] {
        rig.hand().set(|h| h.clock_s += step);
        let back = clock::now();
        rig.wait_mode("ready");
        rig.never("a new session is inert", 500, |s| s.mode(0) != "ready");
        rig.side()
            .assert_frozen_since(back + BRAKING + Span::from_ms(50));
        rig.follow();
    }

    // One stamp in the far future, then the honest clock again: a restart, not a lock-out.
    rig.hand().edit(|p| {
        vec![
            emit(&Packet {
                sender_time_s: 1e30,
                ..*p
            })
            .to_vec(),
        ]
    });
    rig.hand().wait_sent(1);
    rig.hand().honest();
    rig.wait_mode("ready");
    rig.follow();

    rig.hand().edit(|p| {
        vec![
            emit(&Packet {
                sender_time_s: 1e6,
                ..*p
            })
            .to_vec(),
        ]
    });
    let status = rig.wait("a clock that stands still is a silent hand", |s| {
        s.mode(0) == "ready" && (s.has(0, "operator_stale") || s.has(0, "tracking_lost"))
    });
    assert!(status.drops(0, "duplicate") > 10);
    rig.finish();
}

/// What a headset sends when it does not see the hand: zeros, a closed gripper, no tracking bit.
fn lose_tracking(rig: &Rig) -> Stamp {
    rig.hand().edit(|p| {
        let lost = crate::rig::hand::packet(
            Vector3::zeros(),
            UnitQuaternion::identity(),
            0.0,
            false,
            false,
        );
        vec![
            emit(&Packet {
                sender_time_s: p.sender_time_s,
                orientation_xyzw: [0.0; 4],
                ..lost
            })
            .to_vec(),
        ]
    });
    clock::now()
}

/// Guards: tracking lost for less than the hard limit: hold, neither arm nor gripper moves, and it goes on by itself from a fresh anchor.
#[test]
fn tracking_lost_shorter_than_the_hard_limit() {
    let rig = Rig::new();
    rig.follow();
    // The gripper is picked up where it is: half open.
    for percent in 30..70 {
        rig.hand().set(|h| h.opening = f64::from(percent) / 100.0);
        rig.hand().wait_sent(1);
    }
    pause(500);
    let lost = lose_tracking(&rig);
    rig.wait("holds", |s| {
        s.mode(0) == "holding" && s.detail(0) == "tracking_lost"
    });
    // An unchanged stroke is repeated every 500 ms.
    pause(850);
    let back = clock::now();
    {
        let tap = rig.side().tap();
        let from = lost + BRAKING + Span::from_ms(50);
        tap.assert_frozen(from, back);
        let strokes = tap.strokes_between(from, back);
        assert!(
            !strokes.is_empty() && strokes.iter().all(|s| *s == strokes[0]),
            "{strokes:?}"
        );
    }
    rig.hand().set(|h| h.position.z += 0.2);
    rig.hand().honest();
    rig.wait_mode("active");
    let since = clock::now();
    pause(1500);
    assert!(
        rig.side().tap().travel_m(since, clock::now()) > 0.05,
        "it goes on"
    );
    rig.finish();
}

/// Guards: tracking lost for longer: disengaged, and a hand that is back is inert until a new act.
#[test]
fn tracking_lost_longer_than_the_hard_limit() {
    let rig = Rig::new();
    rig.follow();
    let lost = lose_tracking(&rig);
    rig.wait_mode("ready");
    rig.hand().honest();
    rig.never("inert", 1000, |s| s.mode(0) != "ready");
    rig.side()
        .assert_frozen_since(lost + BRAKING + Span::from_ms(50));
    rig.follow();
    rig.finish();
}

/// Guards: no packets for less than the hard limit: hold, and on by itself.
#[test]
fn link_lost_and_back_within_the_hard_limit() {
    let rig = Rig::new();
    rig.follow();
    rig.hand().set(|h| h.silent = true);
    let silent = clock::now();
    rig.wait("holds", |s| {
        s.mode(0) == "holding" && s.detail(0) == "operator_stale"
    });
    pause(200);
    {
        let tap = rig.side().tap();
        tap.assert_frozen(silent + Span::from_ms(400) + BRAKING, clock::now());
    }
    rig.hand().set(|h| h.silent = false);
    rig.wait_mode("active");
    rig.finish();
}

/// Guards: no packets for longer: the arm stays where it is for as long as it takes, is not sent home, and a link that is back is inert.
#[test]
fn link_lost_beyond_the_hard_limit() {
    let rig = Rig::new();
    rig.follow();
    rig.hand().set(|h| h.silent = true);
    let silent = clock::now();
    rig.wait("let go", |s| {
        s.mode(0) == "ready" && s.has(0, "operator_stale")
    });
    pause(1500);
    rig.hand().set(|h| h.silent = false);
    rig.wait("back, and inert", |s| s.reasons(0) == ["awaiting_engage"]);
    rig.never("inert", 1000, |s| s.mode(0) != "ready");
    rig.side()
        .assert_frozen_since(silent + Span::from_ms(400) + BRAKING);
    rig.follow();
    rig.finish();
}

/// Guards: a pose that leaps holds; where the stream settles is the new reference, and nothing is caught up with.
#[test]
fn hand_jumps_30_cm_or_turns_90_degrees_in_one_packet() {
    let rig = Rig::new();
    rig.follow();
    for packets in [1, 2, 20] {
        leap_and_resume(&rig, || {
            rig.hand().edit(|p| {
                let mut far = *p;
                far.position_m[1] += 0.3;
                vec![emit(&far).to_vec()]
            });
            rig.hand().wait_sent(packets);
            rig.hand().honest();
        });
        leap_and_resume(&rig, || {
            let turned = UnitQuaternion::from_euler_angles(0.0, 90_f64.to_radians(), 0.0);
            rig.hand().set(|h| h.rotation = turned);
            rig.hand().wait_sent(packets);
            rig.hand().set(|h| h.rotation = UnitQuaternion::identity());
        });
    }
    rig.finish();
}

/// Guards: a tracker that repeats its last pose as valid is not followed.
#[test]
fn hand_frozen_by_its_tracker() {
    let rig = Rig::new();
    rig.follow();
    let mut first = None;
    rig.hand().edit(move |p| {
        let pose = *first.get_or_insert(*p);
        vec![
            emit(&Packet {
                sender_time_s: p.sender_time_s,
                ..pose
            })
            .to_vec(),
        ]
    });
    rig.wait("holds", |s| {
        s.mode(0) == "holding" && s.detail(0) == "tracking_frozen"
    });
    rig.wait("lets go", |s| {
        s.mode(0) == "ready" && s.has(0, "tracking_frozen")
    });
    rig.hand().honest();
    rig.never("inert", 500, |s| s.mode(0) != "ready");
    rig.follow();
    rig.finish();
}
