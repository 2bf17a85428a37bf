//! The measurements, each in this process, on any crate that implements [`Peer`].

use std::panic;
use std::process;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Builder;

use super::work::{ADDED, DEEP, LOOKUPS, MESSAGES, NAMES, QUESTIONS, WIDE};
use crate::child::Life;
use crate::lives::{
    self, Again, CHILDREN, Failing, GONE, Idle, Looping, OnDemand, PATIENCE, STARTED, Storm, TIMES,
};
use crate::machine::peak_bytes;
use crate::peer::{Peer, Plan, name};

/// Worker threads of every runtime and virtual machine.
pub const WORKERS: usize = 2;

/// Measures, prints each figure as soon as it is known, and ends the process.
pub fn run<P: Peer>(work: &str) -> ! {
    panic::set_hook(Box::new(|_| {}));
    let runtime = Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build();
    let runtime = runtime.expect("a runtime can be built");
    // On a worker thread, as in a program, and not on the main thread.
    let ended = runtime.block_on(runtime.spawn(measure::<P>(work.to_owned())));
    // Nothing is cleaned up.
    process::exit(i32::from(ended.is_err()))
}

async fn measure<P: Peer>(work: String) {
    match work.as_str() {
        "restart-error" => restart::<P, Failing<Again<false>>>().await,
        "restart-panic" => restart::<P, Failing<Again<true>>>().await,
        "storm-error" => storm::<P, Failing<Storm<false>>>().await,
        "storm-panic" => storm::<P, Failing<Storm<true>>>().await,
        "one-for-all" => one_for_all::<P>().await,
        "crash-loop" => crash_loop::<P>().await,
        "deep" => nested::<P>(DEEP).await,
        "wide" => nested::<P>(WIDE).await,
        "message" => say("each", nanos(P::send(MESSAGES).await) / MESSAGES as f64),
        "ask" => say("p50", p50(P::ask(QUESTIONS).await)),
        "lookup" => lookup::<P>().await,
        idle => {
            let n = idle.strip_prefix("idle-").and_then(|n| n.parse().ok());
            idle_children::<P>(n.expect("a known name")).await;
        }
    }
}

/// The plan for `n` children without a limit. It is leaked: there is one in a process.
fn plan(n: usize) -> Plan {
    Plan { widths: vec![n].leak(), ..Plan::EMPTY }
}

/// Starts children and waits for all of them. Returns what stops them, and the time.
async fn started<P: Peer, L: Life>(plan: Plan) -> (P::Tree, Duration) {
    STARTED.expect(plan.widths.iter().product());
    let began = Instant::now();
    let tree = P::start::<L>(plan).await;
    STARTED.reached().await;
    (tree, began.elapsed())
}

/// Until the call has returned and the last child is gone.
async fn stop<P: Peer>(tree: P::Tree, plan: Plan) -> Duration {
    GONE.expect(plan.widths.iter().product());
    let began = Instant::now();
    P::stop(tree).await;
    GONE.reached().await;
    began.elapsed()
}

async fn idle_children<P: Peer>(n: usize) {
    let plan = plan(n);
    let before = peak_bytes();
    let (tree, took) = started::<P, Idle>(plan).await;
    say("start", nanos(took) / n as f64);
    say("bytes", (peak_bytes() - before) as f64 / n as f64);
    say("stop", nanos(stop::<P>(tree, plan).await) / n as f64);
}

async fn nested<P: Peer>(widths: &'static [usize]) {
    let plan = Plan { widths, ..Plan::EMPTY };
    let (tree, took) = started::<P, Idle>(plan).await;
    say("build", nanos(took) / 1e6);
    say("stop", nanos(stop::<P>(tree, plan).await) / 1e6);
}

async fn restart<P: Peer, L: Life>() {
    let _tree = P::start::<L>(plan(1)).await;
    lives::over().await;
    say("p50", p50(lives::times()));
}

async fn storm<P: Peer, L: Life>() {
    let _tree = started::<P, L>(plan(CHILDREN)).await;
    STARTED.expect(CHILDREN * TIMES);
    let began = Instant::now();
    lives::demand_all();
    STARTED.reached().await;
    say("each", nanos(began.elapsed()) / (CHILDREN * TIMES) as f64);
}

async fn one_for_all<P: Peer>() {
    let plan = Plan { one_for_all: true, ..plan(CHILDREN) };
    let _tree = started::<P, Failing<OnDemand>>(plan).await;
    STARTED.expect(CHILDREN);
    let began = Instant::now();
    lives::demand_one();
    STARTED.reached().await;
    say("back", nanos(began.elapsed()) / 1e6);
}

async fn crash_loop<P: Peer>() {
    let (tree, _) = started::<P, Failing<Looping>>(plan(CHILDREN)).await;
    add::<P>(&tree, CHILDREN).await;
    say("calm", p50(lives::times()));
    lives::demand_one();
    add::<P>(&tree, CHILDREN + ADDED).await;
    say("beside", p50(lives::times()));
}

async fn add<P: Peer>(tree: &P::Tree, from: usize) {
    let began = Instant::now();
    for index in from..from + ADDED {
        if began.elapsed() > PATIENCE {
            break;
        }
        lives::adds();
        P::add::<Failing<Looping>>(tree, index).await;
        lives::added().await;
    }
}

async fn lookup<P: Peer>() {
    let names: Arc<[String]> = (0..NAMES).map(name).collect();
    let tree = Arc::new(P::register(NAMES).await);
    let began = Instant::now();
    let threads: Vec<_> = (0..WORKERS)
        .map(|thread| {
            let (names, tree) = (Arc::clone(&names), Arc::clone(&tree));
            tokio::spawn(async move {
                let mut found = 0;
                for _ in 0..LOOKUPS / NAMES {
                    // Each task begins with a different name, so that both rarely want the same one.
                    let (end, begin) = names.split_at(thread * NAMES / WORKERS);
                    found += P::look_up(&tree, begin).await + P::look_up(&tree, end).await;
                }
                found
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.await.expect("no panic"), LOOKUPS);
    }
    say("each", nanos(began.elapsed()) / (LOOKUPS * WORKERS) as f64);
}

fn say(key: &str, figure: f64) {
    println!("{key} {figure}");
}

fn nanos(took: Duration) -> f64 {
    took.as_secs_f64() * 1e9
}

fn p50(mut took: Vec<u64>) -> f64 {
    took.sort_unstable();
    took[took.len() / 2] as f64
}
