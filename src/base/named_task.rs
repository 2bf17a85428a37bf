//! Tasks with names, which tokio-console shows, and tasks that belong to a value.
//!
//! tokio names tasks in programs that are built with `--cfg tokio_unstable` only. In all others, no name is
//! made.

use std::future::Future;

use tokio::task::{AbortHandle, JoinError, JoinHandle, JoinSet};

/// Spawns a task.
///
/// # Panics
///
/// Outside of a tokio runtime, as `tokio::spawn` does.
pub(crate) fn spawn<T: Send + 'static>(
    name: impl FnOnce() -> String,
    task: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    #[cfg(tokio_unstable)]
    {
        let spawned = tokio::task::Builder::new().name(&name()).spawn(task);
        spawned.expect("a task that isn't blocking is always spawned")
    }
    #[cfg(not(tokio_unstable))]
    {
        drop(name);
        #[expect(clippy::disallowed_methods, reason = "the callers say why")]
        tokio::spawn(task)
    }
}

/// Spawns a task in a set.
pub(crate) fn spawn_in<T: Send + 'static>(
    tasks: &mut JoinSet<T>,
    name: impl FnOnce() -> String,
    task: impl Future<Output = T> + Send + 'static,
) -> AbortHandle {
    #[cfg(tokio_unstable)]
    {
        let spawned = tasks.build_task().name(&name()).spawn(task);
        spawned.expect("a task that isn't blocking is always spawned")
    }
    #[cfg(not(tokio_unstable))]
    {
        drop(name);
        tasks.spawn(task)
    }
}

/// Runs a closure on a thread that may block.
pub(crate) fn spawn_blocking<T: Send + 'static>(
    name: impl FnOnce() -> String,
    closure: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    #[cfg(tokio_unstable)]
    {
        let spawned = tokio::task::Builder::new().name(&name()).spawn_blocking(closure);
        // As `tokio::task::spawn_blocking` does.
        spawned.unwrap_or_else(|error| panic!("can't start a thread: {error}"))
    }
    #[cfg(not(tokio_unstable))]
    {
        drop(name);
        tokio::task::spawn_blocking(closure)
    }
}

/// A task that belongs to a value. Dropping it aborts the task.
#[derive(Debug)]
pub(crate) struct OwnedTask<T>(JoinHandle<T>);

impl<T: Send + 'static> OwnedTask<T> {
    /// Spawns the task. `name` says what it is for.
    pub(crate) fn spawn(
        name: &'static str,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the task is aborted when this drops")]
        Self(spawn(|| name.to_owned(), future))
    }
}

impl<T> OwnedTask<T> {
    /// Waits until the task has ended. Cancel safe.
    pub(crate) async fn join(&mut self) -> Result<T, JoinError> {
        (&mut self.0).await
    }

    /// Aborts the task, and waits until it has ended.
    pub(crate) async fn stop(mut self) {
        self.0.abort();
        let _ = self.join().await;
    }
}

impl<T> Drop for OwnedTask<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
