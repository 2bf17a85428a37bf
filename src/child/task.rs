//! The task of one incarnation: runs the child, and reports its exit exactly once.
//!
//! The task reports from `poll`, or at the latest from `Drop`: a child that returns, fails, panics,
//! is aborted, loses its runtime or panics while it is dropped is always reported. So no second task
//! watches the first one.
//!
//! A child with helpers also ends with the first failure of one of them. Its exit is reported once the last
//! of them has ended, and until then that they remain.

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
        let exit = log_panics(&incarnation, || drop_after(exit, || drop(future)));
        let helpers = incarnation.close_helpers();
        let failure = helpers.as_ref().and_then(|helpers| helpers.close());
        let reason = reason_of(&incarnation, with_failure(&incarnation, exit, failure));
        // What depends on the incarnation is gone when its exit is known.
        incarnation.cancel_contexts();
        let Some(helpers) = helpers else { return incarnation.report_exit(reason) };
        let (reporting, remaining) = (Arc::clone(&incarnation), reason.clone());
        if !helpers.finish(move || reporting.report_exit(reason)) {
            incarnation.report_remaining(remaining);
        }
    }
}

impl Future for ChildTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        let Some(Alive { incarnation, future }) = &mut self.0 else { return Poll::Ready(()) };
        // Before the child is polled, so that a helper which fails from then on wakes it.
        incarnation.register_task(cx.waker());
        let poll = || watched(incarnation, || catch(|| future.as_mut().poll(cx)));
        let mut polled = log_panics(incarnation, poll);
        if let Some(helpers) = incarnation.helpers() {
            polled = beside(incarnation, future, polled, &helpers, cx);
        }
        let Poll::Ready(exit) = polled else { return Poll::Pending };
        self.end(exit);
        Poll::Ready(())
    }
}

/// Ends a child that was polled because a helper has failed, and stops its own supervisor before it ends.
fn beside(
    incarnation: &Incarnation,
    future: &mut ExitFuture,
    polled: Poll<Exit>,
    helpers: &Helpers,
    cx: &mut TaskContext<'_>,
) -> Poll<Exit> {
    let (exit, panicked) = match (polled, helpers.take_failure()) {
        (Poll::Pending, None) => return Poll::Pending,
        (Poll::Pending, Some(failure)) => (Err(failure), false),
        (Poll::Ready(exit), failure) => {
            let panicked = exit.as_ref().is_err_and(ExitError::is_panic);
            (with_failure(incarnation, exit, failure), panicked)
        }
    };
    let exit = with_failure(incarnation, exit, helpers.settle());
    // A child that has panicked stops nothing in order any more.
    let Some(own) = (!panicked).then(|| helpers.own_to_stop()).flatten() else {
        return Poll::Ready(exit);
    };
    let function = std::mem::replace(future, Box::pin(std::future::pending()));
    let exit = log_panics(incarnation, || drop_after(exit, || drop(function)));
    *future = Box::pin(async move {
        own.stop(StopLevel::Cancel);
        own.until_ended().await;
        exit
    });
    future.as_mut().poll(cx)
}

/// Returns the exit of a child, one of whose helpers may have failed meanwhile.
pub(super) fn with_failure(
    incarnation: &Incarnation,
    exit: Exit,
    failure: Option<ExitError>,
) -> Exit {
    match (exit, failure) {
        (Ok(()), Some(failure)) => Err(failure),
        (exit, failure) => {
            if let Some(failure) = failure {
                log_failure(incarnation, failure);
            }
            exit
        }
    }
}

impl Drop for ChildTask {
    fn drop(&mut self) {
        self.end(Err(ExitError::from_reason(ExitReason::Aborted)));
    }
}

/// Polls code of the user's. A panic is an exit.
pub(crate) fn catch(poll: impl FnOnce() -> Poll<Exit>) -> Poll<Exit> {
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
pub(crate) fn drop_after(exit: Exit, rest: impl FnOnce()) -> Exit {
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

pub(crate) fn panicked(panic: PanicMessage) -> ExitError {
    ExitError::from_reason(ExitReason::Panicked(panic))
}

/// Calls code of the child's, and logs its panics if the panic hook is installed.
pub(crate) fn log_panics<T>(incarnation: &Incarnation, inside: impl FnOnce() -> T) -> T {
    let (value, panics) = collect(inside);
    log_recorded(incarnation, panics);
    value
}

/// Logs panics that were collected.
pub(crate) fn log_recorded(
    incarnation: &Incarnation,
    panics: impl IntoIterator<Item = RecordedPanic>,
) {
    for RecordedPanic { panic, backtrace } in panics {
        let child = incarnation.path();
        let Some(line) = incarnation.parent.panic_line(&child) else { continue };
        let (note, incarnation) = (line.note(), incarnation.number);
        let (location, message) = (panic.location(), panic.message());
        let backtrace = backtrace.map(field::display);
        error!(
            target: "verger::panic",
            %child, incarnation, location, panic = message, backtrace, "panicked{note}"
        );
    }
}

/// Logs the failure of a helper that isn't the exit of its child.
pub(crate) fn log_failure(incarnation: &Incarnation, error: ExitError) {
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
