//! Tasks that belong to a supervisor's loop.

use std::future::Future;

use tokio::task::{AbortHandle, JoinSet};

use crate::named_task;

/// Tasks that are aborted when the set is dropped.
#[derive(Debug, Default)]
pub(super) struct TaskSet(Option<JoinSet<()>>);

impl TaskSet {
    pub(super) fn spawn(
        &mut self,
        name: impl FnOnce() -> String,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> AbortHandle {
        let tasks = self.0.get_or_insert_default();
        while tasks.try_join_next().is_some() {}
        let shown = name();
        let named = shown.clone();
        let task = async move {
            let _ = named_task::reported(&named, "it is gone", task).await;
        };
        named_task::spawn_in(tasks, || shown, task)
    }

    /// Waits until all tasks have ended.
    pub(super) async fn until_ended(&mut self) {
        while let Some(tasks) = &mut self.0
            && tasks.join_next().await.is_some()
        {}
    }
}
