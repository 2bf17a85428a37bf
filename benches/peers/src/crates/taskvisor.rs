//! taskvisor: tasks are added one at a time to a supervisor that serves.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use taskvisor::{
    BackoffPolicy, Event, Subscribe, Supervisor, SupervisorConfig, SupervisorHandle, TaskError,
    TaskFn, TaskSpec,
};

use crate::child::Life;
use crate::peer::{LONG, Peer, Plan, name};
use crate::texts;

pub struct Taskvisor;

impl Peer for Taskvisor {
    const PACKAGES: &[&str] = &["taskvisor"];
    type Tree = SupervisorHandle;

    async fn start<L: Life>(plan: Plan) -> SupervisorHandle {
        let supervisor = Supervisor::new(SupervisorConfig::default(), vec![Arc::new(Listener)]);
        let handle = supervisor.serve().expect("it hasn't run before");
        let retries = NonZeroU32::new(plan.limit((u32::MAX, LONG)).0);
        for index in 0..plan.width() {
            let task = TaskFn::arc(move |ctx| async move {
                let lived = L::live(index, || (), ctx.cancelled()).await;
                lived.map_err(TaskError::fail_from)?;
                if ctx.is_cancelled() { Err(TaskError::Canceled) } else { Ok(()) }
            });
            let spec = TaskSpec::restartable(name(index), task)
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
        texts::saw("an event", format!("{event:?}"));
    }
}
