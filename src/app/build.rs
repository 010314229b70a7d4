//! From a validated plan to opened sources, opened arms and assembled lanes. Nothing runs yet.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use crate::arm::can::StampSource;
use crate::arm::piper::params::{DriveMode, PiperParams};
use crate::arm::registry::{AnyArm, ArmPlan as ArmBuild, ArmReport, BuiltArm};
use crate::arm::{Arm, HoldFrames};
use crate::config::frame::FrameStore;
use crate::config::{ArmKindPlan, ArmTraits, LanePlan, OperatorPlan, Plan};
use crate::control::{ArmSpace, Lane, Listens, Neighbourhood, RunLane, Runner, Stale};
use crate::handoff::{LastUsable, Reader, SourceId, StopLine, mailbox};
use crate::operator::io::udp::{Outlets, Seat, UdpSource};
use crate::operator::io::{BoundPort, Source, SourceStats};
use crate::signal::OperatorSample;
use crate::time::Span;
use crate::watchdog::Ward;

/// An operator, opened.
pub(super) struct OpenOperator {
    /// Counters, sender, stop level.
    pub stats: Arc<SourceStats>,
    /// Age of its newest usable sample.
    pub last_usable: Arc<LastUsable>,
    /// Where it listens, with the port that the kernel gave if 0 was asked for.
    pub listen: SocketAddr,
    /// Hold limit and disengage limit.
    pub limits: (Span, Span),
    /// Its axes are verified.
    pub frame_verified: bool,
}

/// Everything opened, in the order of the plan.
pub(super) struct Opened {
    /// Operators, for the status and the watchdog.
    pub operators: Vec<OpenOperator>,
    /// Their sources, for the input thread.
    pub sources: Vec<Box<dyn Source>>,
    /// Their mailboxes, for control.
    pub readers: Vec<Reader<OperatorSample>>,
    /// Lanes with their command divisors, for control.
    pub lanes: Vec<(Box<dyn RunLane>, u64)>,
    /// The same lanes as the watchdog needs them.
    pub wards: Vec<Ward>,
    /// What the drivers find out.
    pub reports: Vec<Arc<dyn ArmReport>>,
}

/// Opens everything that the plan names.
///
/// `exempt` operators need no verified frame: they are our own emulator.
///
/// # Errors
/// One sentence: which operator or arm cannot be opened, and why.
pub(super) fn open(
    plan: &Plan,
    line: &Arc<StopLine>,
    exempt: bool,
    dry_run: bool,
) -> Result<Opened> {
    let store = FrameStore::load().context("cannot read the record of verified frames")?;
    let mut opened = Opened {
        operators: Vec::new(),
        sources: Vec::new(),
        readers: Vec::new(),
        lanes: Vec::new(),
        wards: Vec::new(),
        reports: Vec::new(),
    };
    open_operators(plan, line, &store, exempt, &mut opened)?;
    for lane in &plan.lanes {
        let arm = plan
            .arms
            .get(lane.arm)
            .context("a lane names an arm that is not there")?;
        let ArmKindPlan::Piper(piper) = &arm.kind;
        let built = ArmBuild::build(piper, StampSource::Kernel)
            .map_err(anyhow::Error::msg)
            .with_context(|| format!("arm \"{}\"", arm.name))?;
        opened.reports.push(Arc::clone(&built.report));
        add_lane(plan, lane, built, dry_run, &mut opened)
            .with_context(|| format!("lane \"{}\"", lane.name))?;
    }
    Ok(opened)
}

/// A port that is open, and the first operator that listens to it.
struct OpenPort<'a> {
    first: &'a OperatorPlan,
    listen: SocketAddr,
    source: UdpSource,
}

/// Opens the operators in the order of the plan; those that share a port get one socket.
fn open_operators(
    plan: &Plan,
    line: &Arc<StopLine>,
    store: &FrameStore,
    exempt: bool,
    opened: &mut Opened,
) -> Result<()> {
    let mut ports: Vec<OpenPort<'_>> = Vec::new();
    for (index, operator) in (0u16..).zip(&plan.operators) {
        let settings = operator.device.settings();
        let (publisher, reader) = mailbox(OperatorSample::default());
        let stats = Arc::new(SourceStats::new(settings.session().drop_reasons()));
        let last_usable = Arc::new(LastUsable::new());
        let outlets = Outlets {
            publisher,
            last_usable: Arc::clone(&last_usable),
            stop_line: Arc::clone(line),
            stats: Arc::clone(&stats),
            id: SourceId::operator(index),
        };
        let listen = take_seat(&mut ports, operator, Seat::of(settings, outlets))
            .with_context(|| format!("operator \"{}\"", operator.name))?;
        let stale = operator.device.stale();
        opened.readers.push(reader);
        opened.operators.push(OpenOperator {
            stats,
            last_usable,
            listen,
            limits: (stale.hold_after, stale.hard_after),
            frame_verified: exempt
                || settings.frame().is_none_or(|frame| {
                    store.is_verified(&operator.name, settings.device(), frame)
                }),
        });
    }
    for port in ports {
        opened.sources.push(Box::new(port.source));
    }
    Ok(())
}

/// At the port that is open already, if it is one to be shared; else at a new one. Gives the address, with the kernel's port if 0 was
/// asked for.
fn take_seat<'a>(
    ports: &mut Vec<OpenPort<'a>>,
    operator: &'a OperatorPlan,
    seat: Seat,
) -> Result<SocketAddr> {
    let shared = ports
        .iter_mut()
        .find(|p| p.first.device.shares_port_with(&operator.device));
    if let Some(port) = shared {
        if port.source.share(seat).is_err() {
            bail!("too many operators at UDP {}", port.listen);
        }
        return Ok(port.listen);
    }
    let bound = BoundPort::bind(operator.device.listen())?;
    let listen = bound.local_addr()?;
    ports.push(OpenPort {
        first: operator,
        listen,
        source: UdpSource::new(bound, seat),
    });
    Ok(listen)
}

fn add_lane(
    plan: &Plan,
    lane: &LanePlan,
    built: BuiltArm,
    dry_run: bool,
    opened: &mut Opened,
) -> Result<()> {
    let Some(ArmKindPlan::Piper(piper)) = plan.arms.get(lane.arm).map(|a| &a.kind) else {
        bail!("the plan's cross references are broken");
    };
    match built.arm {
        AnyArm::Six(arm) => add(plan, lane, arm, &piper_traits(piper), dry_run, opened),
        AnyArm::Seven(_) => bail!("arms with seven joints are not supported by this build yet"),
    }
}

/// Where the arm stands among the others, if the plan watches the distance of their tools.
fn neighbourhood(plan: &Plan, arm: &crate::config::ArmPlan) -> Option<Neighbourhood> {
    Some(Neighbourhood {
        base_in_world: arm.base_in_world?,
        distance_min_m: plan.coupling.tcp_distance_min_m?,
    })
}

/// What a Piper contributes to its lane. Its pose comes at 200 Hz: 50 ms is ten missed reports, 250 ms a dead bus.
fn piper_traits(params: &PiperParams) -> ArmTraits<6> {
    ArmTraits {
        home_q: params.home_deg.map(f64::to_radians),
        space: match params.mode {
            DriveMode::Pose => ArmSpace::Tcp,
            DriveMode::Joint => ArmSpace::Joint,
        },
        home_in_joints: false,
        feedback_stale: Stale {
            hold_after: Span::from_ms(50),
            hard_after: Span::from_ms(250),
        },
        engage_ramp: Span::ZERO,
    }
}

fn add<const N: usize>(
    plan: &Plan,
    lane: &LanePlan,
    arm: Box<dyn Arm<N>>,
    traits: &ArmTraits<N>,
    dry_run: bool,
    opened: &mut Opened,
) -> Result<()>
where
    Runner<N>: RunLane + 'static,
{
    let (Some(arm_plan), Some(source)) =
        (plan.arms.get(lane.arm), opened.operators.get(lane.operator))
    else {
        bail!("the plan's cross references are broken");
    };
    let params = lane
        .params(plan, traits, source.frame_verified)
        .context("the plan's cross references are broken")?;
    let arm: Box<dyn Arm<N>> = if dry_run {
        Box::new(super::dry::DryArm::new(arm))
    } else {
        arm
    };
    let (hold_out, hold_in) = mailbox(HoldFrames::EMPTY);
    opened.wards.push(Ward {
        last_usable: Arc::clone(&source.last_usable),
        hold_after: source.limits.0,
        port: arm
            .stop_port()
            .context("cannot open the watchdog's own way to the arm")?,
        motion_fd: arm.motion_fd(),
        hold: hold_in,
        hold_period: Span::from_s(params.command_period_s),
        stop_within: params.stop_within,
    });
    let listens = Listens {
        pose: lane.operator,
        gripper: (lane.gripper_operator != lane.operator).then_some(lane.gripper_operator),
        clutch: lane.clutch_operator,
    };
    let divisor = u64::from(plan.rate_hz / arm_plan.command_hz.max(1)).max(1);
    opened.lanes.push((
        Box::new(
            Runner::new(Lane::new(params), arm, listens, hold_out)
                .with_neighbourhood(neighbourhood(plan, arm_plan)),
        ),
        divisor,
    ));
    Ok(())
}
