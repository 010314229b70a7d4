//! Shipped plans load; broken plans are refused at the right place, with the right word, all at once.

use std::path::{Path, PathBuf};

use telearm::config::{self, LoadError, Strictness};

/// The smallest good plan.
const SMALL: &str = r#"
[[operator]]
name = "hand"
device = "rctp"

[[arm]]
name = "arm"
kind = "piper"

[[lane]]
name = "right"
operator = "hand"
arm = "arm"
"#;

fn shipped() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("rt-config");
    let mut plans: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    plans.sort();
    plans
}

/// The report of a plan that must be refused.
fn refusal(text: &str) -> String {
    match config::parse("plan.toml", text, Strictness::Strict) {
        Err(LoadError::Refused { report }) => report.to_string(),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("this plan must be refused:\n{text}"),
    }
}

/// Guards: a user who copies an example starts from something that loads.
#[test]
fn shipped_plans_load() {
    let plans = shipped();
    assert!(plans.len() >= 3, "{plans:?}");
    for path in plans {
        if let Err(error) = config::load(&path, Strictness::Strict) {
            panic!("{error}");
        }
    }
}

/// Guards: the commented example says for each key what the default is: every key that is not a name or a kind has its default value,
/// and no key of the schema is left unmentioned.
#[test]
fn the_commented_example_is_complete() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("rt-config/quest-piper.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let plan = config::load(&path, Strictness::Strict).unwrap().plan;
    for setting in &plan.settings {
        let named = ["name", "kind", "device", "operator", "arm"].contains(&setting.key.as_str());
        assert!(
            setting.is_default || named,
            "[{}] {} = {} is not the default",
            setting.section,
            setting.key,
            setting.value
        );
        let mentioned = text.lines().any(|line| {
            let line = line.trim_start_matches(['#', ' ']);
            line.starts_with(&format!("{} =", setting.key))
                || line.contains(&format!("{} = ", setting.key))
        });
        assert!(mentioned, "{} is not in the commented example", setting.key);
    }
    // Keys that have no default and no place in a one-arm plan stand there as comments.
    for key in [
        "gripper_operator",
        "clutch_operator",
        "base_in_world",
        "socket",
        "offset_m",
        "rotation_deg",
        "approach_max_mm",
        "approach_max_deg",
        "approach_speed_m_s",
        "approach_turn_deg_s",
    ] {
        assert!(text.contains(&format!("{key} = ")), "{key}");
    }
}

/// Guards: the glove's commented example mentions every key of its glove.
#[test]
fn the_glove_example_is_complete() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("rt-config/quest-glove-piper.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let plan = config::load(&path, Strictness::Strict).unwrap().plan;
    let keys: Vec<_> = plan
        .settings
        .iter()
        .filter(|s| s.section == "operator right-glove")
        .map(|s| s.key.as_str())
        .collect();
    assert!(keys.len() > 10, "{keys:?}");
    for key in keys {
        assert!(text.contains(&format!("{key} = ")), "{key}");
    }
}

/// Guards: the smallest plan is a plan: every safety number has a default.
#[test]
fn the_smallest_plan() {
    let plan = config::parse("small", SMALL, Strictness::Strict)
        .unwrap()
        .plan;
    let lane = &plan.lanes[0];
    assert_eq!(plan.rate_hz, 200);
    assert_eq!(plan.arms[0].command_hz, 200);
    assert!((lane.limits.lin_vel_max - 0.25).abs() < 1e-12);
    assert!((lane.limits.ang_vel_max.to_degrees() - 90.0).abs() < 1e-9);
    assert_eq!(lane.gripper_operator, lane.operator);
    assert_eq!(plan.lane("right"), Some(0));
    assert_eq!(plan.lane("left"), None);
}

/// A lane with a Quest hand, whose gripper and clutch are gloves.
const GLOVES: &str = r#"
[[operator]]
name = "hand"
device = "rctp"
engage = "other_hand"

[[operator]]
name = "glove-right"
device = "glove"

[[operator]]
name = "glove-left"
device = "glove"
hand = "left"

[[arm]]
name = "arm"
kind = "piper"

[[lane]]
name = "right"
operator = "hand"
gripper_operator = "glove-right"
clutch_operator = "glove-left"
arm = "arm"
"#;

/// Guards: two gloves share a port without a word about it, and each role of the lane has its own operator's limits.
#[test]
fn gloves_share_a_port() {
    let plan = config::parse("gloves", GLOVES, Strictness::Strict)
        .unwrap()
        .plan;
    let listen = |i: usize| plan.operators[i].device.listen();
    assert_eq!(listen(1), listen(2));
    assert_eq!(listen(1).port(), 15001);
    assert!(
        plan.operators[1]
            .device
            .shares_port_with(&plan.operators[2].device)
    );
    assert_eq!(
        (
            plan.lanes[0].gripper_operator,
            plan.lanes[0].clutch_operator
        ),
        (1, Some(2))
    );
    let traits = config::ArmTraits {
        home_q: [0.0; 6],
        space: telearm::control::ArmSpace::Tcp,
        home_in_joints: false,
        feedback_stale: telearm::control::Stale {
            hold_after: telearm::time::Span::from_ms(50),
            hard_after: telearm::time::Span::from_ms(250),
        },
        engage_ramp: telearm::time::Span::ZERO,
    };
    let params = plan.lanes[0].params(&plan, &traits, true).unwrap();
    let ms = telearm::time::Span::from_ms;
    assert_eq!(params.operator_stale.hold_after, ms(100));
    assert_eq!(params.gripper_hold_after, ms(50));
    assert_eq!(params.clutch_release_after, ms(50));
    assert!(params.hold_to_run && params.clutch_is_other);
}

/// Guards: what is wrong with gloves is said where it is wrong: one hand twice, two addresses, a port shared with another device, a glove
/// that shall drive an arm, lengths that cannot be.
#[test]
fn broken_glove_plans_say_what_is_wrong() {
    let cases: [(&str, &str, &[&str]); 7] = [
        (
            "hand = \"left\"",
            "hand = \"right\"",
            &[
                "`operator glove-left.hand` = \"right\" at port 15001 is operator glove-right already",
            ],
        ),
        (
            "hand = \"left\"",
            "hand = \"left\"\nbind = \"127.0.0.1\"",
            &[
                "`operator glove-left.bind` = \"127.0.0.1\" is not that of operator glove-right",
                "the same `bind`",
            ],
        ),
        (
            "engage = \"other_hand\"",
            "engage = \"other_hand\"\nport = 15001",
            &["`operator glove-right.port` = 15001 is used by operator hand already"],
        ),
        (
            "operator = \"hand\"",
            "operator = \"glove-right\"",
            &[
                "`lane right.operator` = \"glove-right\" (EMF glove (FNIM)) cannot drive AgileX Piper",
                "it can be a gripper_operator or a clutch_operator",
            ],
        ),
        (
            "hand = \"left\"",
            "hand = \"left\"\nopen_mm = 20",
            &[
                "`operator glove-left.open_mm` = 20",
                "telearm calibrate glove",
            ],
        ),
        (
            "hand = \"left\"",
            "hand = \"both\"",
            &["\"left\", \"right\""],
        ),
        (
            "hand = \"left\"",
            "hand = \"left\"\nexperimental = true",
            &["unknown key `operator glove-left.experimental`"],
        ),
    ];
    for (instead_of, line, says) in cases {
        assert!(GLOVES.contains(instead_of), "{instead_of}");
        let report = refusal(&GLOVES.replacen(instead_of, line, 1));
        for words in says {
            assert!(
                report.contains(words),
                "{line} does not give {words} but\n{report}"
            );
        }
    }
}

/// One broken plan: a line that replaces another, or goes to the end; and what the report must say.
struct Broken {
    /// Replaced in [`SMALL`]; empty: `line` is appended.
    instead_of: &'static str,
    line: &'static str,
    says: &'static [&'static str],
}

const fn add(line: &'static str, says: &'static [&'static str]) -> Broken {
    Broken {
        instead_of: "",
        line,
        says,
    }
}

const fn replace(
    instead_of: &'static str,
    line: &'static str,
    says: &'static [&'static str],
) -> Broken {
    Broken {
        instead_of,
        line,
        says,
    }
}

/// SMALL begins with an empty line, so its [[operator]] is line 2 and an appended line is line 14.
const BROKEN: &[Broken] = &[
    // Unknown keys, by table.
    replace(
        "\n[[operator]]",
        "rate_hx = 200\n[[operator]]",
        &[
            "plan.toml:1:1: error: unknown key `rate_hx`",
            "   1 | rate_hx = 200\n     | ^^^^^^^\n",
            "did you mean `rate_hz`?",
        ],
    ),
    add(
        "[lane.limits]\ntcp_speed_max_mm_s = 250",
        &[
            "plan.toml:15:1: error: unknown key `lane right.limits.tcp_speed_max_mm_s`",
            "did you mean `tcp_speed_max_m_s`?",
        ],
    ),
    add(
        "scale = 0.5",
        &[
            "plan.toml:14:1: error: unknown key `lane right.scale`",
            "`scale` belongs in [lane.mapping]",
        ],
    ),
    add(
        "rate_hz = 100",
        &[
            "unknown key `lane right.rate_hz`",
            "`rate_hz` belongs at the top of the plan",
        ],
    ),
    add(
        "colour = \"red\"",
        &[
            "unknown key `lane right.colour`",
            "keys here: name, operator",
        ],
    ),
    replace(
        "device = \"rctp\"",
        "device = \"rctp\"\nhold_after = 100",
        &[
            "plan.toml:5:1: error: unknown key `operator hand.hold_after`",
            "did you mean `hold_after_ms`?",
        ],
    ),
    replace(
        "kind = \"piper\"",
        "kind = \"piper\"\nspeed = 25",
        &[
            "unknown key `arm arm.speed`",
            "did you mean `speed_percent`?",
        ],
    ),
    add(
        "[lane.mapping.axes]\nrz = true",
        &["unknown key `lane right.mapping.axes.rz`"],
    ),
    add("[logging]\nlevel = 3", &["unknown key `logging`"]),
    // Wrong types.
    add(
        "[lane.limits]\ntcp_speed_max_m_s = \"fast\"",
        &[
            "plan.toml:15:21: error: `lane right.limits.tcp_speed_max_m_s` = \"fast\" is a string",
            "a number in 0.01..=1.5",
        ],
    ),
    add(
        "[control]\nrequire_rt = 1",
        &["`control.require_rt` = 1 is an integer", "true or false"],
    ),
    add(
        "[control]\nspin_us = 1.5",
        &["`control.spin_us` = 1.5 is a float", "whole number"],
    ),
    add(
        "[lane.workspace]\nz_mm = 700",
        &["is an integer", "it must be 2 numbers"],
    ),
    add(
        "[lane.workspace]\nz_mm = [50, 60, 70]",
        &["`lane right.workspace.z_mm` has 3 numbers, not 2"],
    ),
    replace(
        "[[arm]]",
        "[arm]",
        &[
            "`arm` is not a list of tables",
            "write [[arm]] with two brackets",
        ],
    ),
    add(
        "mapping = 3",
        &[
            "`lane right.mapping` = 3 is an integer",
            "it must be a table: [lane right.mapping]",
        ],
    ),
    replace(
        "device = \"rctp\"",
        "device = \"rctp\"\nport = \"8888\"",
        &["plan.toml:5:8: error: `operator hand.port` = \"8888\""],
    ),
    // Out of range: a silly value cannot disable a limit.
    add(
        "[lane.limits]\ntcp_speed_max_m_s = 250",
        &[
            "`lane right.limits.tcp_speed_max_m_s` = 250 is out of range 0.01..=1.5",
            "metres per second, not millimetres per second",
        ],
    ),
    add(
        "[lane.limits]\njerk_max_m_s3 = inf",
        &["= inf is out of range"],
    ),
    add(
        "[lane.limits]\nlead_max_mm = nan",
        &["= nan is out of range"],
    ),
    add(
        "[lane.limits]\nlead_max_mm = 0",
        &["= 0 is out of range 5..=200"],
    ),
    add(
        "stop_within_ms = 60000",
        &["= 60000 is out of range 100..=2000"],
    ),
    add(
        "[lane.limits]\nturn_accel_max_deg_s2 = 20\ntcp_turn_max_deg_s = 360",
        &["too small for the speed"],
    ),
    add(
        "[lane.workspace]\nx_mm = [-9000, 400]",
        &["= -9000 is out of range -2000..=2000"],
    ),
    add(
        "[lane.workspace]\nx_mm = [400, -400]",
        &["leaves no room", "lower end first"],
    ),
    add(
        "[lane.workspace]\nwrist_axis_min_mm = 0",
        &["is out of range 20..=300"],
    ),
    add("[lane.mapping]\nscale = 0.0", &["out of range 0.05..=3"]),
    add(
        "[lane.mapping]\naxes = { x = false, y = false, z = false, rotation = false }",
        &["has nothing enabled"],
    ),
    add("[control]\npriority = 99", &["out of range 76..=89"]),
    add(
        "[control]\ncore = \"fast\"",
        &["it must be \"auto\" or the number of a core"],
    ),
    replace(
        "\n[[operator]]",
        "rate_hz = 1000\n[control]\nspin_us = 501\n[[operator]]",
        &["= 501 is out of range 0..=500"],
    ),
    replace(
        "\n[[operator]]",
        "rate_hz = 2000\n[[operator]]",
        &["`rate_hz` = 2000 is out of range 30..=1000"],
    ),
    replace(
        "device = \"rctp\"",
        "device = \"rctp\"\nhold_after_ms = 1",
        &["`operator hand.hold_after_ms`"],
    ),
    replace(
        "device = \"rctp\"",
        "device = \"rctp\"\ndisengage_after_ms = 50",
        &["`operator hand.disengage_after_ms`"],
    ),
    replace(
        "device = \"rctp\"",
        "device = \"rctp\"\nport = 0",
        &["plan.toml:5:8", "`operator hand.port`"],
    ),
    replace(
        "kind = \"piper\"",
        "kind = \"piper\"\nspeed_percent = 0",
        &["`arm arm.speed_percent`"],
    ),
    // Words.
    replace(
        "\"rctp\"",
        "\"rtcp\"",
        &[
            "`operator hand.device` = \"rtcp\" is not known",
            "did you mean \"rctp\"?",
        ],
    ),
    replace(
        "\"piper\"",
        "\"pipr\"",
        &[
            "`arm arm.kind` = \"pipr\" is not known",
            "did you mean \"piper\"?",
        ],
    ),
    add(
        "on_stop = \"stop\"",
        &[
            "`lane right.on_stop` = \"stop\" is not known",
            "\"hold\", \"arm_stop\"",
        ],
    ),
    add(
        "[coupling]\nhold = \"every\"",
        &["`coupling.hold` = \"every\" is not known"],
    ),
    replace(
        "device = \"rctp\"",
        "device = \"rctp\"\nframe = \"unity\"",
        &["did you mean \"unity_lh\"?"],
    ),
    replace(
        "device = \"rctp\"",
        "device = \"rctp\"\nengage = \"pinch\"",
        &["did you mean \"pinch_hold\"?"],
    ),
    // Missing.
    replace("name = \"right\"\n", "", &["`lane 1.name` is missing"]),
    replace(
        "operator = \"hand\"\n",
        "",
        &["plan.toml:10:1: error: `lane right.operator` is missing"],
    ),
    replace(
        "kind = \"piper\"\n",
        "",
        &["`arm arm.kind` is missing", "\"piper\""],
    ),
    // Names that dangle, clash or cannot be typed.
    replace(
        "operator = \"hand\"",
        "operator = \"hnad\"",
        &["= \"hnad\" is not known", "did you mean \"hand\"?"],
    ),
    replace(
        "arm = \"arm\"",
        "arm = \"left\"",
        &["`lane right.arm` = \"left\" is not known"],
    ),
    add(
        "gripper_operator = \"glove\"",
        &["`lane right.gripper_operator` = \"glove\" is not known"],
    ),
    replace(
        "name = \"right\"",
        "name = \"Right hand\"",
        &["is not a name", "a-z, 0-9, _ and -"],
    ),
    replace("name = \"right\"", "name = \"all\"", &["means every lane"]),
    add(
        "[[arm]]\nname = \"arm\"\nkind = \"piper\"\ncan = \"can1\"",
        &["= \"arm\" is used twice"],
    ),
    add(
        "[[arm]]\nname = \"spare\"\nkind = \"piper\"\ncan = \"can1\"",
        &["= \"spare\" is used by no lane"],
    ),
    add(
        "[[operator]]\nname = \"spare\"\ndevice = \"rctp\"\nport = 8889",
        &["= \"spare\" is used by no lane"],
    ),
    // Between sections.
    replace(
        "kind = \"piper\"",
        "kind = \"piper\"\ncommand_hz = 150",
        &["does not divide rate_hz = 200", "200, 100, 50, 40, 25, 20"],
    ),
    replace("\n[[operator]]", "rate_hz = 1000\n[[operator]]", &[]),
    add(
        "clutch_operator = \"hand\"",
        &["`lane right.clutch_operator` has no effect"],
    ),
    replace(
        "device = \"rctp\"",
        "device = \"rctp\"\nengage = \"other_hand\"",
        &["`lane right.clutch_operator` is missing"],
    ),
    replace(
        "device = \"rctp\"",
        "device = \"rctp\"\nengage = \"clutch\"",
        &["is a clutch for another hand"],
    ),
    add(
        "[lane.mapping]\noffset_m = [0, 0, 0.3]",
        &[
            "`lane right.mapping.offset_m` has no effect here",
            "kind = \"absolute\"",
        ],
    ),
    add(
        "[coupling]\ntcp_distance_min_mm = 200",
        &["there is only one arm"],
    ),
    add(
        "[[operator]]\nname = \"h2\"\ndevice = \"rctp\"\n[[arm]]\nname = \"a2\"\nkind = \"piper\"\n[[lane]]\nname = \"l2\"\noperator = \"h2\"\narm = \"a2\"",
        &[
            "`operator h2.port` = 8888 is used by operator hand already",
            "`arm a2.can` = \"can0\" is used by arm arm already",
        ],
    ),
    add(
        "[[lane]]\nname = \"l2\"\noperator = \"hand\"\narm = \"arm\"",
        &[
            "is driven by lane right already",
            "drives lane right already",
        ],
    ),
    add(
        "[coupling]\ntcp_distance_min_mm = 200\n[[operator]]\nname = \"h2\"\ndevice = \"rctp\"\nport = 8889\n[[arm]]\nname = \"a2\"\nkind = \"piper\"\ncan = \"can1\"\n[[lane]]\nname = \"l2\"\noperator = \"h2\"\narm = \"a2\"",
        &[
            "`arm arm.base_in_world` is missing",
            "`arm a2.base_in_world` is missing",
        ],
    ),
    // Not TOML.
    add("on_stop = hold", &["plan.toml:14:", "not TOML"]),
    add("operator = \"hand\"", &["duplicate key"]),
];

/// Guards: each broken plan is refused with the place, the key path and the hint that the user needs.
#[test]
fn broken_plans_say_what_is_wrong() {
    let mut failures = Vec::new();
    for broken in BROKEN.iter().filter(|b| !b.says.is_empty()) {
        let text = if broken.instead_of.is_empty() {
            format!("{SMALL}{}\n", broken.line)
        } else {
            assert!(SMALL.contains(broken.instead_of), "{}", broken.instead_of);
            SMALL.replacen(broken.instead_of, broken.line, 1)
        };
        let report = refusal(&text);
        for words in broken.says {
            if !report.contains(words) {
                failures.push(format!(
                    "{:?} does not give {words:?} but\n{report}",
                    broken.line
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Guards: all problems come at once, in the order of the text, with one count at the end.
#[test]
fn every_error_at_once() {
    let text = "rate_hx = 200\n[control]\npriority = 1\n[stop]\non_stop = \"halt\"\n".to_owned()
        + SMALL
        + "[lane.limits]\ntcp_speed_max_m_s = 9\nlead = 5\n";
    let report = refusal(&text);
    let lines: Vec<usize> = report
        .lines()
        .filter_map(|l| {
            l.strip_prefix("plan.toml:")?
                .split(':')
                .next()?
                .parse()
                .ok()
        })
        .collect();
    assert_eq!(lines, [1, 3, 5, 20, 21], "{report}");
    let error = config::parse("plan.toml", &text, Strictness::Strict).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("5 errors in plan.toml: the plan is not used")
    );
}

/// Guards: lenient forgives unknown keys alone, and says so; a bad value still refuses.
#[test]
fn lenient_forgives_unknown_keys_only() {
    let unknown = format!("rate_hx = 200\n{SMALL}");
    let loaded = config::parse("plan.toml", &unknown, Strictness::Lenient).unwrap();
    assert_eq!(loaded.warnings.warnings(), 1);
    assert!(
        loaded
            .warnings
            .to_string()
            .contains("plan.toml:1:1: warning: unknown key `rate_hx`")
    );
    let bad = format!("{SMALL}[lane.limits]\ntcp_speed_max_m_s = 9\n");
    assert!(config::parse("plan.toml", &bad, Strictness::Lenient).is_err());
}

/// Guards: four lanes are the most, and an empty plan says what it needs.
#[test]
fn how_many() {
    let mut text = String::new();
    for i in 0..5 {
        text += &format!(
            "[[operator]]\nname = \"o{i}\"\ndevice = \"rctp\"\nport = {}\n[[arm]]\nname = \"a{i}\"\nkind = \"piper\"\ncan = \"can{i}\"\n[[lane]]\nname = \"l{i}\"\noperator = \"o{i}\"\narm = \"a{i}\"\n",
            9000 + i
        );
    }
    let report = refusal(&text);
    assert!(
        report.contains("at most 4 [[lane]]") && report.contains("at most 4 [[arm]]"),
        "{report}"
    );
    let report = refusal("");
    for key in ["operator", "arm", "lane"] {
        assert!(report.contains(&format!("`{key}` is missing")), "{report}");
    }
}

/// Guards: the command rate that is filled in divides the cycle rate and never exceeds what the arm takes.
#[test]
fn command_rate_by_default() {
    for (rate, command) in [
        (30, 30),
        (200, 200),
        (250, 125),
        (400, 200),
        (500, 125),
        (1000, 200),
    ] {
        let text = format!("rate_hz = {rate}\n{SMALL}");
        let plan = config::parse("p", &text, Strictness::Strict).unwrap().plan;
        assert_eq!(plan.arms[0].command_hz, command, "at {rate} Hz");
    }
}

/// Guards: whatever is thrown at the reader, it reports and never panics.
#[test]
fn damaged_plans_never_panic() {
    let text = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("rt-config/quest-two-pipers.toml"),
    )
    .unwrap();
    let mut state = 7_u64;
    let mut below = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % n as u64) as usize
    };
    for _ in 0..400 {
        let mut chars: Vec<char> = text.chars().collect();
        for _ in 0..=below(4) {
            let at = below(chars.len());
            match below(3) {
                0 => {
                    chars.remove(at);
                }
                1 => chars.insert(at, ['"', '[', ']', '=', '\n', '{', 'ü', '#'][below(8)]),
                _ => chars.truncate(at.max(1)),
            }
        }
        let damaged: String = chars.into_iter().collect();
        if let Err(error) = config::parse("plan.toml", &damaged, Strictness::Strict) {
            assert!(!error.to_string().is_empty());
        }
    }
}
