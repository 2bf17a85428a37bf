//! tokio-actors: a supervisor is an actor that spawns its children in `on_started`.

use std::time::Duration;

use tokio_actors::actor::context::ActorContext;
use tokio_actors::actor::handle::ActorHandle;
use tokio_actors::actor::{Actor, ActorExt};
use tokio_actors::{
    ActorConfig, ActorError, ActorResult, ChildEvent, RestartType, StopReason, SupervisionConfig,
};

use crate::board::{self, After, Order, Run};
use crate::peer::{ChildPlan, Notes, Peer, Plan};

pub struct TokioActors;

pub enum Tree {
    Flat(ActorHandle<Supervisor>),
    Nested(ActorHandle<Root>),
}

impl Peer for TokioActors {
    const PACKAGES: &[&str] = &["tokio-actors"];
    const PAUSED: bool = true;
    const DISCLAIMED: Notes = &[
        ("start", "`spawn_child` never awaits the child's `on_started`"),
        (
            "order",
            "\"initial sibling spawns during a supervisor's startup may overlap; only restarts \
             are strictly sequential\"",
        ),
    ];
    type Tree = Tree;

    async fn start(plan: Plan) -> Tree {
        let config = config(&plan);
        let supervisor = Supervisor(plan).spawn().named("root").with_supervision(config).await;
        Tree::Flat(supervisor.expect("on_started returns Ok"))
    }

    async fn stop(tree: Tree) {
        match tree {
            Tree::Flat(supervisor) => down(supervisor).await,
            Tree::Nested(supervisor) => down(supervisor).await,
        }
    }

    async fn start_nested(inner: Plan) -> Tree {
        let config = SupervisionConfig::one_for_one().max_restarts(10, Duration::from_secs(300));
        let root = Root(inner).spawn().named("root").with_supervision(config).await;
        Tree::Nested(root.expect("on_started returns Ok"))
    }
}

fn config(plan: &Plan) -> SupervisionConfig {
    let config = if plan.one_for_all {
        SupervisionConfig::one_for_all()
    } else {
        SupervisionConfig::one_for_one()
    };
    config.max_restarts(plan.restarts, plan.period)
}

async fn down<A: Actor>(supervisor: ActorHandle<A>) {
    supervisor.stop(StopReason::Graceful).await.expect("it runs");
    supervisor.wait_stopped().await;
}

pub struct Supervisor(Plan);

impl Actor for Supervisor {
    type Message = ();
    type Response = ();

    async fn on_started(&mut self, ctx: &mut ActorContext<Self>) -> ActorResult<()> {
        for child in self.0.children.clone() {
            let restart =
                if child.transient { RestartType::Transient } else { RestartType::Permanent };
            ctx.spawn_child(move || Worker { plan: child, run: None })
                .named(child.name)
                .restart_type(restart)
                .await?;
        }
        Ok(())
    }

    async fn on_child_stopped(
        &mut self,
        event: &ChildEvent,
        _ctx: &mut ActorContext<Self>,
    ) -> ActorResult<()> {
        board::saw("the hook `on_child_stopped`", event.reason.to_string());
        Ok(())
    }

    async fn handle(&mut self, (): (), _ctx: &mut ActorContext<Self>) -> ActorResult<()> {
        Ok(())
    }
}

/// A supervisor of a supervisor.
pub struct Root(Plan);

impl Actor for Root {
    type Message = ();
    type Response = ();

    async fn on_started(&mut self, ctx: &mut ActorContext<Self>) -> ActorResult<()> {
        let inner = self.0.clone();
        let config = ActorConfig::default().with_supervision(config(&inner));
        ctx.spawn_child(move || Supervisor(inner.clone()))
            .named("inner")
            .with_config(config)
            .await?;
        Ok(())
    }

    async fn handle(&mut self, (): (), _ctx: &mut ActorContext<Self>) -> ActorResult<()> {
        Ok(())
    }
}

struct Worker {
    plan: ChildPlan,
    /// `Some` from `on_started` on.
    run: Option<Run>,
}

impl Actor for Worker {
    type Message = Order;
    type Response = ();

    async fn on_started(&mut self, ctx: &mut ActorContext<Self>) -> ActorResult<()> {
        let this = ctx.self_handle();
        let run = Run::started(self.plan, move |order| this.try_notify(order));
        run.set_up().await;
        self.run = Some(run);
        Ok(())
    }

    async fn handle(&mut self, order: Order, ctx: &mut ActorContext<Self>) -> ActorResult<()> {
        let after = order.carry_out().await.map_err(|error| ActorError::user(error.to_string()))?;
        if after == After::Ends {
            let this = ctx.self_handle();
            this.stop(StopReason::Graceful).await.map_err(|_| ActorError::user("stopped twice"))?;
        }
        Ok(())
    }

    async fn on_stopped(
        &mut self,
        _reason: &StopReason,
        _ctx: &mut ActorContext<Self>,
    ) -> ActorResult<()> {
        if let Some(run) = &self.run {
            run.clean_up().await;
        }
        Ok(())
    }
}
