//! The report as text: by group, aligned, the fix under the line that needs it.

use std::fmt::Write as _;

use super::{Finding, Group, Report, Verdict};

/// All of it.
pub(super) fn text(report: &Report) -> String {
    let width = report
        .findings
        .iter()
        .map(|f| f.name.chars().count())
        .max()
        .unwrap_or(0);
    let mut out = String::new();
    for (group, heading) in [
        (Group::Must, "Must be so"),
        (Group::Should, "Should be so"),
        (Group::Info, "For your information"),
    ] {
        let findings: Vec<&Finding> = report
            .findings
            .iter()
            .filter(|f| f.group == group)
            .collect();
        if findings.is_empty() {
            continue;
        }
        let _ = writeln!(out, "{heading}");
        for finding in findings {
            line(&mut out, finding, width);
        }
        let _ = writeln!(out);
    }
    if let Some(live) = &report.live {
        for note in &live.notes {
            let _ = writeln!(out, "The live test ran without: {note}");
        }
        if !live.notes.is_empty() {
            let _ = writeln!(out);
        }
    }
    let _ = writeln!(out, "{}", verdict(report));
    out
}

fn line(out: &mut String, finding: &Finding, width: usize) {
    let mark = match finding.verdict {
        Verdict::Good => "ok",
        Verdict::Bad if finding.group == Group::Must => "FAIL",
        Verdict::Bad => "bad",
        Verdict::Unknown => "?",
        Verdict::Told => "-",
    };
    let _ = writeln!(
        out,
        "  {mark:<4}  {:<width$}  {}",
        finding.name, finding.value
    );
    if let Some(fix) = &finding.fix {
        let _ = writeln!(out, "  {:<4}  {:<width$}  fix: {fix}", "", "");
    }
}

/// The last line.
fn verdict(report: &Report) -> String {
    let count = |group, verdict| {
        report
            .findings
            .iter()
            .filter(|f| f.group == group && f.verdict == verdict)
            .count()
    };
    let (fail, bad) = (
        count(Group::Must, Verdict::Bad),
        count(Group::Should, Verdict::Bad),
    );
    let unknown = report
        .findings
        .iter()
        .filter(|f| f.verdict == Verdict::Unknown)
        .count();
    let mut text = match (fail, bad) {
        (0, 0) => "Ready.".to_owned(),
        (0, n) => format!("Ready, with {n} thing{} to improve.", plural(n)),
        (n, 0) => format!("Not ready: {n} failed."),
        (n, m) => format!("Not ready: {n} failed, {m} more to improve."),
    };
    if unknown > 0 {
        let _ = write!(text, " {unknown} could not be found out.");
    }
    text
}

const fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}
