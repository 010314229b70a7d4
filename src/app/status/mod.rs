//! What a running telearm says about itself: one snapshot, three ways to show it.
//!
//! The service thread fills a [`StatusSnapshot`] from copies that control and the input threads leave behind; nothing here is seen by a
//! real-time thread. Ages are judged when the snapshot is taken. A value that was never received is `None` and shown as "never": it is
//! not zero.

mod live;
mod show;
#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::geometry::{ArmBase, Pose, Tcp};
use crate::signal::{ArmFault, ArmPhase};
use crate::supervisor::{FaultCause, Inhibit, InhibitSet, Mode};

pub use live::Live;

/// Everything, at one instant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatusSnapshot {
    /// The plan's file.
    pub plan: String,
    /// Seconds since the start.
    pub uptime_s: f64,
    /// Threads and cycle.
    pub process: ProcessStatus,
    /// The stop latch; `None`: clear.
    pub stop: Option<StopStatus>,
    /// One per lane, in the order of the plan.
    pub lanes: Vec<LaneStatus>,
    /// One per operator, in the order of the plan.
    pub sources: Vec<SourceStatus>,
    /// One per arm, in the order of the plan.
    pub arms: Vec<ArmStatus>,
    /// Latest events, oldest first; a few.
    pub events: Vec<String>,
}

/// Threads and cycle.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessStatus {
    /// Cycles per second that the plan asks for.
    pub rate_hz: u32,
    /// Cycles done.
    pub cycles: u64,
    /// Cycles that began more than a period late.
    pub late_cycles: u64,
    /// Longest time from a deadline to being awake, microseconds; `None`: no cycle yet.
    pub wakeup_worst_us: Option<f64>,
    /// Control runs under a real-time policy.
    pub real_time: bool,
    /// Why not, or what was granted.
    pub real_time_reason: String,
    /// Core that control is pinned to; `None`: not pinned.
    pub core: Option<u32>,
    /// Nothing is sent to the arms.
    pub dry_run: bool,
    /// The watchdog holds the arms.
    pub taken_over: bool,
    /// Times that the input thread was away so long that its senders had to begin anew.
    pub input_away: u64,
    /// Page faults of control since its first cycle.
    pub page_faults: u64,
    /// Heap operations of control since its first cycle; `None`: this build does not count them.
    pub heap_operations: Option<u64>,
}

/// A latched stop.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StopStatus {
    /// Why.
    pub reason: String,
    /// Who asked: an operator's name, "command", an arm's name.
    pub source: String,
    /// How long ago, seconds.
    pub age_s: f64,
    /// Operators that assert their stop bit right now; a reset is refused while there are any.
    pub asserted_by: Vec<String>,
}

/// A reason why a lane does not move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Why {
    /// Name as documented.
    pub reason: &'static str,
    /// What can be done.
    pub advice: &'static str,
}

impl From<Inhibit> for Why {
    fn from(inhibit: Inhibit) -> Self {
        Self {
            reason: inhibit.name(),
            advice: inhibit.advice(),
        }
    }
}

/// All reasons of a set, most severe first.
#[must_use]
pub fn whys(set: InhibitSet) -> Vec<Why> {
    set.iter().map(Why::from).collect()
}

/// One lane.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LaneStatus {
    /// Name in the plan.
    pub name: String,
    /// Operator that drives it.
    pub operator: String,
    /// Arm that it drives.
    pub arm: String,
    /// Mode.
    pub mode: &'static str,
    /// What the mode carries: why it holds, homes, is stopped or faulty; empty if nothing.
    pub mode_detail: String,
    /// Why it does not move, most severe first; empty while it follows.
    pub inhibits: Vec<Why>,
    /// Why it is slower than the hand: "no", "at_edge", "leash", "joints", "guard", "bus".
    pub slowed: &'static str,
    /// Age of the last usable sample, milliseconds.
    pub operator_age_ms: Option<f64>,
    /// Commanded pose, last sent.
    pub command: Option<PoseStatus>,
    /// Commanded opening, last sent, 1 = open.
    pub opening: Option<f64>,
    /// Commands sent.
    pub sent: u64,
    /// Commands due and not sent.
    pub not_sent: u64,
    /// Commands that the guard refused, by veto; vetoes that never happened are left out.
    pub vetoes: Vec<Count>,
    /// Engagements.
    pub engaged: u64,
    /// Engage acts that came before everything had cleared.
    pub edges_ignored: u64,
    /// Braking commands that the guard refused as well; the last one was repeated.
    pub brake_vetoes: u64,
}

/// A counter with its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Count {
    /// What is counted.
    pub name: &'static str,
    /// How often.
    pub count: u64,
}

/// Counters that are not zero, with their names.
#[must_use]
pub fn counts(names: &[&'static str], values: &[u64]) -> Vec<Count> {
    names
        .iter()
        .zip(values)
        .filter(|(_, count)| **count > 0)
        .map(|(name, count)| Count {
            name,
            count: *count,
        })
        .collect()
}

/// One operator.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceStatus {
    /// Name in the plan.
    pub name: String,
    /// Device.
    pub device: &'static str,
    /// Where it listens.
    pub listen: String,
    /// Who owns the port; `None`: nobody yet.
    pub sender: Option<String>,
    /// Packets per second over the last second, refused ones included.
    pub packets_per_s: f64,
    /// Datagrams read: accepted and refused ones.
    pub packets: u64,
    /// Packets accepted.
    pub accepted: u64,
    /// Packets refused, by reason; reasons that never happened are left out.
    pub drops: Vec<Count>,
    /// Datagrams that the kernel threw away because the socket was full; not among `packets`.
    pub kernel_drops: u64,
    /// Age of the last usable sample, milliseconds.
    pub age_ms: Option<f64>,
    /// The axes of its packets; `None`: not in doubt for this device.
    pub frame: Option<&'static str>,
    /// They have been verified.
    pub frame_verified: bool,
}

/// One arm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmStatus {
    /// Name in the plan.
    pub name: String,
    /// Kind.
    pub kind: &'static str,
    /// Where it is connected.
    pub link: String,
    /// "starting", "up" or "faulted".
    pub phase: &'static str,
    /// The start step that is waited for, or the fault.
    pub phase_detail: String,
    /// What the driver found out: firmware, geometry, things to know.
    pub notes: Vec<String>,
    /// A passing complaint of the arm.
    pub warning: Option<String>,
    /// Age of the measured pose, milliseconds.
    pub pose_age_ms: Option<f64>,
    /// Age of the measured joints, milliseconds.
    pub joints_age_ms: Option<f64>,
    /// Frames received per second over the last second.
    pub frames_in_per_s: f64,
    /// Frames sent per second over the last second.
    pub frames_out_per_s: f64,
    /// Frames received since the start.
    pub frames_in: u64,
    /// Frames sent since the start.
    pub frames_out: u64,
    /// Frames handed over and not confirmed yet.
    pub in_flight: u64,
    /// Bus error frames.
    pub bus_errors: u64,
    /// Command groups not started for lack of room.
    pub busy: u64,
    /// Measured pose.
    pub measured: Option<PoseStatus>,
    /// Measured opening, 1 = open.
    pub opening: Option<f64>,
}

/// A pose for people: millimetres, and degrees about fixed X, Y, Z (R = Rz Ry Rx).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PoseStatus {
    /// X, Y, Z in the arm base.
    pub position_mm: [f64; 3],
    /// RX, RY, RZ.
    pub rotation_deg: [f64; 3],
}

impl From<&Pose<ArmBase, Tcp>> for PoseStatus {
    fn from(pose: &Pose<ArmBase, Tcp>) -> Self {
        let (rx, ry, rz) = pose.rotation().euler_angles();
        Self {
            position_mm: (pose.position() * 1e3).into(),
            rotation_deg: [rx, ry, rz].map(f64::to_degrees),
        }
    }
}

/// A fault for people: its name, the joint and the arm's own code where there are any.
#[must_use]
pub fn fault_text(fault: &ArmFault) -> String {
    let mut text = fault.kind.name().to_owned();
    if fault.joint > 0 {
        text += &format!(", joint {}", fault.joint);
    }
    if fault.code > 0 {
        text += &format!(", code 0x{:X}", fault.code);
    }
    text
}

/// A phase for people: its name, and the step or fault.
#[must_use]
pub fn phase_text(phase: &ArmPhase) -> (&'static str, String) {
    match phase {
        ArmPhase::Starting(step) => ("starting", (*step).to_owned()),
        ArmPhase::Up => ("up", String::new()),
        ArmPhase::Faulted(fault) => ("faulted", fault_text(fault)),
    }
}

/// What a mode carries, for people. What a stop's numbers mean is in [`StopStatus`].
#[must_use]
pub fn mode_detail(mode: &Mode) -> String {
    match mode {
        Mode::Holding { why, .. } => why.name().to_owned(),
        Mode::Fault { what } => match what {
            FaultCause::Arm(fault) => fault_text(fault),
            FaultCause::FeedbackLost => "feedback_lost".to_owned(),
            FaultCause::TakenOver => "taken_over".to_owned(),
        },
        _ => String::new(),
    }
}
