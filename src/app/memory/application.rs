//! The memory guard of an application.

use std::future::pending;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::sleep;

use super::{MemoryGuard, MemoryPressure};
use crate::Application;
use crate::app::companion::{Companion, RunStart, companion};
use crate::error::RunError;
use crate::handle::SupervisorHandle;
use crate::spec::Supervisor;
use crate::subscriber;

/// How long the guard waits after it has restarted a child.
const AFTER_RESTART: Duration = Duration::from_secs(60);

impl Application {
    /// Guards the memory: when its usage reaches a part of the limit, the tree is stopped in its stages, or a
    /// part of it is [restarted](MemoryGuard::restart).
    ///
    /// The cause of the stop is the usage: `memory at 92 % of 512 MiB (cgroup v2)`. The first signal after that is
    /// ignored, and the next one ends the process. Default: no guard.
    pub fn memory(mut self, guard: MemoryGuard) -> Self {
        self.companions.memory = companion(guard);
        self
    }
}

#[async_trait]
impl Companion for MemoryGuard {
    async fn prepare(&mut self, _tree: &mut Supervisor) -> Result<(), RunError> {
        self.check().map_err(|problem| RunError::MemoryGuard { problem: problem.to_string() })
    }

    fn start(&mut self, run: &mut RunStart<'_>) {
        run.stop_on(guarded(self.clone(), run.handle()));
    }
}

/// Resolves when the memory usage is a reason to stop. Restarts a part of the tree instead, if the guard says
/// so.
async fn guarded(guard: MemoryGuard, tree: SupervisorHandle) -> MemoryPressure {
    loop {
        // Its values were checked.
        let Ok(watch) = guard.clone().watch() else { return pending().await };
        let pressure = watch.await;
        let Some(child) = guard.restarts() else { return pressure };
        let usage = pressure.to_string();
        subscriber::warn!(target: "verger::memory", %child, usage, "restarting because of the memory usage");
        if let Err(error) = tree.restart(child).await {
            let error = error.to_string();
            subscriber::error!(target: "verger::memory", %child, error, "can't restart");
        }
        // A usage that has another cause must not restart the child all the time.
        sleep(AFTER_RESTART).await;
    }
}
