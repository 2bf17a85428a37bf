//! A snapshot of many children, and how long it holds up other work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use tokio::task::yield_now;
use verger::SupervisorHandle;
use verger::status::Status;

use crate::measure::{Side, in_runtime, nanos};
use crate::start::tree;

/// Snapshots for each figure of [`longest_hold`].
const SNAPSHOTS: usize = 10;

/// The time of one snapshot.
pub(crate) fn taken(_side: Side, n: u64) -> f64 {
    let took = in_runtime(async {
        let tree = tree(n).start().await.expect("it starts");
        let began = Instant::now();
        let status = snapshot(tree.clone(), n).await;
        let took = began.elapsed();
        drop(status);
        took
    });
    nanos(took, 1)
}

/// The longest that a call to the same supervisor, or an unrelated task, waits during a snapshot.
///
/// On one thread, everything that runs in between is in that time, preemption of the thread included.
/// The shortest of several such times has the least of that.
pub(crate) fn longest_hold(_side: Side, n: u64) -> f64 {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let took = runtime.block_on(async {
        let tree = tree(n).start().await.expect("it starts");
        let (mut calls, mut yields) = (Duration::MAX, Duration::MAX);
        for _ in 0..SNAPSHOTS {
            calls = calls.min(beside(&tree, snapshot(tree.clone(), n), longest_call).await);
            yields = yields.min(beside(&tree, snapshot(tree.clone(), n), longest_yield).await);
        }
        calls.max(yields)
    });
    runtime.shutdown_background();
    nanos(took, 1)
}

async fn snapshot(tree: SupervisorHandle, n: u64) -> Status {
    let status = tree.status().await.expect("it runs");
    assert_eq!(status.root.children.len() as u64, n);
    status
}

/// Does work in a task while another one measures.
pub(crate) async fn beside<T, F>(
    tree: &SupervisorHandle,
    work: impl Future<Output = T> + Send + 'static,
    longest: fn(SupervisorHandle, Arc<AtomicBool>) -> F,
) -> Duration
where
    T: Send + 'static,
    F: Future<Output = Duration> + Send + 'static,
{
    let over = Arc::new(AtomicBool::new(false));
    let measuring = tokio::spawn(longest(tree.clone(), Arc::clone(&over)));
    let done = tokio::spawn(work).await.expect("no panic");
    over.store(true, Ordering::Relaxed);
    let longest = measuring.await.expect("no panic");
    // Dropping a large value holds the thread as well, and belongs to the caller.
    drop(done);
    longest
}

pub(crate) async fn longest_call(tree: SupervisorHandle, over: Arc<AtomicBool>) -> Duration {
    let mut longest = Duration::ZERO;
    while !over.load(Ordering::Relaxed) {
        let began = Instant::now();
        tree.which_child("child-0").await.expect("it exists");
        longest = longest.max(began.elapsed());
    }
    longest
}

pub(crate) async fn longest_yield(_tree: SupervisorHandle, over: Arc<AtomicBool>) -> Duration {
    let mut longest = Duration::ZERO;
    while !over.load(Ordering::Relaxed) {
        let began = Instant::now();
        yield_now().await;
        longest = longest.max(began.elapsed());
    }
    longest
}
