//! The architecture as a test: who may import whom, where lint headers and `unsafe` belong, how long a file may get, which words are
//! not used. A text scan, so that it runs in no time and its table can be read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Files below `dir` with one of the extensions, by path relative to the crate.
fn files(dir: &str, extensions: &[&str]) -> Vec<(String, String)> {
    fn walk(dir: &Path, out: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, out);
            } else {
                out.push(path);
            }
        }
    }
    let mut paths = Vec::new();
    walk(&root().join(dir), &mut paths);
    paths.sort();
    paths
        .into_iter()
        .filter(|p| {
            let extension = p.extension().and_then(|e| e.to_str()).unwrap_or("");
            extensions.contains(&extension)
        })
        .filter_map(|p| {
            let name = p.strip_prefix(root()).ok()?.to_str()?.to_owned();
            Some((name, fs::read_to_string(&p).ok()?))
        })
        .collect()
}

fn sources() -> Vec<(String, String)> {
    let sources = files("src", &["rs"]);
    assert!(
        sources.len() > 50,
        "the scan does not see the sources: {}",
        sources.len()
    );
    sources
}

/// Test code may reach further than the module that it tests.
fn is_test_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or("");
    name == "tests.rs" || name.ends_with("_tests.rs") || path.contains("/tests/")
}

/// The part of a file before its first inline test module.
fn without_tests(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod ")
        .or_else(|| text.find("#[cfg(test)]\n#["))
        .map_or(text, |at| &text[..at])
}

/// A line without its comment. Good enough here: no source line has `//` inside a string and a `crate::` behind it.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or("")
}

/// Vocabulary that everybody may use.
const CORE: &[&str] = &["units", "time", "geometry"];

/// Top-level module -> what it may import besides [`CORE`] and itself. Nobody but `cli` and `main.rs` imports `cli`, nobody but `cli`
/// imports `app`, and operators and arms never meet: that is what the table says by leaving them out.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("time", &[]),
    ("geometry", &[]),
    ("framing", &[]),
    ("signal", &[]),
    ("handoff", &[]),
    ("kinematics", &[]),
    ("rt", &["handoff"]),
    ("operator", &["signal", "handoff", "framing", "rt"]),
    ("relay", &["signal", "handoff", "framing", "rt"]),
    ("retarget", &["signal"]),
    ("shaping", &["signal"]),
    ("supervisor", &["signal"]),
    ("guard", &["signal", "kinematics"]),
    (
        "arm",
        &["signal", "guard", "kinematics", "handoff", "rt", "framing"],
    ),
    (
        "control",
        &[
            "signal",
            "handoff",
            "kinematics",
            "rt",
            "retarget",
            "shaping",
            "supervisor",
            "guard",
            "arm",
            "watchdog",
        ],
    ),
    ("watchdog", &["signal", "handoff", "rt", "arm", "control"]),
    ("record", &["signal"]),
    (
        "config",
        &[
            "signal",
            "kinematics",
            "operator",
            "relay",
            "retarget",
            "shaping",
            "supervisor",
            "guard",
            "arm",
            "control",
        ],
    ),
    ("doctor", &["rt", "config", "arm", "operator", "handoff"]),
    (
        "selftest",
        &["rt", "config", "arm", "operator", "shaping", "app"],
    ),
    (
        "app",
        &[
            "signal",
            "handoff",
            "kinematics",
            "rt",
            "operator",
            "relay",
            "retarget",
            "shaping",
            "supervisor",
            "guard",
            "arm",
            "control",
            "watchdog",
            "record",
            "config",
            "doctor",
        ],
    ),
    (
        "cli",
        &[
            "selftest",
            "app",
            "config",
            "record",
            "doctor",
            "operator",
            "arm",
            "rt",
            "shaping",
            "signal",
            "relay",
            "handoff",
            "control",
            "supervisor",
        ],
    ),
];

/// Narrower than the table: (file prefix, module, the only items that it may take from it).
const ONLY: &[(&str, &str, &[&str])] = &[
    // Real-time reporting and scheduling are not the input threads' or drivers' business; the clock and the sockets' stamps are.
    ("src/operator/", "rt", &["clock", "net", "sched", "Refusal"]),
    ("src/arm/", "guard", &["Vetted"]),
    ("src/arm/", "rt", &["clock"]),
    ("src/arm/", "handoff", &["sys"]),
];

/// What a `wire.rs` (or a file below a `wire/`) may import from the crate: it is bytes and values only.
const WIRE_MAY_IMPORT: &[&str] = &[
    "units",
    "time",
    "geometry",
    "framing",
    "arm::frame",
    "arm::damiao",
];

/// `crate::` paths of a source line, as far as two names: "rt::clock". Braces right behind `crate::` are opened.
fn crate_paths(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let mut line = code(line).to_owned();
        let start = number + 1;
        // A `use` runs to its semicolon.
        let starts_use = line.trim_start().starts_with("use ")
            || line.trim_start().starts_with("pub use ")
            || line.trim_start().starts_with("pub(");
        if starts_use && line.contains("use ") && !line.contains(';') {
            for (_, more) in lines.by_ref() {
                line.push(' ');
                line.push_str(code(more).trim());
                if more.contains(';') {
                    break;
                }
            }
        }
        for (at, _) in line.match_indices("crate::") {
            let rest = line[at + "crate::".len()..].trim_start();
            if let Some(list) = rest.strip_prefix('{') {
                found.extend(split_braces(list).into_iter().map(|p| (start, p)));
            } else {
                found.push((start, two_names(rest)));
            }
        }
    }
    found
}

/// The top-level items of a brace list whose opening brace has been taken off.
fn split_braces(list: &str) -> Vec<String> {
    let mut depth = 0;
    let mut item = String::new();
    let mut items = Vec::new();
    for c in list.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                items.push(two_names(item.trim()));
                item.clear();
                continue;
            }
            _ => {}
        }
        item.push(c);
    }
    if !item.trim().is_empty() {
        items.push(two_names(item.trim()));
    }
    items
}

/// `rt::clock::now` -> `rt::clock`; `rt::{clock, pace}` -> `rt`.
fn two_names(path: &str) -> String {
    let name_end = |s: &str| {
        s.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(s.len())
    };
    let end = name_end(path);
    let (first, rest) = path.split_at(end);
    match rest.strip_prefix("::") {
        Some(rest) if name_end(rest) > 0 => format!("{first}::{}", &rest[..name_end(rest)]),
        _ => first.to_owned(),
    }
}

fn top(path: &str) -> &str {
    path.split("::").next().unwrap_or(path)
}

/// The top-level module of a source file: "control" for src/control/lane.rs and src/control.rs.
fn module_of(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("src/")?;
    let module = rest.split('/').next()?.trim_end_matches(".rs");
    (module != "lib" && module != "main").then_some(module)
}

/// Guards: dependencies run in one direction. A new arrow needs a new line in the table above, and a reason in the review.
#[test]
fn modules_import_downward_only() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let Some(module) = module_of(&path) else {
            continue;
        };
        if is_test_file(&path) {
            continue;
        }
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(m, _)| *m == module) else {
            wrong.push(format!("{path}: module `{module}` is not in the table"));
            continue;
        };
        for (line, import) in crate_paths(without_tests(&text)) {
            let target = top(&import);
            // Macros and items of the crate root are not modules.
            if target.is_empty() || !MAY_IMPORT.iter().any(|(m, _)| *m == target) {
                continue;
            }
            if target != module && !CORE.contains(&target) && !allowed.contains(&target) {
                wrong.push(format!(
                    "{path}:{line}: `{module}` must not import `{target}`"
                ));
            }
            for (prefix, from, only) in ONLY {
                let item = import.split("::").nth(1).unwrap_or("");
                if path.starts_with(prefix)
                    && target == *from
                    && !item.is_empty()
                    && !only.contains(&item)
                {
                    wrong.push(format!(
                        "{path}:{line}: only {only:?} of `{from}`, not `{item}`"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Guards: a wire codec is bytes in, values out: no clock, no I/O, no threads, nothing of the stages.
#[test]
fn wire_codecs_are_pure() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (path, text) in sources() {
        let is_wire = path.ends_with("/wire.rs") || path.contains("/wire/");
        if !is_wire || is_test_file(&path) {
            continue;
        }
        seen += 1;
        let body = without_tests(&text);
        for (line, import) in crate_paths(body) {
            let good = WIRE_MAY_IMPORT
                .iter()
                .any(|allowed| import == *allowed || import.starts_with(&format!("{allowed}::")))
                || import.contains("wire");
            if !good {
                wrong.push(format!(
                    "{path}:{line}: a wire codec must not import `{import}`"
                ));
            }
        }
        for (number, line) in body.lines().enumerate() {
            for word in [
                "std::net",
                "std::io",
                "std::fs",
                "std::thread",
                "Instant",
                "SystemTime",
                "clock::",
            ] {
                if code(line).contains(word) {
                    wrong.push(format!(
                        "{path}:{}: a wire codec does no I/O: {word}",
                        number + 1
                    ));
                }
            }
        }
    }
    assert!(seen > 0, "no wire codec found");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Module root -> the lints that its header must deny.
const R_HEADER: &[&str] = &[
    "clippy::unwrap_used",
    "clippy::expect_used",
    "clippy::panic",
    "clippy::indexing_slicing",
    "clippy::disallowed_types",
    "clippy::disallowed_macros",
];
const WIRE_HEADER: &[&str] = &[
    "clippy::cast_possible_truncation",
    "clippy::cast_sign_loss",
    "clippy::cast_possible_wrap",
    "clippy::arithmetic_side_effects",
];
/// Real-time modules and those that parse.
const DENYING: &[&str] = &[
    "src/control/mod.rs",
    "src/guard/mod.rs",
    "src/supervisor/mod.rs",
    "src/retarget/mod.rs",
    "src/shaping/mod.rs",
    "src/kinematics/mod.rs",
    "src/handoff/mod.rs",
    "src/operator/mod.rs",
];

/// The lints of all `#![deny(…)]` of a file.
fn denied(text: &str) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for part in text.split("#![deny(").skip(1) {
        let list = part.split(")]").next().unwrap_or("");
        out.extend(list.split(',').map(|l| l.trim().to_owned()));
    }
    out
}

/// Guards: the lints that keep panics, heap and locks out of real-time and parser code are on where they belong.
#[test]
fn lint_headers_are_there() {
    let mut wrong = Vec::new();
    let sources = sources();
    for root in DENYING {
        match sources.iter().find(|(path, _)| path == root) {
            None => wrong.push(format!("{root}: not found")),
            Some((_, text)) => {
                let denied = denied(text);
                wrong.extend(
                    R_HEADER
                        .iter()
                        .filter(|lint| !denied.contains(**lint))
                        .map(|lint| format!("{root}: does not deny {lint}")),
                );
            }
        }
    }
    // A watchdog may be a file or a folder; each arm's driver folder and each wire codec carries its own header.
    for (path, text) in &sources {
        let depth = path.matches('/').count();
        let is_arm_root = path.starts_with("src/arm/") && path.ends_with("/mod.rs") && depth == 3;
        let is_watchdog_root = path == "src/watchdog.rs" || path == "src/watchdog/mod.rs";
        let is_wire_root = path.ends_with("/wire.rs") || path.ends_with("/wire/mod.rs");
        let denied = denied(text);
        let mut need = |lints: &[&str]| {
            wrong.extend(
                lints
                    .iter()
                    .filter(|lint| !denied.contains(**lint))
                    .map(|lint| format!("{path}: does not deny {lint}")),
            );
        };
        if is_arm_root || is_watchdog_root {
            need(R_HEADER);
        }
        if is_wire_root {
            need(WIRE_HEADER);
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Guards: `unsafe` stays in the three places that the architecture names.
#[test]
fn unsafe_is_confined() {
    const PLACES: &[&str] = &["src/handoff/", "src/rt/", "src/arm/can"];
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (path, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            let line = code(line);
            let has = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"]
                .iter()
                .any(|word| line.contains(word));
            if has && PLACES.iter().any(|place| path.starts_with(place)) {
                seen += 1;
            } else if has {
                wrong.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(
        seen > 0,
        "the scan does not see `unsafe` where it is known to be"
    );
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Guards: the README names every plan that is shipped, and every shipped plan that it names exists.
#[test]
fn readme_names_every_plan() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let plans: Vec<_> = files("rt-config", &["toml"])
        .into_iter()
        .map(|(p, _)| p)
        .collect();
    assert!(!plans.is_empty());
    for plan in &plans {
        assert!(readme.contains(plan), "README.md does not name {plan}");
    }
    for word in readme.split(|c: char| c.is_whitespace() || "`()[]|".contains(c)) {
        if word.starts_with("rt-config/") && word.ends_with(".toml") {
            assert!(
                plans.iter().any(|p| p == word),
                "README.md names {word}, which is not there"
            );
        }
    }
}

/// Guards: our stop is never called what only hardware may be called; and nothing of the machine that built this is left in the tree.
#[test]
fn words() {
    // Spelt apart so that this file does not contain them.
    let stop = ["emergency", " stop"].concat();
    let machine = [
        ["/wo", "rk/"].concat(),
        ["index.crates", ".io"].concat(),
        ["github.com/rust-lang/", "crates.io-index"].concat(),
        ["static.crates", ".io"].concat(),
        ["pypi", ".org"].concat(),
        ["../sha", "red"].concat(),
    ];
    let mut wrong = Vec::new();
    let mut all = sources();
    for dir in ["tests", "rt-config", "scripts", "docs"] {
        all.extend(files(dir, &["rs", "toml", "md", "sh", "py", "service", ""]));
    }
    for name in ["README.md", "CHANGELOG.md", "Cargo.toml"] {
        all.push((
            name.to_owned(),
            fs::read_to_string(root().join(name)).unwrap(),
        ));
    }
    for (path, text) in &all {
        for (number, line) in text.lines().enumerate() {
            let lower = line.to_lowercase();
            // Allowed where the sentence is about the hardware that is required, or says that ours is not one.
            let about_hardware = [
                "hard-wired",
                "hardware",
                "not an emergency",
                "never called",
                "must not be called",
            ]
            .iter()
            .any(|w| lower.contains(w));
            if lower.contains(&stop) && !about_hardware && path != "docs/safety.md" {
                wrong.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
            if let Some(word) = machine.iter().find(|w| line.contains(w.as_str())) {
                wrong.push(format!("{path}:{}: {word}", number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Longest file, lines, its inline tests left out.
const FILE_LINES_MAX: usize = 700;

/// Guards: files stay readable. Nobody is on a list of exceptions.
#[test]
fn files_stay_short() {
    let long: Vec<_> = sources()
        .into_iter()
        .filter(|(path, _)| !is_test_file(path))
        .map(|(path, text)| (without_tests(&text).lines().count(), path))
        .filter(|(lines, _)| *lines > FILE_LINES_MAX)
        .map(|(lines, path)| format!("{path}: {lines} lines"))
        .collect();
    assert!(
        long.is_empty(),
        "longer than {FILE_LINES_MAX}:\n{}",
        long.join("\n")
    );
}

/// Guards the guard: the scan sees imports in braces, over several lines, in paths and not in comments.
#[test]
fn the_scan_sees_imports() {
    let text = "use crate::{app::run, rt::{clock, pace}, cli};\n// use crate::config;\nuse crate::{\n    arm,\n    guard::Vetted,\n};\nfn f() { crate::watchdog::x::y(); }\npub use crate::time::Stamp;\n";
    let found: Vec<_> = crate_paths(text);
    let expect = [
        (1, "app::run"),
        (1, "rt"),
        (1, "cli"),
        (3, "arm"),
        (3, "guard::Vetted"),
        (7, "watchdog::x"),
        (8, "time::Stamp"),
    ];
    // `rt::{…}` gives the module alone.
    let found: Vec<_> = found.iter().map(|(l, p)| (*l, p.as_str())).collect();
    assert_eq!(found, expect);
    assert_eq!(denied("#![deny(\n    a::b,\n    c\n)]\n").len(), 2);
    assert_eq!(without_tests("a\n#[cfg(test)]\nmod tests {}\n"), "a\n");
}
