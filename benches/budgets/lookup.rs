//! Lookup of a supervisor's handle by its path.
//!
//! On tokio's side, a `DashMap` holds a sender to each of as many running tasks.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dashmap::DashMap;
use tokio::sync::mpsc;
use verger::{DynamicSupervisor, Supervisor, SupervisorBuilder};

use crate::measure::{Side, in_runtime, name, nanos};

/// Lookups of each of two tasks.
const LOOKUPS: u64 = 500_000;

pub(crate) fn by_path(side: Side, n: u64) -> f64 {
    in_runtime(async {
        match side {
            Side::Tokio => on_tokio(n).await,
            Side::Verger => on_verger(n).await,
        }
    })
}

/// Existing names in random order.
fn wanted(n: u64, seed: u64) -> Vec<String> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..100_000).map(|_| name(random.u64(0..n))).collect()
}

async fn on_tokio(n: u64) -> f64 {
    let task = |number| {
        let (sender, mut receiver) = mpsc::unbounded_channel::<()>();
        tokio::spawn(async move { while receiver.recv().await.is_some() {} });
        (name(number), sender)
    };
    let names: Arc<DashMap<_, _>> = Arc::new((0..n).map(task).collect());
    side_by_side(|seed| {
        let (names, wanted) = (Arc::clone(&names), wanted(n, seed));
        async move {
            let began = Instant::now();
            for name in wanted.iter().cycle().take(LOOKUPS as usize) {
                black_box(names.get(name).map(|sender| sender.clone()).expect("it exists"));
            }
            began.elapsed()
        }
    })
    .await
}

async fn on_verger(n: u64) -> f64 {
    let children = (0..n).map(|number| DynamicSupervisor::builder(name(number)));
    let app = children.fold(Supervisor::builder("app"), SupervisorBuilder::child);
    let tree = app.build().expect("a tree").start().await.expect("it starts");
    side_by_side(|seed| {
        let (tree, wanted) = (tree.clone(), wanted(n, seed));
        async move {
            let began = Instant::now();
            for name in wanted.iter().cycle().take(LOOKUPS as usize) {
                black_box(tree.supervisor(name).await.expect("it runs"));
            }
            began.elapsed()
        }
    })
    .await
}

/// Nanoseconds for each lookup of two tasks that run in parallel.
async fn side_by_side<F>(look_up: impl Fn(u64) -> F) -> f64
where
    F: Future<Output = Duration> + Send + 'static,
{
    let [first, second] = [1, 2].map(|seed| tokio::spawn(look_up(seed)));
    let longest = first.await.expect("no panic").max(second.await.expect("no panic"));
    nanos(longest, 2 * LOOKUPS)
}
