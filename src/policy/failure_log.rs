//! Log levels of failures.

use crate::string_enum::string_enum;

/// A log level of `tracing`.
///
/// The example of [`FailureLog`](crate::policy::FailureLog) sets two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// The most verbose level.
    Trace,
    /// Details for debugging.
    Debug,
    /// Normal operation.
    Info,
    /// A problem that is being handled.
    Warn,
    /// A problem that needs attention.
    Error,
}

string_enum!(
    LogLevel, "log level":
    Trace = "trace",
    Debug = "debug",
    Info = "info",
    Warn = "warn",
    Error = "error",
);

/// The log level for failures of a child that are followed by a restart.
///
/// By default each failure is logged at `WARN`. The two levels are those of Pekko's supervision: a
/// quiet one for occasional failures, and a loud one for a child that keeps failing.
///
/// ```
/// use verger::policy::{FailureLog, LogLevel};
///
/// let log = FailureLog::at(LogLevel::Info).critical(LogLevel::Error, 3);
/// # let spec = verger::worker("poll", async |_| {});
/// let spec = spec.failure_log(log);
/// # drop(spec);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureLog {
    pub(super) level: LogLevel,
    pub(super) critical: Option<Critical>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Critical {
    pub(super) level: LogLevel,
    pub(super) after: u32,
}

impl FailureLog {
    /// Logs every failure at this level.
    #[must_use]
    pub const fn at(level: LogLevel) -> Self {
        Self { level, critical: None }
    }

    /// Logs consecutive failures after the first `after` ones at this level.
    ///
    /// The count starts again when the backoff resets.
    #[must_use]
    pub const fn critical(mut self, level: LogLevel, after: u32) -> Self {
        self.critical = Some(Critical { level, after });
        self
    }

    /// Returns the level for a failure, where `attempt` is 1 for the first consecutive one.
    pub(crate) fn level(self, attempt: u32) -> LogLevel {
        match self.critical {
            Some(Critical { level, after }) if attempt > after => level,
            _ => self.level,
        }
    }
}

/// Logs every failure at `WARN`.
impl Default for FailureLog {
    fn default() -> Self {
        Self::at(LogLevel::Warn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kin_71_failures_after_the_first_ones_have_the_critical_level() {
        let log = FailureLog::at(LogLevel::Info).critical(LogLevel::Error, 3);
        let levels = [1, 2, 3, 4, 5].map(|attempt| log.level(attempt));
        assert_eq!(levels[..3], [LogLevel::Info; 3]);
        assert_eq!(levels[3..], [LogLevel::Error; 2]);
        assert_eq!(log.level(1), LogLevel::Info, "after a reset");
        assert_eq!(FailureLog::default().level(u32::MAX), LogLevel::Warn);
    }
}
