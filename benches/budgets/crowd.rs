//! Many failures at once, and a crash loop beside other work.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::AbortHandle;
use verger::{
    Backoff, CancellationToken, Context, Exit, Strategy, Supervisor, SupervisorHandle, worker,
};

use crate::measure::{
    STARTS, Side, dynamic, idle, in_runtime, named, nanos, percentile, runtime, spawn_start,
};
use crate::restart::{Failure, silence_panics};
use crate::tokio_only;

/// Failures of each child.
pub(crate) const FAILURES: u32 = 10;

// --- All children fail ---------------------------------------------------------------------------

pub(crate) fn restarts_error(side: Side, n: u64) -> f64 {
    restarts(side, n, Failure::Error)
}

pub(crate) fn restarts_panic(side: Side, n: u64) -> f64 {
    restarts(side, n, Failure::Panic)
}

/// From the first failure to the first instruction of the last incarnation.
fn restarts(side: Side, n: u64, failure: Failure) -> f64 {
    silence_panics();
    let restarts = n * u64::from(FAILURES);
    runtime().block_on(async {
        let go = CancellationToken::new();
        let all = STARTS.expect(n);
        match side {
            Side::Tokio => drop(tokio::spawn(failing_tasks(n, failure, go.clone()))),
            Side::Verger => spawn_start(failing_children(n, failure, go.clone())),
        }
        all.await.expect("they start");
        let all = STARTS.expect(restarts);
        let began = Instant::now();
        go.cancel();
        let took = all.await.expect("they restart") - began;
        restarts as f64 / took.as_secs_f64()
    })
}

/// The failing child, on both sides, until it waits for its stop. The first incarnation waits for `go`.
async fn fail<E: From<&'static str>>(
    incarnation: u32,
    failure: Failure,
    go: Option<CancellationToken>,
) -> Result<(), E> {
    STARTS.count();
    if let Some(go) = go {
        go.cancelled().await;
    }
    if incarnation <= FAILURES { failure.fail() } else { Ok(()) }
}

async fn failing_tasks(n: u64, failure: Failure, go: CancellationToken) {
    tokio_only::one_for_one(n, CancellationToken::new(), |children, next, stop| {
        let go = (next.number == 1).then(|| go.clone());
        children.spawn(async move {
            fail::<&str>(next.number, failure, go).await?;
            stop.cancelled_owned().await;
            Ok(())
        })
    })
    .await;
}

pub(crate) fn failing_children(n: u64, failure: Failure, go: CancellationToken) -> Supervisor {
    let child = worker("child", move |ctx: Context| {
        let go = (ctx.incarnation() == 1).then(|| go.clone());
        async move {
            fail::<&str>(ctx.incarnation(), failure, go).await?;
            ctx.cancelled().await;
            Exit::Ok(())
        }
    });
    let child = child.backoff(Backoff::none());
    let app = Supervisor::builder("app").restarts(1_000_000, Duration::from_secs(3600));
    named(child, n).fold(app, |app, child| app.child(child)).build().expect("a tree")
}

// --- One child fails, all restart ----------------------------------------------------------------

static FAIL: Notify = Notify::const_new();
static FAILED: Mutex<Option<Instant>> = Mutex::new(None);

/// From just before the failure to the first instruction of the last child.
pub(crate) fn one_for_all(side: Side, n: u64) -> f64 {
    let took = in_runtime(async {
        let all = STARTS.expect(n);
        match side {
            Side::Tokio => {
                let start =
                    move |children: &mut _, child, stop| group_task(children, child == n / 2, stop);
                let stop = CancellationToken::new();
                drop(tokio::spawn(tokio_only::one_for_all(n, stop, start)));
            }
            Side::Verger => spawn_start(group(n)),
        }
        all.await.expect("they start");
        let all = STARTS.expect(n);
        FAIL.notify_one();
        let back = all.await.expect("they restart");
        back - FAILED.lock().expect("no panic").take().expect("it failed")
    });
    nanos(took, 1)
}

fn fail_now<E: From<&'static str>>() -> Result<(), E> {
    *FAILED.lock().expect("no panic") = Some(Instant::now());
    Failure::Error.fail()
}

fn group_task(
    children: &mut tokio_only::Children,
    fails: bool,
    stop: CancellationToken,
) -> AbortHandle {
    if !fails {
        return children.spawn(tokio_only::idle(stop));
    }
    children.spawn(async move {
        STARTS.count();
        tokio::select! {
            () = FAIL.notified() => fail_now(),
            () = stop.cancelled() => Ok(()),
        }
    })
}

fn group(n: u64) -> Supervisor {
    let failing = worker("failing", async |ctx: Context| -> Exit {
        STARTS.count();
        match ctx.run_until_cancelled(FAIL.notified()).await {
            Some(()) => fail_now(),
            None => Ok(()),
        }
    });
    let failing = failing.backoff(Backoff::none());
    let idle = named(worker("idle", idle), n);
    let children = idle.zip(0..).map(|(idle, at)| if at == n / 2 { failing.clone() } else { idle });
    let app = Supervisor::builder("app").strategy(Strategy::OneForAll);
    let app = children.fold(app, |app, child| app.child(child));
    app.restarts(1_000, Duration::from_secs(3600)).build().expect("a tree")
}

// --- One child fails again and again -------------------------------------------------------------

/// Starts of children beside 10,000 idle ones and `n` crash loops.
pub(crate) fn start_beside_loop(_side: Side, n: u64) -> f64 {
    let times = in_runtime(async {
        let [_tree, conns] = dynamic().await;
        for _ in 0..10_000 {
            conns.start_child(worker("idle", idle)).await.expect("it starts");
        }
        for _ in 0..n {
            let looping = worker("looping", async |_ctx| Failure::Error.fail::<&str>());
            conns.start_child(looping.backoff(Backoff::none())).await.expect("it starts");
        }
        tokio::spawn(starts(conns)).await.expect("no panic")
    });
    percentile(50, times)
}

async fn starts(conns: SupervisorHandle) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..2_000 {
        let spec = worker("late", idle);
        let began = Instant::now();
        conns.start_child(spec).await.expect("it starts");
        times.push(began.elapsed());
    }
    times
}
