//! What a headset, or whoever sends in its name, gets wrong.

use std::net::UdpSocket;

use nalgebra::{UnitQuaternion, Vector3};

use super::{holds_and_resumes, moves_on};
use crate::app::socket::Request;
use crate::operator::rctp::wire::{Packet, emit};
use crate::rt::clock;
use crate::selftest::Fault;
use crate::selftest::hand;
use crate::selftest::stand::{Setup, Stand, pause, text};

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        name: "far_first_frame",
        what: "first seen 60 cm and 60 deg away",
        expected: "engaging moves nothing",
        setup: Setup::default,
        play: far_first_frame,
    },
    Fault {
        name: "reengage_turned",
        what: "hand moved and turned 40 deg while let go",
        expected: "re-engaging turns nothing",
        setup: Setup::default,
        play: reengage_turned,
    },
    Fault {
        name: "bad_packets",
        what: "NaN, infinity, 1e30, zero quaternion, garbage, short, long",
        expected: "dropped by reason, followed on",
        setup: Setup::default,
        play: bad_packets,
    },
    Fault {
        name: "reordered",
        what: "duplicates, and groups of five reversed",
        expected: "dropped by reason, followed on",
        setup: Setup::default,
        play: reordered,
    },
    Fault {
        name: "burst",
        what: "1000 packets at once",
        expected: "the newest counts, followed on",
        setup: Setup::default,
        play: burst,
    },
    Fault {
        name: "second_sender",
        what: "another headset on the port, then its stop bit",
        expected: "not followed; its stop counts",
        setup: Setup::default,
        play: second_sender,
    },
    Fault {
        name: "clock_step",
        what: "sender clock +5 s, then -5 s",
        expected: "ahead: nothing; back: inert",
        setup: Setup::default,
        play: clock_step,
    },
    Fault {
        name: "frozen_stream",
        what: "the pose repeats bit for bit",
        expected: "hold, then on by itself",
        setup: || Setup {
            disengage_ms: 2_000,
            ..Setup::default()
        },
        play: frozen_stream,
    },
    Fault {
        name: "jump",
        what: "the pose jumps by 30 cm, and stays there",
        expected: "hold, new reference, no jump",
        setup: Setup::default,
        play: jump,
    },
    Fault {
        name: "turn_flicker",
        what: "the frame flips by 90 deg for 1 to 20 packets",
        expected: "hold or ignored, never turned",
        setup: Setup::default,
        play: turn_flicker,
    },
    Fault {
        name: "quaternion_sign",
        what: "the sign changes with every packet",
        expected: "followed as if nothing were",
        setup: Setup::default,
        play: quaternion_sign,
    },
    Fault {
        name: "frame_unverified",
        what: "axes never verified, engage all the same",
        expected: "not engaged, by that name",
        setup: || Setup {
            verified: false,
            ..Setup::default()
        },
        play: frame_unverified,
    },
];

fn far_first_frame(stand: &mut Stand) -> Result<String, String> {
    stand.hand.set(|h| {
        h.position += Vector3::new(0.4, 0.4, -0.2);
        h.rotation = UnitQuaternion::from_euler_angles(0.3, 1.0, 0.2);
    });
    pause(300);
    let text = engage_strays(stand)?;
    stand.follow()?;
    Ok(text)
}

/// Engages with a resting hand and judges how far the target strays within 300 ms. The hand breathes by 0.3 mm.
fn engage_strays(stand: &mut Stand) -> Result<String, String> {
    let since = clock::now();
    stand.engage()?;
    pause(300);
    let (way_m, turn) = stand.tap().strayed(since);
    let text = format!(
        "engaged; strayed {:.2} mm and {:.2} deg",
        way_m * 1e3,
        turn.to_degrees()
    );
    if way_m < 0.002 && turn < 1_f64.to_radians() {
        Ok(text)
    } else {
        Err(text)
    }
}

fn reengage_turned(stand: &mut Stand) -> Result<String, String> {
    stand.follow()?;
    stand.order(&Request::Disengage(None))?;
    stand.wait_mode("ready")?;
    stand.hand.set(|h| {
        h.sway_m = 0.0;
        h.position += Vector3::new(-0.1, 0.2, 0.1);
        h.rotation = UnitQuaternion::from_euler_angles(0.0, 0.2, 40_f64.to_radians());
    });
    pause(400);
    let text = engage_strays(stand)?;
    stand.follow()?;
    Ok(text)
}

fn bad_packets(stand: &mut Stand) -> Result<String, String> {
    stand.follow()?;
    let mut n: u8 = 0;
    stand.hand.edit(move |p| {
        n = n.wrapping_add(1);
        let good = emit(p).to_vec();
        let mut out = vec![good.clone()];
        for (step, bad) in (1_u8..).zip([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30]) {
            let mut packet = Packet {
                sender_time_s: p.sender_time_s + 1e-5 * f64::from(step),
                ..*p
            };
            match usize::from(n % 7) {
                i @ 0..=2 => packet.position_m[i] = bad,
                i => packet.orientation_xyzw[i - 3] = bad,
            }
            out.push(emit(&packet).to_vec());
            packet = *p;
            packet.sender_time_s = if bad.is_nan() {
                f64::NAN
            } else {
                f64::INFINITY
            };
            out.push(emit(&packet).to_vec());
        }
        let zero = Packet {
            orientation_xyzw: [0.0; 4],
            ..*p
        };
        out.push(emit(&zero).to_vec());
        out.push(good[..usize::from(n) % 45].to_vec());
        out.push((0..64).map(|i| n.wrapping_mul(37) ^ i).collect());
        // A packet with a tail is legal; it is the next one.
        let mut long = emit(&Packet {
            sender_time_s: p.sender_time_s + 1e-3,
            ..*p
        })
        .to_vec();
        long.resize(10_000, 0xAA);
        out.push(long);
        out
    });
    moves_on(stand)?;
    stand.hand.honest();
    let status = stand.wait_mode("active")?;
    let mut counted = Vec::new();
    for reason in [
        "short",
        "bad_magic",
        "nonfinite_timestamp",
        "nonfinite_pose",
        "position_range",
        "bad_quaternion",
    ] {
        match status.drops(reason) {
            0 => return Err(format!("no drop is counted as {reason}")),
            n => counted.push(format!("{reason} {n}")),
        }
    }
    Ok(format!("followed on; dropped {}", counted.join(", ")))
}

fn reordered(stand: &mut Stand) -> Result<String, String> {
    stand.follow()?;
    let mut kept: Vec<Vec<u8>> = Vec::new();
    stand.hand.edit(move |p| {
        let bytes = emit(p).to_vec();
        kept.extend([bytes.clone(), bytes]);
        if kept.len() < 10 {
            return Vec::new();
        }
        let mut out = std::mem::take(&mut kept);
        out.reverse();
        out
    });
    moves_on(stand)?;
    let status = stand.wait_mode("active")?;
    let (late, twice) = (status.drops("out_of_order"), status.drops("duplicate"));
    if late == 0 || twice == 0 {
        return Err(format!(
            "{late} counted as out of order, {twice} as duplicate"
        ));
    }
    Ok(format!(
        "followed on; dropped out_of_order {late}, duplicate {twice}"
    ))
}

fn burst(stand: &mut Stand) -> Result<String, String> {
    stand.follow()?;
    for _ in 0..2 {
        let mut done = false;
        stand.hand.edit(move |p| {
            let length = if std::mem::replace(&mut done, true) {
                1
            } else {
                1000
            };
            (0..length)
                .map(|i| {
                    emit(&Packet {
                        sender_time_s: p.sender_time_s + 1e-6 * f64::from(i),
                        ..*p
                    })
                    .to_vec()
                })
                .collect()
        });
        stand.hand.wait_sent(1010);
    }
    let status = stand.wait_mode("active")?;
    moves_on(stand)?;
    if status.accepted() < 1000 {
        return Err(format!("only {} packets were taken", status.accepted()));
    }
    Ok(format!("followed on; {} packets taken", status.accepted()))
}

fn second_sender(stand: &mut Stand) -> Result<String, String> {
    stand.follow()?;
    let other = UdpSocket::bind("127.0.0.1:0").map_err(text)?;
    let to = ("127.0.0.1", stand.port);
    let send = |packet: &Packet| other.send_to(&emit(packet), to);
    let place = Vector3::new(0.9, 0.5, 1.5);
    let far = hand::packet(place, UnitQuaternion::identity(), 0.0, true, false);
    for tick in 0..50 {
        let packet = Packet {
            sender_time_s: 900.0 + 0.02 * f64::from(tick),
            ..far
        };
        send(&packet).map_err(text)?;
        pause(20);
    }
    let stop = hand::packet(place, UnitQuaternion::identity(), 0.0, true, true);
    let refused = stand.wait_mode("active")?.drops("other_sender");
    if refused < 40 {
        return Err(format!("only {refused} of its 50 packets were refused"));
    }
    send(&stop).map_err(text)?;
    let stopped = clock::now();
    stand.wait_mode("stopped")?;
    pause(300);
    stand.still_since(stopped + super::BRAKING)?;
    Ok(format!("{refused} of 50 refused, stopped by its stop bit"))
}

fn clock_step(stand: &mut Stand) -> Result<String, String> {
    stand.follow()?;
    stand.hand.set(|h| h.clock_s += 5.0);
    moves_on(stand)?;
    stand.wait_mode("active")?;
    stand.hand.set(|h| h.clock_s -= 5.0);
    let back = clock::now();
    stand.wait_mode("ready")?;
    pause(300);
    stand.still_since(back + super::BRAKING + super::RESUME)?;
    stand.inert_then_follow()?;
    Ok("ahead: followed on; back: a new session, inert until engaged".to_owned())
}

fn frozen_stream(stand: &mut Stand) -> Result<String, String> {
    stand.follow()?;
    let mut first: Option<Packet> = None;
    let from = clock::now();
    stand.hand.edit(move |p| {
        let frozen = *first.get_or_insert(*p);
        vec![
            emit(&Packet {
                sender_time_s: p.sender_time_s,
                ..frozen
            })
            .to_vec(),
        ]
    });
    holds_and_resumes(stand, "tracking_frozen", from, |s| s.hand.honest())
}

fn jump(stand: &mut Stand) -> Result<String, String> {
    stand.follow()?;
    let from = clock::now();
    stand.hand.set(|h| h.position.x += 0.3);
    // The hold may be over before it is seen in the status; that nothing jumped is seen on the bus.
    pause(400);
    stand.wait_mode("active")?;
    let forward = {
        let mut targets = stand.tap().since(from);
        let first = targets.next().map_or(0.0, |t| t.pose.position().x);
        targets
            .next_back()
            .map_or(0.0, |t| t.pose.position().x - first)
    };
    moves_on(stand)?;
    if forward.abs() > 0.05 {
        return Err(format!("{:.0} mm of the jump were followed", forward * 1e3));
    }
    Ok(format!(
        "went on; {:.1} mm of the 300 were followed",
        forward.abs() * 1e3
    ))
}

fn turn_flicker(stand: &mut Stand) -> Result<String, String> {
    stand.hand.set(|h| h.sway_m = 0.0);
    stand.engage()?;
    let since = clock::now();
    for length in [1_u64, 2, 5, 20] {
        let turned = UnitQuaternion::from_euler_angles(0.0, 0.0, 90_f64.to_radians());
        stand.hand.set(|h| h.rotation = turned);
        stand.hand.wait_sent(length);
        stand.hand.set(|h| h.rotation = UnitQuaternion::identity());
        stand.hand.wait_sent(15);
    }
    let (way_m, turn) = stand.tap().strayed(since);
    let text = format!(
        "strayed {:.1} mm and {:.2} deg",
        way_m * 1e3,
        turn.to_degrees()
    );
    if turn > 2_f64.to_radians() || way_m > 0.005 {
        return Err(text);
    }
    stand.follow()?;
    Ok(text)
}

fn quaternion_sign(stand: &mut Stand) -> Result<String, String> {
    stand.follow()?;
    let mut sign = 1.0;
    stand.hand.edit(move |p| {
        sign = -sign;
        let flipped = p.orientation_xyzw.map(|c| sign * c);
        vec![
            emit(&Packet {
                orientation_xyzw: flipped,
                ..*p
            })
            .to_vec(),
        ]
    });
    stand.never("taken for a jump", 1500, |s| {
        s.mode() == "holding" && s.detail() == "tracking_jumped"
    })?;
    moves_on(stand)?;
    Ok("followed on".to_owned())
}

fn frame_unverified(stand: &mut Stand) -> Result<String, String> {
    stand.wait("that reason", |s| s.has("frame_unverified"))?;
    stand.hand.set(|h| h.sway_m = 0.05);
    let since = clock::now();
    stand.ask(&Request::Engage(None))?;
    stand.never("it engaged", 600, |s| s.mode() == "active")?;
    stand.still_since(since)?;
    Ok("not engaged: frame_unverified".to_owned())
}
