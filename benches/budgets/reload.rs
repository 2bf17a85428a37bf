//! A reload of a configuration: how long it takes, and how long it holds up other work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use verger::SupervisorHandle;
use verger::config::Config;

use crate::measure::{Side, in_runtime, nanos};
use crate::snapshot::longest_call;
use crate::start::tree;

/// Reloads for the figure of [`longest_hold`].
const RELOADS: u32 = 10;

/// A reload of a file in which the policy of each child has changed.
pub(crate) fn all(_side: Side, n: u64) -> f64 {
    let took = in_runtime(async {
        let tree = tree(n).start().await.expect("it starts");
        reload(&tree, &file(n, 1, 1), n).await;
        let changed = file(n, 2, 2);
        let began = Instant::now();
        reload(&tree, &changed, n).await;
        began.elapsed()
    });
    nanos(took, 1)
}

/// A reload of the same file in which the policy of one child has changed.
pub(crate) fn one(_side: Side, n: u64) -> f64 {
    let took = in_runtime(async {
        let tree = tree(n).start().await.expect("it starts");
        reload(&tree, &file(n, 1, 1), n).await;
        let changed = file(n, 2, 1);
        let began = Instant::now();
        reload(&tree, &changed, 1).await;
        began.elapsed()
    });
    nanos(took, 1)
}

/// The longest that a call to the supervisor waits while all policies are reloaded. The shortest of several
/// such times, as for a snapshot; the file is read elsewhere.
pub(crate) fn longest_hold(_side: Side, n: u64) -> f64 {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let took = runtime.block_on(async {
        let tree = tree(n).start().await.expect("it starts");
        let mut shortest = Duration::MAX;
        for number in 1..=RELOADS {
            let over = Arc::new(AtomicBool::new(false));
            let measuring = tokio::spawn(longest_call(tree.clone(), Arc::clone(&over)));
            reload(&tree, &file(n, number, number), n).await;
            over.store(true, Ordering::Relaxed);
            shortest = shortest.min(measuring.await.expect("no panic"));
        }
        shortest
    });
    runtime.shutdown_background();
    nanos(took, 1)
}

/// Returns a section for each child, of which the first has a policy of its own.
fn file(n: u64, first: u32, others: u32) -> String {
    let section = |child| {
        let max = if child == 0 { first } else { others };
        format!("[child-{child}.restart]\nwhen = \"on_failure\"\nmax_retries = {max}\n")
    };
    (0..n).map(section).collect()
}

async fn reload(tree: &SupervisorHandle, text: &str, changed: u64) {
    let plan = tree.plan(&Config::from_toml(text, "bench.toml")).await.expect("it is valid");
    let applied = tree.apply(plan).await.expect("no child refuses");
    assert!(applied.changes.len() as u64 >= changed);
}
