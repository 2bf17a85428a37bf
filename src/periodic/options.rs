//! What all periodic children have in common, and why a schedule is refused.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::clock::wall_clock;
use crate::error::BuildError;
use crate::invisible::Visible;
use crate::panic::{Foreign, catch_panic};
use crate::path::Path;

/// What happens when a run is due and the one before it is still running.
///
/// The example of [`every`](crate::every) sets one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Overrun {
    /// The run is skipped. The next one is the first that is planned after the running one has ended. The default.
    #[default]
    Skip,
    /// The run begins when the running one has ended. One is queued at most: of several that become due meanwhile,
    /// the last one is.
    Queue,
    /// The running one is dropped at its next await point, and the run begins.
    Replace,
    /// The run begins beside those that are running, in a [helper task](crate::Context::spawn) of its own. It is
    /// skipped if this many are running.
    Allow(usize),
}

impl Overrun {
    /// Whether a run that is due waits for the end of the one that is running, or is skipped then.
    pub(super) fn waits_for_end(self) -> bool {
        matches!(self, Self::Skip | Self::Queue)
    }

    /// Whether no run may begin beside those that are running.
    pub(super) fn refuses(self, running: usize) -> bool {
        matches!(self, Self::Allow(most) if running >= most)
    }

    pub(super) fn is_concurrent(self) -> bool {
        matches!(self, Self::Allow(_))
    }

    pub(super) fn check(self, path: &dyn Fn() -> Path) -> Result<(), BuildError> {
        match self {
            Self::Allow(0) => Err(bad(path, ScheduleProblem::NoRuns)),
            _ => Ok(()),
        }
    }
}

/// What happens to a planned run that couldn't begin in time, because the machine was suspended, the program stood still,
/// the wall clock was put forward, the child was down, or the run before took too long.
///
/// A run is missed if it would begin more than a minute after its planned time.
///
/// The example of [`cron`](crate::periodic) sets one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Missed {
    /// The run is skipped. The default of `cron`.
    #[default]
    Skip,
    /// The run begins as soon as it can, if that is at most this long after its planned time. Of several missed runs,
    /// it is the last one.
    OnceWithin(Duration),
}

/// A run that begins later than this is missed. A change of the wall clock may be noticed that late.
pub(super) const ON_TIME: Duration = Duration::from_secs(60);

/// How runs are treated, whenever they are due.
#[derive(Clone, Debug)]
pub(super) struct RunOptions {
    /// How long a run may take.
    pub(super) limit: Option<Duration>,
    /// After how many failed runs in a row the child is unhealthy. `build` refuses 0.
    pub(super) unhealthy_after: u32,
    /// After how many failed runs in a row the child fails. `build` refuses 0.
    pub(super) fail_after: Option<u32>,
    pub(super) clock: Clock,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self { limit: None, unhealthy_after: 3, fail_after: None, clock: Clock::default() }
    }
}

impl RunOptions {
    pub(super) fn check(&self, path: &dyn Fn() -> Path) -> Result<(), BuildError> {
        positive(self.limit.unwrap_or(Duration::MAX), "`limit_run`", 60, path)?;
        let no_failures = |option| Err(bad(path, ScheduleProblem::NoFailures { option }));
        match (self.unhealthy_after, self.fail_after) {
            (0, _) => no_failures("unhealthy_after"),
            (_, Some(0)) => no_failures("fail_after"),
            _ => Ok(()),
        }
    }
}

/// Checks that a duration isn't zero.
pub(super) fn positive(
    duration: Duration,
    option: &'static str,
    example: u64,
    path: &dyn Fn() -> Path,
) -> Result<(), BuildError> {
    if !duration.is_zero() {
        return Ok(());
    }
    Err(BuildError::ZeroDuration { path: path(), option, example: Duration::from_secs(example) })
}

pub(super) fn bad(path: &dyn Fn() -> Path, problem: ScheduleProblem) -> BuildError {
    BuildError::BadSchedule { path: path(), problem }
}

type ReadClock = dyn Fn() -> SystemTime + Send + Sync;

/// The wall clock, or that of a test.
#[derive(Clone, Default)]
pub(super) struct Clock(Option<Foreign<ReadClock>>);

impl Clock {
    pub(super) fn new(read: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Some(Foreign::new(Arc::new(read))))
    }

    pub(super) fn read(&self) -> SystemTime {
        let read = self.0.as_ref().and_then(|read| catch_panic(&**read));
        read.unwrap_or_else(wall_clock)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Clock(set)" } else { "Clock" })
    }
}

/// The methods that the builders of periodic children share, each written and documented once.
macro_rules! run_setters {
    () => {
        /// Sets the most by which a run begins after its planned time. Default: zero.
        ///
        /// Each run is delayed by a random time of at most this. The plan stays as it is, so delays don't add up.
        /// Use it where many processes or children would work at the same instant.
        pub fn jitter(mut self, jitter: Duration) -> Self {
            self.plan.jitter = jitter;
            self
        }

        /// Sets what happens when a run is due and the one before it is still running. Default:
        /// [`Overrun::Skip`].
        pub fn overrun(mut self, overrun: Overrun) -> Self {
            self.plan.overrun = overrun;
            self
        }

        /// Sets how long a run may take. Default: no limit.
        ///
        /// At the limit the run is cancelled, which its [`RunContext`] tells it; the child isn't. The run then has the
        /// [`shutdown`](crate::ChildSpec::shutdown) grace of the child to return, and is dropped at its next await
        /// point when the grace is over. An infinite grace has no bound. With
        /// [`BrutalKill`](crate::Shutdown::BrutalKill) the run is dropped at the limit.
        ///
        /// The run has failed as [`TimedOut`](crate::ExitReason::TimedOut), even if it returns within the grace, and
        /// whatever it returns. Zero is an error when the tree is built.
        ///
        /// ```
        /// use std::time::Duration;
        ///
        /// use verger::every;
        /// use verger::periodic::RunContext;
        ///
        /// async fn compact(run: RunContext) {
        ///     for segment in 0..1_000 {
        ///         // A segment that has begun is finished.
        ///         if run.is_cancelled() {
        ///             return;
        ///         }
        ///         println!("compacting {segment}");
        ///         tokio::task::yield_now().await;
        ///     }
        /// }
        ///
        /// let compact = every("compact", Duration::from_secs(600), compact).limit_run(Duration::from_secs(60));
        /// let spec = compact.spec().shutdown(Duration::from_secs(10));
        /// # drop(spec);
        /// ```
        pub fn limit_run(mut self, limit: Duration) -> Self {
            self.runs.limit = Some(limit);
            self
        }

        /// Sets how many runs in a row must fail for the child to be unhealthy. Default: 3.
        ///
        /// An unhealthy child is one of [`Status::problems`](crate::status::Status::problems), and keeps the tree from
        /// being [ready](crate::status::Status::is_ready) if it is [essential](crate::ChildSpec::essential). The next
        /// run that succeeds makes it healthy again. Zero is an error when the tree is built.
        pub fn unhealthy_after(mut self, runs: u32) -> Self {
            self.runs.unhealthy_after = runs;
            self
        }

        /// Fails the child after this many failed runs in a row. Default: never.
        ///
        /// The child fails with the cause of the last run, and its restart type, backoff and limits apply. The next
        /// incarnation counts from zero. Zero is an error when the tree is built.
        pub fn fail_after(mut self, runs: u32) -> Self {
            self.runs.fail_after = Some(runs);
            self
        }

        /// Reads the wall clock with this function, for tests. Default: [`SystemTime::now`].
        ///
        /// It is called in the child's task, so it must not block.
        pub fn clock(mut self, read: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
            self.runs.clock = Clock::new(read);
            self
        }
    };
}

pub(super) use run_setters;

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
