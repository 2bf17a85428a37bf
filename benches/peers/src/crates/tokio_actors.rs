//! tokio-actors: a supervisor is an actor that spawns its children in `on_started`. Only probes run on
//! it.

use tokio_actors::actor::context::ActorContext;
use tokio_actors::actor::handle::ActorHandle;
use tokio_actors::actor::{Actor, ActorExt};
use tokio_actors::{
    ActorConfig, ActorError, ActorResult, ChildEvent, RestartType, StopReason, SupervisionConfig,
};

use crate::board::Probed;
use crate::child::{Life, Order};
use crate::peer::{LONG, Peer, Plan, name, restart};
use crate::texts;

pub struct TokioActors;

impl Peer for TokioActors {
    const PACKAGES: &[&str] = &["tokio-actors"];
    const PAUSED: bool = true;
    type Tree = ActorHandle<Supervisor>;

    async fn start<L: Life>(plan: Plan) -> Self::Tree {
        let supervisor = Supervisor(plan).spawn().named("root").with_supervision(config(plan));
        supervisor.await.expect("on_started returns Ok")
    }

    async fn stop(tree: Self::Tree) {
        tree.stop(StopReason::Graceful).await.expect("it runs");
        tree.wait_stopped().await;
    }
}

fn config(plan: Plan) -> SupervisionConfig {
    let (restarts, period) = plan.limit((u32::MAX, LONG));
    let config = plan.strategy(SupervisionConfig::one_for_one(), SupervisionConfig::one_for_all());
    config.max_restarts(restarts, period)
}

pub struct Supervisor(Plan);

impl Actor for Supervisor {
    type Message = ();
    type Response = ();

    async fn on_started(&mut self, ctx: &mut ActorContext<Self>) -> ActorResult<()> {
        for index in 0..self.0.width() {
            if let Some(below) = self.0.below() {
                let config = ActorConfig::default().with_supervision(config(below));
                // Names are unique in a process.
                let child = ctx.spawn_child(move || Self(below)).named(format!("below-{index}"));
                child.with_config(config).await?;
            } else {
                let restart =
                    restart::<Probed, _>(index, RestartType::Permanent, RestartType::Transient);
                let child = ctx.spawn_child(move || Worker { index, life: None });
                child.named(name(index)).restart_type(restart).await?;
            }
        }
        Ok(())
    }

    async fn on_child_stopped(
        &mut self,
        event: &ChildEvent,
        _ctx: &mut ActorContext<Self>,
    ) -> ActorResult<()> {
        texts::saw("the hook `on_child_stopped`", &event.reason);
        Ok(())
    }

    async fn handle(&mut self, (): (), _ctx: &mut ActorContext<Self>) -> ActorResult<()> {
        Ok(())
    }
}

struct Worker {
    index: usize,
    /// `Some` from `on_started` on.
    life: Option<Probed>,
}

impl Actor for Worker {
    type Message = Order;
    type Response = ();

    async fn on_started(&mut self, ctx: &mut ActorContext<Self>) -> ActorResult<()> {
        let this = ctx.self_handle();
        let send = move |order| this.try_notify(order);
        self.life = Some(Probed::begin(self.index, send).await);
        Ok(())
    }

    async fn handle(&mut self, order: Order, ctx: &mut ActorContext<Self>) -> ActorResult<()> {
        let after = Probed::obey(order).await;
        if after.map_err(|error| ActorError::user(error.to_string()))?.is_break() {
            let stopped = ctx.self_handle().stop(StopReason::Graceful).await;
            stopped.map_err(|_| ActorError::user("stopped twice"))?;
        }
        Ok(())
    }

    async fn on_stopped(
        &mut self,
        _reason: &StopReason,
        _ctx: &mut ActorContext<Self>,
    ) -> ActorResult<()> {
        if let Some(life) = &self.life {
            life.clean_up().await;
        }
        Ok(())
    }
}
