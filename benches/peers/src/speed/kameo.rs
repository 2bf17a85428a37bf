//! kameo: actors supervised by an actor, with mailboxes of the default size.

use std::marker::PhantomData;
use std::pin::Pin;
use std::time::{Duration, Instant};

use kameo::actor::{Actor, ActorRef, Spawn};
use kameo::error::Infallible;
use kameo::message::{Context, Message};
use kameo::supervision::{RestartPolicy, SupervisionStrategy};
use tokio::sync::oneshot;

use super::child::{Idle, Life, Run, Then};
use super::peer::{Peer, name};
use crate::board::Failure;

/// What a hook returns.
type Done<T> = Result<T, Infallible>;

pub struct Kameo;

type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The operations on a supervisor. Its strategy and its children are part of its type.
pub struct Tree {
    stop: Box<dyn FnOnce() -> Boxed + Send + Sync>,
    add: Option<Box<dyn Fn(usize) -> Boxed + Send + Sync>>,
}

/// The window of each child's limit, which is never reached.
const WINDOW: Duration = Duration::from_secs(1);

impl Peer for Kameo {
    const NAME: &str = "kameo";
    const PACKAGES: &[&str] = &["kameo"];
    type Tree = Tree;

    async fn start<L: Life>(n: usize, one_for_all: bool) -> Tree {
        if one_for_all {
            up(Supervisor::<L, true>::spawn(n)).await
        } else {
            up(Supervisor::<L, false>::spawn(n)).await
        }
    }

    async fn stop(tree: Tree) {
        (tree.stop)().await;
    }

    async fn nest(widths: &'static [usize]) -> Tree {
        let root = Level::spawn(widths);
        root.wait_for_startup().await;
        Tree { stop: Box::new(move || Box::pin(down(root))), add: None }
    }

    async fn add<L: Life>(tree: &Tree, index: usize) {
        tree.add.as_ref().expect("it was started for this")(index).await;
    }

    async fn send(messages: u64) -> Duration {
        let (done, sum) = oneshot::channel();
        let reader = Reader::spawn((messages, Some(done)));
        reader.wait_for_startup().await;
        let began = Instant::now();
        for n in 0..messages {
            reader.tell(Number(n)).await.expect("it is read");
        }
        assert_eq!(sum.await, Ok(messages * (messages - 1) / 2));
        began.elapsed()
    }

    async fn ask(questions: usize) -> Vec<u64> {
        let reader = Reader::spawn((0, None));
        reader.wait_for_startup().await;
        let mut took = Vec::with_capacity(questions);
        for _ in 0..questions {
            let began = Instant::now();
            reader.ask(Question).await.expect("it answers");
            took.push(began.elapsed().as_nanos() as u64);
        }
        took
    }

    async fn register(names: usize) -> Tree {
        let root = Supervisor::<Idle, false>::spawn(0);
        for index in 0..names {
            let child = child::<Idle, _>(&root, index).await;
            child.register(name(index)).expect("the name is free");
        }
        up(root).await
    }

    async fn look_up(_tree: &Tree, names: &[String]) -> usize {
        let found = |name: &&String| {
            let found = ActorRef::<Worker<Idle>>::lookup(name.as_str());
            found.expect("it is of this type").is_some()
        };
        names.iter().filter(found).count()
    }
}

async fn up<L: Life, const ALL: bool>(root: ActorRef<Supervisor<L, ALL>>) -> Tree {
    root.wait_for_startup().await;
    let above = root.clone();
    let add = move |index| {
        let above = above.clone();
        Box::pin(async move { drop(child::<L, _>(&above, index).await) }) as Boxed
    };
    Tree { stop: Box::new(move || Box::pin(down(root))), add: Some(Box::new(add)) }
}

async fn down<A: Actor>(root: ActorRef<A>) {
    root.stop_gracefully().await.expect("it runs");
    root.wait_for_shutdown_with_result(|_| ()).await;
}

async fn child<L: Life, A: Actor>(above: &ActorRef<A>, index: usize) -> ActorRef<Worker<L>> {
    Worker::<L>::supervise(above, index)
        .restart_policy(RestartPolicy::Permanent)
        .restart_limit(u32::MAX, WINDOW)
        .spawn()
        .await
}

struct Supervisor<L, const ALL: bool>(PhantomData<fn() -> L>);

impl<L: Life, const ALL: bool> Actor for Supervisor<L, ALL> {
    type Args = usize;
    type Error = Infallible;

    fn supervision_strategy() -> SupervisionStrategy {
        if ALL { SupervisionStrategy::OneForAll } else { SupervisionStrategy::OneForOne }
    }

    async fn on_start(n: usize, this: ActorRef<Self>) -> Done<Self> {
        for index in 0..n {
            child::<L, _>(&this, index).await;
        }
        Ok(Self(PhantomData))
    }
}

/// A supervisor of supervisors or, on the last level, of children.
struct Level;

impl Actor for Level {
    type Args = &'static [usize];
    type Error = Infallible;

    async fn on_start(widths: Self::Args, this: ActorRef<Self>) -> Done<Self> {
        let (width, below) = widths.split_first().expect("there is a level");
        for index in 0..*width {
            match below {
                [] => drop(child::<Idle, _>(&this, index).await),
                _ => nested(&this, below).await,
            }
        }
        Ok(Self)
    }
}

/// Boxed, because a type can't contain itself.
fn nested<'a>(
    above: &'a ActorRef<Level>,
    widths: &'static [usize],
) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
    Box::pin(async move {
        Level::supervise(above, widths).restart_limit(u32::MAX, WINDOW).spawn().await;
    })
}

struct Worker<L> {
    _run: Run,
    life: PhantomData<fn() -> L>,
}

/// A message that makes a worker fail.
struct Fail;

impl<L: Life> Actor for Worker<L> {
    type Args = usize;
    type Error = Infallible;

    async fn on_start(index: usize, this: ActorRef<Self>) -> Done<Self> {
        let told = this.clone();
        let tell = || Box::new(move || told.tell(Fail).try_send().expect("there is room")) as _;
        let (run, then) = L::begin(index, tell);
        if then == Then::Fails {
            this.tell(Fail).try_send().expect("there is room");
        }
        Ok(Self { _run: run, life: PhantomData })
    }
}

impl<L: Life> Message<Fail> for Worker<L> {
    type Reply = Result<(), Failure>;

    async fn handle(&mut self, _: Fail, _: &mut Context<Self, Self::Reply>) -> Self::Reply {
        L::fail()
    }
}

struct Reader {
    messages: u64,
    done: Option<oneshot::Sender<u64>>,
    read: u64,
    sum: u64,
}

struct Number(u64);
struct Question;

impl Actor for Reader {
    type Args = (u64, Option<oneshot::Sender<u64>>);
    type Error = Infallible;

    async fn on_start((messages, done): Self::Args, _: ActorRef<Self>) -> Done<Self> {
        Ok(Self { messages, done, read: 0, sum: 0 })
    }
}

impl Message<Number> for Reader {
    type Reply = ();

    async fn handle(&mut self, Number(n): Number, _: &mut Context<Self, ()>) {
        self.read += 1;
        self.sum += n;
        if self.read == self.messages {
            self.done.take().expect("it is read once").send(self.sum).expect("it is waited for");
        }
    }
}

impl Message<Question> for Reader {
    type Reply = u64;

    async fn handle(&mut self, _: Question, _: &mut Context<Self, u64>) -> u64 {
        1
    }
}
