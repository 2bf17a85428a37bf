//! One restart: from just before a failure to the first instruction of the next incarnation.

use std::future::pending;
use std::panic;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use verger::{Backoff, CancellationToken, Context, ExitError, Supervisor, worker};

use crate::measure::{STARTS, Side, idle, in_runtime, named, percentile, spawn_start};
use crate::tokio_only;

const HOUR: Duration = Duration::from_secs(3600);

/// Lets the child fail for the first time.
static BEGIN: Notify = Notify::const_new();
static DONE: Notify = Notify::const_new();
static FAILED: Mutex<Option<Instant>> = Mutex::new(None);
static TIMES: Mutex<Vec<Duration>> = Mutex::new(Vec::new());

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Error,
    Panic,
}

impl Failure {
    pub(crate) fn fail<E: From<&'static str>>(self) -> Result<(), E> {
        match self {
            Self::Error => Err("out of luck".into()),
            Self::Panic => panic!("out of luck"),
        }
    }
}

/// Panics print nothing on either side.
pub(crate) fn silence_panics() {
    panic::set_hook(Box::new(|_| {}));
}

/// One of `n` children fails again and again.
pub(crate) fn error(side: Side, n: u64) -> f64 {
    percentile(50, restarts(side, n, Failure::Error, HOUR, 20_000))
}

pub(crate) fn panic(side: Side, n: u64) -> f64 {
    percentile(50, restarts(side, n, Failure::Panic, HOUR, 20_000))
}

/// Restarts while the window of the limit holds `n` of them, which are 0 or 10,000.
pub(crate) fn in_window(side: Side, n: u64) -> f64 {
    const BEFORE: usize = 10_000;
    let period = if n == 0 { Duration::from_nanos(1) } else { HOUR };
    let mut times = restarts(side, 1, Failure::Error, period, BEFORE + 2_000);
    percentile(50, times.split_off(BEFORE))
}

fn restarts(side: Side, n: u64, failure: Failure, period: Duration, count: usize) -> Vec<Duration> {
    silence_panics();
    TIMES.lock().expect("no panic").reserve(count);
    // A million idle tasks would take a while to end, so they are left behind.
    in_runtime(async {
        let all_started = STARTS.expect(n);
        match side {
            Side::Tokio => drop(tokio::spawn(on_tokio(n, failure, count))),
            Side::Verger => spawn_start(on_verger(n, failure, period, count)),
        }
        all_started.await.expect("they start");
        BEGIN.notify_one();
        DONE.notified().await;
    });
    std::mem::take(&mut TIMES.lock().expect("no panic"))
}

/// The failing child, on both sides.
async fn flaky<E: From<&'static str>>(
    first: bool,
    failure: Failure,
    count: usize,
) -> Result<(), E> {
    let now = Instant::now();
    if first {
        STARTS.count();
        BEGIN.notified().await;
    } else if noted(now) == count {
        DONE.notify_one();
        pending::<()>().await;
    }
    *FAILED.lock().expect("no panic") = Some(Instant::now());
    failure.fail()
}

fn noted(now: Instant) -> usize {
    let failed = FAILED.lock().expect("no panic").take().expect("it failed before");
    let mut times = TIMES.lock().expect("no panic");
    times.push(now - failed);
    times.len()
}

async fn on_tokio(n: u64, failure: Failure, count: usize) {
    tokio_only::one_for_one(n, CancellationToken::new(), move |children, next, stop| {
        if next.child == n / 2 {
            children.spawn(flaky(next.number == 1, failure, count))
        } else {
            children.spawn(tokio_only::idle(stop))
        }
    })
    .await;
}

fn on_verger(n: u64, failure: Failure, period: Duration, count: usize) -> Supervisor {
    let flaky = worker("flaky", move |ctx: Context| {
        flaky::<ExitError>(ctx.incarnation() == 1, failure, count)
    });
    let flaky = flaky.backoff(Backoff::none());
    let idle = named(worker("idle", idle), n);
    let children = idle.zip(0..).map(|(idle, at)| if at == n / 2 { flaky.clone() } else { idle });
    let app = Supervisor::builder("app").restarts(1_000_000, period);
    children.fold(app, |app, child| app.child(child)).build().expect("a tree")
}
