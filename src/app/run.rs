//! Runs a tree as a program: to its end, until a graceful shutdown, or behind a handle.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::process::ExitCode;
use std::time::Duration;

use super::root::Root;
use super::stop_cause::StopCause;
use crate::error::{RunError, StartError};
use crate::handle::SupervisorHandle;
use crate::spec::Supervisor;

/// How long a graceful shutdown may take, unless the tree sets a `stop_deadline`.
const SHUTDOWN: Duration = Duration::from_secs(45);

impl Supervisor {
    /// Starts the tree, and returns a handle when the start has passed the last child.
    ///
    /// The start passes a child when that child is active, is down for good, or requires a child
    /// that is down for good. A child that fails meanwhile is waited for as long as it is
    /// restarted.
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
        Root::spawn(self.blueprint())
    }

    /// Runs the tree until it ends by itself.
    ///
    /// A tree ends when it gives up, when its significant children have ended (with
    /// [`auto_shutdown`](crate::SupervisorBuilder::auto_shutdown)), or when a child stops it
    /// through [`Context::parent`](crate::Context::parent).
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

    /// Runs the tree and returns the exit code for `main`.
    ///
    /// If the tree ends with an error, the error is printed to stderr.
    ///
    /// | code | meaning |
    /// | --- | --- |
    /// | 0 | the tree finished, or was stopped |
    /// | 1 | the tree gave up, could not start, or was aborted |
    /// | 3 | the tree was stopped, but a child leaked |
    /// | the one that was set | a child failed too often, with [`OnExhausted::Exit`] |
    ///
    /// [`OnExhausted::Exit`]: crate::policy::OnExhausted::Exit
    ///
    /// A child that blocks its thread would keep the runtime, and so the process, from ending.
    /// If a child has leaked, this method exits the process instead of returning.
    ///
    /// # Panics
    ///
    /// As for [`run`](Self::run).
    pub async fn run_to_exit_code(self) -> ExitCode {
        let root = self.spawn();
        let result = root.handle().wait().await;
        exit_code(result, &root)
    }

    /// Runs the tree until `shutdown` resolves, and then stops it in order.
    ///
    /// The output of the future is the [cause](StopCause) that is logged. The stop may take 45 s,
    /// or the tree's [`stop_deadline`](crate::SupervisorBuilder::stop_deadline). Children that
    /// still run then are aborted.
    ///
    /// ```no_run
    /// # async fn f(tree: verger::Supervisor) -> Result<(), verger::RunError> {
    /// // Logs `shutting down supervisor=app cause=SIGTERM`.
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
#[must_use = "a tree does nothing until it is run"]
pub struct GracefulShutdown<F> {
    tree: Supervisor,
    shutdown: F,
}

impl<F: Future<Output: StopCause> + Send + 'static> GracefulShutdown<F> {
    /// Runs the tree and returns the exit code for `main`.
    ///
    /// The codes are those of [`Supervisor::run_to_exit_code`].
    ///
    /// # Panics
    ///
    /// As for [`Supervisor::run`].
    pub async fn run_to_exit_code(self) -> ExitCode {
        let (result, root) = self.run().await;
        exit_code(result, &root)
    }

    async fn run(self) -> (Result<(), RunError>, Root) {
        let within = self.tree.blueprint().rules.stop_deadline.unwrap_or(SHUTDOWN);
        let root = self.tree.spawn();
        let handle = root.handle();
        // A text, because the output itself need not be `Send`.
        let cause = async { self.shutdown.await.cause().into_owned() };
        let result = tokio::select! {
            result = handle.wait() => result,
            cause = cause => {
                root.stop(&cause, within);
                handle.wait().await
            }
        };
        (result, root)
    }
}

impl<F: Future<Output: StopCause> + Send + 'static> IntoFuture for GracefulShutdown<F> {
    type Output = Result<(), RunError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async { self.run().await.0 })
    }
}

impl<F> fmt::Debug for GracefulShutdown<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GracefulShutdown").field("tree", &self.tree).finish_non_exhaustive()
    }
}

#[expect(clippy::print_stderr, reason = "what `main` would print if it returned the error")]
fn exit_code(result: Result<(), RunError>, root: &Root) -> ExitCode {
    let code = match result {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("Error: {error}");
            error.exit_code()
        }
    };
    // Dropping the runtime would wait for the threads that leaked children block.
    if root.has_leaked() {
        std::process::exit(code.into());
    }
    code.into()
}
