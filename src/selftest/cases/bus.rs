//! What the bus does wrong.

use std::time::{Duration, Instant};

use super::{BRAKING, moves_on};
use crate::arm::piper::wire::EndPose;
use crate::rt::clock;
use crate::selftest::Fault;
use crate::selftest::stand::{Setup, Stand, pause};
use crate::selftest::tap::Allowed;

/// A bus that breaks may cut a pose off.
fn may_cut() -> Setup {
    Setup {
        allowed: Allowed {
            arm_stop: false,
            cut_off: true,
        },
        ..Setup::default()
    }
}

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        name: "bus_down",
        what: "interface down, then up",
        expected: "fault by name; up: inert",
        setup: may_cut,
        play: |stand| {
            breaks_and_comes_back(
                stand,
                |s| {
                    s.bus.set_down(true);
                    Ok(())
                },
                |s| {
                    s.bus.set_down(false);
                    Ok(())
                },
            )
        },
    },
    Fault {
        name: "bus_gone",
        what: "adapter pulled, then plugged in",
        expected: "fault by name; back: inert",
        setup: may_cut,
        play: |stand| {
            breaks_and_comes_back(
                stand,
                |s| s.bus.set_gone(true).map_err(crate::selftest::stand::text),
                |s| s.bus.set_gone(false).map_err(crate::selftest::stand::text),
            )
        },
    },
    Fault {
        name: "bus_off",
        what: "controller bus-off, then restarted",
        expected: "fault by name; back: inert",
        setup: may_cut,
        play: |stand| {
            breaks_and_comes_back(
                stand,
                |s| {
                    s.bus.bus_off();
                    Ok(())
                },
                |s| {
                    s.bus.restart();
                    Ok(())
                },
            )
        },
    },
    Fault {
        name: "no_acknowledge",
        what: "nobody acknowledges",
        expected: "fault by name; back: nothing old is sent",
        setup: may_cut,
        play: |stand| {
            breaks_and_comes_back(
                stand,
                |s| {
                    s.bus.set_acknowledged(false);
                    Ok(())
                },
                |s| {
                    s.bus.set_acknowledged(true);
                    Ok(())
                },
            )
        },
    },
    Fault {
        name: "queue_full",
        what: "send queue full for 40 ms at a time",
        expected: "commands left out, no jump, followed on",
        setup: may_cut,
        play: queue_full,
    },
    Fault {
        name: "foreign_command",
        what: "another node commands the arm",
        expected: "fault foreign_command; gone: inert",
        setup: Setup::default,
        play: foreign_command,
    },
];

type Step = fn(&mut Stand) -> Result<(), String>;

fn breaks_and_comes_back(stand: &mut Stand, breaks: Step, mends: Step) -> Result<String, String> {
    stand.follow()?;
    let from = clock::now();
    breaks(stand)?;
    let status = stand.wait_mode("fault")?;
    let (after, fault) = (clock::now().age_of(from), status.mode_text());
    pause(300);
    let back = clock::now();
    mends(stand)?;
    pause(300);
    // Whatever was queued before must not come out now.
    stand.still_since(back)?;
    stand.hand.set(|h| h.sway_m = 0.0);
    stand.wait_up()?;
    stand.reset_and_follow()?;
    Ok(format!(
        "{fault} after {:.0} ms; followed after reset and engage",
        after.as_ms()
    ))
}

fn queue_full(stand: &mut Stand) -> Result<String, String> {
    stand.follow()?;
    let mut longest = Duration::ZERO;
    for _ in 0..5 {
        let began = Instant::now();
        stand.bus.set_full(true);
        std::thread::sleep(Duration::from_millis(40));
        stand.bus.set_full(false);
        longest = longest.max(began.elapsed());
        pause(300);
        // A busy machine may stretch it beyond the limit, and then it is a broken bus.
        if longest > Duration::from_millis(80) {
            stand.hand.set(|h| h.sway_m = 0.0);
            stand.wait_up()?;
            stand.reset()?;
            stand.follow()?;
            longest = Duration::ZERO;
        }
    }
    let status = stand.status()?;
    if status.mode() != "active" {
        return Err(format!("it is {}", status.short()));
    }
    moves_on(stand)?;
    let left_out = status
        .0
        .pointer("/lanes/0/not_sent")
        .and_then(serde_json::Value::as_u64)
        .unwrap_or(0);
    Ok(format!("{left_out} commands left out, followed on"))
}

fn foreign_command(stand: &mut Stand) -> Result<String, String> {
    stand.follow()?;
    let pose = stand.tap().last_target().ok_or("no target was seen")?.raw;
    let foreign: [_; 3] = EndPose { ..pose }.frames();
    stand.bus.inject(&foreign);
    stand.wait_fault("foreign_command")?;
    let seen = clock::now();
    pause(300);
    stand.still_since(seen + BRAKING)?;
    stand.hand.set(|h| h.sway_m = 0.0);
    stand.wait_up()?;
    stand.reset_and_follow()?;
    Ok("foreign_command; followed after reset and engage".to_owned())
}
