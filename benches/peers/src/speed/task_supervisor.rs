//! task-supervisor: tasks known to its builder or, where children are added, to its handle.

use std::marker::PhantomData;
use std::time::Duration;

use task_supervisor::{
    CancellationToken, SupervisedTask, SupervisorBuilder, SupervisorHandle, TaskResult,
};

use super::child::Life;
use super::peer::{Peer, name};

pub struct TaskSupervisor;

impl Peer for TaskSupervisor {
    const NAME: &str = "task-supervisor";
    const PACKAGES: &[&str] = &["task-supervisor"];
    const LACKS: &[&str] = &["one-for-all", "deep", "wide", "message", "ask", "lookup"];
    type Tree = SupervisorHandle;

    async fn start<L: Life>(n: usize, _one_for_all: bool) -> SupervisorHandle {
        let builder = SupervisorBuilder::new()
            .with_unlimited_restarts()
            .with_base_restart_delay(Duration::ZERO)
            .with_restart_jitter(0.0);
        let child = |builder: SupervisorBuilder, index| {
            builder.with_task(&name(index), Worker::<L>(index, PhantomData))
        };
        (0..n).fold(builder, child).spawn()
    }

    async fn stop(tree: SupervisorHandle) {
        tree.shutdown().await.expect("nothing has failed in this tree");
    }

    async fn add<L: Life>(tree: &SupervisorHandle, index: usize) {
        let worker = Worker::<L>(index, PhantomData);
        tree.add_task(&name(index), worker).await.expect("each name is used once");
    }
}

struct Worker<L>(usize, PhantomData<fn() -> L>);

impl<L> Clone for Worker<L> {
    fn clone(&self) -> Self {
        Self(self.0, PhantomData)
    }
}

impl<L: Life> SupervisedTask for Worker<L> {
    async fn run(self, cancel: CancellationToken) -> TaskResult {
        L::live(self.0, cancel.cancelled()).await?;
        Ok(())
    }
}
