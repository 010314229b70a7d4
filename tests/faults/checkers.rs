//! The checkers themselves: each would notice what it is there for.

use std::panic::{AssertUnwindSafe, catch_unwind};

use nalgebra::{UnitQuaternion, Vector3};
use telearm::arm::can::local_bus::OnBus;
use telearm::arm::frame::Frame;
use telearm::arm::piper::wire::EndPose;
use telearm::geometry::Pose;
use telearm::time::Stamp;

use crate::rig::tap::Tap;

fn on_bus(at_us: u64, frame: Frame) -> OnBus {
    OnBus {
        at: Stamp::from_ns(at_us * 1000),
        from: 2,
        frame,
    }
}

fn pose_frames(x: f64) -> [Frame; 3] {
    let pose = Pose::from_parts(Vector3::new(x, 0.0, 0.3), UnitQuaternion::identity());
    EndPose::from_pose(&pose, &EndPose::default())
        .unwrap()
        .frames()
}

/// A command every 5 ms with these positions.
fn tap_of(xs: impl IntoIterator<Item = f64>) -> Tap {
    let mut tap = Tap::default();
    for (n, x) in (0..).zip(xs) {
        tap.extend(pose_frames(x).map(|f| on_bus(5_000 * n, f)).to_vec());
    }
    tap
}

fn fails(check: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(check)).is_err()
}

#[test]
fn the_checkers_would_notice() {
    // Constant acceleration of 8 m/s2 up to 0.2 m/s is fine.
    let ramp = |n: u32| 0.5 * 8.0 * (0.005 * f64::from(n)).powi(2);
    let good = tap_of((0..5).map(ramp));
    good.assert_continuous();
    good.assert_whole();
    assert!(
        fails(|| tap_of([0.0, 0.0, 0.0014, 0.0028]).assert_continuous()),
        "speed"
    );
    assert!(
        fails(|| tap_of([0.0, 0.0, 0.001, 0.001]).assert_continuous()),
        "acceleration"
    );
    assert!(
        fails(|| tap_of([0.0, 0.0, 0.1]).assert_continuous()),
        "jump"
    );
    let end = Stamp::from_ms(1000);
    tap_of([0.1; 5]).assert_frozen(Stamp::from_ms(1), end);
    assert!(
        fails(|| tap_of([0.1, 0.1, 0.100_002]).assert_frozen(Stamp::from_ms(1), end)),
        "motion"
    );
    let mut torn = Tap::default();
    let [a, b, c] = pose_frames(0.1);
    torn.extend(vec![on_bus(1, a), on_bus(2, a), on_bus(3, b), on_bus(4, c)]);
    assert!(fails(|| torn.assert_whole()), "torn");
    let mut off = Tap::default();
    off.extend(vec![on_bus(1, Frame::new(0x471, [7, 1, 0, 0, 0, 0, 0, 0]))]);
    assert_eq!(off.power_off_orders(), 1);
}
