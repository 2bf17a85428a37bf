//! The value of a task, for the code that has spawned it, and the start of its child, which is awaited later.
//!
//! # Invariants
//!
//! 1. A start is about one incarnation of the supervisor. The next one may have another child of that name.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::sync::oneshot;
use tokio::task::coop::consume_budget;

use super::place::Place;
use super::report::{TaskError, TaskResult, TaskShared};
use crate::child::ChildSpec;
use crate::core::ChildRequest;
use crate::error::ControlError;
use crate::exit::ExitReason;
use crate::handle::control::admit;
use crate::handle::{ChildRef, SupervisorHandle};
use crate::path::Path;
use crate::runtime::SupervisorShared;
use crate::runtime::request::{Addition, HandleRequest, NewChild, Started};

/// A task that runs under a [`TaskSupervisor`](super::TaskSupervisor), and whose value can be awaited.
///
/// Await it for the value, or for the reason why there is none. Dropping it detaches the task, which runs on and
/// is supervised and listed as before; see [`abort_on_drop`](Self::abort_on_drop).
///
/// ```
/// use std::future::pending;
///
/// use verger::Supervisor;
/// use verger::task::{TaskError, TaskSupervisor};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tasks = TaskSupervisor::new("tasks").max_children(1);
/// let error = tasks.spawn("sum", async { 1 + 2 }).await.unwrap_err();
/// assert!(matches!(error, TaskError::Refused(_)), "the tree doesn't run yet");
///
/// let app = Supervisor::builder("app").child(tasks.spec()).build()?.start().await?;
/// assert_eq!(tasks.spawn("sum", async { 1 + 2 }).await?, 3);
///
/// let error = tasks.spawn("panics", async { panic!("overflow") }).await.unwrap_err();
/// assert!(matches!(error, TaskError::Failed { .. }));
///
/// let task = tasks.spawn("waits", pending::<()>());
/// task.abort();
/// assert!(matches!(task.await, Err(TaskError::Stopped { .. })));
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
///
/// # Cancel safety
///
/// Awaiting `&mut task` is cancel safe. A future that owns the `Task`, such as
/// `tokio::time::timeout(limit, task)`, detaches the task when it is dropped.
///
/// # Panics
///
/// Awaiting `&mut task` again after it has returned panics, as for tokio's `JoinHandle`.
pub struct Task<T> {
    state: TaskState<T>,
    shared: Arc<TaskShared>,
    abort_on_drop: bool,
}

pub(super) enum TaskState<T> {
    Requested(Requested<T>),
    /// The supervisor of the tasks doesn't run.
    NotRunning(Pin<Box<dyn Future<Output = ControlError> + Send + Sync>>),
    Refused(ControlError),
    /// The child that the task is linked to has ended before.
    Unlinked(Path),
    Over,
}

pub(super) struct Requested<T> {
    pub(super) outcome: oneshot::Receiver<TaskResult<T>>,
    pub(super) start: PendingStart,
    pub(super) place: Arc<Place>,
    pub(super) name: String,
}

impl<T> Task<T> {
    pub(super) fn new(state: TaskState<T>, shared: Arc<TaskShared>) -> Self {
        Self { state, shared, abort_on_drop: false }
    }

    /// Aborts the task: its future is dropped at the next await point, and its child has then ended normally.
    ///
    /// A closure of [`spawn_blocking`](super::TaskSupervisor::spawn_blocking) that has begun runs on, and its
    /// child with it. Awaiting the task returns [`TaskError::Stopped`], unless it had a value before.
    pub fn abort(&self) {
        self.shared.abort();
    }

    /// Aborts the task when this value is dropped, instead of detaching it.
    #[must_use = "dropping the task aborts it"]
    pub fn abort_on_drop(mut self) -> Self {
        self.abort_on_drop = true;
        self
    }

    /// Returns whether the task has a value, or can't have one any more.
    ///
    /// A task whose start was refused is finished as well.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.shared.is_finished()
    }

    /// Stops the task as its supervisor would, and waits until its child has ended or is reported as leaked.
    ///
    /// The future of [`spawn`](super::TaskSupervisor::spawn) is dropped at once. A task of
    /// [`spawn_with`](super::TaskSupervisor::spawn_with), or a closure, has the grace of its child. A value that
    /// the task has produced by then is returned. This is Elixir's `Task.shutdown`.
    ///
    /// # Errors
    ///
    /// [`TaskError::Stopped`] if there is no value, and every error that awaiting the task returns.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, the task is [aborted](Self::abort), and its value is lost.
    pub async fn shutdown(mut self) -> Result<T, TaskError> {
        self.abort_on_drop = true;
        if let TaskState::Requested(Requested { start, .. }) = &mut self.state {
            poll_fn(|cx| start.poll(cx).map(drop)).await;
            start.terminate().await;
        }
        self.await
    }
}

impl<T> Future for Task<T> {
    type Output = Result<T, TaskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.shared.mark_awaited();
        loop {
            let next = match &mut self.state {
                TaskState::Requested(requested) => match ready!(requested.poll(cx)) {
                    Ok(result) => {
                        self.state = TaskState::Over;
                        return Poll::Ready(result);
                    }
                    Err(next) => next,
                },
                TaskState::NotRunning(why) => TaskState::Refused(ready!(why.as_mut().poll(cx))),
                TaskState::Refused(_) | TaskState::Unlinked(_) | TaskState::Over => {
                    // Nothing was waited for: a loop that spawns tasks would never yield.
                    ready!(pin!(consume_budget()).poll(cx));
                    let state = std::mem::replace(&mut self.state, TaskState::Over);
                    return Poll::Ready(Err(match state {
                        // It was stopped in the moment of its start.
                        TaskState::Refused(ControlError::Stopped { path })
                        | TaskState::Unlinked(path) => TaskError::Stopped { path },
                        TaskState::Refused(error) => TaskError::Refused(error),
                        _ => panic!("a `Task` was awaited after it had returned"),
                    }));
                }
            };
            self.state = next;
        }
    }
}

impl<T> Requested<T> {
    /// Resolves to the result of the task, or to the state that tells why there is none.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<TaskResult<T>, TaskState<T>>> {
        if !self.outcome.is_terminated()
            && let Ok(result) = ready!(Pin::new(&mut self.outcome).poll(cx))
        {
            return Poll::Ready(Ok(result));
        }
        Poll::Ready(Err(match ready!(self.start.poll(cx)) {
            Some(Ok(child)) => {
                return Poll::Ready(Ok(Err(TaskError::Stopped { path: child.path().clone() })));
            }
            Some(Err(error)) => TaskState::Refused(error.clone()),
            None => why_not_running(Arc::clone(&self.place), self.name.clone()),
        }))
    }

    /// Returns the failure that no code has read.
    fn unread_failure(&mut self) -> Option<ExitReason> {
        self.outcome.close();
        match self.outcome.try_recv() {
            Ok(Err(TaskError::Failed { reason, .. })) => Some(reason),
            _ => None,
        }
    }
}

pub(super) fn why_not_running<T>(place: Arc<Place>, name: String) -> TaskState<T> {
    TaskState::NotRunning(Box::pin(async move { place.not_running(Some(&name)).await }))
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        if self.abort_on_drop {
            self.shared.abort();
        }
        if self.shared.is_linked()
            && let TaskState::Requested(requested) = &mut self.state
            && let Some(reason) = requested.unread_failure()
        {
            self.shared.fail_linked(reason);
        }
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("finished", &self.is_finished()).finish_non_exhaustive()
    }
}

/// A start whose answer the supervisor has yet to give.
pub(crate) struct PendingStart {
    supervisor: Arc<SupervisorShared>,
    answered: oneshot::Receiver<Result<Started, ControlError>>,
    /// The answer, once there is one.
    answer: Option<StartAnswer>,
}

/// `None`: the supervisor has ended before it took the request.
pub(crate) type StartAnswer = Option<Result<ChildRef, ControlError>>;

impl SupervisorHandle {
    /// Requests the start of a child, which the running incarnation of this supervisor answers.
    pub(crate) fn request_start(&self, spec: ChildSpec) -> Result<PendingStart, ControlError> {
        let supervisor = self.current();
        let spec = admit(&supervisor, spec)?;
        let (answer, answered) = oneshot::channel();
        let new = NewChild { spec, addition: Addition::Start, note: None, answer };
        // A request that an ended supervisor returns is dropped here, which drops its answer.
        drop(supervisor.inbox.push_request(HandleRequest::Start(new)));
        Ok(PendingStart { supervisor, answered, answer: None })
    }
}

impl PendingStart {
    /// Resolves to the answer.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<&StartAnswer> {
        if self.answer.is_none() {
            let answer = ready!(Pin::new(&mut self.answered).poll(cx)).ok();
            let child = |started| ChildRef::new(&self.supervisor, started);
            self.answer = Some(answer.map(|it| it.map(child)));
        }
        Poll::Ready(self.answer.get_or_insert_default())
    }

    /// Stops the child that was started, and waits until it has ended.
    pub(crate) async fn terminate(&self) {
        let Some(Some(Ok(child))) = &self.answer else { return };
        // The supervisor of its start: the next incarnation may have a child of the same name.
        let (segment, call) = (child.name().to_owned(), "stop_child");
        let request = ChildRequest::Stop;
        let _ = SupervisorHandle::new(Arc::clone(&self.supervisor))
            .call(&self.supervisor, |answer| HandleRequest::Act {
                segment,
                call,
                note: None,
                request,
                answer,
            })
            .await;
    }
}
