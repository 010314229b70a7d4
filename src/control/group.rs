//! What lanes do to each other: holds spread, engaging is joint.

use super::params::Coupling;

/// What one lane tells the others, before any of them acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaneStanding {
    /// Something of its own blocks following.
    pub blocked: bool,
    /// Following, and nothing of its own to hold for.
    pub follows_well: bool,
    /// Has engaged and waits for the group.
    pub engaging: bool,
    /// Following or holding.
    pub engaged: bool,
}

/// How the rest of the group looks from one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupView {
    /// Another lane holds for a cause of its own, or has fallen out of following.
    pub holds: bool,
    /// Another lane is blocked, so that the group cannot engage.
    pub blocked: bool,
    /// Every other lane engages too, or follows already.
    pub engages: bool,
}

/// The view of lane `own` onto the others.
#[must_use]
pub fn view(own: usize, standings: &[LaneStanding], coupling: Coupling) -> GroupView {
    if coupling == Coupling::Lane {
        return GroupView {
            holds: false,
            blocked: false,
            engages: true,
        };
    }
    let mut view = GroupView {
        holds: false,
        blocked: false,
        engages: true,
    };
    for (_, s) in standings.iter().enumerate().filter(|(i, _)| *i != own) {
        view.blocked |= s.blocked;
        view.holds |= !s.follows_well;
        view.engages &= s.engaging || s.engaged;
    }
    view
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards: a lane that holds only because the group holds does not hold the group in turn.
    #[test]
    fn lanes_do_not_hold_each_other_for_ever() {
        let well = LaneStanding {
            follows_well: true,
            engaged: true,
            ..LaneStanding::default()
        };
        let ill = LaneStanding {
            blocked: true,
            engaged: true,
            ..LaneStanding::default()
        };
        let group = [well, ill];
        assert!(view(0, &group, Coupling::All).holds);
        assert!(!view(1, &group, Coupling::All).holds);
        assert!(!view(0, &group, Coupling::Lane).holds);
        assert!(!view(0, &[well], Coupling::All).holds, "alone");
    }
}
