//! What a lane tells about itself: plain `Copy` data for the status, the events and the recorder.

use crate::geometry::{ArmBase, Pose, Tcp};
use crate::guard::{VETO_NAMES, Veto};
use crate::supervisor::{InhibitSet, Mode};

/// Why a following lane moves slower than the hand, or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Slowed {
    /// It does not.
    #[default]
    No,
    /// The goal lies outside the workspace; the tool waits at its edge.
    AtEdge,
    /// The arm lags; the command waits within the leash.
    Leash,
    /// A joint would pass a limit or its speed.
    Joints,
    /// Another arm's tool is too near.
    Neighbour,
    /// The guard refused the command for another reason.
    Guard,
    /// The bus has no room for a whole command.
    Bus,
}

impl Slowed {
    /// Name as shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::AtEdge => "at_edge",
            Self::Leash => "leash",
            Self::Joints => "joints",
            Self::Neighbour => "neighbour",
            Self::Guard => "guard",
            Self::Bus => "bus",
        }
    }
}

/// Counters of a lane. All only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaneCounters {
    /// Commands sent.
    pub sent: u64,
    /// Commands due and not sent: no room, or the arm not ready.
    pub not_sent: u64,
    /// Gaps in the commands after which motion went on from rest.
    pub stalls: u64,
    /// Refused by the guard, by veto.
    pub vetoes: [u64; VETO_NAMES.len()],
    /// A braking command was refused as well and the last one repeated.
    pub brake_vetoes: u64,
    /// The limiter found no profile and braked.
    pub fallbacks: u64,
    /// Engagements.
    pub engaged: u64,
    /// Engage acts that came before everything had cleared.
    pub edges_ignored: u64,
    /// Anchors taken.
    pub anchors: u64,
    /// Streams begun at the measured pose.
    pub seated: u64,
    /// Escalations to the arm's own stop.
    pub escalations: u64,
}

/// A lane's state after a cycle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaneReport {
    /// Mode.
    pub mode: Mode,
    /// Why it does not move.
    pub inhibits: InhibitSet,
    /// Why it is slow.
    pub slowed: Slowed,
    /// Commanded pose, last sent.
    pub command: Option<Pose<ArmBase, Tcp>>,
    /// Commanded opening, last sent.
    pub opening: Option<f64>,
    /// The arm is on its own stop because we asked for it.
    pub arm_stopped: bool,
    /// Why a braking command was refused, the last time one was.
    pub brake_veto: Option<Veto>,
    /// Counters.
    pub counters: LaneCounters,
}
