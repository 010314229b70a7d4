//! What gets lost on the way from the hand: the hand itself, or its packets.

use nalgebra::{UnitQuaternion, Vector3};

use super::{BRAKING, holds_and_resumes};
use crate::operator::rctp::wire::{Packet, emit};
use crate::rt::clock;
use crate::selftest::Fault;
use crate::selftest::hand;
use crate::selftest::stand::{Setup, Stand, pause};
use crate::time::Span;

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        name: "tracking_lost_short",
        what: "hand out of view for half a second (zeros)",
        expected: "hold, then on by itself",
        setup: Setup::default,
        play: tracking_lost_short,
    },
    Fault {
        name: "tracking_lost_long",
        what: "hand out of view for longer",
        expected: "disengaged; back: inert",
        setup: Setup::default,
        play: tracking_lost_long,
    },
    Fault {
        name: "link_lost_short",
        what: "no packets for half a second",
        expected: "hold, then on by itself",
        setup: Setup::default,
        play: link_lost_short,
    },
    Fault {
        name: "link_lost_long",
        what: "no packets for longer",
        expected: "disengaged; back: inert",
        setup: Setup::default,
        play: link_lost_long,
    },
];

/// What a headset sends when it does not see the hand.
fn lose_tracking(stand: &Stand) {
    stand.hand.edit(|p| {
        let zeros = hand::packet(
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
                ..zeros
            })
            .to_vec(),
        ]
    });
}

fn tracking_lost_short(stand: &mut Stand) -> Result<String, String> {
    stand.follow()?;
    let from = clock::now();
    lose_tracking(stand);
    holds_and_resumes(stand, "tracking_lost", from, |s| s.hand.honest())
}

fn tracking_lost_long(stand: &mut Stand) -> Result<String, String> {
    stand.follow()?;
    let from = clock::now();
    lose_tracking(stand);
    stand.wait_mode("ready")?;
    let after = clock::now().age_of(from);
    pause(200);
    stand.still_since(from + BRAKING + Span::from_ms(50))?;
    stand.hand.honest();
    stand.inert_then_follow()?;
    Ok(format!(
        "disengaged after {:.0} ms, inert until engaged",
        after.as_ms()
    ))
}

fn link_lost_short(stand: &mut Stand) -> Result<String, String> {
    stand.follow()?;
    let from = clock::now();
    stand.hand.set(|h| h.silent = true);
    holds_and_resumes(stand, "operator_stale", from, |s| {
        s.hand.set(|h| h.silent = false);
    })
}

fn link_lost_long(stand: &mut Stand) -> Result<String, String> {
    stand.follow()?;
    let from = clock::now();
    stand.hand.set(|h| h.silent = true);
    stand.wait_mode("ready")?;
    let after = clock::now().age_of(from);
    pause(1500);
    // The hold limit of the stand, then braking; after that for ever, and not home.
    stand.still_since(from + Span::from_ms(450) + BRAKING)?;
    stand.hand.set(|h| h.silent = false);
    stand.inert_then_follow()?;
    Ok(format!(
        "disengaged after {:.0} ms, inert until engaged",
        after.as_ms()
    ))
}
