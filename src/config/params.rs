//! Reads a device's or an arm's own parameters, a serde struct, out of a table of the plan; every wrong value is found, not only the
//! first: the value that serde complains about is taken out, and the rest is read again.

use std::ops::Range;

use serde::de::{DeserializeOwned, Deserializer, Visitor, value::Error as PlainError};
use serde::{Serialize, forward_to_deserialize_any};
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// One wrong value.
pub(super) struct Problem {
    /// Which key, when it is about one.
    pub(super) key: Option<String>,
    /// What is wrong.
    pub(super) message: String,
    /// Where.
    pub(super) at: Range<usize>,
}

/// Reads `T` from the table. After a problem the value is the default for that key.
pub(super) fn read<T: DeserializeOwned + Default>(
    mut table: DeTable<'_>,
    at: Range<usize>,
) -> (T, Vec<Problem>) {
    let mut problems = Vec::new();
    loop {
        let value = Spanned::new(at.clone(), DeValue::Table(table.clone()));
        let error = match T::deserialize(ValueDeserializer::from(value)) {
            Ok(value) => return (value, problems),
            Err(error) => error,
        };
        let span = error.span().unwrap_or_else(|| at.clone());
        let key = table
            .iter()
            .find(|(k, v)| inside(&span, &k.span()) || inside(&span, &v.span()))
            .map(|(k, _)| k.get_ref().to_string());
        problems.push(Problem {
            message: error.message().trim().to_owned(),
            at: span,
            key: key.clone(),
        });
        // Each turn removes one key, so this ends; a problem with the table as a whole ends it at once.
        let Some(key) = key else {
            return (T::default(), problems);
        };
        table.remove(key.as_str());
    }
}

fn inside(inner: &Range<usize>, outer: &Range<usize>) -> bool {
    inner.start >= outer.start && inner.end <= outer.end
}

/// The key names of a serde struct.
pub(super) fn fields<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut found: &'static [&'static str] = &[];
    // The reading stops as soon as the names are known, so its result is an error by design.
    let _ = T::deserialize(FieldNames(&mut found));
    found
}

/// Key, value and default value of each parameter, as TOML.
pub(super) fn shown<T: Serialize + Default>(value: &T) -> Vec<(String, String, Option<String>)> {
    let defaults = toml::Table::try_from(T::default()).unwrap_or_default();
    toml::Table::try_from(value)
        .unwrap_or_default()
        .into_iter()
        .map(|(key, value)| {
            let default = defaults.get(&key).map(ToString::to_string);
            (key, value.to_string(), default)
        })
        .collect()
}

/// The legal words, out of serde's complaint about an unknown variant.
pub(super) fn expected_words(message: &str) -> Option<Vec<&str>> {
    let list = message
        .strip_prefix("unknown variant")?
        .split_once("expected")?
        .1;
    Some(list.split('`').skip(1).step_by(2).collect())
}

struct FieldNames<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = PlainError;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, PlainError> {
        Err(serde::de::Error::custom("not a struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, PlainError> {
        *self.0 = fields;
        Err(serde::de::Error::custom("only the names were wanted"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
