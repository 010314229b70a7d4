//! Where the hand leads the arm to where it must not go.

use nalgebra::Vector3;

use crate::arm::piper::model::PiperModel;
use crate::rt::clock;
use crate::selftest::Fault;
use crate::selftest::stand::{Setup, Stand, pause};

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        name: "workspace_edge",
        what: "the hand leads half a metre beyond the box",
        expected: "stays inside, comes back at once",
        setup: || Setup {
            lane: "[lane.workspace]\ny_mm = [-120, 120]",
            ..Setup::default()
        },
        play: workspace_edge,
    },
    Fault {
        name: "wrist_axis",
        what: "the hand leads the wrist onto the axis of J1",
        expected: "keeps 50 mm, no joint whips",
        setup: Setup::default,
        play: wrist_axis,
    },
];

/// Moves the hand by `way` in steps of 4 mm and waits until the command has come to rest.
fn lead(stand: &mut Stand, way: Vector3<f64>) {
    let steps = (way.norm() / 0.004).ceil().max(1.0);
    let mut left = steps;
    while left > 0.0 {
        stand.hand.set(|h| h.position += way / steps);
        stand.hand.wait_sent(1);
        left -= 1.0;
    }
    pause(700);
}

fn workspace_edge(stand: &mut Stand) -> Result<String, String> {
    stand.engage()?;
    let since = clock::now();
    lead(stand, Vector3::new(0.0, 0.6, 0.0));
    let status = stand.status()?;
    let most = stand
        .tap()
        .since(since)
        .fold(0.0_f64, |most, t| most.max(t.pose.position().y.abs()));
    let text = format!(
        "y <= {:.2} mm of 120, slowed: {}",
        most * 1e3,
        status.slowed()
    );
    if !(0.110..=0.120_01).contains(&most)
        || status.mode() != "active"
        || status.slowed() != "at_edge"
    {
        return Err(format!("{text}; {}", status.short()));
    }
    // The hand's way back is not lost in what was cut off at the edge for longer than it takes to come back in.
    lead(stand, Vector3::new(0.0, -0.6, 0.0));
    let y = stand
        .tap()
        .last_target()
        .ok_or("no target was seen")?
        .pose
        .position()
        .y;
    if y.abs() > 0.02 {
        return Err(format!("{text}; back at y = {:.1} mm", y * 1e3));
    }
    Ok(format!("{text}; back with the hand"))
}

fn wrist_axis(stand: &mut Stand) -> Result<String, String> {
    stand.engage()?;
    let since = clock::now();
    let q = stand.arm.q();
    // Past the axis, a little to the side: where a wrist would whip around.
    lead(stand, Vector3::new(-0.45, 0.02, 0.05));
    let least = stand.tap().since(since).fold(f64::INFINITY, |least, t| {
        least.min(PiperModel::wrist_axis_distance(&t.pose))
    });
    let status = stand.status()?;
    let swung = (stand.arm.q()[0] - q[0]).abs().to_degrees();
    let text = format!(
        "wrist {:.1} mm from the axis, J1 swung {swung:.0} deg; {}, slowed: {}, vetoes: {}",
        least * 1e3,
        status.mode_text(),
        status.slowed(),
        status.vetoes_text()
    );
    // Vetoes only slow it down there; a refused braking would mean that it went too far.
    if least < 0.0495 || status.mode() != "active" || status.brake_vetoes() > 0 {
        return Err(format!("{text}; {}", status.short()));
    }
    lead(stand, Vector3::new(0.45, -0.02, -0.05));
    stand.follow()?;
    Ok(format!("{text}; led out again"))
}
