//! ractor-supervisor: its static supervisor, with actors of ractor.

use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, async_trait};
use ractor_supervisor::{
    ChildSpec, Restart, SpawnFn, Supervisor, SupervisorArguments, SupervisorMsg, SupervisorOptions,
    SupervisorStrategy,
};

use crate::board::{After, Order, Run};
use crate::peer::{ChildPlan, Notes, Peer, Plan};

/// What a handler returns.
type Done<T = ()> = Result<T, ActorProcessingErr>;

pub struct RactorSupervisor;

impl Peer for RactorSupervisor {
    const PACKAGES: &[&str] = &["ractor-supervisor", "ractor"];
    const PAUSED: bool = true;
    const DISCLAIMED: Notes = &[
        ("twice", "a limit counts failures, and those at the same time aren't spoken of"),
        (
            "start",
            "children are spawned in the supervisor's `post_start`, for which `spawn` isn't \
             said to wait",
        ),
        ("clean-up", "nothing is said of what becomes of children when a supervisor is stopped"),
        ("reverse", "no order is given for a stop"),
    ];
    type Tree = ActorRef<SupervisorMsg>;

    async fn start(plan: Plan) -> Self::Tree {
        up(arguments(plan)).await
    }

    async fn stop(tree: Self::Tree) {
        tree.stop_and_wait(None, None).await.expect("it runs");
    }

    async fn start_nested(inner: Plan) -> Self::Tree {
        let inner = spec("inner", Restart::Permanent, move |cell, id| {
            let arguments = arguments(inner.clone());
            async move {
                let (inner, _) = Supervisor::spawn_linked(id, Supervisor, arguments, cell).await?;
                Ok(inner.get_cell())
            }
        });
        let options = options(SupervisorStrategy::OneForOne, 10, Duration::from_secs(300));
        up(SupervisorArguments { child_specs: vec![inner], options }).await
    }
}

async fn up(arguments: SupervisorArguments) -> ActorRef<SupervisorMsg> {
    let (root, _) = Supervisor::spawn("root".into(), arguments).await.expect("the name is free");
    root
}

fn arguments(plan: Plan) -> SupervisorArguments {
    let strategy = if plan.one_for_all {
        SupervisorStrategy::OneForAll
    } else {
        SupervisorStrategy::OneForOne
    };
    let child = |plan: ChildPlan| {
        let restart = if plan.transient { Restart::Transient } else { Restart::Permanent };
        spec(plan.name, restart, move |cell, id| async move {
            let (child, _) = Supervisor::spawn_linked(id, Worker, plan, cell).await?;
            Ok(child.get_cell())
        })
    };
    SupervisorArguments {
        child_specs: plan.children.into_iter().map(child).collect(),
        options: options(strategy, plan.restarts as usize, plan.period),
    }
}

fn options(
    strategy: SupervisorStrategy,
    max_restarts: usize,
    max_window: Duration,
) -> SupervisorOptions {
    SupervisorOptions { strategy, max_restarts, max_window, reset_after: None }
}

fn spec<Fut>(
    id: &str,
    restart: Restart,
    spawn: impl Fn(ractor::ActorCell, String) -> Fut + Send + Sync + 'static,
) -> ChildSpec
where
    Fut: Future<Output = Result<ractor::ActorCell, ractor::SpawnErr>> + Send + 'static,
{
    ChildSpec {
        id: id.into(),
        restart,
        spawn_fn: SpawnFn::new(spawn),
        backoff_fn: None,
        reset_after: None,
    }
}

struct Worker;

#[async_trait]
impl Actor for Worker {
    type Msg = Order;
    type State = Run;
    type Arguments = ChildPlan;

    async fn pre_start(&self, this: ActorRef<Order>, plan: ChildPlan) -> Done<Run> {
        let run = Run::started(plan, move |order| this.cast(order));
        run.set_up().await;
        Ok(run)
    }

    async fn handle(&self, this: ActorRef<Order>, order: Order, _: &mut Run) -> Done {
        if order.carry_out().await? == After::Ends {
            this.stop(None);
        }
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<Order>, run: &mut Run) -> Done {
        run.clean_up().await;
        Ok(())
    }
}
