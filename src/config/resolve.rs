//! From the document to the `Plan`, one function per section. Bounds stand here, beside the keys they belong to: none of them can
//! be set so that it no longer protects anything.

use std::path::PathBuf;

use nalgebra::{UnitQuaternion, Vector3};

use crate::arm::piper::params::PiperParams;
use crate::arm::registry::{self as arms, ArmKind};
use crate::control::{Approach, Coupling, OnStop};
use crate::geometry::Pose;
use crate::guard::Workspace;
use crate::operator::registry as devices;
use crate::operator::{glove, rctp};
use crate::retarget::{Mapping, MappingKind};
use crate::shaping::{AxisLimits, Limits};

use super::context::Context;
use super::plan::{
    ArmKindPlan, ArmPlan, ControlPlan, CouplingPlan, DevicePlan, LanePlan, OPERATORS_MAX,
    OperatorPlan,
};
use super::section::Section;

/// Everything read, with the places that the cross-checks point to.
pub(super) struct Draft<'a> {
    pub(super) rate_hz: u32,
    pub(super) control: ControlPlan,
    pub(super) coupling: (Section<'a>, CouplingPlan),
    pub(super) operators: Vec<(Section<'a>, OperatorPlan)>,
    pub(super) arms: Vec<(Section<'a>, ArmPlan)>,
    pub(super) lanes: Vec<(Section<'a>, LanePlan)>,
}

/// What lanes inherit from `[stop]`.
#[derive(Clone, Copy)]
struct StopDefaults {
    on_stop: OnStop,
    stop_within_ms: u32,
}

const ON_STOP: [(&str, OnStop); 2] = [("hold", OnStop::Hold), ("arm_stop", OnStop::ArmStop)];
const STOP_WITHIN_MS: std::ops::RangeInclusive<u32> = 100..=2000;
/// An approach has arrived within this distance, metres, and angle, rad.
const ARRIVED_M: f64 = 0.005;
const ARRIVED_RAD: f64 = 0.05;

pub(super) fn read<'a>(context: &'a Context, root: &Section<'a>) -> Draft<'a> {
    let rate_hz = root.whole("rate_hz", 200, 30..=1000);
    let control = control(&root.table("control"), rate_hz);
    let stop = {
        let section = root.table("stop");
        StopDefaults {
            on_stop: section.choice("on_stop", OnStop::Hold, &ON_STOP),
            stop_within_ms: section.whole("stop_within_ms", 500, STOP_WITHIN_MS),
        }
    };
    let coupling = {
        let section = root.table("coupling");
        let plan = coupling(&section);
        (section, plan)
    };
    let operators = named(root, "operator", OPERATORS_MAX)
        .into_iter()
        .map(|(section, name)| {
            let plan = operator(&section, name);
            (section, plan)
        })
        .collect::<Vec<_>>();
    let arms = named(root, "arm", super::LANES_MAX)
        .into_iter()
        .map(|(section, name)| {
            let plan = arm(&section, name, rate_hz);
            (section, plan)
        })
        .collect::<Vec<_>>();
    let names = Names {
        context,
        operators: operators.iter().map(|(_, o)| o.name.clone()).collect(),
        arms: arms.iter().map(|(_, a)| a.name.clone()).collect(),
    };
    let lanes = named(root, "lane", super::LANES_MAX)
        .into_iter()
        .map(|(section, name)| {
            let plan = lane(&section, name, stop, &names);
            (section, plan)
        })
        .collect();
    Draft {
        rate_hz,
        control,
        coupling,
        operators,
        arms,
        lanes,
    }
}

fn control(section: &Section<'_>, rate_hz: u32) -> ControlPlan {
    let spin_us = section.whole("spin_us", 0, 0..=500);
    let half_period_us = 500_000 / rate_hz;
    if spin_us > half_period_us {
        section.error(
            "spin_us",
            &format!("= {spin_us} is more than half of the cycle"),
            format!("at {rate_hz} Hz it can be at most {half_period_us}"),
        );
    }
    ControlPlan {
        core: section.core("core"),
        // Above the threads that carry a stop in (75), below the watchdog (90).
        priority: u8::try_from(section.whole("priority", 80, 76..=89)).unwrap_or(80),
        require_rt: section.flag("require_rt", false),
        spin_us,
        socket: section
            .text_opt("socket", "it must be the path of a Unix socket")
            .map(PathBuf::from),
    }
}

fn coupling(section: &Section<'_>) -> CouplingPlan {
    CouplingPlan {
        hold: section.choice(
            "hold",
            Coupling::All,
            &[("all", Coupling::All), ("lane", Coupling::Lane)],
        ),
        tcp_distance_min_m: section
            .number_opt("tcp_distance_min_mm", 50.0..=1000.0)
            .map(milli),
    }
}

/// The tables of a list with their names; names are checked for form and for being unique.
fn named<'a>(root: &Section<'a>, key: &str, max: usize) -> Vec<(Section<'a>, String)> {
    let list = root.list(key);
    if list.is_empty() && !root.has(key) {
        root.error(
            key,
            "is missing",
            format!("a plan needs at least one [[{key}]]"),
        );
    }
    if let Some(extra) = list.get(max) {
        extra.error(
            "name",
            "is one too many",
            format!("a plan has at most {max} [[{key}]]"),
        );
    }
    let mut taken: Vec<String> = Vec::new();
    let mut out = Vec::new();
    for mut section in list {
        let name = section.text_required("name", "give it a short name, like name = \"right\"");
        if !name.is_empty() {
            let form = name.len() <= 24
                && name
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-');
            if !form {
                section.error(
                    "name",
                    &format!("= {name:?} is not a name"),
                    "1 to 24 of a-z, 0-9, _ and -: it is typed on the command line",
                );
            } else if name == "all" {
                section.error("name", "= \"all\" is taken", "it means every lane");
            } else if taken.contains(&name) {
                section.error(
                    "name",
                    &format!("= {name:?} is used twice"),
                    format!("each [[{key}]] needs its own name"),
                );
            }
            section.rename(format!("{key} {name}"));
        }
        taken.push(name.clone());
        out.push((section, name));
    }
    out
}

fn kind(section: &Section<'_>, key: &str, known: &[&str]) -> String {
    let wanted = format!("it can be \"{}\"", known.join("\", \""));
    let kind = section.text_required(key, &wanted);
    if !kind.is_empty() && !known.contains(&kind.as_str()) {
        section.not_a_word(key, &kind, known);
    }
    kind
}

fn operator(section: &Section<'_>, name: String) -> OperatorPlan {
    let known: Vec<_> = devices::DEVICES.iter().map(|d| d.id()).collect();
    const OWN: &[&str] = &["name", "device"];
    // A device that is not known is reported already; its keys are read as the first device's.
    let device = match kind(section, "device", &known).as_str() {
        "glove" => {
            let params: glove::Params = section.params(OWN);
            let settings = section.resolved(params.resolve(), || {
                glove::Settings::on_loopback(params.port, params.hand)
            });
            DevicePlan::Glove(settings)
        }
        _ => {
            let params: rctp::Params = section.params(OWN);
            let settings = section.resolved(params.resolve(), || {
                rctp::Settings::on_loopback(params.port)
            });
            DevicePlan::Rctp(settings)
        }
    };
    OperatorPlan { name, device }
}

fn arm(section: &Section<'_>, name: String, rate_hz: u32) -> ArmPlan {
    let known: Vec<_> = arms::ARMS.iter().map(|a| a.id()).collect();
    let kind = kind(section, "kind", &known);
    // The registry's default is the fastest that the arm takes.
    let command_hz_max = arms::find(&kind).map_or(rate_hz, ArmKind::command_hz_default);
    // The highest rate that both the cycle and the arm can do.
    let default = (1..=rate_hz)
        .map(|n| rate_hz / n)
        .find(|hz| *hz <= command_hz_max && rate_hz.is_multiple_of(*hz))
        .unwrap_or(rate_hz);
    let command_hz = section.whole("command_hz", default, 1..=1000);
    if command_hz > command_hz_max {
        section.error(
            "command_hz",
            &format!("= {command_hz} is more than this arm can take"),
            format!("at most {command_hz_max}"),
        );
    } else if !rate_hz.is_multiple_of(command_hz) {
        section.error(
            "command_hz",
            &format!("= {command_hz} does not divide rate_hz = {rate_hz}"),
            format!("it can be {}", divisors(rate_hz, command_hz_max)),
        );
    }
    let base_in_world = section.has("base_in_world").then(|| {
        let base = section.table("base_in_world");
        Pose::from_parts(
            vector(
                base.numbers("position_mm", [0.0; 3], -5000.0..=5000.0)
                    .map(milli),
            ),
            euler(base.numbers("rotation_deg", [0.0; 3], -360.0..=360.0)),
        )
    });
    let mut piper: PiperParams = section.params(&["name", "kind", "command_hz", "base_in_world"]);
    piper.command_hz = command_hz;
    for error in piper.validate().err().into_iter().flatten() {
        section.error(error.key, &error.problem, "");
    }
    ArmPlan {
        name,
        kind: ArmKindPlan::Piper(piper),
        command_hz,
        base_in_world,
    }
}

fn divisors(rate_hz: u32, max: u32) -> String {
    (1..=rate_hz)
        .rev()
        .filter(|d| *d <= max && rate_hz.is_multiple_of(*d))
        .take(6)
        .map(|d| d.to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

struct Names<'a> {
    context: &'a Context,
    operators: Vec<String>,
    arms: Vec<String>,
}

impl Names<'_> {
    /// The index of a name; reported when there is no such thing.
    fn find(&self, section: &Section<'_>, key: &str, name: &str, among: &[String]) -> usize {
        among.iter().position(|n| n == name).unwrap_or_else(|| {
            let known: Vec<_> = among
                .iter()
                .map(String::as_str)
                .filter(|n| !n.is_empty())
                .collect();
            if !name.is_empty() && !known.is_empty() {
                section.not_a_word(key, name, &known);
            }
            0
        })
    }
}

fn lane(section: &Section<'_>, name: String, stop: StopDefaults, names: &Names<'_>) -> LanePlan {
    let wanted = "the name of an [[operator]]";
    let operator = section.text_required("operator", wanted);
    let operator = names.find(section, "operator", &operator, &names.operators);
    let other = |key: &str| {
        section
            .text_opt(key, wanted)
            .map(|n| names.find(section, key, &n, &names.operators))
    };
    let gripper_operator = other("gripper_operator").unwrap_or(operator);
    let clutch_operator = other("clutch_operator");
    let arm = section.text_required("arm", "the name of an [[arm]]");
    let (mapping, approach) = mapping(&section.table("mapping"));
    let limits = limits(names.context, &section.table("limits"));
    LanePlan {
        name,
        operator,
        gripper_operator,
        clutch_operator,
        arm: names.find(section, "arm", &arm, &names.arms),
        on_stop: section.choice("on_stop", stop.on_stop, &ON_STOP),
        stop_within_ms: section.whole("stop_within_ms", stop.stop_within_ms, STOP_WITHIN_MS),
        mapping,
        workspace: workspace(&section.table("workspace")),
        limits: limits.tool,
        approach,
        lead_max_m: limits.lead_max_m,
        lead_max_rad: limits.lead_max_rad,
        joint_speed_share: limits.joint_speed_share,
        gripper: limits.gripper,
        home: limits.home,
    }
}

/// Keys of absolute mapping alone.
const ABSOLUTE_ONLY: [&str; 6] = [
    "offset_m",
    "rotation_deg",
    "approach_max_mm",
    "approach_max_deg",
    "approach_speed_m_s",
    "approach_turn_deg_s",
];

fn mapping(section: &Section<'_>) -> (Mapping, Approach) {
    let absolute = section.choice("kind", false, &[("relative", false), ("absolute", true)]);
    let scale = section.number("scale", 1.0, 0.05..=3.0);
    let yaw_rad = section.number("yaw_deg", 0.0, -180.0..=180.0).to_radians();
    let (follow_position, follow_rotation) = {
        let axes = section.table("axes");
        (
            ["x", "y", "z"].map(|axis| axes.flag(axis, true)),
            axes.flag("rotation", true),
        )
    };
    if !follow_rotation && follow_position == [false; 3] {
        section.error(
            "axes",
            "has nothing enabled",
            "enable at least one of x, y, z, rotation",
        );
    }
    let kind = if absolute {
        MappingKind::Absolute {
            offset_m: vector(section.numbers("offset_m", [0.0, 0.0, 0.3], -3.0..=3.0)),
            rotation: euler(section.numbers("rotation_deg", [0.0, 90.0, 0.0], -360.0..=360.0)),
        }
    } else {
        for key in ABSOLUTE_ONLY {
            section.only_for(key, "kind = \"absolute\"");
        }
        MappingKind::Relative
    };
    let mapping = Mapping {
        kind,
        scale,
        yaw_rad,
        follow_position,
        follow_rotation,
    };
    (mapping, approach(section, absolute))
}

fn approach(section: &Section<'_>, absolute: bool) -> Approach {
    // A relative lane never approaches; it gets the same numbers, so that there is always something sane in the parameters.
    let number = |key, default, bound: std::ops::RangeInclusive<f64>| {
        if absolute {
            section.number(key, default, bound)
        } else {
            default
        }
    };
    Approach {
        max_m: milli(number("approach_max_mm", 150.0, 10.0..=400.0)),
        max_rad: number("approach_max_deg", 45.0, 5.0..=90.0).to_radians(),
        lin_vel_max: number("approach_speed_m_s", 0.1, 0.01..=0.25),
        ang_vel_max: number("approach_turn_deg_s", 30.0, 1.0..=90.0).to_radians(),
        arrived_m: ARRIVED_M,
        arrived_rad: ARRIVED_RAD,
    }
}

fn workspace(section: &Section<'_>) -> Workspace {
    let span = |key, default| {
        section
            .span(key, default, -2000.0..=2000.0, 20.0)
            .map(milli)
    };
    let (x, y, z) = (
        span("x_mm", [-400.0, 400.0]),
        span("y_mm", [-400.0, 400.0]),
        span("z_mm", [50.0, 700.0]),
    );
    Workspace {
        min_m: vector([x[0], y[0], z[0]]),
        max_m: vector([x[1], y[1], z[1]]),
        reach_margin_m: milli(section.number("reach_margin_mm", 10.0, 2.0..=200.0)),
        wrist_axis_min_m: milli(section.number("wrist_axis_min_mm", 50.0, 20.0..=300.0)),
    }
}

/// Everything in [lane.limits].
struct LaneLimits {
    tool: Limits,
    lead_max_m: f64,
    lead_max_rad: f64,
    joint_speed_share: f64,
    gripper: AxisLimits,
    home: AxisLimits,
}

fn limits(context: &Context, section: &Section<'_>) -> LaneLimits {
    let rad = |key, default: f64, bound| section.number(key, default, bound).to_radians();
    let gripper_speed = |s: f64| AxisLimits {
        vel_max: s,
        acc_max: s * 10.0,
        jerk_max: s * 200.0,
    };
    let home_speed = |s: f64| AxisLimits {
        vel_max: s,
        acc_max: s * 2.0,
        jerk_max: s * 20.0,
    };
    let limits = LaneLimits {
        tool: Limits {
            lin_vel_max: section.number("tcp_speed_max_m_s", 0.25, 0.01..=1.5),
            lin_acc_max: section.number("accel_max_m_s2", 10.0, 0.2..=20.0),
            lin_jerk_max: section.number("jerk_max_m_s3", 600.0, 5.0..=2000.0),
            ang_vel_max: rad("tcp_turn_max_deg_s", 90.0, 1.0..=360.0),
            ang_acc_max: rad("turn_accel_max_deg_s2", 2000.0, 20.0..=5000.0),
            ang_jerk_max: rad("turn_jerk_max_deg_s3", 120_000.0, 500.0..=400_000.0),
        },
        lead_max_m: milli(section.number("lead_max_mm", 60.0, 5.0..=200.0)),
        lead_max_rad: rad("lead_max_deg", 20.0, 2.0..=60.0),
        joint_speed_share: section.number("joint_speed_percent", 80.0, 5.0..=100.0) * 1e-2,
        gripper: gripper_speed(section.number("gripper_speed_max_per_s", 2.0, 0.1..=10.0)),
        home: home_speed(rad("home_speed_deg_s", 15.0, 1.0..=45.0)),
    };
    if let Err(error) = limits.tool.check() {
        context.error(
            section.at(),
            format!("[{}]: {error}", section.path()),
            "raise acceleration and jerk, or lower the speed",
        );
    }
    limits
}

fn milli(x: f64) -> f64 {
    x * 1e-3
}

fn vector(v: [f64; 3]) -> Vector3<f64> {
    Vector3::from(v)
}

/// Fixed axes X, Y, Z in this order, degrees: R = Rz Ry Rx, as the Piper's own pose numbers have it.
fn euler(deg: [f64; 3]) -> UnitQuaternion<f64> {
    let [x, y, z] = deg.map(f64::to_radians);
    UnitQuaternion::from_euler_angles(x, y, z)
}
