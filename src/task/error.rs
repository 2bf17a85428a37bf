//! Why a task has no value.

use std::fmt;
use std::time::Duration;

use crate::error::ControlError;
use crate::exit::ExitReason;
use crate::invisible::Visible;
use crate::path::Path;

/// The reason why a [`Task`](super::Task) has no value.
///
/// `Debug` prints the same text as `Display`.
///
/// The example of [`Task`](super::Task) matches three kinds.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// The task has panicked.
    #[error("`{path}` {}", Visible(.reason))]
    Failed {
        /// The task.
        path: Path,
        /// The reason of its exit, as its supervisor records it.
        reason: ExitReason,
    },
    /// The task was aborted or terminated, or its supervisor has stopped.
    #[error("`{path}` was stopped before it had a value")]
    Stopped {
        /// The task.
        path: Path,
    },
    /// The task took longer than its timeout, and was aborted.
    #[error("`{path}` was aborted after its timeout of {after:?}")]
    TimedOut {
        /// The task.
        path: Path,
        /// The timeout.
        after: Duration,
    },
    /// The supervisor of the tasks has refused the task, or doesn't run.
    #[error("a task was refused: {0}")]
    Refused(#[from] ControlError),
}

impl fmt::Debug for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
