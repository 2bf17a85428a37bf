//! How loudly failures are logged.

use serde::{Deserialize, Serialize};

use super::word::words;

/// A level of the log, as tracing has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// The finest.
    Trace,
    /// For whoever looks for a mistake.
    Debug,
    /// For whoever wants to know what goes on.
    Info,
    /// Something is wrong, and is being seen to.
    Warn,
    /// Somebody has to see to it.
    Error,
}

words!(
    LogLevel, "log level":
    Trace = "trace",
    Debug = "debug",
    Info = "info",
    Warn = "warn",
    Error = "error",
);

/// How loudly the failures of a child that is restarted are logged.
///
/// By default each is a warning. A child that fails now and then may be quieter, and one that fails
/// on and on louder: the levels are those of Pekko's supervision.
///
/// ```
/// use verger::{FailureLog, LogLevel};
///
/// let log = FailureLog::at(LogLevel::Info).critical(LogLevel::Error, 3);
/// # let spec = verger::worker("poll", async |_| {});
/// let spec = spec.failure_log(log);
/// # drop(spec);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureLog {
    level: LogLevel,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    critical: Option<Critical>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Critical {
    level: LogLevel,
    after: u32,
}

impl FailureLog {
    /// Every failure at this level.
    #[must_use]
    pub const fn at(level: LogLevel) -> Self {
        Self { level, critical: None }
    }

    /// The first `after` failures in a row as before, and those that follow at this level, until
    /// the backoff begins again.
    #[must_use]
    pub const fn critical(mut self, level: LogLevel, after: u32) -> Self {
        self.critical = Some(Critical { level, after });
        self
    }

    /// The level of a failure, where `attempt` is 1 for the first in a row.
    pub(crate) fn level(self, attempt: u32) -> LogLevel {
        match self.critical {
            Some(Critical { level, after }) if attempt > after => level,
            _ => self.level,
        }
    }
}

/// A warning, however often.
impl Default for FailureLog {
    fn default() -> Self {
        Self::at(LogLevel::Warn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kin_71_the_first_failures_in_a_row_are_quiet_and_the_others_are_not() {
        let log = FailureLog::at(LogLevel::Info).critical(LogLevel::Error, 3);
        let levels = [1, 2, 3, 4, 5].map(|attempt| log.level(attempt));
        assert_eq!(levels[..3], [LogLevel::Info; 3]);
        assert_eq!(levels[3..], [LogLevel::Error; 2]);
        assert_eq!(log.level(1), LogLevel::Info, "after a reset");
        assert_eq!(FailureLog::default().level(u32::MAX), LogLevel::Warn);
    }

    #[test]
    fn it_is_read_as_it_is_written() {
        let log = FailureLog::at(LogLevel::Info).critical(LogLevel::Error, 3);
        let text = "level = \"info\"\n\n[critical]\nlevel = \"error\"\nafter = 3\n";
        assert_eq!(toml::to_string(&log).unwrap(), text);
        assert_eq!(toml::from_str::<FailureLog>(text).unwrap(), log);
    }
}
