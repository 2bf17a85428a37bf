//! Shutdown: the grace that a child gets between being asked to stop and being aborted.
//!
//! A [`Shutdown`] is one child's grace. It doesn't know how long an abort takes, nor the bounds
//! that a supervisor or a termination sets on the whole stop.

use std::fmt;
use std::time::Duration;

use humantime_serde::re::humantime::format_duration;
use serde::{Serialize, Serializer};

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

#[cfg(test)]
mod tests {
    use super::*;

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
