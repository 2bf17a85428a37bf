//! verger: workers of a supervisor or, where children are added, of a dynamic supervisor.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use verger::mailbox::{Inbox, Reply};
use verger::{
    Backoff, ChildDefaults, ChildSpec, Context, DynamicSupervisor, Exit, Supervisor,
    SupervisorBuilder, SupervisorHandle, mailbox, worker, worker_with_mailbox,
};

use super::child::{Idle, Life};
use super::peer::{Peer, name};

pub struct Verger;

impl Peer for Verger {
    const NAME: &str = "verger";
    const PACKAGES: &[&str] = &["verger"];
    type Tree = SupervisorHandle;

    async fn start<L: Life>(n: usize, one_for_all: bool) -> SupervisorHandle {
        if L::GROWS {
            return dynamic::<L>(n).await;
        }
        let strategy =
            if one_for_all { verger::Strategy::OneForAll } else { verger::Strategy::OneForOne };
        let all = spec::<L>(0);
        let child = |index| match L::ALIKE {
            true => all.clone().named(name(index)),
            false => spec::<L>(index),
        };
        let builder = unlimited("app").strategy(strategy);
        up((0..n).map(child).fold(builder, SupervisorBuilder::child)).await
    }

    async fn stop(tree: SupervisorHandle) {
        tree.stop("measured").await.expect("nothing has failed in this tree");
    }

    async fn nest(widths: &'static [usize]) -> SupervisorHandle {
        up(levels(widths)).await
    }

    async fn add<L: Life>(tree: &SupervisorHandle, index: usize) {
        tree.start_child(spec::<L>(index)).await.expect("it starts");
    }

    async fn send(messages: u64) -> Duration {
        // A capacity for all messages, as in an unbounded channel.
        let (address, mailbox) = mailbox::<u64>(messages as usize);
        let (done, sum) = oneshot::channel();
        let done = Mutex::new(Some(done));
        let reader = worker_with_mailbox("reader", mailbox, move |_ctx, mut inbox: Inbox<u64>| {
            let done = done.lock().expect("no panic").take();
            async move {
                let mut sum = 0;
                for _ in 0..messages {
                    sum += inbox.recv().await.unwrap_or_default();
                }
                done.expect("it runs once").send(sum).expect("it is waited for");
                while inbox.recv().await.is_some() {}
            }
        });
        let _tree = up(unlimited("app").child(reader)).await;
        let began = Instant::now();
        (0..messages).try_for_each(|n| address.try_send(n)).expect("there is room");
        assert_eq!(sum.await, Ok(messages * (messages - 1) / 2));
        began.elapsed()
    }

    async fn ask(questions: usize) -> Vec<u64> {
        let (address, mailbox) = mailbox::<Reply<u64>>(64);
        let reader = worker_with_mailbox("reader", mailbox, async |_ctx, mut inbox| -> Exit {
            while let Some(reply) = inbox.recv().await {
                Reply::send(&reply, 1);
            }
            Ok(())
        });
        let _tree = up(unlimited("app").child(reader)).await;
        let mut took = Vec::with_capacity(questions);
        for _ in 0..questions {
            let began = Instant::now();
            address.ask(|reply| reply).await.expect("it answers");
            took.push(began.elapsed().as_nanos() as u64);
        }
        took
    }

    // Only supervisors are found by path; a worker is known to its supervisor alone.
    async fn register(names: usize) -> SupervisorHandle {
        let builder = unlimited("app");
        let child = |index| DynamicSupervisor::builder(name(index));
        up((0..names).fold(builder, |builder, index| builder.child(child(index)))).await
    }

    async fn look_up(tree: &SupervisorHandle, names: &[String]) -> usize {
        let mut found = 0;
        for name in names {
            found += usize::from(tree.supervisor(name).await.is_ok());
        }
        found
    }
}

async fn up(builder: SupervisorBuilder) -> SupervisorHandle {
    let tree = builder.build().expect("the tree is legal");
    tree.start().await.expect("no first start fails")
}

fn at_once(defaults: ChildDefaults) -> ChildDefaults {
    defaults.backoff(Backoff::none())
}

fn unlimited(name: &str) -> SupervisorBuilder {
    Supervisor::builder(name).unlimited_restarts().defaults(at_once)
}

fn spec<L: Life>(index: usize) -> ChildSpec {
    worker(name(index), move |ctx: Context| L::live(index, ctx.cancelled()))
}

async fn dynamic<L: Life>(n: usize) -> SupervisorHandle {
    let conns = DynamicSupervisor::builder("conns").unlimited_restarts().defaults(at_once);
    let app = up(Supervisor::builder("app").child(conns)).await;
    let conns = app.supervisor("conns").await.expect("it runs");
    for index in 0..n {
        conns.start_child(spec::<L>(index)).await.expect("it starts");
    }
    conns
}

/// From the last level to the first, so that a deep tree needs no deep stack.
fn levels(widths: &[usize]) -> SupervisorBuilder {
    let mut widths = widths.iter().rev();
    let above = |width: &usize, below: ChildSpec| {
        let child = |index| below.clone().named(name(index));
        (0..*width).map(child).fold(Supervisor::builder("level"), SupervisorBuilder::child)
    };
    let last = above(widths.next().expect("there is a level"), spec::<Idle>(0));
    widths.fold(last, |below, width| above(width, below.into_child()))
}
