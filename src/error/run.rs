//! Errors of trees that start or run.

use std::fmt;

use super::build::BuildError;
use crate::exit::ExitReason;
use crate::invisible::Visible;
use crate::path::Path;

/// The reason why a tree didn't start.
///
/// `Debug` prints the same text as `Display`.
///
/// ```
/// use verger::policy::FirstStart;
/// use verger::{Context, Exit, Readiness, StartError, Supervisor, worker};
///
/// async fn refused(_ctx: Context) -> Exit {
///     Err("connection refused".into())
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = worker("db", refused).readiness(Readiness::Signal);
/// let app = Supervisor::builder("app").child(db).first_start(FirstStart::Fail).build()?;
///
/// match app.start().await {
///     Err(StartError::ChildFailed { path, reason, .. }) => println!("{path}: {reason}"),
///     other => panic!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A child failed its first start under [`FirstStart::Fail`](crate::policy::FirstStart::Fail).
    #[error("`{path}` could not be started: {}{}", Visible(.reason), Others(.others))]
    ChildFailed {
        /// The child.
        path: Path,
        /// The reason of its exit.
        reason: ExitReason,
        /// The children that failed as well before all were stopped, each with the reason of its exit.
        others: Vec<(Path, ExitReason)>,
    },
    /// The tree ended before all of its children were active.
    #[error("the tree ended before it was up: {0}")]
    Ended(Box<RunError>),
    /// The tree was stopped before all of its children were active.
    #[error("`{path}` was stopped before it was up")]
    Stopped {
        /// The root.
        path: Path,
    },
}

/// The reason why a tree failed.
///
/// `Debug` prints the same text as `Display`, the whole chain down to the first cause, so that
/// `async fn main() -> Result<(), RunError>` is enough.
///
/// ```
/// use verger::{RunError, Supervisor};
///
/// # async fn run(app: Supervisor) {
/// match app.run().await {
///     Ok(()) => println!("done"),
///     Err(RunError::GaveUp { child, reason, .. }) => eprintln!("{child} keeps failing: {reason}"),
///     Err(error) => eprintln!("{error}"),
/// }
/// # }
/// # drop(run);
/// ```
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The description of the tree is invalid.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The probes or the console of an application can't listen on their address.
    #[error("the {server} can't listen on {address}: {reason}")]
    Listen {
        /// What can't listen: `probes` or `console`.
        server: &'static str,
        /// The address.
        address: String,
        /// The error of the operating system, or why the address is refused, and what to do.
        reason: String,
    },
    /// A value of the memory guard of an application is invalid.
    #[error("{problem}")]
    MemoryGuard {
        /// The value, and what to write instead.
        problem: String,
    },
    /// The configuration is invalid, or children refuse it.
    #[cfg(feature = "config")]
    #[error("{problem}")]
    Config {
        /// All mistakes, or the reason of each child.
        problem: String,
    },
    /// The tree didn't start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A supervisor gave up: a child exceeded its restart limit, or its exit fails the supervisor
    /// ([`OnExit::FailSupervisor`](crate::policy::OnExit::FailSupervisor)).
    #[error("`{path}` gave up on `{child}`: {}{}", Visible(.reason), After(.killed, .leaked))]
    GaveUp {
        /// The supervisor.
        path: Path,
        /// The child whose failure was the last one.
        child: Path,
        /// The reason of its last exit.
        reason: ExitReason,
        /// See [`Forced`](Self::Forced).
        killed: Vec<Path>,
        /// See [`Forced`](Self::Forced).
        leaked: Vec<Path>,
    },
    /// A child exceeded its limit under [`OnExhausted::Exit`](crate::policy::OnExhausted::Exit), which
    /// ends the program.
    #[error("`{path}` ended the program with code {code} because of `{child}`: {}{}", Visible(.reason), After(.killed, .leaked))]
    Exited {
        /// The root.
        path: Path,
        /// The exit code; not 0.
        code: u8,
        /// The child whose failure was the last one.
        child: Path,
        /// The reason of its last exit.
        reason: ExitReason,
        /// See [`Forced`](Self::Forced).
        killed: Vec<Path>,
        /// See [`Forced`](Self::Forced).
        leaked: Vec<Path>,
    },
    /// The tree was stopped for a reason that isn't a request, such as a lack of memory: the
    /// [`StopCause`](crate::app::StopCause) has an exit code.
    #[error("`{path}` was stopped: {}{}", Visible(.cause), After(.killed, .leaked))]
    StoppedFor {
        /// The root.
        path: Path,
        /// The cause, such as `memory at 92 % of 512 MiB (cgroup v2)`.
        cause: String,
        /// The exit code of the cause; not 0.
        code: u8,
        /// See [`Forced`](Self::Forced).
        killed: Vec<Path>,
        /// See [`Forced`](Self::Forced).
        leaked: Vec<Path>,
    },
    /// The supervisor stopped, but some children below it had to be forced.
    ///
    /// A child that is aborted at the end of its [grace](crate::Shutdown), or by the last stage of a stop, is killed.
    /// A child that still runs after it was aborted has leaked. Children with
    /// [`BrutalKill`](crate::Shutdown::BrutalKill) or [`Drain`](crate::Shutdown::Drain) are never listed as killed,
    /// and children that were killed in a restart aren't part of a stop.
    #[error("stopped, but {}", ForcedPaths(.killed, .leaked))]
    Forced {
        /// The children that were killed.
        killed: Vec<Path>,
        /// The children that still ran when the supervisor had stopped, because they blocked their threads. At the end of
        /// an application, those that have exited since are listed as killed.
        leaked: Vec<Path>,
    },
    /// The task of the supervisor was aborted, or its runtime shut down.
    #[error("`{path}` was aborted")]
    Aborted {
        /// The supervisor.
        path: Path,
    },
}

impl RunError {
    /// Returns the exit code for a program that ends with this error.
    ///
    /// 2 for an invalid tree or an address that can't be used, 3 for children that had to be forced, the code of
    /// [`Exited`](Self::Exited) and [`StoppedFor`](Self::StoppedFor), and 1 for everything else.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::policy::{FirstStart, OnExhausted};
    /// use verger::{Context, Exit, Readiness, RunError, Supervisor, worker};
    ///
    /// async fn refused(_ctx: Context) -> Exit {
    ///     Err("connection refused".into())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = Supervisor::builder("app").restarts(1, Duration::from_secs(60));
    /// let db = worker("db", refused);
    ///
    /// let gave_up = app.clone().child(db.clone()).build()?.run().await.unwrap_err();
    /// assert!(matches!(gave_up, RunError::GaveUp { .. }));
    /// assert_eq!(gave_up.exit_code(), 1);
    ///
    /// let exit = app.clone().on_exhausted(OnExhausted::Exit(4)).child(db.clone());
    /// let exited = exit.build()?.run().await.unwrap_err();
    /// assert!(matches!(exited, RunError::Exited { .. }));
    /// assert_eq!(exited.exit_code(), 4);
    ///
    /// let fail = app.first_start(FirstStart::Fail).child(db.readiness(Readiness::Signal));
    /// let start = fail.build()?.run().await.unwrap_err();
    /// assert!(matches!(start, RunError::Start(_)));
    /// assert_eq!(start.exit_code(), 1);
    ///
    /// let invalid = Supervisor::builder("a/b").build().unwrap_err();
    /// assert_eq!(RunError::from(invalid).exit_code(), 2);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Build(_) | Self::Listen { .. } | Self::MemoryGuard { .. } => 2,
            #[cfg(feature = "config")]
            Self::Config { .. } => 2,
            Self::Forced { .. } => 3,
            Self::Exited { code, .. } | Self::StoppedFor { code, .. } => *code,
            Self::Start(_) | Self::GaveUp { .. } | Self::Aborted { .. } => 1,
        }
    }
}

/// The children that had to be forced in a stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forced {
    pub(crate) killed: Vec<Path>,
    pub(crate) leaked: Vec<Path>,
}

impl Forced {
    /// # Errors
    ///
    /// [`RunError::Forced`] if a child was.
    pub(crate) fn result(self) -> Result<(), RunError> {
        let Self { killed, leaked } = self;
        match killed.is_empty() && leaked.is_empty() {
            true => Ok(()),
            false => Err(RunError::Forced { killed, leaked }),
        }
    }
}

/// The forced children behind a first cause.
struct After<'a>(&'a [Path], &'a [Path]);

impl fmt::Display for After<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self([], []) => Ok(()),
            Self(killed, leaked) => write!(f, "; {}", ForcedPaths(killed, leaked)),
        }
    }
}

/// The children that were killed, and those that leaked.
struct ForcedPaths<'a>(&'a [Path], &'a [Path]);

impl fmt::Display for ForcedPaths<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(killed, leaked) = self;
        if !killed.is_empty() {
            write!(f, "killed at the end of their grace: {}", Paths(killed))?;
        }
        if !leaked.is_empty() {
            let comma = if killed.is_empty() { "" } else { "; " };
            write!(f, "{comma}still running after they were aborted: {}", Paths(leaked))?;
        }
        Ok(())
    }
}

/// Further children that failed.
struct Others<'a>(&'a [(Path, ExitReason)]);

impl fmt::Display for Others<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (path, reason) in self.0 {
            write!(f, "; `{path}` failed, too: {}", Visible(reason))?;
        }
        Ok(())
    }
}

/// The paths of several children, separated by commas.
struct Paths<'a>(&'a [Path]);

impl fmt::Display for Paths<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, path) in self.0.iter().enumerate() {
            write!(f, "{}`{path}`", if index == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}
