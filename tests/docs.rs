//! Pages that name tests name tests that exist.
#![cfg(not(loom))]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn rust_files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// Names of all functions behind a test attribute, as `file::function` (for a folder: `folder::file::function`) and `function`.
fn tests() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut names = BTreeSet::new();
    for dir in ["tests", "src"] {
        let mut files = Vec::new();
        rust_files(&root.join(dir), &mut files);
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let module = file
                .strip_prefix(root.join(dir))
                .unwrap()
                .with_extension("")
                .iter()
                .map(|part| part.to_string_lossy().into_owned())
                .collect::<Vec<_>>()
                .join("::");
            let mut is_test = false;
            for line in text.lines().map(str::trim) {
                if line.starts_with("#[test]") {
                    is_test = true;
                } else if let Some(rest) = line.strip_prefix("fn ")
                    && std::mem::take(&mut is_test)
                {
                    let name: String = rest
                        .chars()
                        .take_while(|c| c.is_alphanumeric() || *c == '_')
                        .collect();
                    names.insert(format!("{module}::{name}"));
                    names.insert(name);
                }
            }
        }
    }
    names
}

/// What a page puts in backticks and looks like a test: the first part is a file or folder of `tests/`, or it is a sentence with
/// underscores.
fn named(page: &str) -> Vec<String> {
    page.split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| {
            word.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == ':')
        })
        .filter(|word| {
            let first = word.split("::").next().unwrap_or("");
            let of_tests = word.contains("::")
                && (Path::new("tests").join(first).is_dir()
                    || Path::new("tests").join(format!("{first}.rs")).is_file());
            let last = word.rsplit("::").next().unwrap_or("");
            of_tests || last.matches('_').count() >= if word.contains(':') { 2 } else { 3 }
        })
        .map(str::to_owned)
        .collect()
}

/// Guards: a row of docs/safety.md or an invariant of docs/architecture.md without its test is noticed when the test is renamed or removed.
#[test]
fn pages_name_tests_that_exist() {
    let tests = tests();
    for (page, least) in [("docs/safety.md", 60), ("docs/architecture.md", 20)] {
        let text = fs::read_to_string(page).unwrap();
        let named = named(&text);
        assert!(named.len() >= least, "{page} names {} tests", named.len());
        let missing: Vec<_> = named.iter().filter(|name| !tests.contains(*name)).collect();
        assert!(
            missing.is_empty(),
            "{page} names tests that do not exist: {missing:#?}"
        );
    }
}

/// Guards: every row of the fault suite and of the exit matrix stands in docs/safety.md.
#[test]
fn every_fault_row_is_in_the_table() {
    let page = fs::read_to_string("docs/safety.md").unwrap();
    let missing: Vec<_> = tests()
        .into_iter()
        .filter(|name| name.starts_with("faults::") || name.starts_with("exit::"))
        .filter(|name| !page.contains(&format!("`{name}`")))
        .collect();
    assert!(missing.is_empty(), "not in docs/safety.md: {missing:#?}");
}
