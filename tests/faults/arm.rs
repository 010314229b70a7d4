//! What the arm itself can do wrong.

use telearm::app::socket::Request;
use telearm::arm::piper::emulate::{EmulatorFaults, StartState};
use telearm::arm::piper::emulate_run::PiperEmulator;
use telearm::arm::piper::params::PiperParams;
use telearm::arm::piper::wire::{
    Command, ControlOrder, EndPose, FollowOrder, ModeOrder, MoveOrder, id,
};
use telearm::rt::clock;
use telearm::time::Span;

use crate::rig::{BRAKING, Rig, Setup, pause};

/// A fault of the arm while it follows: named, the target freezes, nothing comes back by itself; with the cause gone a reset gives a
/// start from where the arm is, and an act goes on.
fn fault_and_cure(fault: &str, detail: &str) {
    let rig = Rig::new();
    rig.follow();
    let since = clock::now();
    rig.side().fault(fault, true);
    let status = rig.wait(fault, |s| s.mode(0) == "fault");
    assert!(status.detail(0).contains(detail), "{}", status.detail(0));
    let seen = clock::now();
    pause(300);
    rig.side().tap().assert_frozen(seen + BRAKING, clock::now());
    rig.side().fault(fault, false);
    rig.wait_up();
    rig.never("nothing comes back by itself", 500, |s| {
        s.mode(0) != "fault"
    });
    rig.reset();
    rig.wait_mode("ready");
    rig.never("a reset does not engage", 300, |s| s.mode(0) != "ready");
    assert!(rig.side().tap().travel_m(since, seen + BRAKING) < 0.2);
    rig.follow();
    rig.finish();
}

#[test]
fn motor_silent() {
    fault_and_cure("joint_silent=3", "joint_silent, joint 3");
}

#[test]
fn arm_silent() {
    fault_and_cure("silent", "feedback_lost");
}

#[test]
fn joint_fault() {
    fault_and_cure("joint_fault=5", "motor_error");
}

#[test]
fn motor_too_hot() {
    fault_and_cure("over_temperature=2", "over_temperature, joint 2");
}

#[test]
fn supply_too_low() {
    fault_and_cure("under_voltage=1", "under_voltage, joint 1");
}

#[test]
fn collision() {
    fault_and_cure("collision=4", "collision");
}

#[test]
fn put_into_teach_mode() {
    fault_and_cure("teach", "wrong_mode");
}

/// Guards: a motor that loses its power is a fault, the others keep theirs, and nothing powers it again but a recovery.
#[test]
fn motor_loses_its_power() {
    let rig = Rig::with(Setup {
        may_stop_arm: true,
        ..Setup::default()
    });
    rig.follow();
    rig.side().fault("joint_disabled=6", true);
    rig.wait("named", |s| {
        s.mode(0) == "fault" && s.detail(0).contains("motor_disabled, joint 6")
    });
    rig.side().fault("joint_disabled=6", false);
    let before = rig.side().tap().count(id::POWER);
    pause(1200);
    rig.reset();
    rig.wait("still faulted", |s| s.phase(0) == "faulted");
    assert_eq!(
        rig.side().tap().count(id::POWER),
        before,
        "nothing powers it by itself"
    );
    rig.ask_ok(&Request::Recover {
        lane: "right".into(),
        arm_will_drop: true,
    });
    rig.wait_up();
    rig.reset();
    // It fell while it had no power, maybe out of the workspace: that it does not follow at once is right.
    rig.wait_mode("ready");
    rig.finish();
}

/// Guards: numbers that stand still while the arm moves: the command leads the measured pose by no more than the leash.
#[test]
fn feedback_frozen() {
    let rig = Rig::new();
    rig.follow();
    rig.hand().set(|h| h.sway_m = 0.0);
    pause(1000);
    rig.engage();
    rig.side().fault("frozen", true);
    let frozen = clock::now();
    let first = rig.side().tap().targets().last().unwrap().pose;
    rig.hand().set(|h| h.sway_m = 0.2);
    rig.wait("the leash holds it", |s| {
        s.0["lanes"][0]["slowed"] == "leash"
    });
    pause(1000);
    let farthest = rig
        .side()
        .tap()
        .targets_between(frozen, clock::now())
        .iter()
        .map(|t| (t.pose.position() - first.position()).norm())
        .fold(0.0, f64::max);
    // 60 mm, and what the arm lagged behind at the moment of freezing.
    assert!((0.03..0.065).contains(&farthest), "{farthest} m");
    rig.side().fault("frozen", false);
    rig.finish();
}

/// Guards: an arm that already has power keeps it: no motor order of any kind, no gripper order, no stop.
#[test]
fn arm_started_already_enabled() {
    let start = StartState {
        enabled: true,
        ..Setup::default().start
    };
    let rig = Rig::with(Setup {
        start,
        ..Setup::default()
    });
    rig.wait_mode("ready");
    {
        let tap = rig.side().tap();
        assert_eq!(
            (
                tap.count(id::POWER),
                tap.count(id::MOTION),
                tap.count(id::GRIPPER)
            ),
            (0, 0, 0)
        );
    }
    rig.follow();
    assert_eq!(rig.side().tap().count(id::POWER), 0);
    rig.finish();
}

/// Guards: a leader arm (it commands, and reports nothing) is named and left alone.
#[test]
fn leader_mode() {
    let mut rig = Rig::idle(Setup::default());
    rig.side().fault("leader", true);
    rig.start();
    rig.wait("named", |s| {
        s.phase(0) == "faulted"
            && s.0["arms"][0]["phase_detail"]
                .as_str()
                .is_some_and(|d| d.contains("leader_mode"))
    });
    assert_ne!(rig.status().unwrap().mode(0), "active");
    rig.quit();
    let tap = rig.side().tap();
    // The arm reported nothing, so the tap cannot know it for one: all that is sure is that nobody ordered power or a pose.
    assert_eq!(
        (
            tap.count(id::POWER),
            tap.count(id::POSE),
            tap.count(id::MOTION)
        ),
        (0, 0, 0)
    );
}

/// Guards: an arm in its own stop is not started, not reset, and the way out is the recovery with its warning.
#[test]
fn arm_found_in_its_own_stop() {
    let start = StartState {
        stopped: true,
        enabled: true,
        ..Setup::default().start
    };
    let mut rig = Rig::idle(Setup {
        start,
        may_stop_arm: true,
        ..Setup::default()
    });
    rig.start();
    rig.wait("named", |s| {
        s.phase(0) == "faulted" && s.has(0, "arm_fault")
    });
    pause(500);
    assert_eq!(
        rig.side().tap().host_frames().count(),
        0,
        "nothing is sent to it"
    );
    rig.ask_ok(&Request::Recover {
        lane: "right".into(),
        arm_will_drop: true,
    });
    rig.wait_up();
    rig.reset();
    rig.follow();
    rig.finish();
}

/// Guards: somebody else who commands the arm is a fault as long as he does and a second after; telearm does not argue with him.
#[test]
fn foreign_command_on_the_bus() {
    let foreign = [
        Command::Mode(
            ModeOrder::new(ControlOrder::Can, MoveOrder::P, 50, FollowOrder::Planned).unwrap(),
        )
        .encode(),
        EndPose::default().frames()[1],
        telearm::arm::frame::Frame::new(0x15C, [0; 8]),
    ];
    for frame in foreign {
        let rig = Rig::new();
        rig.follow();
        rig.side().bus.inject(&[frame]);
        let status = rig.wait("named", |s| s.mode(0) == "fault");
        assert!(
            status.detail(0).contains("foreign_command"),
            "{}",
            status.detail(0)
        );
        let seen = clock::now();
        pause(300);
        assert_eq!(
            rig.side()
                .tap()
                .targets_between(seen + Span::from_ms(50), clock::now())
                .len(),
            0,
            "it does not argue"
        );
        rig.wait_up();
        rig.never("not by itself", 300, |s| s.mode(0) != "fault");
        rig.reset();
        rig.follow();
        rig.finish();
    }
}

/// Guards: an arm that was led away by hand (teach mode) while disengaged: engaging begins where it is now.
#[test]
fn re_engage_after_the_arm_was_moved() {
    let mut rig = Rig::new();
    rig.follow();
    rig.ask_ok(&Request::Disengage(None));
    rig.wait_mode("ready");
    rig.side().fault("teach", true);
    rig.wait_mode("fault");
    let mut q = PiperParams::default().home_deg.map(f64::to_radians);
    q[0] += 0.4;
    q[1] += 0.1;
    let teach = EmulatorFaults {
        teach: true,
        ..EmulatorFaults::default()
    };
    let moved = StartState {
        q,
        enabled: true,
        ..StartState::default()
    };
    let address = rig.side().address.clone();
    rig.sides[0].arm = PiperEmulator::start(&address, moved, teach).unwrap();
    pause(300);
    rig.side().fault("teach", false);
    rig.wait_up();
    rig.reset();
    rig.hand().set(|h| h.sway_m = 0.0);
    pause(200);
    let since = clock::now();
    rig.engage();
    pause(300);
    assert!(rig.side().tap().travel_m(since, clock::now()) < 0.01);
    // Where it was led, not where it was left.
    assert!(
        (rig.side().arm.q()[0] - q[0]).abs() < 0.02,
        "{:?}",
        rig.side().arm.q()
    );
    rig.follow();
    rig.finish();
}
