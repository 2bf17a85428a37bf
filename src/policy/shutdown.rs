//! Graces: the time between the cancellation and the abort of a child.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use humantime_serde::re::humantime::format_duration;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::serde::duration;

/// How a child is stopped, and its grace: the time that it may take.
///
/// The three ways are OTP's. Displayed and written as `brutal_kill`, `infinity`, or the time (`5s`,
/// `1m 30s`). A `Duration` converts into [`Timeout`](Self::Timeout). Default: 5 s.
///
/// ```
/// use std::time::Duration;
///
/// use verger::Shutdown;
///
/// assert_eq!("1m 30s".parse(), Ok(Shutdown::Timeout(Duration::from_secs(90))));
/// assert_eq!(Shutdown::from(Duration::from_secs(5)).to_string(), "5s");
/// assert_eq!(Shutdown::BrutalKill.to_string(), "brutal_kill");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shutdown {
    /// Aborts the child immediately, without cancelling it first.
    BrutalKill,
    /// Cancels the child, and aborts it if it hasn't ended after this time.
    ///
    /// With zero, the child is cancelled and aborted at once; it may or may not see the cancellation.
    Timeout(Duration),
    /// Cancels the child and waits until it has ended.
    ///
    /// The default for supervisors, whose children have graces of their own. For a worker, it makes
    /// the stop of every supervisor above unbounded.
    Infinity,
}

impl Shutdown {
    /// The default of a worker: five seconds, as in OTP.
    pub(crate) const DEFAULT: Self = Self::Timeout(Duration::from_secs(5));

    /// Returns this, with a grace that isn't longer.
    pub(crate) fn at_most(self, longest: Duration) -> Self {
        match self {
            Self::BrutalKill => Self::BrutalKill,
            Self::Timeout(grace) => Self::Timeout(grace.min(longest)),
            Self::Infinity => Self::Timeout(longest),
        }
    }
}

/// Five seconds, the default of a worker.
impl Default for Shutdown {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl From<Duration> for Shutdown {
    fn from(grace: Duration) -> Self {
        Self::Timeout(grace)
    }
}

impl fmt::Display for Shutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BrutalKill => f.pad("brutal_kill"),
            Self::Timeout(grace) => f.pad(&format_duration(*grace).to_string()),
            Self::Infinity => f.pad("infinity"),
        }
    }
}

impl Serialize for Shutdown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Shutdown {
    type Err = UnknownShutdown;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "brutal_kill" => Ok(Self::BrutalKill),
            "infinity" => Ok(Self::Infinity),
            _ => duration::parse(text)
                .map(Self::Timeout)
                .map_err(|_| UnknownShutdown { text: text.to_owned() }),
        }
    }
}

impl<'de> Deserialize<'de> for Shutdown {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Shutdown;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a time with a unit in quotes, such as \"5s\", \"brutal_kill\" or \"infinity\"",
                )
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Shutdown, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Text)
    }
}

/// A string that can't be parsed as a [`Shutdown`].
///
/// ```
/// use verger::Shutdown;
///
/// let error = "soon".parse::<Shutdown>().unwrap_err();
/// let advice = "unknown shutdown `soon`; write a time such as `5s`, `brutal_kill` or `infinity`";
/// assert_eq!(error.to_string(), advice);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown shutdown `{text}`; write a time such as `5s`, `brutal_kill` or `infinity`")]
pub struct UnknownShutdown {
    text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        for (text, shutdown) in [
            ("brutal_kill", Shutdown::BrutalKill),
            ("infinity", Shutdown::Infinity),
            ("1m 30s", Shutdown::Timeout(Duration::from_secs(90))),
        ] {
            assert_eq!(text.parse(), Ok(shutdown));
            let json = serde_json::to_value(shutdown).unwrap();
            assert_eq!(serde_json::from_value::<Shutdown>(json).unwrap(), shutdown);
        }
        let error = serde_json::from_str::<Shutdown>("\"5\"").unwrap_err().to_string();
        let expected = "unknown shutdown `5`; write a time such as `5s`, `brutal_kill` or \
                        `infinity`";
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn a_worker_has_five_seconds_as_in_otp() {
        assert_eq!(Shutdown::DEFAULT, Shutdown::Timeout(Duration::from_secs(5)));
        assert_eq!(Shutdown::default(), Shutdown::DEFAULT);
    }

    #[test]
    fn a_duration_converts_into_a_timeout() {
        for grace in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            assert_eq!(Shutdown::from(grace), Shutdown::Timeout(grace));
        }
    }

    #[test]
    fn a_shutdown_is_displayed_and_serialised_as_the_same_text() {
        let table = [
            (Shutdown::BrutalKill, "brutal_kill"),
            (Shutdown::Infinity, "infinity"),
            (Shutdown::DEFAULT, "5s"),
            (Shutdown::Timeout(Duration::ZERO), "0s"),
            (Shutdown::Timeout(Duration::from_millis(1_500)), "1s 500ms"),
            (Shutdown::Timeout(Duration::from_secs(90)), "1m 30s"),
        ];
        for (shutdown, text) in table {
            assert_eq!(shutdown.to_string(), text);
            assert_eq!(serde_json::to_value(shutdown).unwrap(), text);
        }
    }
}
