//! verger: workers of a supervisor or, where children are added, of a dynamic supervisor.

use std::future::ready;
use std::sync::Mutex;
use std::time::Duration;

use verger::mailbox::{Inbox, Reply};
use verger::{
    Backoff, ChildDefaults, ChildSpec, Context, DynamicSupervisor, Exit, Readiness, RestartType,
    Strategy, Supervisor, SupervisorBuilder, SupervisorHandle, mailbox_with_capacity, worker,
    worker_with_mailbox,
};

use crate::child::Life;
use crate::peer::{Peer, Plan, Sum, ask_each, name, restart, send_each};
use crate::texts;

pub struct Verger;

impl Peer for Verger {
    const PACKAGES: &[&str] = &["verger"];
    const PAUSED: bool = true;
    type Tree = SupervisorHandle;

    async fn start<L: Life>(plan: Plan) -> SupervisorHandle {
        if L::GROWS {
            return dynamic::<L>(plan.width()).await;
        }
        let tree = up(supervisor::<L>(plan)).await;
        if L::PROBED {
            let mut events = tree.events();
            tokio::spawn(async move {
                while let Some(event) = events.next().await {
                    texts::saw("an event", format!("{event:?}"));
                }
            });
        }
        tree
    }

    async fn stop(tree: SupervisorHandle) {
        tree.stop("it is over").await.expect("nothing has failed in this tree");
    }

    async fn add<L: Life>(tree: &SupervisorHandle, index: usize) {
        tree.start_child(spec::<L>(index)).await.expect("it starts");
    }

    async fn send(messages: u64) -> Duration {
        // A capacity for all messages, as in an unbounded channel.
        let (address, mailbox) = mailbox_with_capacity::<u64>(messages as usize);
        let (sum, total) = Sum::of(messages);
        let sum = Mutex::new(Some(sum));
        let reader = worker_with_mailbox("reader", mailbox, move |_ctx, mut inbox: Inbox<u64>| {
            let mut sum = sum.lock().expect("no panic").take().expect("it runs once");
            async move {
                while let Some(message) = inbox.recv().await {
                    sum.add(message);
                }
            }
        });
        let _tree = up(unlimited("app").child(reader)).await;
        let send = |message| ready(address.try_send(message));
        send_each(messages, total, send).await
    }

    async fn ask(questions: usize) -> Vec<u64> {
        let (address, mailbox) = mailbox_with_capacity::<Reply<u64>>(64);
        let reader = worker_with_mailbox("reader", mailbox, async |_ctx, mut inbox| -> Exit {
            while let Some(reply) = inbox.recv().await {
                Reply::send(&reply, 1);
            }
            Ok(())
        });
        let _tree = up(unlimited("app").child(reader)).await;
        let ask = || async { address.ask(|reply| reply).await.expect("it answers") };
        ask_each(questions, ask).await
    }

    // Only supervisors are found by path; a worker is known to its supervisor alone.
    async fn register(names: usize) -> SupervisorHandle {
        let child = |index| DynamicSupervisor::builder(name(index));
        up((0..names).map(child).fold(unlimited("app"), SupervisorBuilder::child)).await
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
    let child = worker(name(index), move |ctx: Context| {
        let stop = ctx.cancelled();
        L::live(index, move || ctx.ready(), stop)
    });
    if !L::PROBED {
        return child;
    }
    let restart = restart::<L, _>(index, RestartType::Permanent, RestartType::Transient);
    child.readiness(Readiness::Signal).restart(restart)
}

async fn dynamic<L: Life>(n: usize) -> SupervisorHandle {
    let conns = DynamicSupervisor::builder("conns").unlimited_restarts().defaults(at_once);
    let app = up(Supervisor::builder("app").child(conns)).await;
    let conns = app.supervisor("conns").await.expect("it runs");
    for index in 0..n {
        Verger::add::<L>(&conns, index).await;
    }
    conns
}

/// From the last level to the first, so that a deep tree needs no deep stack.
fn supervisor<L: Life>(plan: Plan) -> SupervisorBuilder {
    let mut levels: Vec<Plan> = std::iter::successors(Some(plan), |plan| plan.below()).collect();
    let last = levels.pop().expect("there is a level");
    let all = spec::<L>(0);
    let child = |index| match L::ALIKE {
        true => all.clone().named(name(index)),
        false => spec::<L>(index),
    };
    let last = (0..last.width()).map(child).fold(level(last), SupervisorBuilder::child);
    levels.into_iter().rev().fold(last, |below, plan| {
        let below = below.into_child();
        let child = |index| below.clone().named(name(index));
        (0..plan.width()).map(child).fold(level(plan), SupervisorBuilder::child)
    })
}

fn level(plan: Plan) -> SupervisorBuilder {
    let level = match plan.limit {
        None => unlimited("level"),
        Some(unlimited) => {
            let (restarts, period) = plan.limit(unlimited);
            Supervisor::builder("level").restarts(restarts, period).defaults(at_once)
        }
    };
    level.strategy(plan.strategy(Strategy::OneForOne, Strategy::OneForAll))
}
