//! ractor: actors linked to an actor that supervises them, and spawns each failed one again: ractor
//! leaves restarts to its user.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::{Duration, Instant};

use ractor::{
    Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent,
    async_trait, call, registry,
};
use tokio::sync::oneshot;

use super::child::{Idle, Life, Run, Then};
use super::peer::{Peer, name};

/// What a handler returns.
type Done<T = ()> = Result<T, ActorProcessingErr>;

pub struct Ractor;

/// The supervisor, and a function that adds a child.
pub struct Tree {
    supervisor: ActorCell,
    add: Box<dyn Fn(usize) + Send + Sync>,
}

impl Peer for Ractor {
    const NAME: &str = "ractor";
    const PACKAGES: &[&str] = &["ractor"];
    const LACKS: &[&str] = &["one-for-all"];
    type Tree = Tree;

    async fn start<L: Life>(n: usize, _one_for_all: bool) -> Tree {
        let supervisor = Supervisor::<L>(PhantomData);
        let (supervisor, _) = Actor::spawn(None, supervisor, n).await.expect("it starts");
        let cell = supervisor.get_cell();
        let add = Box::new(move |index| supervisor.cast(index).expect("it runs"));
        Tree { supervisor: cell, add }
    }

    async fn stop(tree: Tree) {
        tree.supervisor.stop_and_wait(None, None).await.expect("it runs");
    }

    async fn nest(widths: &'static [usize]) -> Tree {
        let (supervisor, _) = Actor::spawn(None, Level, widths).await.expect("it starts");
        Tree { supervisor: supervisor.get_cell(), add: Box::new(drop) }
    }

    async fn add<L: Life>(tree: &Tree, index: usize) {
        (tree.add)(index);
    }

    async fn send(messages: u64) -> Duration {
        let (done, sum) = oneshot::channel();
        let reader = Reader { messages };
        let (reader, _) = Actor::spawn(None, reader, Some(done)).await.expect("it starts");
        let began = Instant::now();
        (0..messages).try_for_each(|n| reader.cast(Said::Number(n))).expect("it is read");
        assert_eq!(sum.await, Ok(messages * (messages - 1) / 2));
        began.elapsed()
    }

    async fn ask(questions: usize) -> Vec<u64> {
        let reader = Reader { messages: 0 };
        let (reader, _) = Actor::spawn(None, reader, None).await.expect("it starts");
        let mut took = Vec::with_capacity(questions);
        for _ in 0..questions {
            let began = Instant::now();
            call!(reader, Said::Question).expect("it answers");
            took.push(began.elapsed().as_nanos() as u64);
        }
        took
    }

    async fn register(names: usize) -> Tree {
        for index in 0..names {
            let worker = Worker::<Idle>(PhantomData);
            Actor::spawn(Some(name(index)), worker, index).await.expect("the name is free");
        }
        Self::start::<Idle>(0, false).await
    }

    async fn look_up(_tree: &Tree, names: &[String]) -> usize {
        names.iter().filter(|name| registry::where_is(name).is_some()).count()
    }
}

struct Supervisor<L>(PhantomData<fn() -> L>);

/// The indices of the running children.
type Children = HashMap<ActorId, usize>;

async fn spawn<L: Life>(children: &mut Children, this: &ActorRef<usize>, index: usize) -> Done {
    let worker = Worker::<L>(PhantomData);
    let (child, _) = Actor::spawn_linked(None, worker, index, this.get_cell()).await?;
    children.insert(child.get_id(), index);
    Ok(())
}

#[async_trait]
impl<L: Life> Actor for Supervisor<L> {
    /// The index of a child to add.
    type Msg = usize;
    type State = Children;
    type Arguments = usize;

    async fn pre_start(&self, this: ActorRef<usize>, n: usize) -> Done<Children> {
        let mut children = Children::with_capacity(n);
        for index in 0..n {
            spawn::<L>(&mut children, &this, index).await?;
        }
        Ok(children)
    }

    async fn handle(&self, this: ActorRef<usize>, index: usize, children: &mut Children) -> Done {
        spawn::<L>(children, &this, index).await
    }

    async fn handle_supervisor_evt(
        &self,
        this: ActorRef<usize>,
        event: SupervisionEvent,
        children: &mut Children,
    ) -> Done {
        match event {
            SupervisionEvent::ActorFailed(child, _) => {
                let index = children.remove(&child.get_id()).expect("it was spawned here");
                spawn::<L>(children, &this, index).await
            }
            _ => Ok(()),
        }
    }

    async fn post_stop(&self, this: ActorRef<usize>, _: &mut Children) -> Done {
        this.get_cell().stop_children_and_wait(None, None).await;
        Ok(())
    }
}

/// An actor that lives as `L`.
pub struct Worker<L>(pub PhantomData<fn() -> L>);

/// A message that makes a worker fail.
pub struct Fail;

#[async_trait]
impl<L: Life> Actor for Worker<L> {
    type Msg = Fail;
    type State = Run;
    type Arguments = usize;

    async fn pre_start(&self, this: ActorRef<Fail>, index: usize) -> Done<Run> {
        let told = this.clone();
        let (run, then) = L::begin(index, || Box::new(move || told.cast(Fail).expect("it runs")));
        if then == Then::Fails {
            this.cast(Fail)?;
        }
        Ok(run)
    }

    async fn handle(&self, _: ActorRef<Fail>, _: Fail, _: &mut Run) -> Done {
        Ok(L::fail()?)
    }
}

/// A supervisor of supervisors or, on the last level, of children.
struct Level;

#[async_trait]
impl Actor for Level {
    type Msg = Fail;
    type State = &'static [usize];
    type Arguments = &'static [usize];

    async fn pre_start(&self, _: ActorRef<Fail>, widths: &'static [usize]) -> Done<Self::State> {
        Ok(widths)
    }

    // In its own task, unlike `pre_start`, of which a thousand levels overflow the stack.
    async fn post_start(&self, this: ActorRef<Fail>, widths: &mut Self::State) -> Done {
        let (width, below) = widths.split_first().expect("there is a level");
        for index in 0..*width {
            if below.is_empty() {
                let worker = Worker::<Idle>(PhantomData);
                Actor::spawn_linked(None, worker, index, this.get_cell()).await?;
            } else {
                nested(below, this.get_cell()).await?;
            }
        }
        Ok(())
    }

    async fn post_stop(&self, this: ActorRef<Fail>, _: &mut Self::State) -> Done {
        this.get_cell().stop_children_and_wait(None, None).await;
        Ok(())
    }
}

/// Boxed, because a type can't contain itself.
fn nested(
    widths: &'static [usize],
    above: ActorCell,
) -> Pin<Box<dyn Future<Output = Done> + Send>> {
    Box::pin(async move {
        Actor::spawn_linked(None, Level, widths, above).await?;
        Ok(())
    })
}

struct Reader {
    messages: u64,
}

enum Said {
    Number(u64),
    Question(RpcReplyPort<u64>),
}

#[async_trait]
impl Actor for Reader {
    type Msg = Said;
    /// The number of messages so far, their sum, and the receiver of the sum.
    type State = (u64, u64, Option<oneshot::Sender<u64>>);
    type Arguments = Option<oneshot::Sender<u64>>;

    async fn pre_start(&self, _: ActorRef<Said>, done: Self::Arguments) -> Done<Self::State> {
        Ok((0, 0, done))
    }

    async fn handle(
        &self,
        _: ActorRef<Said>,
        said: Said,
        (read, sum, done): &mut Self::State,
    ) -> Done {
        match said {
            Said::Number(n) => {
                (*read, *sum) = (*read + 1, *sum + n);
                if *read == self.messages {
                    done.take().expect("it is read once").send(*sum).expect("it is waited for");
                }
            }
            Said::Question(reply) => reply.send(1)?,
        }
        Ok(())
    }
}
