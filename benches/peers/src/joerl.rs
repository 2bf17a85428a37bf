//! joerl: actors under its supervisor. An error is an abnormal reason to stop.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use joerl::supervisor::{ChildSpec, RestartIntensity, Supervisor, spawn_supervisor};
use joerl::{
    Actor, ActorContext, ActorRef, ActorSystem, ExitReason, Message, RestartStrategy,
    SupervisorSpec,
};

use crate::board::{After, Order, Run};
use crate::peer::{ChildPlan, Notes, Peer, Plan};

pub struct Joerl;

impl Peer for Joerl {
    const PACKAGES: &[&str] = &["joerl"];
    const PAUSED: bool = false;
    const IMPOSSIBLE: Notes =
        &[("clean-up reverse", "nothing that is public stops a supervisor from outside")];
    const DISCLAIMED: Notes = &[
        ("start", "children start when the supervisor \"is initialized\""),
        (
            "order",
            "children \"are started in the order they are added\"; that `started` is awaited in \
             between isn't said",
        ),
    ];
    type Tree = (Arc<ActorSystem>, ActorRef);

    async fn start(plan: Plan) -> Self::Tree {
        let system = ActorSystem::new();
        let supervisor = spawn_supervisor(&system, spec(&system, plan));
        (system, supervisor)
    }

    async fn stop(_tree: Self::Tree) {
        unreachable!("declined")
    }

    async fn start_nested(inner: Plan) -> Self::Tree {
        let system = ActorSystem::new();
        let of_inner = Arc::clone(&system);
        let inner = ChildSpec::new("inner", move || {
            let spec = spec(&of_inner, inner.clone());
            Box::new(Supervisor::from_spec(spec, Arc::clone(&of_inner)))
        });
        let root = SupervisorSpec::new(RestartStrategy::OneForOne)
            .intensity(intensity(10, Duration::from_secs(300)))
            .child(inner);
        let supervisor = spawn_supervisor(&system, root);
        (system, supervisor)
    }
}

fn intensity(max_restarts: usize, period: Duration) -> RestartIntensity {
    RestartIntensity { max_restarts, within_seconds: period.as_secs() }
}

fn spec(system: &Arc<ActorSystem>, plan: Plan) -> SupervisorSpec {
    let strategy =
        if plan.one_for_all { RestartStrategy::OneForAll } else { RestartStrategy::OneForOne };
    let spec =
        SupervisorSpec::new(strategy).intensity(intensity(plan.restarts as usize, plan.period));
    plan.children.into_iter().fold(spec, |spec, plan| {
        let system = Arc::clone(system);
        spec.child(ChildSpec::new(plan.name, move || {
            Box::new(Worker { plan, system: Arc::clone(&system), run: None })
        }))
    })
}

struct Worker {
    plan: ChildPlan,
    system: Arc<ActorSystem>,
    /// `Some` from `started` on.
    run: Option<Run>,
}

#[async_trait]
impl Actor for Worker {
    async fn started(&mut self, ctx: &mut ActorContext) {
        let (system, pid) = (Arc::clone(&self.system), ctx.pid());
        let run = Run::started(self.plan, move |order| system.try_send(pid, Box::new(order)));
        run.set_up().await;
        self.run = Some(run);
    }

    async fn handle_message(&mut self, message: Message, ctx: &mut ActorContext) {
        let order = message.downcast::<Order>().expect("nothing else is sent");
        match order.carry_out().await {
            Ok(After::GoesOn) => {}
            Ok(After::Ends) => ctx.stop(ExitReason::Normal),
            Err(error) => ctx.stop(ExitReason::Custom(error.to_string())),
        }
    }

    async fn stopped(&mut self, _reason: &ExitReason, _ctx: &mut ActorContext) {
        if let Some(run) = &self.run {
            run.clean_up().await;
        }
    }
}
