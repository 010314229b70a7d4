//! Small chains whose answers can be written down; whole arms are in `tests/golden.rs`.

use core::f64::consts::FRAC_PI_2;

use nalgebra::{Isometry3, SVector, Translation3, UnitQuaternion, Vector3};

use super::*;
use crate::geometry::log_rotation;

const RANGE: JointRange = JointRange {
    lower: -3.0,
    upper: 3.0,
    velocity_max: 1.0,
};

fn planar() -> Chain<2> {
    let joint = |x| ChainJoint::revolute([x, 0.0, 0.0], [0.0; 3], [0.0, 0.0, 2.0], RANGE);
    Chain::new(
        [joint(0.0), joint(0.3)],
        fixed_transform([0.2, 0.0, 0.0], [0.0; 3]),
    )
}

/// Guards: the order of transforms and the tool at the end.
#[test]
fn a_planar_arm_reaches_where_it_should() {
    let tcp = planar().fk(&[FRAC_PI_2, -FRAC_PI_2]);
    assert!((tcp.position() - Vector3::new(0.2, 0.3, 0.0)).norm() < 1e-12);
    assert!(log_rotation(tcp.rotation()).norm() < 1e-12);
    let frames = planar().frames(&[FRAC_PI_2, -FRAC_PI_2]);
    assert!((frames.links[1].translation.vector - Vector3::new(0.0, 0.3, 0.0)).norm() < 1e-12);
    assert_eq!(frames.tcp, tcp);
}

/// Guards: a modified-DH row is Rx(alpha) Tx(a) Rz(theta + offset) Tz(d), in that order.
#[test]
fn a_modified_dh_row_is_the_craig_transform() {
    let row = MdhRow {
        alpha: 0.4,
        a: 0.1,
        theta_offset: 0.7,
        d: 0.2,
        range: RANGE,
    };
    let q = 0.3;
    let expected = Isometry3::from_parts(
        Translation3::identity(),
        UnitQuaternion::from_axis_angle(&Vector3::x_axis(), 0.4),
    ) * Translation3::new(0.1, 0.0, 0.0)
        * UnitQuaternion::from_axis_angle(&Vector3::z_axis(), 0.7 + q)
        * Translation3::new(0.0, 0.0, 0.2);
    let got = Chain::from_mdh([row]).fk(&[q]).iso;
    assert!((got.to_homogeneous() - expected.to_homogeneous()).norm() < 1e-14);
}

/// Guards: the Jacobian is the derivative of the forward kinematics, sliding joints included.
#[test]
fn the_jacobian_is_the_derivative() {
    let mut slide = ChainJoint::revolute([0.0, 0.1, 0.0], [0.3, 0.0, 0.2], [1.0, 0.0, 0.0], RANGE);
    slide.motion = Motion::Prismatic(Vector3::x_axis());
    let chain = Chain::new(
        [
            ChainJoint::revolute([0.0, 0.0, 0.1], [0.0; 3], [0.0, 0.0, 1.0], RANGE),
            slide,
            ChainJoint::revolute([0.2, 0.0, 0.1], [1.0, 0.2, 0.0], [0.0, 1.0, 1.0], RANGE),
        ],
        fixed_transform([0.0, 0.1, 0.3], [0.1, 0.2, 0.3]),
    );
    let q = [0.4, -0.2, 1.1];
    let jacobian = chain.jacobian(&q);
    let h = 1e-6;
    for i in 0..3 {
        let (mut up, mut down) = (q, q);
        up[i] += h;
        down[i] -= h;
        let (up, down) = (chain.fk(&up), chain.fk(&down));
        let linear = (up.position() - down.position()) / (2.0 * h);
        let angular = log_rotation(up.rotation() * down.rotation().inverse()) / (2.0 * h);
        let numeric = SVector::<f64, 6>::from_iterator(linear.iter().chain(&angular).copied());
        assert!((jacobian.column(i) - numeric).norm() < 1e-8, "joint {i}");
    }
}

/// Guards: limits name the joint, and NaN is outside every limit.
#[test]
fn limits_name_the_joint() {
    assert_eq!(planar().check_limits(&[0.0, 3.0]), Ok(()));
    let hit = |q: [f64; 2]| planar().check_limits(&q).map_err(|hit| hit.number);
    assert_eq!(hit([0.0, 3.1]), Err(2));
    assert_eq!(hit([f64::NAN, 3.1]), Err(1));
}
