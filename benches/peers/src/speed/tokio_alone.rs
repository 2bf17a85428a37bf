//! tokio alone: a `JoinSet`, a token that all children share, and a loop that restarts failed children.
//! The base of all ratios.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::time::{Duration, Instant};

use dashmap::DashMap;
use futures_util::FutureExt;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::child::{Idle, Life};
use super::peer::{Peer, name};

pub struct TokioAlone;

#[derive(Default)]
pub struct Tree {
    stop: CancellationToken,
    running: Option<JoinHandle<()>>,
    add: Option<mpsc::UnboundedSender<usize>>,
    names: DashMap<String, mpsc::UnboundedSender<()>>,
}

impl Peer for TokioAlone {
    const NAME: &str = "tokio";
    const PACKAGES: &[&str] = &["tokio"];
    type Tree = Tree;

    async fn start<L: Life>(n: usize, one_for_all: bool) -> Tree {
        let stop = CancellationToken::new();
        let (add, added) = mpsc::unbounded_channel();
        let running = tokio::spawn(supervise::<L>(n, one_for_all, stop.clone(), added));
        Tree { stop, running: Some(running), add: Some(add), ..Tree::default() }
    }

    async fn stop(tree: Tree) {
        tree.stop.cancel();
        tree.running.expect("it was started").await.expect("nothing panics but children");
    }

    async fn nest(widths: &'static [usize]) -> Tree {
        let stop = CancellationToken::new();
        let running = tokio::spawn(level(widths, stop.clone()));
        Tree { stop, running: Some(running), ..Tree::default() }
    }

    async fn add<L: Life>(tree: &Tree, index: usize) {
        tree.add.as_ref().expect("it was started").send(index).expect("it runs");
    }

    async fn send(messages: u64) -> Duration {
        let (sender, mut receiver) = mpsc::unbounded_channel::<u64>();
        let reader = tokio::spawn(async move {
            let mut sum = 0;
            while let Some(n) = receiver.recv().await {
                sum += n;
            }
            sum
        });
        let began = Instant::now();
        (0..messages).try_for_each(|n| sender.send(n)).expect("it is read");
        drop(sender);
        assert_eq!(reader.await.expect("no panic"), messages * (messages - 1) / 2);
        began.elapsed()
    }

    async fn ask(questions: usize) -> Vec<u64> {
        let (sender, mut receiver) = mpsc::channel::<oneshot::Sender<u64>>(64);
        tokio::spawn(async move {
            while let Some(reply) = receiver.recv().await {
                reply.send(1).expect("it is waited for");
            }
        });
        let mut took = Vec::with_capacity(questions);
        for _ in 0..questions {
            let began = Instant::now();
            let (reply, answer) = oneshot::channel();
            sender.send(reply).await.expect("it is read");
            answer.await.expect("it answers");
            took.push(began.elapsed().as_nanos() as u64);
        }
        took
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
    n: usize,
    one_for_all: bool,
    stop: CancellationToken,
    mut added: mpsc::UnboundedReceiver<usize>,
) {
    let mut children = JoinSet::new();
    let mut token = stop.child_token();
    (0..n).for_each(|index| spawn::<L>(&mut children, index, &token));
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(ended) = children.join_next() => {
                let (index, failed) = ended.expect("a panic of a child is caught");
                if !failed {
                    continue;
                }
                if one_for_all {
                    token.cancel();
                    while children.join_next().await.is_some() {}
                    token = stop.child_token();
                    (0..n).for_each(|index| spawn::<L>(&mut children, index, &token));
                } else {
                    spawn::<L>(&mut children, index, &token);
                }
            }
            Some(index) = added.recv() => spawn::<L>(&mut children, index, &token),
        }
    }
    while children.join_next().await.is_some() {}
}

/// The task returns its index and whether it failed.
fn spawn<L: Life>(children: &mut JoinSet<(usize, bool)>, index: usize, token: &CancellationToken) {
    let token = token.clone();
    children.spawn(async move {
        let life = L::live(index, token.cancelled());
        let ended = AssertUnwindSafe(life).catch_unwind().await;
        (index, !matches!(ended, Ok(Ok(()))))
    });
}

/// A supervisor of supervisors or, on the last level, of children.
fn level(
    widths: &'static [usize],
    stop: CancellationToken,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let (width, below) = widths.split_first().expect("there is a level");
        let mut children = JoinSet::new();
        let mut supervisors = JoinSet::new();
        for index in 0..*width {
            if below.is_empty() {
                spawn::<Idle>(&mut children, index, &stop);
            } else {
                supervisors.spawn(level(below, stop.clone()));
            }
        }
        while children.join_next().await.is_some() {}
        while supervisors.join_next().await.is_some() {}
    })
}
