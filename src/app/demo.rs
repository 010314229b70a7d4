//! The demo's other halves: emulated devices on real UDP, an emulated arm on a local bus. The pipeline between them is the real one.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};

use crate::arm::can::{CanAddress, LocalBus};
use crate::arm::piper::emulate::{EmulatorFaults, StartState};
use crate::arm::piper::emulate_run::PiperEmulator;
use crate::config::{ArmKindPlan, Plan};
use crate::operator::emulate::Running;

use super::build::OpenOperator;

/// What keeps the emulated hardware alive.
pub(super) struct Emulated {
    _buses: Vec<LocalBus>,
    _arms: Vec<PiperEmulator>,
}

/// The emulated hands; they end with this.
pub(super) struct Hands {
    _hands: Vec<Running>,
    _hardware: Emulated,
}

/// Puts every arm of the plan on a local bus of its own with an emulated arm, and every operator on loopback.
pub(super) fn prepare(plan: &mut Plan) -> Result<Emulated> {
    let mut emulated = Emulated {
        _buses: Vec::new(),
        _arms: Vec::new(),
    };
    for (index, arm) in plan.arms.iter_mut().enumerate() {
        let ArmKindPlan::Piper(piper) = &mut arm.kind;
        let address: CanAddress = bus_name(index).parse()?;
        let bus = LocalBus::start(&address).context("cannot start the demo's bus")?;
        let start = StartState {
            q: piper.home_deg.map(f64::to_radians),
            ..StartState::default()
        };
        emulated._arms.push(PiperEmulator::start(
            &address,
            start,
            EmulatorFaults::default(),
        )?);
        emulated._buses.push(bus);
        piper.can = address;
    }
    for operator in &mut plan.operators {
        // A port of the kernel's choice: the demo runs beside anything.
        operator.device.settings_mut().door_mut().listen =
            SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    }
    Ok(emulated)
}

/// A bus name of this run alone, and within the process too.
fn bus_name(arm: usize) -> String {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    format!("local:@telearm-demo-{}-{run}-{arm}", std::process::id())
}

impl Emulated {
    /// Starts a hand for each operator.
    pub(super) fn start_operators(self, plan: &Plan, operators: &[OpenOperator]) -> Result<Hands> {
        let hands = plan
            .operators
            .iter()
            .zip(operators)
            .zip(1..)
            .map(|((plan, open), seed)| plan.device.settings().emulate(open.listen, seed))
            .collect::<std::io::Result<Vec<_>>>()
            .context("cannot start an emulated hand")?;
        Ok(Hands {
            _hands: hands,
            _hardware: self,
        })
    }
}
