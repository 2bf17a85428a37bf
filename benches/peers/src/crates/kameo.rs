//! kameo: actors supervised by an actor that starts them in `on_start`, with mailboxes of the default
//! size. Where a probe runs, the actor waits for the start of each.

use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::time::Duration;

use kameo::actor::{Actor, ActorRef, Spawn, WeakActorRef};
use kameo::error::{ActorStopReason, Infallible, PanicError};
use kameo::message::{Context, Message};
use kameo::supervision::{RestartPolicy, SupervisionStrategy};

use crate::child::{Failure, Life, Order};
use crate::lives::Idle;
use crate::peer::{Peer, Plan, Sum, ask_each, name, restart, send_each};
use crate::texts;

/// What a hook returns.
type Done<T> = Result<T, Infallible>;

pub struct Kameo;

type Boxed<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// The operations on a supervisor. Its strategy and its children are part of its type.
pub struct Tree {
    stop: Box<dyn FnOnce() -> Boxed<'static> + Send + Sync>,
    add: Box<dyn Fn(usize) -> Boxed<'static> + Send + Sync>,
}

/// The limit of a child that has none.
const UNLIMITED: (u32, Duration) = (u32::MAX, Duration::from_secs(1));

impl Peer for Kameo {
    const PACKAGES: &[&str] = &["kameo"];
    type Tree = Tree;

    async fn start<L: Life>(plan: Plan) -> Tree {
        if plan.one_for_all {
            up(Supervisor::<L, true>::spawn(plan), plan).await
        } else {
            up(Supervisor::<L, false>::spawn(plan), plan).await
        }
    }

    async fn stop(tree: Tree) {
        (tree.stop)().await;
    }

    async fn add<L: Life>(tree: &Tree, index: usize) {
        (tree.add)(index).await;
    }

    async fn send(messages: u64) -> Duration {
        let (sum, total) = Sum::of(messages);
        let reader = Reader::spawn(Reader(sum));
        reader.wait_for_startup().await;
        let send = |message| reader.tell(Number(message)).into_future();
        send_each(messages, total, send).await
    }

    async fn ask(questions: usize) -> Vec<u64> {
        let reader = Reader::spawn(Reader(Sum::of(0).0));
        reader.wait_for_startup().await;
        ask_each(questions, || async { reader.ask(Question).await.expect("it answers") }).await
    }

    async fn register(names: usize) -> Tree {
        let root = Supervisor::<Idle, false>::spawn(Plan::EMPTY);
        for index in 0..names {
            let child = child::<Idle, _>(&root, Plan::EMPTY, index).await;
            child.register(name(index)).expect("the name is free");
        }
        up(root, Plan::EMPTY).await
    }

    async fn look_up(_tree: &Tree, names: &[String]) -> usize {
        let found = |name: &&String| {
            let found = ActorRef::<Worker<Idle>>::lookup(name.as_str());
            found.expect("it is of this type").is_some()
        };
        names.iter().filter(found).count()
    }
}

async fn up<L: Life, const ALL: bool>(root: ActorRef<Supervisor<L, ALL>>, plan: Plan) -> Tree {
    root.wait_for_startup().await;
    let above = root.clone();
    let add = move |index| -> Boxed<'static> {
        let above = above.clone();
        Box::pin(async move { drop(child::<L, _>(&above, plan, index).await) })
    };
    Tree { stop: Box::new(move || Box::pin(down(root))), add: Box::new(add) }
}

async fn down<A: Actor>(root: ActorRef<A>) {
    root.stop_gracefully().await.expect("it runs");
    // Unlike `wait_for_shutdown`, it waits for `on_stop`, too.
    root.wait_for_shutdown_with_result(|_| ()).await;
}

async fn child<L: Life, A: Actor>(
    above: &ActorRef<A>,
    plan: Plan,
    index: usize,
) -> ActorRef<Worker<L>> {
    let (restarts, period) = plan.limit(UNLIMITED);
    let policy = restart::<L, _>(index, RestartPolicy::Permanent, RestartPolicy::Transient);
    let child = Worker::<L>::supervise(above, index).restart_policy(policy);
    let child = child.restart_limit(restarts, period).spawn().await;
    if L::PROBED {
        child.wait_for_startup().await;
    }
    child
}

/// A supervisor of supervisors or, on the last level, of children.
struct Supervisor<L, const ALL: bool>(PhantomData<fn() -> L>);

impl<L: Life, const ALL: bool> Actor for Supervisor<L, ALL> {
    type Args = Plan;
    type Error = Infallible;

    fn supervision_strategy() -> SupervisionStrategy {
        if ALL { SupervisionStrategy::OneForAll } else { SupervisionStrategy::OneForOne }
    }

    async fn on_start(plan: Plan, this: ActorRef<Self>) -> Done<Self> {
        for index in 0..plan.width() {
            match plan.below() {
                None => drop(child::<L, _>(&this, plan, index).await),
                Some(below) => nested::<L, _>(&this, plan, below).await,
            }
        }
        Ok(Self(PhantomData))
    }
}

/// Boxed, because a type can't contain itself.
fn nested<'a, L: Life, A: Actor>(above: &'a ActorRef<A>, plan: Plan, below: Plan) -> Boxed<'a> {
    let (restarts, period) = plan.limit(UNLIMITED);
    Box::pin(async move {
        let level = Supervisor::<L, false>::supervise(above, below);
        let level = level.restart_limit(restarts, period).spawn().await;
        if L::PROBED {
            level.wait_for_startup().await;
        }
    })
}

struct Worker<L>(L);

impl<L: Life> Actor for Worker<L> {
    type Args = usize;
    type Error = Infallible;

    async fn on_start(index: usize, this: ActorRef<Self>) -> Done<Self> {
        Ok(Self(L::begin(index, move |order| this.tell(order).try_send()).await))
    }

    async fn on_panic(
        &mut self,
        _: WeakActorRef<Self>,
        error: PanicError,
    ) -> Done<ControlFlow<ActorStopReason>> {
        texts::saw("the hook `on_panic`", &error);
        Ok(ControlFlow::Break(ActorStopReason::Panicked(error)))
    }

    async fn on_stop(&mut self, _: WeakActorRef<Self>, _: ActorStopReason) -> Done<()> {
        self.0.clean_up().await;
        Ok(())
    }
}

impl<L: Life> Message<Order> for Worker<L> {
    type Reply = Result<(), Failure>;

    async fn handle(&mut self, order: Order, ctx: &mut Context<Self, Self::Reply>) -> Self::Reply {
        if L::obey(order).await?.is_break() {
            ctx.stop();
        }
        Ok(())
    }
}

struct Reader(Sum);

struct Number(u64);
struct Question;

impl Actor for Reader {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(reader: Self, _: ActorRef<Self>) -> Done<Self> {
        Ok(reader)
    }
}

impl Message<Number> for Reader {
    type Reply = ();

    async fn handle(&mut self, Number(number): Number, _: &mut Context<Self, ()>) {
        self.0.add(number);
    }
}

impl Message<Question> for Reader {
    type Reply = u64;

    async fn handle(&mut self, _: Question, _: &mut Context<Self, u64>) -> u64 {
        1
    }
}
