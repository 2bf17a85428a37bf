//! Values that are written as a word, or as a table with several keys.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};

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
