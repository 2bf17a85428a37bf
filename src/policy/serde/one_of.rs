//! Enums of which each variant is a word, or a table with one key.

use std::fmt;
use std::marker::PhantomData;

use serde::Serializer;
use serde::de::{self, Deserializer, MapAccess, Unexpected, Visitor};
use serde::ser::{Serialize, SerializeMap};

use crate::policy::UnknownWord;

/// An enum whose variants without a value are words, and whose variants with a value are tables
/// with one key.
pub(super) trait OneOf: Sized {
    /// The name of the setting, for errors.
    const WHAT: &'static str;
    /// All words and keys.
    const WORDS: &'static [&'static str];
    /// The forms that can be read, for errors.
    const EXPECTED: &'static str;
    /// Examples of the keys, for errors about a key without a value.
    const EXAMPLES: &'static [(&'static str, &'static str)];

    /// Returns the variant with this word.
    fn from_word(word: &str) -> Option<Self>;

    /// Reads the value of the variant with this key, or returns `None` if no variant has it.
    fn from_entry<'de, A: MapAccess<'de>>(key: &str, map: &mut A)
    -> Result<Option<Self>, A::Error>;

    /// Returns the variant that is written as a number.
    fn from_number(_number: f64) -> Option<Self> {
        None
    }
}

/// Reads an enum that implements [`OneOf`].
pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: OneOf,
    D: Deserializer<'de>,
{
    deserializer.deserialize_any(OneOfVisitor(PhantomData))
}

/// Writes a table with one key.
pub(super) fn serialize_entry<S: Serializer>(
    serializer: S,
    key: &'static str,
    value: &impl Serialize,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(key, value)?;
    map.end()
}

struct OneOfVisitor<T>(PhantomData<T>);

impl<T: OneOf> OneOfVisitor<T> {
    fn example(key: &str) -> Option<String> {
        let (key, value) = T::EXAMPLES.iter().find(|(it, _)| *it == key)?;
        Some(format!("{{ {key} = {value} }}"))
    }
}

impl<'de, T: OneOf> Visitor<'de> for OneOfVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        T::from_number(number).ok_or_else(|| E::invalid_type(Unexpected::Float(number), &self))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        let value = T::from_number(number as f64);
        value.ok_or_else(|| E::invalid_type(Unexpected::Signed(number), &self))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        let value = T::from_number(number as f64);
        value.ok_or_else(|| E::invalid_type(Unexpected::Unsigned(number), &self))
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<T, E> {
        if let Some(value) = T::from_word(word) {
            return Ok(value);
        }
        Err(match Self::example(word) {
            Some(table) => E::custom(format!("`{word}` needs a value; write {table}, for example")),
            None => E::custom(UnknownWord::new(T::WHAT, word, T::WORDS)),
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let Some(key) = map.next_key::<String>()? else {
            let example = T::EXAMPLES.first().and_then(|(key, _)| Self::example(key));
            let example = example.unwrap_or_default();
            let message = format!("the table is empty; write {example}, for example");
            return Err(de::Error::custom(message));
        };
        let Some(value) = T::from_entry(&key, &mut map)? else {
            return Err(match T::from_word(&key) {
                Some(_) => {
                    de::Error::custom(format!("`{key}` has no value; write \"{key}\" instead"))
                }
                None => de::Error::custom(UnknownWord::new(T::WHAT, &key, T::WORDS)),
            });
        };
        match map.next_key::<String>()? {
            None => Ok(value),
            Some(second) => {
                let message = format!("`{key}` and `{second}` exclude each other; remove one");
                Err(de::Error::custom(message))
            }
        }
    }
}
