//! Enums without fields that are displayed and parsed as one word.

use std::fmt;

use crate::suggest;

/// An error for a word that isn't one of the known words of a setting.
///
/// The text of `Display` lists the known words.
///
/// ```
/// use verger::policy::Start;
///
/// let error = "at once".parse::<Start>().unwrap_err();
/// assert!(error.known().contains(&"concurrent"));
/// println!("{error}");
/// ```
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

    /// Returns the words that are known.
    #[must_use]
    pub fn known(&self) -> &'static [&'static str] {
        self.known
    }
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = suggest::list(self.known, "or");
        write!(f, "unknown {} `{}`; write {known}", self.what, self.word)
    }
}

impl std::error::Error for UnknownWord {}

/// Implements `Display` and `FromStr` of an enum without fields.
///
/// Each variant has a word, and optionally synonyms that are only parsed.
///
/// ```text
/// string_enum!(Start, "start": Sequential = "sequential", Concurrent = "concurrent" | "parallel");
/// ```
macro_rules! string_enum {
    ($type:ident, $what:literal: $($variant:ident = $word:literal $(| $synonym:literal)*),+ $(,)?) => {
        impl $type {
            /// All variants in order.
            #[allow(dead_code, reason = "only tests list the variants of most enums")]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word of this variant.
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
            type Err = $crate::string_enum::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                match word {
                    $($word $(| $synonym)* => Ok(Self::$variant),)+
                    _ => Err($crate::string_enum::UnknownWord::new(
                        $what,
                        word,
                        &[$($word, $($synonym,)*)+],
                    )),
                }
            }
        }
    };
}

pub(crate) use string_enum;

#[cfg(test)]
mod tests {
    use std::fmt::{Debug, Display};
    use std::str::FromStr;

    use crate::exit::ExitKind;
    use crate::policy::{
        AutoShutdown, FirstStart, LogLevel, OnExit, OnLeak, PolicySource, Readiness, RestartType,
        Start, StartCause, Strategy, UnknownWord,
    };

    #[test]
    fn a_value_is_displayed_and_parsed_as_the_same_word() {
        fn all<T>(values: &[T])
        where
            T: Copy + Debug + Display + PartialEq + FromStr<Err = UnknownWord>,
        {
            assert!(values.len() > 1);
            for &value in values {
                let word = value.to_string();
                assert_eq!(word.parse(), Ok(value));
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
        all(ExitKind::ALL);
    }

    #[test]
    fn an_unknown_word_is_an_error_that_lists_the_known_words() {
        let expected = "unknown strategy `OneForAll`; write `one_for_one`, `one_for_all` or \
                        `rest_for_one`";
        assert_eq!("OneForAll".parse::<Strategy>().unwrap_err().to_string(), expected);
        let expected = "unknown start `x`; write `sequential` or `concurrent`";
        assert_eq!("x".parse::<Start>().unwrap_err().to_string(), expected);
    }
}
