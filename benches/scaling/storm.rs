//! A storm: one child in a hundred crashes in a loop. Do the others notice?

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::sleep;
use verger::{
    Backoff, CancellationToken, ChildSpec, Context, DynamicSupervisor, Exit, Supervisor,
    SupervisorHandle, worker,
};

use crate::idle;
use crate::measure::{Part, Row, Side, Unit, resident_bytes, runtime, worked};
use crate::table::{Layout, Table};

pub(crate) const TABLE: Table = Table {
    title: "A storm: 1,000 of 100,000 children in a crash loop",
    note: "1,000 of the 100,000 children of one dynamic supervisor fail whenever they run, and wait \
           for 10 ms each time; the limit of restarts is off. For a third of the time nothing else \
           runs, which shows what a restart costs. Then 64 pairs of other children pass a ball to \
           and fro, as fast as they can, and a child is started now and then; the same was done \
           before the storm. `--storm 60` lets it last a minute.",
    rows: ROWS,
    layout: Layout::Parts,
};

pub(crate) const NAME: &str = "storm";

const ROWS: &[Row] = &[Row::new(NAME, storm)
    .what("1,000 of 100,000 children in a crash loop")
    // Seconds.
    .alone(Side::verger(10))
    .parts(&[
        Part::without_budget("restarts per second", Unit::PerSecond),
        Part::without_budget("of those that the backoff allows", Unit::Count),
        Part::without_budget("processor time of a restart", Unit::Nanos),
        Part::without_budget("share of one core", Unit::Count),
        Part::without_budget("passes per second, calm", Unit::PerSecond),
        Part::without_budget("passes per second, in the storm", Unit::PerSecond),
        Part::without_budget("restarts per second meanwhile", Unit::PerSecond),
        Part::without_budget("a start p50, calm", Unit::Nanos),
        Part::without_budget("a start p50, in the storm", Unit::Nanos),
        Part::without_budget("a start p99, calm", Unit::Nanos),
        Part::without_budget("a start p99, in the storm", Unit::Nanos),
        Part::without_budget("resident set when it begins", Unit::Bytes),
        Part::without_budget("resident set at its end", Unit::Bytes),
    ])
    .rounds(1)];

const CHILDREN: u64 = 100_000;
const CRASHING: u64 = 1_000;
const PAIRS: u64 = 64;
const DELAY: Duration = Duration::from_millis(10);

static RESTARTS: AtomicU64 = AtomicU64::new(0);
static PASSES: AtomicU64 = AtomicU64::new(0);
/// Whether those who pass a ball go on.
static PLAY: AtomicBool = AtomicBool::new(false);

fn storm(side: Side) -> Vec<f64> {
    let runtime = runtime();
    let third = Duration::from_secs(side.n) / 3;
    let figures = runtime.block_on(async move {
        let begin = CancellationToken::new();
        let (conns, players) = children(&begin).await;
        let calm = work(&conns, &players, third).await;

        let before = resident_bytes();
        begin.cancel();
        let (restarts, used, began) = (restarts(), worked(), Instant::now());
        sleep(third).await;
        let (restarts, used, took) = (restarts_since(restarts), worked() - used, began.elapsed());
        let stormy = work(&conns, &players, 2 * third).await;
        let after = resident_bytes();

        let [took, used] = [took, used].map(|it| it.as_secs_f64());
        let allowed = CRASHING as f64 * took / DELAY.as_secs_f64();
        vec![
            restarts / took,
            restarts / allowed,
            used * 1e9 / restarts,
            used / took,
            calm.passes,
            stormy.passes,
            stormy.restarts,
            calm.start_p50,
            stormy.start_p50,
            calm.start_p99,
            stormy.start_p99,
            before as f64,
            after as f64,
        ]
    });
    runtime.shutdown_background();
    figures
}

fn restarts() -> u64 {
    RESTARTS.load(Ordering::Relaxed)
}

fn restarts_since(before: u64) -> f64 {
    (restarts() - before) as f64
}

// --- The children --------------------------------------------------------------------------------

/// The supervisor, and whom to throw a ball to of each pair that passes one.
async fn children(begin: &CancellationToken) -> (SupervisorHandle, Vec<Arc<Notify>>) {
    let conns = DynamicSupervisor::builder("conns").unlimited_restarts();
    let app = Supervisor::builder("app").child(conns).build().expect("a tree");
    let tree = app.start().await.expect("it starts");
    let conns = tree.supervisor("conns").await.expect("it runs");
    let (idle, crashing) = (idle::child("idle"), crashing(begin.clone()));
    for number in 0..CHILDREN - 2 * PAIRS {
        let crashes = number % (CHILDREN / CRASHING) == 0;
        let spec = if crashes { crashing.clone() } else { idle.clone() };
        conns.start_child(spec).await.expect("it starts");
    }
    let mut first = Vec::new();
    for _ in 0..PAIRS {
        let [here, there] = [0, 1].map(|_| Arc::<Notify>::default());
        for [from, to] in [[&here, &there], [&there, &here]] {
            conns.start_child(player(from, to)).await.expect("it starts");
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
    child.backoff(Backoff::constant(DELAY))
}

fn player(from: &Arc<Notify>, to: &Arc<Notify>) -> ChildSpec {
    let (from, to) = (Arc::clone(from), Arc::clone(to));
    worker("player", move |ctx: Context| {
        let (from, to) = (Arc::clone(&from), Arc::clone(&to));
        async move {
            while ctx.run_until_cancelled(from.notified()).await.is_some() {
                if PLAY.load(Ordering::Relaxed) {
                    PASSES.fetch_add(1, Ordering::Relaxed);
                    to.notify_one();
                }
            }
        }
    })
}

// --- What others do ------------------------------------------------------------------------------

struct Work {
    /// Per second.
    passes: f64,
    restarts: f64,
    start_p50: f64,
    start_p99: f64,
}

async fn work(conns: &SupervisorHandle, players: &[Arc<Notify>], for_long: Duration) -> Work {
    let conns = conns.clone();
    PLAY.store(true, Ordering::Relaxed);
    players.iter().for_each(|player| player.notify_one());
    let (passes, restarts) = (PASSES.load(Ordering::Relaxed), restarts());
    let began = Instant::now();
    let starts = tokio::spawn(starts(conns, began + for_long)).await;
    let took = began.elapsed().as_secs_f64();
    let passes = PASSES.load(Ordering::Relaxed) - passes;
    PLAY.store(false, Ordering::Relaxed);
    let mut starts = starts.expect("no panic");
    starts.sort();
    let nanos = |at: usize| starts[at].as_secs_f64() * 1e9;
    Work {
        passes: passes as f64 / took,
        restarts: restarts_since(restarts) / took,
        start_p50: nanos(starts.len() / 2),
        start_p99: nanos(starts.len() * 99 / 100),
    }
}

/// How long each of them took. What was started is taken out again.
async fn starts(conns: SupervisorHandle, until: Instant) -> Vec<Duration> {
    let idle = idle::child("late");
    let mut took = Vec::new();
    while Instant::now() < until {
        sleep(Duration::from_millis(1)).await;
        let spec = idle.clone();
        let began = Instant::now();
        let child = conns.start_child(spec).await.expect("it starts");
        took.push(began.elapsed());
        conns.terminate_child(child.name()).await.expect("it is there");
    }
    took
}
