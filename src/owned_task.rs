//! A task that belongs to a value, and ends with it.

use tokio::task::{JoinError, JoinHandle};

use crate::named_task;

/// Dropping it aborts the task.
#[derive(Debug)]
pub(crate) struct OwnedTask<T>(JoinHandle<T>);

impl<T: Send + 'static> OwnedTask<T> {
    /// Spawns the task. `name` says what it is for.
    pub(crate) fn spawn(
        name: &'static str,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the task is aborted when this drops")]
        Self(named_task::spawn(|| name.to_owned(), future))
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
