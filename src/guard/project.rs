//! Moves a goal into the workspace, before shaping.

use nalgebra::Vector3;

use super::Workspace;
use crate::geometry::{ArmBase, Pose, Tcp};
use crate::kinematics::ArmModel;

/// Goals are kept this much inside what the guard allows, so that rounding and shaping never touch the guard's own limit.
const INSIDE_M: f64 = 0.001;
/// The box, the ball and the cylinder are satisfied in turn; a few rounds settle where they meet.
const ROUNDS: usize = 6;

/// A goal within the workspace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Projected {
    /// The goal. Orientation is the wanted one; only the position moves.
    pub pose: Pose<ArmBase, Tcp>,
    /// How far it had to move, metres; 0 for a goal inside.
    pub moved_m: f64,
    /// Nothing within the workspace was found near the goal; `pose` is not usable and the shaper should brake.
    pub failed: bool,
}

/// Nearest admissible position for the wanted orientation: box, then reach ball and wrist-axis cylinder of the wrist centre.
#[must_use]
pub fn project<const N: usize>(
    workspace: &Workspace,
    model: &dyn ArmModel<N>,
    goal: &Pose<ArmBase, Tcp>,
) -> Projected {
    let rotation = goal.rotation();
    let wanted = goal.position();
    let inner = Workspace {
        min_m: workspace.min_m.add_scalar(INSIDE_M),
        max_m: workspace.max_m.add_scalar(-INSIDE_M),
        reach_margin_m: workspace.reach_margin_m + INSIDE_M,
        wrist_axis_min_m: workspace.axis_min_m(model) + INSIDE_M,
    };
    // The wrist centre is the tool point plus an offset that the orientation fixes.
    let to_wrist = model.wrist_center(goal) - wanted;
    let mut p = inner.clamp_to_box(wanted);
    for _ in 0..ROUNDS {
        let wrist = into_cylinder_complement(
            into_ball(p + to_wrist, model, &inner),
            inner.wrist_axis_min_m,
        );
        let next = inner.clamp_to_box(wrist - to_wrist);
        let settled = (next - p).norm() < 1e-9;
        p = next;
        if settled {
            break;
        }
    }
    let pose = Pose::from_parts(p, rotation);
    let failed = !pose.is_finite() || workspace.violation_m(&pose, model) > 0.0;
    Projected {
        pose,
        moved_m: (p - wanted).norm(),
        failed,
    }
}

fn into_ball<const N: usize>(
    wrist: Vector3<f64>,
    model: &dyn ArmModel<N>,
    inner: &Workspace,
) -> Vector3<f64> {
    let Some(ball) = model.reach() else {
        return wrist;
    };
    let radius = ball.radius - inner.reach_margin_m;
    let from_center = wrist - ball.center;
    let distance = from_center.norm();
    if distance <= radius {
        wrist
    } else {
        ball.center + from_center * (radius / distance)
    }
}

fn into_cylinder_complement(wrist: Vector3<f64>, min: f64) -> Vector3<f64> {
    let distance = wrist.x.hypot(wrist.y);
    if distance >= min {
        wrist
    } else if distance > 1e-9 {
        Vector3::new(wrist.x * min / distance, wrist.y * min / distance, wrist.z)
    } else {
        // On the axis every direction is equally near; forward is where arms have room.
        Vector3::new(min, 0.0, wrist.z)
    }
}
