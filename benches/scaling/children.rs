//! Operations on one child among many.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, mpsc};
use verger::{Backoff, ChildSpec, Context, Exit, Supervisor, SupervisorHandle, worker};

use crate::Scenario;
use crate::measure::Unit::Nanos;
use crate::measure::{STARTS, dynamic, idle, in_runtime, name, nanos, percentile};

const SIZES: &[(&str, u64)] =
    &[("1,000", 1_000), ("10,000", 10_000), ("100,000", 100_000), ("1,000,000", 1_000_000)];

pub(crate) const DECLARED: Scenario = Scenario {
    name: "declared",
    title: "Declared children:",
    columns: SIZES,
    lines: &[
        ("start, each", Nanos),
        ("a restart after an error", Nanos),
        ("`which_child`", Nanos),
        ("`which_children`, for each 100", Nanos),
        ("`status`, for each 100", Nanos),
        ("`terminate_child`", Nanos),
        ("stop in order, each", Nanos),
    ],
    work: declared,
};

pub(crate) const DYNAMIC: Scenario = Scenario {
    name: "dynamic",
    title: "Children of a dynamic supervisor:",
    columns: SIZES,
    lines: &[
        ("`start_child`", Nanos),
        ("a restart after an error", Nanos),
        ("`which_child`", Nanos),
        ("`which_children`, for each 100", Nanos),
        ("`status`, for each 100", Nanos),
        ("`terminate_child`", Nanos),
        ("stop all at once, each", Nanos),
    ],
    work: started,
};

/// The number of children that operations are tried on, at equal distances in start order.
const SAMPLES: u64 = 500;

fn declared(n: u64) -> Vec<f64> {
    let (mut samples, specs) = children(n);
    samples.names = (0..n).filter(|&at| is_sample(at, n)).map(name).collect();
    let app = specs.fold(Supervisor::builder("app").unlimited_restarts(), |app, it| app.child(it));
    let app = app.build().expect("a tree");
    on_a_worker(async move {
        let all = STARTS.expect(n);
        let began = Instant::now();
        let tree = app.start().await.expect("it starts");
        let start = nanos(all.await.expect("they start") - began, n);
        operations(start, &tree, samples, n).await
    })
}

fn started(n: u64) -> Vec<f64> {
    let (mut samples, specs) = children(n);
    on_a_worker(async move {
        let [_tree, conns] = dynamic().await;
        let mut starts = Vec::with_capacity(n as usize);
        for (at, spec) in specs.enumerate() {
            let began = Instant::now();
            let child = conns.start_child(spec).await.expect("it starts");
            starts.push(began.elapsed());
            if is_sample(at as u64, n) {
                samples.names.push(child.name().to_owned());
            }
        }
        operations(percentile(50, starts), &conns, samples, n).await
    })
}

fn on_a_worker(work: impl Future<Output = Vec<f64>> + Send + 'static) -> Vec<f64> {
    in_runtime(async { tokio::spawn(work).await.expect("no panic") })
}

fn is_sample(at: u64, n: u64) -> bool {
    at.is_multiple_of(n / SAMPLES)
}

struct Samples {
    names: Vec<String>,
    fail: Vec<Arc<Notify>>,
    /// From just before each failure to the next first instruction.
    restarts: mpsc::UnboundedReceiver<Duration>,
}

/// `n` idle children, of which the samples fail on demand.
fn children(n: u64) -> (Samples, impl Iterator<Item = ChildSpec>) {
    let (restarted, restarts) = mpsc::unbounded_channel();
    let fail: Vec<_> = (0..SAMPLES).map(|_| Arc::<Notify>::default()).collect();
    let mut failing = fail.clone().into_iter().map(move |fail| failing(fail, restarted.clone()));
    let idle = worker("idle", idle);
    let specs = (0..n).map(move |at| {
        let sample = is_sample(at, n).then(|| failing.next()).flatten();
        sample.unwrap_or_else(|| idle.clone()).named(name(at))
    });
    (Samples { names: Vec::new(), fail, restarts }, specs)
}

fn failing(fail: Arc<Notify>, restarted: mpsc::UnboundedSender<Duration>) -> ChildSpec {
    let failed = Arc::new(Mutex::new(None::<Instant>));
    let child = worker("failing", move |ctx: Context| {
        let (fail, failed, restarted) = (fail.clone(), failed.clone(), restarted.clone());
        async move {
            let now = Instant::now();
            match failed.lock().expect("no panic").take() {
                Some(failed) => drop(restarted.send(now - failed)),
                None => STARTS.count(),
            }
            if ctx.run_until_cancelled(fail.notified()).await.is_some() {
                *failed.lock().expect("no panic") = Some(Instant::now());
                return Exit::Err("out of luck".into());
            }
            Ok(())
        }
    });
    child.backoff(Backoff::none())
}

/// All that is measured once the children run. The last operation stops the supervisor.
async fn operations(
    start: f64,
    supervisor: &SupervisorHandle,
    mut samples: Samples,
    n: u64,
) -> Vec<f64> {
    let mut restarts = Vec::new();
    for fail in &samples.fail {
        fail.notify_one();
        restarts.push(samples.restarts.recv().await.expect("it restarts"));
    }
    let mut which = Vec::new();
    for name in &samples.names {
        let began = Instant::now();
        supervisor.which_child(name).await.expect("it exists");
        which.push(began.elapsed());
    }
    let began = Instant::now();
    let all = supervisor.children().await.expect("it runs");
    let pages = nanos(began.elapsed(), n / 100);
    assert_eq!(all.len() as u64, n);
    let began = Instant::now();
    let status = supervisor.status().await.expect("it runs");
    let statuses = nanos(began.elapsed(), n / 100);
    assert_eq!(status.root.children.len() as u64, n);
    let mut terminated = Vec::new();
    for name in &samples.names {
        let began = Instant::now();
        supervisor.stop_child(name).await.expect("it exists");
        terminated.push(began.elapsed());
    }
    drop((all, status));
    let began = Instant::now();
    supervisor.stop("measured").await.expect("it stops");
    let stop = nanos(began.elapsed(), n - SAMPLES);
    let [restart, which, terminate] =
        [restarts, which, terminated].map(|times| percentile(50, times));
    vec![start, restart, which, pages, statuses, terminate, stop]
}
