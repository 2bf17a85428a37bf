//! Runs a tree as a program: to its end, until a graceful shutdown, or behind a handle.

use std::borrow::Cow;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::application::Application;
use crate::child::{PollWatch, StopLevel};
use crate::clock::{self, Clocks};
use crate::error::{RunError, StartError};
use crate::handle::{SupervisorHandle, request_stop, until_up};
use crate::named_task;
use crate::path::Path;
use crate::runtime::tree::StopRequests;
use crate::runtime::{End, SupervisorShared, supervise};
use crate::spec::Supervisor;

impl Supervisor {
    /// Starts the tree, and returns a handle when the start has passed the last child.
    ///
    /// The start passes a child when that child is active, is down for good, or requires a child
    /// that is down for good. A child that fails meanwhile is waited for as long as it is
    /// restarted.
    ///
    /// ```
    /// use verger::policy::FirstStart;
    /// use verger::{Context, Exit, Readiness, StartError, Supervisor, worker};
    ///
    /// async fn db(ctx: Context) {
    ///     ctx.ready();
    ///     ctx.cancelled().await;
    /// }
    ///
    /// async fn refused(_ctx: Context) -> Exit {
    ///     Err("connection refused".into())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = Supervisor::builder("app").child(worker("db", db)).build()?.start().await?;
    /// app.stop("the example is over").await?;
    ///
    /// let tree = Supervisor::builder("app")
    ///     .first_start(FirstStart::Fail)
    ///     .child(worker("db", refused).readiness(Readiness::Signal))
    ///     .build()?;
    /// let error = tree.start().await.unwrap_err();
    /// assert!(matches!(error, StartError::ChildFailed { .. }));
    /// assert_eq!(
    ///     error.to_string(),
    ///     "`app/db` could not be started: activation failed: connection refused",
    /// );
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`StartError::ChildFailed`] with [`FirstStart::Fail`](crate::policy::FirstStart::Fail), if the
    ///   first start of a child failed. The children before it were stopped in reverse order.
    /// * [`StartError::Ended`] if the tree ended with an error during the start.
    /// * [`StartError::Stopped`] if the tree was stopped during the start.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime that has its timers enabled.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is ready, every child is aborted.
    pub async fn start(self) -> Result<SupervisorHandle, StartError> {
        let root = self.spawn();
        root.up().await?;
        Ok(root.detach())
    }

    /// Spawns the task of the tree, which has not been polled when this returns.
    pub(crate) fn spawn(self) -> Root {
        self.spawn_with(None)
    }

    /// The same for a root that runs as a program, which takes the requests to stop it.
    pub(super) fn spawn_with(self, stops: Option<Arc<StopRequests>>) -> Root {
        Root::spawn(self.shared(stops))
    }

    /// Returns the shared state of a root that doesn't run yet.
    pub(crate) fn shared(self, stops: Option<Arc<StopRequests>>) -> Arc<SupervisorShared> {
        let (blueprint, settings) = (self.blueprint(), self.settings());
        SupervisorShared::root(blueprint, settings, self.early_events(), Clocks::read(), stops)
    }

    /// Runs the tree until it ends by itself.
    ///
    /// A tree ends when it gives up, when its significant children have ended (with
    /// [`auto_shutdown`](crate::SupervisorBuilder::auto_shutdown)), or when a child stops it
    /// through [`Context::parent`](crate::Context::parent).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::{Context, Exit, RunError, Supervisor, worker};
    ///
    /// async fn flaky(_ctx: Context) -> Exit {
    ///     Err("connection refused".into())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = Supervisor::builder("app")
    ///     .restarts(1, Duration::from_secs(60))
    ///     .child(worker("flaky", flaky))
    ///     .build()?;
    ///
    /// let error = app.run().await.unwrap_err();
    /// assert!(matches!(error, RunError::GaveUp { .. }));
    /// assert_eq!(error.exit_code(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`SupervisorHandle::wait`].
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime that has its timers enabled.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is ready, every child is aborted. To stop in order, use
    /// [`with_graceful_shutdown`](Self::with_graceful_shutdown).
    pub async fn run(self) -> Result<(), RunError> {
        self.spawn().handle().wait().await
    }

    /// Runs the tree until it ends by itself, and returns the exit code for `main`.
    ///
    /// The same as [`Application::run`] without signals: see there for the codes. Call it as the last thing
    /// in `main`: the process ends 2 s after it has returned.
    ///
    /// # Panics
    ///
    /// As for [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is ready, every child is aborted.
    pub async fn run_to_exit_code(self) -> ExitCode {
        quiet(self).run().await
    }

    /// Runs the tree until `shutdown` resolves, and then stops it in stages.
    ///
    /// The output of the future is the [cause](StopCause) that is logged, and that children see as their
    /// [`stop_reason`](crate::Context::stop_reason). The stop takes 26 s at most: see
    /// [`StopStages`](crate::app::StopStages). An [`Application`] has stages of your own, hooks and more.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is ready, every child is aborted.
    ///
    /// With [`signals`](crate::signals), a second signal ends the process at once, with a line that
    /// names the children that this stop waits for.
    ///
    /// ```no_run
    /// # async fn f(tree: verger::Supervisor) -> Result<(), verger::RunError> {
    /// // Logs `shutting down child=app cause=SIGTERM`.
    /// tree.with_graceful_shutdown(verger::signals()).await
    /// # }
    /// ```
    pub fn with_graceful_shutdown<F>(self, shutdown: F) -> GracefulShutdown<F>
    where
        F: Future<Output: StopCause> + Send + 'static,
    {
        GracefulShutdown { tree: self, shutdown }
    }
}

impl IntoFuture for Supervisor {
    type Output = Result<(), RunError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

/// A tree that is stopped in order when a future resolves.
///
/// Made by [`Supervisor::with_graceful_shutdown`]. Await it, or call
/// [`run_to_exit_code`](Self::run_to_exit_code).
///
/// The example of [`with_graceful_shutdown`](Supervisor::with_graceful_shutdown) awaits one.
#[must_use = "a tree does nothing until it is run"]
pub struct GracefulShutdown<F> {
    tree: Supervisor,
    shutdown: F,
}

impl<F: Future<Output: StopCause> + Send + 'static> GracefulShutdown<F> {
    /// Runs the tree and returns the exit code for `main`.
    ///
    /// The same as [`Application::run`] with this future in place of signals: see there for the codes. Call
    /// it as the last thing in `main`: the process ends 2 s after it has returned.
    ///
    /// # Panics
    ///
    /// As for [`Supervisor::run`].
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is ready, every child is aborted.
    pub async fn run_to_exit_code(self) -> ExitCode {
        self.application().run().await
    }

    fn application(self) -> Application {
        quiet(self.tree).stop_on(self.shutdown)
    }
}

impl<F: Future<Output: StopCause> + Send + 'static> IntoFuture for GracefulShutdown<F> {
    type Output = Result<(), RunError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.application().run_to_end())
    }
}

impl<F> fmt::Debug for GracefulShutdown<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GracefulShutdown").field("tree", &self.tree).finish_non_exhaustive()
    }
}

/// An application of which nothing is logged before something happens.
fn quiet(tree: Supervisor) -> Application {
    let mut app = Application::new(tree).listen_to_signals(false);
    app.announces = false;
    app
}

/// How long a poll may take until its child blocks a thread.
const BLOCKED: Duration = Duration::from_secs(1);

/// The task of a root supervisor. Dropping it aborts the task and every child.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) shared: Arc<SupervisorShared>,
    task: Option<JoinHandle<()>>,
}

impl Root {
    pub(crate) fn spawn(shared: Arc<SupervisorShared>) -> Self {
        // Panics here, in the caller, if the runtime has no timers.
        drop(tokio::time::sleep(Duration::ZERO));
        let run = supervise(Arc::clone(&shared), None, |_| ());
        #[expect(clippy::disallowed_methods, reason = "the root's task, aborted when this drops")]
        let task = named_task::spawn(|| shared.path().to_string(), run);
        Self { shared, task: Some(task) }
    }

    pub(crate) fn handle(&self) -> SupervisorHandle {
        SupervisorHandle::new(Arc::clone(&self.shared))
    }

    /// Waits until the tree is up, or has ended by itself without an error.
    pub(crate) async fn up(&self) -> Result<(), StartError> {
        let Some(end) = until_up(&self.shared).await else { return Ok(()) };
        match (&end, end.result(self.shared.path(), self.shared.forced_now())) {
            (_, Err(RunError::Start(error))) => Err(error),
            (_, Err(RunError::Forced { leaked, .. })) if leaked.is_empty() => {
                Err(StartError::Stopped { path: self.shared.path().clone() })
            }
            (_, Err(error)) => Err(StartError::Ended(Box::new(error))),
            (End::AutoShutdown | End::Exit { .. }, Ok(())) => Ok(()),
            (_, Ok(())) => Err(StartError::Stopped { path: self.shared.path().clone() }),
        }
    }

    /// Waits until the tree has ended, and returns the result as it is now.
    pub(super) async fn result(&self) -> Result<(), RunError> {
        let end = self.shared.progress.until_ended().await;
        end.result(self.shared.path(), self.shared.forced_now())
    }

    /// Stops the tree, as urgently as `level`.
    pub(super) fn stop(&self, cause: &str, level: StopLevel) {
        request_stop(&self.shared, cause, level);
    }

    /// Returns a function that returns the children that block a thread, or were aborted and still run.
    pub(super) fn blocked(&self) -> impl Fn() -> Vec<Path> + Send + 'static {
        let (shared, watch) = (Arc::clone(&self.shared), PollWatch::new());
        move || {
            let mut blocked = shared.leaked_below();
            for child in long_polls(&watch) {
                if !blocked.contains(&child) {
                    blocked.push(child);
                }
            }
            blocked
        }
    }

    /// Keeps the task running when this is dropped.
    fn detach(mut self) -> SupervisorHandle {
        self.task = None;
        self.handle()
    }
}

/// Returns the children whose polls take so long that they block a thread.
pub(super) fn long_polls(watch: &PollWatch) -> Vec<Path> {
    let since = clock::real().checked_sub(BLOCKED);
    let polls = watch.running().into_iter().filter(|poll| Some(poll.since) <= since);
    polls.map(|poll| poll.child).collect()
}

impl Drop for Root {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// The output of a future that triggers a graceful shutdown, which names the cause.
///
/// The cause is logged when the stop begins: `shutting down child=app cause="SIGTERM"`. A future
/// that resolves to `()` has the cause `graceful shutdown`. A future that resolves to a string, or
/// to an [`OsSignal`](crate::app::OsSignal) as [`signals`](crate::signals) does, names its own. Implement
/// this trait for a type that should do the same.
///
/// ```
/// use std::future::Future;
///
/// use verger::signals;
///
/// /// Resolves at a signal, or when the disk is full.
/// async fn shutdown(disk_full: impl Future<Output = ()>) -> String {
///     tokio::select! {
///         signal = signals() => signal.to_string(),
///         () = disk_full => "the disk is full".to_owned(),
///     }
/// }
///
/// # async fn f(tree: verger::Supervisor) -> Result<(), verger::RunError> {
/// # let disk_full = std::future::pending();
/// tree.with_graceful_shutdown(shutdown(disk_full)).await
/// # }
/// ```
pub trait StopCause {
    /// Returns the text that is logged as the cause, such as `SIGTERM`.
    fn cause(&self) -> Cow<'_, str>;

    /// Returns the exit code of a program that stops in order for this cause. Default: 0.
    ///
    /// A code above 0 is for a stop that nobody has requested: the result is
    /// [`RunError::StoppedFor`](crate::RunError::StoppedFor), so that a service manager which restarts the program after
    /// failures does so.
    fn exit_code(&self) -> u8 {
        0
    }
}

impl StopCause for () {
    fn cause(&self) -> Cow<'_, str> {
        Cow::Borrowed("graceful shutdown")
    }
}

impl StopCause for &str {
    fn cause(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
}

impl StopCause for String {
    fn cause(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_its_own_cause_and_the_empty_tuple_has_a_default() {
        assert_eq!(().cause(), "graceful shutdown");
        assert_eq!("the disk is full".cause(), "the disk is full");
        assert_eq!("the disk is full".to_owned().cause(), "the disk is full");
    }
}
