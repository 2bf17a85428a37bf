//! supervised: services that report when they are ready, and one service that requests the shutdown.

use std::time::Duration;

use supervised::{
    Context, ErrorAction, RestartPolicy, ServiceExt, ServiceOutcome, SupervisorBuilder,
    SupervisorReadiness, service_fn,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::board::{self, live};
use crate::peer::{GROUP, Notes, Peer, Plan};

pub struct Supervised;

impl Peer for Supervised {
    const PACKAGES: &[&str] = &["supervised"];
    const PAUSED: bool = true;
    const UNCLAIMED: Notes = &[
        (GROUP, "there are no groups: a service is restarted alone"),
        ("window", "a limit has no period: \"retries a bounded number of times\""),
        ("escalation", "supervisors aren't nested; what isn't retried any more ends the whole run"),
    ];
    const DISCLAIMED: Notes = &[
        ("order", "readiness is one state of the whole, not an order"),
        ("reverse", "a shutdown cancels one token, which all services watch"),
    ];
    type Tree = (CancellationToken, JoinHandle<()>);

    async fn start(plan: Plan) -> Self::Tree {
        let stop = CancellationToken::new();
        let restarts =
            RestartPolicy::attempts(plan.restarts as usize, Duration::ZERO, ErrorAction::Shutdown);
        let mut builder = SupervisorBuilder::new(()).default_restart_policy(restarts);
        for child in plan.children {
            let service = service_fn(child.name, move |ctx: Context<()>| async move {
                let ready = ctx.readiness().clone();
                live(child, move || ready.mark_ready(), ctx.token().cancelled()).await
            });
            builder = builder.add(service.when_ready());
        }
        let asked = stop.clone();
        let supervisor = builder
            .add(service_fn("stop", move |ctx: Context<()>| {
                let asked = asked.clone();
                async move {
                    let asked = ctx.token().run_until_cancelled(asked.cancelled()).await;
                    asked.map_or(ServiceOutcome::Cancelled, |()| {
                        ServiceOutcome::requested_shutdown()
                    })
                }
            }))
            .build();

        let mut readiness = supervisor.readiness();
        let running = tokio::spawn(async move {
            let summary = supervisor.run().await.expect("there are services");
            board::saw("the summary", format!("{summary:?}"));
        });
        let ready = readiness.wait_for(|state| *state == SupervisorReadiness::Ready);
        ready.await.expect("it goes on running");
        (stop, running)
    }

    async fn stop((stop, running): Self::Tree) {
        stop.cancel();
        running.await.expect("nothing panics but children");
    }
}
