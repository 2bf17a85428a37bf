//! What is done at a time, or before: backoffs and activation timeouts.

use std::time::Duration;

use tokio::time::sleep;
use verger::{Backoff, Context, DynamicSupervisor, Exit, Readiness, Supervisor, worker};

use crate::children::started;
use crate::{EVENTS, Scenario, counted, runtime, settle};

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario::alone("backoff, alone", "exit, wait and start", backoff_alone),
    Scenario::alone("backoff, one of many", "wait that is over, and start", backoffs),
    Scenario::alone("activation_timeout", "child that is ready in time", activation),
];

/// Fails in its first incarnations.
async fn flaky(ctx: Context, failures: u32) -> Exit {
    if ctx.incarnation() <= failures {
        return Err("connection refused".into());
    }
    ctx.cancelled().await;
    Ok(())
}

fn backoff_alone() {
    let flaky = worker("flaky", |ctx| flaky(ctx, EVENTS));
    let flaky =
        flaky.backoff(Backoff::exponential(Duration::from_millis(10), Duration::from_secs(1)));
    let app = Supervisor::builder("app").unlimited_restarts().child(flaky).random(steady);
    let app = app.build().expect("a tree");
    let runtime = runtime();
    let tree = counted(&runtime, async {
        let tree = app.start().await.expect("it starts");
        sleep(Duration::from_secs(1) * 2 * EVENTS).await;
        tree
    });
    let child = runtime.block_on(tree.which_child("flaky")).expect("it is there");
    assert_eq!(child.incarnation, EVENTS + 1);
}

/// All of them wait already, each for a time of its own.
fn backoffs() {
    let runtime = runtime();
    let conns = DynamicSupervisor::builder("conns").unlimited_restarts().random(steady);
    let tree = started(&runtime, conns.build());
    runtime.block_on(async {
        for _ in 0..EVENTS {
            tree.start_child(worker("conn", |ctx| flaky(ctx, 1))).await.expect("it starts");
        }
        settle().await;
    });
    counted(&runtime, async { sleep(Duration::from_secs(10)).await });
    let child = runtime.block_on(tree.which_child("conn#1")).expect("it is there");
    assert_eq!(child.incarnation, 2);
}

/// The same numbers in each run.
fn steady() -> fastrand::Rng {
    fastrand::Rng::with_seed(1)
}

/// Beside `start_child`, the difference is the deadline that comes and goes.
fn activation() {
    let runtime = runtime();
    let tree = started(&runtime, DynamicSupervisor::builder("conns").build());
    counted(&runtime, async {
        for _ in 0..EVENTS {
            let conn = worker("conn", async |ctx: Context| {
                ctx.ready();
                ctx.cancelled().await;
            });
            let conn = conn.readiness(Readiness::Signal);
            let conn = conn.activation_timeout(Duration::from_secs(10));
            tree.start_child(conn).await.expect("it is ready");
        }
    });
}
