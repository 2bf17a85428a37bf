//! ractor: actors linked to an actor that supervises them, and spawns each failed one again: ractor
//! leaves restarts to its user.

use std::collections::HashMap;
use std::future::ready;
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use ractor::{
    Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent,
    async_trait, call, registry,
};

use crate::child::{Life, Order};
use crate::lives::Idle;
use crate::peer::{Peer, Plan, Sum, ask_each, name, send_each};

/// What a handler returns.
type Done<T = ()> = Result<T, ActorProcessingErr>;

pub struct Ractor;

/// The supervisor, and a function that adds a child.
pub struct Tree {
    supervisor: ActorCell,
    add: Box<dyn Fn(usize) + Send + Sync>,
}

impl Peer for Ractor {
    const PACKAGES: &[&str] = &["ractor"];
    const LACKS: &[&str] = &["one-for-all"];
    type Tree = Tree;

    async fn start<L: Life>(plan: Plan) -> Tree {
        let supervisor = Supervisor::<L>(PhantomData);
        let (supervisor, _) = Actor::spawn(None, supervisor, plan).await.expect("it starts");
        let cell = supervisor.get_cell();
        let add = Box::new(move |index| supervisor.cast(index).expect("it runs"));
        Tree { supervisor: cell, add }
    }

    async fn stop(tree: Tree) {
        tree.supervisor.stop_and_wait(None, None).await.expect("it runs");
    }

    async fn add<L: Life>(tree: &Tree, index: usize) {
        (tree.add)(index);
    }

    async fn send(messages: u64) -> Duration {
        let (sum, total) = Sum::of(messages);
        let (reader, _) = Actor::spawn(None, Reader, sum).await.expect("it starts");
        let send = |message| ready(reader.cast(Message::Number(message)));
        send_each(messages, total, send).await
    }

    async fn ask(questions: usize) -> Vec<u64> {
        let (reader, _) = Actor::spawn(None, Reader, Sum::of(0).0).await.expect("it starts");
        ask_each(questions, || async { call!(reader, Message::Question).expect("it answers") })
            .await
    }

    async fn register(names: usize) -> Tree {
        for index in 0..names {
            let worker = Worker::<Idle>(PhantomData);
            Actor::spawn(Some(name(index)), worker, index).await.expect("the name is free");
        }
        Self::start::<Idle>(Plan::EMPTY).await
    }

    async fn look_up(_tree: &Tree, names: &[String]) -> usize {
        names.iter().filter(|name| registry::where_is(name).is_some()).count()
    }
}

/// A supervisor of supervisors or, on the last level, of children.
struct Supervisor<L>(PhantomData<fn() -> L>);

#[async_trait]
impl<L: Life> Actor for Supervisor<L> {
    /// The index of a child to add.
    type Msg = usize;
    /// The indices of the running children.
    type State = (Plan, HashMap<ActorId, usize>);
    type Arguments = Plan;

    async fn pre_start(&self, _: ActorRef<usize>, plan: Plan) -> Done<Self::State> {
        Ok((plan, HashMap::with_capacity(plan.width())))
    }

    // In its own task, unlike `pre_start`, of which a thousand levels overflow the stack.
    async fn post_start(&self, this: ActorRef<usize>, state: &mut Self::State) -> Done {
        for index in 0..state.0.width() {
            spawn::<L>(&this, state, index).await?;
        }
        Ok(())
    }

    async fn handle(&self, this: ActorRef<usize>, index: usize, state: &mut Self::State) -> Done {
        spawn::<L>(&this, state, index).await
    }

    async fn handle_supervisor_evt(
        &self,
        this: ActorRef<usize>,
        event: SupervisionEvent,
        state: &mut Self::State,
    ) -> Done {
        let SupervisionEvent::ActorFailed(child, _) = event else { return Ok(()) };
        let index = state.1.remove(&child.get_id()).expect("it was spawned here");
        spawn::<L>(&this, state, index).await
    }

    async fn post_stop(&self, this: ActorRef<usize>, _: &mut Self::State) -> Done {
        this.get_cell().stop_children_and_wait(None, None).await;
        Ok(())
    }
}

async fn spawn<L: Life>(
    this: &ActorRef<usize>,
    (plan, children): &mut (Plan, HashMap<ActorId, usize>),
    index: usize,
) -> Done {
    let child = match plan.below() {
        None => {
            let worker = Worker::<L>(PhantomData);
            Actor::spawn_linked(None, worker, index, this.get_cell()).await?.0.get_cell()
        }
        Some(below) => nested::<L>(this.get_cell(), below).await?,
    };
    children.insert(child.get_id(), index);
    Ok(())
}

/// Boxed, because a type can't contain itself.
fn nested<L: Life>(
    above: ActorCell,
    plan: Plan,
) -> Pin<Box<dyn Future<Output = Done<ActorCell>> + Send>> {
    Box::pin(async move {
        let supervisor = Supervisor::<L>(PhantomData);
        Ok(Actor::spawn_linked(None, supervisor, plan, above).await?.0.get_cell())
    })
}

/// An actor that lives as `L`.
pub struct Worker<L>(pub PhantomData<fn() -> L>);

#[async_trait]
impl<L: Life> Actor for Worker<L> {
    type Msg = Order;
    type State = L;
    type Arguments = usize;

    async fn pre_start(&self, this: ActorRef<Order>, index: usize) -> Done<L> {
        Ok(L::begin(index, move |order| this.cast(order)).await)
    }

    async fn handle(&self, this: ActorRef<Order>, order: Order, _: &mut L) -> Done {
        if L::obey(order).await?.is_break() {
            this.stop(None);
        }
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<Order>, life: &mut L) -> Done {
        life.clean_up().await;
        Ok(())
    }
}

struct Reader;

enum Message {
    Number(u64),
    Question(RpcReplyPort<u64>),
}

#[async_trait]
impl Actor for Reader {
    type Msg = Message;
    type State = Sum;
    type Arguments = Sum;

    async fn pre_start(&self, _: ActorRef<Message>, sum: Sum) -> Done<Sum> {
        Ok(sum)
    }

    async fn handle(&self, _: ActorRef<Message>, message: Message, sum: &mut Sum) -> Done {
        match message {
            Message::Number(number) => sum.add(number),
            Message::Question(reply) => reply.send(1)?,
        }
        Ok(())
    }
}
