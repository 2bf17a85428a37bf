//! Closures on tokio's blocking pool, each tied to an incarnation.
//!
//! # Invariants
//!
//! 1. A closure that has begun holds a guard of its child, so the child ends only once the closure has.
//! 2. A closure that is cancelled before it has begun is dropped then, also if the pool has no thread for it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll};

use tokio::sync::oneshot;
use tracing::Span;

use super::busy::TimedClosure;
use super::clock_hold::{BusyClosure, ClockHold};
use super::context::Context;
use super::helpers::{Helper, HelperGuard};
use super::incarnation::Incarnation;
use super::task::{log_panics, panicked};
use crate::exit::{ExitError, ExitReason};
use crate::panic::{PanicMessage, catch_panic, catch_panic_message};
use crate::sync::Mutex;
use crate::{named_task, subscriber};

impl Context {
    /// Runs a closure that blocks on tokio's blocking pool, and ties it to this incarnation of the child.
    ///
    /// Use it instead of `tokio::task::spawn_blocking`. A closure of that one belongs to no child: a stop doesn't
    /// wait for it, a restarted child runs beside it, and the end of the runtime waits for it without limit,
    /// without a word about where it comes from.
    ///
    /// Await the [`BlockingHelper`] for the value:
    ///
    /// ```
    /// use verger::{Context, Exit};
    ///
    /// # fn checksum(_page: &[u8]) -> u32 { 0 }
    /// async fn indexer(ctx: Context) -> Exit {
    ///     let page = vec![0; 1 << 20];
    ///     let sum = ctx.spawn_blocking(move || checksum(&page)).await?;
    ///     ctx.set_status(format!("the last page has {sum:x}"));
    ///     Ok(())
    /// }
    /// # drop(indexer);
    /// ```
    ///
    /// A closure can't be aborted. The child has ended only when the closure has, and the next incarnation starts
    /// then. A closure that still runs when the child had to be aborted is reported as a leak of the child after the
    /// [`leak_timeout`](crate::SupervisorBuilder::leak_timeout), and
    /// [`on_leak`](crate::ChildSpec::on_leak) decides whether the next incarnation starts beside it. A closure that
    /// hasn't begun when the child is cancelled is dropped. A clone of this context in the closure tells whether
    /// the child is [cancelled](Self::is_cancelled).
    ///
    /// A panic of the closure is returned to the code that awaits it, where `?` makes it the exit of the child.
    /// If no code has begun to await it, or the [`BlockingHelper`] was dropped, the panic fails the child
    /// as that of a [helper](Self::spawn) does.
    ///
    /// On the context of an incarnation that has ended, the closure is dropped.
    pub fn spawn_blocking<T, F>(&self, closure: F) -> BlockingHelper<T>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let (sender, outcome) = oneshot::channel();
        let awaited = Arc::new(AtomicBool::new(false));
        let (ctx, seen) = (self.clone(), Arc::clone(&awaited));
        let helper = self.spawn(async move {
            let ended = run_closure(&ctx, std::future::pending(), closure).await;
            let Some(outcome) = ended else { return Ok(()) };
            let panic = outcome.as_ref().err().cloned();
            let is_awaited = seen.load(Ordering::Acquire);
            // A waker or a value of the user's may panic.
            let sent = catch_panic(|| sender.send(outcome).is_ok()).unwrap_or(false);
            match panic {
                // A panic that no code awaits fails the child.
                Some(panic) if !is_awaited || !sent => Err(panicked(panic)),
                _ => Ok(()),
            }
        });
        BlockingHelper { outcome, helper, awaited }
    }
}

/// A closure of [`Context::spawn_blocking`], to be awaited for its value.
///
/// Dropping it detaches the closure from the code that holds this, and not from its child.
///
/// The example of [`Context::spawn_blocking`](crate::Context::spawn_blocking) awaits one.
///
/// # Errors
///
/// Awaiting it returns the panic of the closure as an error. If the closure was dropped before it has begun, because
/// the child was cancelled or [`abort`](Self::abort) was called, the error is a clean end, as that of
/// [`BlockingContext::check`](crate::BlockingContext::check).
///
/// # Cancel safety
///
/// Awaiting `&mut helper` is cancel safe.
///
/// # Panics
///
/// Awaiting `&mut helper` again after it has returned panics.
pub struct BlockingHelper<T> {
    outcome: oneshot::Receiver<Result<T, PanicMessage>>,
    helper: Helper,
    awaited: Arc<AtomicBool>,
}

impl<T> BlockingHelper<T> {
    /// Drops the closure if it hasn't begun. One that has begun runs on, and its value is lost.
    pub fn abort(&self) {
        self.helper.abort();
    }

    /// Returns whether there is a value, or can't be one any more.
    ///
    /// After [`abort`](Self::abort), the closure itself may still run.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.helper.is_finished()
    }
}

impl<T> Future for BlockingHelper<T> {
    type Output = Result<T, ExitError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        self.awaited.store(true, Ordering::Release);
        Pin::new(&mut self.outcome).poll(cx).map(|outcome| match outcome {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(panic)) => Err(panicked(panic)),
            Err(_) => Err(ExitError::from_reason(ExitReason::Shutdown)),
        })
    }
}

impl<T> fmt::Debug for BlockingHelper<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingHelper").field("finished", &self.is_finished()).finish()
    }
}

/// Runs `closure` to its end. Returns `None` if `aborted` has resolved, or if the child was cancelled before the
/// closure has begun.
pub(crate) async fn run_closure<T, F>(
    ctx: &Context,
    aborted: impl Future<Output = ()>,
    closure: F,
) -> Option<Result<T, PanicMessage>>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let code = ThreadCode::new(&ctx.incarnation, false, closure)?;
    let unbegun = Unbegun(Arc::new(Mutex::new(Some(code))));
    let taken = Arc::clone(&unbegun.0);
    let inside = move || {
        let code = taken.lock().take();
        code.map(|code| code.call(None))
    };
    let ended = named_task::spawn_blocking(|| ctx.path().to_string(), inside);
    let forgotten = async {
        ctx.cancelled().await;
        if !unbegun.forget() {
            std::future::pending().await
        }
    };
    tokio::select! {
        biased;
        () = aborted => None,
        () = forgotten => None,
        // An error means that the runtime shuts down.
        ended = ended => ended.ok().flatten(),
    }
}

/// A closure on the pool, until it begins. Dropping this drops it.
struct Unbegun<F>(Arc<Mutex<Option<ThreadCode<F>>>>);

impl<F> Unbegun<F> {
    /// Drops the closure if it hasn't begun. Returns whether it hadn't.
    fn forget(&self) -> bool {
        // The lock isn't held while it is dropped.
        let code = self.0.lock().take();
        code.is_some()
    }
}

impl<F> Drop for Unbegun<F> {
    fn drop(&mut self) {
        self.forget();
    }
}

/// Code of a child for a thread outside of the runtime. Fields are dropped in order: the guard is the last.
pub(super) struct ThreadCode<F> {
    code: F,
    span: Span,
    incarnation: Arc<Incarnation>,
    guard: HelperGuard,
    /// Whether the code consists of polls, which are timed themselves.
    polls: bool,
}

impl<F> ThreadCode<F> {
    /// `polls`: whether the code consists of [watched](super::task::watched) polls. Returns `None` if the child has ended.
    pub(super) fn new(incarnation: &Arc<Incarnation>, polls: bool, code: F) -> Option<Self> {
        let guard = incarnation.admit_helper()?;
        let span = subscriber::call(Span::current).unwrap_or_else(Span::none);
        Some(Self { code, span, incarnation: Arc::clone(incarnation), guard, polls })
    }

    /// Calls the code, in the child's span. `hold` is how its thread keeps the paused clock.
    pub(super) fn call<T>(self, hold: Option<&ClockHold>) -> Result<T, PanicMessage>
    where
        F: FnOnce() -> T,
    {
        let Self { code, span, incarnation, guard, polls } = self;
        let busy = BusyClosure::new(&incarnation, hold);
        let timed = if polls { None } else { TimedClosure::new(&incarnation) };
        let ended =
            log_panics(&incarnation, || subscriber::in_span(&span, || catch_panic_message(code)));
        subscriber::close(span);
        drop(timed);
        // They hold the tree.
        drop((busy, incarnation));
        // From here on the child may have ended.
        drop(guard);
        ended
    }
}
