//! The task of one incarnation: runs the child, and reports its exit exactly once.
//!
//! The task reports from `poll`, or at the latest from `Drop`: a child that returns, fails, panics,
//! is aborted, loses its runtime or panics while it is dropped is always reported. So no second task
//! watches the first one.
//!
//! A child with helpers also ends with the first failure of one of them, and its exit is reported once the
//! last of them has ended.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use tracing::field;

use super::cell::StopLevel;
use super::helpers::Helpers;
use super::incarnation::Incarnation;
use super::polls::watched;
use crate::exit::{Exit, ExitError, ExitReason};
use crate::panic::{PanicMessage, RecordedPanic, collect, panic_message};
use crate::subscriber::{error, warn};

/// The boxed future of one incarnation.
pub(crate) type ExitFuture = Pin<Box<dyn Future<Output = Exit> + Send>>;

/// See the [module](self). `None` once the exit was reported.
///
/// The child's future is boxed, so that the task itself fits into the smallest that tokio allocates.
// perf: budgets row "bytes per idle child"
pub(crate) struct ChildTask(Option<Alive>);

struct Alive {
    incarnation: Arc<Incarnation>,
    future: ExitFuture,
}

impl ChildTask {
    pub(super) fn new(incarnation: Arc<Incarnation>, future: ExitFuture) -> Self {
        Self(Some(Alive { incarnation, future }))
    }

    /// Drops the child, and then reports its exit: the next incarnation may need what it holds.
    fn end(&mut self, exit: Exit) {
        let Some(Alive { incarnation, future }) = self.0.take() else { return };
        let mut exit = log_panics(&incarnation, || drop_after(exit, || drop(future)));
        let helpers = incarnation.close_helpers();
        if let Some(failure) = helpers.as_ref().and_then(|helpers| helpers.close()) {
            match exit {
                Ok(()) => exit = Err(failure),
                Err(_) => log_failure(&incarnation, failure),
            }
        }
        let reason = reason_of(&incarnation, exit);
        // What depends on the incarnation is gone when its exit is known.
        incarnation.cancel_contexts();
        match helpers {
            Some(helpers) => helpers.finish(move || incarnation.report_exit(reason)),
            None => incarnation.report_exit(reason),
        }
    }
}

impl Future for ChildTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        let Some(Alive { incarnation, future }) = &mut self.0 else { return Poll::Ready(()) };
        let poll = || watched(incarnation, || catch(|| future.as_mut().poll(cx)));
        let mut polled = log_panics(incarnation, poll);
        if let Some(helpers) = incarnation.helpers() {
            polled = poll_beside(future, polled, &helpers, cx);
        }
        let Poll::Ready(exit) = polled else { return Poll::Pending };
        self.end(exit);
        Poll::Ready(())
    }
}

/// Polls what runs beside a child that was polled.
fn poll_beside(
    future: &mut ExitFuture,
    polled: Poll<Exit>,
    helpers: &Helpers,
    cx: &mut TaskContext<'_>,
) -> Poll<Exit> {
    let mut polled = polled;
    // A child that has panicked stops nothing in order any more.
    if let Poll::Ready(exit) = &polled
        && !exit.as_ref().is_err_and(ExitError::is_panic)
        && let Some(stop) = helpers.stop_own()
    {
        let exit = std::mem::replace(&mut polled, Poll::Pending);
        let Poll::Ready(exit) = exit else { return Poll::Pending };
        *future = Box::pin(async move {
            stop.await;
            exit
        });
        polled = future.as_mut().poll(cx);
    }
    match polled {
        Poll::Ready(exit) => Poll::Ready(exit),
        Poll::Pending => helpers.poll_failure(cx).map(Err),
    }
}

impl Drop for ChildTask {
    fn drop(&mut self) {
        self.end(Err(ExitError::from_reason(ExitReason::Aborted)));
    }
}

/// Polls code of the user's. A panic is an exit.
pub(super) fn catch(poll: impl FnOnce() -> Poll<Exit>) -> Poll<Exit> {
    let polled = catch_unwind(AssertUnwindSafe(poll));
    polled.unwrap_or_else(|payload| Poll::Ready(Err(panicked(panic_message(payload)))))
}

/// Returns the reason of an exit, or `None` if the child declines to start.
///
/// Only the supervisor's own stop signal makes a clean end a shutdown. An error that looks like a
/// cancellation is a failure.
fn reason_of(incarnation: &Incarnation, exit: Exit) -> Option<ExitReason> {
    match exit {
        Ok(()) if incarnation.cell.level() > StopLevel::None => Some(ExitReason::Shutdown),
        Ok(()) => Some(ExitReason::Normal),
        Err(error) if error.is_ignore() => None,
        Err(error) => Some(error.into_reason()),
    }
}

/// Drops the rest of a child. A panic in that is added to the exit.
pub(super) fn drop_after(exit: Exit, rest: impl FnOnce()) -> Exit {
    let Err(payload) = catch_unwind(AssertUnwindSafe(rest)) else { return exit };
    let second = panic_message(payload);
    let mut location = None;
    let first = match exit {
        Ok(()) => None,
        Err(error) if error.is_ignore() => None,
        Err(error) => match error.into_reason() {
            ExitReason::Normal | ExitReason::Shutdown | ExitReason::Aborted => None,
            ExitReason::Panicked(first) => {
                location = first.location().map(str::to_owned);
                Some(first.message().to_owned())
            }
            reason => Some(reason.to_string()),
        },
    };
    Err(panicked(match first {
        Some(first) => {
            let message = format!("{first}; then, while dropped: {second}");
            PanicMessage::new(&message, location.as_deref())
        }
        None => second,
    }))
}

pub(super) fn panicked(panic: PanicMessage) -> ExitError {
    ExitError::from_reason(ExitReason::Panicked(panic))
}

/// Calls code of the child's, and logs its panics if the panic hook is installed.
pub(crate) fn log_panics<T>(incarnation: &Incarnation, inside: impl FnOnce() -> T) -> T {
    let (value, panics) = collect(inside);
    for RecordedPanic { panic, backtrace } in panics {
        let (child, incarnation) = (incarnation.path(), incarnation.number);
        let (location, message) = (panic.location(), panic.message());
        let backtrace = backtrace.map(field::display);
        error!(
            target: "verger::panic",
            %child, incarnation, location, panic = message, backtrace, "panicked"
        );
    }
    value
}

/// Logs the failure of a helper that isn't the exit of its child.
pub(super) fn log_failure(incarnation: &Incarnation, error: ExitError) {
    let (child, incarnation) = (incarnation.path(), incarnation.number);
    let reason = error.into_reason();
    if reason.is_clean() {
        return;
    }
    let cause = reason.to_string();
    warn!(
        target: "verger::lifecycle", %child, incarnation, cause, "a helper has failed"
    );
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::ChildTask;

    #[test]
    fn a_child_task_takes_three_words() {
        assert_eq!(size_of::<ChildTask>(), 24);
    }
}
