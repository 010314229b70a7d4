//! A lane whose gripper and clutch belong to another operator: each is judged by that operator's own age, and none of it moves the pose.

mod support;

use nalgebra::UnitQuaternion;
use support::{ModelArm, PERIOD_S, START_Q, params};
use telearm::control::{GroupView, Lane, LaneInputs, LaneParams, Requests};
use telearm::geometry::Pose;
use telearm::signal::{Aged, ArmState, OperatorSample, Quality};
use telearm::supervisor::{Inhibit, Mode};
use telearm::time::{Span, Stamp};
use telearm::units::Opening;

/// A glove's limit, half of the pose operator's.
const GLOVE_LIMIT: Span = Span::from_ms(50);

struct World {
    lane: Lane<6>,
    arm: ModelArm,
    now: Stamp,
    hand: OperatorSample,
    glove: Option<OperatorSample>,
    opening: f64,
}

impl World {
    /// Engages by the glove's curled fingers (`hold_to_run`), or by command.
    fn new(hold_to_run: bool) -> Self {
        let params = LaneParams {
            gripper_hold_after: GLOVE_LIMIT,
            clutch_release_after: GLOVE_LIMIT,
            hold_to_run,
            clutch_is_other: hold_to_run,
            ..params()
        };
        Self {
            lane: Lane::new(params),
            arm: ModelArm::new(START_Q),
            now: Stamp::from_ms(1000),
            hand: OperatorSample::default(),
            glove: None,
            opening: 0.5,
        }
    }

    /// One cycle. The hand is seen and moves slowly; `glove` is what comes from the glove in this cycle.
    fn cycle(&mut self, glove: Option<OperatorSample>, engage: bool) {
        self.now = self.now + Span::from_s(PERIOD_S);
        let x = 0.02 * (self.now.as_ns() as f64 * 1e-9).sin();
        self.hand = OperatorSample {
            received_at: self.now,
            pose: Some(Pose::from_parts(
                [x, 0.0, 0.0].into(),
                UnitQuaternion::identity(),
            )),
            quality: Quality::Good,
            // The pinch of the hand that gives the pose; nobody must take it for the glove's.
            opening: Some(Opening::CLOSED),
            ..OperatorSample::default()
        };
        if let Some(sample) = glove {
            self.glove = Some(OperatorSample {
                received_at: self.now,
                ..sample
            });
        }
        self.arm.step(self.now);
        let state = ArmState {
            opening: Aged::at(Opening::new(self.opening).unwrap(), self.now),
            ..*self.arm.state()
        };
        let inputs = LaneInputs {
            now: self.now,
            sample: Some(&self.hand),
            gripper_sample: self.glove.as_ref(),
            clutch_sample: self.glove.as_ref(),
            arm: &state,
            model: self.arm.model(),
            stop: None,
            taken_over: false,
            requests: Requests {
                engage,
                ..Requests::default()
            },
            away: false,
            command_due: true,
            keep_outs: &[],
        };
        self.lane.assess(&inputs);
        let output = self.lane.act(
            &inputs,
            GroupView {
                holds: false,
                blocked: false,
                engages: true,
            },
        );
        if let Some(command) = &output.command {
            let command = command.get();
            if let telearm::signal::Target::Tcp(tcp) = command.target {
                self.arm.command(&tcp);
            }
            if let Some(opening) = command.opening {
                self.opening = opening.get();
            }
        }
        self.lane.sent(output.command.is_some());
    }

    fn cycles(&mut self, n: u32, glove: Option<OperatorSample>) {
        for _ in 0..n {
            self.cycle(glove, false);
        }
    }

    fn mode(&self) -> Mode {
        self.lane.report().mode
    }

    fn is_active(&self) -> bool {
        matches!(self.mode(), Mode::Active { .. })
    }

    fn inhibits(&self, reason: Inhibit) -> bool {
        self.lane.report().inhibits.contains(reason)
    }
}

fn glove(opening: f64, held: bool) -> Option<OperatorSample> {
    Some(OperatorSample {
        quality: Quality::Good,
        opening: Opening::new(opening),
        clutch_pressed: Some(held),
        ..OperatorSample::default()
    })
}

/// The same glove without a usable finger.
fn lost() -> Option<OperatorSample> {
    Some(OperatorSample {
        clutch_pressed: Some(false),
        ..OperatorSample::default()
    })
}

/// Guards: a glove that is only the gripper operator moves the gripper while it is fresh, holds it once it is older than its *own* limit
/// or not usable, and never holds the pose.
#[test]
fn stale_gripper_operator_holds_the_gripper_alone() {
    let mut world = World::new(false);
    world.cycles(80, glove(0.5, false));
    world.cycle(glove(0.5, false), true);
    world.cycles(20, glove(0.5, false));
    assert!(world.is_active(), "{:?}", world.mode());
    world.cycles(100, glove(0.2, false));
    assert!((world.opening - 0.2).abs() < 0.01, "{}", world.opening);

    // The last packet asks for an open gripper; 50 ms later it no longer counts, although the pose operator's limit is 100 ms.
    world.cycle(glove(1.0, false), false);
    world.cycles(10, None);
    let in_time = world.opening;
    assert!(in_time > 0.205, "follows while fresh: {in_time}");
    world.cycles(200, None);
    // It brakes within its own limits from there: 0.32. Had the pose operator's limit counted, it would have come to 0.50.
    assert!(
        world.opening < 0.4,
        "kept on opening without a glove: {}",
        world.opening
    );
    let held_at = world.opening;
    world.cycles(100, lost());
    assert!(
        (world.opening - held_at).abs() < 1e-9,
        "not usable: holds too"
    );
    assert!(world.is_active(), "the pose goes on");
    let anchors = world.lane.report().counters.anchors;
    world.cycles(200, glove(0.8, false));
    assert!((world.opening - 0.8).abs() < 0.01, "follows again");
    assert_eq!(
        world.lane.report().counters.anchors,
        anchors,
        "the pose never held"
    );
}

/// Guards: a glove that is the clutch engages when it is held, and lets go when it is let go, older than its own limit, or not usable; a
/// clutch that comes back held is inert until it was let go; the reason is named all the while.
#[test]
fn lost_clutch_lets_go_and_is_inert_when_it_is_back() {
    for gap in [None, lost()] {
        let mut world = World::new(true);
        world.cycles(80, None);
        assert!(world.inhibits(Inhibit::ClutchLost), "never heard");
        world.cycles(20, glove(0.5, true));
        assert!(world.inhibits(Inhibit::EdgeHeld), "held since before");
        assert_eq!(world.mode(), Mode::Ready);
        world.cycles(5, glove(0.5, false));
        world.cycles(40, glove(0.5, true));
        assert!(world.is_active(), "{:?}", world.mode());

        if gap.is_none() {
            world.cycles(10, None);
            assert!(world.is_active(), "50 ms are no loss");
        }
        world.cycles(2, gap);
        assert_eq!(world.mode(), Mode::Ready);
        assert!(world.inhibits(Inhibit::ClutchLost));
        world.cycles(100, glove(0.5, true));
        assert_eq!(world.mode(), Mode::Ready, "still held: inert");
        assert!(!world.inhibits(Inhibit::ClutchLost));
        assert!(world.inhibits(Inhibit::EdgeHeld));
        world.cycles(5, glove(0.5, false));
        world.cycles(40, glove(0.5, true));
        assert!(world.is_active());
        world.cycles(2, glove(0.5, false));
        assert_eq!(world.mode(), Mode::Ready, "let go");
    }
}

/// Guards: as long as the clutch operator was never heard, the pinch of the hand that gives the pose is no clutch, in absolute mapping
/// either; and `telearm engage` does not replace a clutch.
#[test]
fn own_pinch_is_not_the_other_hands_clutch() {
    let mut world = World::new(true);
    world.lane = Lane::new(LaneParams {
        mapping: telearm::retarget::Mapping {
            kind: telearm::retarget::MappingKind::Absolute {
                offset_m: [0.0; 3].into(),
                rotation: UnitQuaternion::identity(),
            },
            ..params().mapping
        },
        ..*world.lane.params()
    });
    world.cycles(80, None);
    world.cycle(None, true);
    world.cycles(40, None);
    assert_eq!(world.mode(), Mode::Ready);
    assert!(world.inhibits(Inhibit::ClutchLost));
}
