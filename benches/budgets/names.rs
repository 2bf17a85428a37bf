//! Finding who runs by a path.
//!
//! What has a name in verger's registry are supervisors: [`SupervisorHandle::supervisor`] looks one
//! up and returns a handle to it. By hand that is a task which waits to be told what to do, and the
//! map has a sender to each. How much of a lookup is the map alone is a row of its own, with numbers
//! instead of senders, that nobody runs behind.
//!
//! A worker is known to its own supervisor, which is asked for it by
//! [`SupervisorHandle::which_child`]: a row without a budget.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dashmap::DashMap;
use tokio::sync::mpsc::{self, UnboundedSender};
use verger::{DynamicSupervisor, Supervisor, SupervisorBuilder, SupervisorHandle, worker};

use crate::idle;
use crate::measure::{Budget, Part, Row, Side, Unit, Who, runtime};

const NAMES: u64 = 100_000;
/// Of each of two tasks.
const LOOKUPS: u64 = 500_000;
const QUESTIONS: u64 = 50_000;

pub(crate) const ROWS: &[Row] = &[
    Row::new("lookup", |side| match side.who {
        Who::Raw => raw_lookups(side.n, waiting_task),
        Who::Verger => lookups(side.n),
    })
    .what("look one of 100,000 supervisors up by path, on 2 threads")
    .beside_raw(NAMES)
    .parts(&[Part::new("", Unit::Nanos, Budget::AtMost(1.15))])
    .rounds(21),
    Row::new("lookup-numbers", |side| raw_lookups(side.n, || Arc::new(0_u64)))
        .what("by hand, numbers instead, that nobody runs behind")
        .alone(Side::raw(NAMES))
        .parts(&[Part::without_budget("", Unit::Nanos)])
        .rounds(9),
    Row::new("which-child", |side| match side.who {
        Who::Raw => raw_lookups(side.n, waiting_task),
        Who::Verger => questions(side.n),
    })
    .what("ask for one of 100,000 workers by path, on 2 threads")
    .beside_raw(NAMES)
    .parts(&[Part::without_budget("", Unit::Nanos)])
    .rounds(5),
];

fn name(number: u64) -> String {
    format!("name-{number}")
}

/// Such names as are there, in no order, made before they are looked up.
fn wanted(n: u64, lookups: u64, seed: u64) -> Vec<String> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..lookups.min(100_000)).map(|_| name(random.u64(0..n))).collect()
}

/// For each lookup, of two tasks side by side.
fn each(lookups: u64, took: [Duration; 2]) -> Vec<f64> {
    let longest = took.into_iter().max().unwrap_or_default();
    vec![longest.as_secs_f64() * 1e9 / (2 * lookups) as f64]
}

/// By whom it can be told what to do.
fn waiting_task() -> UnboundedSender<()> {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move { while receiver.recv().await.is_some() {} });
    sender
}

/// What has a name is cloned out of the map.
fn raw_lookups<T: Clone + Send + Sync + 'static>(n: u64, named: fn() -> T) -> Vec<f64> {
    let runtime = runtime();
    let figures = runtime.block_on(async {
        let names: DashMap<_, _> = (0..n).map(|it| (name(it), named())).collect();
        let names = Arc::new(names);
        let tasks = [1, 2].map(|seed| {
            let (names, wanted) = (Arc::clone(&names), wanted(n, LOOKUPS, seed));
            tokio::spawn(async move {
                let began = Instant::now();
                for name in wanted.iter().cycle().take(LOOKUPS as usize) {
                    let found = names.get(name).map(|it| it.clone());
                    std::hint::black_box(found.expect("it is there"));
                }
                began.elapsed()
            })
        });
        let [one, other] = tasks;
        each(LOOKUPS, [one.await.expect("no panic"), other.await.expect("no panic")])
    });
    runtime.shutdown_background();
    figures
}

fn lookups(n: u64) -> Vec<f64> {
    side_by_side(n, LOOKUPS, |app, name| app.child(DynamicSupervisor::builder(name)), look_up)
}

async fn look_up(tree: SupervisorHandle, wanted: Vec<String>) -> Duration {
    let began = Instant::now();
    for name in wanted.iter().cycle().take(LOOKUPS as usize) {
        std::hint::black_box(tree.supervisor(name).await.expect("it runs"));
    }
    began.elapsed()
}

fn questions(n: u64) -> Vec<f64> {
    let idle = worker("idle", idle::child);
    side_by_side(n, QUESTIONS, move |app, name| app.child(idle.clone().named(name)), ask_for)
}

async fn ask_for(tree: SupervisorHandle, wanted: Vec<String>) -> Duration {
    let began = Instant::now();
    for name in wanted.iter().cycle().take(QUESTIONS as usize) {
        std::hint::black_box(tree.which_child(name).await.expect("it is there"));
    }
    began.elapsed()
}

fn side_by_side<F>(
    n: u64,
    lookups: u64,
    add: impl Fn(SupervisorBuilder, String) -> SupervisorBuilder,
    find: impl Fn(SupervisorHandle, Vec<String>) -> F,
) -> Vec<f64>
where
    F: Future<Output = Duration> + Send + 'static,
{
    let app = (0..n).map(name).fold(Supervisor::builder("app"), add).build().expect("a tree");
    let runtime = runtime();
    let figures = runtime.block_on(async {
        let tree = app.start().await.expect("it starts");
        let find = |seed| tokio::spawn(find(tree.clone(), wanted(n, lookups, seed)));
        let [one, other] = [1, 2].map(find);
        each(lookups, [one.await.expect("no panic"), other.await.expect("no panic")])
    });
    runtime.shutdown_background();
    figures
}
