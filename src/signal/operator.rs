//! [`OperatorSample`]: what an operator says.

use crate::geometry::{Hand, OperatorWorld, Pose};
use crate::time::{SenderTime, Stamp};
use crate::units::Opening;

/// Most joints a leader arm can report in one sample.
pub const LEADER_JOINTS_MAX: usize = 8;

/// Whether the pose of a sample may drive an arm, judged by the input thread, which sees every packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Quality {
    /// Use it.
    Good,
    /// The device says that it does not see the hand (or no sample has come yet).
    #[default]
    Untracked,
    /// The pose stepped further than a hand can; held until three consistent samples made a new reference.
    Jumped,
    /// The pose has been bit-identical for too long while stamps advance.
    Frozen,
}

/// Counters that only grow. A mailbox keeps the newest sample alone; whoever compares counters still sees that something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Edges {
    /// Finished engage gestures (pinch close-hold-open, button press, session start).
    pub engage: u32,
    /// When the last engage gesture began. It counts only if everything had cleared by then.
    pub engage_began: Stamp,
    /// Deliberate disengage acts of the operator.
    pub disengage: u32,
    /// New sender sessions: restart of the sender, new pinned source. Control disengages.
    pub session: u32,
    /// New references after a jump: control re-anchors, never follows across.
    pub reference: u32,
}

/// One sample of one operator.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct OperatorSample {
    /// Our receive time (kernel queue delay taken off).
    pub received_at: Stamp,
    /// The sender's clock, for the spacing of its own samples.
    pub sender_time: Option<SenderTime>,
    /// Hand pose, metres, X forward, Y left, Z up. `None`: this device or packet has none.
    pub pose: Option<Pose<OperatorWorld, Hand>>,
    /// Leader joint angles in radians (or metres), first `leader_joints_len` valid.
    pub leader_joints: [f64; LEADER_JOINTS_MAX],
    /// How many leader joints are valid; 0 for a device without joints.
    pub leader_joints_len: u8,
    /// Gripper opening, 1 = open. `None`: hold the gripper.
    pub opening: Option<Opening>,
    /// Whether the pose may drive an arm.
    pub quality: Quality,
    /// Hold-to-run state: `Some(true)` while the clutch is pressed, `None` for devices engaged by edges.
    pub clutch_pressed: Option<bool>,
    /// Things that happened, as counters.
    pub edges: Edges,
}

impl OperatorSample {
    /// The pose, if it may drive an arm.
    #[must_use]
    pub fn usable_pose(&self) -> Option<Pose<OperatorWorld, Hand>> {
        if self.quality == Quality::Good {
            self.pose
        } else {
            None
        }
    }
}
