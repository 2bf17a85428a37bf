//! Supervisors below supervisors: up, and down again.

use std::time::Instant;

use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use verger::{CancellationToken, Supervisor, SupervisorBuilder, worker};

use crate::idle::{self, STARTS};
use crate::measure::{Budget, Part, Row, Side, Unit, Who, runtime};
use crate::raw;

pub(crate) const ROWS: &[Row] = &[
    Row::new("deep", |side| up_and_down(side.who, &Shape { levels: side.n, width: 1 }))
        .what("a chain of 1,000 supervisors")
        .beside_raw(1_000)
        .parts(&[
            Part::new("build", Unit::Nanos, Budget::AtMost(3.0)),
            Part::new("stop", Unit::Nanos, Budget::AtMost(3.0)),
        ])
        .many_rounds(),
    Row::new("wide", |side| up_and_down(side.who, &Shape { levels: 4, width: 10 }))
        .what("a tree of 10 × 10 × 10 × 10")
        .beside_raw(10_000)
        .parts(&[
            Part::new("build", Unit::Nanos, Budget::AtMost(2.0)),
            Part::new("stop", Unit::Nanos, Budget::AtMost(2.0)),
        ])
        .many_rounds(),
    Row::new("wide-by-hand", |side| in_order(&Shape { levels: side.n, width: 10 }))
        .what("by hand, the same tree, stopped in order: each is asked when the one behind it is down")
        .alone(Side::raw(4))
        .parts(&[
            Part::without_budget("build", Unit::Nanos),
            Part::without_budget("stop", Unit::Nanos),
        ])
        .many_rounds(),
];

/// Each supervisor has so many children; those of the lowest are workers.
#[derive(Clone, Copy)]
struct Shape {
    levels: u64,
    width: u64,
}

impl Shape {
    fn workers(self) -> u64 {
        (0..self.levels).fold(1, |workers, _| workers * self.width)
    }

    fn below(self) -> Option<Self> {
        (self.levels > 1).then_some(Self { levels: self.levels - 1, ..self })
    }
}

/// Until all workers run and the root is up, and until it has ended. Once, as a program does it.
fn up_and_down(who: Who, shape: &Shape) -> Vec<f64> {
    let figures = runtime().block_on(async {
        match who {
            Who::Raw => raw_tree(*shape).await,
            Who::Verger => tree(*shape).await,
        }
    });
    figures.to_vec()
}

fn nanos([began, up, stopping, down]: [Instant; 4]) -> [f64; 2] {
    [(up - began).as_secs_f64() * 1e9, (down - stopping).as_secs_f64() * 1e9]
}

// --- Raw -----------------------------------------------------------------------------------------

async fn raw_tree(shape: Shape) -> [f64; 2] {
    let stop = CancellationToken::new();
    let root = |ready| tokio::spawn(supervise(shape, stop.clone(), ready));
    let (figures, end) = timed(shape, root, || stop.cancel()).await;
    end.expect("it ends well");
    figures
}

/// The same for each tree by hand; with what its root came to.
async fn timed<T>(
    shape: Shape,
    root: impl FnOnce(oneshot::Sender<()>) -> JoinHandle<T>,
    stop: impl FnOnce(),
) -> ([f64; 2], T) {
    let all = STARTS.expect(shape.workers());
    let (ready, is_ready) = oneshot::channel();
    let began = Instant::now();
    let root = root(ready);
    is_ready.await.expect("it starts");
    let up = Instant::now().max(all.await.expect("they start"));
    let stopping = Instant::now();
    stop();
    let end = root.await.expect("no panic");
    (nanos([began, up, stopping, Instant::now()]), end)
}

/// Starts its children one after the other, says that it is up, and ends when all of them have.
#[expect(clippy::manual_async_fn, reason = "it spawns itself, so that it has to say it is `Send`")]
fn supervise(
    shape: Shape,
    stop: CancellationToken,
    ready: oneshot::Sender<()>,
) -> impl Future<Output = raw::Exit> + Send {
    async move {
        let mut children = JoinSet::new();
        for _ in 0..shape.width {
            match shape.below() {
                None => {
                    children.spawn(idle::task(stop.clone()));
                }
                Some(below) => {
                    let (ready, is_ready) = oneshot::channel();
                    children.spawn(supervise(below, stop.child_token(), ready));
                    let _ = is_ready.await;
                }
            }
        }
        let _ = ready.send(());
        tokio::select! {
            () = stop.cancelled() => {}
            Some(_) = children.join_next() => stop.cancel(),
        }
        while children.join_next().await.is_some() {}
        Ok(())
    }
}

// --- By hand, in order ---------------------------------------------------------------------------

/// What an order costs, whoever keeps it.
fn in_order(shape: &Shape) -> Vec<f64> {
    runtime().block_on(ordered_tree(*shape)).to_vec()
}

async fn ordered_tree(shape: Shape) -> [f64; 2] {
    let (stop, stopped) = oneshot::channel();
    let root = |ready| tokio::spawn(supervise_in_order(shape, stopped, ready));
    timed(shape, root, || stop.send(()).expect("it waits for that")).await.0
}

/// Starts its children one after the other, says that it is up, and stops them one after another,
/// the last one first.
#[expect(clippy::manual_async_fn, reason = "it spawns itself, so that it has to say it is `Send`")]
fn supervise_in_order(
    shape: Shape,
    stopped: oneshot::Receiver<()>,
    ready: oneshot::Sender<()>,
) -> impl Future<Output = ()> + Send {
    async move {
        let mut children = Vec::new();
        for _ in 0..shape.width {
            let (stop, stopped) = oneshot::channel();
            let child = match shape.below() {
                None => tokio::spawn(idle::until(stopped)),
                Some(below) => {
                    let (ready, is_ready) = oneshot::channel();
                    let child = tokio::spawn(supervise_in_order(below, stopped, ready));
                    let _ = is_ready.await;
                    child
                }
            };
            children.push((stop, child));
        }
        let _ = ready.send(());
        let _ = stopped.await;
        idle::stop_in_order(children).await;
    }
}

// --- Verger --------------------------------------------------------------------------------------

async fn tree(shape: Shape) -> [f64; 2] {
    let app = described(shape);
    let all = STARTS.expect(shape.workers());
    let began = Instant::now();
    let tree = tokio::spawn(async { app.start().await.expect("it starts") });
    let tree = tree.await.expect("no panic");
    let up = Instant::now().max(all.await.expect("they start"));
    let stopping = Instant::now();
    tree.stop("measured").await.expect("it stops");
    nanos([began, up, stopping, Instant::now()])
}

fn described(shape: Shape) -> Supervisor {
    let mut level = supervisor(shape.width, |name| worker(name, idle::child));
    for _ in 1..shape.levels {
        let below = level;
        level = supervisor(shape.width, |name| below.clone().into_child().named(name));
    }
    level.build().expect("a tree")
}

fn supervisor(width: u64, child: impl Fn(String) -> verger::ChildSpec) -> SupervisorBuilder {
    let children = (0..width).map(|number| child(format!("child-{number}")));
    children.fold(Supervisor::builder("level"), |level, child| level.child(child))
}
