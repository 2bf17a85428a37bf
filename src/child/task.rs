//! The task of one incarnation: runs the child, and reports its end exactly once.
//!
//! However a child ends (it returns, fails, panics, is aborted, loses its runtime, or panics while
//! it is dropped), the task tells its supervisor, from `poll` or at the latest from `Drop`. So
//! there is no second task that watches the first, and no channel.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use tracing::Span;

use super::run::Run;
use super::seed::{ExitFuture, Recipe};
use super::{Child, Context};
use crate::exit::{Exit, ExitReason};

/// See the [module](self).
pub(crate) struct ChildTask {
    run: Arc<Run>,
    stage: Stage,
    span: Option<Box<Span>>,
    plan: Plan,
}

/// What the task of a child that is a value does of its own accord.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plan {
    /// Says that the child is ready when `activate` has returned.
    pub(crate) announces: bool,
    /// How long the child has to stop, if that is limited and `deactivate` needs a part of it.
    pub(crate) grace: Option<Duration>,
}

enum Stage {
    New,
    Function(ExitFuture),
    Object(Pin<Box<dyn Future<Output = Option<ExitReason>> + Send>>),
    Over,
}

impl ChildTask {
    pub(crate) fn new(run: Arc<Run>, span: Span, plan: Plan) -> Self {
        let span = (!span.is_none()).then(|| Box::new(span));
        Self { run, stage: Stage::New, span, plan }
    }

    /// The child's reason once it has ended; the inner `None` if it declines.
    fn poll_child(&mut self, cx: &mut TaskContext<'_>) -> Poll<Option<ExitReason>> {
        if let Stage::New = self.stage {
            let ctx = Context::new(Arc::clone(&self.run));
            self.stage = match self.run.seed.recipe() {
                Recipe::Function(recipe) => Stage::Function(recipe(ctx)),
                Recipe::Object(factory) => match factory(&ctx) {
                    Ok(child) => Stage::Object(Box::pin(live(child, ctx, self.plan))),
                    Err(error) => return Poll::Ready(reason_of(&self.run, Err(error))),
                },
                Recipe::Nested(_) => unreachable!("a description is resolved before it is run"),
            };
        }
        match &mut self.stage {
            Stage::Function(future) => {
                future.as_mut().poll(cx).map(|exit| reason_of(&self.run, exit))
            }
            Stage::Object(future) => future.as_mut().poll(cx),
            Stage::New | Stage::Over => Poll::Pending,
        }
    }

    /// Drops the child, and reports how it ended. Not before: the next incarnation may want what
    /// this one holds.
    fn end(&mut self, reason: Option<ExitReason>) {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        match reason_after_drop(reason, stage) {
            Some(reason) => self.run.tell_exit(reason),
            None => self.run.tell_decline(),
        }
    }
}

impl Future for ChildTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        let this = &mut *self;
        let span = this.span.take();
        let entered = span.as_ref().map(|span| span.enter());
        let poll = match catch_unwind(AssertUnwindSafe(|| this.poll_child(cx))) {
            Ok(poll) => poll,
            Err(panic) => {
                let reason = ExitReason::Panicked(panic_text(&*panic));
                // What it panicked with may panic itself when it is dropped.
                drop(catch_unwind(AssertUnwindSafe(|| drop(panic))));
                Poll::Ready(Some(reason))
            }
        };
        let poll = poll.map(|reason| this.end(reason));
        drop(entered);
        this.span = span;
        poll
    }
}

impl Drop for ChildTask {
    fn drop(&mut self) {
        if !matches!(self.stage, Stage::Over) {
            let span = self.span.take();
            let _entered = span.as_ref().map(|span| span.enter());
            self.end(Some(ExitReason::Aborted));
        }
    }
}

impl fmt::Debug for ChildTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildTask").field("run", &self.run).finish_non_exhaustive()
    }
}

/// The life of a child that is a value, and the end of that value.
///
/// A panic is caught before it gets to the value, which could not be dropped safely by one.
async fn live(mut child: Box<dyn Child>, ctx: Context, plan: Plan) -> Option<ExitReason> {
    let led = Caught(AssertUnwindSafe(pin!(lead(&mut *child, &ctx, plan)))).await;
    let reason = led.unwrap_or_else(|panic| Some(ExitReason::Panicked(panic)));
    reason_after_drop(reason, child)
}

async fn lead(child: &mut dyn Child, ctx: &Context, plan: Plan) -> Option<ExitReason> {
    if let Err(error) = child.activate(ctx).await {
        return reason_of(&ctx.run, Err(error));
    }
    if plan.announces {
        ctx.ready();
    }
    let exit = {
        let late = pin!(late(ctx, plan.grace));
        tokio::select! {
            biased;
            exit = child.run(ctx) => Some(exit),
            () = late => None,
        }
    };
    let tidied = Caught(AssertUnwindSafe(child.deactivate(ctx))).await;
    let failure = match tidied {
        Ok(Ok(())) => None,
        // It can't decline any more, but it has not failed either.
        Ok(Err(error)) if error.is_ignore() => None,
        Ok(Err(error)) => Some(ExitReason::Failed(error)),
        Err(panic) => Some(ExitReason::Panicked(panic)),
    };
    if let Some(reason) = failure {
        ctx.run.parent.deactivate_failed(&ctx.run, reason);
    }
    match exit {
        Some(exit) => reason_of(&ctx.run, exit),
        None => Some(ExitReason::Killed),
    }
}

/// Resolves when three quarters of the grace are over, so that `deactivate` has the last one.
async fn late(ctx: &Context, grace: Option<Duration>) {
    ctx.cancelled().await;
    match grace {
        Some(grace) => tokio::time::sleep(grace / 4 * 3).await,
        None => std::future::pending().await,
    }
}

/// What a supervisor makes of what a child has returned; `None` if it declines. Whether a clean end
/// was asked for is judged by our own request only: an error that looks like a cancellation is an
/// error.
fn reason_of(run: &Run, exit: Exit) -> Option<ExitReason> {
    match exit {
        Ok(()) if run.level() > super::StopLevel::None => Some(ExitReason::Shutdown),
        Ok(()) => Some(ExitReason::Normal),
        Err(error) if error.is_ignore() => None,
        Err(error) => Some(error.into_reason()),
    }
}

/// Drops what is left of a child, and adds what went wrong then to how it ended.
fn reason_after_drop<T>(reason: Option<ExitReason>, rest: T) -> Option<ExitReason> {
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(rest))) else { return reason };
    let second = panic_text(&*panic);
    let first = match reason {
        None | Some(ExitReason::Normal | ExitReason::Shutdown | ExitReason::Aborted) => {
            return Some(ExitReason::Panicked(second));
        }
        Some(ExitReason::Panicked(first)) => first,
        Some(reason) => reason.to_string(),
    };
    Some(ExitReason::Panicked(format!("{first}; then, while dropped: {second}")))
}

/// The text of a panic, as far as it has one.
fn panic_text(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&'static str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "a value that is not a string".to_owned()
    }
}

/// A future whose panic is its output.
pub(crate) struct Caught<F>(pub(crate) AssertUnwindSafe<F>);

impl<F: Future + Unpin> Future for Caught<F> {
    type Output = Result<F::Output, String>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let future = Pin::new(&mut self.0.0);
        match catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(panic_text(&*panic))),
        }
    }
}
