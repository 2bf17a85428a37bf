//! Operations on one child among many: does it matter how many there are?

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, mpsc};
use verger::{
    Backoff, ChildSpec, Context, DynamicSupervisor, Exit, Supervisor, SupervisorHandle, worker,
};

use crate::idle::{self, STARTS};
use crate::measure::{Part, Row, Side, Unit, nanos, p50, runtime};
use crate::table::{Layout, Table};

pub(crate) const TABLE: Table = Table {
    title: "One child among so many",
    note: "Medians of 500 calls, each for another child. Starts of declared children, stops and \
           views are of all children at once, divided by their number.",
    rows: ROWS,
    layout: Layout::Sizes(&[1_000, 10_000, 100_000, 1_000_000]),
};

/// So many of the children are tried, at equal distances in start order.
const TRIED: u64 = 500;

const ROWS: &[Row] = &[
    Row::new("static", declared)
        .what("declared children")
        .alone(Side::verger(1_000_000))
        .parts(&[
            time("start, each"),
            time("a restart after an error"),
            time("`count_children`"),
            time("`which_child`"),
            time("`which_children`, for each 100"),
            time("`status`, for each 100"),
            time("`terminate_child`"),
            time("`delete_child`"),
            time("stop in order, each"),
        ])
        .rounds(3),
    Row::new("dynamic", started)
        .what("children of a dynamic supervisor")
        .alone(Side::verger(1_000_000))
        .parts(&[
            time("`start_child`"),
            time("`start_child`, the slowest of all"),
            time("a restart after an error"),
            time("`count_children`"),
            time("`which_child`"),
            time("`which_children`, for each 100"),
            time("`status`, for each 100"),
            time("`terminate_child`"),
            time("stop all at once, each"),
        ])
        .rounds(3),
];

const fn time(what: &'static str) -> Part {
    Part::without_budget(what, Unit::Nanos)
}

fn declared(side: Side) -> Vec<f64> {
    let n = side.n;
    let (mut tried, specs) = children(n);
    tried.names = (0..n).filter(|&index| is_tried(index, n)).map(idle::name).collect();
    let app = specs.fold(Supervisor::builder("app").unlimited_restarts(), |app, it| app.child(it));
    let app = app.build().expect("a tree");
    in_the_runtime(async move {
        let all = STARTS.expect(n);
        let began = Instant::now();
        let tree = app.start().await.expect("it starts");
        let start = nanos(all.await.expect("they start") - began, n);
        let views = views(&tree, &mut tried, n).await;
        let [terminate, delete] = taken_out(&tree, &tried.names, true).await;
        let stop = stop(tree).await;
        [&[start], &views[..], &[terminate, delete, stop]].concat()
    })
}

fn started(side: Side) -> Vec<f64> {
    let n = side.n;
    let (mut tried, specs) = children(n);
    in_the_runtime(async move {
        let conns = DynamicSupervisor::builder("conns").unlimited_restarts();
        let app = Supervisor::builder("app").child(conns).build().expect("a tree");
        let tree = app.start().await.expect("it starts");
        let conns = tree.supervisor("conns").await.expect("it runs");
        let mut took = Vec::with_capacity(n as usize);
        for (index, spec) in specs.enumerate() {
            let began = Instant::now();
            let child = conns.start_child(spec).await.expect("it starts");
            took.push(began.elapsed());
            if is_tried(index as u64, n) {
                tried.names.push(child.name().to_owned());
            }
        }
        let slowest = took.iter().max().map_or(0.0, |&slowest| nanos(slowest, 1));
        let views = views(&conns, &mut tried, n).await;
        let [terminate, _] = taken_out(&conns, &tried.names, false).await;
        let stop = stop(tree).await;
        [&[p50(took), slowest], &views[..], &[terminate, stop]].concat()
    })
}

/// On a thread of the runtime, as the children are.
fn in_the_runtime(work: impl Future<Output = Vec<f64>> + Send + 'static) -> Vec<f64> {
    let runtime = runtime();
    let figures = runtime.block_on(async { tokio::spawn(work).await.expect("no panic") });
    // Nobody waits for what is still there.
    runtime.shutdown_background();
    figures
}

// --- The children that are tried -----------------------------------------------------------------

fn is_tried(index: u64, n: u64) -> bool {
    index.is_multiple_of(n / TRIED)
}

struct Tried {
    names: Vec<String>,
    fail: Vec<Arc<Notify>>,
    /// How long each restart took, from just before the failure to the next first instruction.
    restarts: mpsc::UnboundedReceiver<Duration>,
}

/// `n` of them. Those that are tried fail when they are told to.
fn children(n: u64) -> (Tried, impl Iterator<Item = ChildSpec>) {
    let (restarted, restarts) = mpsc::unbounded_channel();
    let fail: Vec<_> = (0..TRIED).map(|_| Arc::<Notify>::default()).collect();
    let mut failing = fail.clone().into_iter().map(move |fail| failing(fail, restarted.clone()));
    let specs = idle::named(n).zip(0..).map(move |(idle, index)| {
        let tried = is_tried(index, n).then(|| failing.next()).flatten();
        tried.map_or(idle, |tried| tried.named(idle::name(index)))
    });
    (Tried { names: Vec::new(), fail, restarts }, specs)
}

fn failing(fail: Arc<Notify>, restarted: mpsc::UnboundedSender<Duration>) -> ChildSpec {
    let failed = Arc::new(Mutex::new(None::<Instant>));
    let child = worker("failing", move |ctx: Context| {
        let (fail, failed, restarted) = (fail.clone(), failed.clone(), restarted.clone());
        async move {
            let now = Instant::now();
            match failed.lock().expect("no panic").take() {
                Some(failed) => drop(restarted.send(now - failed)),
                None => STARTS.one(),
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

// --- What is done to them ------------------------------------------------------------------------

/// A restart, and what is asked without a change.
async fn views(supervisor: &SupervisorHandle, tried: &mut Tried, n: u64) -> [f64; 5] {
    let mut restarts = Vec::new();
    for fail in &tried.fail {
        fail.notify_one();
        restarts.push(tried.restarts.recv().await.expect("it comes back"));
    }
    let mut counts = Vec::new();
    for _ in 0..TRIED {
        let began = Instant::now();
        let counted = supervisor.count_children().await.expect("it runs");
        counts.push(began.elapsed());
        assert_eq!(counted.specs as u64, n);
    }
    let mut which = Vec::new();
    for name in &tried.names {
        let began = Instant::now();
        supervisor.which_child(name).await.expect("it is there");
        which.push(began.elapsed());
    }
    let began = Instant::now();
    let all = supervisor.which_children().await.expect("it runs");
    let pages = nanos(began.elapsed(), n / 100);
    assert_eq!(all.len() as u64, n);
    drop(all);
    let began = Instant::now();
    let status = supervisor.status().await.expect("it runs");
    let statuses = nanos(began.elapsed(), n / 100);
    assert_eq!(status.root.children.len() as u64, n);
    [p50(restarts), p50(counts), p50(which), pages, statuses]
}

async fn taken_out(supervisor: &SupervisorHandle, names: &[String], delete: bool) -> [f64; 2] {
    let mut terminated = Vec::new();
    for name in names {
        let began = Instant::now();
        supervisor.terminate_child(name).await.expect("it is there");
        terminated.push(began.elapsed());
    }
    let mut deleted = vec![Duration::ZERO];
    if delete {
        deleted.clear();
        for name in names {
            let began = Instant::now();
            supervisor.delete_child(name).await.expect("it is there");
            deleted.push(began.elapsed());
        }
    }
    [p50(terminated), p50(deleted)]
}

/// From the request to the end of the tree, for each child that is left.
async fn stop(tree: SupervisorHandle) -> f64 {
    let left = tree.status().await.expect("it runs").root;
    let left =
        left.children.len() + left.children.iter().map(|it| it.children.len()).sum::<usize>();
    let began = Instant::now();
    tree.stop("measured").await.expect("it stops");
    nanos(began.elapsed(), left as u64)
}
