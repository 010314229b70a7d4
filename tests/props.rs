//! Random operator sequences through the pure lane, against an arm made of its model: losses, jumps, stops, resets, engages, late
//! cycles, refused sends, faults, homing. Whatever happens, the *sent* commands obey the limits, the leash holds, nothing moves after a
//! stop, and nothing engages without a fresh act.
//!
//! More cases: `PROPTEST_CASES=100000 cargo test --release --test props`. A failure prints its seed and shrinks.

mod support;

use nalgebra::{UnitQuaternion, Vector3};
use proptest::prelude::*;
use support::{ModelArm, PERIOD_S, START_Q, params};
use telearm::control::{GroupView, Lane, LaneInputs, Requests};
use telearm::geometry::{
    ArmBase, Hand, OperatorWorld, Pose, Tcp, angle_between, log_rotation, rotation_from_log,
};
use telearm::kinematics::ArmModel;
use telearm::signal::{ArmFault, Edges, FaultKind, OperatorSample, Quality, Target};
use telearm::supervisor::{HomeCause, Mode, StopWhy};
use telearm::time::{Span, Stamp};
use telearm::units::Opening;

/// One thing that happens, and for how many cycles it lasts.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// The hand moves at this velocity (m/s) and turns at this rate (rad/s).
    Move([f64; 3], [f64; 3]),
    /// The hand steps; the input thread says so.
    Jump([f64; 3], [f64; 3]),
    /// The hand steps and the input thread does *not* say so: the lane must cope all the same.
    SilentJump([f64; 3], [f64; 3]),
    /// Packets come, the hand is not seen.
    Untracked,
    /// No packets.
    Silence,
    /// The stop latch trips.
    Stop,
    /// Reset is granted.
    Reset,
    /// An engage gesture that begins now.
    Gesture,
    /// An engage gesture that began long ago.
    OldGesture,
    /// `telearm engage`.
    Engage,
    /// `telearm disengage`.
    Disengage,
    /// Sends are refused.
    Busy,
    /// Cycles are missed.
    Late,
    /// The arm faults.
    Fault,
    /// Feedback freezes.
    Frozen,
    /// The arm is slow.
    Slow,
    /// Home is held.
    Home,
    /// Sender session changes.
    Restart,
    /// Our own thread was away.
    Away,
    /// The quaternion's sign flips with every packet.
    Flip,
}

fn vec3(range: f64) -> impl Strategy<Value = [f64; 3]> {
    [-range..range, -range..range, -range..range]
}

fn act() -> impl Strategy<Value = (Act, u16)> {
    let kind = prop_oneof![
        8 => (vec3(1.5), vec3(4.0)).prop_map(|(v, w)| Act::Move(v, w)),
        1 => (vec3(2.0), vec3(3.0)).prop_map(|(v, w)| Act::Jump(v, w)),
        1 => (vec3(2.0), vec3(3.0)).prop_map(|(v, w)| Act::SilentJump(v, w)),
        1 => Just(Act::Untracked),
        1 => Just(Act::Silence),
        1 => Just(Act::Stop),
        2 => Just(Act::Reset),
        3 => Just(Act::Gesture),
        1 => Just(Act::OldGesture),
        4 => Just(Act::Engage),
        1 => Just(Act::Disengage),
        1 => Just(Act::Busy),
        1 => Just(Act::Late),
        1 => Just(Act::Fault),
        1 => Just(Act::Frozen),
        1 => Just(Act::Slow),
        1 => Just(Act::Home),
        1 => Just(Act::Restart),
        1 => Just(Act::Away),
        1 => Just(Act::Flip),
    ];
    (kind, 1u16..60)
}

/// The sent commands of one unbroken stream, checked by finite differences against the limits.
#[derive(Default)]
struct Checker {
    sent: Vec<Pose<ArmBase, Tcp>>,
    q: Option<[f64; 6]>,
}

impl Checker {
    fn feed(
        &mut self,
        tcp: Pose<ArmBase, Tcp>,
        joint_way: bool,
        model: &dyn ArmModel<6>,
        measured_q: &[f64; 6],
    ) {
        let p = params().limits;
        let t = PERIOD_S;
        self.sent.push(tcp);
        if self.sent.len() > 4 {
            self.sent.remove(0);
        }
        let s = &self.sent;
        let n = s.len();
        let v = |i: usize| (s[i + 1].position() - s[i].position()) / t;
        let w = |i: usize| log_rotation(s[i + 1].rotation() * s[i].rotation().inverse()) / t;
        let (lin, ang) = if joint_way {
            (2.0, 12.0)
        } else {
            (p.lin_vel_max, p.ang_vel_max)
        };
        if n >= 2 {
            assert!(
                v(n - 2).norm() <= lin * 1.001,
                "speed {} m/s",
                v(n - 2).norm()
            );
            assert!(
                w(n - 2).norm() <= ang * 1.001,
                "turn {} rad/s",
                w(n - 2).norm()
            );
        }
        if n >= 3 && !joint_way {
            let a = (v(n - 2) - v(n - 3)) / t;
            assert!(a.amax() <= p.lin_acc_max * 1.001, "acceleration {a:?}");
            let alpha = (w(n - 2) - w(n - 3)) / t;
            // Differences of rotation vectors carry a small term of their own product.
            assert!(
                alpha.norm() <= p.ang_acc_max * 1.02 + 0.1,
                "angular acceleration {alpha:?}"
            );
        }
        if n >= 4 && !joint_way {
            let jerk = (v(n - 2) - 2.0 * v(n - 3) + v(n - 4)) / (t * t);
            assert!(jerk.amax() <= p.lin_jerk_max * 1.001, "jerk {jerk:?}");
        }
        let near = self.q.unwrap_or(*measured_q);
        let q = model.inverse_near(&tcp, &near).unwrap_or(near);
        if let Some(before) = self.q {
            for (i, (a, b)) in q.iter().zip(before).enumerate() {
                let speed = (a - b).abs() / t;
                assert!(
                    speed <= model.joint_velocity_limits()[i] * 1.01,
                    "joint {} at {speed} rad/s",
                    i + 1
                );
            }
        }
        self.q = Some(q);
    }

    /// The commands paused: the arm came to rest on the last one, and motion goes on from there.
    fn rest(&mut self) {
        let last = self.sent.last().copied();
        self.sent = last
            .into_iter()
            .cycle()
            .take(if last.is_some() { 3 } else { 0 })
            .collect();
    }

    fn restart(&mut self) {
        *self = Self::default();
    }
}

#[derive(Default)]
struct World {
    hand: Vector3<f64>,
    turn: UnitQuaternion<f64>,
    edges: Edges,
    stop: bool,
    joint_way: bool,
    fresh_act: bool,
}

fn run(acts: &[(Act, u16)]) {
    let mut lane = Lane::new(params());
    let mut arm = ModelArm::new(START_Q);
    let mut checker = Checker::default();
    let mut world = World::default();
    let mut now = Stamp::from_ms(1_000);
    let mut sample: Option<OperatorSample> = None;
    let mut packet = 0u32;
    let settle = [(Act::Move([0.0; 3], [0.0; 3]), 60)];
    for &(act, cycles) in settle.iter().chain(acts) {
        arm.fault = None;
        arm.frozen = false;
        arm.speed = 3.0;
        begin(act, &mut world, &mut arm, now);
        for i in 0..cycles {
            let skip = if matches!(act, Act::Late) && i == 0 {
                8
            } else {
                1
            };
            for _ in 0..skip {
                now = now + Span::from_s(PERIOD_S);
                if i % 4 == 0 {
                    packet += 1;
                    sample = receive(act, &mut world, sample, now, packet);
                }
                arm.step(now);
            }
            let before = lane.report();
            let requests = Requests {
                engage: matches!(act, Act::Engage) && i == 0,
                disengage: matches!(act, Act::Disengage) && i == 0,
                home: matches!(act, Act::Home).then_some(HomeCause::Command),
                reset: matches!(act, Act::Reset) && i == 0,
            };
            world.fresh_act |= requests.engage;
            let state = *arm.state();
            let inputs = LaneInputs {
                now,
                sample: sample.as_ref(),
                gripper_sample: None,
                clutch_sample: None,
                arm: &state,
                model: arm.model(),
                keep_outs: &[],
                stop: world.stop.then_some(StopWhy {
                    reason: 1,
                    source: 0,
                }),
                taken_over: false,
                requests,
                away: matches!(act, Act::Away) && i == 0,
                command_due: true,
            };
            lane.assess(&inputs);
            let output = lane.act(
                &inputs,
                GroupView {
                    holds: false,
                    blocked: false,
                    engages: true,
                },
            );
            let after = lane.report();
            check_modes(&before.mode, &after.mode, &mut world);
            assert_eq!(after.brake_veto, None, "a braking command was refused");
            assert!(
                !output.arm_stop || world.stop,
                "the arm's own stop without a stop"
            );
            let refused = matches!(act, Act::Busy);
            lane.sent(output.command.is_some() && !refused);
            let counters = lane.report().counters;
            let new_stream = counters.seated != before.counters.seated;
            if counters.stalls != before.counters.stalls {
                checker.rest();
            }
            if let Some(command) = output.command {
                let command = *command.get();
                let Target::Tcp(tcp) = command.target else {
                    panic!("a joint target for a pose arm")
                };
                assert!(
                    !(world.stop && command.motion),
                    "a motion frame after the stop"
                );
                if command.motion {
                    let measured = state.tcp.value().expect("moving without a measured pose");
                    let lead = (tcp.position() - measured.position()).norm();
                    assert!(lead <= params().lead_max_m + 1e-9, "leash {lead}");
                    let outside = params().workspace.violation_m(&tcp, arm.model());
                    assert!(outside < 1e-9, "outside the workspace by {outside} m");
                }
                if !refused {
                    if new_stream {
                        // A new stream begins where the arm is measured at rest.
                        checker.restart();
                        let measured = state.tcp.value().expect("seated without a measured pose");
                        assert!((tcp.position() - measured.position()).norm() < 1e-9);
                        assert!(angle_between(tcp.rotation(), measured.rotation()) < 1e-7);
                    }
                    world.joint_way |= matches!(after.mode, Mode::Homing { .. });
                    checker.feed(tcp, world.joint_way, arm.model(), &arm.q);
                    if world.joint_way
                        && !matches!(after.mode, Mode::Homing { .. })
                        && still(&checker)
                    {
                        world.joint_way = false;
                    }
                    arm.command(&tcp);
                }
            }
            if matches!(act, Act::Reset) && i == 0 {
                world.stop = false;
            }
        }
    }
}

fn still(checker: &Checker) -> bool {
    let s = &checker.sent;
    s.len() == 4
        && s.windows(2)
            .all(|w| (w[0].position() - w[1].position()).norm() < 1e-12)
}

fn begin(act: Act, world: &mut World, arm: &mut ModelArm, now: Stamp) {
    match act {
        Act::Jump(p, r) | Act::SilentJump(p, r) => {
            world.hand += Vector3::from(p);
            world.turn = rotation_from_log(Vector3::from(r)) * world.turn;
            if matches!(act, Act::Jump(..)) {
                world.edges.reference += 1;
            }
        }
        Act::Stop => {
            world.stop = true;
            world.fresh_act = false;
        }
        Act::Reset => world.stop = false,
        Act::Gesture => {
            world.edges.engage += 1;
            world.edges.engage_began = now;
            world.fresh_act = true;
        }
        Act::OldGesture => {
            world.edges.engage += 1;
            world.edges.engage_began = Stamp::from_ms(1);
        }
        Act::Restart => world.edges.session += 1,
        Act::Fault => arm.fault = Some(ArmFault::joint(FaultKind::MotorError, 3, 9)),
        Act::Frozen => arm.frozen = true,
        Act::Slow => arm.speed = 0.05,
        _ => {}
    }
}

fn receive(
    act: Act,
    world: &mut World,
    last: Option<OperatorSample>,
    now: Stamp,
    packet: u32,
) -> Option<OperatorSample> {
    if let Act::Move(v, w) = act {
        world.hand += Vector3::from(v) * PERIOD_S * 4.0;
        world.turn = rotation_from_log(Vector3::from(w) * PERIOD_S * 4.0) * world.turn;
    }
    if matches!(act, Act::Silence) {
        return last;
    }
    let turn = if matches!(act, Act::Flip) && packet.is_multiple_of(2) {
        UnitQuaternion::new_unchecked(-world.turn.into_inner())
    } else {
        world.turn
    };
    let tracked = !matches!(act, Act::Untracked);
    let pose: Pose<OperatorWorld, Hand> = Pose::from_parts(world.hand, turn);
    Some(OperatorSample {
        received_at: now,
        pose: tracked.then_some(pose),
        opening: Opening::new(0.5),
        quality: if tracked {
            Quality::Good
        } else {
            Quality::Untracked
        },
        edges: world.edges,
        ..OperatorSample::default()
    })
}

/// Engaging needs a fresh act; following never begins without engaging or a hold before it.
fn check_modes(before: &Mode, after: &Mode, world: &mut World) {
    if before.code() == after.code() {
        return;
    }
    if matches!(after, Mode::Engaging { .. }) {
        assert!(
            matches!(before, Mode::Ready),
            "engaging from {}",
            before.name()
        );
        assert!(world.fresh_act, "engaged without a fresh act");
        world.fresh_act = false;
    }
    if matches!(after, Mode::Active { .. }) {
        assert!(
            matches!(before, Mode::Engaging { .. } | Mode::Holding { .. }),
            "active from {}",
            before.name()
        );
    }
    if matches!(before, Mode::Stopped { .. } | Mode::Fault { .. }) {
        assert!(
            matches!(after, Mode::Starting | Mode::Fault { .. }),
            "{} after {}",
            after.name(),
            before.name()
        );
    }
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(if cfg!(debug_assertions) { 300 } else { 10_000 })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    /// Guards invariants 1 to 4: no jump, the stop wins, loss never moves, only vetted commands.
    #[test]
    fn no_sequence_breaks_a_limit(acts in prop::collection::vec(act(), 1..25)) {
        run(&acts);
    }
}

/// Guards the harness itself: in a plain sequence the arm does follow the hand.
#[test]
fn a_plain_sequence_follows() {
    let mut lane = Lane::new(params());
    let mut arm = ModelArm::new(START_Q);
    let mut now = Stamp::from_ms(1_000);
    let mut world = World::default();
    let mut first = None;
    for i in 0..400u32 {
        now = now + Span::from_s(PERIOD_S);
        let act = if i > 150 {
            Act::Move([0.1, 0.05, 0.0], [0.0, 0.0, 0.2])
        } else {
            Act::Move([0.0; 3], [0.0; 3])
        };
        let sample = receive(act, &mut world, None, now, i);
        world.hand -= if i > 150 {
            Vector3::new(0.1, 0.05, 0.0) * PERIOD_S * 3.0
        } else {
            Vector3::zeros()
        };
        let state = *arm.step(now);
        let inputs = LaneInputs {
            now,
            sample: sample.as_ref(),
            gripper_sample: None,
            clutch_sample: None,
            arm: &state,
            model: arm.model(),
            keep_outs: &[],
            stop: None,
            taken_over: false,
            requests: Requests {
                engage: i == 100,
                ..Requests::default()
            },
            away: false,
            command_due: true,
        };
        lane.assess(&inputs);
        let output = lane.act(
            &inputs,
            GroupView {
                holds: false,
                blocked: false,
                engages: true,
            },
        );
        if let Some(command) = output.command
            && let Target::Tcp(tcp) = command.get().target
        {
            first.get_or_insert(tcp);
            arm.command(&tcp);
        }
        lane.sent(output.command.is_some());
    }
    let report = lane.report();
    assert!(
        matches!(report.mode, Mode::Active { .. }),
        "{:?} {:?}",
        report.mode,
        report.inhibits.most_severe()
    );
    let moved =
        report.command.expect("a command").position() - first.expect("a first command").position();
    assert!(
        (moved - Vector3::new(0.124, 0.062, 0.0)).norm() < 0.03,
        "{moved:?} {:?} {:?}",
        report.slowed,
        report.counters
    );
}

/// Guards: braking while turning near the edge stays inside (its way is foreseen to second order only; a margin covers the rest).
#[test]
fn turning_near_the_edge_stays_inside() {
    let z = [0.0; 3];
    run(&[
        (Act::Move(z, z), 1),
        (Act::Gesture, 2),
        (
            Act::SilentJump(
                [0.0, -0.3906824019317618, 0.5877527939928736],
                [2.7713337700042016, 1.7614063353302274, 0.3223816064428976],
            ),
            6,
        ),
        (
            Act::Move(
                [0.956563687006731, 0.0, 0.0],
                [-2.8973062930250832, 0.4078037910687788, -3.5808742244114815],
            ),
            16,
        ),
        (Act::Reset, 40),
        (
            Act::Move(
                [0.40897054062050053, 0.0, 0.0],
                [0.27033191875877405, 0.6884232833388716, -2.7264229750205984],
            ),
            50,
        ),
        (
            Act::Move(
                [0.8466868538402359, -0.20060716238467796, 0.8833802801560972],
                [-1.0671856952781313, 0.0, -2.743891301385917],
            ),
            13,
        ),
        (Act::Reset, 14),
        (
            Act::Move(z, [0.0, -3.601087765338069, -2.143994688024708]),
            10,
        ),
        (Act::Flip, 16),
        (Act::Reset, 38),
        (Act::Reset, 22),
        (Act::Reset, 25),
        (Act::Slow, 34),
    ]);
}
