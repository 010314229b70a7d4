//! What an operator's device, its network and its wearer can do wrong.

use crate::rig::{Rig, pause};
use nalgebra::{UnitQuaternion, Vector3};
use telearm::rt::clock;

/// Guards: where the hand is when it is first seen does not matter: engaging moves nothing, however far away and however turned it is.
#[test]
fn first_frame_60_cm_and_60_degrees_away() {
    let rig = Rig::new();
    rig.hand().set(|h| {
        h.position += Vector3::new(0.4, 0.4, -0.2);
        h.rotation = UnitQuaternion::from_euler_angles(0.3, 1.0, 0.2);
    });
    pause(300);
    let since = clock::now();
    rig.engage();
    rig.wait_mode("active");
    pause(300);
    // The breath of the hand is 0.5 mm.
    assert!(rig.side().tap().travel_m(since, clock::now()) < 0.01);
    rig.follow();
    rig.finish();
}
