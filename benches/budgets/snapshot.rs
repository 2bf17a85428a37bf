//! A snapshot of many children, and whom it holds up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use verger::{Status, Supervisor, SupervisorHandle, worker};

use crate::idle;
use crate::measure::{Budget, Part, Row, Side, Unit, nanos, p50, runtime, worked_here};

const CHILDREN: u64 = 100_000;

const LONGEST: f64 = 100e6;
const HELD: f64 = 1e6;

pub(crate) const ROWS: &[Row] = &[Row::new("snapshot", snapshot)
    .what("a snapshot of 100,000 children")
    .alone(Side::verger(CHILDREN))
    .parts(&[
        Part::new("", Unit::Nanos, Budget::Below(LONGEST)),
        Part::new("holds its loop", Unit::Nanos, Budget::Below(HELD)),
        Part::new("holds a thread", Unit::Nanos, Budget::Below(HELD)),
    ])];

/// So many times beside each who would notice what it holds; the middle one counts.
const TIMES: usize = 5;

/// How long it takes on a runtime like that of the other rows, and whom it holds up on one with a
/// single thread: there it is only that thread's own work that comes between two turns of somebody,
/// and its processor time isn't what other programs take.
fn snapshot(side: Side) -> Vec<f64> {
    let children = idle::named(worker("child", idle::child), side.n);
    let app = children.fold(Supervisor::builder("app"), |app, child| app.child(child));
    let app = app.build().expect("a tree");
    let [workers, one] = [runtime(), single()];
    let took = workers.block_on(async {
        let tree = app.clone().start().await.expect("it starts");
        status(&tree, side.n).await.0
    });
    workers.shutdown_background();
    let [held_loop, held_thread] = one.block_on(async {
        let tree = app.start().await.expect("it starts");
        let (mut calls, mut turns) = (Vec::new(), Vec::new());
        for _ in 0..TIMES {
            let over = Arc::new(AtomicBool::new(false));
            let call = longest_call(tree.clone(), Arc::clone(&over));
            calls.push(beside(&tree, side.n, call, &over).await);
            let over = Arc::new(AtomicBool::new(false));
            let turn = longest_turn(Arc::clone(&over));
            turns.push(beside(&tree, side.n, turn, &over).await);
        }
        [p50(calls), p50(turns)]
    });
    one.shutdown_background();
    vec![nanos(took, 1), held_loop, held_thread]
}

fn single() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// What somebody else finds who goes on until there is a snapshot.
async fn beside(
    tree: &SupervisorHandle,
    n: u64,
    longest: impl Future<Output = Duration> + Send + 'static,
    over: &AtomicBool,
) -> Duration {
    let longest = tokio::spawn(longest);
    let taken = status(tree, n).await;
    over.store(true, Ordering::Relaxed);
    let longest = longest.await.expect("no panic");
    // Only now: to drop what was asked for takes as long as its owner lets it take.
    drop(taken);
    longest
}

async fn status(tree: &SupervisorHandle, n: u64) -> (Duration, Status) {
    let tree = tree.clone();
    let taken = tokio::spawn(async move {
        let began = Instant::now();
        let status = tree.status().await.expect("it runs");
        (began.elapsed(), status)
    });
    let taken = taken.await.expect("no panic");
    assert_eq!(taken.1.root.children.len() as u64, n);
    taken
}

/// Somebody else who asks the same supervisor for something small.
async fn longest_call(tree: SupervisorHandle, over: Arc<AtomicBool>) -> Duration {
    let mut longest = Duration::ZERO;
    while !over.load(Ordering::Relaxed) {
        let began = worked_here();
        tree.which_child("child-0").await.expect("it is there");
        longest = longest.max(worked_here() - began);
    }
    longest
}

/// A task that has nothing to do with it, and wants a turn now and then.
async fn longest_turn(over: Arc<AtomicBool>) -> Duration {
    let mut longest = Duration::ZERO;
    while !over.load(Ordering::Relaxed) {
        let began = worked_here();
        tokio::task::yield_now().await;
        longest = longest.max(worked_here() - began);
    }
    longest
}
