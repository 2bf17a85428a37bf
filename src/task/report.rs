//! What a [`Task`](super::Task) shares with the child that runs it, and how the child reports the outcome.
//!
//! # Invariants
//!
//! 1. A failure of a linked task is returned by its `Task`, or fails the child that it is linked to, or both
//!    if no code has awaited the `Task` by then. The child is failed once.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::child::Context;
use crate::child::task::log_failure;
use crate::error::ControlError;
use crate::exit::{ExitError, ExitReason};
use crate::invisible::Visible;
use crate::panic::{PanicMessage, catch_panic};
use crate::path::Path;

pub(super) type TaskResult<T> = Result<T, TaskError>;

/// See the [module](self).
#[derive(Default)]
pub(super) struct TaskShared {
    abort: CancellationToken,
    finished: AtomicBool,
    awaited: AtomicBool,
    link: Option<Link>,
}

/// The child that a task is linked to.
struct Link {
    ctx: Context,
    failed: AtomicBool,
}

impl TaskShared {
    pub(super) fn new(linked_to: Option<&Context>) -> Self {
        let link = linked_to.map(|ctx| Link { ctx: ctx.clone(), failed: AtomicBool::new(false) });
        Self { link, ..Self::default() }
    }

    /// Returns the token that aborts the task.
    pub(super) fn token(&self) -> &CancellationToken {
        &self.abort
    }

    pub(super) fn abort(&self) {
        // A waker of the user's may panic.
        catch_panic(|| self.abort.cancel());
    }

    pub(super) fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    /// Notes that the `Task` was polled.
    pub(super) fn mark_awaited(&self) {
        self.awaited.store(true, Ordering::Release);
    }

    pub(super) fn is_linked(&self) -> bool {
        self.link.is_some()
    }

    /// Fails the child that the task is linked to, if any. Only the first call does.
    pub(super) fn fail_linked(&self, reason: ExitReason) {
        let Some(link) = &self.link else { return };
        if !link.failed.swap(true, Ordering::AcqRel) {
            let incarnation = &link.ctx.incarnation;
            if let Err(error) = incarnation.fail(ExitError::from_reason(reason)) {
                log_failure(incarnation, error);
            }
        }
    }
}

/// Reports the outcome of a task. Dropped without one, it reports that the task was stopped.
pub(super) struct TaskReport<T> {
    /// `None` once the outcome was reported.
    sender: Option<oneshot::Sender<TaskResult<T>>>,
    shared: Arc<TaskShared>,
}

impl<T> TaskReport<T> {
    pub(super) fn new(shared: &Arc<TaskShared>) -> (Self, oneshot::Receiver<TaskResult<T>>) {
        let (sender, outcome) = oneshot::channel();
        (Self { sender: Some(sender), shared: Arc::clone(shared) }, outcome)
    }

    /// Returns the token that aborts the task.
    pub(super) fn token(&self) -> CancellationToken {
        self.shared.token().clone()
    }

    /// Returns whether code has awaited the `Task` and gets the outcome.
    pub(super) fn deliver(&mut self, outcome: TaskResult<T>) -> bool {
        let Some(sender) = self.sender.take() else { return false };
        self.shared.finished.store(true, Ordering::Release);
        let awaited = self.shared.awaited.load(Ordering::Acquire);
        // A waker of the user's may panic.
        let unsent = catch_panic(|| sender.send(outcome).err()).flatten();
        awaited && unsent.is_none()
    }

    /// Delivers the panic of the task `path`, and returns the exit of its child.
    pub(super) fn panicked(&mut self, path: Path, panic: PanicMessage) -> ExitError {
        let reason = ExitReason::Panicked(panic.clone());
        let panic = match self.deliver(Err(TaskError::Failed { path, reason: reason.clone() })) {
            true => panic.returned(),
            false => {
                self.shared.fail_linked(reason);
                panic
            }
        };
        ExitError::from_reason(ExitReason::Panicked(panic))
    }
}

impl<T> Drop for TaskReport<T> {
    fn drop(&mut self) {
        self.shared.finished.store(true, Ordering::Release);
        let sender = self.sender.take();
        catch_panic(|| drop(sender));
    }
}

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
