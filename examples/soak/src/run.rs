//! The run: builds the tree, breaks and repairs it repeatedly, stops it, and reports.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fastrand::Rng;
use tokio::task::JoinSet;
use verger::status::{Event, Subscription};
use verger::{CancellationToken, Supervisor, SupervisorHandle};

use crate::child::{Order, Post};
use crate::cli::{Options, Plant};
use crate::hand::Hand;
use crate::layout::{self, ROOT, Zone};
use crate::memory::{Memory, resident};
use crate::report::{Report, say};
use crate::tally::Tally;
use crate::watch::{Clock, Watch};

/// Actions per second, by all hands together.
const ACTS: f64 = 1500.0;
/// The range of a storm's length, which is an eighth of the time.
const STORM: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(20));
/// How long the final stop may take.
const STOP: Duration = Duration::from_secs(180);
/// How long a child that blocks its thread may outlive the tree.
const GONE: Duration = Duration::from_secs(10);
const PROGRESS: Duration = Duration::from_secs(10);
/// How many events an observer processes at once.
const BATCH: usize = 512;
/// How often observers read notes while there are no events.
const NOTES: Duration = Duration::from_millis(20);

/// Runs the soak.
///
/// # Errors
///
/// Returns why the soak could not begin.
pub(crate) async fn run(options: &Options, tally: &Arc<Tally>) -> Result<Report, String> {
    let mut rng = Rng::with_seed(options.seed);
    let mut zones = layout::draw(options.children, &mut rng, tally);
    zones.push(layout::leaky(tally));
    let zones: Vec<_> = zones.into_iter().map(Arc::new).collect();
    let tree = start(&zones).await?;
    let clock = clock(&tree).await?;
    let over = CancellationToken::new();
    let mut watchers = JoinSet::new();
    watchers.spawn(progress(Arc::clone(tally)));
    let interrupted = over.clone();
    watchers.spawn(async move {
        verger::signals().await;
        interrupted.cancel();
    });

    let mut hands = Vec::new();
    let mut feeds = Vec::new();
    for zone in &zones {
        let handle = tree.supervisor(&zone.name).await.map_err(|error| error.to_string())?;
        let watch = Watch::new(Arc::clone(&zone.plan), clock, Arc::clone(tally));
        let watch = Arc::new(Mutex::new(watch));
        feeds.push((handle.events(), Arc::clone(&watch), Arc::clone(zone)));
        hands.push(Hand::new(Arc::clone(zone), watch, handle, Arc::clone(tally), rng.fork()));
    }
    let observers = observe(feeds)?;

    let mut memory = Memory::default();
    hands = each(hands, Job::Fill).await;
    hands = settle(hands, &mut memory).await;
    let mut children = tally.live();
    say!("up: {children} children");
    let began = Instant::now();
    let mut planted = options.plant.map(|plant| (plant, rng.fork()));
    while began.elapsed() < options.time && !over.is_cancelled() {
        let storm = (options.time / 8).clamp(STORM.0, STORM.1);
        let until = Instant::now() + storm.min(options.time.saturating_sub(began.elapsed()));
        if let Some((plant, mut rng)) = planted.take() {
            let posts = posts(&zones);
            let post: &Arc<Post> = layout::pick(&mut rng, &posts);
            put(plant, post).await;
        }
        let (pace, over) = (Duration::from_secs_f64(hands.len() as f64 / ACTS), over.clone());
        hands = each(hands, Job::Storm { until, pace, over }).await;
        hands = settle(hands, &mut memory).await;
        children = children.min(tally.live());
    }
    let time = began.elapsed();
    stop(&tree, &hands, tally).await;
    drop(tree);
    // Observers end with the tree.
    let joined = tokio::task::spawn_blocking(|| observers.join());
    if !matches!(tokio::time::timeout(GONE, joined).await, Ok(Ok(Ok(())))) {
        tally.violation("an observer did not come to its end");
    }
    watchers.shutdown().await;
    Ok(Report { time, children, memory })
}

async fn start(zones: &[Arc<Zone>]) -> Result<SupervisorHandle, String> {
    let mut root = Supervisor::builder(ROOT).unlimited_restarts();
    for zone in zones {
        root = if zone.plan.leaky {
            root.child(zone.wings[0].spec.clone())
        } else {
            root.child(layout::empty(zone))
        };
    }
    let tree = root.build().map_err(|error| error.to_string())?;
    tree.start().await.map_err(|error| error.to_string())
}

/// Reads the tree's clock, to well within a millisecond.
async fn clock(tree: &SupervisorHandle) -> Result<Clock, String> {
    let mut best: Option<(Duration, Clock)> = None;
    for _ in 0..20 {
        let before = Instant::now();
        let status = tree.status().await.map_err(|error| error.to_string())?;
        let took = before.elapsed();
        if best.is_none_or(|(least, _)| took < least) {
            best = Some((took, Clock { instant: before + took, wall: status.captured_at }));
        }
    }
    best.map(|(_, clock)| clock).ok_or_else(|| "no clock".to_owned())
}

/// A job that all hands do concurrently, each in its own zone.
#[derive(Clone)]
enum Job {
    Fill,
    Storm { until: Instant, pace: Duration, over: CancellationToken },
    Settle,
}

async fn each(hands: Vec<Hand>, job: Job) -> Vec<Hand> {
    let mut tasks = JoinSet::new();
    for mut hand in hands {
        let job = job.clone();
        tasks.spawn(async move {
            match job {
                Job::Fill => hand.fill().await,
                Job::Storm { until, pace, over } => hand.storm(until, pace, &over).await,
                Job::Settle => hand.settle().await,
            }
            hand
        });
    }
    tasks.join_all().await
}

/// Restores the tree, and checks it.
async fn settle(hands: Vec<Hand>, memory: &mut Memory) -> Vec<Hand> {
    let hands = each(hands, Job::Settle).await;
    memory.sample();
    hands
}

/// Stops the tree in order, and waits until no child is alive.
async fn stop(tree: &SupervisorHandle, hands: &[Hand], tally: &Tally) {
    for hand in hands {
        hand.watch().stopping = true;
    }
    match tokio::time::timeout(STOP, tree.stop("the soak is over")).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tally.violation(format!("the tree did not stop well: {error}")),
        Err(_) => tally.violation(format!("the tree did not stop in {STOP:?}")),
    }
    let begun = Instant::now();
    while tally.live() > 0 && begun.elapsed() < GONE {
        tokio::time::sleep(NOTES).await;
    }
    tally.leaked.fetch_add(tally.live(), Relaxed);
}

/// Makes a child break a rule.
async fn put(plant: Plant, post: &Post) {
    post.order(match plant {
        Plant::DoubleStart => Order::Double,
        Plant::StrayTask => Order::Stray,
    });
    // Before a hand sets the next order.
    while !post.has_received() {
        tokio::task::yield_now().await;
    }
}

fn posts(zones: &[Arc<Zone>]) -> Vec<Arc<Post>> {
    let wings = zones.iter().filter(|zone| !zone.plan.leaky).flat_map(|zone| &zone.wings);
    let groups = wings.flat_map(|wing| &wing.groups);
    groups.flat_map(|group| &group.posts).map(Arc::clone).collect()
}

type Feed = (Subscription<Event>, Arc<Mutex<Watch>>, Arc<Zone>);

/// Observes all zones on a thread of its own, which no child can block.
fn observe(feeds: Vec<Feed>) -> Result<std::thread::JoinHandle<()>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let thread = std::thread::Builder::new().name("observer".to_owned());
    let observe = move || {
        runtime.block_on(async {
            let mut observers = JoinSet::new();
            for feed in feeds {
                observers.spawn(observe_one(feed));
            }
            observers.join_all().await;
        });
    };
    thread.spawn(observe).map_err(|error| error.to_string())
}

async fn observe_one((mut events, watch, zone): Feed) {
    let mut missed = 0;
    let mut ended = false;
    while !ended {
        let mut batch = Vec::new();
        // When the queue of events was last found empty.
        let mut looked = Instant::now();
        let mut next = match tokio::time::timeout(NOTES, events.next()).await {
            Ok(next) => {
                ended = next.is_none();
                next
            }
            Err(_) => None,
        };
        while let Some(event) = next {
            batch.push((events.missed() - missed, event));
            missed = events.missed();
            looked = Instant::now();
            next = if batch.len() < BATCH { events.try_next() } else { None };
        }
        let mut watch = watch.lock().unwrap_or_else(PoisonError::into_inner);
        // The notes that precede these events are already made.
        watch.notes(zone.notebook.take());
        let all = batch.len() < BATCH;
        for (missed, event) in batch {
            if missed > 0 {
                watch.missed(missed);
            }
            watch.event(&event);
        }
        if all {
            watch.processed_until = Some(looked);
        }
    }
}

/// Prints the progress from time to time.
async fn progress(tally: Arc<Tally>) {
    loop {
        tokio::time::sleep(PROGRESS).await;
        let [starts, restarts, panics, hangs, aborts, events, missed] = [
            &tally.starts,
            &tally.restarts,
            &tally.panics,
            &tally.hangs,
            &tally.aborts,
            &tally.events,
            &tally.missed,
        ]
        .map(|counter| counter.load(Relaxed));
        eprintln!(
            "soak: {:.0} s: live={} starts={starts} restarts={restarts} panics={panics} \
             hangs={hangs} aborts={aborts} events={events} missed={missed} rss={} MiB violations={}",
            tally.began.elapsed().as_secs_f64(),
            tally.live(),
            resident().unwrap_or_default() / 1024,
            tally.violations(),
        );
    }
}
