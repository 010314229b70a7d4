//! The arms there are: one line each in [`ARMS`].
//!
//! Everything here runs at start-up or on the command line.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "start-up and command line only"
)]

use std::sync::Arc;

use super::Arm;
use super::can::{CanAddress, StampSource};
use super::probe::{ProbeReport, ProbeRequest};
use crate::kinematics::ArmModel;

/// What an arm can be driven by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrivenBy {
    /// Tool poses.
    pub pose: bool,
    /// Joint angles.
    pub joint: bool,
}

/// A driver with its number of joints.
pub enum AnyArm {
    /// Six joints.
    Six(Box<dyn Arm<6>>),
    /// Seven joints.
    Seven(Box<dyn Arm<7>>),
}

/// An arm's geometry with its number of joints, as far as a plan tells; the driver knows better once the arm has answered.
pub enum AnyModel {
    /// Six joints.
    Six(Box<dyn ArmModel<6>>),
    /// Seven joints.
    Seven(Box<dyn ArmModel<7>>),
}

/// What a driver found out about its arm, for status and log; read by plain threads at any time.
pub trait ArmReport: Send + Sync {
    /// Facts and notes, a line each.
    fn lines(&self) -> Vec<String>;
}

/// A driver ready to be polled, and what goes with it.
pub struct BuiltArm {
    /// The driver.
    pub arm: AnyArm,
    /// What it finds out.
    pub report: Arc<dyn ArmReport>,
    /// Commands per second of the plan, checked.
    pub command_hz: u32,
}

/// The parameters of an arm, checked, before anything is opened.
pub trait ArmPlan: Send + Sync {
    /// Commands per second.
    fn command_hz(&self) -> u32;

    /// What the plan drives the arm by.
    fn driven_by(&self) -> DrivenBy;

    /// Geometry as far as the plan tells: for `telearm check`, without an arm.
    fn model(&self) -> AnyModel;

    /// The resolved parameters, a `key = value` line each.
    fn lines(&self) -> Vec<String>;

    /// The bus, when it is a CAN bus. Two lanes must not share one.
    fn bus(&self) -> Option<&CanAddress>;

    /// Opens the arm's link and makes its driver. Nothing is sent yet.
    ///
    /// # Errors
    /// One sentence for the user.
    fn build(&self, stamps: StampSource) -> Result<BuiltArm, String>;
}

/// An emulated arm running in a thread of its own; dropping it ends it.
pub trait RunningEmulator: Send {
    /// Switches a fault on or off by name; see [`ArmKind::emulator_faults`].
    ///
    /// # Errors
    /// An unknown name; the known ones are listed.
    fn set_fault(&self, name: &str, on: bool) -> Result<(), String>;

    /// Measured joint angles of the emulated arm, rad.
    fn joints(&self) -> Vec<f64>;
}

/// One kind of arm.
pub trait ArmKind: Sync {
    /// Id in plans and on the command line.
    fn id(&self) -> &'static str;
    /// Name for people.
    fn name(&self) -> &'static str;
    /// Number of joints.
    fn joints(&self) -> usize;
    /// What it can be driven by.
    fn driven_by(&self) -> DrivenBy;
    /// Commands per second if the plan says nothing.
    fn command_hz_default(&self) -> u32;
    /// Reads and checks the arm's table of a plan.
    ///
    /// # Errors
    /// Every key that is wrong, a sentence each.
    fn parse(&self, table: toml::Table) -> Result<Box<dyn ArmPlan>, Vec<String>>;
    /// Starts an emulator on a bus (which must exist).
    ///
    /// # Errors
    /// One sentence for the user.
    fn emulate(&self, bus: &CanAddress) -> Result<Box<dyn RunningEmulator>, String>;
    /// Names of the faults that the emulator plays.
    fn emulator_faults(&self) -> &'static [&'static str];
    /// Looks whether this arm is on a bus, without motion.
    ///
    /// # Errors
    /// One sentence for the user: the bus cannot be opened.
    fn probe(&self, request: &ProbeRequest) -> Result<ProbeReport, String>;
}

/// The arms.
pub static ARMS: &[&dyn ArmKind] = &[&super::piper::PiperKind];

/// The arm of an id.
#[must_use]
pub fn find(id: &str) -> Option<&'static dyn ArmKind> {
    ARMS.iter().copied().find(|kind| kind.id() == id)
}
