//! The Piper's line in the registry.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "start-up and command line only"
)]

use std::sync::Arc;

use super::driver::PiperDriver;
use super::emulate::{EmulatorFaults, FAULT_NAMES, StartState};
use super::emulate_run::PiperEmulator;
use super::model::{DhVariant, PiperModel};
use super::params::{COMMAND_HZ_MAX, DhChoice, DriveMode, PiperParams};
use crate::arm::can::{CanAddress, StampSource};
use crate::arm::probe::{ProbeReport, ProbeRequest};
use crate::arm::registry::{
    AnyArm, AnyModel, ArmKind, ArmPlan, BuiltArm, DrivenBy, RunningEmulator,
};

/// The Piper.
#[derive(Debug, Clone, Copy)]
pub struct PiperKind;

impl ArmKind for PiperKind {
    fn id(&self) -> &'static str {
        "piper"
    }

    fn name(&self) -> &'static str {
        "AgileX Piper"
    }

    fn joints(&self) -> usize {
        6
    }

    fn driven_by(&self) -> DrivenBy {
        DrivenBy {
            pose: true,
            joint: true,
        }
    }

    fn command_hz_default(&self) -> u32 {
        COMMAND_HZ_MAX
    }

    fn parse(&self, table: toml::Table) -> Result<Box<dyn ArmPlan>, Vec<String>> {
        let params: PiperParams = table
            .try_into()
            .map_err(|e: toml::de::Error| vec![e.message().to_owned()])?;
        params
            .validate()
            .map_err(|wrong| wrong.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        Ok(Box::new(params))
    }

    fn emulate(&self, bus: &CanAddress) -> Result<Box<dyn RunningEmulator>, String> {
        match PiperEmulator::start(bus, StartState::default(), EmulatorFaults::default()) {
            Ok(emulator) => Ok(Box::new(emulator)),
            Err(error) => Err(error.to_string()),
        }
    }

    fn emulator_faults(&self) -> &'static [&'static str] {
        FAULT_NAMES
    }

    fn probe(&self, request: &ProbeRequest) -> Result<ProbeReport, String> {
        super::probe::probe(request)
    }
}

impl ArmPlan for PiperParams {
    fn command_hz(&self) -> u32 {
        self.command_hz
    }

    fn driven_by(&self) -> DrivenBy {
        DrivenBy {
            pose: self.mode == DriveMode::Pose,
            joint: self.mode == DriveMode::Joint,
        }
    }

    fn model(&self) -> AnyModel {
        AnyModel::Six(Box::new(PiperModel::new(
            if self.dh == DhChoice::NoOffset {
                DhVariant::Old
            } else {
                DhVariant::Offset
            },
        )))
    }

    fn lines(&self) -> Vec<String> {
        let mode = match self.mode {
            DriveMode::Pose => "pose (move mode P)",
            DriveMode::Joint => "joint (move mode J)",
        };
        vec![
            format!("can = {}", self.can),
            format!("speed_percent = {}", self.speed_percent),
            format!("mode = {mode}"),
            format!("command_hz = {}", self.command_hz),
            format!(
                "gripper = {}, gripper_max_um = {}, gripper_effort_mnm = {}",
                self.gripper, self.gripper_max_um, self.gripper_effort_mnm
            ),
            format!("dh = {:?}", self.dh),
        ]
    }

    fn bus(&self) -> Option<&CanAddress> {
        Some(&self.can)
    }

    fn build(&self, stamps: StampSource) -> Result<BuiltArm, String> {
        let driver = PiperDriver::open(self.clone(), stamps).map_err(|e| e.to_string())?;
        let report = Arc::clone(driver.report());
        Ok(BuiltArm {
            report,
            command_hz: self.command_hz,
            arm: AnyArm::Six(Box::new(driver)),
        })
    }
}
