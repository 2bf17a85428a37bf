//! kameo: a supervisor is an actor that starts its children in `on_start`, and waits for each.

use std::ops::ControlFlow;
use std::time::Duration;

use kameo::actor::{Actor, ActorRef, Spawn, WeakActorRef};
use kameo::error::{ActorStopReason, Infallible, PanicError};
use kameo::message::{Context, Message};
use kameo::supervision::{RestartPolicy, SupervisionStrategy};

use crate::board::{self, After, Failure, Order, Run};
use crate::peer::{ChildPlan, Notes, Peer, Plan};

/// What a hook returns.
type Done<T> = Result<T, Infallible>;

pub struct Kameo;

/// The strategy is part of a supervisor's type, so there are two.
pub enum Tree {
    One(ActorRef<Supervisor<false>>),
    All(ActorRef<Supervisor<true>>),
    Nested(ActorRef<Root>),
}

impl Peer for Kameo {
    const PACKAGES: &[&str] = &["kameo"];
    const PAUSED: bool = false;
    const DISCLAIMED: Notes = &[
        ("twice", "a limit is a child's own, and crashes at the same time aren't spoken of"),
        (
            "clean-up",
            "`wait_for_shutdown_with_result` waits for the actor's own `on_stop`; of its \
             children nothing is said",
        ),
        ("reverse", "no order is given for a stop"),
    ];
    type Tree = Tree;

    async fn start(plan: Plan) -> Tree {
        if plan.one_for_all {
            Tree::All(up(Supervisor::spawn(plan)).await)
        } else {
            Tree::One(up(Supervisor::spawn(plan)).await)
        }
    }

    async fn stop(tree: Tree) {
        match tree {
            Tree::One(supervisor) => down(supervisor).await,
            Tree::All(supervisor) => down(supervisor).await,
            Tree::Nested(supervisor) => down(supervisor).await,
        }
    }

    async fn start_nested(inner: Plan) -> Tree {
        Tree::Nested(up(Root::spawn(inner)).await)
    }
}

async fn up<A: Actor>(actor: ActorRef<A>) -> ActorRef<A> {
    actor.wait_for_startup().await;
    actor
}

async fn down<A: Actor>(actor: ActorRef<A>) {
    actor.stop_gracefully().await.expect("it runs");
    // Unlike `wait_for_shutdown`, it waits for `on_stop`, too.
    actor.wait_for_shutdown_with_result(|_| ()).await;
}

pub struct Supervisor<const ALL: bool>;

impl<const ALL: bool> Actor for Supervisor<ALL> {
    type Args = Plan;
    type Error = Infallible;

    fn supervision_strategy() -> SupervisionStrategy {
        if ALL { SupervisionStrategy::OneForAll } else { SupervisionStrategy::OneForOne }
    }

    async fn on_start(plan: Plan, this: ActorRef<Self>) -> Done<Self> {
        for child in plan.children {
            let policy =
                if child.transient { RestartPolicy::Transient } else { RestartPolicy::Permanent };
            let child = Worker::supervise(&this, child)
                .restart_policy(policy)
                .restart_limit(plan.restarts, plan.period)
                .spawn()
                .await;
            child.wait_for_startup().await;
        }
        Ok(Self)
    }
}

/// A supervisor of a supervisor.
pub struct Root;

impl Actor for Root {
    type Args = Plan;
    type Error = Infallible;

    async fn on_start(inner: Plan, this: ActorRef<Self>) -> Done<Self> {
        let inner = Supervisor::<false>::supervise(&this, inner)
            .restart_limit(10, Duration::from_secs(300))
            .spawn()
            .await;
        inner.wait_for_startup().await;
        Ok(Self)
    }
}

struct Worker(Run);

impl Actor for Worker {
    type Args = ChildPlan;
    type Error = Infallible;

    async fn on_start(plan: ChildPlan, this: ActorRef<Self>) -> Done<Self> {
        let run = Run::started(plan, move |order| this.tell(order).try_send());
        run.set_up().await;
        Ok(Self(run))
    }

    async fn on_panic(
        &mut self,
        _: WeakActorRef<Self>,
        error: PanicError,
    ) -> Done<ControlFlow<ActorStopReason>> {
        board::saw("the hook `on_panic`", error.to_string());
        Ok(ControlFlow::Break(ActorStopReason::Panicked(error)))
    }

    async fn on_stop(&mut self, _: WeakActorRef<Self>, _: ActorStopReason) -> Done<()> {
        self.0.clean_up().await;
        Ok(())
    }
}

impl Message<Order> for Worker {
    type Reply = Result<(), Failure>;

    async fn handle(&mut self, order: Order, ctx: &mut Context<Self, Self::Reply>) -> Self::Reply {
        if order.carry_out().await? == After::Ends {
            ctx.stop();
        }
        Ok(())
    }
}
