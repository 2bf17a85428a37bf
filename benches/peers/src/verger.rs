//! verger: children implement its trait, and are restarted without backoff.

use std::time::Duration;

use tokio::sync::mpsc;
use verger::{
    Backoff, Child, Context, Exit, RestartType, Supervisor, SupervisorBuilder, SupervisorHandle,
    async_trait, child,
};

use crate::board::{self, After, Order, Run};
use crate::peer::{ChildPlan, Peer, Plan};

pub struct Verger;

impl Peer for Verger {
    const PACKAGES: &[&str] = &["verger"];
    const PAUSED: bool = true;
    type Tree = SupervisorHandle;

    async fn start(plan: Plan) -> SupervisorHandle {
        up(supervisor("root", plan)).await
    }

    async fn stop(tree: SupervisorHandle) {
        tree.stop("the probe is over").await.expect("nothing has failed in this tree");
    }

    async fn start_nested(inner: Plan) -> SupervisorHandle {
        let inner = supervisor("inner", inner).into_child().backoff(Backoff::none());
        up(Supervisor::builder("root").restarts(10, Duration::from_secs(300)).child(inner)).await
    }
}

async fn up(builder: SupervisorBuilder) -> SupervisorHandle {
    let tree = builder.build().expect("the plan is legal");
    let handle = tree.start().await.expect("no first start fails");
    let mut events = handle.events();
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            board::saw("an event", format!("{event:?}"));
        }
    });
    handle
}

fn supervisor(name: &str, plan: Plan) -> SupervisorBuilder {
    let strategy =
        if plan.one_for_all { verger::Strategy::OneForAll } else { verger::Strategy::OneForOne };
    let builder = Supervisor::builder(name).strategy(strategy).restarts(plan.restarts, plan.period);
    plan.children.into_iter().fold(builder, |builder, plan| {
        let restart = if plan.transient { RestartType::Transient } else { RestartType::Permanent };
        let spec = child(plan.name, move || Worker { plan, life: None });
        builder.child(spec.restart(restart).backoff(Backoff::none()))
    })
}

struct Worker {
    plan: ChildPlan,
    /// `Some` from `activate` on.
    life: Option<(Run, mpsc::UnboundedReceiver<Order>)>,
}

#[async_trait]
impl Child for Worker {
    async fn activate(&mut self, _ctx: &Context) -> Exit {
        let (orders, told) = mpsc::unbounded_channel();
        let run = Run::started(self.plan, move |order| orders.send(order));
        run.set_up().await;
        self.life = Some((run, told));
        Ok(())
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        let (_, told) = self.life.as_mut().expect("activate has returned");
        while let Some(Some(order)) = ctx.run_until_cancelled(told.recv()).await {
            if order.carry_out().await? == After::Ends {
                break;
            }
        }
        Ok(())
    }

    async fn deactivate(&mut self, _ctx: &Context) -> Exit {
        let (run, _) = self.life.as_ref().expect("activate has returned");
        run.clean_up().await;
        Ok(())
    }
}
