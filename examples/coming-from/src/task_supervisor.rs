//! Listings of `book/src/coming/task-supervisor.md`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use task_supervisor::{
    CancellationToken, SupervisedTask, SupervisorBuilder, SupervisorHandle, SupervisorHandleError,
    TaskError, TaskResult,
};

#[derive(Clone)]
struct Importer {
    rows: Arc<AtomicU32>,
}

impl SupervisedTask for Importer {
    async fn run(self, cancel: CancellationToken) -> TaskResult {
        cancel.run_until_cancelled(import(&self.rows)).await.unwrap_or(Ok(()))
    }
}

fn start(importer: Importer) -> SupervisorHandle {
    SupervisorBuilder::new()
        .with_restart_limit(5, Duration::from_secs(60))
        .with_base_restart_delay(Duration::from_secs(1))
        .with_max_restart_delay(Duration::from_secs(30))
        .with_restart_jitter(0.0)
        .with_stop_timeout(Duration::from_secs(5))
        .with_task("importer", importer)
        .spawn()
}

async fn change(handle: &SupervisorHandle, second: Importer) -> Result<(), SupervisorHandleError> {
    handle.add_task("second", second).await?;
    handle.restart_task("second").await?;
    println!("{}", handle.task_status("second").await?);
    handle.kill_task("second").await
}

/// Imports a row each second, and fails at every third.
async fn import(rows: &AtomicU32) -> Result<(), TaskError> {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if rows.fetch_add(1, Ordering::Relaxed) % 3 == 2 {
            return Err("the server closed the connection".into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_task_is_restarted_until_its_limit_is_reached() {
        let importer = Importer { rows: Arc::default() };
        let rows = importer.rows.clone();
        let handle = start(importer);
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert_eq!(rows.load(Ordering::Relaxed), 18, "six runs of three rows");
        assert_eq!(handle.task_status("importer").await.unwrap().to_string(), "dead");
        handle.shutdown().await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn tasks_come_and_go() {
        let handle = start(Importer { rows: Arc::default() });
        change(&handle, Importer { rows: Arc::default() }).await.unwrap();
        assert_eq!(handle.task_status("second").await.unwrap().to_string(), "dead");
        handle.shutdown().await.unwrap();
    }
}
