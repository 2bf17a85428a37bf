//! Errors of calls to a running tree.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::build::BuildError;
use crate::exit::ExitReason;
use crate::human_duration::HumanDuration;
use crate::invisible::Visible;
use crate::lifecycle::Lifecycle;
use crate::path::Path;
use crate::suggest;

/// The reason why a call to a running tree failed.
///
/// `Debug` prints the same text as `Display`.
///
/// ```
/// use verger::{ControlError, SupervisorHandle};
///
/// /// Starts a child that may be stopped, starting or active. One that an operator holds stays down.
/// async fn ensure_started(app: &SupervisorHandle, path: &str) -> Result<(), ControlError> {
///     match app.resume(path).await {
///         Ok(_) | Err(ControlError::Withheld { .. }) => Ok(()),
///         Err(error) => Err(error),
///     }
/// }
/// # drop(ensure_started);
/// ```
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// A child with this name exists already.
    #[error(
        "there is already a child `{path}`, which {} running; use `replace_child` to put the new one in its \
         place, or `remove` first",
        if *.running { "is" } else { "isn't" }
    )]
    NameTaken {
        /// The child.
        path: Path,
        /// Whether it has a task: it is active, starting or stopping.
        running: bool,
    },
    /// The path names the root of the tree, which no supervisor restarts or stops.
    #[error("`{path}` is the root of the tree; use `stop`")]
    Root {
        /// The root.
        path: Path,
    },
    /// The child can run once, and has. See [`once`](crate::once).
    #[error(
        "`{path}` is a one-shot child that was started already; use `start_once` to add another one"
    )]
    Spent {
        /// The child.
        path: Path,
    },
    /// The call needs a start order and unique names, which a dynamic supervisor doesn't have.
    #[error(
        "`{path}` is a dynamic supervisor, whose children can have equal names, so `{call}` doesn't know which \
         one is meant; use `stop_child` with the child's own name, and `start_child`"
    )]
    IsDynamic {
        /// The supervisor.
        path: Path,
        /// The call.
        call: &'static str,
    },
    /// The child is running, but [OTP's call](crate::OtpCalls) is for stopped children.
    #[error("`{path}` is running; use `terminate_child` first")]
    Running {
        /// The child.
        path: Path,
    },
    /// The child is waiting for a restart: its own, or that of its group or of a supervisor above it.
    ///
    /// Also the answer of [`try_child`](crate::SupervisorHandle::try_child) about a child that is starting.
    #[error("`{path}` is about to be restarted; wait, or use `stop_child` first")]
    Restarting {
        /// The child.
        path: Path,
    },
    /// The child doesn't exist.
    #[error("there is no `{}`{}{}", Visible(.path), LastExit(.exit), DidYouMean(.similar))]
    NotFound {
        /// The path that was given.
        path: Path,
        /// The paths that may be meant, at most 3, the nearest first.
        ///
        /// These are declared children of the supervisor with a similar name. If there is none, it is those
        /// of the same name below other supervisors that run.
        similar: Vec<Path>,
        /// How the child exited when it was removed, if that was lately. A supervisor remembers the 32 children
        /// that were removed last.
        exit: Option<ExitReason>,
    },
    /// The supervisor of the child isn't running.
    #[error("the supervisor of `{}` is not running; `{nearest}` is", Visible(.path))]
    NotRunning {
        /// The path that was given.
        path: Path,
        /// The nearest running supervisor above it.
        nearest: Path,
    },
    /// The supervisor has ended.
    #[error("`{path}` has ended")]
    Ended {
        /// The supervisor that the handle belongs to.
        path: Path,
    },
    /// The supervisor is shutting down and accepts no more calls.
    #[error("`{path}` is shutting down")]
    ShuttingDown {
        /// The supervisor.
        path: Path,
    },
    /// The call has no effect in the current state of the child.
    #[error("`{path}` is {state}, so `{call}` has nothing to do")]
    InvalidState {
        /// The child.
        path: Path,
        /// The state of its lifecycle.
        state: Lifecycle,
        /// The call.
        call: &'static str,
    },
    /// The child isn't started: its configuration disables it, it has no configuration yet, it waits for its
    /// lease, or a caller [holds](crate::SupervisorHandle::hold) it.
    #[error("`{path}` {}", Withheld(.why, .by.as_deref(), *.lasting))]
    Withheld {
        /// The child.
        path: Path,
        /// Why it isn't started, as in the status.
        why: &'static str,
        /// Who holds it, if the caller has named itself with
        /// [`on_behalf_of`](crate::SupervisorHandle::on_behalf_of).
        by: Option<Arc<str>>,
        /// For how long, at the time of the call.
        lasting: Duration,
    },
    /// The dynamic supervisor has reached its limit of children.
    #[error("`{path}` already has {max} children, which is its limit")]
    MaxChildren {
        /// The supervisor.
        path: Path,
        /// The limit.
        max: usize,
    },
    /// The path is empty or names the supervisor itself, but the call needs a child.
    #[error(
        "`{}` does not name a child; write a name such as `db`, or `ingest/mqtt`",
        Visible(.path)
    )]
    NotAChild {
        /// The path that was given.
        path: String,
    },
    /// The child has already started its own supervisor; see
    /// [`Context::children_with`](crate::Context::children_with).
    #[error(
        "`{path}` already has children of its own; use `children()`, or describe all of them in the first call of \
         `children_with`"
    )]
    HasChildren {
        /// The child.
        path: Path,
    },
    /// The call needs a supervisor, but the child is a worker.
    #[error("`{path}` is not a supervisor")]
    NotASupervisor {
        /// The child.
        path: Path,
    },
    /// The call needs the mailbox of the child, which has none.
    #[error("`{path}` has no mailbox; declare it with `worker_with_mailbox`")]
    NoMailbox {
        /// The child.
        path: Path,
    },
    /// The mailbox of the child is for messages of a different type.
    #[error(
        "the mailbox of `{path}` is for `{actual}`, not `{requested}`; write `address::<{actual}>`"
    )]
    WrongMessageType {
        /// The child.
        path: Path,
        /// The type that the call has asked for.
        requested: &'static str,
        /// The type of the messages that the mailbox is for.
        actual: &'static str,
    },
    /// The spec of the new child is invalid.
    #[error(transparent)]
    InvalidSpec(#[from] BuildError),
    /// The child failed before it was active.
    #[error("`{path}` failed to start: {}; {next}", Visible(.reason))]
    ActivationFailed {
        /// The child.
        path: Path,
        /// The reason of its exit.
        reason: ExitReason,
        /// What follows, so that the caller knows whether to start the child again.
        next: NextStep,
    },
    /// The child was stopped before it was active.
    #[error("`{path}` was stopped before it was up")]
    Stopped {
        /// The child.
        path: Path,
    },
    /// The supervisor of a `TaskSupervisor` or
    /// `PartitionedSupervisor` has never run.
    #[error("`{name}` has not run yet; add its `spec()` to a tree, and start that before")]
    NotStarted {
        /// The name of the supervisor.
        name: String,
    },
    /// The supervisor was resized to no active partitions.
    #[error(
        "`{path}` has 0 active partitions of {partitions}; call `resize` with 1 to {partitions}"
    )]
    NoPartitions {
        /// The supervisor.
        path: Path,
        /// How many partitions are declared.
        partitions: usize,
    },
    /// The supervisor was asked for more active partitions than it has.
    #[error(
        "`{path}` can't be resized to {size}; it has {partitions} partitions, so write 0 to {partitions}"
    )]
    TooManyPartitions {
        /// The supervisor.
        path: Path,
        /// The size that was given.
        size: usize,
        /// How many partitions are declared.
        partitions: usize,
    },
}

impl ControlError {
    /// Returns the path that the call was about: of the child, or of the supervisor that has refused.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::NameTaken { path, .. }
            | Self::Root { path }
            | Self::Spent { path }
            | Self::IsDynamic { path, .. }
            | Self::Running { path }
            | Self::Restarting { path }
            | Self::NotFound { path, .. }
            | Self::NotRunning { path, .. }
            | Self::Ended { path }
            | Self::ShuttingDown { path }
            | Self::InvalidState { path, .. }
            | Self::Withheld { path, .. }
            | Self::MaxChildren { path, .. }
            | Self::HasChildren { path }
            | Self::NotASupervisor { path }
            | Self::NoMailbox { path }
            | Self::WrongMessageType { path, .. }
            | Self::ActivationFailed { path, .. }
            | Self::Stopped { path }
            | Self::NoPartitions { path, .. }
            | Self::TooManyPartitions { path, .. } => Some(path),
            Self::NotAChild { .. } | Self::InvalidSpec(_) | Self::NotStarted { .. } => None,
        }
    }

    /// Returns whether there is no such child, or none any more. The same call can't succeed until there is one.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. } | Self::NotAChild { .. })
    }

    /// Returns whether the same call may succeed later without a change of the program: the child or its supervisor is on its
    /// way up or down, its supervisor is full, or the child is withheld.
    ///
    /// ```
    /// use verger::{ControlError, SupervisorHandle};
    ///
    /// async fn restart(app: &SupervisorHandle, path: &str) -> Result<(), ControlError> {
    ///     match app.restart(path).await {
    ///         Err(error) if error.is_transient() => Ok(()), // The caller tries again.
    ///         result => result.map(drop),
    ///     }
    /// }
    /// # drop(restart);
    /// ```
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Restarting { .. }
                | Self::Running { .. }
                | Self::NotRunning { .. }
                | Self::InvalidState { .. }
                | Self::Withheld { .. }
                | Self::MaxChildren { .. }
                | Self::ActivationFailed { .. }
                | Self::Stopped { .. }
                | Self::NotStarted { .. }
                | Self::NoPartitions { .. }
        )
    }
}

/// What follows a failed start.
///
/// Displayed as a part of a sentence, such as `it is restarted in 200ms`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use verger::error::NextStep;
/// use verger::{ControlError, Exit, Readiness, Supervisor, worker};
///
/// let app = Supervisor::builder("app").build()?.start().await?;
/// let db = worker("db", async |_| -> Exit { Err("connection refused".into()) });
///
/// let error = app.start_child(db.readiness(Readiness::Signal)).await.unwrap_err();
///
/// assert_eq!(
///     error.to_string(),
///     "`app/db` failed to start: activation failed: connection refused; it was removed, and can be \
///      added again",
/// );
/// assert!(matches!(error, ControlError::ActivationFailed { next: NextStep::Removed, .. }));
/// # app.stop("done").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NextStep {
    /// The child was removed. Its name can be used again.
    Removed,
    /// The supervisor restarts the child.
    Restart {
        /// The time until then; zero if the restart was at once.
        after: Duration,
    },
    /// The child stays down until a call starts it.
    StaysDown {
        /// [`Stopped`](Lifecycle::Stopped) or [`Errored`](Lifecycle::Errored);
        /// [`resume`](crate::SupervisorHandle::resume) starts it.
        state: Lifecycle,
    },
    /// The callback [`on_child_failure`](crate::SupervisorBuilder::on_child_failure) is deciding.
    Undecided,
    /// The supervisor ends because of the failure.
    SupervisorEnds,
}

impl fmt::Display for NextStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Removed => f.write_str("it was removed, and can be added again"),
            Self::Restart { after: Duration::ZERO } => f.write_str("it is restarted at once"),
            Self::Restart { after } => write!(f, "it is restarted in {after:?}"),
            Self::StaysDown { state: Lifecycle::Errored } => {
                f.write_str("it stays errored until `resume`")
            }
            Self::StaysDown { state } => write!(f, "it stays {state} until `resume`"),
            Self::Undecided => f.write_str("`on_child_failure` decides what follows"),
            Self::SupervisorEnds => f.write_str("its supervisor ends"),
        }
    }
}

/// The paths that may be meant, as a part of a sentence.
struct DidYouMean<'a>(&'a [Path]);

impl fmt::Display for DidYouMean<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        write!(f, "; did you mean {}?", suggest::list(self.0, "or"))
    }
}

/// How a child that is gone has exited, as a part of a sentence.
struct LastExit<'a>(&'a Option<ExitReason>);

impl fmt::Display for LastExit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(exit) = self.0 else { return Ok(()) };
        write!(f, " any more; its last exit: {}", Visible(exit))
    }
}

/// Why a child isn't started and what to do, as a part of a sentence.
struct Withheld<'a>(&'a str, Option<&'a str>, Duration);

impl fmt::Display for Withheld<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(why, by, lasting) = *self;
        let (is, remedy) = match why {
            "disabled" => ("is disabled", "change its configuration"),
            "held" => ("is held", "call `release`"),
            "standby" => ("is on standby", "it starts when its lease is granted"),
            why => (why, "change its configuration"),
        };
        let rounded = match lasting.as_secs() {
            0 => Duration::from_millis(u64::from(lasting.subsec_millis())),
            secs => Duration::from_secs(secs),
        };
        f.write_str(is)?;
        if let Some(by) = by {
            write!(f, " by {}", Visible(by))?;
        }
        write!(f, " for {}; {remedy}", HumanDuration(rounded))
    }
}
