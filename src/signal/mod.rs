//! What flows between the stages: plain `Copy` data, SI units, our frames.
//!
//! [`OperatorSample`] goes from an input thread through a mailbox to control; [`ArmState`] comes from an arm's driver each cycle;
//! [`ArmCommand`] goes, once vetted, to the driver.

mod arm;
mod operator;

pub use arm::{Aged, ArmCommand, ArmFault, ArmPhase, ArmState, FaultKind, FeedbackPulse, Target};
pub use operator::{Edges, LEADER_JOINTS_MAX, OperatorSample, Quality};
