//! A snapshot of many children, and whom it holds up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use verger::{Supervisor, SupervisorHandle, worker};

use crate::idle;
use crate::measure::{Budget, Part, Row, Side, Unit, runtime};

const CHILDREN: u64 = 100_000;

const LONGEST: f64 = 100e6;
const HELD: f64 = 1e6;

pub(crate) const ROWS: &[Row] = &[Row {
    name: "snapshot",
    what: "a snapshot of 100,000 children",
    base: None,
    ours: Side::verger(CHILDREN),
    parts: &[
        Part::new("", Unit::Nanos, Budget::Below(LONGEST)),
        Part::new("holds its loop", Unit::Nanos, Budget::Below(HELD)),
        Part::new("holds a thread", Unit::Nanos, Budget::Below(HELD)),
    ],
    rounds: 15,
    run: snapshot,
}];

/// Three times: alone, to see how long it takes, and beside each who would notice what it holds.
fn snapshot(side: Side) -> Vec<f64> {
    let children = idle::named(worker("child", idle::child), side.n);
    let app = children.fold(Supervisor::builder("app"), |app, child| app.child(child));
    let app = app.build().expect("a tree");
    let runtime = runtime();
    let figures = runtime.block_on(async {
        let tree = app.start().await.expect("it starts");
        let took = status(&tree, side.n).await;
        let over = Arc::new(AtomicBool::new(false));
        let calls = tokio::spawn(longest_call(tree.clone(), Arc::clone(&over)));
        status(&tree, side.n).await;
        over.store(true, Ordering::Relaxed);
        let held_loop = calls.await.expect("no panic");
        let over = Arc::new(AtomicBool::new(false));
        let turns = tokio::spawn(longest_turn(Arc::clone(&over)));
        status(&tree, side.n).await;
        over.store(true, Ordering::Relaxed);
        [took, held_loop, turns.await.expect("no panic")]
    });
    runtime.shutdown_background();
    figures.map(|took| took.as_secs_f64() * 1e9).to_vec()
}

/// Taken on a thread of the runtime, and given to this one, so that nobody there has to drop it.
async fn status(tree: &SupervisorHandle, n: u64) -> Duration {
    let tree = tree.clone();
    let taken = tokio::spawn(async move {
        let began = Instant::now();
        let status = tree.status().await.expect("it runs");
        (began.elapsed(), status)
    });
    let (took, status) = taken.await.expect("no panic");
    assert_eq!(status.root.children.len() as u64, n);
    took
}

/// Somebody else who asks the same supervisor for something small.
async fn longest_call(tree: SupervisorHandle, over: Arc<AtomicBool>) -> Duration {
    let mut longest = Duration::ZERO;
    while !over.load(Ordering::Relaxed) {
        let began = Instant::now();
        tree.which_child("child-0").await.expect("it is there");
        longest = longest.max(began.elapsed());
    }
    longest
}

/// A task that has nothing to do with it, and wants a turn now and then.
async fn longest_turn(over: Arc<AtomicBool>) -> Duration {
    let mut longest = Duration::ZERO;
    while !over.load(Ordering::Relaxed) {
        let began = Instant::now();
        tokio::task::yield_now().await;
        longest = longest.max(began.elapsed());
    }
    longest
}
