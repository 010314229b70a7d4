//! Where the tool shall be, given where the hand is.

use nalgebra::{UnitQuaternion, Vector3};

use crate::geometry::{ArmBase, Hand, OperatorWorld, Pose, Tcp, log_rotation, rotation_from_log};

/// How hand poses become tool poses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MappingKind {
    /// Motion since the anchor is added to the arm's pose at the anchor. Where hand and arm were does not matter.
    Relative,
    /// The hand's pose in its own world *is* the tool's pose, after an offset and a rotation. Entered through `Approaching`.
    Absolute {
        /// Added after scale and yaw, metres in the arm base.
        offset_m: Vector3<f64>,
        /// Applied on the hand's side, so that an identity hand gives this tool orientation.
        rotation: UnitQuaternion<f64>,
    },
}

/// Parameters of the mapping.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mapping {
    /// Relative or absolute.
    pub kind: MappingKind,
    /// Metres of tool per metre of hand. Rotation is never scaled.
    pub scale: f64,
    /// Turns the operator's axes about the vertical into the arm's, rad.
    pub yaw_rad: f64,
    /// Which of x, y, z in the arm base follow; the others stay at the anchor.
    pub follow_position: [bool; 3],
    /// Whether orientation follows; if not it stays at the anchor.
    pub follow_rotation: bool,
}

impl Default for Mapping {
    fn default() -> Self {
        Self {
            kind: MappingKind::Relative,
            scale: 1.0,
            yaw_rad: 0.0,
            follow_position: [true; 3],
            follow_rotation: true,
        }
    }
}

/// Hand and arm pose at the instant of engaging.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Anchor {
    /// Operator pose.
    pub hand: Pose<OperatorWorld, Hand>,
    /// Arm pose.
    pub tcp: Pose<ArmBase, Tcp>,
}

impl Mapping {
    /// The goal for `hand`, before any projection. At the anchor's own hand pose relative mapping gives the anchor's tool pose exactly.
    #[must_use]
    pub fn goal(&self, anchor: &Anchor, hand: &Pose<OperatorWorld, Hand>) -> Pose<ArmBase, Tcp> {
        let yaw = UnitQuaternion::from_axis_angle(&Vector3::z_axis(), self.yaw_rad);
        let (position, rotation) = match self.kind {
            MappingKind::Relative => {
                let moved = yaw * (hand.position() - anchor.hand.position()) * self.scale;
                // Through the rotation vector: the turn since the anchor, expressed in the arm base, sign of the quaternion irrelevant.
                let turned = log_rotation(hand.rotation() * anchor.hand.rotation().inverse());
                (
                    anchor.tcp.position() + moved,
                    rotation_from_log(yaw * turned) * anchor.tcp.rotation(),
                )
            }
            MappingKind::Absolute { offset_m, rotation } => (
                yaw * hand.position() * self.scale + offset_m,
                yaw * hand.rotation() * rotation,
            ),
        };
        let held = anchor.tcp.position();
        let [x, y, z] = self.follow_position;
        let position = Vector3::new(
            if x { position.x } else { held.x },
            if y { position.y } else { held.y },
            if z { position.z } else { held.z },
        );
        Pose::from_parts(
            position,
            if self.follow_rotation {
                rotation
            } else {
                anchor.tcp.rotation()
            },
        )
    }

    /// Absolute mapping needs an approach before it may follow.
    #[must_use]
    pub const fn is_absolute(&self) -> bool {
        matches!(self.kind, MappingKind::Absolute { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::angle_between;

    fn pose<A, B>(x: f64, r: f64) -> Pose<A, B> {
        Pose::from_parts(
            Vector3::new(x, 0.2, -0.1),
            UnitQuaternion::from_euler_angles(r, 0.4, -r),
        )
    }

    /// Guards: zero hand motion gives zero arm motion at every scale and yaw (a scaled absolute position would jump).
    #[test]
    fn zero_delta_gives_zero_motion_at_any_scale() {
        for scale in [0.5, 1.0, 2.0] {
            for yaw_rad in [-1.0, 0.0, 2.5] {
                let mapping = Mapping {
                    scale,
                    yaw_rad,
                    ..Mapping::default()
                };
                let anchor = Anchor {
                    hand: pose(3.0, 1.0),
                    tcp: pose(0.3, -0.4),
                };
                let goal = mapping.goal(&anchor, &anchor.hand);
                assert_eq!(goal.position(), anchor.tcp.position());
                assert!(angle_between(goal.rotation(), anchor.tcp.rotation()) < 1e-12);
            }
        }
    }

    /// Guards: the device turned while disengaged does not turn the tool at the next engage; only the turn since then counts.
    #[test]
    fn rotation_counts_from_the_anchor() {
        let mapping = Mapping::default();
        let hand = pose::<OperatorWorld, Hand>(0.0, 0.7);
        let anchor = Anchor {
            hand,
            tcp: pose(0.3, 0.0),
        };
        let turn = UnitQuaternion::from_axis_angle(&Vector3::z_axis(), 0.3);
        let goal = mapping.goal(
            &anchor,
            &Pose::from_parts(hand.position(), turn * hand.rotation()),
        );
        assert!(angle_between(goal.rotation(), turn * anchor.tcp.rotation()) < 1e-12);
    }

    /// Guards: the sign of the hand's quaternion does not matter.
    #[test]
    fn quaternion_sign_is_irrelevant() {
        let mapping = Mapping::default();
        let anchor = Anchor {
            hand: pose(0.0, 0.7),
            tcp: pose(0.3, 0.0),
        };
        let hand = pose::<OperatorWorld, Hand>(0.1, 1.2);
        let flipped = Pose::from_parts(
            hand.position(),
            UnitQuaternion::new_unchecked(-hand.rotation().into_inner()),
        );
        assert_eq!(
            mapping.goal(&anchor, &hand),
            mapping.goal(&anchor, &flipped)
        );
    }

    /// Guards: yaw turns motion and rotation axes alike; a disabled axis stays at the anchor.
    #[test]
    fn yaw_and_axes() {
        let mapping = Mapping {
            yaw_rad: core::f64::consts::FRAC_PI_2,
            follow_position: [true, false, true],
            ..Mapping::default()
        };
        let anchor = Anchor {
            hand: Pose::identity(),
            tcp: pose(0.3, 0.0),
        };
        let hand = Pose::from_parts(
            Vector3::new(0.1, -0.2, 0.05),
            UnitQuaternion::from_axis_angle(&Vector3::x_axis(), 0.5),
        );
        let goal = mapping.goal(&anchor, &hand);
        let moved = goal.position() - anchor.tcp.position();
        assert!((moved - Vector3::new(0.2, 0.0, 0.05)).norm() < 1e-12);
        let turn = goal.rotation() * anchor.tcp.rotation().inverse();
        assert!((log_rotation(turn) - Vector3::new(0.0, 0.5, 0.0)).norm() < 1e-12);
    }

    /// Guards: the device document's absolute mapping; an identity hand points the tool forward.
    #[test]
    fn absolute_identity_points_forward() {
        let rotation =
            UnitQuaternion::from_axis_angle(&Vector3::y_axis(), core::f64::consts::FRAC_PI_2);
        let mapping = Mapping {
            kind: MappingKind::Absolute {
                offset_m: Vector3::new(0.0, 0.0, 0.3),
                rotation,
            },
            ..Mapping::default()
        };
        let anchor = Anchor {
            hand: Pose::identity(),
            tcp: Pose::identity(),
        };
        let goal = mapping.goal(
            &anchor,
            &Pose::from_parts(Vector3::new(0.25, 0.0, 0.1), UnitQuaternion::identity()),
        );
        assert!((goal.position() - Vector3::new(0.25, 0.0, 0.4)).norm() < 1e-12);
        assert!((goal.rotation() * Vector3::z() - Vector3::x()).norm() < 1e-12);
    }
}
