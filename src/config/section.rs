//! A typed reader over one table of a plan. It reports every problem instead of the first one, remembers which keys it was asked for
//! (so that the others are unknown), and notes each value that came out (so that `telearm check` can print the resolved plan).
//!
//! A read never fails: after reporting, it gives the default (or the nearest legal stand-in), so that the rest is still checked. A
//! plan with an error is never used.

use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::ops::{Range, RangeInclusive};

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::operator::params::ParamError;

use super::context::{Context, Setting, Unknown, join, kind_of};
use super::params;
use super::report::nearest;
use super::show::{number_of, one_of, quoted, show, show_all, show_f64, unit_hint};

/// One table. Unknown keys are reported when it goes out of scope: a reader cannot forget to.
pub(super) struct Section<'a> {
    context: &'a Context,
    /// Path for messages: "control", "lane right.mapping".
    path: String,
    table: Option<&'a DeTable<'a>>,
    /// Where to point when a key is missing.
    at: Range<usize>,
    asked: RefCell<Vec<String>>,
    /// An error was reported here; what follows from it need not be.
    flawed: Cell<bool>,
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        let asked = self.asked.take();
        let kind = kind_of(&self.path);
        self.context.know(&kind, &asked);
        for (key, _) in self.table.into_iter().flatten() {
            let name: &str = key.get_ref();
            if !asked.iter().any(|a| a == name) {
                self.context.unknown(Unknown {
                    section: self.path.clone(),
                    key: name.to_owned(),
                    at: key.span(),
                    known: asked.clone(),
                });
            }
        }
    }
}

impl<'a> Section<'a> {
    /// The whole document.
    pub(super) fn root(context: &'a Context, table: &'a DeTable<'a>) -> Self {
        Self {
            context,
            path: String::new(),
            table: Some(table),
            at: 0..0,
            asked: RefCell::default(),
            flawed: Cell::new(false),
        }
    }

    /// Changes the path for messages, once the section's own name is known.
    pub(super) fn rename(&mut self, path: String) {
        self.context.rename_section(&self.path, &path);
        self.path = path;
    }

    /// This section's path for messages.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Where this section stands in the text.
    pub(super) fn at(&self) -> Range<usize> {
        self.at.clone()
    }

    /// Where a key's value stands, or the section when the plan does not have it.
    pub(super) fn at_key(&self, key: &str) -> Range<usize> {
        self.look(key).map_or_else(|| self.at(), Spanned::span)
    }

    /// Full path of a key for messages.
    pub(super) fn path_of(&self, key: &str) -> String {
        join(&self.path, key)
    }

    /// The plan says this key.
    pub(super) fn has(&self, key: &str) -> bool {
        self.look(key).is_some()
    }

    /// Reports an error about a key's value.
    pub(super) fn error(&self, key: &str, problem: &str, hint: impl Into<String>) {
        let path = self.path_of(key);
        self.report(self.at_key(key), format!("`{path}` {problem}"), hint);
    }

    fn report(&self, at: Range<usize>, message: String, hint: impl Into<String>) {
        self.flawed.set(true);
        self.context.error(at, message, hint);
    }

    /// An error was reported about this section itself (not its sub-tables), so its values may be stand-ins.
    pub(super) fn is_flawed(&self) -> bool {
        self.flawed.get()
    }

    /// A key that exists, but only together with something else that this plan does not say.
    pub(super) fn only_for(&self, key: &str, condition: &str) {
        if self.ask(key).is_some() {
            self.error(
                key,
                "has no effect here",
                format!("it belongs to {condition}"),
            );
        }
    }

    fn look(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table.and_then(|t| t.get(key))
    }

    /// A key is asked for: it is known from now on.
    fn ask(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.asked.borrow_mut().push(key.to_owned());
        self.look(key)
    }

    fn note(&self, key: &str, value: String, default: Option<&str>) {
        self.context.setting(Setting {
            section: self.path.clone(),
            key: key.to_owned(),
            is_default: default == Some(value.as_str()),
            value,
        });
    }

    fn wrong_type(&self, key: &str, value: &Spanned<DeValue<'_>>, wanted: &str) {
        let found = show(value.get_ref());
        let kind = value.get_ref().type_str();
        let article = if kind.starts_with(['a', 'i']) {
            "an"
        } else {
            "a"
        };
        self.error(key, &format!("= {found} is {article} {kind}"), wanted);
    }

    fn missing(&self, key: &str, wanted: &str) {
        let path = self.path_of(key);
        self.report(self.at(), format!("`{path}` is missing"), wanted);
    }

    /// A number from the plan, type and bounds checked.
    fn number_at(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        bound: &RangeInclusive<f64>,
    ) -> Option<f64> {
        let wanted = format!("a number in {}..={}", bound.start(), bound.end());
        let Some(number) = number_of(value.get_ref()) else {
            self.wrong_type(key, value, &format!("it must be {wanted}"));
            return None;
        };
        // NaN fails the comparison, so it is out of range too.
        if bound.contains(&number) {
            return Some(number);
        }
        let path = self.path_of(key);
        self.report(
            value.span(),
            format!(
                "`{path}` = {} is out of range {}..={}",
                show(value.get_ref()),
                bound.start(),
                bound.end()
            ),
            unit_hint(key, number, bound),
        );
        None
    }

    /// A number with a default.
    pub(super) fn number(&self, key: &str, default: f64, bound: RangeInclusive<f64>) -> f64 {
        debug_assert!(bound.contains(&default), "{key}: default out of bounds");
        let value = self
            .ask(key)
            .and_then(|v| self.number_at(key, v, &bound))
            .unwrap_or(default);
        self.note(key, show_f64(value), Some(&show_f64(default)));
        value
    }

    /// A number that may be absent.
    pub(super) fn number_opt(&self, key: &str, bound: RangeInclusive<f64>) -> Option<f64> {
        let value = self.ask(key).and_then(|v| self.number_at(key, v, &bound));
        if let Some(value) = value {
            self.note(key, show_f64(value), None);
        }
        value
    }

    /// A whole number with a default.
    pub(super) fn whole(&self, key: &str, default: u32, bound: RangeInclusive<u32>) -> u32 {
        debug_assert!(bound.contains(&default), "{key}: default out of bounds");
        let value = self
            .ask(key)
            .and_then(|v| self.whole_at(key, v, &bound))
            .unwrap_or(default);
        self.note(key, value.to_string(), Some(&default.to_string()));
        value
    }

    fn whole_at(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        bound: &RangeInclusive<u32>,
    ) -> Option<u32> {
        if value.get_ref().as_integer().is_none() {
            let wanted = format!(
                "it must be a whole number in {}..={}",
                bound.start(),
                bound.end()
            );
            self.wrong_type(key, value, &wanted);
            return None;
        }
        let number = self.number_at(
            key,
            value,
            &(f64::from(*bound.start())..=f64::from(*bound.end())),
        )?;
        // Inside the bounds of a u32 and whole, so the conversion is exact.
        Some(number as u32)
    }

    /// True or false with a default.
    pub(super) fn flag(&self, key: &str, default: bool) -> bool {
        let value = self.ask(key).and_then(|v| {
            let flag = v.get_ref().as_bool();
            if flag.is_none() {
                self.wrong_type(key, v, "it must be true or false");
            }
            flag
        });
        let value = value.unwrap_or(default);
        self.note(key, value.to_string(), Some(&default.to_string()));
        value
    }

    /// One of a few words with a default.
    pub(super) fn choice<T: Copy + PartialEq + Debug>(
        &self,
        key: &str,
        default: T,
        words: &[(&str, T)],
    ) -> T {
        let value = self.ask(key).and_then(|v| {
            let Some(text) = v.get_ref().as_str() else {
                self.wrong_type(key, v, &format!("it must be {}", one_of(words)));
                return None;
            };
            let found = words
                .iter()
                .find(|(word, _)| *word == text)
                .map(|(_, t)| *t);
            if found.is_none() {
                self.not_a_word(
                    key,
                    text,
                    &words.iter().map(|(w, _)| *w).collect::<Vec<_>>(),
                );
            }
            found
        });
        let value = value.unwrap_or(default);
        let word = |t: T| {
            words
                .iter()
                .find(|(_, x)| *x == t)
                .map_or_else(|| format!("{t:?}"), |(w, _)| format!("\"{w}\""))
        };
        self.note(key, word(value), Some(&word(default)));
        value
    }

    /// A word that stands for nothing: reported with the nearest legal one.
    pub(super) fn not_a_word(&self, key: &str, text: &str, words: &[&str]) {
        let list = quoted(words);
        let hint = match nearest(text, words.iter().copied()) {
            Some(word) => format!("did you mean \"{word}\"? It can be {list}"),
            None => format!("it can be {list}"),
        };
        self.error(key, &format!("= \"{text}\" is not known"), hint);
    }

    /// Text that must be there. Empty after a report.
    pub(super) fn text_required(&self, key: &str, wanted: &str) -> String {
        let Some(value) = self.ask(key) else {
            self.missing(key, wanted);
            return String::new();
        };
        self.text_at(key, value, wanted)
            .map(|text| {
                self.note(key, format!("{text:?}"), None);
                text
            })
            .unwrap_or_default()
    }

    /// Text that may be absent.
    pub(super) fn text_opt(&self, key: &str, wanted: &str) -> Option<String> {
        let value = self.ask(key)?;
        let text = self.text_at(key, value, wanted)?;
        self.note(key, format!("{text:?}"), None);
        Some(text)
    }

    fn text_at(&self, key: &str, value: &Spanned<DeValue<'_>>, wanted: &str) -> Option<String> {
        match value.get_ref().as_str() {
            Some("") => {
                self.error(key, "is empty", wanted);
                None
            }
            Some(text) => Some(text.to_owned()),
            None => {
                self.wrong_type(key, value, wanted);
                None
            }
        }
    }

    /// A core: `"auto"` (`None`) or a number.
    pub(super) fn core(&self, key: &str) -> Option<u32> {
        let value = self.ask(key).and_then(|v| match v.get_ref() {
            DeValue::String(s) if s == "auto" => None,
            DeValue::Integer(_) => self.whole_at(key, v, &(0..=1023)),
            _ => {
                self.wrong_type(key, v, "it must be \"auto\" or the number of a core");
                None
            }
        });
        let shown = value.map_or_else(|| "\"auto\"".to_owned(), |n| n.to_string());
        self.note(key, shown, Some("\"auto\""));
        value
    }

    /// `N` numbers, each within the bounds.
    pub(super) fn numbers<const N: usize>(
        &self,
        key: &str,
        default: [f64; N],
        bound: RangeInclusive<f64>,
    ) -> [f64; N] {
        let value = self
            .ask(key)
            .and_then(|v| self.numbers_at(key, v, &bound))
            .unwrap_or(default);
        self.note(key, show_all(&value), Some(&show_all(&default)));
        value
    }

    fn numbers_at<const N: usize>(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        bound: &RangeInclusive<f64>,
    ) -> Option<[f64; N]> {
        let wanted = format!(
            "it must be {N} numbers in {}..={}, like [{}]",
            bound.start(),
            bound.end(),
            vec!["0"; N].join(", ")
        );
        let Some(items) = value.get_ref().as_array() else {
            self.wrong_type(key, value, &wanted);
            return None;
        };
        if items.len() != N {
            self.error(
                key,
                &format!("has {} numbers, not {N}", items.len()),
                wanted,
            );
            return None;
        }
        let mut out = [0.0; N];
        let mut good = true;
        for (slot, item) in out.iter_mut().zip(items.iter()) {
            match self.number_at(key, item, bound) {
                Some(number) => *slot = number,
                None => good = false,
            }
        }
        good.then_some(out)
    }

    /// A lower and an upper end, in this order.
    pub(super) fn span(
        &self,
        key: &str,
        default: [f64; 2],
        bound: RangeInclusive<f64>,
        width_min: f64,
    ) -> [f64; 2] {
        let [low, high] = self.numbers(key, default, bound);
        if high - low < width_min {
            self.error(
                key,
                &format!("= {} leaves no room", show_all(&[low, high])),
                format!("lower end first, and at least {width_min} between the two"),
            );
            return default;
        }
        [low, high]
    }

    /// A sub-table; one that the plan does not have reads as empty.
    pub(super) fn table(&self, key: &str) -> Section<'a> {
        let value = self.ask(key);
        let table = value.and_then(|v| {
            let table = v.get_ref().as_table();
            if table.is_none() {
                let path = self.path_of(key);
                self.wrong_type(key, v, &format!("it must be a table: [{path}]"));
            }
            table
        });
        Section {
            context: self.context,
            path: self.path_of(key),
            table,
            at: value.map_or_else(|| self.at(), Spanned::span),
            asked: RefCell::default(),
            flawed: Cell::new(false),
        }
    }

    /// The tables of a list, `[[key]]` in the plan.
    pub(super) fn list(&self, key: &str) -> Vec<Section<'a>> {
        let Some(value) = self.ask(key) else {
            return Vec::new();
        };
        let items: Vec<_> = match value.get_ref() {
            DeValue::Array(items) => items.iter().collect(),
            _ => Vec::new(),
        };
        if items.is_empty() || !items.iter().all(|i| i.get_ref().is_table()) {
            let path = self.path_of(key);
            self.error(
                key,
                "is not a list of tables",
                format!("write [[{path}]] with two brackets"),
            );
            return Vec::new();
        }
        items
            .iter()
            .enumerate()
            .map(|(i, item)| Section {
                context: self.context,
                path: format!("{} {}", self.path_of(key), i + 1),
                table: item.get_ref().as_table(),
                at: item.span(),
                asked: RefCell::default(),
                flawed: Cell::new(false),
            })
            .collect()
    }

    /// The rest of this table as a device's or an arm's own parameters: its serde struct, with every unknown key and wrong value
    /// reported, not only the first. `own` are keys of this table that are not the struct's.
    pub(super) fn params<T>(&self, own: &[&str]) -> T
    where
        T: DeserializeOwned + Serialize + Default,
    {
        let fields = params::fields::<T>();
        self.asked
            .borrow_mut()
            .extend(fields.iter().map(|f| (*f).to_owned()));
        // Unknown keys are reported by this section when it goes out of scope, like everywhere else.
        let mut table = DeTable::new();
        for (key, value) in self.table.into_iter().flatten() {
            let name: &str = key.get_ref();
            if fields.contains(&name) && !own.contains(&name) {
                table.insert(key.clone(), value.clone());
            }
        }
        let (value, problems) = params::read::<T>(table, self.at());
        for problem in problems {
            self.report_problem(&problem);
        }
        for (key, shown, default) in params::shown(&value) {
            if own.contains(&key.as_str()) {
                continue;
            }
            self.note(&key, shown, default.as_deref());
        }
        value
    }

    /// Reports what a device or an arm itself refused in its parameters, and goes on with a stand-in.
    pub(super) fn resolved<T>(
        &self,
        result: Result<T, Vec<ParamError>>,
        stand_in: impl FnOnce() -> T,
    ) -> T {
        result.unwrap_or_else(|errors| {
            for error in errors {
                self.error(error.key, &format!("= {}", error.problem), "");
            }
            stand_in()
        })
    }

    /// A device's or an arm's own complaint about one of its values.
    fn report_problem(&self, problem: &params::Problem) {
        let Some(key) = &problem.key else {
            let message = format!("[{}]: {}", self.path, problem.message);
            self.report(problem.at.clone(), message, "");
            return;
        };
        match (params::expected_words(&problem.message), self.look(key)) {
            (Some(words), Some(value)) if value.get_ref().is_str() => {
                let text = value.get_ref().as_str().unwrap_or_default();
                self.not_a_word(key, text, &words);
            }
            (_, value) => {
                let shown = value.map_or_else(String::new, |v| format!(" = {}", show(v.get_ref())));
                let message = format!("`{}`{shown}: {}", self.path_of(key), problem.message);
                self.report(problem.at.clone(), message, "");
            }
        }
    }
}
