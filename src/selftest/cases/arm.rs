//! What the arm does wrong, before the start and while it follows.

use super::{BRAKING, moves_on};
use crate::app::socket::Request;
use crate::arm::piper::emulate::{EmulatorFaults, StartState};
use crate::arm::piper::wire::id;
use crate::geometry::angle_between;
use crate::rt::clock;
use crate::selftest::Fault;
use crate::selftest::stand::{Setup, Stand, pause};
use crate::time::Span;

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        name: "arm_silent",
        what: "the arm says nothing any more",
        expected: "fault feedback_lost; back: inert",
        setup: Setup::default,
        play: |stand| faults_and_recovers(stand, "silent", "feedback_lost"),
    },
    Fault {
        name: "motor_silent",
        what: "one motor says nothing any more",
        expected: "fault joint_silent; back: inert",
        setup: Setup::default,
        play: |stand| faults_and_recovers(stand, "joint_silent=3", "joint_silent"),
    },
    Fault {
        name: "joint_fault",
        what: "a driver reports an error",
        expected: "fault motor_error, motors stay on",
        setup: Setup::default,
        play: |stand| faults_and_recovers(stand, "joint_fault=2", "motor_error"),
    },
    Fault {
        name: "joint_hot",
        what: "a motor is too hot",
        expected: "fault over_temperature, motors stay on",
        setup: Setup::default,
        play: |stand| faults_and_recovers(stand, "over_temperature=4", "over_temperature"),
    },
    Fault {
        name: "feedback_frozen",
        what: "feedback flows with the same numbers",
        expected: "the command never leads by more than the leash",
        setup: || Setup {
            // A tight leash, so that a small hand motion meets it.
            lane: "[lane.limits]\nlead_max_mm = 20\nlead_max_deg = 8",
            ..Setup::default()
        },
        play: feedback_frozen,
    },
    Fault {
        name: "already_enabled",
        what: "motors on already at the start",
        expected: "taken up without a drop",
        setup: || Setup {
            start: StartState {
                enabled: true,
                ..Setup::default().start
            },
            ..Setup::default()
        },
        play: already_enabled,
    },
    Fault {
        name: "leader_mode",
        what: "the arm is a leader",
        expected: "fault, nothing is ordered",
        setup: || Setup {
            arm_faults: EmulatorFaults {
                leader: true,
                ..EmulatorFaults::default()
            },
            running: false,
            ..Setup::default()
        },
        play: leader_mode,
    },
    Fault {
        name: "arm_in_its_stop",
        what: "the arm is in its own stop at the start",
        expected: "fault arm_stopped, no reset",
        setup: || Setup {
            start: StartState {
                stopped: true,
                ..Setup::default().start
            },
            running: false,
            ..Setup::default()
        },
        play: arm_in_its_stop,
    },
];

/// A fault of the arm while it follows: named, nothing moves, nothing is cut; gone: a reset and a new act lead back.
fn faults_and_recovers(stand: &mut Stand, fault: &str, name: &str) -> Result<String, String> {
    stand.follow()?;
    let from = clock::now();
    stand.arm_fault(fault, true)?;
    let status = stand.wait_fault(name)?;
    let (seen, text) = (clock::now(), status.mode_text());
    pause(300);
    stand.still_since(seen + BRAKING)?;
    stand.arm_fault(fault, false)?;
    stand.hand.set(|h| h.sway_m = 0.0);
    stand.wait_up()?;
    stand.reset_and_follow()?;
    Ok(format!(
        "{text} after {:.0} ms; followed after cure, reset and engage",
        seen.age_of(from).as_ms()
    ))
}

fn feedback_frozen(stand: &mut Stand) -> Result<String, String> {
    stand.follow()?;
    stand.hand.set(|h| h.sway_m = 0.0);
    pause(500);
    let from = clock::now();
    stand.arm_fault("frozen", true)?;
    pause(100);
    // 10 cm away, at a hand's speed.
    for _ in 0..50 {
        stand.hand.set(|h| h.position.y += 0.002);
        stand.hand.wait_sent(1);
    }
    pause(300);
    let tap = stand.tap();
    let measured = tap.last_measured().ok_or("no feedback was seen")?;
    let lead = tap.since(from).fold(0.0_f64, |lead, t| {
        lead.max((t.pose.position() - measured.position()).norm())
    });
    let turned = tap.since(from).fold(0.0_f64, |most, t| {
        most.max(angle_between(t.pose.rotation(), measured.rotation()))
    });
    let status = stand.status()?;
    let text = format!(
        "led by {:.1} mm of 20, {:.1} deg of 8; {}, slowed: {}",
        lead * 1e3,
        turned.to_degrees(),
        status.mode_text(),
        status.slowed()
    );
    if lead > 0.0205 || turned > 8.2_f64.to_radians() {
        return Err(text);
    }
    if lead < 0.005 {
        return Err(format!("{text}: the hand's motion did not come through"));
    }
    Ok(text)
}

fn already_enabled(stand: &mut Stand) -> Result<String, String> {
    let start = stand.arm.q();
    pause(300);
    let tap = stand.tap();
    let strayed = tap.strayed(crate::time::Stamp::default()).0;
    let off = start
        .iter()
        .zip(Setup::default().start.q)
        .fold(0.0_f64, |most, (q, home)| most.max((q - home).abs()));
    if off > 0.002 || strayed > 0.001 {
        return Err(format!(
            "a joint moved by {:.2} deg, the target by {:.2} mm",
            off.to_degrees(),
            strayed * 1e3
        ));
    }
    stand.follow()?;
    moves_on(stand)?;
    Ok(format!(
        "no joint moved more than {:.3} deg, then followed",
        off.to_degrees()
    ))
}

fn leader_mode(stand: &mut Stand) -> Result<String, String> {
    stand.start()?;
    let status = stand.wait("an arm fault", |s| s.phase() == "faulted")?;
    let why = status.phase_detail().to_owned();
    stand.ask(&Request::Engage(None))?;
    stand.never("it engaged", 500, |s| s.mode() == "active")?;
    let orders = stand.tap().host_frames();
    if orders != 0 {
        return Err(format!("{orders} frames were sent to a leader arm"));
    }
    if why.starts_with("leader_mode") || why.starts_with("foreign_command") {
        Ok(format!("{why}; nothing sent"))
    } else {
        Err(format!("it is called {why}"))
    }
}

fn arm_in_its_stop(stand: &mut Stand) -> Result<String, String> {
    stand.start()?;
    stand.wait_fault("arm_stopped")?;
    let why = stand.refused(&Request::Recover {
        lane: "lane".to_owned(),
        arm_will_drop: false,
    })?;
    let since = clock::now();
    pause(500);
    let tap = stand.tap();
    let poses = tap.count(id::POSE..=id::POSE + 2);
    let quiet = tap
        .last_host_frame()
        .is_none_or(|at| at <= since + Span::from_ms(50));
    if poses != 0 || !quiet {
        return Err(format!("{poses} pose frames were sent to a stopped arm"));
    }
    Ok(format!("arm_stopped; recovery refused: {why}"))
}
