//! [`Subject`]: what the computer is to be ready for. With a plan: its core, rate, buses and ports; without: whatever is there.

use crate::arm::can::CanAddress;
use crate::config::{ArmKindPlan, Plan};

/// Rate that is assumed without a plan, hertz: the default of plans.
const RATE_HZ: u32 = 200;
/// Every Piper has this bitrate and no other.
const PIPER_BITRATE: u32 = 1_000_000;

/// What the computer is to be ready for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Core of the control thread, if the plan names one.
    pub core: Option<usize>,
    /// Cores that this process may use.
    pub allowed: Vec<usize>,
    /// Control cycles per second.
    pub rate_hz: u32,
    /// Buses of the plan's arms; without a plan `None`, and every bus that is there is looked at.
    pub can: Option<Vec<CanWanted>>,
    /// Ports of the plan's operators.
    pub listen: Vec<ListenWanted>,
}

/// A bus that an arm needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanWanted {
    /// Interface.
    pub interface: String,
    /// Bits per second.
    pub bitrate: u32,
    /// The arm on it.
    pub arm: String,
}

/// A port that an operator's packets come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenWanted {
    /// The operator.
    pub operator: String,
    /// Port number, UDP.
    pub port: u16,
    /// Only this computer can send to it.
    pub only_local: bool,
}

impl Subject {
    /// Whatever is there. `allowed` are the cores that this process may use.
    #[must_use]
    pub const fn anything(allowed: Vec<usize>) -> Self {
        Self {
            core: None,
            allowed,
            rate_hz: RATE_HZ,
            can: None,
            listen: Vec::new(),
        }
    }

    /// What a plan needs. `allowed` are the cores that this process may use.
    #[must_use]
    pub fn of(plan: &Plan, allowed: Vec<usize>) -> Self {
        let can = plan.arms.iter().filter_map(|arm| match &arm.kind {
            ArmKindPlan::Piper(piper) => match &piper.can {
                CanAddress::Interface(name) => Some(CanWanted {
                    interface: name.to_string(),
                    bitrate: PIPER_BITRATE,
                    arm: arm.name.clone(),
                }),
                CanAddress::LocalPath(_) | CanAddress::LocalAbstract(_) => None,
            },
        });
        let listen = plan.operators.iter().map(|operator| {
            let address = operator.device.listen();
            ListenWanted {
                operator: operator.name.clone(),
                port: address.port(),
                only_local: address.ip().is_loopback(),
            }
        });
        Self {
            core: plan.control.core.map(|core| core as usize),
            allowed,
            rate_hz: plan.rate_hz,
            can: Some(can.collect()),
            listen: listen.collect(),
        }
    }

    /// The core that control will run on: the plan's, else the last that this process may use (isolated cores are not among those).
    #[must_use]
    pub fn control_core(&self) -> usize {
        self.core
            .or_else(|| self.allowed.last().copied())
            .unwrap_or(0)
    }

    /// Is this bus one to look at?
    #[must_use]
    pub fn wants(&self, interface: &str) -> bool {
        self.can
            .as_ref()
            .is_none_or(|wanted| wanted.iter().any(|w| w.interface == interface))
    }
}
