//! task-supervisor: tasks known to its builder; where children are added, by its handle.

use std::marker::PhantomData;
use std::time::Duration;

use task_supervisor::{
    CancellationToken, SupervisedTask, SupervisorBuilder, SupervisorHandle, TaskResult,
};

use super::child::Life;
use super::peer::{Peer, name};
use super::work::Work;
use crate::peer::Strategy;

pub struct TaskSupervisor;

pub const NOTE: &str = "\
tasks known to the builder; added by its handle. Unlimited restarts, no delay and no jitter; a restart goes through a timer \
all the same, of which the shortest is a millisecond. Stops all at once. It has no trees, groups, messages or names.";

impl Peer for TaskSupervisor {
    type Tree = SupervisorHandle;

    fn can(work: Work) -> bool {
        matches!(work, Work::Idle(_) | Work::Restart(_) | Work::Storm(_) | Work::CrashLoop)
    }

    async fn start<L: Life>(n: usize, _strategy: Strategy) -> SupervisorHandle {
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
