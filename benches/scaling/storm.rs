//! One child in a hundred crashes in a loop, beside children that work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::sleep;
use verger::{Backoff, CancellationToken, ChildSpec, Context, Exit, SupervisorHandle, worker};

use crate::Scenario;
use crate::measure::Unit::{Bytes, Nanos, PerSecond};
use crate::measure::{dynamic, idle, percentile, resident_bytes, runtime};

/// The columns are indices of the two phases; both are measured in one process of each.
pub(crate) const STORM: Scenario = Scenario {
    name: "storm",
    title: "1,000 of 100,000 children fail whenever they start, with a backoff of 10 ms, while 64 \
            pairs of children exchange notifications and children are started:",
    columns: &[("calm", 0), ("in the storm", 1)],
    lines: &[
        ("notifications", PerSecond),
        ("restarts", PerSecond),
        ("start of a child, p50", Nanos),
        ("start of a child, p99", Nanos),
        ("resident set", Bytes),
    ],
    work: |phase| storm(phase == 1),
};

const CHILDREN: u64 = 100_000;
const CRASHING: u64 = 1_000;
const PAIRS: u64 = 64;
const BACKOFF: Duration = Duration::from_millis(10);
const PHASE: Duration = Duration::from_secs(5);

static RESTARTS: AtomicU64 = AtomicU64::new(0);
static NOTIFICATIONS: AtomicU64 = AtomicU64::new(0);
/// Whether the pairs go on.
static RUNNING: AtomicBool = AtomicBool::new(true);

fn storm(crashing: bool) -> Vec<f64> {
    let runtime = runtime();
    let figures = runtime.block_on(async move {
        let begin = CancellationToken::new();
        let (conns, first) = children(&begin).await;
        if crashing {
            begin.cancel();
            sleep(PHASE).await;
        }
        first.iter().for_each(|first| first.notify_one());
        let before = [&NOTIFICATIONS, &RESTARTS].map(|count| count.load(Ordering::Relaxed));
        let began = Instant::now();
        let starts = tokio::spawn(starts(conns, began + PHASE)).await.expect("no panic");
        let took = began.elapsed().as_secs_f64();
        let after = [&NOTIFICATIONS, &RESTARTS].map(|count| count.load(Ordering::Relaxed));
        RUNNING.store(false, Ordering::Relaxed);
        let [notifications, restarts] = [0, 1].map(|at| (after[at] - before[at]) as f64 / took);
        let [p50, p99] = [50, 99].map(|percent| percentile(percent, starts.clone()));
        vec![notifications, restarts, p50, p99, resident_bytes() as f64]
    });
    runtime.shutdown_background();
    figures
}

/// The supervisor, and the first child of each pair.
async fn children(begin: &CancellationToken) -> (SupervisorHandle, Vec<Arc<Notify>>) {
    let [_tree, conns] = dynamic().await;
    let (idle, crashing) = (worker("idle", idle), crashing(begin.clone()));
    for number in 0..CHILDREN - 2 * PAIRS {
        let crashes = number.is_multiple_of(CHILDREN / CRASHING);
        let spec = if crashes { crashing.clone() } else { idle.clone() };
        conns.start_child(spec).await.expect("it starts");
    }
    let mut first = Vec::new();
    for _ in 0..PAIRS {
        let [here, there] = [0, 1].map(|_| Arc::<Notify>::default());
        for [from, to] in [[&here, &there], [&there, &here]] {
            conns.start_child(notifying(from, to)).await.expect("it starts");
        }
        first.push(here);
    }
    (conns, first)
}

fn crashing(begin: CancellationToken) -> ChildSpec {
    let child = worker("crashing", move |ctx: Context| {
        let begin = (ctx.incarnation() == 1).then(|| begin.clone());
        async move {
            match begin {
                Some(begin) => begin.cancelled().await,
                None => drop(RESTARTS.fetch_add(1, Ordering::Relaxed)),
            }
            Exit::Err("out of luck".into())
        }
    });
    child.backoff(Backoff::constant(BACKOFF))
}

fn notifying(from: &Arc<Notify>, to: &Arc<Notify>) -> ChildSpec {
    let (from, to) = (Arc::clone(from), Arc::clone(to));
    worker("notifying", move |ctx: Context| {
        let (from, to) = (Arc::clone(&from), Arc::clone(&to));
        async move {
            while ctx.run_until_cancelled(from.notified()).await.is_some() {
                if RUNNING.load(Ordering::Relaxed) {
                    NOTIFICATIONS.fetch_add(1, Ordering::Relaxed);
                    to.notify_one();
                }
            }
        }
    })
}

/// The times of starts, one in each millisecond. Each started child is terminated.
async fn starts(conns: SupervisorHandle, until: Instant) -> Vec<Duration> {
    let idle = worker("late", idle);
    let mut times = Vec::new();
    while Instant::now() < until {
        sleep(Duration::from_millis(1)).await;
        let spec = idle.clone();
        let began = Instant::now();
        let child = conns.start_child(spec).await.expect("it starts");
        times.push(began.elapsed());
        conns.terminate_child(child.name()).await.expect("it exists");
    }
    times
}
