//! Restart types: whether a child that ended comes back.
//!
//! A [`RestartType`] answers one question, *does this kind of end call for a restart*, and looks
//! only at whether the end was clean. Whether the restart is allowed is up to the restart
//! intensity, when it happens is up to the backoff.
//!
//! # Invariants
//!
//! 1. Whatever comes back after a clean end also comes back after a failure.
//! 2. What [`Display`](fmt::Display) writes, [`FromStr`] reads.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, de};

/// Which ends of a child are followed by a restart.
///
/// The three types and their meaning are OTP's. An end is *clean* if it is
/// [`Normal`](crate::ExitReason::Normal) or [`Shutdown`](crate::ExitReason::Shutdown), and a
/// failure otherwise. A child that is asked to stop is never restarted, whatever its type.
///
/// Written and read as `permanent`, `transient` or `temporary`. When read, for example from a
/// configuration file, `always`, `on_failure` and `never` are understood as well, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RestartType {
    /// Always restarted, also after a clean end, which then counts and is delayed like a failure.
    ///
    /// The default, as in OTP.
    #[default]
    Permanent,
    /// Restarted after a failure. After a clean end it stays stopped, and its spec is kept.
    Transient,
    /// Never restarted. Its spec is forgotten when it ends, and also when its group is restarted.
    Temporary,
}

impl RestartType {
    /// Whether an end calls for a restart; `clean` says which kind of end it was.
    pub(crate) fn restarts(self, clean: bool) -> bool {
        match self {
            Self::Permanent => true,
            Self::Transient => !clean,
            Self::Temporary => false,
        }
    }
}

impl fmt::Display for RestartType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Permanent => "permanent",
            Self::Transient => "transient",
            Self::Temporary => "temporary",
        })
    }
}

impl FromStr for RestartType {
    type Err = UnknownRestartType;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "permanent" | "always" => Ok(Self::Permanent),
            "transient" | "on_failure" => Ok(Self::Transient),
            "temporary" | "never" => Ok(Self::Temporary),
            _ => Err(UnknownRestartType { word: word.to_owned() }),
        }
    }
}

impl<'de> Deserialize<'de> for RestartType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// A word that names no [`RestartType`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown restart type `{word}`; write `permanent` (or `always`), `transient` (or \
     `on_failure`) or `temporary` (or `never`)"
)]
pub struct UnknownRestartType {
    word: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [RestartType; 3] =
        [RestartType::Permanent, RestartType::Transient, RestartType::Temporary];

    #[test]
    fn a_restart_follows_an_end_as_in_otp() {
        let table = [
            // type, after a clean end, after a failure
            (RestartType::Permanent, true, true),
            (RestartType::Transient, false, true),
            (RestartType::Temporary, false, false),
        ];
        for (restart, after_clean_end, after_failure) in table {
            assert_eq!(restart.restarts(true), after_clean_end, "{restart}, clean");
            assert_eq!(restart.restarts(false), after_failure, "{restart}, failed");
        }
    }

    #[test]
    fn what_comes_back_after_a_clean_end_comes_back_after_a_failure() {
        assert!(ALL.into_iter().all(|restart| restart.restarts(false) >= restart.restarts(true)));
    }

    #[test]
    fn permanent_is_the_default() {
        assert_eq!(RestartType::default(), RestartType::Permanent);
    }

    #[test]
    fn a_type_is_written_in_one_way_and_read_in_two() {
        let table = [
            (RestartType::Permanent, "permanent", "always"),
            (RestartType::Transient, "transient", "on_failure"),
            (RestartType::Temporary, "temporary", "never"),
        ];
        for (restart, word, synonym) in table {
            let json = format!("{word:?}");
            assert_eq!(restart.to_string(), word);
            assert_eq!(serde_json::to_string(&restart).unwrap(), json);
            assert_eq!(serde_json::from_str::<RestartType>(&json).unwrap(), restart);
            assert_eq!(word.parse(), Ok(restart));
            assert_eq!(synonym.parse(), Ok(restart));
        }
    }

    #[test]
    fn an_unknown_word_is_answered_with_the_known_ones() {
        let expected = "unknown restart type `Permanent`; write `permanent` (or `always`), \
                        `transient` (or `on_failure`) or `temporary` (or `never`)";

        assert_eq!("Permanent".parse::<RestartType>().unwrap_err().to_string(), expected);

        let error = serde_json::from_str::<RestartType>("\"Permanent\"").unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}
