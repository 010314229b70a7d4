//! Software stops: by a packet, by the command, and how they are left.

use super::BRAKING;
use crate::app::socket::Request;
use crate::operator::rctp::wire::{Flags, Packet, emit};
use crate::rt::clock;
use crate::selftest::Fault;
use crate::selftest::stand::{Setup, Stand, pause};
use crate::time::Span;

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        name: "one_stop_packet",
        what: "one stop packet in a burst, then 500 good ones",
        expected: "stopped until reset and engaged",
        setup: Setup::default,
        play: one_stop_packet,
    },
    Fault {
        name: "stop_by_command",
        what: "`telearm stop` while following",
        expected: "stopped until reset and engaged",
        setup: Setup::default,
        play: stop_by_command,
    },
    Fault {
        name: "reset_while_asserted",
        what: "reset while the hand still asserts stop",
        expected: "refused until released",
        setup: Setup::default,
        play: reset_while_asserted,
    },
    Fault {
        name: "arm_stop_on_stop",
        what: "stop with on_stop = \"arm_stop\"",
        expected: "arm's own stop, once",
        setup: || Setup {
            lane: "on_stop = \"arm_stop\"",
            allowed: crate::selftest::tap::Allowed {
                arm_stop: true,
                cut_off: false,
            },
            ..Setup::default()
        },
        play: arm_stop_on_stop,
    },
];

fn one_stop_packet(stand: &mut Stand) -> Result<String, String> {
    stand.follow()?;
    // Ten packets each period from here on; the stop is in the middle of the first ten.
    let mut n = 0;
    stand.hand.edit(move |p| {
        (0..10_u16)
            .map(|i| {
                n += 1;
                let stop = if n == 5 { Flags::STOP } else { 0 };
                emit(&Packet {
                    sender_time_s: p.sender_time_s + 1e-4 * f64::from(i),
                    flags: Flags(p.flags.0 | stop),
                    ..*p
                })
                .to_vec()
            })
            .collect()
    });
    let from = clock::now();
    stand.wait_mode("stopped")?;
    stand.hand.wait_sent(500);
    stand.hand.honest();
    stand.never("it left the stop by itself", 300, |s| s.mode() != "stopped")?;
    // The packet leaves within one period of the hand.
    stand.still_since(from + Span::from_ms(30) + BRAKING)?;
    stand.reset_and_follow()?;
    Ok("stopped through 500 good packets; followed after reset and engage".to_owned())
}

fn stop_by_command(stand: &mut Stand) -> Result<String, String> {
    stand.follow()?;
    stand.order(&Request::Stop)?;
    let from = clock::now();
    let status = stand.wait_mode("stopped")?;
    let reason = status.stop_reason().unwrap_or("?").to_owned();
    stand.ask(&Request::Engage(None))?;
    stand.never("it engaged while stopped", 500, |s| s.mode() != "stopped")?;
    stand.still_since(from + BRAKING)?;
    stand.reset_and_follow()?;
    Ok(format!(
        "stopped ({reason}), engage had no effect; followed after reset and engage"
    ))
}

fn reset_while_asserted(stand: &mut Stand) -> Result<String, String> {
    stand.follow()?;
    stand.hand.set(|h| h.stop = true);
    stand.wait_mode("stopped")?;
    pause(100);
    let why = stand.refused(&Request::Reset)?;
    if !why.contains("still asserts") {
        return Err(format!("refused for another reason: {why}"));
    }
    stand.hand.set(|h| h.stop = false);
    pause(100);
    stand.reset_and_follow()?;
    Ok(format!("refused ({why}); granted after the release"))
}

fn arm_stop_on_stop(stand: &mut Stand) -> Result<String, String> {
    stand.follow()?;
    stand.order(&Request::Stop)?;
    let from = clock::now();
    pause(1500);
    stand.still_since(from + BRAKING)?;
    let stops = stand.tap().count(0x150..=0x150);
    if stops != 1 {
        return Err(format!("0x150 was sent {stops} times"));
    }
    let status = stand.status()?;
    if !matches!(status.mode(), "stopped" | "fault") {
        return Err(format!("it is {}", status.short()));
    }
    Ok(format!("0x150 01 once; {}", status.mode_text()))
}
