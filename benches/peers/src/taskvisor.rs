//! taskvisor: tasks are added one at a time to a supervisor that serves.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use taskvisor::{
    BackoffPolicy, Event, Subscribe, Supervisor, SupervisorConfig, SupervisorHandle, TaskError,
    TaskFn, TaskSpec,
};

use crate::board::{self, live};
use crate::peer::{GROUP, Notes, Peer, Plan};

pub struct Taskvisor;

impl Peer for Taskvisor {
    const PACKAGES: &[&str] = &["taskvisor"];
    const PAUSED: bool = false;
    const UNCLAIMED: Notes = &[
        (GROUP, "there are no groups: a task is retried alone"),
        (
            "window",
            "a limit has no period: it is \"for one failure streak\", and a success ends it",
        ),
        (
            "escalation",
            "supervisors aren't nested; a task that isn't retried any more has an outcome",
        ),
    ];
    const DISCLAIMED: Notes = &[
        ("start", "`add` waits until the task is registered"),
        ("order", "a task is registered, not ready"),
        ("reverse", "one cancellation and one grace for all tasks"),
    ];
    type Tree = SupervisorHandle;

    async fn start(plan: Plan) -> SupervisorHandle {
        let supervisor = Supervisor::new(SupervisorConfig::default(), vec![Arc::new(Listener)]);
        let handle = supervisor.serve().expect("it hasn't run before");
        let retries = NonZeroU32::new(plan.restarts);
        for child in plan.children {
            let task = TaskFn::arc(move |ctx| async move {
                let lived = live(child, || {}, ctx.cancelled()).await;
                lived.map_err(TaskError::fail_from)?;
                if ctx.is_cancelled() { Err(TaskError::Canceled) } else { Ok(()) }
            });
            let spec = TaskSpec::restartable(child.name, task)
                .with_max_retries(retries)
                .with_backoff(BackoffPolicy::constant(Duration::ZERO));
            handle.add(spec).execute().await.expect("each name is used once");
        }
        handle
    }

    async fn stop(tree: SupervisorHandle) {
        tree.shutdown().await.expect("the tasks stop in time");
    }
}

struct Listener;

impl Subscribe for Listener {
    fn on_event(&self, event: &Event) {
        board::saw("an event", format!("{event:?}"));
    }
}
