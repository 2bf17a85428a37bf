//! Errors of calls to a running tree.

use std::fmt;

use super::build::BuildError;
use crate::exit::ExitReason;
use crate::invisible::Visible;
use crate::lifecycle::Lifecycle;
use crate::path::Path;

/// The reason why a call to a running tree failed.
///
/// `Debug` prints the same text as `Display`.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// A child with this name is running already.
    #[error("`{path}` is already started")]
    AlreadyStarted {
        /// The child.
        path: Path,
    },
    /// A child with this name exists, and is stopped or waiting for a restart.
    #[error("`{path}` already exists and is {state}; use `restart_child`, or `delete_child` first")]
    AlreadyPresent {
        /// The child.
        path: Path,
        /// The state of its lifecycle.
        state: Lifecycle,
    },
    /// The child is running, but the call is for stopped children.
    #[error("`{path}` is running; use `terminate_child` first")]
    Running {
        /// The child.
        path: Path,
    },
    /// The child is waiting for a restart.
    #[error("`{path}` is about to be restarted; use `terminate_child` first, or wait")]
    Restarting {
        /// The child.
        path: Path,
    },
    /// The child doesn't exist.
    #[error("there is no `{}`{}", Visible(.path), RelativeHint(.path))]
    NotFound {
        /// The path that was given.
        path: Path,
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
    /// The call needs a supervisor, but the child is a worker.
    #[error("`{path}` is not a supervisor")]
    NotASupervisor {
        /// The child.
        path: Path,
    },
    /// The spec of the new child is invalid.
    #[error(transparent)]
    InvalidSpec(#[from] BuildError),
    /// The child failed before it was active.
    #[error("`{path}` failed to start: {}", Visible(.reason))]
    ActivationFailed {
        /// The child.
        path: Path,
        /// The reason of its exit.
        reason: ExitReason,
    },
    /// The child was stopped before it was active.
    #[error("`{path}` was stopped before it was up")]
    Stopped {
        /// The child.
        path: Path,
    },
}

/// A hint for a path that repeats its first names: the caller passed a full path to a handle, which
/// takes paths relative to its supervisor.
struct RelativeHint<'a>(&'a Path);

impl fmt::Display for RelativeHint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.0.as_str();
        let above = path.match_indices('/').map(|(at, _)| path.split_at(at));
        let mut given = above.rev().filter_map(|(above, rest)| {
            let below = rest[1..].strip_prefix(above)?.strip_prefix('/')?;
            Some((above, below))
        });
        match given.next() {
            Some((above, below)) => {
                let (above, below) = (Visible(above), Visible(below));
                write!(f, "; a handle to `{above}` takes paths below it: write `{below}`")
            }
            None => Ok(()),
        }
    }
}
