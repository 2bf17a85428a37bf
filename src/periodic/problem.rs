//! Errors of schedules.

use std::time::Duration;

use crate::invisible::Visible;

/// The reason why the schedule of a [periodic child](crate::periodic) is refused.
///
/// ```
/// use std::time::Duration;
///
/// use verger::{BuildError, Supervisor, every};
///
/// let second = Duration::from_secs(1);
/// let sync = every("sync", second, async |_run| {}).jitter(2 * second);
/// let error = Supervisor::builder("app").child(sync).build().unwrap_err();
///
/// let BuildError::BadSchedule { problem, .. } = error else { panic!("{error}") };
/// let advice = "a jitter of 2s isn't shorter than the period of 1s; write a shorter one, such as `100ms`";
/// assert_eq!(problem.to_string(), advice);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleProblem {
    /// The jitter is as long as the period, so a run could begin after the next one is due.
    #[error(
        "a jitter of {jitter:?} isn't shorter than the period of {period:?}; write a shorter one, such as \
         `{:?}`",
        .period.div_f64(10.0)
    )]
    LongJitter {
        /// The jitter.
        jitter: Duration,
        /// The period.
        period: Duration,
    },
    /// No run would ever be allowed.
    #[error(
        "`Overrun::Allow(0)` allows no run; write `Overrun::Allow(2)` or more, or `Overrun::Skip`"
    )]
    NoRuns,
    /// A threshold of failed runs is zero.
    #[error("`{option}(0)` waits for no failed run; write `{option}(1)` or more")]
    NoFailures {
        /// The option: `unhealthy_after` or `fail_after`.
        option: &'static str,
    },
    /// The text isn't a cron expression.
    #[error(
        "`{}` isn't a cron expression: {problem}; write five fields (minute, hour, day of the month, month, day \
         of the week) such as `30 4 * * *`, or six with the second first",
        Visible(.expression)
    )]
    BadExpression {
        /// The text.
        expression: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The cron expression matches no time in the future.
    #[error(
        "`{}` matches no time in the future; check its day and month, and write an expression such as \
         `30 4 * * *`",
        Visible(.expression)
    )]
    NeverDue {
        /// The expression.
        expression: String,
    },
    /// The system knows no time zone of this name.
    #[error(
        "the system knows no time zone `{}`; write a name of the IANA database such as `Europe/Berlin`, and \
         install that database if it is missing (often a package `tzdata`), or use the crate jiff with its \
         feature `tzdb-bundle-always`",
        Visible(.name)
    )]
    UnknownTimeZone {
        /// The name.
        name: String,
    },
}
