//! Golden vectors: what other programs sent, received or computed, replayed through ours.
//!
//! Reads every family it knows from `tests/golden`, or from the folder named by `TELEARM_GOLDEN`. Each line is one case. A family is a
//! checker that states the *rule* of its vectors, never the answer to one of them, so any further file of the same shape is judged by
//! the same code. Where the other program is at fault (wraps, clamps, swallows, guesses), the checker demands our refusal and counts
//! the case under the rule's name.
//!
//! A new family is one line in [`FAMILIES`] and a file in `tests/golden_families`.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde_json::Value;

#[path = "golden_families/chains.rs"]
mod chains;
#[path = "golden_families/glove.rs"]
mod glove;
#[path = "golden_families/piper_fk.rs"]
mod piper_fk;
#[path = "golden_families/piper_rx.rs"]
mod piper_rx;
#[path = "golden_families/piper_tx.rs"]
mod piper_tx;
#[path = "golden_families/rctp.rs"]
mod rctp;

/// What a checker says of one case.
pub(crate) enum Outcome {
    /// Ours does the same.
    Same,
    /// Ours differs on purpose, by a rule with this name, and does what the rule demands.
    ByRule(&'static str),
    /// Ours is wrong, or the rule does not hold.
    Failed(String),
}

/// Judges the cases of one file in order; may keep state between them.
pub(crate) type Check = Box<dyn FnMut(&Value) -> Outcome>;

/// File and the maker of its checker, which gets the file's folder.
type Family = (&'static str, fn(&Path) -> Check);

const FAMILIES: &[Family] = &[
    ("piper_tx.jsonl", |_| Box::new(piper_tx::check)),
    ("piper_rx.jsonl", |_| piper_rx::checker()),
    ("piper_sdk_fk.jsonl", |_| Box::new(piper_fk::check_sdk)),
    ("piper_fk.jsonl", |dir| {
        chains::checker(dir, "piper", piper_fk::check_against_description)
    }),
    ("openarm_fk.jsonl", |dir| {
        chains::checker(dir, "openarm", chains::nothing_more)
    }),
    ("dk1_fk.jsonl", |dir| {
        chains::checker(dir, "dk1", chains::nothing_more)
    }),
    ("rctp.jsonl", |_| asserting(rctp::check_packet)),
    ("rctp_seq.jsonl", |_| asserting(rctp::check_sequence)),
    ("fnim.jsonl", |_| asserting(glove::check_fnim)),
    ("fnim_seq.jsonl", |_| asserting(glove::check_sequence)),
    ("fsnh.jsonl", |_| asserting(glove::check_fsnh)),
];

/// Files beside the families that are no cases by themselves.
const COMPANIONS: &[&str] = &[
    "piper_chain.json",
    "openarm_chain.json",
    "dk1_chain.json",
    "hand_motion.json",
];

/// A checker from a function that asserts.
fn asserting(check: fn(&Value)) -> Check {
    Box::new(move |case| {
        check(case);
        Outcome::Same
    })
}

/// What happened in one family.
#[derive(Default)]
struct Tally {
    passed: usize,
    by_rule: BTreeMap<&'static str, usize>,
    failures: Vec<String>,
}

/// Goes past the test harness's capture: the counts are to be seen when all is well, too.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn folder() -> PathBuf {
    std::env::var_os("TELEARM_GOLDEN").map_or_else(shipped, PathBuf::from)
}

/// A data file from the folder under test, or else the shipped one.
pub(crate) fn companion(dir: &Path, name: &str) -> Value {
    let here = dir.join(name);
    let path = if here.exists() {
        here
    } else {
        shipped().join(name)
    };
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The cases of a file: the lines of a `.jsonl`, or the elements of an index (`files`, or the array itself).
fn cases(path: &Path) -> Vec<Result<Value, String>> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    if path.extension().is_some_and(|e| e == "jsonl") {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        return lines
            .map(|line| serde_json::from_str(line).map_err(|e| e.to_string()))
            .collect();
    }
    match serde_json::from_str(&text) {
        Ok(Value::Array(all)) => all.into_iter().map(Ok).collect(),
        Ok(Value::Object(mut map)) => match map.remove("files") {
            Some(Value::Array(all)) => all.into_iter().map(Ok).collect(),
            _ => vec![Err("an index without `files`".into())],
        },
        Ok(_) => vec![Err("neither an array nor an index".into())],
        Err(error) => vec![Err(error.to_string())],
    }
}

/// How a failing case is named: its own id, else its number and frame, and always its line.
fn name_of(case: &Value, line: usize) -> String {
    let own = ["id", "file", "case", "n"]
        .iter()
        .find_map(|key| match &case[*key] {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        });
    let call = case["call"].as_str().unwrap_or("");
    match own {
        Some(own) => format!("{own} {call} (line {line})"),
        None => format!("line {line} {call}"),
    }
}

/// A panicking checker is a failing case, not the end of the run.
fn judge(check: &mut Check, case: &Value) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| check(case))).unwrap_or_else(|payload| {
        let text = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied());
        Outcome::Failed(text.unwrap_or("panicked").to_owned())
    })
}

fn run(path: &Path, make: fn(&Path) -> Check) -> Tally {
    let mut check = make(path.parent().unwrap_or(Path::new(".")));
    let mut tally = Tally::default();
    for (i, case) in cases(path).into_iter().enumerate() {
        let (name, outcome) = match case {
            Ok(case) => (name_of(&case, i + 1), judge(&mut check, &case)),
            Err(error) => (format!("line {}", i + 1), Outcome::Failed(error)),
        };
        match outcome {
            Outcome::Same => tally.passed += 1,
            Outcome::ByRule(rule) => {
                tally.passed += 1;
                *tally.by_rule.entry(rule).or_default() += 1;
            }
            Outcome::Failed(why) => tally.failures.push(format!("{name}: {why}")),
        }
    }
    tally
}

fn report(family: &str, tally: &Tally) {
    let (passed, failed) = (tally.passed, tally.failures.len());
    say(&format!(
        "golden: {family} {passed} passed, {failed} failed"
    ));
    for (rule, count) in &tally.by_rule {
        say(&format!("golden:   {count} by rule: {rule}"));
    }
    for failure in &tally.failures {
        say(&format!("golden:   FAILED {failure}"));
    }
}

/// Files under a folder, by path relative to it.
fn files_in(dir: &Path, prefix: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            found.extend(files_in(&entry.path(), &format!("{name}/")));
        } else {
            found.push(name);
        }
    }
    found.sort();
    found
}

/// Guards: every family of vectors, case by case.
#[test]
fn golden() {
    let folder = folder();
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let mut failed = 0;
    let mut seen = 0;
    for (file, make) in FAMILIES {
        let family = file.split('.').next().unwrap_or(file);
        let path = folder.join(file);
        if !path.exists() {
            say(&format!("golden: {family} absent, skipped"));
            continue;
        }
        let tally = run(&path, *make);
        report(family, &tally);
        failed += tally.failures.len();
        seen += tally.passed + tally.failures.len();
    }
    std::panic::set_hook(quiet);
    for file in files_in(&folder, "") {
        // An index speaks for the files beside it.
        let known = FAMILIES.iter().any(|(known, _)| {
            let beside = known.strip_suffix("index.json").unwrap_or(known);
            file == *known || (known.ends_with("/index.json") && file.starts_with(beside))
        });
        if !known && !COMPANIONS.contains(&file.as_str()) {
            say(&format!("golden: {file} has no reader, skipped"));
        }
    }
    assert!(seen > 0, "no known family in {}", folder.display());
    assert_eq!(failed, 0, "golden cases failed; their lines stand above");
}
