//! hydra: processes under its supervisor. They don't trap exits, so a stop kills them.

use std::future;
use std::time::{Duration, Instant};

use hydra::{
    ChildSpec, ExitReason, GenServer, GenServerOptions, Message, Pid, Process, ProcessFlags,
    SupervisionStrategy, Supervisor, SupervisorOptions, SystemMessage,
};
use tokio::sync::{mpsc, oneshot};

use super::child::{Idle, Life};
use super::peer::{Peer, name};

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
    const NAME: &str = "hydra";
    const PACKAGES: &[&str] = &["hydra"];
    type Tree = Tree;

    async fn start<L: Life>(n: usize, one_for_all: bool) -> Tree {
        let strategy = if one_for_all {
            SupervisionStrategy::OneForAll
        } else {
            SupervisionStrategy::OneForOne
        };
        up(supervisor((0..n).map(spec::<L>)).strategy(strategy)).await
    }

    async fn stop(tree: Tree) {
        tree.calls.send(Call::Stop).expect("the process waits for it");
        tree.ended.await.expect("the process waits for the supervisor");
    }

    async fn nest(widths: &'static [usize]) -> Tree {
        up(level(widths)).await
    }

    async fn add<L: Life>(tree: &Tree, index: usize) {
        tree.calls.send(Call::Add(spec::<L>(index))).expect("the process waits for it");
    }

    async fn send(messages: u64) -> Duration {
        let (done, sum) = oneshot::channel();
        let reader = Process::spawn(async move {
            let mut sum = 0;
            for _ in 0..messages {
                if let Message::User(n) = Process::receive::<u64>().await {
                    sum += n;
                }
            }
            done.send(sum).expect("it is waited for");
        });
        let began = Instant::now();
        (0..messages).for_each(|n| Process::send(reader, n));
        assert_eq!(sum.await, Ok(messages * (messages - 1) / 2));
        began.elapsed()
    }

    async fn ask(questions: usize) -> Vec<u64> {
        let (done, took) = oneshot::channel();
        Process::spawn(async move {
            let server = Server.start(GenServerOptions::new()).await.expect("it starts");
            let mut took = Vec::with_capacity(questions);
            for _ in 0..questions {
                let began = Instant::now();
                Server::call(server, 0, None).await.expect("it answers");
                took.push(began.elapsed().as_nanos() as u64);
            }
            done.send(took).expect("it is waited for");
        });
        took.await.expect("it asks")
    }

    async fn register(names: usize) -> Tree {
        for index in 0..names {
            let process = Process::spawn(future::pending());
            Process::register(process, name(index)).expect("the name is free");
        }
        Self::start::<Idle>(0, false).await
    }

    async fn look_up(_tree: &Tree, names: &[String]) -> usize {
        names.iter().filter(|name| Process::whereis(name).is_some()).count()
    }
}

/// As the crate's own `Application` does it.
async fn up(supervisor: Supervisor) -> Tree {
    let (started, has_started) = oneshot::channel();
    let (calls, mut called) = mpsc::unbounded_channel();
    let (ended, has_ended) = oneshot::channel();
    Process::spawn(async move {
        Process::set_flags(ProcessFlags::TRAP_EXIT);
        let supervisor = supervisor.start_link(SupervisorOptions::new()).await;
        let supervisor: Pid = supervisor.expect("no start fails");
        started.send(()).expect("the start waits for it");
        while let Some(Call::Add(spec)) = called.recv().await {
            Supervisor::start_child(supervisor, spec).await.expect("each name is used once");
        }
        Process::exit(supervisor, ExitReason::from("shutdown"));
        loop {
            if let Message::System(SystemMessage::Exit(pid, _)) = Process::receive::<()>().await
                && pid == supervisor
            {
                break;
            }
        }
        ended.send(()).expect("the stop waits for it");
    });
    has_started.await.expect("the process says so");
    Tree { calls, ended: has_ended }
}

fn supervisor(children: impl IntoIterator<Item = ChildSpec>) -> Supervisor {
    Supervisor::with_children(children).max_restarts(usize::MAX).max_duration(WINDOW)
}

fn spec<L: Life>(index: usize) -> ChildSpec {
    ChildSpec::new(name(index)).start(move || async move {
        Ok(Process::spawn_link(async move {
            if let Err(failure) = L::live(index, future::pending()).await {
                Process::exit(Process::current(), ExitReason::from(failure.to_string()));
            }
        }))
    })
}

/// A supervisor of supervisors or, on the last level, of children.
fn level(widths: &'static [usize]) -> Supervisor {
    let (width, below) = widths.split_first().expect("there is a level");
    supervisor((0..*width).map(|index| match below {
        [] => spec::<Idle>(index),
        _ => level(below).child_spec(SupervisorOptions::new()).id(name(index)),
    }))
}

/// Answers questions.
struct Server;

impl GenServer for Server {
    type Message = u64;

    async fn init(&mut self) -> Result<(), ExitReason> {
        Ok(())
    }

    async fn handle_call(
        &mut self,
        _question: u64,
        _from: hydra::From,
    ) -> Result<Option<u64>, ExitReason> {
        Ok(Some(1))
    }
}
