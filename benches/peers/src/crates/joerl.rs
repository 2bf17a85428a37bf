//! joerl: actors under its supervisor. An error is an abnormal reason to stop.

use std::sync::Arc;

use async_trait::async_trait;
use joerl::supervisor::{ChildSpec, RestartIntensity, Supervisor, spawn_supervisor};
use joerl::{
    Actor, ActorContext, ActorRef, ActorSystem, ExitReason, Message, RestartStrategy,
    SupervisorSpec,
};

use crate::child::{Life, Order};
use crate::peer::{LONG, Peer, Plan, name};

pub struct Joerl;

impl Peer for Joerl {
    const PACKAGES: &[&str] = &["joerl"];
    type Tree = (Arc<ActorSystem>, ActorRef);

    async fn start<L: Life>(plan: Plan) -> Self::Tree {
        let system = ActorSystem::new();
        let supervisor = spawn_supervisor(&system, spec::<L>(&system, plan));
        (system, supervisor)
    }

    async fn stop(_tree: Self::Tree) {
        unreachable!("nothing public stops a supervisor")
    }
}

fn spec<L: Life>(system: &Arc<ActorSystem>, plan: Plan) -> SupervisorSpec {
    let (restarts, period) = plan.limit((u32::MAX, LONG));
    let intensity =
        RestartIntensity { max_restarts: restarts as usize, within_seconds: period.as_secs() };
    let strategy = plan.strategy(RestartStrategy::OneForOne, RestartStrategy::OneForAll);
    let above = SupervisorSpec::new(strategy).intensity(intensity);
    (0..plan.width()).fold(above, |above, index| {
        let system = Arc::clone(system);
        above.child(ChildSpec::new(name(index), move || match plan.below() {
            None => Box::new(Worker::<L> { index, system: Arc::clone(&system), life: None }),
            Some(below) => {
                Box::new(Supervisor::from_spec(spec::<L>(&system, below), Arc::clone(&system)))
            }
        }))
    })
}

struct Worker<L> {
    index: usize,
    system: Arc<ActorSystem>,
    /// `Some` from `started` on.
    life: Option<L>,
}

#[async_trait]
impl<L: Life> Actor for Worker<L> {
    async fn started(&mut self, ctx: &mut ActorContext) {
        let (system, this) = (Arc::clone(&self.system), ctx.pid());
        let send = move |order| system.try_send(this, Box::new(order));
        self.life = Some(L::begin(self.index, send).await);
    }

    async fn handle_message(&mut self, message: Message, ctx: &mut ActorContext) {
        let order = message.downcast::<Order>().expect("nothing else is sent");
        match L::obey(*order).await {
            Ok(after) if after.is_continue() => {}
            Ok(_) => ctx.stop(ExitReason::Normal),
            Err(error) => ctx.stop(ExitReason::Custom(error.to_string())),
        }
    }

    async fn stopped(&mut self, _reason: &ExitReason, _ctx: &mut ActorContext) {
        if let Some(life) = &self.life {
            life.clean_up().await;
        }
    }
}
