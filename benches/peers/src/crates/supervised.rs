//! supervised: services that report when they are ready, and one service that requests the shutdown.

use std::time::Duration;

use supervised::{
    Context, ErrorAction, RestartPolicy, ServiceExt, ServiceOutcome, SupervisorBuilder,
    SupervisorReadiness, service_fn,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::child::Life;
use crate::peer::{LONG, Peer, Plan, name};
use crate::texts;

pub struct Supervised;

impl Peer for Supervised {
    const PACKAGES: &[&str] = &["supervised"];
    const PAUSED: bool = true;
    type Tree = (CancellationToken, JoinHandle<()>);

    async fn start<L: Life>(plan: Plan) -> Self::Tree {
        let (restarts, _) = plan.limit((u32::MAX, LONG));
        let restarts =
            RestartPolicy::attempts(restarts as usize, Duration::ZERO, ErrorAction::Shutdown);
        let stop = CancellationToken::new();
        let requested = stop.clone();
        let builder = SupervisorBuilder::new(()).default_restart_policy(restarts);
        let builder = builder.add(service_fn("stop", move |ctx: Context<()>| {
            let requested = requested.clone();
            async move {
                let requested = ctx.token().run_until_cancelled(requested.cancelled()).await;
                requested
                    .map_or(ServiceOutcome::Cancelled, |()| ServiceOutcome::requested_shutdown())
            }
        }));
        let service = |builder: SupervisorBuilder<()>, index| {
            let service = service_fn(name(index).leak(), move |ctx: Context<()>| async move {
                let ready = ctx.readiness().clone();
                L::live(index, move || ready.mark_ready(), ctx.token().cancelled()).await
            });
            builder.add(service.when_ready())
        };
        let supervisor = (0..plan.width()).fold(builder, service).build();

        let mut readiness = supervisor.readiness();
        let running = tokio::spawn(async move {
            let summary = supervisor.run().await.expect("there are services");
            texts::saw("the summary", format!("{summary:?}"));
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
