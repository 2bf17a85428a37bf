//! tokio alone: a `JoinSet`, a token that all children share, and a loop that restarts failed children.
//! The base of all ratios.

use std::future::ready;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::time::Duration;

use dashmap::DashMap;
use futures_util::FutureExt;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::child::Life;
use crate::peer::{Peer, Plan, Sum, ask_each, name, send_each};

pub struct TokioAlone;

#[derive(Default)]
pub struct Tree {
    stop: CancellationToken,
    running: Option<JoinHandle<()>>,
    add: Option<mpsc::UnboundedSender<usize>>,
    names: DashMap<String, mpsc::UnboundedSender<()>>,
}

impl Peer for TokioAlone {
    const PACKAGES: &[&str] = &["tokio"];
    type Tree = Tree;

    async fn start<L: Life>(plan: Plan) -> Tree {
        let stop = CancellationToken::new();
        let (add, added) = mpsc::unbounded_channel();
        let running = if plan.below().is_none() {
            tokio::spawn(supervise::<L>(plan, stop.clone(), added))
        } else {
            tokio::spawn(level::<L>(plan, stop.clone()))
        };
        Tree { stop, running: Some(running), add: Some(add), ..Tree::default() }
    }

    async fn stop(tree: Tree) {
        tree.stop.cancel();
        tree.running.expect("it was started").await.expect("nothing panics but children");
    }

    async fn add<L: Life>(tree: &Tree, index: usize) {
        tree.add.as_ref().expect("it was started").send(index).expect("it runs");
    }

    async fn send(messages: u64) -> Duration {
        let (mut sum, total) = Sum::of(messages);
        let (sender, mut receiver) = mpsc::unbounded_channel::<u64>();
        tokio::spawn(async move {
            while let Some(message) = receiver.recv().await {
                sum.add(message);
            }
        });
        let send = |message| ready(sender.send(message));
        send_each(messages, total, send).await
    }

    async fn ask(questions: usize) -> Vec<u64> {
        let (sender, mut receiver) = mpsc::channel::<oneshot::Sender<u64>>(64);
        tokio::spawn(async move {
            while let Some(reply) = receiver.recv().await {
                reply.send(1).expect("it is waited for");
            }
        });
        let ask = || async {
            let (reply, answer) = oneshot::channel();
            sender.send(reply).await.expect("it is read");
            answer.await.expect("it answers")
        };
        ask_each(questions, ask).await
    }

    async fn register(names: usize) -> Tree {
        let tree = Tree::default();
        for index in 0..names {
            let (sender, mut receiver) = mpsc::unbounded_channel();
            tokio::spawn(async move { while receiver.recv().await.is_some() {} });
            tree.names.insert(name(index), sender);
        }
        tree
    }

    async fn look_up(tree: &Tree, names: &[String]) -> usize {
        let found = |name: &&String| tree.names.get(*name).map(|it| it.clone()).is_some();
        names.iter().filter(found).count()
    }
}

async fn supervise<L: Life>(
    plan: Plan,
    stop: CancellationToken,
    mut added: mpsc::UnboundedReceiver<usize>,
) {
    let mut children = JoinSet::new();
    let mut token = stop.child_token();
    spawn_all::<L>(&mut children, plan, &token);
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(ended) = children.join_next() => {
                let (index, failed) = ended.expect("a panic of a child is caught");
                if failed && plan.one_for_all {
                    token.cancel();
                    while children.join_next().await.is_some() {}
                    token = stop.child_token();
                    spawn_all::<L>(&mut children, plan, &token);
                } else if failed {
                    spawn::<L>(&mut children, index, &token);
                }
            }
            Some(index) = added.recv() => spawn::<L>(&mut children, index, &token),
        }
    }
    while children.join_next().await.is_some() {}
}

/// Each task returns its index and whether it failed.
type Children = JoinSet<(usize, bool)>;

fn spawn_all<L: Life>(children: &mut Children, plan: Plan, token: &CancellationToken) {
    (0..plan.width()).for_each(|index| spawn::<L>(children, index, token));
}

fn spawn<L: Life>(children: &mut Children, index: usize, token: &CancellationToken) {
    let token = token.clone();
    children.spawn(async move {
        let life = L::live(index, || (), token.cancelled());
        let ended = AssertUnwindSafe(life).catch_unwind().await;
        (index, !matches!(ended, Ok(Ok(()))))
    });
}

/// A supervisor of supervisors or, on the last level, of children.
fn level<L: Life>(plan: Plan, stop: CancellationToken) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let mut children = JoinSet::new();
        let mut supervisors = JoinSet::new();
        match plan.below() {
            None => spawn_all::<L>(&mut children, plan, &stop),
            Some(below) => (0..plan.width()).for_each(|_| {
                supervisors.spawn(level::<L>(below, stop.clone()));
            }),
        }
        while children.join_next().await.is_some() {}
        while supervisors.join_next().await.is_some() {}
    })
}
