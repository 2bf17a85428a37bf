//! Warnings about descriptions that are valid, but probably mistakes.

use std::fmt;
use std::time::Duration;

use crate::invisible::Visible;
use crate::path::Path;
use crate::policy::Unreachable;

/// A setting that is valid, but probably a mistake.
///
/// Logged by [`build`](crate::SupervisorBuilder::build), and returned by
/// [`Supervisor::warnings`](crate::Supervisor::warnings).
///
/// ```
/// use verger::DynamicSupervisor;
/// use verger::error::BuildWarning;
///
/// let tree = DynamicSupervisor::builder("conns").max_children(0).build()?;
/// assert!(matches!(tree.warnings()[0], BuildWarning::NoRoom { .. }));
/// # Ok::<(), verger::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BuildWarning {
    /// The backoff is so slow that the limit on restarts can never be exceeded, or supervisors below
    /// need so long to give up.
    UnreachableLimit {
        /// The supervisor or the child.
        path: Path,
        /// The number of restarts that it allows.
        max: u32,
        /// The period in which they count.
        period: Duration,
        /// The highest number that is possible.
        most: u64,
    },
    /// The backoff is so slow that the score of the restarts can never exceed its limit.
    UnreachableScore {
        /// The supervisor or the child.
        path: Path,
        /// The highest score that it allows.
        max: f64,
        /// The time in which the score halves.
        half_life: Duration,
        /// The highest score that is possible.
        most: f64,
    },
    /// If restarts take as long as graces and timeouts allow, the limit on them is never exceeded.
    ///
    /// A written period is never extended, so write a longer one.
    SlowRestarts {
        /// The supervisor or the child.
        path: Path,
        /// The call that sets the limit.
        limit: String,
        /// How long a restart can take, besides its delay.
        restart: Duration,
    },
    /// The child has a limit on consecutive restarts, but its backoff resets as soon as it is
    /// active.
    NeverInARow {
        /// The child.
        path: Path,
        /// The call that sets the limit.
        limit: String,
    },
    /// The mailbox of the child has a `while_down` other than
    /// `Stash`, which has no effect because the child is started by messages.
    WhileDownIgnored {
        /// The child.
        path: Path,
    },
    /// The child is restarted without a delay and without a limit, so if it fails as soon as it is
    /// started, its restarts keep a processor busy.
    BusyRestarts {
        /// The child.
        path: Path,
    },
    /// The period of a child made by `every` is below the resolution of timers, so its runs keep a processor busy.
    BusySchedule {
        /// The child.
        path: Path,
        /// The period.
        period: Duration,
    },
    /// A cron expression restricts the day of the month and the day of the week, and one of them begins with a `*`. It
    /// matches days that match either one; in Vixie cron, it matches days that match both.
    EitherDay {
        /// The child.
        path: Path,
        /// The expression.
        expression: String,
        /// The expression for days that match both.
        both: String,
    },
    /// The dynamic supervisor has `max_children(0)`, so it refuses every child.
    NoRoom {
        /// The supervisor.
        path: Path,
    },
    /// The supervisor can be restarted, but has a child made by [`once`](crate::once), whose function can't be
    /// called again.
    SpentOnce {
        /// The supervisor.
        path: Path,
    },
    /// A worker has `Shutdown::Infinity`, so stopping the tree may take forever.
    UnboundedStop {
        /// The child.
        path: Path,
    },
    /// The deadline for a stop is shorter than a grace below it.
    ShortStopDeadline {
        /// The supervisor.
        path: Path,
        /// Its [`stop_deadline`](crate::SupervisorBuilder::stop_deadline).
        deadline: Duration,
        /// The longest grace below.
        grace: Duration,
    },
    /// The program is compiled with `panic = "abort"`, so a panic ends the process instead of its child.
    ///
    /// Logged for the first tree of the process only.
    PanicAborts {
        /// The root.
        path: Path,
    },
}

impl BuildWarning {
    pub(crate) fn unreachable(path: &Path, limit: Unreachable) -> Self {
        let path = path.clone();
        match limit {
            Unreachable::Restarts { max, period, most } => {
                Self::UnreachableLimit { path, max, period, most }
            }
            Unreachable::Score { max, half_life, most } => {
                Self::UnreachableScore { path, max, half_life, most }
            }
        }
    }
}

impl fmt::Display for BuildWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnreachableLimit { path, max, period, most } => write!(
                f,
                "`{path}` gives up after {max} restarts in {period:?}, but with its backoff there \
                 can be {most} at most: it will never give up"
            ),
            Self::UnreachableScore { path, max, half_life, most } => write!(
                f,
                "`{path}` gives up at a score above {max} that is halved every {half_life:?}, but \
                 with its backoff the score is {most:.2} at most: it will never give up"
            ),
            Self::SlowRestarts { path, limit, restart } => write!(
                f,
                "`{path}` has `{limit}`, but a restart can take {restart:?} and its delay, with all graces \
                 and timeouts: it may never give up; write a longer period"
            ),
            Self::NeverInARow { path, limit } => write!(
                f,
                "`{path}` has `{limit}`, but its backoff resets as soon as it is active: it \
                 will never give up"
            ),
            Self::WhileDownIgnored { path } => write!(
                f,
                "`{path}` has `start_on_message()`, so its mailbox queues all messages while it is \
                 down: `while_down` has no effect"
            ),
            Self::ShortStopDeadline { path, deadline, grace } => write!(
                f,
                "`{path}` stops within {deadline:?}, but a child below has a grace of {grace:?}: it is \
                 aborted before"
            ),
            Self::PanicAborts { path } => write!(
                f,
                "`{path}` is compiled with `panic = \"abort\"`: a panic of a child ends the process, and no child is \
                 restarted or stopped; write `panic = \"unwind\"` in the profile"
            ),
            Self::BusyRestarts { path } => write!(
                f,
                "`{path}` is restarted without a delay and without a limit, so a failure that comes back \
                 at once keeps a processor busy; set a `backoff`, or limit its restarts with \
                 `own_restarts(12, Duration::from_secs(300))`"
            ),
            Self::BusySchedule { path, period } => write!(
                f,
                "`{path}` runs every {period:?}, which is below the resolution of timers: its runs follow each \
                 other without a pause and keep a processor busy; write a period of `1ms` or more"
            ),
            Self::EitherDay { path, expression, both } => write!(
                f,
                "`{path}` has the cron expression `{}`, which matches days that match the day of the month or the \
                 day of the week; Vixie cron needs both here, which is `{}`; write the days without a `*`, as in \
                 `1-31/2`, if you mean either one",
                Visible(expression),
                Visible(both)
            ),
            Self::NoRoom { path } => write!(
                f,
                "`{path}` has `max_children(0)`, so it refuses every child; write the number of \
                 children that it may have, or leave it out for no limit"
            ),
            Self::SpentOnce { path } => write!(
                f,
                "`{path}` has a child made by `once`, which fails if `{path}` is restarted; use `worker` \
                 for it, or make `{path}` temporary"
            ),
            Self::UnboundedStop { path } => {
                write!(f, "`{path}` is a worker with `Shutdown::Infinity`: stopping may never end")
            }
        }
    }
}
