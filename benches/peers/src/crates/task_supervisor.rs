//! task-supervisor: tasks known to its builder. A probe adds each to the handle, and waits for that.

use std::marker::PhantomData;
use std::time::Duration;

use task_supervisor::{
    CancellationToken, SupervisedTask, SupervisorBuilder, SupervisorHandle, TaskResult,
};

use crate::child::Life;
use crate::peer::{Peer, Plan, name};

pub struct TaskSupervisor;

impl Peer for TaskSupervisor {
    const PACKAGES: &[&str] = &["task-supervisor"];
    const PAUSED: bool = true;
    const LACKS: &[&str] = &["one-for-all", "deep", "wide", "message", "ask", "lookup"];
    type Tree = SupervisorHandle;

    async fn start<L: Life>(plan: Plan) -> SupervisorHandle {
        let builder = SupervisorBuilder::new()
            .with_base_restart_delay(Duration::ZERO)
            .with_restart_jitter(0.0);
        let builder = match plan.limit {
            Some((restarts, period)) => builder.with_restart_limit(restarts, period),
            None => builder.with_unlimited_restarts(),
        };
        if L::PROBED {
            let handle = builder.spawn();
            for index in 0..plan.width() {
                Self::add::<L>(&handle, index).await;
            }
            return handle;
        }
        let child = |builder: SupervisorBuilder, index| {
            builder.with_task(&name(index), Worker::<L>(index, PhantomData))
        };
        (0..plan.width()).fold(builder, child).spawn()
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
        L::live(self.0, || (), cancel.cancelled()).await?;
        Ok(())
    }
}
