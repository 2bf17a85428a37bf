//! What runs beside the task of an incarnation and ends with it: helper tasks, closures on other threads, and
//! the child's own supervisor.
//!
//! Knows which helpers run and how the child's own task has ended. It doesn't know what they do.
//!
//! # Invariants
//!
//! 1. The exit of an incarnation is reported once: when its own task and its last helper have ended.
//! 2. The first failure of a helper is kept until the child takes it, and every other one is returned to the
//!    helper. So are all failures once the child has settled how it ends.
//! 3. Once it is closed, no helper is admitted.
//! 4. Nothing is dropped or aborted while the lock is held.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use rustc_hash::FxHashMap;
use tokio::task::JoinHandle;
use tracing::Span;

use super::cell::StopLevel;
use super::context::Context;
use super::task::{Alive, InSpan, catch, drop_after, log_failure, log_panics, watched};
use crate::deferred_drop::drop_flat;
use crate::exit::{Exit, ExitError, Outcome};
use crate::panic::catch_panic;
use crate::runtime::SupervisorShared;
use crate::sync::Mutex;
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
    /// The helper runs on the runtime of its tree, even if this is called on a different one, or on a thread without
    /// one.
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
        let Some(guard) = guard.filter(|guard| guard.helpers.set_own(own)) else { return false };
        self.spawn_guarded(guard, run(), true, "own children");
        true
    }

    fn spawn_helper<F>(&self, future: F, fails_child: bool) -> Helper
    where
        F: Future<Output: Outcome> + Send + 'static,
    {
        let Some(guard) = self.incarnation.admit_helper() else {
            // Its `Drop` may spawn the next helper.
            drop_flat(Box::new(future));
            return Helper(None);
        };
        let (helpers, id) = (Arc::clone(&guard.helpers), guard.id);
        let task = self.spawn_guarded(guard, future, fails_child, "helper");
        let handle = task.abort_handle();
        helpers.aborted_by(id, move || handle.abort());
        Helper(Some(RunningHelper { task, helpers, id }))
    }

    /// Spawns the task of a guard, which is aborted with what the guard is [aborted by](HelperGuard::aborted_by).
    pub(super) fn spawn_guarded<F>(
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
        let (incarnation, future) = (Arc::clone(&self.incarnation), Box::pin(future));
        let running = Some(Alive { incarnation, future });
        let task = HelperTask { running, guard, fails_child };
        let runtime = self.incarnation.parent.tree.runtime();
        named_task::spawn_on(&runtime, || format!("{} ({purpose})", self.path()), task)
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
pub struct Helper(Option<RunningHelper>);

struct RunningHelper {
    task: JoinHandle<()>,
    helpers: Arc<Helpers>,
    id: HelperId,
}

impl Helper {
    /// Aborts the helper. This doesn't fail the child.
    pub fn abort(&self) {
        if let Some(RunningHelper { helpers, id, .. }) = &self.0 {
            helpers.abort(*id);
        }
    }

    /// Returns whether the helper has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.0.as_ref().is_none_or(|helper| helper.task.is_finished())
    }
}

impl Future for Helper {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        let Some(helper) = &mut self.0 else { return Poll::Ready(()) };
        let polled = Pin::new(&mut helper.task).poll(cx).map(drop);
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
    running: Option<Alive>,
    fails_child: bool,
    guard: HelperGuard,
}

impl HelperTask {
    /// Drops the helper, and then handles its failure.
    fn end(&mut self, exit: Exit) {
        let Some(Alive { incarnation, future }) = self.running.take() else { return };
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
        let Some(Alive { incarnation, future }) = &mut self.running else {
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
        let exit = match self.running {
            // Neither the helper's handle nor the end of the child has aborted the task.
            Some(_) if self.guard.helpers.expects(self.guard.id) => {
                Err("a helper was aborted from outside, with its runtime or by its task's id"
                    .into())
            }
            _ => Ok(()),
        };
        self.end(exit);
    }
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Helpers {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Those that run, with what aborts them.
    running: FxHashMap<HelperId, Option<Deferred>>,
    next: HelperId,
    /// What the child is about to fail with.
    failure: Option<ExitError>,
    /// Whether the child's function has returned, or has failed.
    settled: bool,
    own: Option<Arc<SupervisorShared>>,
    /// Whether `own` is being stopped in order.
    own_stops: bool,
    closed: bool,
    /// Reports the exit, while the last helpers are awaited.
    report: Option<Deferred>,
}

/// A call that is made later: it aborts a helper, or reports the exit of the incarnation.
type Deferred = Box<dyn FnOnce() + Send>;

/// Identifies a helper of an incarnation.
type HelperId = u64;

impl Helpers {
    /// Admits a helper, which runs until the guard is dropped. `None` if the child has ended.
    pub(super) fn admit(self: Arc<Self>) -> Option<HelperGuard> {
        let id = {
            let mut state = self.state.lock();
            if state.closed {
                return None;
            }
            let id = state.next;
            state.next += 1;
            state.running.insert(id, None);
            id
        };
        Some(HelperGuard { helpers: self, id })
    }

    /// Sets the call that aborts a helper, which is made now if the child has ended.
    pub(super) fn aborted_by(&self, id: HelperId, abort: impl FnOnce() + Send + 'static) {
        let mut state = self.state.lock();
        if state.closed {
            drop(state);
            catch_panic(abort);
        } else if let Some(running) = state.running.get_mut(&id) {
            *running = Some(Box::new(abort));
        }
    }

    /// Aborts a helper, unless it has ended or is aborted already.
    fn abort(&self, id: HelperId) {
        let abort = self.state.lock().running.get_mut(&id).and_then(Option::take);
        if let Some(abort) = abort {
            catch_panic(abort);
        }
    }

    /// Whether nothing has aborted this helper, so that it exits with a result.
    fn expects(&self, id: HelperId) -> bool {
        let state = self.state.lock();
        !state.closed && state.running.get(&id).is_some_and(Option::is_some)
    }

    /// Returns the child's own supervisor, unless it has ended.
    pub(super) fn own(&self) -> Option<Arc<SupervisorShared>> {
        self.state.lock().own().cloned()
    }

    /// Sets the child's own supervisor, in place of one that has ended. Returns `false` if the child has one already, or
    /// has ended.
    pub(super) fn set_own(&self, own: Arc<SupervisorShared>) -> bool {
        let mut state = self.state.lock();
        if state.closed || state.own().is_some() {
            return false;
        }
        let ended = state.own.replace(own);
        drop(state);
        drop(ended);
        true
    }

    /// Returns the child's own supervisor to the one caller that stops it in order.
    pub(super) fn own_to_stop(&self) -> Option<Arc<SupervisorShared>> {
        let mut state = self.state.lock();
        let own = state.own.clone()?;
        (!std::mem::replace(&mut state.own_stops, true)).then_some(own)
    }

    /// Fails the child, which has to be woken then.
    ///
    /// # Errors
    ///
    /// Returns the failure if the child fails or ends already.
    pub(super) fn fail(&self, failure: ExitError) -> Result<(), ExitError> {
        let mut state = self.state.lock();
        if state.settled || state.failure.is_some() {
            return Err(failure);
        }
        state.failure = Some(failure);
        Ok(())
    }

    /// Takes the failure of a helper.
    pub(super) fn take_failure(&self) -> Option<ExitError> {
        self.state.lock().failure.take()
    }

    /// Notes that it is settled how the child ends. Returns a failure that came before.
    pub(super) fn settle(&self) -> Option<ExitError> {
        let mut state = self.state.lock();
        state.settled = true;
        state.failure.take()
    }

    /// Admits no more helpers. Returns a failure that the child hasn't taken.
    pub(super) fn close(&self) -> Option<ExitError> {
        let mut state = self.state.lock();
        (state.closed, state.settled) = (true, true);
        state.failure.take()
    }

    /// Aborts what runs, and calls `report` once that has ended. Returns whether it has been called.
    pub(super) fn finish(&self, report: impl FnOnce() + Send + 'static) -> bool {
        let (aborts, own, report) = {
            let mut state = self.state.lock();
            state.report = Some(Box::new(report));
            let aborts: Vec<_> = state.running.values_mut().filter_map(Option::take).collect();
            (aborts, state.own.take(), state.report_if_last())
        };
        // The wakers of what a helper waits for may be a user's.
        for abort in aborts {
            catch_panic(abort);
        }
        if let Some(own) = own {
            own.stop(StopLevel::Abort);
        }
        let is_last = report.is_some();
        if let Some(report) = report {
            report();
        }
        is_last
    }
}

impl State {
    fn own(&self) -> Option<&Arc<SupervisorShared>> {
        self.own.as_ref().filter(|own| !own.has_ended())
    }

    /// Returns what reports the exit, if nothing is awaited any more.
    fn report_if_last(&mut self) -> Option<Deferred> {
        if self.running.is_empty() { self.report.take() } else { None }
    }
}

/// While it exists, its helper runs.
pub(crate) struct HelperGuard {
    helpers: Arc<Helpers>,
    id: HelperId,
}

impl HelperGuard {
    /// Sets the call that aborts the helper, which is made now if the child has ended.
    pub(crate) fn aborted_by(&self, abort: impl FnOnce() + Send + 'static) {
        self.helpers.aborted_by(self.id, abort);
    }
}

impl Drop for HelperGuard {
    fn drop(&mut self) {
        let (abort, report) = {
            let mut state = self.helpers.state.lock();
            (state.running.remove(&self.id), state.report_if_last())
        };
        drop(abort);
        if let Some(report) = report {
            report();
        }
    }
}

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use std::future::pending;

    use super::*;
    use crate::child::incarnation::orphan;

    #[tokio::test]
    async fn a_helper_that_something_else_aborts_fails_its_child() {
        let incarnation = orphan::incarnation(1);
        let ctx = Context::new(Arc::clone(&incarnation));
        let failure = || incarnation.helpers().and_then(|helpers| helpers.take_failure());

        let aborted = ctx.spawn(pending::<()>());
        aborted.abort();
        aborted.await;
        assert!(failure().is_none(), "its handle has aborted it");

        let helper = ctx.spawn(pending::<()>());
        helper.0.as_ref().unwrap().task.abort();
        helper.await;
        let failure = failure().unwrap().to_string();
        assert!(failure.starts_with("a helper was aborted from outside"), "{failure}");
    }
}

#[cfg(all(test, verger_loom))]
mod loom_tests {
    use loom::thread;

    use super::*;
    use crate::sync::model::check;

    #[test]
    fn loom_a_failure_is_taken_once_or_returned() {
        check(|| {
            let helpers = Arc::new(Helpers::default());
            let failing = ["a", "b"].map(|text| {
                let helpers = Arc::clone(&helpers);
                thread::spawn(move || helpers.fail(text.into()).is_ok())
            });

            let taken = [helpers.take_failure(), helpers.settle(), helpers.close()];
            let kept = failing.map(|it| it.join().unwrap());

            let taken = taken.iter().filter(|failure| failure.is_some()).count();
            assert_eq!(kept.iter().filter(|&&kept| kept).count(), taken, "none is lost");
        });
    }

    #[test]
    fn loom_a_helper_is_refused_or_awaited() {
        check(|| {
            let helpers = Arc::new(Helpers::default());
            let first = Arc::clone(&helpers).admit().unwrap();
            let admitting = {
                let helpers = Arc::clone(&helpers);
                thread::spawn(move || drop(helpers.admit()))
            };
            let ending = thread::spawn(move || drop(first));

            helpers.close();
            let reports = Arc::new(Mutex::new(0));
            {
                let reports = Arc::clone(&reports);
                helpers.finish(move || *reports.lock() += 1);
            }
            admitting.join().unwrap();
            ending.join().unwrap();

            assert_eq!(*reports.lock(), 1);
            assert!(Arc::clone(&helpers).admit().is_none());
        });
    }
}
