//! The task of a child: runs an incarnation, and reports its end exactly once.
//!
//! However a child ends (it returns, fails, panics, is aborted, loses its runtime, or panics while
//! it is dropped), the task tells its supervisor, from `poll` or at the latest from `Drop`. So
//! there is no second task that watches the first, and no channel. It may stay for the next
//! incarnation then: see [`parked`](super::parked).

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use tracing::Span;

use super::parked::NextRun;
use super::run::Run;
use super::seed::Recipe;
use super::{Child, Context};
use crate::contain::contained;
use crate::exit::{Exit, ExitError, ExitReason, Outcome};

/// Runs that a task begins in one poll, before others have a turn: some ten microseconds of restarts. To
/// give way also wakes another thread of the runtime, by a system call; every fourth time, that was
/// a twentieth of all restarts.
const RUNS: usize = 16;

/// What a task does, in one piece of memory.
pub(crate) type TaskFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A task, ready to be spawned.
///
/// A future of two or three words fits in the smallest task that tokio has, and all that a child needs
/// besides is one piece of memory of its own. That is 70 bytes less for each child that waits than a task
/// with the child in it. Whoever starts children doesn't ask for that piece: it comes with
/// the first poll, on any thread, which is a twelfth of a start through the handle.
pub(crate) enum Spawned {
    /// The task of a function.
    New(NextRun),
    Made(TaskFuture),
}

impl Spawned {
    pub(crate) fn new(run: Arc<Run>, plan: impl FnOnce() -> Plan) -> Self {
        match run.seed.recipe() {
            Recipe::Function(_) => Self::New(NextRun::new(run)),
            Recipe::Object(_) => Self::Made(of_object(run, plan())),
            Recipe::Nested(_) => unreachable!("a description is resolved before it is run"),
        }
    }
}

impl Future for Spawned {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        if let Self::New(next) = &mut *self {
            let Some(run) = next.begin() else { unreachable!("it is begun once") };
            let Recipe::Function(function) = run.seed.recipe() else { unreachable!("it is one") };
            let make = function.task();
            *self = Self::Made(make(run));
        }
        match &mut *self {
            Self::Made(task) => task.as_mut().poll(cx),
            Self::New(_) => unreachable!("it is made"),
        }
    }
}

pin_project! {
    /// See the [module](self).
    ///
    /// `B` makes the child's future, `F` is that, and `R` says what its output means.
    struct ChildTask<B, F, R> {
        run: Arc<Run>,
        begin: B,
        reason: R,
        #[pin]
        stage: Stage<F>,
    }

    impl<B, F, R> PinnedDrop for ChildTask<B, F, R> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            if matches!(*this.stage, Stage::Over) {
                drop(this.run.leave());
                return;
            }
            let span = this.run.take_span();
            let reason = reason_after_end(ExitReason::Aborted, span.as_deref(), this.stage);
            this.run.tell_end(reason, None);
        }
    }
}

pin_project! {
    #[project = StageNow]
    enum Stage<F> {
        New,
        Alive { #[pin] future: F },
        Over,
    }
}

/// What the task of a child that is a value does of its own accord.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plan {
    /// Says that the child is ready when `activate` has returned.
    pub(crate) announces: bool,
    /// How long the child has to stop, if that is limited and `deactivate` needs a part of it.
    pub(crate) grace: Option<Duration>,
}

/// The task of a child that is a function. `begin` is called in the task, where a panic is caught.
pub(super) fn of_function<F, O>(
    run: Arc<Run>,
    begin: impl Fn(&Arc<Run>) -> Result<F, ExitError> + Send + 'static,
) -> TaskFuture
where
    F: Future<Output = O> + Send + 'static,
    O: Outcome + 'static,
{
    let reason = |run: &Run, output: O| reason_of(run, output.into_exit());
    boxed(run, begin, reason)
}

/// The task of a child that is a value.
fn of_object(run: Arc<Run>, plan: Plan) -> TaskFuture {
    let begin = move |run: &Arc<Run>| {
        let Recipe::Object(factory) = run.seed.recipe() else { unreachable!("it is a value") };
        let ctx = Context::new(Arc::clone(run));
        Ok(live(factory.make(&ctx)?, ctx, plan))
    };
    boxed(run, begin, |_: &Run, reason| reason)
}

fn boxed<B, F, R>(run: Arc<Run>, begin: B, reason: R) -> TaskFuture
where
    B: Fn(&Arc<Run>) -> Result<F, ExitError> + Send + 'static,
    F: Future + Send + 'static,
    R: Fn(&Run, F::Output) -> Option<ExitReason> + Send + 'static,
{
    Box::pin(ChildTask { run, begin, reason, stage: Stage::New })
}

impl<B, F, R> Future for ChildTask<B, F, R>
where
    B: Fn(&Arc<Run>) -> Result<F, ExitError>,
    F: Future,
    R: Fn(&Run, F::Output) -> Option<ExitReason>,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        let mut before = None;
        for _ in 0..RUNS {
            if matches!(self.stage, Stage::Over) {
                let Some(next) = self.run.take_next(cx) else { return Poll::Pending };
                before = self.as_mut().take_up(next);
            }
            let now = self.as_mut().poll_run(cx);
            // Only now: the next run need not wait for it.
            forget(before.take());
            match now {
                Now::Runs => return Poll::Pending,
                Now::Over { parks: false, next: None, .. } => return Poll::Ready(()),
                Now::Over { next, gives_way, .. } => {
                    before = next.and_then(|next| self.as_mut().take_up(next));
                    if gives_way {
                        break;
                    }
                }
            }
        }
        forget(before);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// What a run was given goes with it, and may panic.
fn forget(run: Option<Arc<Run>>) {
    if run.is_some() {
        contained(|| drop(run));
    }
}

/// What has become of a run.
enum Now {
    Runs,
    Over {
        /// The task stays, for the next run.
        parks: bool,
        /// That, if it is known already.
        next: Option<NextRun>,
        /// When others had a turn.
        gives_way: bool,
    },
}

impl<B, F, R> ChildTask<B, F, R>
where
    B: Fn(&Arc<Run>) -> Result<F, ExitError>,
    F: Future,
    R: Fn(&Run, F::Output) -> Option<ExitReason>,
{
    /// Makes it this run. Returns the last one, unless it is that again.
    fn take_up(self: Pin<&mut Self>, mut next: NextRun) -> Option<Arc<Run>> {
        let mut this = self.project();
        let run = next.begin()?;
        this.stage.set(Stage::New);
        let before = std::mem::replace(this.run, run);
        (!Arc::ptr_eq(&before, this.run)).then_some(before)
    }

    fn poll_run(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Now {
        let mut this = self.project();
        let span = this.run.take_span();
        // The child is dropped before its end is reported: the next incarnation may want what this
        // one holds.
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let _entered = span.as_ref().map(|span| span.enter());
            let polled = poll(this.run, this.stage.as_mut(), this.begin, this.reason, cx);
            polled.map(|reason| reason_after_drop(reason, || this.stage.set(Stage::Over)))
        }));
        let reason = match polled {
            Ok(Poll::Pending) => {
                if let Some(span) = span {
                    this.run.set_span(span);
                }
                return Now::Runs;
            }
            Ok(Poll::Ready(reason)) => reason,
            Err(panic) => reason_after_end(panicked(panic), span.as_deref(), this.stage),
        };
        let parks = reason.as_ref().is_some_and(|reason| this.run.park(reason));
        let mut next = None;
        let gives_way = this.run.tell_end(reason, Some(&mut next));
        Now::Over { parks, next, gives_way }
    }
}

/// The child's reason once it has ended; the inner `None` if it declines.
fn poll<B, F, R>(
    run: &Arc<Run>,
    mut stage: Pin<&mut Stage<F>>,
    begin: &B,
    reason: &R,
    cx: &mut TaskContext<'_>,
) -> Poll<Option<ExitReason>>
where
    B: Fn(&Arc<Run>) -> Result<F, ExitError>,
    F: Future,
    R: Fn(&Run, F::Output) -> Option<ExitReason>,
{
    if let StageNow::New = stage.as_mut().project() {
        match begin(run) {
            Ok(future) => stage.set(Stage::Alive { future }),
            Err(error) => return Poll::Ready(reason_of(run, Err(error))),
        }
    }
    match stage.project() {
        StageNow::Alive { future } => future.poll(cx).map(|output| reason(run, output)),
        StageNow::New | StageNow::Over => Poll::Pending,
    }
}

/// The life of a child that is a value, and the end of that value.
///
/// A panic is caught before it gets to the value, which could not be dropped safely by one.
async fn live(mut child: Box<dyn Child>, ctx: Context, plan: Plan) -> Option<ExitReason> {
    let led = Caught(AssertUnwindSafe(pin!(lead(&mut *child, &ctx, plan)))).await;
    let reason = led.unwrap_or_else(|panic| Some(ExitReason::Panicked(panic)));
    reason_after_drop(reason, || drop(child))
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
fn reason_after_drop(reason: Option<ExitReason>, drop: impl FnOnce()) -> Option<ExitReason> {
    let Err(panic) = catch_unwind(AssertUnwindSafe(drop)) else { return reason };
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

/// The same of a child that did not come to its end by itself, in its span.
fn reason_after_end<F>(
    reason: ExitReason,
    span: Option<&Span>,
    mut stage: Pin<&mut Stage<F>>,
) -> Option<ExitReason> {
    reason_after_drop(Some(reason), || {
        let _entered = span.map(Span::enter);
        stage.set(Stage::Over);
    })
}

#[cold]
fn panicked(panic: Box<dyn Any + Send>) -> ExitReason {
    let reason = ExitReason::Panicked(panic_text(&*panic));
    // What it panicked with may panic itself when it is dropped.
    contained(|| drop(panic));
    reason
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
