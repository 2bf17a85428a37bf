//! Many failures at once, and one that goes on and on beside others.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::AbortHandle;
use verger::{
    Backoff, CancellationToken, Context, DynamicSupervisor, Exit, Strategy, Supervisor,
    SupervisorHandle, worker,
};

use crate::idle::{self, STARTS};
use crate::measure::{Budget, Part, Row, Side, Unit, Who, nanos, p50, runtime};
use crate::raw;
use crate::restart::{Failure, silence_panics};

const CHILDREN: u64 = 10_000;
/// Of each child.
const FAILURES: u32 = 10;

pub(crate) const ROWS: &[Row] = &[
    Row::new("restarts-error", |side| restarts(side, Failure::Error))
        .what("restarts of 10,000 children that fail 10 times each, by errors")
        .beside_raw(CHILDREN)
        .parts(&[Part::new("", Unit::PerSecond, Budget::AtLeast(1.3))]),
    Row::new("restarts-panic", |side| restarts(side, Failure::Panic))
        .what("the same, by panics")
        .beside_raw(CHILDREN)
        .parts(&[Part::new("", Unit::PerSecond, Budget::AtLeast(1.2))]),
    Row::new("one-for-all", one_for_all)
        .what("one_for_all of 10,000 children, until all are back")
        .beside_raw(CHILDREN)
        .parts(&[Part::new("", Unit::Nanos, Budget::AtMost(1.2))]),
    Row::new("start-beside-loop", start_beside_loops)
        .what("start a child while one of 10,000 others crashes in a loop, against none, p50")
        .against_itself(0, 1)
        .parts(&[Part::new("", Unit::Nanos, Budget::AtMost(1.5))])
        .many_rounds(),
];

// --- All fail ------------------------------------------------------------------------------------

/// From the moment when they may fail to the first instruction of the last run.
fn restarts(side: Side, failure: Failure) -> Vec<f64> {
    silence_panics();
    let n = side.n;
    let restarts = n * u64::from(FAILURES);
    let took = runtime().block_on(async {
        let go = CancellationToken::new();
        let all = STARTS.expect(n);
        match side.who {
            Who::Raw => drop(tokio::spawn(failing_tasks(n, failure, go.clone()))),
            Who::Verger => {
                let app = failing_children(n, failure, go.clone());
                drop(tokio::spawn(async { app.start().await.expect("it starts") }));
            }
        }
        all.await.expect("they start");
        let all = STARTS.expect(restarts);
        let began = Instant::now();
        go.cancel();
        all.await.expect("they restart") - began
    });
    vec![restarts as f64 / took.as_secs_f64()]
}

async fn failing_tasks(n: u64, failure: Failure, go: CancellationToken) {
    raw::supervise(n, CancellationToken::new(), |children, run, stop| {
        let go = (run.number == 1).then(|| go.clone());
        children.spawn(async move {
            STARTS.one();
            if let Some(go) = go {
                go.cancelled().await;
            }
            if run.number <= FAILURES {
                return failure.happen();
            }
            stop.cancelled_owned().await;
            Ok(())
        })
    })
    .await;
}

fn failing_children(n: u64, failure: Failure, go: CancellationToken) -> Supervisor {
    let child = worker("child", move |ctx: Context| {
        let go = (ctx.incarnation() == 1).then(|| go.clone());
        async move {
            STARTS.one();
            if let Some(go) = go {
                go.cancelled().await;
            }
            if ctx.incarnation() <= FAILURES {
                return failure.happen();
            }
            ctx.cancelled().await;
            Exit::Ok(())
        }
    });
    let child = child.backoff(Backoff::none());
    let app = Supervisor::builder("app").restarts(1_000_000, Duration::from_secs(3600));
    idle::named(child, n).fold(app, |app, child| app.child(child)).build().expect("a tree")
}

// --- All because of one --------------------------------------------------------------------------

static FAIL: Notify = Notify::const_new();
static FAILED: Mutex<Option<Instant>> = Mutex::new(None);

/// From just before the failure to the first instruction of the last child.
fn one_for_all(side: Side) -> Vec<f64> {
    let n = side.n;
    let runtime = runtime();
    let took = runtime.block_on(async {
        let all = STARTS.expect(n);
        match side.who {
            Who::Raw => {
                let stop = CancellationToken::new();
                let start = move |children: &mut _, index, stop| {
                    grouped_task(children, index == n / 2, stop)
                };
                drop(tokio::spawn(raw::supervise_together(n, stop, start)));
            }
            Who::Verger => {
                let app = grouped_children(n);
                drop(tokio::spawn(async { app.start().await.expect("it starts") }));
            }
        }
        all.await.expect("they start");
        let all = STARTS.expect(n);
        FAIL.notify_one();
        let back = all.await.expect("they restart");
        back - FAILED.lock().expect("no panic").take().expect("it failed")
    });
    runtime.shutdown_background();
    vec![nanos(took, 1)]
}

fn fail_now<E: From<&'static str>>() -> Result<(), E> {
    *FAILED.lock().expect("no panic") = Some(Instant::now());
    Failure::Error.happen()
}

fn grouped_task(children: &mut raw::Children, fails: bool, stop: CancellationToken) -> AbortHandle {
    if !fails {
        return children.spawn(idle::task(stop));
    }
    children.spawn(async move {
        STARTS.one();
        tokio::select! {
            () = FAIL.notified() => fail_now(),
            () = stop.cancelled() => Ok(()),
        }
    })
}

fn grouped_children(n: u64) -> Supervisor {
    let failing = worker("failing", async |ctx: Context| -> Exit {
        STARTS.one();
        match ctx.run_until_cancelled(FAIL.notified()).await {
            Some(()) => fail_now(),
            None => Ok(()),
        }
    });
    let failing = failing.backoff(Backoff::none());
    let app = Supervisor::builder("app").strategy(Strategy::OneForAll);
    let idle = idle::named(worker("idle", idle::child), n);
    let children =
        idle.zip(0..).map(|(idle, index)| if index == n / 2 { failing.clone() } else { idle });
    let app = children.fold(app, |app, child| app.child(child));
    app.restarts(1_000, Duration::from_secs(3600)).build().expect("a tree")
}

// --- One again and again -------------------------------------------------------------------------

/// `n` is how many crash in a loop.
fn start_beside_loops(side: Side) -> Vec<f64> {
    let runtime = runtime();
    let took = runtime.block_on(async {
        let conns = DynamicSupervisor::builder("conns").unlimited_restarts();
        let app = Supervisor::builder("app").child(conns).build().expect("a tree");
        let tree = app.start().await.expect("it starts");
        let conns = tree.supervisor("conns").await.expect("it runs");
        let idle = worker("idle", idle::child);
        for _ in 0..CHILDREN {
            conns.start_child(idle.clone()).await.expect("it starts");
        }
        for _ in 0..side.n {
            let looping = worker("looping", async |_ctx| Failure::Error.happen::<&str>());
            conns.start_child(looping.backoff(Backoff::none())).await.expect("it starts");
        }
        tokio::spawn(starts(conns)).await.expect("no panic")
    });
    runtime.shutdown_background();
    vec![p50(took)]
}

async fn starts(conns: SupervisorHandle) -> Vec<Duration> {
    let idle = worker("late", idle::child);
    let mut took = Vec::new();
    for _ in 0..2_000 {
        let spec = idle.clone();
        let began = Instant::now();
        conns.start_child(spec).await.expect("it starts");
        took.push(began.elapsed());
    }
    took
}
