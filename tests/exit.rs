//! The ends of a run: whatever ends it, the last frames on the bus leave the arm at rest on its last target, with its power and without the
//! arm's own stop; the exit status tells; nothing is left behind that keeps the next start from working at once. Table in docs/safety.md.
#![cfg(not(loom))]

#[path = "support/rig/pieces.rs"]
mod pieces;
#[path = "support/rig/mod.rs"]
mod rig;
mod support;

use std::sync::atomic::Ordering;

use rig::tap::Tap;
use rig::{Rig, Setup, Side, pause};
use telearm::app::socket::Request;
use telearm::arm::piper::wire::id;
use telearm::handoff::{SourceId, StopReason};
use telearm::rt::clock;
use telearm::time::{Span, Stamp};

/// The documented end: braked, then the same target again and again, and nothing else after it.
fn assert_at_rest_at_the_end(tap: &Tap, asked: Stamp) {
    let targets = tap.targets();
    let last = targets.last().expect("targets");
    let same = targets
        .iter()
        .rev()
        .take_while(|t| t.raw == last.raw)
        .count();
    assert!(same >= 10, "only {same} targets at rest");
    let rest = targets[targets.len() - same].at;
    assert!(rest.age_of(asked) < Span::from_ms(300), "braked late");
    let end = tap.last_host_frame().unwrap().frame.id;
    assert!(
        (id::MODE..=id::GRIPPER).contains(&end),
        "0x{end:X} at the end"
    );
}

/// The arm is where its last target is.
fn assert_arm_rests(side: &Side) {
    // The emulated arm lags behind its last target, more on a busy machine; it must come to rest, and stay.
    let still = |a: [f64; 6], b: [f64; 6]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4);
    let rests = (0..10).any(|_| {
        let before = side.arm.q();
        pause(200);
        still(before, side.arm.q())
    });
    assert!(side.arm.powered());
    assert!(rests, "still moving: {:?}", side.arm.q());
}

/// The next start works at once, on an arm that has its power already: nothing is ordered of the motors.
fn assert_next_start_works(rig: &mut Rig) {
    let orders = rig.side().tap().count(id::POWER);
    rig.start();
    rig.wait_up();
    assert_eq!(rig.side().tap().count(id::POWER), orders);
    rig.follow();
    rig.quit();
    rig.check_bus();
}

/// One signal while the arm follows.
fn signal_ends(signal: i32) {
    let mut rig = Rig::new();
    rig.follow();
    let asked = clock::now();
    rig.daemon().signal(signal);
    let (status, said) = rig.daemon.take().unwrap().end();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(!rig.socket().exists());
    assert_at_rest_at_the_end(&rig.side().tap(), asked);
    assert_arm_rests(rig.side());
    assert_next_start_works(&mut rig);
}

#[test]
fn sigint() {
    signal_ends(libc::SIGINT);
}

#[test]
fn sigterm() {
    signal_ends(libc::SIGTERM);
}

#[test]
fn sighup() {
    signal_ends(libc::SIGHUP);
}

/// Guards: a second signal ends at once, with status 1; what is left is the last target that was sent, and the next start works.
#[test]
fn second_sigint() {
    let mut rig = Rig::new();
    rig.follow();
    rig.daemon().signal(libc::SIGINT);
    // The first takes at least 100 ms to wind down.
    pause(30);
    rig.daemon().signal(libc::SIGINT);
    let (status, said) = rig.daemon.take().unwrap().end();
    assert_eq!(status.code(), Some(1), "{said}");
    rig.side().tap().assert_whole();
    pause(300);
    assert_arm_rests(rig.side());
    assert_next_start_works(&mut rig);
}

/// Guards: killed in the middle of a motion: the last target was whole, the arm goes there and stays (it has no time-out of its own), and
/// neither socket nor lock is in the way of the next start.
#[test]
fn sigkill() {
    let mut rig = Rig::new();
    rig.follow();
    rig.daemon().signal(libc::SIGKILL);
    let (status, _) = rig.daemon.take().unwrap().end();
    assert_eq!(status.code(), None, "ended by the signal");
    let killed = clock::now();
    pause(300);
    rig.side().tap().assert_whole();
    assert_eq!(
        rig.side().tap().targets_between(killed, clock::now()).len(),
        0
    );
    assert_arm_rests(rig.side());
    assert_next_start_works(&mut rig);
}

#[test]
fn quit_over_the_socket() {
    let mut rig = Rig::new();
    rig.follow();
    let asked = clock::now();
    rig.quit();
    assert!(!rig.socket().exists());
    assert_at_rest_at_the_end(&rig.side().tap(), asked);
    assert_arm_rests(rig.side());
    assert_next_start_works(&mut rig);
}

/// Guards: an end while the stop is latched keeps the arm at rest, and the next run does not begin stopped.
#[test]
fn quit_while_stopped() {
    let mut rig = Rig::new();
    rig.follow();
    rig.ask_ok(&Request::Stop);
    rig.wait_mode("stopped");
    let asked = clock::now();
    rig.quit();
    rig.side().assert_frozen_since(asked);
    assert_arm_rests(rig.side());
    assert_next_start_works(&mut rig);
}

#[test]
fn time_limit() {
    let mut rig = Rig::idle(Setup::default());
    let mut command = rig.run_command();
    command.args(["--seconds", "6"]);
    rig.daemon = Some(rig::process::Daemon::start(command));
    rig.wait_up();
    rig.follow();
    let (status, said) = rig.daemon.take().unwrap().end();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(!rig.socket().exists());
    // When it was over is not known to the millisecond: the last motion stands for it.
    let over = {
        let targets = rig.side().tap().targets();
        let last = targets.last().unwrap().raw;
        targets.iter().rfind(|t| t.raw != last).unwrap().at
    };
    assert_at_rest_at_the_end(&rig.side().tap(), over);
    assert_arm_rests(rig.side());
    rig.check_bus();
}

/// Guards: a panic in the control cycle, with the arm moving: the stop is latched as a panic, the watchdog takes the arm over within a few
/// cycles and repeats the last target for as long as the process lives. That the program then ends with status 1 is the same way out as in
/// `faults threads::control_thread_hangs_for_ever`.
#[test]
fn panic_in_control() {
    let rig = Rig::idle(Setup::default());
    let mut pieces = pieces::Pieces::start(&rig.side().address);
    pieces.follow();
    let control = rig.side().tap().targets().last().unwrap().from;
    pieces.trouble.panic.store(true, Ordering::Relaxed);
    let panicked = clock::now();
    pieces.feed_for(500);
    let cause = pieces.line.latch.load().tripped.expect("a latched stop");
    assert_eq!(
        (cause.reason, cause.source),
        (StopReason::Panic, SourceId::CONTROL)
    );
    assert!(pieces.took_over.load(Ordering::Acquire));
    assert_held(&rig, panicked, control);
    assert!(pieces.end().is_err(), "control has panicked");
    rig.check_bus();
}

/// Guards: a control thread that blocks in the arm's driver, without a debugger: taken over, only hold frames, and when it comes back it
/// sends nothing.
#[test]
fn control_blocked_in_the_driver() {
    let rig = Rig::idle(Setup::default());
    let mut pieces = pieces::Pieces::start(&rig.side().address);
    pieces.follow();
    let control = rig.side().tap().targets().last().unwrap().from;
    pieces.trouble.hang.store(true, Ordering::Relaxed);
    let hung = clock::now();
    pieces.feed_for(500);
    let cause = pieces.line.latch.load().tripped.expect("a latched stop");
    assert_eq!(
        (cause.reason, cause.source),
        (StopReason::HeartbeatLost, SourceId::WATCHDOG)
    );
    assert_held(&rig, hung, control);
    pieces.trouble.hang.store(false, Ordering::Relaxed);
    pieces.ask(telearm::control::Request::Reset);
    pieces.feed_for(300);
    assert_held(&rig, hung, control);
    assert!(pieces.end().is_ok());
    rig.check_bus();
}

/// Since the takeover: many targets, all the same, none from control.
fn assert_held(rig: &Rig, since: Stamp, control: u32) {
    let tap = rig.side().tap();
    let held = tap.targets_between(since + Span::from_ms(60), clock::now());
    assert!(held.len() > 40, "{} hold commands", held.len());
    assert!(
        held.iter()
            .all(|t| t.from != control && t.raw == held[0].raw)
    );
}
