//! Graces: the time between the cancellation and the abort of a child.

use std::fmt;
use std::time::Duration;

use crate::human_duration::HumanDuration;

/// How a child is stopped, and its grace: the time that it may take.
///
/// `BrutalKill`, `Timeout` and `Infinity` are OTP's. Displayed as `brutal_kill`, `infinity`, `drain 10s`, or the time
/// (`5s`, `1m 30s`), and with the feature `serde` parsed, written and read as this text. A `Duration` converts into
/// [`Timeout`](Self::Timeout). Default: 5 s.
///
/// ```
/// use std::time::Duration;
///
/// use verger::Shutdown;
///
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
    /// As [`Timeout`](Self::Timeout), for a child whose work may last longer than that.
    ///
    /// An abort at the end of the time is expected, for example because the child still has idle connections. It is
    /// logged as information, and it isn't part of [`RunError::Forced`](crate::RunError::Forced) or a reason for exit
    /// code 3. A child that still runs after the abort has leaked, as any other.
    Drain(Duration),
    /// Cancels the child and waits until it has ended.
    ///
    /// The default for supervisors, whose children have graces of their own. For a worker, it makes
    /// the stop of every supervisor above unbounded.
    Infinity,
}

impl Shutdown {
    /// The default of a worker: five seconds, as in OTP.
    pub(crate) const DEFAULT: Self = Self::Timeout(Duration::from_secs(5));

    /// Returns the time after which the child is aborted, if it has a bound above zero.
    pub(crate) fn grace(self) -> Option<Duration> {
        match self {
            Self::Timeout(grace) | Self::Drain(grace) => Some(grace),
            Self::BrutalKill | Self::Infinity => None,
        }
    }

    /// Returns what an abort of the child in a stop means.
    pub(crate) fn abort_kind(self) -> AbortKind {
        match self {
            Self::BrutalKill => AbortKind::Brutal,
            Self::Drain(_) => AbortKind::Drained,
            Self::Timeout(_) | Self::Infinity => AbortKind::Missed,
        }
    }

    /// Returns this, with a grace that isn't longer.
    pub(crate) fn at_most(self, longest: Duration) -> Self {
        match self {
            Self::BrutalKill => Self::BrutalKill,
            Self::Timeout(grace) => Self::Timeout(grace.min(longest)),
            Self::Drain(grace) => Self::Drain(grace.min(longest)),
            Self::Infinity => Self::Timeout(longest),
        }
    }
}

/// What an abort in a stop means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AbortKind {
    /// The child has no grace.
    Brutal,
    /// The child missed its grace.
    Missed,
    /// The child had its time.
    Drained,
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
            Self::Timeout(grace) => f.pad(&HumanDuration(*grace).to_string()),
            Self::Drain(grace) => f.pad(&format!("drain {}", HumanDuration(*grace))),
            Self::Infinity => f.pad("infinity"),
        }
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
    fn a_duration_converts_into_a_timeout() {
        for grace in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            assert_eq!(Shutdown::from(grace), Shutdown::Timeout(grace));
        }
    }

    #[test]
    fn a_shutdown_is_displayed_as_its_text() {
        let table = [
            (Shutdown::BrutalKill, "brutal_kill"),
            (Shutdown::Infinity, "infinity"),
            (Shutdown::DEFAULT, "5s"),
            (Shutdown::Timeout(Duration::ZERO), "0s"),
            (Shutdown::Timeout(Duration::from_millis(1_500)), "1s 500ms"),
            (Shutdown::Timeout(Duration::from_secs(90)), "1m 30s"),
            (Shutdown::Drain(Duration::from_secs(90)), "drain 1m 30s"),
        ];
        for (shutdown, text) in table {
            assert_eq!(shutdown.to_string(), text);
        }
    }
}
