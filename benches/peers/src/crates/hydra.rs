//! hydra: processes under its supervisor. They don't trap exits, so a stop kills them. A probe needs
//! their clean-up, so there they are servers that trap exits.

use std::future::{self, ready};
use std::time::Duration;

use hydra::{
    ChildSpec, ExitReason, From, GenServer, GenServerOptions, Local, Message, Pid, Process,
    ProcessFlags, Restart, SupervisionStrategy, Supervisor, SupervisorOptions, SystemMessage,
};
use tokio::sync::{mpsc, oneshot};

use crate::child::{Life, Order};
use crate::lives::Idle;
use crate::peer::{Peer, Plan, Sum, ask_each, name, restart, send_each};

pub struct Hydra;

/// The channels to the process that owns the supervisor: only a process can start and stop one.
pub struct Tree {
    calls: mpsc::UnboundedSender<Call>,
    ended: oneshot::Receiver<()>,
}

enum Call {
    Add(ChildSpec),
    Stop,
}

/// Each restart reads a list of all restarts in this time, so the shortest time is the fastest.
const WINDOW: Duration = Duration::from_micros(1);

impl Peer for Hydra {
    const PACKAGES: &[&str] = &["hydra"];
    type Tree = Tree;

    async fn start<L: Life>(plan: Plan) -> Tree {
        let (started, has_started) = oneshot::channel();
        let (calls, called) = mpsc::unbounded_channel();
        let (ended, has_ended) = oneshot::channel();
        Process::spawn(async move {
            own(supervisor::<L>(plan), started, called).await;
            ended.send(()).expect("the stop waits for it");
        });
        has_started.await.expect("the process says so");
        Tree { calls, ended: has_ended }
    }

    async fn stop(tree: Tree) {
        tree.calls.send(Call::Stop).expect("the process waits for it");
        tree.ended.await.expect("the process waits for the supervisor");
    }

    async fn add<L: Life>(tree: &Tree, index: usize) {
        tree.calls.send(Call::Add(spec::<L>(index))).expect("the process waits for it");
    }

    async fn send(messages: u64) -> Duration {
        let (mut sum, total) = Sum::of(messages);
        let reader = Process::spawn(async move {
            for _ in 0..messages {
                if let Message::User(message) = Process::receive::<u64>().await {
                    sum.add(message);
                }
            }
        });
        let send = |message| {
            Process::send(reader, message);
            ready(Ok::<(), ExitReason>(()))
        };
        send_each(messages, total, send).await
    }

    async fn ask(questions: usize) -> Vec<u64> {
        let (done, took) = oneshot::channel();
        Process::spawn(async move {
            let server = Server.start(GenServerOptions::new()).await.expect("it starts");
            let ask = || async { Server::call(server, 0, None).await.expect("it answers") };
            let took = ask_each(questions, ask).await;
            done.send(took).expect("it is waited for");
        });
        took.await.expect("it asks")
    }

    async fn register(names: usize) -> Tree {
        for index in 0..names {
            let process = Process::spawn(future::pending());
            Process::register(process, name(index)).expect("the name is free");
        }
        Self::start::<Idle>(Plan::EMPTY).await
    }

    async fn look_up(_tree: &Tree, names: &[String]) -> usize {
        names.iter().filter(|name| Process::whereis(name).is_some()).count()
    }
}

/// Starts and stops a supervisor, as the crate's own `Application` does it.
async fn own(
    supervisor: Supervisor,
    started: oneshot::Sender<()>,
    mut called: mpsc::UnboundedReceiver<Call>,
) {
    Process::set_flags(ProcessFlags::TRAP_EXIT);
    let supervisor = supervisor.start_link(SupervisorOptions::new()).await;
    let supervisor: Pid = supervisor.expect("no first start fails");
    started.send(()).expect("the start waits for it");
    loop {
        match called.recv().await {
            None => return,
            Some(Call::Stop) => break,
            Some(Call::Add(spec)) => {
                Supervisor::start_child(supervisor, spec).await.expect("each name is used once");
            }
        }
    }
    Process::exit(supervisor, ExitReason::from("shutdown"));
    loop {
        if let Message::System(SystemMessage::Exit(pid, _)) = Process::receive::<()>().await
            && pid == supervisor
        {
            return;
        }
    }
}

/// A supervisor of supervisors or, on the last level, of children.
fn supervisor<L: Life>(plan: Plan) -> Supervisor {
    let (restarts, period) = plan.limit((u32::MAX, WINDOW));
    let children = (0..plan.width()).map(|index| match plan.below() {
        None => spec::<L>(index),
        Some(below) => supervisor::<L>(below).child_spec(SupervisorOptions::new()).id(name(index)),
    });
    Supervisor::with_children(children)
        .strategy(plan.strategy(SupervisionStrategy::OneForOne, SupervisionStrategy::OneForAll))
        .max_restarts(restarts as usize)
        .max_duration(period)
}

fn spec<L: Life>(index: usize) -> ChildSpec {
    let child = ChildSpec::new(name(index));
    let child = child.restart(restart::<L, _>(index, Restart::Permanent, Restart::Transient));
    if L::PROBED {
        let worker = move || Worker::<L> { index, life: None };
        return child.start(move || worker().start_link(GenServerOptions::new()));
    }
    child.start(move || async move {
        Ok(Process::spawn_link(async move {
            if let Err(failure) = L::live(index, || (), future::pending()).await {
                Process::exit(Process::current(), ExitReason::from(failure.to_string()));
            }
        }))
    })
}

struct Worker<L> {
    index: usize,
    /// `Some` from `init` on.
    life: Option<L>,
}

impl<L: Life> GenServer for Worker<L> {
    type Message = Local<Order>;

    async fn init(&mut self) -> Result<(), ExitReason> {
        Process::set_flags(ProcessFlags::TRAP_EXIT);
        let this = Process::current();
        let send = move |order| Self::cast(this, Local::new(order));
        self.life = Some(L::begin(self.index, send).await);
        Ok(())
    }

    async fn handle_cast(&mut self, order: Local<Order>) -> Result<(), ExitReason> {
        match L::obey(order.into_inner()).await {
            Ok(after) if after.is_continue() => Ok(()),
            Ok(_) => Err(ExitReason::Normal),
            Err(error) => Err(ExitReason::from(error.to_string())),
        }
    }

    async fn terminate(&mut self, _reason: ExitReason) {
        if let Some(life) = &self.life {
            life.clean_up().await;
        }
    }
}

/// Answers questions.
struct Server;

impl GenServer for Server {
    type Message = u64;

    async fn init(&mut self) -> Result<(), ExitReason> {
        Ok(())
    }

    async fn handle_call(&mut self, _: u64, _: From) -> Result<Option<u64>, ExitReason> {
        Ok(Some(1))
    }
}
