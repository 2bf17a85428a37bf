//! Helper tasks that a child spawns, and that end with its incarnation.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use tokio::task::JoinHandle;
use tracing::Span;

use super::context::Context;
use super::helpers::HelperGuard;
use super::incarnation::Incarnation;
use super::polls::watched;
use super::span::InSpan;
use super::task::{ExitFuture, catch, drop_after, log_failure, log_panics};
use crate::exit::{Exit, Outcome};
use crate::runtime::SupervisorShared;
use crate::{named_task, subscriber};

impl Context {
    /// Spawns a helper task, which ends with this incarnation of the child.
    ///
    /// Use it instead of `tokio::spawn`, whose tasks go on when the child is restarted. A helper that returns
    /// `()` or `Ok` ends without affecting the child. An error or a panic of a helper fails the child: its
    /// function, or its [`activate`](crate::Child::activate) or [`run`](crate::Child::run), is dropped, and the
    /// child ends as if that had returned the error. A [`deactivate`](crate::Child::deactivate) and the stop of
    /// [its own children](Self::children) follow as usual.
    ///
    /// When the child has ended, the helpers that are left are aborted, and the next incarnation starts once they
    /// have ended. A helper that blocks its thread is reported as a leak of the child;
    /// [`on_leak`](crate::ChildSpec::on_leak) decides whether the next incarnation starts beside it.
    ///
    /// A helper isn't aborted when the child is cancelled: it can use a clone of this context to learn of that. A
    /// failure from then on, or after the child's function has returned, is only logged.
    ///
    /// On the context of an incarnation that has ended, the future is dropped, and the helper has ended.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::{Context, Exit};
    ///
    /// async fn consumer(ctx: Context) -> Exit {
    ///     let report = ctx.clone();
    ///     ctx.spawn(async move {
    ///         for minute in 1.. {
    ///             tokio::time::sleep(Duration::from_secs(60)).await;
    ///             report.set_status(format!("consuming for {minute} min"));
    ///         }
    ///     });
    ///     // Consume.
    ///     ctx.cancelled().await;
    ///     Ok(())
    /// }
    /// # drop(consumer);
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, as `tokio::spawn` does.
    pub fn spawn<F>(&self, future: F) -> Helper
    where
        F: Future<Output: Outcome> + Send + 'static,
    {
        self.spawn_helper(future, true)
    }

    /// Returns a spawner of helpers whose errors and panics are logged and don't fail the child.
    ///
    /// ```
    /// # async fn consumer(ctx: verger::Context) {
    /// ctx.detached_errors().spawn(async {
    ///     tokio::fs::write("/tmp/last-run", "now").await
    /// });
    /// # }
    /// ```
    #[must_use = "it does nothing until `spawn` is called"]
    pub fn detached_errors(&self) -> DetachedErrors<'_> {
        DetachedErrors(self)
    }

    /// Runs the child's own supervisor, which isn't aborted with the other helpers. Returns `false`, and doesn't run it,
    /// if the child has one already, or has ended.
    pub(crate) fn spawn_own<F>(&self, own: Arc<SupervisorShared>, run: impl FnOnce() -> F) -> bool
    where
        F: Future<Output = Exit> + Send + 'static,
    {
        let guard = self.incarnation.admit_helper();
        let Some(guard) = guard.filter(|guard| guard.helpers().set_own(own)) else { return false };
        self.spawn_guarded(guard, run(), true, "own children");
        true
    }

    /// Runs a future beside the child's own task. The guard is aborted by what it says, and not by aborting this.
    pub(super) fn spawn_beside(
        &self,
        guard: HelperGuard,
        purpose: &str,
        future: impl Future<Output = ()> + Send + 'static,
    ) {
        self.spawn_guarded(guard, future, false, purpose);
    }

    fn spawn_helper<F>(&self, future: F, fails_child: bool) -> Helper
    where
        F: Future<Output: Outcome> + Send + 'static,
    {
        let Some(guard) = self.incarnation.admit_helper() else { return Helper(None) };
        let (helpers, id) = (Arc::clone(guard.helpers()), guard.id());
        let task = self.spawn_guarded(guard, future, fails_child, "helper");
        let handle = task.abort_handle();
        helpers.aborted_by(id, move || handle.abort());
        Helper(Some(task))
    }

    fn spawn_guarded<F>(
        &self,
        guard: HelperGuard,
        future: F,
        fails_child: bool,
        purpose: &str,
    ) -> JoinHandle<()>
    where
        F: Future<Output: Outcome> + Send + 'static,
    {
        // The spans of the caller, which usually is the child.
        let future = InSpan::new(
            Box::pin(async move { future.await.into_exit() }),
            subscriber::call(Span::current).unwrap_or_else(Span::none),
        );
        let running =
            Running { incarnation: Arc::clone(&self.incarnation), future: Box::pin(future) };
        let task = HelperTask { running: Some(running), _guard: guard, fails_child };
        #[expect(clippy::disallowed_methods, reason = "the task is aborted with its incarnation")]
        named_task::spawn(|| format!("{} ({purpose})", self.path()), task)
    }
}

/// Spawns helpers whose failures are logged; see [`Context::detached_errors`].
///
/// The example of [`Context::detached_errors`] uses one.
#[derive(Debug)]
pub struct DetachedErrors<'a>(&'a Context);

impl DetachedErrors<'_> {
    /// Spawns a helper as [`Context::spawn`] does, except that its errors and panics are logged and don't
    /// fail the child.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, as `tokio::spawn` does.
    pub fn spawn<F>(&self, future: F) -> Helper
    where
        F: Future<Output: Outcome> + Send + 'static,
    {
        self.0.spawn_helper(future, false)
    }
}

/// A helper task of a child; see [`Context::spawn`].
///
/// Await it to wait until the helper has ended, however it ends. Dropping it detaches the helper from the code
/// that holds this, and not from its child.
///
/// The example of [`Context::spawn`] spawns one.
///
/// # Cancel safety
///
/// Awaiting `&mut helper` is cancel safe.
pub struct Helper(Option<JoinHandle<()>>);

impl Helper {
    /// Aborts the helper. This doesn't fail the child.
    pub fn abort(&self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }

    /// Returns whether the helper has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.0.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Future for Helper {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        let Some(task) = &mut self.0 else { return Poll::Ready(()) };
        let polled = Pin::new(task).poll(cx).map(drop);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl fmt::Debug for Helper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Helper").field("finished", &self.is_finished()).finish()
    }
}

/// The task of a helper. Fields are dropped in order: the guard is the last.
struct HelperTask {
    /// `None` once it has ended.
    running: Option<Running>,
    fails_child: bool,
    _guard: HelperGuard,
}

struct Running {
    incarnation: Arc<Incarnation>,
    future: ExitFuture,
}

impl HelperTask {
    /// Drops the helper, and then handles its failure.
    fn end(&mut self, exit: Exit) {
        let Some(Running { incarnation, future }) = self.running.take() else { return };
        let exit = log_panics(&incarnation, || drop_after(exit, || drop(future)));
        // A helper has nothing to decline.
        let Err(error) = exit else { return };
        if error.is_ignore() {
            return;
        }
        let left = if self.fails_child { incarnation.fail(error).err() } else { Some(error) };
        if let Some(error) = left {
            log_failure(&incarnation, error);
        }
    }
}

impl Future for HelperTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        let Some(Running { incarnation, future }) = &mut self.running else {
            return Poll::Ready(());
        };
        let poll = || watched(incarnation, || catch(|| future.as_mut().poll(cx)));
        let Poll::Ready(exit) = log_panics(incarnation, poll) else { return Poll::Pending };
        self.end(exit);
        Poll::Ready(())
    }
}

impl Drop for HelperTask {
    fn drop(&mut self) {
        self.end(Ok(()));
    }
}
