//! When the gripper follows the operator's opening.

use crate::units::Opening;

/// How near the operator's opening must come to the gripper's before the gripper follows.
const PICKUP_BAND: f64 = 0.08;

/// Soft takeover of the gripper. After engaging, the gripper stays until the operator's opening meets (or crosses) the commanded one,
/// so that an engage gesture made with an open hand never drops what the gripper holds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum GripperPickup {
    /// Not following.
    #[default]
    Idle,
    /// Engaged; waiting for the opening to meet the command. Carries the last opening seen.
    Waiting(Option<f64>),
    /// Following.
    Following,
}

impl GripperPickup {
    /// At engaging.
    pub fn engage(&mut self) {
        *self = Self::Waiting(None);
    }

    /// At holding, disengaging, stopping.
    pub fn release(&mut self) {
        *self = Self::Idle;
    }

    /// The goal for the gripper, or `None` to keep it where it is. `commanded` is the last commanded opening; `None` (never commanded)
    /// is met by whatever the arm reports as `measured`.
    pub fn goal(
        &mut self,
        operator: Option<Opening>,
        commanded: Option<f64>,
        measured: Option<f64>,
    ) -> Option<f64> {
        let wanted = operator?.get();
        match *self {
            Self::Idle => None,
            Self::Following => Some(wanted),
            Self::Waiting(last) => {
                // A gripper that has told neither target nor position is not moved.
                let present = commanded.or(measured)?;
                let met = (wanted - present).abs() <= PICKUP_BAND;
                let crossed = last.is_some_and(|l| (l - present) * (wanted - present) <= 0.0);
                if met || crossed {
                    *self = Self::Following;
                    Some(wanted)
                } else {
                    *self = Self::Waiting(Some(wanted));
                    None
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(v: f64) -> Option<Opening> {
        Opening::new(v)
    }

    /// Guards: engaging with an open hand while the gripper holds something closed does not open it.
    #[test]
    fn engage_never_drops_what_the_gripper_holds() {
        let mut g = GripperPickup::default();
        assert_eq!(g.goal(open(1.0), Some(0.1), None), None);
        g.engage();
        assert_eq!(g.goal(open(1.0), Some(0.1), None), None);
        assert_eq!(g.goal(open(0.5), Some(0.1), None), None);
        assert_eq!(g.goal(open(0.0), Some(0.1), None), Some(0.0), "crossed");
        assert_eq!(g.goal(open(0.9), Some(0.1), None), Some(0.9));
        assert_eq!(
            g.goal(None, Some(0.1), None),
            None,
            "no opening holds the gripper"
        );
        g.release();
        assert_eq!(g.goal(open(0.9), Some(0.1), None), None);
    }

    /// Guards: a gripper that never reported is not moved to a guessed place.
    #[test]
    fn unknown_gripper_is_not_guessed() {
        let mut g = GripperPickup::default();
        g.engage();
        assert_eq!(g.goal(open(0.5), None, None), None);
        assert_eq!(g.goal(open(0.5), None, Some(0.52)), Some(0.5));
    }
}
