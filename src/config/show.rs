//! Values as a user reads and writes them.

use std::ops::RangeInclusive;

use toml::de::DeValue;

pub(super) fn quoted(words: &[&str]) -> String {
    words
        .iter()
        .map(|w| format!("\"{w}\""))
        .collect::<Vec<_>>()
        .join(", ")
}

pub(super) fn one_of<T>(words: &[(&str, T)]) -> String {
    words
        .iter()
        .map(|(w, _)| format!("\"{w}\""))
        .collect::<Vec<_>>()
        .join(" or ")
}

/// A number of a TOML value; whole numbers are numbers too.
pub(super) fn number_of(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(f) => f.as_str().replace('_', "").parse().ok(),
        DeValue::Integer(i) => i64::from_str_radix(&i.as_str().replace('_', ""), i.radix())
            .ok()
            .map(|i| i as f64),
        _ => None,
    }
}

/// A value as the user wrote it, short.
pub(super) fn show(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(s) => format!("{s:?}"),
        DeValue::Integer(i) => i.to_string(),
        DeValue::Float(f) => f.to_string(),
        DeValue::Boolean(b) => b.to_string(),
        DeValue::Datetime(d) => d.to_string(),
        DeValue::Array(items) => format!(
            "[{}]",
            items
                .iter()
                .map(|i| show(i.get_ref()))
                .collect::<Vec<_>>()
                .join(", ")
        ),
        DeValue::Table(_) => "{…}".to_owned(),
    }
}

pub(super) fn show_f64(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        format!("{value:.1}")
    } else {
        value.to_string()
    }
}

pub(super) fn show_all(values: &[f64]) -> String {
    format!(
        "[{}]",
        values
            .iter()
            .map(|v| v.to_string())
            .collect::<Vec<_>>()
            .join(", ")
    )
}

/// What a value out of range may have been meant as: another unit, when that would fit.
pub(super) fn unit_hint(key: &str, value: f64, bound: &RangeInclusive<f64>) -> String {
    let unit = |suffix: &str| key.ends_with(suffix);
    let guess = if unit("_mm") && bound.contains(&(value * 1e3)) {
        "millimetres, not metres"
    } else if unit("_ms") && bound.contains(&(value * 1e3)) {
        "milliseconds, not seconds"
    } else if unit("_m_s") && bound.contains(&(value * 1e-3)) {
        "metres per second, not millimetres per second"
    } else if unit("_m") && bound.contains(&(value * 1e-3)) {
        "metres, not millimetres"
    } else {
        ""
    };
    if guess.is_empty() {
        format!("it must lie in {}..={}", bound.start(), bound.end())
    } else {
        format!(
            "it must lie in {}..={}; the unit is {guess}",
            bound.start(),
            bound.end()
        )
    }
}
