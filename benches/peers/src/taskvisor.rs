//! taskvisor: tasks are added one at a time to a supervisor that serves.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use taskvisor::{
    BackoffPolicy, Event, Subscribe, Supervisor, SupervisorConfig, SupervisorHandle, TaskError,
    TaskFn, TaskSpec,
};

use crate::board::{self, live};
use crate::peer::{Clock, Peer, Plan};
use crate::probe::{Probe, Verdict};

pub struct Taskvisor;

impl Peer for Taskvisor {
    const PACKAGES: &[&str] = &["taskvisor"];
    const CLOCK: Clock = Clock::Real;
    type Tree = SupervisorHandle;

    async fn start(plan: Plan) -> SupervisorHandle {
        let supervisor = Supervisor::new(SupervisorConfig::default(), vec![Arc::new(Listener)]);
        let handle = supervisor.serve().expect("it hasn't run before");
        let retries = u32::try_from(plan.restarts).ok().and_then(NonZeroU32::new);
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

    async fn start_nested(_inner: Plan) -> SupervisorHandle {
        unreachable!("declined")
    }

    fn declines(probe: Probe) -> Option<Verdict> {
        Some(match probe {
            Probe::Group | Probe::Busy | Probe::Finished | Probe::Hung | Probe::Twice => {
                Verdict::not_claimed("there are no groups: a task is retried alone")
            }
            Probe::Window => Verdict::not_claimed(
                "a limit has no period: it is \"for one failure streak\", and a success ends it",
            ),
            Probe::Escalation => Verdict::not_claimed(
                "supervisors aren't nested; a task that isn't retried any more has an outcome",
            ),
            _ => return None,
        })
    }

    fn disclaims(probe: Probe) -> Option<&'static str> {
        match probe {
            Probe::Start => Some("`add` waits until the task is registered"),
            Probe::Order => Some("a task is registered, not ready"),
            Probe::Reverse => Some("one cancellation and one grace for all tasks"),
            _ => None,
        }
    }
}

struct Listener;

impl Subscribe for Listener {
    fn on_event(&self, event: &Event) {
        board::saw("an event", format!("{event:?}"));
    }
}
