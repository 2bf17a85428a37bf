//! A reload of a configuration: how long it takes, and how long it holds up other work.

use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use verger::SupervisorHandle;
use verger::config::{Applied, Config};

use crate::measure::{Side, in_runtime, nanos};
use crate::snapshot::{beside, longest_call, longest_yield};
use crate::start::tree;

/// Reloads for the figure of [`longest_hold`].
const RELOADS: u32 = 20;

/// A reload of a file in which the policy of each child has changed.
pub(crate) fn all(_side: Side, n: u64) -> f64 {
    let took = in_runtime(async {
        let tree = tree(n).start().await.expect("it starts");
        let _before = reload(&tree, &file(n, 1, 1), n).await;
        let changed = file(n, 2, 2);
        let began = Instant::now();
        let _after = reload(&tree, &changed, n).await;
        began.elapsed()
    });
    nanos(took, 1)
}

/// A reload of the same file in which the policy of one child has changed.
pub(crate) fn one(_side: Side, n: u64) -> f64 {
    let took = in_runtime(async {
        let tree = tree(n).start().await.expect("it starts");
        let _before = reload(&tree, &file(n, 1, 1), n).await;
        let changed = file(n, 2, 1);
        let began = Instant::now();
        let _after = reload(&tree, &changed, 1).await;
        began.elapsed()
    });
    nanos(took, 1)
}

/// The longest that a call to the supervisor, or an unrelated task, waits while all policies are reloaded. The
/// shortest of several such times, as for a snapshot; the file is read before.
pub(crate) fn longest_hold(_side: Side, n: u64) -> f64 {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let took = runtime.block_on(async {
        let tree = tree(n).start().await.expect("it starts");
        let (mut calls, mut yields) = (Duration::MAX, Duration::MAX);
        for number in 1..=RELOADS {
            let config = Config::from_toml(&file(n, number, number), "bench.toml");
            let reloading = reload_of(tree.clone(), config, n);
            if number % 2 == 0 {
                calls = calls.min(beside(&tree, reloading, longest_call).await);
            } else {
                yields = yields.min(beside(&tree, reloading, longest_yield).await);
            }
        }
        calls.max(yields)
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

async fn reload(tree: &SupervisorHandle, text: &str, changed: u64) -> (Config, Applied) {
    reload_of(tree.clone(), Config::from_toml(text, "bench.toml"), changed).await
}

/// Returns what is dropped later: that takes time as well, and belongs to the caller.
async fn reload_of(tree: SupervisorHandle, config: Config, changed: u64) -> (Config, Applied) {
    let plan = tree.plan(&config).await.expect("it is valid");
    let applied = tree.apply(plan).await.expect("no child refuses");
    assert!(applied.changes.len() as u64 >= changed);
    (config, applied)
}
