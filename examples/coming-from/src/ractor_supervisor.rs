//! Listings of `book/src/coming/ractor.md`, for ractor-supervisor.

use std::time::Duration;

use ractor::ActorRef;
use ractor_supervisor::{
    ChildBackoffFn, ChildSpec, DynamicSupervisor, DynamicSupervisorMsg, Restart, SpawnFn,
    Supervisor, SupervisorArguments, SupervisorOptions, SupervisorStrategy,
};

use crate::ractor::Counter;

fn counter(id: &str) -> ChildSpec {
    ChildSpec {
        id: id.to_owned(),
        restart: Restart::Permanent,
        spawn_fn: SpawnFn::new(|supervisor, id| async move {
            let (counter, _) = Supervisor::spawn_linked(id, Counter, (), supervisor).await?;
            Ok(counter.get_cell())
        }),
        backoff_fn: Some(ChildBackoffFn::new(|_, restarts, _, _| {
            Some(Duration::from_millis(200) * (1 << restarts.min(7)))
        })),
        reset_after: Some(Duration::from_secs(30)),
    }
}

fn app() -> SupervisorArguments {
    SupervisorArguments {
        child_specs: vec![counter("reads"), counter("writes")],
        options: SupervisorOptions {
            strategy: SupervisorStrategy::OneForAll,
            max_restarts: 5,
            max_window: Duration::from_secs(60),
            reset_after: None,
        },
    }
}

async fn join(
    members: ActorRef<DynamicSupervisorMsg>,
    name: &str,
) -> Result<(), ractor::ActorProcessingErr> {
    DynamicSupervisor::spawn_child(members.clone(), counter(name)).await?;
    DynamicSupervisor::terminate_child(members, name.to_owned()).await
}

#[cfg(test)]
mod tests {
    use ractor::{ActorCell, registry};
    use ractor_supervisor::DynamicSupervisorOptions;

    use super::*;
    use crate::ractor::Message;

    async fn find(name: &str, but: Option<&ActorCell>) -> ActorCell {
        loop {
            match registry::where_is(name) {
                Some(found) if Some(found.get_id()) != but.map(ActorCell::get_id) => return found,
                _ => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn both_are_restarted() {
        let (app, running) = Supervisor::spawn("app".into(), app()).await.unwrap();
        let (reads, writes) = (find("reads", None).await, find("writes", None).await);
        let reads_ref = ActorRef::<Message>::from(reads.clone());
        reads_ref.cast(Message::Add(u32::MAX)).unwrap();
        reads_ref.cast(Message::Add(1)).unwrap();
        find("reads", Some(&reads)).await;
        find("writes", Some(&writes)).await;
        app.stop(None);
        running.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn children_come_and_go() {
        let options = DynamicSupervisorOptions {
            max_children: Some(10),
            max_restarts: 5,
            max_window: Duration::from_secs(60),
            reset_after: None,
        };
        let (members, running) = DynamicSupervisor::spawn("members".into(), options).await.unwrap();
        join(members.clone(), "anna").await.unwrap();
        members.stop(None);
        running.await.unwrap();
    }
}
