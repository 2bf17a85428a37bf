//! task-supervisor: tasks are added one at a time, each awaited through the handle.

use std::time::Duration;

use task_supervisor::{
    CancellationToken, SupervisedTask, SupervisorBuilder, SupervisorHandle, TaskResult,
};

use crate::board::live;
use crate::peer::{ChildPlan, GROUP, Notes, Peer, Plan};

pub struct TaskSupervisor;

impl Peer for TaskSupervisor {
    const PACKAGES: &[&str] = &["task-supervisor"];
    const PAUSED: bool = true;
    const UNCLAIMED: Notes = &[
        (GROUP, "there are no groups: a task is restarted alone"),
        (
            "escalation",
            "supervisors aren't nested; one can end when too large a part of its tasks is dead",
        ),
    ];
    const DISCLAIMED: Notes = &[
        ("start", "a task is *running* once it has been spawned"),
        ("order", "a task is *running* once it has been spawned, not once it is ready"),
        ("reverse", "a shutdown cancels the tokens of all tasks"),
    ];
    type Tree = SupervisorHandle;

    async fn start(plan: Plan) -> SupervisorHandle {
        let handle = SupervisorBuilder::new()
            .with_restart_limit(plan.restarts, plan.period)
            .with_base_restart_delay(Duration::ZERO)
            .with_restart_jitter(0.0)
            .spawn();
        for child in plan.children {
            handle.add_task(child.name, Worker(child)).await.expect("each name is used once");
        }
        handle
    }

    async fn stop(tree: SupervisorHandle) {
        tree.shutdown().await.expect("nothing has failed in this tree");
    }
}

#[derive(Clone)]
struct Worker(ChildPlan);

impl SupervisedTask for Worker {
    async fn run(self, cancel: CancellationToken) -> TaskResult {
        live(self.0, || {}, cancel.cancelled()).await?;
        Ok(())
    }
}
