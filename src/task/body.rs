//! What the child of a task runs: the future or the closure of the user's, until it ends or has to.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use super::report::{TaskError, TaskReport};
use crate::child::Context;
use crate::child::closures::run_closure;
use crate::child::helpers::HelperGuard;
use crate::exit::Exit;
use crate::panic::panic_message;

/// How a future ends that isn't awaited to its end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BodyLimits {
    /// The future itself handles the cancellation of its child.
    pub(super) cooperative: bool,
    pub(super) timeout: Option<Duration>,
}

enum Ended<T> {
    Value(T),
    Panicked(Box<dyn Any + Send>),
    TimedOut(Duration),
    Stopped,
}

/// Runs the future that `make` returns, and reports its outcome before the child ends.
///
/// The guard of the child that the task is linked to is dropped after the future.
pub(super) async fn run<F: Future>(
    ctx: Context,
    mut report: TaskReport<F::Output>,
    _linked: Option<HelperGuard>,
    limits: BodyLimits,
    make: impl FnOnce(Context) -> F,
) -> Exit {
    let path = ctx.path();
    if report.token().is_cancelled() {
        return Ok(());
    }
    let task_ctx = ctx.clone();
    let ended = match catch_unwind(AssertUnwindSafe(|| make(task_ctx))) {
        Ok(future) => {
            // Not inside of an async block, which would drop it before its value is known.
            let mut future = pin!(future);
            match until_ended(&ctx, &report, limits, future.as_mut()).await {
                Ended::Value(value) => {
                    // Before the future is dropped, which may panic.
                    report.deliver(Ok(value));
                    return Ok(());
                }
                ended => ended,
            }
        }
        Err(payload) => Ended::Panicked(payload),
    };
    match ended {
        Ended::Panicked(payload) => Err(report.panicked(path, panic_message(payload))),
        Ended::TimedOut(after) => {
            report.deliver(Err(TaskError::TimedOut { path, after }));
            Ok(())
        }
        Ended::Value(_) | Ended::Stopped => Ok(()),
    }
}

async fn until_ended<F: Future>(
    ctx: &Context,
    report: &TaskReport<F::Output>,
    limits: BodyLimits,
    mut future: Pin<&mut F>,
) -> Ended<F::Output> {
    let token = report.token();
    let mut aborted = pin!(token.cancelled());
    let mut cancelled = pin!(ctx.cancelled());
    let after = limits.timeout.unwrap_or(Duration::MAX);
    let mut timeout = pin!(limits.timeout.map(tokio::time::sleep));
    poll_fn(|cx| {
        // A task that has to end isn't polled again.
        if aborted.as_mut().poll(cx).is_ready()
            || (!limits.cooperative && cancelled.as_mut().poll(cx).is_ready())
        {
            return Poll::Ready(Ended::Stopped);
        }
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(Poll::Ready(value)) => return Poll::Ready(Ended::Value(value)),
            Err(payload) => return Poll::Ready(Ended::Panicked(payload)),
            Ok(Poll::Pending) => {}
        }
        match timeout.as_mut().as_pin_mut() {
            Some(timeout) => timeout.poll(cx).map(|()| Ended::TimedOut(after)),
            None => Poll::Pending,
        }
    })
    .await
}

/// Runs `closure`, and reports its outcome unless the child is aborted before.
pub(super) async fn run_blocking<T: Send + 'static, F: FnOnce() -> T + Send + 'static>(
    ctx: Context,
    mut report: TaskReport<T>,
    closure: F,
) -> Exit {
    let token = report.token();
    match run_closure(&ctx, token.cancelled(), closure).await {
        Some(Ok(value)) => {
            report.deliver(Ok(value));
            Ok(())
        }
        Some(Err(panic)) => Err(report.panicked(ctx.path(), panic)),
        None => Ok(()),
    }
}
