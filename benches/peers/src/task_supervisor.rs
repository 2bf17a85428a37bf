//! task-supervisor: tasks are added one at a time, which its handle can be waited for.

use std::time::Duration;

use task_supervisor::{
    CancellationToken, SupervisedTask, SupervisorBuilder, SupervisorHandle, TaskResult,
};

use crate::board::live;
use crate::peer::{ChildPlan, Clock, Peer, Plan};
use crate::probe::{Probe, Verdict};

pub struct TaskSupervisor;

impl Peer for TaskSupervisor {
    const PACKAGES: &[&str] = &["task-supervisor"];
    const CLOCK: Clock = Clock::Paused;
    type Tree = SupervisorHandle;

    async fn start(plan: Plan) -> SupervisorHandle {
        let restarts = u32::try_from(plan.restarts).expect("limits are small");
        let handle = SupervisorBuilder::new()
            .with_restart_limit(restarts, plan.period)
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

    async fn start_nested(_inner: Plan) -> SupervisorHandle {
        unreachable!("declined")
    }

    fn declines(probe: Probe) -> Option<Verdict> {
        Some(match probe {
            Probe::Group | Probe::Busy | Probe::Finished | Probe::Hung | Probe::Twice => {
                Verdict::not_claimed("there are no groups: a task is restarted alone")
            }
            Probe::Escalation => Verdict::not_claimed(
                "supervisors aren't nested; one can end when too large a part of its tasks is dead",
            ),
            _ => return None,
        })
    }

    fn disclaims(probe: Probe) -> Option<&'static str> {
        match probe {
            Probe::Start => Some("a task is *running* once it has been spawned"),
            Probe::Order => {
                Some("a task is *running* once it has been spawned, not once it is ready")
            }
            Probe::Reverse => Some("a shutdown cancels the tokens of all tasks"),
            _ => None,
        }
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
