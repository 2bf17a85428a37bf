//! `Context::spawn_blocking`: a closure on the blocking pool that ends with its child's incarnation.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll};

use tokio::sync::oneshot;

use super::closures::run_closure;
use super::context::Context;
use super::helper::Helper;
use super::task::panicked;
use crate::exit::{Exit, ExitError, ExitReason};
use crate::panic::{PanicMessage, catch_panic};

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
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, as `tokio::spawn` does.
    pub fn spawn_blocking<T, F>(&self, closure: F) -> BlockingHelper<T>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let (sender, outcome) = oneshot::channel();
        let awaited = Arc::new(AtomicBool::new(false));
        let report = Report { sender, awaited: Arc::clone(&awaited) };
        let ctx = self.clone();
        let helper = self.spawn(async move {
            match run_closure(&ctx, std::future::pending(), closure).await {
                Some(outcome) => report.deliver(outcome),
                None => Ok(()),
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

/// Where the outcome of a closure goes.
struct Report<T> {
    sender: oneshot::Sender<Result<T, PanicMessage>>,
    awaited: Arc<AtomicBool>,
}

impl<T> Report<T> {
    /// Returns a panic that no code awaits, which fails the child.
    fn deliver(self, outcome: Result<T, PanicMessage>) -> Exit {
        let panic = outcome.as_ref().err().cloned();
        let awaited = self.awaited.load(Ordering::Acquire);
        // A waker or a value of the user's may panic.
        let sent = catch_panic(|| self.sender.send(outcome).is_ok()).unwrap_or(false);
        match panic {
            Some(panic) if !awaited || !sent => Err(panicked(panic)),
            _ => Ok(()),
        }
    }
}
