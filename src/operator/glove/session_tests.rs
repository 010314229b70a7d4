//! One hand's stream, packet by packet, with a fake clock.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic
)]

use super::*;
use crate::operator::emulate::Ticks;
use crate::operator::glove::emulate::{
    Config, Emulator, HandConfig, Posture, Protocol as Sends, Script,
};

/// A right hand that listens to both protocols, and packets for it.
struct Rig {
    session: Session,
    now_ms: u64,
    number: u32,
}

fn rig(experimental_fsnh: bool) -> Rig {
    Rig {
        session: Session::new(&Settings {
            experimental_fsnh,
            ..Settings::on_loopback(0, Hand::Right)
        }),
        now_ms: 1000,
        number: 0,
    }
}

/// One packet of an emulated hand; the script and the second say what it does.
fn packet(sends: Sends, hand: Hand, script: Script, tick: u32) -> Vec<u8> {
    let mut emulator = Emulator::new(Config {
        hands: vec![HandConfig::new(hand)],
        protocol: sends,
        script,
        ..Config::default()
    });
    let mut bytes = emulator.step().remove(0).bytes;
    for _ in 0..tick % 16 {
        // Other noise with every tick.
        bytes = emulator.step().remove(0).bytes;
    }
    bytes[8..12].copy_from_slice(&tick.to_le_bytes());
    let time_ns = 1_000_000_000 + u64::from(tick) * 8_000_000;
    bytes[12..20].copy_from_slice(&time_ns.to_le_bytes());
    bytes
}

impl Rig {
    fn take(&mut self, bytes: &[u8]) -> Result<OperatorSample, &'static str> {
        match self
            .session
            .on_datagram(bytes, Stamp::from_ms(self.now_ms))
            .body
        {
            Body::Sample(sample) => Ok(sample),
            Body::Drop(reason) => Err(DROP_REASONS[usize::from(reason)]),
        }
    }

    /// The next packet of the hand, 8 ms later.
    fn next(&mut self, script: Script) -> OperatorSample {
        self.next_with(script, |_| {}).unwrap()
    }

    fn next_with(
        &mut self,
        script: Script,
        edit: impl Fn(&mut Vec<u8>),
    ) -> Result<OperatorSample, &'static str> {
        self.now_ms += 8;
        self.number += 1;
        let mut bytes = packet(Sends::Fnim, Hand::Right, script, self.number);
        edit(&mut bytes);
        self.take(&bytes)
    }
}

/// Marks FNIM slots as not valid.
fn without(slots: &[usize]) -> impl Fn(&mut Vec<u8>) {
    move |bytes| {
        for slot in slots {
            bytes[24 + 32 * slot + 28] = 0;
        }
    }
}

/// Guards: open and pinched hands give both ends of the opening, and never a pose.
#[test]
fn opening_follows_thumb_and_index() {
    let mut rig = rig(false);
    let open = rig.next(Script::Open);
    assert!(open.opening.unwrap().get() > 0.97, "{open:?}");
    assert_eq!((open.pose, open.leader_joints_len), (None, 0));
    assert!(rig.next(Script::Pinch).opening.unwrap().get() < 0.03);
}

/// Guards: thumb or index not usable leaves the gripper as it is and the clutch as it was; ring or pinky not usable lets go of the
/// clutch and leaves the opening; no finger at all is a hand that is not seen, whatever the forearm says.
#[test]
fn each_use_needs_its_own_fingers() {
    let mut rig = rig(false);
    rig.next(Script::Open);
    assert_eq!(rig.next(Script::Curl).clutch_pressed, Some(true));
    for slots in [&[0][..], &[1], &[0, 1, 2, 5]] {
        let sample = rig.next_with(Script::Curl, without(slots)).unwrap();
        assert_eq!(
            (sample.opening, sample.clutch_pressed, sample.quality),
            (None, Some(true), Quality::Good)
        );
    }
    let sample = rig.next_with(Script::Curl, without(&[4])).unwrap();
    assert!(sample.opening.is_some());
    assert_eq!(sample.clutch_pressed, Some(false));
    assert_eq!(
        rig.next(Script::Curl).clutch_pressed,
        Some(false),
        "it has to be let go for real first"
    );
    let sample = rig
        .next_with(Script::Open, without(&[0, 1, 2, 3, 4]))
        .unwrap();
    assert_eq!(
        (sample.quality, sample.opening, sample.clutch_pressed),
        (Quality::Untracked, None, Some(false))
    );
    assert_eq!(rig.session.counts().untracked, 1);
}

/// Guards: the other hand's packets, FSNH without permission, and packets of neither kind are refused by name and change nothing.
#[test]
fn refused_by_name() {
    let mut rig = rig(false);
    rig.next(Script::Open);
    let left = packet(Sends::Fnim, Hand::Left, Script::Pinch, 90);
    assert_eq!(rig.take(&left), Err("other_hand"));
    let joints = packet(Sends::Fsnh, Hand::Right, Script::Pinch, 90);
    assert_eq!(rig.take(&joints), Err("fsnh_off"));
    assert_eq!(rig.take(&joints[..240]), Err("bad_magic"));
    assert_eq!(rig.take(&joints[..611]), Err("bad_length"));
    rig.now_ms += 8;
    let again = packet(Sends::Fnim, Hand::Right, Script::Open, 1);
    assert_eq!(rig.take(&again), Err("duplicate"));
    let counts = rig.session.counts();
    assert_eq!((counts.lost, counts.restarts, counts.untracked), (0, 0, 0));
}

/// Guards: a packet is claimed by its hand's operator, allowed or not, and by nobody when it is broken.
#[test]
fn packets_are_claimed_by_their_hand() {
    let rig = rig(false);
    for sends in [Sends::Fnim, Sends::Fsnh] {
        let own = packet(sends, Hand::Right, Script::Open, 1);
        assert!(rig.session.claims(&own));
        assert!(!rig.session.claims(&own[1..]));
        let other = packet(sends, Hand::Left, Script::Open, 1);
        assert!(!rig.session.claims(&other));
    }
}

/// Guards: FSNH gives the same opening and clutch where it is allowed; one bad joint, used or not, makes the hand unusable.
#[test]
fn fsnh_where_allowed() {
    let mut rig = rig(true);
    let mut take = |script, number, edit: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = packet(Sends::Fsnh, Hand::Right, script, number);
        edit(&mut bytes);
        rig.take(&bytes).unwrap()
    };
    assert!(take(Script::Open, 1, &|_| {}).opening.unwrap().get() > 0.97);
    let curled = take(Script::Curl, 2, &|_| {});
    assert_eq!(curled.clutch_pressed, Some(true));
    assert!(take(Script::Pinch, 3, &|_| {}).opening.unwrap().get() < 0.03);
    let bad = take(Script::Curl, 4, &|bytes| bytes[24 + 28 * 7 + 15] = 0);
    assert_eq!((bad.quality, bad.opening), (Quality::Untracked, None));
}

/// Guards: one hand follows one protocol: the other one is refused while the first is there, and begins a new session after it.
#[test]
fn one_protocol_at_a_time() {
    let mut rig = rig(true);
    rig.next(Script::Open);
    let joints = packet(Sends::Fsnh, Hand::Right, Script::Open, 900);
    rig.now_ms += 250;
    assert_eq!(rig.take(&joints), Err("other_protocol"));
    rig.now_ms += 1;
    let sample = rig.take(&joints).unwrap();
    assert_eq!(sample.edges.session, 1);
    let back = rig.next_with(Script::Open, |_| {});
    assert_eq!(back, Err("other_protocol"));
}

/// Guards: by the time that control holds, the clutch counts as let go: a hand that is still curled when the packets come back is inert.
/// A shorter gap does nothing.
#[test]
fn a_pause_lets_go_of_the_clutch() {
    let mut rig = rig(false);
    rig.next(Script::Open);
    rig.next(Script::Curl);
    rig.now_ms += 42;
    assert_eq!(rig.next(Script::Curl).clutch_pressed, Some(true), "50 ms");
    rig.now_ms += 43;
    assert_eq!(rig.next(Script::Curl).clutch_pressed, Some(false), "51 ms");
    rig.next(Script::Open);
    assert_eq!(rig.next(Script::Curl).clutch_pressed, Some(true));
}

/// Guards: a restart of the sender and a break from outside begin a session with the clutch let go.
#[test]
fn sessions_begin_with_the_clutch_let_go() {
    let mut rig = rig(false);
    let curl = |rig: &mut Rig| {
        rig.next(Script::Open);
        assert_eq!(rig.next(Script::Curl).clutch_pressed, Some(true));
    };
    curl(&mut rig);
    let restarted = rig
        .next_with(Script::Curl, |b| b[12..20].copy_from_slice(&[0; 8]))
        .unwrap();
    // The clock fell back by about one second and a bit.
    assert_eq!(
        (restarted.edges.session, restarted.clutch_pressed),
        (1, Some(false))
    );
    for (session, why) in [(2, Break::Away), (3, Break::NewOwner)] {
        curl(&mut rig);
        rig.session.on_break(why);
        let sample = rig.next(Script::Curl);
        assert_eq!(
            (sample.edges.session, sample.clutch_pressed),
            (session, Some(false))
        );
    }
    assert_eq!(rig.session.counts().restarts, 1);
}

/// Guards: a sender that repeats the same measures with new numbers is found out after half a second: no opening, no clutch, until
/// something moves; the clutch has to be let go then.
#[test]
fn repeated_measures_are_frozen() {
    let mut rig = rig(false);
    rig.next(Script::Open);
    let fixed = packet(Sends::Fnim, Hand::Right, Script::Curl, 3);
    let repeat = |rig: &mut Rig| {
        rig.next_with(Script::Curl, |bytes| {
            bytes[24..216].copy_from_slice(&fixed[24..216])
        })
        .unwrap()
    };
    for i in 1..FROZEN_AFTER {
        let sample = repeat(&mut rig);
        assert_eq!(
            (sample.quality, sample.clutch_pressed),
            (Quality::Good, Some(true)),
            "{i}"
        );
    }
    let sample = repeat(&mut rig);
    assert_eq!(
        (sample.quality, sample.opening, sample.clutch_pressed),
        (Quality::Frozen, None, Some(false))
    );
    let sample = rig.next(Script::Curl);
    assert_eq!(
        (sample.quality, sample.clutch_pressed),
        (Quality::Good, Some(false))
    );
    assert_eq!(rig.session.counts().frozen, 1);
}

/// Guards: fields that the document leaves at zero are accepted and counted when they are not.
#[test]
fn undefined_bits_are_counted() {
    let mut rig = rig(false);
    for (i, (at, value)) in [(6, 7), (24 + 29, 1), (24 + 28, 2)].into_iter().enumerate() {
        rig.next_with(Script::Open, |bytes| bytes[at] = value)
            .unwrap();
        assert_eq!(rig.session.counts().reserved_bits, i as u64 + 1);
    }
}

/// Guards: the rig's hands do what their names say.
#[test]
fn scripts_of_the_rig() {
    let posture = |script: Script| script.at(0.0);
    let expect = |opening, curl| Posture { opening, curl };
    assert_eq!(posture(Script::Open), expect(1.0, 0.0));
    assert_eq!(posture(Script::Pinch), expect(0.0, 0.0));
    assert_eq!(posture(Script::Curl), expect(1.0, 1.0));
}
