//! The error of our deserializer: what is wrong with one value, in words for the author of a file.
//!
//! A [`ReadError`] knows which node it is about. It doesn't know where that is.
//!
//! # Invariants
//!
//! 1. The innermost value that fails is the place of the error.
//! 2. No message names a Rust type: a `u8` is a whole number from 0 to 255, a struct is a table.

use std::fmt::{self, Display};

use serde::de::{Error, Expected, Unexpected};

use crate::suggest;

/// The most characters of a value that a message repeats.
const MOST: usize = 80;
/// Up to this number, all known words are listed.
const LISTED: usize = 20;

#[derive(Debug)]
pub(super) struct ReadError {
    pub(super) kind: Kind,
    /// The address of the node.
    pub(super) at: Option<usize>,
    /// Whether the key of the node is wrong, and not its value.
    pub(super) is_key: bool,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// A value of a wrong type, or out of its range.
    Wrong {
        what: &'static str,
        found: String,
        expected: String,
    },
    UnknownKey(String),
    Missing(&'static str),
    /// The code that reads the value has panicked.
    Panic(String),
    Other(String),
}

impl ReadError {
    fn new(kind: Kind) -> Self {
        Self { kind, at: None, is_key: false }
    }

    fn wrong(what: &'static str, found: String, expected: &dyn Expected) -> Self {
        Self::new(Kind::Wrong { what, found, expected: without_types(&expected.to_string()) })
    }

    pub(super) fn of_panic(panic: &impl Display, node: usize) -> Self {
        Self::new(Kind::Panic(panic.to_string())).at(node)
    }

    /// Sets the place, unless a value further in has set it.
    pub(super) fn at(mut self, node: usize) -> Self {
        self.at.get_or_insert(node);
        self
    }

    pub(super) fn at_key(mut self, node: usize) -> Self {
        self.is_key |= self.at.is_none();
        self.at(node)
    }

    /// Returns the message for a value that must not be shown.
    pub(super) fn without_value(&self) -> String {
        match &self.kind {
            Kind::Wrong { what, expected, .. } => {
                format!("invalid {what} of a secret, expected {expected}")
            }
            Kind::Missing(_) => self.to_string(),
            Kind::UnknownKey(_) => "unknown key in a secret".to_owned(),
            Kind::Panic(_) => {
                "reading it panicked; the message isn't shown, because the value is a secret"
                    .to_owned()
            }
            Kind::Other(_) => {
                "the value can't be read; the reason isn't shown, because the value is a secret"
                    .to_owned()
            }
        }
    }
}

impl Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Wrong { what, found, expected } => {
                write!(f, "invalid {what}: {found}, expected {expected}")
            }
            Kind::Missing(key) => write!(f, "the key `{key}` is missing; add it"),
            Kind::Panic(message) => write!(f, "reading it panicked: {message}"),
            Kind::UnknownKey(message) | Kind::Other(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for ReadError {}

impl Error for ReadError {
    fn custom<T: Display>(message: T) -> Self {
        let message = message.to_string();
        Self::new(Kind::Other(if message.starts_with("data did not match any variant") {
            "the value has none of the forms that are allowed here".to_owned()
        } else {
            with_suggestion(message)
        }))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::wrong("type", in_words(found), expected)
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::wrong("value", in_words(found), expected)
    }

    fn invalid_length(found: usize, expected: &dyn Expected) -> Self {
        Self::wrong("length", found.to_string(), expected)
    }

    fn unknown_variant(word: &str, known: &'static [&'static str]) -> Self {
        Self::new(Kind::Other(unknown("word", word, known)))
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        Self::new(Kind::UnknownKey(unknown("key", key, known)))
    }

    fn missing_field(key: &'static str) -> Self {
        Self::new(Kind::Missing(key))
    }

    fn duplicate_field(key: &'static str) -> Self {
        Self::new(Kind::Other(format!("`{key}` is set twice, by two names; remove one of them")))
    }
}

/// Adds the word that is meant to the text of an [`UnknownWord`](crate::policy::UnknownWord), which serde passes on
/// as a text.
fn with_suggestion(message: String) -> String {
    let Some((unknown, known)) = message.split_once("`; write `") else { return message };
    let word = unknown.rsplit('`').next().unwrap_or_default();
    let words: Vec<_> = known.split('`').step_by(2).collect();
    match suggest::closest(word, &words) {
        Some(best) => format!("{unknown}`; did you mean `{best}`? write `{known}"),
        None => message,
    }
}

/// Says that a word isn't one of the known ones, and what to write instead.
pub(super) fn unknown(what: &str, word: &str, known: &[&str]) -> String {
    let shown = cut(word);
    let best = suggest::closest(word, known);
    let mean = best.map_or(String::new(), |best| format!(" did you mean `{best}`?"));
    match known {
        [] => format!("unknown {what} `{shown}`; remove it, because none is known here"),
        [_] if best.is_some() => format!("unknown {what} `{shown}`;{mean}"),
        _ if known.len() <= LISTED => {
            format!("unknown {what} `{shown}`;{mean} write {}", suggest::list(known, "or"))
        }
        _ => {
            let nearest = suggest::nearest(word, known, 5);
            let others = known.len() - nearest.len();
            let nearest = suggest::list(&nearest, "or");
            format!("unknown {what} `{shown}`;{mean} write {nearest}, or one of {others} others")
        }
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Describes what was found.
fn in_words(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Str(text) => format!("string \"{}\"", cut(text)),
        Unexpected::Map | Unexpected::StructVariant => "table".to_owned(),
        Unexpected::Seq | Unexpected::TupleVariant => "array".to_owned(),
        Unexpected::UnitVariant => "word without a value".to_owned(),
        Unexpected::NewtypeVariant | Unexpected::Enum => "word with a value".to_owned(),
        Unexpected::Float(number) => format!("number `{number:?}`"),
        found => found.to_string(),
    }
}

/// Describes what serde expected, without the names of types.
fn without_types(expected: &str) -> String {
    const PREFIXES: [(&str, &str); 14] = [
        ("a nonzero ", "a whole number that isn't zero"),
        ("struct variant ", "a table"),
        ("struct ", "a table"),
        ("tuple struct ", "an array"),
        ("tuple variant ", "an array"),
        ("a tuple of size ", "an array"),
        ("unit struct ", "an empty table"),
        ("unit variant ", "a word without a value"),
        ("newtype variant ", "a value"),
        ("newtype struct ", "a value"),
        ("internally tagged enum ", "a table"),
        ("adjacently tagged enum ", "a table"),
        ("enum ", "a word, or a table with one key"),
        ("variant of enum ", "a word, or a table with one key"),
    ];
    let words = match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" | "u128" => "a whole number that isn't negative",
        "i8" => "a whole number from -128 to 127",
        "i16" => "a whole number from -32768 to 32767",
        "i32" => "a whole number from -2147483648 to 2147483647",
        "i64" | "isize" | "i128" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "`true` or `false`",
        "a borrowed string" => "a string",
        "a map" => "a table",
        "a sequence" => "an array",
        _ => match PREFIXES.iter().find(|(prefix, _)| expected.starts_with(prefix)) {
            Some((_, words)) => words,
            None => expected,
        },
    };
    // `tuple struct Pair with 2 elements`, `a tuple of size 2`.
    match expected.split(' ').find(|word| word.parse::<usize>().is_ok()) {
        Some(number) if words == "an array" => format!("an array of {number}"),
        _ => words.to_owned(),
    }
}
