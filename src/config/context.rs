//! What the reading of one plan collects: findings, resolved values, keys that nobody asked for.

use std::cell::RefCell;
use std::ops::Range;

use super::report::{Finding, Severity, nearest};

/// One value of a resolved plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Section as in the plan: "", "control", "lane right", "lane right.limits".
    pub section: String,
    /// Key.
    pub key: String,
    /// Value as TOML.
    pub value: String,
    /// The plan does not say it, or says the same as the default.
    pub is_default: bool,
}

/// A key that nobody asked for.
pub(super) struct Unknown {
    /// Section that it stands in.
    pub(super) section: String,
    /// The key.
    pub(super) key: String,
    /// Where.
    pub(super) at: Range<usize>,
    /// What the section knows.
    pub(super) known: Vec<String>,
}

/// What the reading of one plan collects.
#[derive(Default)]
pub(super) struct Context {
    findings: RefCell<Vec<Finding>>,
    settings: RefCell<Vec<Setting>>,
    unknown: RefCell<Vec<Unknown>>,
    /// Every (section kind, key) that exists anywhere in this plan's schema.
    schema: RefCell<Vec<(String, String)>>,
}

impl Context {
    /// Reports an error at a place in the text.
    pub(super) fn error(
        &self,
        at: Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.findings.borrow_mut().push(Finding {
            severity: Severity::Error,
            at,
            message: message.into(),
            hint: hint.into(),
        });
    }

    /// Notes a value that came out.
    pub(super) fn setting(&self, setting: Setting) {
        self.settings.borrow_mut().push(setting);
    }

    /// A section has found its name: what was noted under the old path belongs to the new one.
    pub(super) fn rename_section(&self, from: &str, to: &str) {
        for setting in self.settings.borrow_mut().iter_mut() {
            if setting.section == from {
                to.clone_into(&mut setting.section);
            }
        }
    }

    /// Notes a key that nobody asked for.
    pub(super) fn unknown(&self, unknown: Unknown) {
        self.unknown.borrow_mut().push(unknown);
    }

    /// Notes which keys a kind of section has.
    pub(super) fn know(&self, kind: &str, keys: &[String]) {
        self.schema
            .borrow_mut()
            .extend(keys.iter().map(|k| (kind.to_owned(), k.clone())));
    }

    /// Ends the reading: unknown keys become findings, and all findings and settings come out.
    pub(super) fn finish(&self, lenient: bool) -> (Vec<Finding>, Vec<Setting>) {
        let schema = self.schema.take();
        let mut findings = self.findings.take();
        for unknown in self.unknown.take() {
            let path = join(&unknown.section, &unknown.key);
            findings.push(Finding {
                severity: if lenient {
                    Severity::Warning
                } else {
                    Severity::Error
                },
                at: unknown.at.clone(),
                message: format!("unknown key `{path}`"),
                hint: hint_for_unknown(&unknown, &schema),
            });
        }
        findings.sort_by_key(|f| (f.at.start, f.at.end));
        (findings, self.settings.take())
    }
}

fn hint_for_unknown(unknown: &Unknown, schema: &[(String, String)]) -> String {
    if let Some(key) = nearest(&unknown.key, unknown.known.iter().map(String::as_str)) {
        return format!("did you mean `{key}`?");
    }
    // The right key in the wrong table is a common slip: say where it belongs.
    if let Some((section, _)) = schema
        .iter()
        .find(|(section, key)| *key == unknown.key && *section != kind_of(&unknown.section))
    {
        return if section.is_empty() {
            format!(
                "`{}` belongs at the top of the plan, before the first [table]",
                unknown.key
            )
        } else {
            format!("`{}` belongs in [{section}]", unknown.key)
        };
    }
    if unknown.known.is_empty() {
        return "no keys are known here".to_owned();
    }
    format!("keys here: {}", unknown.known.join(", "))
}

/// The kind of a section: its path without the names of lanes, arms and operators.
pub(super) fn kind_of(section: &str) -> String {
    let mut parts = section.splitn(2, '.');
    let head = parts.next().unwrap_or("");
    let head = head.split(' ').next().unwrap_or("");
    parts
        .next()
        .map_or_else(|| head.to_owned(), |tail| format!("{head}.{tail}"))
}

/// `section.key`, or the key alone at the top.
pub(super) fn join(section: &str, key: &str) -> String {
    if section.is_empty() {
        key.to_owned()
    } else {
        format!("{section}.{key}")
    }
}
