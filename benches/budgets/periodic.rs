//! Runs of many periodic children, beside loops over `tokio::time::interval`.

use std::pin::pin;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use verger::periodic::RunContext;
use verger::{CancellationToken, ChildSpec, Supervisor, every};

use crate::measure::{STARTS, Side, named, nanos, peak_bytes, runtime, spawn_start};

/// Runs of each child that are measured.
const RUNS: u64 = 10;

/// A period that is always over when the thread comes back to a child, so that all threads are busy.
const AT_ONCE: Duration = Duration::from_millis(1);

/// A period that is never over.
const NEVER: Duration = Duration::from_secs(100_000);

/// From the start to the last child's tenth run, for each run.
pub(crate) fn runs(side: Side, n: u64) -> f64 {
    runtime().block_on(async {
        let all = STARTS.expect(n * RUNS);
        let began = start(side, n, AT_ONCE);
        nanos(all.await.expect("they run") - began, n * RUNS)
    })
}

/// The growth of the peak resident set for each child that waits for its next run.
pub(crate) fn bytes(side: Side, n: u64) -> f64 {
    runtime().block_on(async {
        let before = peak_bytes();
        let all = STARTS.expect(n);
        start(side, n, NEVER);
        all.await.expect("they run");
        (peak_bytes() - before) as f64 / n as f64
    })
}

fn start(side: Side, n: u64, period: Duration) -> Instant {
    let tree = (side == Side::Verger).then(|| tree(n, period));
    let began = Instant::now();
    match tree {
        None => drop(tokio::spawn(loops(n, period, CancellationToken::new()))),
        Some(tree) => spawn_start(tree),
    }
    began
}

fn tree(n: u64, period: Duration) -> Supervisor {
    let job: ChildSpec = every("child", period, |run: RunContext| {
        if run.number() <= RUNS {
            STARTS.count();
        }
        std::future::ready(())
    })
    .into();
    let app = named(job, n).fold(Supervisor::builder("app"), |app, child| app.child(child));
    app.build().expect("a tree")
}

/// Starts `n` loops, and ends when all of them have ended.
async fn loops(n: u64, period: Duration, stop: CancellationToken) {
    let mut children = JoinSet::new();
    for _ in 0..n {
        children.spawn(tick(period, stop.clone()));
    }
    while children.join_next().await.is_some() {}
}

async fn tick(period: Duration, stop: CancellationToken) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut stopped = pin!(stop.cancelled_owned());
    for number in 1_u64.. {
        tokio::select! {
            biased;
            () = &mut stopped => return,
            _ = ticks.tick() => {
                if number <= RUNS {
                    STARTS.count();
                }
            }
        }
    }
}
