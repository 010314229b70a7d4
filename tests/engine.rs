//! The engine over model arms: the schedule, the stop path, requests, and several lanes at once.

mod support;

use nalgebra::{UnitQuaternion, Vector3};
use support::{PERIOD_S, Rig, RigArm, params};
use telearm::control::{Answer, Coupling, LaneSet, Neighbourhood, Request};
use telearm::geometry::Pose;
use telearm::handoff::{SourceId, StopReason};
use telearm::supervisor::Mode;
use telearm::time::Span;

fn one() -> Vec<RigArm> {
    vec![RigArm {
        params: params(),
        divisor: 1,
        place: None,
    }]
}

fn mode(rig: &Rig, lane: usize) -> Mode {
    rig.engine.views(rig.now)[lane].expect("a lane").report.mode
}

fn moving(rig: &mut Rig, cycles: u32) {
    for i in 0..cycles {
        if i % 4 == 0 {
            let x = 0.15 * PERIOD_S * f64::from(i);
            for hand in 0..rig.hands.len() {
                rig.hand(hand, [x, 0.0, 0.0]);
            }
        }
        rig.cycle();
    }
}

/// Guards: a stop between two deadlines sends the brake at once, in the place of the next period's command: never two in a period, no
/// gap after it, and not one motion frame more.
#[test]
fn a_stop_sends_the_next_command_early_and_only_once() {
    let mut rig = Rig::new(one(), Coupling::All, true);
    rig.engage();
    moving(&mut rig, 100);
    assert!(matches!(mode(&rig, 0), Mode::Active { .. }));
    let before = rig.sent[0].lock().unwrap().len();
    rig.line.trip(StopReason::Command, SourceId::SERVICE);
    let early = rig.now + Span::from_ms(2);
    let done = rig.engine.stop_path(early);
    assert!(done.any_sent && done.stop_served.is_some());
    assert!(!rig.engine.stop_path(early).any_sent, "served once");
    assert!(!rig.cycle().any_sent, "its command went out early");
    moving(&mut rig, 60);
    let sent = rig.sent[0].lock().unwrap();
    let after = &sent[before..];
    assert_eq!(after.len(), 61, "one command per period");
    assert!(
        after.iter().all(|c| !c.motion),
        "a motion frame after the stop"
    );
    assert_eq!(after[0].at, early);
    let last = after[after.len() - 1].tcp.position();
    assert!(
        (last - sent[before - 1].tcp.position()).norm() < 0.01,
        "braked within a centimetre"
    );
    drop(sent);
    assert!(matches!(mode(&rig, 0), Mode::Stopped { .. }));
}

/// Guards: a reset never moves, never engages, and what was asked before the stop is forgotten.
#[test]
fn reset_does_nothing_but_reset() {
    let mut rig = Rig::new(one(), Coupling::All, true);
    rig.engage();
    rig.line.trip(StopReason::Command, SourceId::SERVICE);
    rig.engine.request(
        Request::Home(LaneSet::ALL, rig.now + Span::from_ms(60_000)),
        rig.now,
    );
    rig.engine.request(Request::Engage(LaneSet::ALL), rig.now);
    moving(&mut rig, 20);
    assert_eq!(
        rig.engine.request(Request::Reset, rig.now),
        Answer::ResetDone
    );
    let before = rig.sent[0].lock().unwrap().len();
    moving(&mut rig, 100);
    assert_eq!(mode(&rig, 0), Mode::Ready);
    assert!(
        rig.sent[0].lock().unwrap()[before..]
            .iter()
            .all(|c| !c.motion)
    );
    assert_eq!(
        rig.engine.request(Request::Reset, rig.now),
        Answer::NothingToReset
    );
}

/// Guards: lanes that command less often than the cycle take turns, each exactly at its own rate.
#[test]
fn divisors_are_kept_and_staggered() {
    let arms = (0..2)
        .map(|_| RigArm {
            params: support::params(),
            divisor: 2,
            place: None,
        })
        .collect();
    let mut rig = Rig::new(arms, Coupling::All, true);
    rig.engage();
    let counts: Vec<_> = rig.sent.iter().map(|s| s.lock().unwrap().len()).collect();
    for _ in 0..100 {
        let done = rig.cycle();
        assert_eq!(done.lanes.iter().filter(|l| l.sent).count(), 1);
    }
    for (sent, before) in rig.sent.iter().zip(counts) {
        assert_eq!(sent.lock().unwrap().len() - before, 50);
    }
}

/// Guards: one lane's loss holds the other, unless the plan uncouples them; a stop stops both either way.
#[test]
fn coupling_spreads_holds_and_stops() {
    for coupling in [Coupling::All, Coupling::Lane] {
        let arms = (0..2)
            .map(|_| RigArm {
                params: params(),
                divisor: 1,
                place: None,
            })
            .collect();
        let mut rig = Rig::new(arms, coupling, false);
        rig.engage();
        for _ in 0..30 {
            rig.hand(0, [0.0; 3]);
            rig.cycle();
        }
        assert!(matches!(mode(&rig, 1), Mode::Holding { .. }));
        let other = mode(&rig, 0);
        match coupling {
            Coupling::All => assert!(matches!(other, Mode::Holding { .. }), "{other:?}"),
            Coupling::Lane => assert!(matches!(other, Mode::Active { .. }), "{other:?}"),
        }
        rig.line
            .trip(StopReason::OperatorStopBit, SourceId::operator(1));
        rig.cycle();
        assert!((0..2).all(|i| matches!(mode(&rig, i), Mode::Stopped { .. })));
    }
}

/// Guards: two hands that drive their tools into each other get no nearer than the plan's distance, and can part again.
#[test]
fn two_tools_keep_their_distance() {
    let base = |y| Pose::from_parts(Vector3::new(0.0, y, 0.0), UnitQuaternion::identity());
    let place = |y| {
        Some(Neighbourhood {
            base_in_world: base(y),
            distance_min_m: 0.15,
        })
    };
    let arms = [-0.25, 0.25].map(|y| RigArm {
        params: params(),
        divisor: 1,
        place: place(y),
    });
    let mut rig = Rig::new(arms.into(), Coupling::All, true);
    rig.engage();
    let start = rig.n;
    for i in 0..400u32 {
        let way = 0.2 * PERIOD_S * f64::from(if i < 250 { i } else { 500 - i });
        if i % 4 == 0 {
            rig.hand(0, [0.0, way, 0.0]);
            rig.hand(1, [0.0, -way, 0.0]);
        }
        rig.cycle();
    }
    let (left, right) = (rig.sent[0].lock().unwrap(), rig.sent[1].lock().unwrap());
    let distances: Vec<f64> = left
        .iter()
        .zip(right.iter())
        .map(|(a, b)| {
            ((a.tcp.position() + Vector3::new(0.0, -0.25, 0.0))
                - (b.tcp.position() + Vector3::new(0.0, 0.25, 0.0)))
            .norm()
        })
        .collect();
    let nearest = distances.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(nearest >= 0.15 - 1e-6, "{nearest}");
    assert!(nearest < 0.2, "the tools did approach: {nearest}");
    assert!(
        distances.last().unwrap() > &(nearest + 0.02),
        "and parted again"
    );
    assert!(rig.n > start);
}
