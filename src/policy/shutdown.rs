//! Shutdown: the grace that a child gets between being asked to stop and being aborted.
//!
//! A [`Shutdown`] is one child's grace. It doesn't know how long an abort takes, nor the bounds
//! that a supervisor or a termination sets on the whole stop.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use humantime_serde::re::humantime::format_duration;
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

use super::duration;

/// How a child is stopped, and how long it may take.
///
/// The three ways are OTP's. Written as `brutal_kill`, `infinity`, or the time itself (`5s`,
/// `1m 30s`). A `Duration` converts into [`Timeout`](Self::Timeout).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shutdown {
    /// The child is aborted at once, without being asked.
    BrutalKill,
    /// The child is asked to stop, and aborted if it hasn't ended when the time is over.
    ///
    /// Five seconds by default. Zero asks and aborts in one go, so that the child may see the
    /// request but can't rely on it.
    Timeout(Duration),
    /// The child is asked to stop and waited for, however long it takes.
    ///
    /// The default for supervisors, whose own children bound the wait. A worker with `Infinity`
    /// makes the stop of every supervisor above it unbounded.
    Infinity,
}

impl Shutdown {
    /// What a worker gets unless its spec says otherwise: five seconds, as in OTP.
    pub(crate) const DEFAULT: Self = Self::Timeout(Duration::from_secs(5));
}

/// Five seconds, the grace of a worker.
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
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// A text that is no [`Shutdown`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown shutdown `{text}`; write a time such as `5s`, `brutal_kill` or `infinity`")]
pub struct UnknownShutdown {
    text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shutdown_is_read_as_it_is_written() {
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
    fn a_duration_is_a_timeout_also_if_it_is_zero() {
        for grace in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            assert_eq!(Shutdown::from(grace), Shutdown::Timeout(grace));
        }
    }

    #[test]
    fn a_shutdown_is_shown_and_serialised_as_the_same_text() {
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
