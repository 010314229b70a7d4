//! The vendor's own forward kinematics is checked in `tests/golden.rs`; here stand the inverse and the singular poses.

#![allow(clippy::disallowed_types, clippy::disallowed_macros)]

use proptest::prelude::*;

use super::*;
use crate::geometry::angle_between;

fn joints() -> impl Strategy<Value = [f64; 6]> {
    let r = JOINT_RANGES.map(|range| range.lower..=range.upper);
    let [a, b, c, d, e, f] = r;
    (a, b, c, d, e, f).prop_map(|(a, b, c, d, e, f)| [a, b, c, d, e, f])
}

fn pose_error(a: &Pose<ArmBase, Tcp>, b: &Pose<ArmBase, Tcp>) -> f64 {
    (a.position() - b.position()).norm() + angle_between(a.rotation(), b.rotation())
}

/// Solutions of the pose at `q`, each checked for pose and limits.
fn checked_solutions(model: &PiperModel, q: &[f64; 6], seed: &[f64; 6]) -> IkSolutions {
    let pose = model.fk(q);
    let all = model.ik_all(&pose, seed).unwrap();
    for solution in &all {
        let error = pose_error(&model.fk(solution), &pose);
        assert!(error < 1e-9, "{solution:?} is off by {error:e} for {q:?}");
        assert_eq!(model.chain().check_limits(solution), Ok(()));
    }
    all
}

fn largest_difference(a: &[f64; 6], b: &[f64; 6]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Guards: the inverse finds the joints that made the pose, in both firmware generations, and nothing that is not a solution.
    #[test]
    fn inverse_contains_the_joints_that_made_the_pose(q in joints(), seed in joints(), old: bool) {
        let model = PiperModel::new(if old { DhVariant::Old } else { DhVariant::Offset });
        let all = checked_solutions(&model, &q, &seed);
        // Straight elbow, straight wrist, wrist on the base axis: there the joints are known to the square root of a rounding error.
        let pose = model.fk(&q);
        let straight = model.wrist_reach_m()[1] - (PiperModel::wrist_centre(&pose) - shoulder()).norm();
        if straight > 1e-9 && q[4].abs() > 1e-5 && PiperModel::wrist_axis_distance(&pose) > 1e-5 {
            let nearest = all.iter().map(|s| largest_difference(s, &q)).fold(f64::INFINITY, f64::min);
            prop_assert!(nearest < 1e-9, "nearest solution is {nearest:e} away");
        }
        // Seeded with the truth, the chooser returns it even where a joint is free.
        let chosen = model.ik(&pose, Choice::Nearest(q)).unwrap();
        prop_assert!(largest_difference(&chosen, &q) < 2e-4, "{chosen:?}");
        prop_assert!(pose_error(&model.fk(&chosen), &pose) < 1e-9);
    }

    /// Guards: the short way to the nearest branch gives the branch that a look at all of them gives, or leaves the answer to that look. It
    /// may not be asked for joints that no branch has, nor prefer one beyond a limit.
    #[test]
    fn short_way_agrees_with_all_branches(q in joints(), off in prop::array::uniform6(-1.0..1.0_f64), size in 0.0..1.5_f64, old: bool) {
        let model = PiperModel::new(if old { DhVariant::Old } else { DhVariant::Offset });
        let pose = model.fk(&q);
        let mut seed = q;
        seed.iter_mut().zip(off).for_each(|(s, o)| *s += size * o);
        if let Some(short) = model.ik_continued(&pose, &seed) {
            let all = model.ik_all(&pose, &seed).unwrap();
            let nearest = all.iter().min_by(|a, b| distance_squared(a, &seed).total_cmp(&distance_squared(b, &seed))).unwrap();
            // As well known as the pose itself, which near a straight wrist is less for J4 and J6 apart.
            prop_assert!(largest_difference(&short, nearest) < 1e-8 / q[4].abs().clamp(1e-3, 1.0), "{short:?} {nearest:?} {seed:?}");
            prop_assert!(pose_error(&model.fk(&short), &pose) < 1e-9);
            prop_assert_eq!(model.chain().check_limits(&short), Ok(()));
        } else if size < 0.1 {
            // Refused near a seed only where something is singular or a limit is near.
            let bend = (model.wrist_reach_m()[1] - (PiperModel::wrist_centre(&pose) - shoulder()).norm()).abs();
            let at_limit = q.iter().zip(&JOINT_RANGES).any(|(q, r)| *q - r.lower < 1e-6 || r.upper - *q < 1e-6);
            prop_assert!(bend < 0.02 || q[4].abs() < 1e-5 || PiperModel::wrist_axis_distance(&pose) < 0.02 || at_limit, "{q:?} {seed:?}");
        }
    }

    /// Guards: whatever the pose, the inverse answers with solutions or a reason, and never a joint beyond its limit.
    #[test]
    fn any_pose_gets_an_answer(
        p in [-0.9..0.9_f64, -0.9..0.9_f64, -0.6..1.0_f64], e in [-3.2..3.2_f64, -1.6..1.6_f64, -3.2..3.2_f64],
    ) {
        let model = PiperModel::new(DhVariant::Offset);
        let rotation = nalgebra::UnitQuaternion::from_euler_angles(e[0], e[1], e[2]);
        let pose = Pose::from_parts(Vector3::from(p), rotation);
        match (model.ik_all(&pose, &[0.0; 6]), model.check_reach(&pose)) {
            (Ok(all), Ok(())) => {
                for q in &all {
                    prop_assert!(pose_error(&model.fk(q), &pose) < 1e-9);
                    prop_assert_eq!(model.chain().check_limits(q), Ok(()));
                }
                let free = model.ik(&pose, Choice::Unseeded).unwrap();
                prop_assert!(all.iter().any(|q| largest_difference(q, &free) < 1e-12));
            }
            (Err(IkFailure::BeyondLimits), Ok(())) => {}
            (Err(refused), Err(reach)) => prop_assert_eq!(refused, reach),
            other => prop_assert!(false, "{other:?}"),
        }
    }
}

/// Guards: the zero pose of both firmware generations, as the device's document gives it.
#[test]
fn zero_pose_is_the_documents() {
    for (variant, x, z) in [
        (DhVariant::Offset, 0.056_127_5, 0.213_266_3),
        (DhVariant::Old, 0.054_953, 0.203_387),
    ] {
        let pose = PiperModel::new(variant).fk(&[0.0; 6]);
        let expected = Vector3::new(x, 0.0, z);
        assert!((pose.position() - expected).norm() < 1e-6);
        let tilt = nalgebra::UnitQuaternion::from_euler_angles(0.0, 85_f64.to_radians(), 0.0);
        assert!(angle_between(pose.rotation(), tilt) < 1e-9);
    }
}

/// Guards: exactly singular poses. J5 = 0 (J4 and J6 share a turn), a stretched elbow, every joint on a limit: the answer is still a
/// solution, and the seed decides what is free.
#[test]
fn singular_poses_are_solved() {
    let model = PiperModel::new(DhVariant::Offset);
    let (_, forearm_angle) = forearm();
    let [_, offset3] = model.theta_offsets;
    let stretched = -forearm_angle - offset3 - TAU;
    let seed = [0.0; 6];
    for q in [
        [0.3, 1.0, -1.0, 0.4, 0.0, -0.9],
        [0.3, 1.0, stretched, 0.4, 0.5, -0.9],
        [0.3, 1.0, stretched, 0.4, 0.0, -0.9],
        JOINT_RANGES.map(|range| range.lower),
        JOINT_RANGES.map(|range| range.upper),
        [0.0; 6],
    ] {
        checked_solutions(&model, &q, &seed);
        // Straight elbow and straight wrist at once leave J5 as unsure as a square root of rounding, and J4 with it.
        let doubly_singular = q[2] == stretched && q[4] == 0.0;
        let chosen = model.ik(&model.fk(&q), Choice::Nearest(q)).unwrap();
        let off = largest_difference(&chosen, &q);
        assert!(off < 1e-6 || doubly_singular, "{q:?} {chosen:?}");
    }
    // With J4 free, the turn goes where the seed wants it.
    let pose = model.fk(&[0.3, 1.0, -1.0, 0.4, 0.0, -0.9]);
    let chosen = model
        .ik(&pose, Choice::Nearest([0.3, 1.0, -1.0, -0.5, 0.0, 0.0]))
        .unwrap();
    assert!((chosen[3] + 0.5).abs() < 1e-6 && chosen[5].abs() < 1e-6);
}

/// Guards: with the wrist centre on the axis of J1, J1 is the seed's, not a jump to zero.
#[test]
fn on_the_base_axis_the_seed_decides() {
    let model = PiperModel::new(DhVariant::Offset);
    // The elbow bent so that the wrist centre stands right over the shoulder.
    let rotation = nalgebra::UnitQuaternion::from_euler_angles(0.0, 0.4, 0.7);
    let flange = Vector3::new(0.0, 0.0, SHOULDER_HEIGHT_M + 0.3)
        + rotation * Vector3::new(0.0, 0.0, WRIST_TO_FLANGE_M);
    let pose = Pose::from_parts(flange, rotation);
    assert!(PiperModel::wrist_axis_distance(&pose) < 1e-12);
    let seed = [0.7, 1.0, -1.0, 0.0, 0.3, 0.0];
    let all = model.ik_all(&pose, &seed).unwrap();
    assert!(
        all.iter()
            .all(|q| (q[0] - 0.7).abs() < 1e-12 || (q[0] - 0.7 + PI).abs() < 1e-12)
    );
    assert!(all.iter().all(|q| pose_error(&model.fk(q), &pose) < 1e-9));
}

/// Guards: the reach sphere: 536.7 mm around the shoulder, and the failure says how far off.
#[test]
fn reach_is_the_documents() {
    let model = PiperModel::new(DhVariant::Offset);
    let [min, max] = model.wrist_reach_m();
    assert!(
        (max - 0.5367).abs() < 5e-5 && (0.08..0.10).contains(&min),
        "{min} {max}"
    );
    let at = |x: f64| {
        Pose::from_parts(
            Vector3::new(x, 0.0, SHOULDER_HEIGHT_M),
            nalgebra::UnitQuaternion::from_euler_angles(0.0, PI / 2.0, 0.0),
        )
    };
    assert_eq!(
        model.check_reach(&at(max + WRIST_TO_FLANGE_M - 1e-6)),
        Ok(())
    );
    assert!(matches!(
        model.check_reach(&at(max + WRIST_TO_FLANGE_M + 1e-6)),
        Err(IkFailure::TooFar { .. })
    ));
    assert!(matches!(
        model.check_reach(&at(min + WRIST_TO_FLANGE_M - 1e-6)),
        Err(IkFailure::TooNear { .. })
    ));
    assert_eq!(model.check_reach(&at(f64::NAN)), Err(IkFailure::NotFinite));
    assert!(matches!(
        model.ik(&at(0.7), Choice::Unseeded),
        Err(IkFailure::TooFar { .. })
    ));
}

/// Guards: a hand that moves by millimetres moves the chosen joints by little, all along a path: no branch is changed on the way.
#[test]
fn nearest_follows_without_changing_branch() {
    let model = PiperModel::new(DhVariant::Offset);
    let mut q = [0.2, 1.2, -1.3, 0.3, 0.6, -0.2];
    let start = model.fk(&q);
    for i in 1..=500 {
        let t = f64::from(i) * 0.01;
        let shift = Vector3::new(
            0.03 * t.sin(),
            0.05 * (1.3 * t).sin(),
            0.04 * (0.7 * t).sin(),
        );
        let turn = nalgebra::UnitQuaternion::from_euler_angles(
            0.2 * t.sin(),
            0.1 * t.sin(),
            0.3 * t.sin(),
        );
        let pose = Pose::from_parts(start.position() + shift, turn * start.rotation());
        let next = model.ik(&pose, Choice::Nearest(q)).unwrap();
        assert_eq!(model.ik_continued(&pose, &q), Some(next), "the short way");
        assert!(
            largest_difference(&next, &q) < 0.05,
            "step {i}: {q:?} -> {next:?}"
        );
        q = next;
    }
}
