//! What can go wrong with a tree, one type for each moment: building, starting, running, control.
//!
//! Each variant names the path of the culprit. Texts are lower case and without a full stop, so
//! that they read well after a colon, and say what to write instead where it was the author's
//! doing.

use std::fmt;
use std::time::Duration;

use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::path::{NameProblem, Path};
use crate::policy::{BackoffProblem, Unreachable};

/// Why a tree, or a child that was to be added to one, is not what it could run.
///
/// `Debug` prints the same text as `Display`.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A child or a supervisor has a name that cannot be part of a path.
    #[error("{} a bad name: {problem}", Named(.parent))]
    BadName {
        /// The supervisor, or `the root`.
        parent: String,
        /// What is wrong with the name, and what to write instead.
        problem: NameProblem,
    },
    /// Two children of one supervisor have the same name.
    #[error("`{parent}` has two children named `{name}`; give one of them another name")]
    DuplicateChild {
        /// The supervisor.
        parent: Path,
        /// The name that is used twice.
        name: String,
    },
    /// The restart period is zero, so that no restart would ever be counted.
    #[error(
        "`{path}` allows {max} restarts in a period of zero; write a period such as \
         `Duration::from_secs(60)`, or `unlimited_restarts()`"
    )]
    ZeroPeriod {
        /// The supervisor.
        path: Path,
        /// The restarts that were to be allowed.
        max: u32,
    },
    /// The limit of a score is not a number from 0 up.
    #[error(
        "`{path}` allows a score of {max}; write a number such as 5.0, or, to allow any number of \
         restarts, no limit"
    )]
    BadScore {
        /// The supervisor or the child.
        path: Path,
        /// What was written.
        max: f64,
    },
    /// A limit was set twice, so that it cannot be told which one is meant.
    #[error("`{path}` has both `{first}` and `{second}`, which set the same; remove one of them")]
    SetTwice {
        /// The supervisor or the child.
        path: Path,
        /// What was written first.
        first: String,
        /// What was written then.
        second: String,
    },
    /// A mailbox was given to two children, by a spec that is used twice.
    #[error("`{path}` has the mailbox of `{owner}`; make a mailbox for each child")]
    MailboxTaken {
        /// The child.
        path: Path,
        /// Whose mailbox it is.
        owner: Path,
    },
    /// A child is to be started by a message, and there is nowhere to send it.
    #[error(
        "`{path}` is to start on a message, and has no mailbox; make it with \
         `worker_with_mailbox` or `child_with_mailbox`"
    )]
    NoMailbox {
        /// The child.
        path: Path,
    },
    /// A child could fail and be restarted without end, at once and each time as if for the first
    /// time, because nothing counts its failures together.
    #[error(
        "the backoff of `{path}` begins again as soon as it is active, and nothing limits its \
         restarts in a time: if it fails at once each time, it is restarted without end, whatever \
         other limit there is; write a `reset_after` above zero, or limit its restarts with \
         `restarts(5, Duration::from_secs(60))`"
    )]
    EndlessRestarts {
        /// The child, or the supervisor whose default it is.
        path: Path,
    },
    /// A fallback requires a sibling, but takes the place of a child that has its requirements.
    #[error(
        "the fallback of `{path}` requires `{requirement}`, but a fallback starts when what \
         `{path}` requires is there; write `requires({requirement:?})` on that instead"
    )]
    FallbackRequires {
        /// The child.
        path: Path,
        /// What its fallback requires.
        requirement: String,
    },
    /// A child waits for a sibling that there is not.
    #[error("`{path}` requires `{requirement}`, but `{parent}` has no such child; it has {known}")]
    UnknownRequirement {
        /// The child.
        path: Path,
        /// The supervisor.
        parent: Path,
        /// What the child requires.
        requirement: String,
        /// The names there are.
        known: String,
    },
    /// A child waits for one that is declared after it.
    #[error(
        "`{path}` requires `{requirement}`, which is declared after it and would be started \
         later; declare `{requirement}` first, or start the children with `Start::Concurrent`"
    )]
    LaterRequirement {
        /// The child.
        path: Path,
        /// What the child requires.
        requirement: String,
    },
    /// Children wait for each other.
    #[error("the children of `{parent}` require each other in a circle: {circle}; remove one link")]
    RequirementCycle {
        /// The supervisor.
        parent: Path,
        /// The children, from one back to itself.
        circle: String,
    },
    /// A child is both significant and permanent, or restarted after every end for another reason,
    /// so that its end would end nothing.
    #[error(
        "`{path}` is significant, but restarted after every end, as a permanent child is; make \
         it transient or temporary"
    )]
    SignificantPermanent {
        /// The child.
        path: Path,
    },
    /// A child is significant under a supervisor that does not look at that.
    #[error(
        "`{path}` is significant, but `{parent}` has no auto-shutdown; add \
         `auto_shutdown(AutoShutdown::AnySignificant)` to it, or remove `significant()`"
    )]
    SignificantWithoutAutoShutdown {
        /// The child.
        path: Path,
        /// The supervisor.
        parent: Path,
    },
    /// A child of a dynamic supervisor asks for what only an ordered one has.
    #[error("`{path}` has `{option}`, which a dynamic supervisor does not have; {remedy}")]
    NotForDynamic {
        /// The child.
        path: Path,
        /// What it asks for.
        option: &'static str,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A backoff cannot work.
    #[error("the backoff of `{path}` cannot work: {problem}")]
    BadBackoff {
        /// The child, or the supervisor whose default it is.
        path: Path,
        /// What is wrong, and what to write instead.
        problem: BackoffProblem,
    },
    /// A health check takes a child to be unhealthy that has failed none.
    #[error(
        "the health check of `{path}` takes it to be unhealthy after 0 failures; write \
         `failures(1)` or more"
    )]
    NoFailures {
        /// The child.
        path: Path,
    },
    /// A limit of time is zero.
    #[error("the {option} of `{path}` is zero; write a duration such as `{example:?}`")]
    ZeroDuration {
        /// The child or the supervisor.
        path: Path,
        /// Which one.
        option: &'static str,
        /// One that would do.
        example: Duration,
    },
}

/// The children that could have been meant, at most a line of them; there are `count` in all.
pub(crate) fn known<'a>(names: impl Iterator<Item = &'a str>, count: usize) -> String {
    const MOST: usize = 10;
    let names: Vec<_> = names.take(MOST).map(|name| format!("`{name}`")).collect();
    match (names.join(", "), count.saturating_sub(MOST)) {
        (names, _) if names.is_empty() => "no other children".to_owned(),
        (names, 0) => names,
        (names, more) => format!("{names} and {more} more"),
    }
}

/// Why a tree did not come up.
///
/// `Debug` prints the same text as `Display`.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A child could not be started for the first time, and its supervisor does not retry that.
    #[error("`{path}` could not be started: {reason}")]
    ChildFailed {
        /// The child.
        path: Path,
        /// How it ended.
        reason: ExitReason,
    },
    /// The tree ended before all its children were up.
    #[error("the tree ended before it was up: {0}")]
    Ended(Box<RunError>),
    /// The tree was asked to stop before all its children were up.
    #[error("`{path}` was stopped before it was up")]
    Stopped {
        /// The root.
        path: Path,
    },
}

/// Why a running tree ended otherwise than well.
///
/// `Debug` prints the same text as `Display`, the whole chain down to the first cause, so that
/// `async fn main() -> Result<(), RunError>` is enough.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The tree could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The tree did not come up.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A child failed more often than its supervisor allows, or its end was to be a failure of its
    /// supervisor ([`OnExit::FailSupervisor`](crate::OnExit::FailSupervisor)).
    #[error("`{path}` gave up on `{child}`: {reason}")]
    GaveUp {
        /// The supervisor.
        path: Path,
        /// The child that failed last.
        child: Path,
        /// How it ended, the last time.
        reason: ExitReason,
    },
    /// A child failed too often, and the program is to end with this code: see
    /// [`OnExhausted::Exit`](crate::OnExhausted::Exit).
    #[error("`{path}` ended the program with code {code} because of `{child}`: {reason}")]
    Exited {
        /// The root.
        path: Path,
        /// The exit code; not 0.
        code: u8,
        /// The child that failed last.
        child: Path,
        /// How it ended, the last time.
        reason: ExitReason,
    },
    /// Children were aborted and are still there: they block their thread.
    #[error("stopped, but still running after they were aborted: {}", Paths(.children))]
    Leaked {
        /// The children.
        children: Vec<Path>,
    },
    /// The supervisor was aborted, or its runtime has ended.
    #[error("`{path}` was aborted")]
    Aborted {
        /// The supervisor.
        path: Path,
    },
}

impl RunError {
    /// The exit code of a program that ends with this: 2 if the tree could not be built, 3 if
    /// something leaked, the code of an [`Exited`](Self::Exited), otherwise 1.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Build(_) => 2,
            Self::Leaked { .. } => 3,
            Self::Exited { code, .. } => *code,
            Self::Start(_) | Self::GaveUp { .. } | Self::Aborted { .. } => 1,
        }
    }
}

/// What `unwrap` and `main` show is what was written to be read.
macro_rules! debug_as_display {
    ($($error:ty),*) => {$(
        impl fmt::Debug for $error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}

debug_as_display!(BuildError, StartError, RunError, ControlError);

/// Who has a bad name: the root, or a child of this supervisor.
struct Named<'a>(&'a str);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "the root" => f.write_str("the root has"),
            parent => write!(f, "`{parent}` has a child with"),
        }
    }
}

/// A path that begins with the same names twice was given in full to a handle, which takes only
/// what is below its own supervisor.
struct Twice<'a>(&'a Path);

impl fmt::Display for Twice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.0.as_str();
        let above = path.match_indices('/').map(|(at, _)| path.split_at(at));
        let mut given = above.rev().filter_map(|(above, rest)| {
            let below = rest[1..].strip_prefix(above)?.strip_prefix('/')?;
            Some((above, below))
        });
        match given.next() {
            Some((above, below)) => {
                write!(f, "; a handle to `{above}` takes paths below it: write `{below}`")
            }
            None => Ok(()),
        }
    }
}

struct Paths<'a>(&'a [Path]);

impl fmt::Display for Paths<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, path) in self.0.iter().enumerate() {
            write!(f, "{}`{path}`", if index == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// Why a call to a running tree was refused, or did not come to its end.
///
/// `Debug` prints the same text as `Display`.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// A child with this name runs already.
    #[error("`{path}` is already started")]
    AlreadyStarted {
        /// The child.
        path: Path,
    },
    /// A child with this name is there, stopped or about to be restarted.
    #[error("`{path}` is already there, {state}; use `restart_child`, or `delete_child` first")]
    AlreadyPresent {
        /// The child.
        path: Path,
        /// Where it is in its lifecycle.
        state: Lifecycle,
    },
    /// The child runs, and the call is for a stopped one.
    #[error("`{path}` is running; use `terminate_child` first")]
    Running {
        /// The child.
        path: Path,
    },
    /// The child is about to be started again.
    #[error("`{path}` is about to be restarted; use `terminate_child` first, or wait")]
    Restarting {
        /// The child.
        path: Path,
    },
    /// There is no such child.
    #[error("there is no `{path}`{}", Twice(.path))]
    NotFound {
        /// What was looked for.
        path: Path,
    },
    /// The supervisor of that child does not run just now.
    #[error("the supervisor of `{path}` is not running; `{nearest}` is")]
    NotRunning {
        /// What was looked for.
        path: Path,
        /// The nearest supervisor above it that runs.
        nearest: Path,
    },
    /// The whole tree has ended.
    #[error("`{path}` has ended")]
    Ended {
        /// The supervisor that the handle belongs to.
        path: Path,
    },
    /// The supervisor is stopping and takes no more requests.
    #[error("`{path}` is shutting down")]
    ShuttingDown {
        /// The supervisor.
        path: Path,
    },
    /// The call does not fit the state of the child.
    #[error("`{path}` is {state}, so `{call}` has nothing to do")]
    InvalidState {
        /// The child.
        path: Path,
        /// Where it is in its lifecycle.
        state: Lifecycle,
        /// The call.
        call: &'static str,
    },
    /// The dynamic supervisor has as many children as it may have.
    #[error("`{path}` has {max} children, as many as it may have")]
    MaxChildren {
        /// The supervisor.
        path: Path,
        /// The limit.
        max: usize,
    },
    /// The path names the node itself or is empty, where a child is needed.
    #[error("`{path}` does not name a child; write a name such as `db`, or `ingest/mqtt`")]
    NotAChild {
        /// What was given.
        path: String,
    },
    /// The call is for supervisors, and that child is none.
    #[error("`{path}` is not a supervisor")]
    NotASupervisor {
        /// The child.
        path: Path,
    },
    /// The child to be added cannot work.
    #[error(transparent)]
    InvalidSpec(#[from] BuildError),
    /// The child failed before it was up.
    #[error("`{path}` failed to start: {reason}")]
    ActivationFailed {
        /// The child.
        path: Path,
        /// How it ended.
        reason: ExitReason,
    },
    /// The child was stopped before it was up.
    #[error("`{path}` was stopped before it was up")]
    Stopped {
        /// The child.
        path: Path,
    },
}

/// A setting that is legal, and probably not what its author meant.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BuildWarning {
    /// The restarts are so slow that the limit on them can never be reached.
    UnreachableLimit {
        /// The supervisor or the child.
        path: Path,
        /// The restarts it allows.
        max: u32,
        /// In this time.
        period: Duration,
        /// How many there can be at most.
        most: u64,
    },
    /// The restarts are so slow that the score which they add up to can never exceed its limit.
    UnreachableScore {
        /// The supervisor or the child.
        path: Path,
        /// The limit of the score.
        max: f64,
        /// The time in which it is halved.
        half_life: Duration,
        /// What it can come to at most.
        most: f64,
    },
    /// No two restarts of the child are ever in a row, because its backoff begins again as soon as
    /// it is active.
    NeverInARow {
        /// The child.
        path: Path,
        /// The limit on restarts in a row, as it was written.
        limit: String,
    },
    /// A child may take for ever to stop, and so may the tree.
    UnboundedStop {
        /// The child.
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
                 with its backoff it comes to {most:.2} at most: it will never give up"
            ),
            Self::NeverInARow { path, limit } => write!(
                f,
                "`{path}` has `{limit}`, but its backoff begins again as soon as it is active: it \
                 will never give up"
            ),
            Self::UnboundedStop { path } => {
                write!(f, "`{path}` is a worker with `Shutdown::Infinity`: stopping may never end")
            }
        }
    }
}
