//! Choices that are one word: how each is shown, written to a file and read from one.
//!
//! A word is read as a string and looked up here, so that the answer to an unknown one names those
//! that there are, whatever the file's format and whoever loads it.

use std::fmt;

/// A word that means nothing where it stands.
///
/// The text names the words that do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWord {
    what: &'static str,
    word: String,
    known: &'static [&'static str],
}

impl UnknownWord {
    pub(crate) fn new(what: &'static str, word: &str, known: &'static [&'static str]) -> Self {
        Self { what, word: word.to_owned(), known }
    }

    /// The words that mean something there.
    #[must_use]
    pub fn known(&self) -> &'static [&'static str] {
        self.known
    }
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {} `{}`; write ", self.what, self.word)?;
        for (index, word) in self.known.iter().enumerate() {
            let before = match index {
                0 => "",
                _ if index + 1 == self.known.len() => " or ",
                _ => ", ",
            };
            write!(f, "{before}`{word}`")?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownWord {}

/// Gives an enum without fields its words, each with the synonyms that are understood as well.
///
/// ```text
/// words!(Start, "start": Sequential = "sequential", Concurrent = "concurrent" | "parallel");
/// ```
macro_rules! words {
    ($type:ident, $what:literal: $($variant:ident = $word:literal $(| $synonym:literal)*),+ $(,)?) => {
        $crate::policy::spelled!($type, $what: $($variant = $word $(| $synonym)*),+);

        #[cfg(test)]
        impl $type {
            /// Every one of them.
            pub(crate) const ALL: &[Self] = &[$(Self::$variant),+];
        }
    };
}

/// The same for an enum that has its own list of variants, or needs none.
macro_rules! spelled {
    ($type:ident, $what:literal: $($variant:ident = $word:literal $(| $synonym:literal)*),+ $(,)?) => {
        impl $type {
            /// How it is written.
            pub(crate) const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::policy::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                match word {
                    $($word $(| $synonym)* => Ok(Self::$variant),)+
                    _ => Err($crate::policy::UnknownWord::new(
                        $what,
                        word,
                        &[$($word, $($synonym,)*)+],
                    )),
                }
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                word.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use {spelled, words};

#[cfg(test)]
mod tests {
    use std::fmt::{Debug, Display};
    use std::str::FromStr;

    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use crate::exit::ExitKind;
    use crate::policy::{
        AutoShutdown, FirstStart, LogLevel, OnExit, OnLeak, PolicySource, Readiness, RestartType,
        Start, StartCause, Strategy, UnknownWord,
    };

    #[test]
    fn a_choice_is_shown_written_and_read_as_the_same_word() {
        fn all<T>(choices: &[T])
        where
            T: Copy + Debug + Display + PartialEq + Serialize + DeserializeOwned,
            T: FromStr<Err = UnknownWord>,
        {
            assert!(choices.len() > 1);
            for &choice in choices {
                let word = choice.to_string();
                assert_eq!(serde_json::to_value(choice).unwrap(), word);
                assert_eq!(serde_json::from_value::<T>(word.clone().into()).unwrap(), choice);
                assert_eq!(word.parse(), Ok(choice));
                let known = "no such word".parse::<T>().unwrap_err();
                assert!(known.known().contains(&&*word));
            }
        }

        all(Strategy::ALL);
        all(AutoShutdown::ALL);
        all(Start::ALL);
        all(FirstStart::ALL);
        all(Readiness::ALL);
        all(StartCause::ALL);
        all(OnLeak::ALL);
        all(LogLevel::ALL);
        all(RestartType::ALL);
        all(OnExit::ALL);
        all(PolicySource::ALL);
        all(&ExitKind::ALL);
    }

    #[test]
    fn an_unknown_word_is_answered_with_the_known_ones_by_any_loader() {
        let expected = "unknown strategy `OneForAll`; write `one_for_one`, `one_for_all` or \
                        `rest_for_one`";
        assert_eq!("OneForAll".parse::<Strategy>().unwrap_err().to_string(), expected);
        let error = serde_json::from_str::<Strategy>("\"OneForAll\"").unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
        let error = toml::Value::from("OneForAll").try_into::<Strategy>().unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
        let expected = "unknown start `x`; write `sequential` or `concurrent`";
        assert_eq!("x".parse::<Start>().unwrap_err().to_string(), expected);
    }
}
