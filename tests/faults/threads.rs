//! Threads that hang. A debugger's stop of one thread is what the others see of a hang, a dead lock or a silent death; where tracing is
//! forbidden these rows say so and pass over, and the same is tested with threads of the test's own in `tests/exit.rs` and `operator::io`.

use telearm::app::socket::Request;
use telearm::arm::piper::wire::id;
use telearm::rt::clock;
use telearm::time::Span;

use crate::rig::{BRAKING, Rig, Setup, freeze, pause};

/// Guards: a process that was stopped for 3 s while packets came in: disengaged, what queued up is discarded, nothing is caught up with, and
/// only a new act goes on.
#[test]
fn sigstop_for_3_s_and_sigcont() {
    let mut rig = Rig::new();
    rig.follow();
    rig.daemon().signal(libc::SIGSTOP);
    pause(100);
    let stopped = clock::now();
    pause(2900);
    let on = clock::now();
    rig.daemon().signal(libc::SIGCONT);
    let status = rig.wait_mode("ready");
    assert_eq!(rig.side().tap().targets_between(stopped, on).len(), 0);
    rig.never("inert", 800, |s| s.mode(0) != "ready");
    rig.side().assert_frozen_since(on + BRAKING);
    // No burst: one command a period, give or take the one that was due.
    let sent = rig
        .side()
        .tap()
        .targets_between(on, on + Span::from_ms(100))
        .len();
    assert!(sent <= 22, "{sent} commands in 100 ms");
    assert!(status.number("/process/input_away") > 0);
    assert!(!rig.said().contains("took the arms over"), "{}", rig.said());
    rig.follow();
    rig.finish();
}

/// Guards: an input thread that hangs is a silent hand: hold, then disengaged, and when it runs again the hand is inert. The end of the
/// program does not wait for it.
#[test]
fn input_thread_hangs() {
    let mut rig = Rig::new();
    rig.follow();
    let Some(frozen) = freeze::freeze(rig.pid(), "input") else {
        return;
    };
    let hung = clock::now();
    rig.wait("lets go", |s| {
        s.mode(0) == "ready" && s.has(0, "operator_stale")
    });
    pause(300);
    rig.side()
        .assert_frozen_since(hung + Span::from_ms(400) + BRAKING);
    drop(frozen);
    rig.wait("runs again", |s| s.reasons(0) == ["awaiting_engage"]);
    rig.never("inert", 500, |s| s.mode(0) != "ready");
    rig.follow();

    let frozen = freeze::freeze(rig.pid(), "input").unwrap();
    rig.daemon().signal(libc::SIGTERM);
    let (status, said) = frozen.end(rig.daemon.take().unwrap());
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("input"), "{said}");
    assert!(!rig.socket().exists());
    rig.check_bus();
}

/// Guards: a control thread that hangs is taken over: the same target again and again, from the watchdog's own socket; the arm does not
/// move. A control thread that comes back sends nothing any more, no reset helps, and the exit status says that it went wrong.
#[test]
fn control_thread_hangs_and_comes_back() {
    let mut rig = Rig::new();
    rig.follow();
    let control = rig.side().tap().targets().last().unwrap().from;
    let Some(frozen) = freeze::freeze(rig.pid(), "control") else {
        return;
    };
    let hung = clock::now();
    pause(500);
    let held = clock::now();
    {
        let tap = rig.side().tap();
        let after = tap.targets_between(hung + Span::from_ms(60), held);
        assert!(after.len() > 40, "{} hold commands", after.len());
        assert!(
            after.iter().all(|t| t.from != control),
            "control still sends"
        );
        // The takeover repeats the last command that control sent.
        let last = tap
            .targets_between(hung - Span::from_ms(100), held)
            .into_iter()
            .rfind(|t| t.from == control)
            .unwrap();
        assert!(after.iter().all(|t| t.raw == last.raw));
    }
    drop(frozen);
    let status = rig.wait("a fault for good", |s| {
        s.mode(0) == "fault" && s.detail(0) == "taken_over"
    });
    assert_eq!(status.stop_reason(), Some("heartbeat_lost"));
    let why = rig.ask_refused(&Request::Reset);
    assert!(why.contains("restart"), "{why}");
    pause(300);
    {
        let tap = rig.side().tap();
        let after = tap.targets_between(held, clock::now());
        assert!(after.len() > 40 && after.iter().all(|t| t.from != control));
        tap.assert_frozen(hung + Span::from_ms(60), clock::now());
    }
    rig.daemon().signal(libc::SIGTERM);
    let (status, said) = rig.daemon.take().unwrap().end();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("took the arms over"), "{said}");
    rig.check_bus();
}

/// Guards: the same when control never comes back: SIGTERM ends the program all the same, with a status that says so.
#[test]
fn control_thread_hangs_for_ever() {
    let mut rig = Rig::new();
    rig.follow();
    let Some(frozen) = freeze::freeze(rig.pid(), "control") else {
        return;
    };
    let hung = clock::now();
    pause(300);
    rig.daemon().signal(libc::SIGTERM);
    let (status, said) = frozen.end(rig.daemon.take().unwrap());
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("took the arms over"), "{said}");
    assert!(!rig.socket().exists());
    rig.side().assert_frozen_since(hung + Span::from_ms(60));
    rig.check_bus();
}

/// Guards: after a takeover nothing but hold frames is sent, unless nothing is heard of the arm: then its own stop, once.
#[test]
fn control_thread_hangs_and_the_arm_falls_silent() {
    let rig = Rig::with(Setup {
        may_stop_arm: true,
        ..Setup::default()
    });
    rig.follow();
    let Some(_frozen) = freeze::freeze(rig.pid(), "control") else {
        return;
    };
    pause(200);
    assert_eq!(rig.side().tap().count(id::MOTION), 0);
    rig.side().fault("silent", true);
    pause(1200);
    assert_eq!(rig.side().tap().count(id::MOTION), 1, "{}", rig.said());
    assert!(
        rig.said().contains("the arm's own stop was sent"),
        "{}",
        rig.said()
    );
    rig.check_bus();
}

/// Guards: a watchdog that hangs takes nothing with it: control goes on, and stops on a stop bit.
#[test]
fn watchdog_hangs() {
    let rig = Rig::new();
    rig.follow();
    let Some(frozen) = freeze::freeze(rig.pid(), "watchdog") else {
        return;
    };
    let since = clock::now();
    pause(1000);
    assert!(rig.side().tap().travel_m(since, clock::now()) > 0.02);
    rig.ask_ok(&Request::Stop);
    let stopped = clock::now();
    rig.wait_mode("stopped");
    pause(300);
    rig.side().assert_frozen_since(stopped + BRAKING);
    drop(frozen);
    rig.reset();
    rig.follow();
    rig.finish();
}
