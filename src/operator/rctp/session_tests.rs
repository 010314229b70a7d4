//! A fake clock and hand-made packets.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use super::*;
use crate::operator::gesture::EngageBy;
use crate::operator::rctp::wire::{Flags, Packet};
use proptest::prelude::*;

const TRACKED: Packet = Packet {
    sender_time_s: 100.0,
    position_m: [0.1, 0.2, 0.3],
    orientation_xyzw: [0.0, 0.0, 0.0, 1.0],
    gripper: 0.5,
    flags: Flags(1),
};

/// A session under a 50 Hz sender; every packet is counted, and counted out again at the end.
struct Stream {
    session: Session,
    packet: Packet,
    now_ms: u64,
}

impl Stream {
    fn new() -> Self {
        Self::with(EngageBy::Command)
    }

    fn with(engage: EngageBy) -> Self {
        let settings = Settings {
            engage,
            ..Settings::on_loopback(0)
        };
        Self {
            session: Session::new(&settings),
            packet: TRACKED,
            now_ms: 5000,
        }
    }

    /// 20 ms later, the next packet, edited for this one time.
    fn next(&mut self, edit: impl FnOnce(&mut Packet)) -> Verdict {
        self.now_ms += 20;
        self.packet.sender_time_s += 0.02;
        let mut packet = self.packet;
        edit(&mut packet);
        self.session
            .on_datagram(&wire::emit(&packet), Stamp::from_ms(self.now_ms))
    }

    fn sample(&mut self, edit: impl FnOnce(&mut Packet)) -> OperatorSample {
        match self.next(edit).body {
            Body::Sample(sample) => sample,
            Body::Drop(reason) => panic!("dropped: {}", DROP_REASONS[usize::from(reason)]),
        }
    }

    fn quality(&mut self, edit: impl FnOnce(&mut Packet)) -> Quality {
        self.sample(edit).quality
    }
}

/// Guards: axes. Pushing forward and turning left look the same inside, whichever hand rule the sender has.
#[test]
fn both_frames_meet_in_ours() {
    for (frame, forward_z, left_qy) in [
        (super::super::Frame::OpenxrRh, -0.25, 0.5f32),
        (super::super::Frame::UnityLh, 0.25, -0.5),
    ] {
        let mut session = Session::new(&Settings {
            frame,
            ..Settings::on_loopback(0)
        });
        let packet = Packet {
            position_m: [0.0, 0.0, forward_z],
            orientation_xyzw: [0.0, left_qy, 0.0, 0.75f32.sqrt()],
            ..TRACKED
        };
        let Body::Sample(sample) = session
            .on_datagram(&wire::emit(&packet), Stamp::from_ms(1))
            .body
        else {
            panic!()
        };
        let pose = sample.pose.unwrap();
        assert!((pose.position() - Vector3::new(0.25, 0.0, 0.0)).norm() < 1e-9);
        let yaw = UnitQuaternion::from_euler_angles(0.0, 0.0, 60f64.to_radians());
        assert!(
            crate::geometry::angle_between(pose.rotation(), yaw) < 1e-6,
            "{frame:?}"
        );
    }
}

/// Guards: a sender that flips the quaternion's sign on every packet gives bit for bit the samples of one that does not, through a whole
/// turn of yaw and beyond, and the sign is continuous.
#[test]
fn flipped_signs_give_identical_samples() {
    let (mut plain, mut flipped) = (Stream::new(), Stream::new());
    let mut last: Option<UnitQuaternion<f64>> = None;
    for i in 0..200u32 {
        let yaw = f64::from(i) * 5f64.to_radians();
        let q = UnitQuaternion::from_euler_angles(0.1, yaw, 0.2);
        let xyzw = [q.i as f32, q.j as f32, q.k as f32, q.w as f32];
        let a = plain.sample(|p| p.orientation_xyzw = xyzw);
        let b = flipped
            .sample(|p| p.orientation_xyzw = if i % 2 == 0 { xyzw } else { xyzw.map(|c| -c) });
        let (qa, qb) = (a.pose.unwrap().rotation(), b.pose.unwrap().rotation());
        assert_eq!(
            qa.coords.map(f64::to_bits),
            qb.coords.map(f64::to_bits),
            "{i}"
        );
        assert_eq!((a, a.quality), (b, Quality::Good), "{i}");
        if let Some(last) = last {
            assert!((qa.coords - last.coords).norm() < 0.1, "{i}: sign jumped");
        }
        last = Some(qa);
    }
}

/// Guards: half turns with w = 0, where the sign is decided by the vector part, zeros of both signs included.
#[test]
fn half_turns_have_one_sign() {
    for xyzw in [
        [0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 1.0, -0.0],
        [1.0, -0.0, 0.0, 0.0f32],
    ] {
        let one = Stream::new().sample(|p| p.orientation_xyzw = xyzw);
        let other = Stream::new().sample(|p| p.orientation_xyzw = xyzw.map(|c| -c));
        assert_eq!(one, other, "{xyzw:?}");
    }
}

/// Guards: losing the hand gives no pose and no opening, and its return is a new reference even without any jump.
#[test]
fn return_of_the_hand_is_a_new_reference() {
    let mut stream = Stream::new();
    assert_eq!(stream.sample(|_| {}).edges.reference, 0);
    let lost = stream.sample(|p| {
        p.flags = Flags(0);
        p.position_m = [f32::NAN; 3];
        p.gripper = 0.0;
    });
    assert_eq!(
        (lost.quality, lost.pose, lost.opening),
        (Quality::Untracked, None, None)
    );
    let back = stream.sample(|_| {});
    assert_eq!((back.quality, back.edges.reference), (Quality::Good, 1));
    assert_eq!(stream.sample(|_| {}).edges.reference, 1);
}

/// Guards: a jump is held and counted once; the third agreeing sample is good and a new reference.
#[test]
fn jump_is_held_then_referenced() {
    let mut stream = Stream::new();
    stream.sample(|_| {});
    stream.packet.position_m[0] += 0.5;
    assert_eq!(stream.quality(|_| {}), Quality::Jumped);
    assert_eq!(stream.quality(|_| {}), Quality::Jumped);
    let settled = stream.sample(|_| {});
    assert_eq!(
        (settled.quality, settled.edges.reference),
        (Quality::Good, 1)
    );
    assert_eq!(stream.session.counts().jumps, 1);
}

/// Guards: a frozen stream is noticed with the 25th equal pose; the first different one is good again and a new reference. The sign of
/// the quaternion does not hide a frozen stream.
#[test]
fn frozen_stream_is_not_usable() {
    let mut stream = Stream::new();
    for i in 1..=30 {
        let expect = if i < 25 {
            Quality::Good
        } else {
            Quality::Frozen
        };
        let sign = if i % 2 == 0 { 1.0 } else { -1.0 };
        assert_eq!(
            stream.quality(|p| p.orientation_xyzw[3] = sign),
            expect,
            "{i}"
        );
    }
    stream.packet.position_m[2] += 0.001;
    let moved = stream.sample(|_| {});
    assert_eq!((moved.quality, moved.edges.reference), (Quality::Good, 1));
}

/// Guards: a restarted sender begins a new session: counted, no jump measured across, gesture forgotten.
#[test]
fn restart_begins_a_new_session() {
    let mut stream = Stream::new();
    stream.sample(|_| {});
    stream.packet.sender_time_s = 1.0;
    stream.packet.position_m = [-0.4, 1.4, 0.9];
    let first = stream.sample(|_| {});
    assert_eq!((first.edges.session, first.quality), (1, Quality::Good));
    assert_eq!(stream.session.counts().restarts, 1);
    assert_eq!(stream.sample(|_| {}).edges.session, 1);
}

/// Guards: an untracked packet takes part in ordering when its time is finite, and not otherwise.
#[test]
fn untracked_packets_are_ordered_too() {
    let mut stream = Stream::new();
    stream.sample(|_| {});
    let late = stream.next(|p| {
        p.flags = Flags(2);
        p.sender_time_s -= 0.5;
    });
    assert_eq!(
        (late.stop, late.body),
        (true, Body::Drop(OUT_OF_ORDER)),
        "late, and the stop counts"
    );
    assert_eq!(
        stream.quality(|p| *p = Packet {
            flags: Flags(0),
            sender_time_s: f64::NAN,
            ..*p
        }),
        Quality::Untracked
    );
    let again = stream.session.last_sender_time();
    assert_eq!(stream.quality(|p| p.flags = Flags(0)), Quality::Untracked);
    assert!(stream.session.last_sender_time() > again);
}

/// Guards: breaks from outside. A new owner's clock starts afresh, after an absence the same sender's late packets stay late.
#[test]
fn breaks_begin_a_new_session() {
    let mut stream = Stream::new();
    stream.sample(|_| {});
    stream.session.on_break(Break::Away);
    assert_eq!(
        stream.next(|p| p.sender_time_s -= 0.5).body,
        Body::Drop(OUT_OF_ORDER)
    );
    assert_eq!(stream.sample(|_| {}).edges.session, 1);
    stream.session.on_break(Break::NewOwner);
    let taken = stream.sample(|p| p.sender_time_s -= 0.5);
    assert_eq!(taken.edges.session, 2);
    assert_eq!(
        stream.session.counts().restarts,
        0,
        "another owner is no restart"
    );
}

/// Guards: refused packets change nothing: the same good packets give the same samples with any rubbish in between.
#[test]
fn rubbish_changes_nothing() {
    let (mut clean, mut dirty) = (
        Stream::with(EngageBy::PinchHold),
        Stream::with(EngageBy::PinchHold),
    );
    for i in 0..300u32 {
        let gripper = if (40..90).contains(&i) { 0.05 } else { 0.95 };
        let shake = (f64::from(i) * 1.7).sin() as f32 * 5e-4;
        let edit = |p: &mut Packet| {
            p.gripper = gripper;
            p.position_m[0] += shake;
        };
        let a = clean.sample(edit);
        let now = Stamp::from_ms(dirty.now_ms + 10);
        let good = wire::emit(&dirty.packet);
        let mut nan = good;
        nan[14] = 0xC0;
        nan[15] = 0x7F;
        for rubbish in [&good[..44], &nan[..], b"RCTP", &[0xFF; 64], &good[..]] {
            let verdict = dirty.session.on_datagram(rubbish, now);
            // The last one is the packet before again (before the first: a packet that nobody refuses, so it is left out).
            if i > 0 || rubbish.len() != 45 || rubbish[14] == 0xC0 {
                assert!(matches!(verdict.body, Body::Drop(_)), "{i} {verdict:?}");
            } else {
                dirty.session = Stream::with(EngageBy::PinchHold).session;
            }
        }
        let b = dirty.sample(edit);
        assert_eq!(a, b, "{i}");
    }
    assert_eq!(
        clean.session.counts().engages,
        1,
        "the gesture worked through the rubbish"
    );
    assert_eq!(clean.session.counts(), dirty.session.counts());
}

/// Guards: five packets in reversed order: the newest is used, the others are late, the stop bit of a late one still counts.
#[test]
fn reorder_by_five() {
    let mut stream = Stream::new();
    stream.sample(|_| {});
    let packets: Vec<_> = (1..=5)
        .map(|i| {
            let mut p = TRACKED;
            p.sender_time_s = 100.02 + 0.02 * f64::from(i);
            p.flags = Flags(if i == 2 { 3 } else { 1 });
            wire::emit(&p)
        })
        .collect();
    let verdicts: Vec<_> = packets
        .iter()
        .rev()
        .map(|p| stream.session.on_datagram(p, Stamp::from_ms(5100)))
        .collect();
    assert!(matches!(verdicts[0].body, Body::Sample(_)));
    assert!(
        verdicts[1..]
            .iter()
            .all(|v| v.body == Body::Drop(OUT_OF_ORDER))
    );
    assert_eq!(verdicts.iter().filter(|v| v.stop).count(), 1);
}

/// Guards: a burst after a hitch is taken packet by packet; the newest is what remains.
#[test]
fn burst_ends_with_the_newest() {
    let mut stream = Stream::new();
    stream.sample(|_| {});
    let now = Stamp::from_ms(stream.now_ms + 200);
    for _ in 0..1000 {
        stream.packet.sender_time_s += 0.02;
        stream.packet.position_m[0] += 1e-5;
        let verdict = stream.session.on_datagram(&wire::emit(&stream.packet), now);
        assert!(matches!(verdict.body, Body::Sample(s) if s.quality == Quality::Good));
    }
    assert_eq!(
        stream.session.last_sender_time().unwrap().as_s(),
        stream.packet.sender_time_s
    );
}

/// Guards: the hold-to-run state travels in the sample, and is released by an untracked hand.
#[test]
fn clutch_travels_in_the_sample() {
    let mut stream = Stream::with(EngageBy::Clutch);
    stream.packet.gripper = 0.1;
    stream.sample(|_| {});
    assert_eq!(stream.sample(|_| {}).clutch_pressed, Some(true));
    assert_eq!(
        stream.sample(|p| p.flags = Flags(0)).clutch_pressed,
        Some(false)
    );
    assert_eq!(Stream::new().sample(|_| {}).clutch_pressed, None);
}

proptest! {
    /// Guards: whatever arrives, at whatever time: no panic, samples are finite and unit, edge counters never fall, and a refused
    /// packet changes no edge.
    #[test]
    fn any_stream_is_survived(packets in proptest::collection::vec((any::<u64>(), proptest::array::uniform8(any::<u32>()), any::<u8>(), any::<bool>(), 0u64..2000), 1..60)) {
        let mut session = Stream::with(EngageBy::PinchHold).session;
        let mut now_ms = 0;
        let mut last = Edges::default();
        for (time, fields, flags, sane, dt_ms) in packets {
            now_ms += dt_ms;
            let f = fields.map(f32::from_bits);
            let small = fields.map(|b| (b % 2000) as f32 * 1e-3 - 1.0);
            let packet = if sane {
                Packet { sender_time_s: (time % 100) as f64 * 0.1, position_m: [small[0], small[1], small[2]], orientation_xyzw: [0.0, small[3].signum(), 0.0, 0.0], gripper: small[4].abs(), flags: Flags(flags | 1) }
            } else {
                Packet { sender_time_s: f64::from_bits(time), position_m: [f[0], f[1], f[2]], orientation_xyzw: [f[3], f[4], f[5], f[6]], gripper: f[7], flags: Flags(flags) }
            };
            let verdict = session.on_datagram(&wire::emit(&packet), Stamp::from_ms(now_ms));
            prop_assert_eq!(verdict.stop, packet.flags.is_stop());
            let edges = *session.edges();
            match verdict.body {
                Body::Sample(sample) => {
                    prop_assert!(sample.edges.session >= last.session && sample.edges.reference >= last.reference && sample.edges.engage >= last.engage);
                    if let Some(pose) = sample.pose {
                        prop_assert!(pose.is_finite());
                        prop_assert!((pose.rotation().norm() - 1.0).abs() < 1e-12);
                    }
                }
                Body::Drop(reason) => {
                    prop_assert!(usize::from(reason) < DROP_REASONS.len());
                    prop_assert_eq!(edges, last);
                }
            }
            last = edges;
        }
    }
}
