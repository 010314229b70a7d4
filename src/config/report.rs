//! What is wrong with a plan, shown where it stands: file, line, column, the line itself, a caret.
//!
//! ```text
//! plan.toml:3:1: error: unknown key `rate_hx`
//!   3 | rate_hx = 200
//!     | ^^^^^^^
//!     = did you mean `rate_hz`?
//! ```

use std::fmt;
use std::ops::Range;

/// Whether a finding refuses the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The plan is refused.
    Error,
    /// The plan is used; the user is told.
    Warning,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Error or warning.
    pub severity: Severity,
    /// Bytes of the plan's text that it is about.
    pub at: Range<usize>,
    /// One sentence: key path, value, bound.
    pub message: String,
    /// What to do about it; empty when the message says it all.
    pub hint: String,
}

/// All findings of one plan, in the order of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The plan's file name, as the user gave it.
    pub file: String,
    /// The plan's text.
    pub text: String,
    /// What was found.
    pub findings: Vec<Finding>,
}

impl Report {
    /// How many findings refuse the plan.
    #[must_use]
    pub fn errors(&self) -> usize {
        self.of(Severity::Error)
    }

    /// How many are warnings.
    #[must_use]
    pub fn warnings(&self) -> usize {
        self.of(Severity::Warning)
    }

    fn of(&self, severity: Severity) -> usize {
        self.findings
            .iter()
            .filter(|f| f.severity == severity)
            .count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            let place = Place::of(&self.text, finding.at.clone());
            let word = match finding.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            writeln!(
                f,
                "{}:{}:{}: {word}: {}",
                self.file, place.line, place.column, finding.message
            )?;
            writeln!(f, "{:>4} | {}", place.line, place.text)?;
            writeln!(
                f,
                "     | {}{}",
                place.indent,
                "^".repeat(place.width.max(1))
            )?;
            if !finding.hint.is_empty() {
                writeln!(f, "     = {}", finding.hint)?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Report {}

/// Where in a text a byte range starts, and what its line looks like.
struct Place<'a> {
    line: usize,
    column: usize,
    text: &'a str,
    /// White space that puts the caret under the range; tabs stay tabs.
    indent: String,
    width: usize,
}

impl<'a> Place<'a> {
    fn of(source: &'a str, at: Range<usize>) -> Self {
        let start = floor_char(source, at.start);
        let end = floor_char(source, at.end.max(start));
        let before = source.get(..start).unwrap_or("");
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let rest = source.get(line_start..).unwrap_or("");
        let text = rest.lines().next().unwrap_or("");
        let line_end = line_start + text.len();
        let lead = source.get(line_start..start.min(line_end)).unwrap_or("");
        let marked = source.get(start..end.min(line_end)).unwrap_or("");
        Self {
            line: before.matches('\n').count() + 1,
            column: lead.chars().count() + 1,
            text,
            indent: lead
                .chars()
                .map(|c| if c == '\t' { '\t' } else { ' ' })
                .collect(),
            width: marked.chars().count(),
        }
    }
}

/// The start of the character that holds byte `at`, or the text's end.
fn floor_char(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The candidate that `word` was most likely meant to be: a slip of few letters, a missing or changed unit suffix, or a word that
/// holds it. `None` when nothing is near.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word_lower = word.to_lowercase();
    candidates
        .into_iter()
        .filter_map(|c| {
            let distance = edit_distance(&word_lower, c);
            let same_stem = c.starts_with(&format!("{word_lower}_"))
                || word_lower.starts_with(&format!("{c}_"))
                || stem(&word_lower) == stem(c);
            let near = distance <= word_lower.len().max(c.len()).div_ceil(4).max(1) || same_stem;
            near.then_some((if same_stem { distance.min(2) } else { distance }, c))
        })
        .min()
        .map(|(_, c)| c)
}

/// A key without its unit: `hold_after_ms` and `hold_after_s` have the same stem.
fn stem(key: &str) -> &str {
    const UNITS: [&str; 12] = [
        "_deg_s3", "_deg_s2", "_deg_s", "_m_s3", "_m_s2", "_m_s", "_deg", "_rad", "_mm", "_ms",
        "_us", "_hz",
    ];
    UNITS
        .iter()
        .chain(["_um", "_m", "_s", "_percent"].iter())
        .find_map(|u| key.strip_suffix(u))
        .unwrap_or(key)
}

/// Insertions, deletions, replacements and swaps of neighbours between two words.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let cost = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[i - 1][j] + 1)
                .min(rows[i][j - 1] + 1)
                .min(rows[i - 1][j - 1] + cost);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards: slips, swapped letters, other units and missing units find their key; strangers find none.
    #[test]
    fn nearest_key() {
        let keys = ["rate_hz", "hold_after_ms", "scale", "tcp_speed_max_m_s"];
        assert_eq!(nearest("rate_hx", keys), Some("rate_hz"));
        assert_eq!(nearest("rate", keys), Some("rate_hz"));
        assert_eq!(nearest("Scale", keys), Some("scale"));
        assert_eq!(nearest("sacle", keys), Some("scale"));
        assert_eq!(nearest("hold_after_s", keys), Some("hold_after_ms"));
        assert_eq!(
            nearest("tcp_speed_max_mm_s", keys),
            Some("tcp_speed_max_m_s")
        );
        assert_eq!(nearest("colour", keys), None);
    }

    /// Guards: the caret stands under the right character, after tabs and letters of several bytes, and at the end of the text.
    #[test]
    fn caret_counts_characters() {
        let text = "a = 1\n\tb = \"gr\u{fc}n\" # \u{fc}\nc";
        let at = text.find("# \u{fc}").unwrap();
        let place = Place::of(text, at + 2..at + 4);
        assert_eq!((place.line, place.column, place.width), (2, 15, 1));
        assert!(place.indent.starts_with('\t'));
        let end = Place::of(text, text.len()..text.len() + 5);
        assert_eq!((end.line, end.column), (3, 2));
        // In the middle of a letter: no panic, the letter is marked from its start.
        let place = Place::of(text, at + 3..at + 3);
        assert_eq!((place.line, place.column), (2, 15));
    }
}
