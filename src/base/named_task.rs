//! Tasks with names, which tokio-console shows, and tasks that belong to a value.
//!
//! tokio names tasks in programs that are built with `--cfg tokio_unstable` only. In all others, no name is
//! made.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinError, JoinHandle, JoinSet};

use crate::panic::{CatchPanic, PanicMessage};
use crate::subscriber;

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

/// Spawns a task on this runtime. The caller may run on a different one.
pub(crate) fn spawn_on<T: Send + 'static>(
    runtime: &Handle,
    name: impl FnOnce() -> String,
    task: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    #[cfg(tokio_unstable)]
    {
        let spawned = tokio::task::Builder::new().name(&name()).spawn_on(task, runtime);
        spawned.expect("a task that isn't blocking is always spawned")
    }
    #[cfg(not(tokio_unstable))]
    {
        drop(name);
        runtime.spawn(task)
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

/// How long a task that has panicked waits until it runs again, so that it doesn't become a busy loop.
const AGAIN: Duration = Duration::from_secs(1);

/// Runs the future of a task of the library's. Its panic has a line with the name of the task, because nothing else
/// notices that the task is gone.
pub(crate) async fn reported<T>(
    name: &str,
    then: &'static str,
    future: impl Future<Output = T> + Send,
) -> Result<T, PanicMessage> {
    CatchPanic(Box::pin(future)).await.inspect_err(|panic| {
        let cause = panic.to_string();
        subscriber::error!(
            target: "verger::lifecycle",
            task = name, cause, then, "an internal task has panicked"
        );
    })
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
        let task = async move {
            match reported(name, "it is gone", future).await {
                Ok(output) => output,
                Err(panic) => resume_unwind(Box::new(panic.to_string())),
            }
        };
        #[expect(clippy::disallowed_methods, reason = "the task is aborted when this drops")]
        Self(spawn(|| name.to_owned(), task))
    }
}

impl OwnedTask<()> {
    /// Spawns a task that runs again after a panic, with what `state` is then. `name` says what it is for.
    pub(crate) fn restarted<S: Send + 'static>(
        name: &'static str,
        mut state: S,
        run: for<'a> fn(&'a mut S) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>,
    ) -> Self {
        Self::spawn(name, async move {
            while reported(name, "it is restarted", run(&mut state)).await.is_err() {
                tokio::time::sleep(AGAIN).await;
            }
        })
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

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_runs_again_with_its_state() {
        let mut task = OwnedTask::restarted("test", 0, |attempts| {
            Box::pin(async move {
                *attempts += 1;
                assert!(*attempts == 3, "on purpose");
            })
        });
        let began = crate::clock::now();
        task.join().await.unwrap();
        assert_eq!(crate::clock::now() - began, 2 * AGAIN);
    }
}
