//! Enums of which each variant is a word, or a table with one key: `Jitter`, `OnExhausted` and `Reset`; and values that are
//! written as a word, or as a table with several keys.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Unexpected, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::human_duration::HumanDuration;
use crate::policy::{Jitter, OnExhausted, Reset, UnknownWord};

/// An enum whose variants without a value are words, and whose variants with a value are tables
/// with one key.
trait OneOf: Sized {
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

    /// Returns what is wrong with the value in a table.
    fn problem(&self) -> Option<&'static str> {
        None
    }
}

/// Implements serde's traits of an enum: the consts of [`OneOf`], the variants that are words, and those that are tables, each with
/// the field of its value and optionally the type as which it is written.
macro_rules! one_of {
    (@written $value:ident) => { $value };
    (@written $value:ident $form:ident) => { &$form(*$value) };

    (@read $map:ident) => { $map.next_value()? };
    (@read $map:ident $form:ident) => {{
        let $form(value) = $map.next_value()?;
        value
    }};

    ($type:ident {
        what: $what:literal,
        words: $words:expr,
        expected: $expected:literal,
        examples: $examples:expr,
        $($word_variant:ident = $word:literal),+;
        $($variant:ident.$field:tt = $key:literal $(as $form:ident)?),+;
        $($method:item)?
    }) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$word_variant => serializer.serialize_str($word),)+
                    $(Self::$variant { $field: value } => {
                        serialize_entry(serializer, $key, one_of!(@written value $($form)?))
                    })+
                }
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(OneOfVisitor(PhantomData))
            }
        }

        impl OneOf for $type {
            const WHAT: &'static str = $what;
            const WORDS: &'static [&'static str] = &$words;
            const EXPECTED: &'static str = $expected;
            const EXAMPLES: &'static [(&'static str, &'static str)] = &$examples;

            fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$word_variant),)+
                    _ => None,
                }
            }

            fn from_entry<'de, A: MapAccess<'de>>(
                key: &str,
                map: &mut A,
            ) -> Result<Option<Self>, A::Error> {
                Ok(match key {
                    $($key => Some(Self::$variant { $field: one_of!(@read map $($form)?) }),)+
                    _ => None,
                })
            }

            $($method)?
        }
    };
}

one_of!(Jitter {
    what: "jitter",
    words: ["symmetric", "additive", "additive_abs", "none", "full", "equal"],
    expected: "a jitter: a fraction such as 0.2, `full`, `equal`, `none`, or a table with `symmetric`, `additive` or \
               `additive_abs`",
    examples: [("additive", "0.2"), ("symmetric", "0.2"), ("additive_abs", "\"1s\"")],
    None = "none", Full = "full", Equal = "equal";
    Symmetric.0 = "symmetric", Additive.0 = "additive", AdditiveAbs.0 = "additive_abs" as HumanDuration;
    fn from_number(fraction: f64) -> Option<Self> {
        Some(fraction.into())
    }
});

one_of!(OnExhausted {
    what: "answer to a limit",
    words: ["escalate", "park", "stop_child", "remove", "pause", "exit"],
    expected: "\"escalate\", \"park\", \"stop_child\", \"remove\", { pause = \"15s\" } or { exit = 3 }",
    examples: [("pause", "\"15s\""), ("exit", "3")],
    Escalate = "escalate", Park = "park", StopChild = "stop_child", Remove = "remove";
    Pause.0 = "pause" as HumanDuration, Exit.0 = "exit";
    fn problem(&self) -> Option<&'static str> {
        matches!(self, Self::Pause(Duration::ZERO))
            .then_some("the `pause` is zero; write { pause = \"15s\" }, for example")
    }
});

one_of!(Reset {
    what: "reset",
    words: ["never", "manual", "on_ready", "on_ack", "active_for", "half_life"],
    expected: "`never`, `manual`, `on_ready`, `on_ack`, or a table with `active_for` or `half_life`",
    examples: [("active_for", "\"60s\""), ("half_life", "\"60s\"")],
    Never = "never", Manual = "manual", OnReady = "on_ready", OnAck = "on_ack";
    ActiveFor.0 = "active_for" as HumanDuration, Decay.half_life = "half_life" as HumanDuration;
});

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
        if let Some(problem) = value.problem() {
            return Err(de::Error::custom(problem));
        }
        match map.next_key::<String>()? {
            None => Ok(value),
            Some(second) => {
                let message = format!("`{key}` and `{second}` exclude each other; remove one");
                Err(de::Error::custom(message))
            }
        }
    }
}

/// A word, or the table `T`.
pub(crate) enum WordOrTable<T> {
    Word(String),
    Table(T),
}

/// The table of a [`WordOrTable`].
pub(crate) trait WordsAndTable {
    /// The words and tables that can be read, for errors.
    const EXPECTED: &'static str;
}

impl<'de, T: WordsAndTable + Deserialize<'de>> Deserialize<'de> for WordOrTable<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordOrTableVisitor(PhantomData))
    }
}

struct WordOrTableVisitor<T>(PhantomData<T>);

impl<'de, T: WordsAndTable + Deserialize<'de>> Visitor<'de> for WordOrTableVisitor<T> {
    type Value = WordOrTable<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<WordOrTable<T>, E> {
        Ok(WordOrTable::Word(word.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WordOrTable<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(WordOrTable::Table)
    }
}
