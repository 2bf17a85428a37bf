//! A child with a watchdog has to send heartbeats while it is active.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;
use tracing::level_filters::LevelFilter;
use verger::context::Waiting;
use verger::status::{ChildInfo, Event, EventKind, Subscription};
use verger::{
    Backoff, ChildSpec, Context, Exit, ExitKind, Lifecycle, Readiness, Supervisor,
    SupervisorBuilder, SupervisorHandle, worker,
};

use crate::common::{killed, settle, start};
use crate::log::Log;

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Lets time pass, and everything react that is due.
async fn sleep(time: Duration) {
    tokio::time::sleep(time).await;
    settle().await;
}

fn eager() -> SupervisorBuilder {
    let builder = Supervisor::builder("app").unlimited_restarts();
    builder.defaults(|child| child.backoff(Backoff::none()))
}

/// A child that is active, sends no heartbeat, and ends when it is cancelled.
fn silent(name: &str) -> ChildSpec {
    worker(name, async |ctx: Context| ctx.cancelled().await).watchdog(secs(30))
}

async fn seen(tree: &SupervisorHandle, name: &str) -> ChildInfo {
    tree.which_child(name).await.unwrap()
}

/// Returns the edges of children so far, with the time since `began` and the cause.
fn edges(events: &mut Subscription<Event>) -> Vec<String> {
    let mut edges = Vec::new();
    while let Some(Event { path, incarnation, kind, .. }) = events.try_next() {
        if let EventKind::Moved { from, to, reason, .. } = kind {
            let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            edges.push(format!("{}#{incarnation} {from} → {to}{reason}", path.name()));
        }
    }
    edges
}

#[tokio::test(start_paused = true)]
async fn a_silent_child_has_hung_exactly_when_its_interval_is_over() {
    let tree = start(eager().child(silent("a"))).await;
    let mut events = tree.events();
    sleep(secs(30) - millis(1)).await;
    assert_eq!(edges(&mut events), [""; 0]);
    sleep(millis(1)).await;
    assert_eq!(
        edges(&mut events),
        [
            "a#1 active → errored: hung: no heartbeat for 30s",
            "a#1 errored → resolved",
            "a#2 resolved → activating",
            "a#2 activating → active",
        ]
    );
    let child = seen(&tree, "a").await;
    let last = child.last_exit.unwrap().reason;
    assert_eq!((child.incarnation, last.exit_kind(), last.is_clean()), (2, ExitKind::Hung, false));
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_keeps_a_child_alive_and_the_last_one_counts() {
    let beating = worker("a", async |ctx: Context| {
        for pause in [29_999, 29_999, 10, 29_999] {
            tokio::time::sleep(millis(pause)).await;
            ctx.heartbeat();
        }
        ctx.cancelled().await;
    });
    let tree = start(eager().child(beating.watchdog(secs(30)))).await;
    let last = millis(3 * 29_999 + 10);
    sleep(last + secs(30) - millis(1)).await;
    assert_eq!(seen(&tree, "a").await.incarnation, 1);
    sleep(millis(1)).await;
    assert_eq!(seen(&tree, "a").await.incarnation, 2);
    tree.stop("done").await.or_else(killed).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_that_beats_a_million_times_fills_no_inbox() {
    let busy = worker("a", async |ctx: Context| {
        for _ in 0..1_000_000 {
            ctx.heartbeat();
        }
        ctx.cancelled().await;
    });
    let tree = start(eager().child(busy.watchdog(secs(30)))).await;
    sleep(secs(29)).await;
    let child = seen(&tree, "a").await;
    assert_eq!((child.incarnation, child.lifecycle), (1, Lifecycle::Active));
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_hung_child_is_aborted_after_its_grace() {
    let deaf = worker("a", async |_: Context| std::future::pending::<()>().await);
    let tree = start(eager().child(deaf.watchdog(secs(30)).shutdown(secs(7)))).await;
    sleep(secs(37) - millis(1)).await;
    let child = seen(&tree, "a").await;
    assert_eq!((child.incarnation, child.lifecycle), (1, Lifecycle::Errored));
    sleep(millis(1)).await;
    let child = seen(&tree, "a").await;
    assert_eq!((child.incarnation, child.lifecycle), (2, Lifecycle::Active));
    assert_eq!(child.last_exit.unwrap().to_string(), "hung: no heartbeat for 30s");
    tree.stop("done").await.or_else(killed).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_that_waits_on_purpose_is_not_hung() {
    let guards: Arc<Mutex<Vec<Waiting>>> = Arc::default();
    let kept = Arc::clone(&guards);
    let waiting = worker("a", move |ctx: Context| {
        let kept = Arc::clone(&kept);
        async move {
            kept.lock().await.extend([ctx.waiting(), ctx.waiting()]);
            ctx.cancelled().await;
        }
    });
    let tree = start(eager().child(waiting.watchdog(secs(30)))).await;
    sleep(secs(1_000)).await;
    guards.lock().await.pop();
    sleep(secs(1_000)).await;
    assert_eq!(seen(&tree, "a").await.incarnation, 1, "one guard is left");

    // The last guard is dropped in the middle of an interval.
    sleep(secs(17)).await;
    guards.lock().await.clear();
    sleep(secs(30) - millis(1)).await;
    assert_eq!(seen(&tree, "a").await.incarnation, 1);
    sleep(millis(1)).await;
    assert_eq!(seen(&tree, "a").await.incarnation, 2);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_is_watched_once_it_is_ready() {
    let slow = worker("a", async |ctx: Context| {
        tokio::time::sleep(secs(100)).await;
        ctx.ready();
        ctx.cancelled().await;
    });
    let slow = slow.readiness(Readiness::Signal).watchdog(secs(30));
    let tree = start(eager().child(slow)).await;
    sleep(secs(30) - millis(1)).await;
    let child = seen(&tree, "a").await;
    assert_eq!((child.incarnation, child.lifecycle), (1, Lifecycle::Active));
    sleep(millis(1)).await;
    assert_eq!(seen(&tree, "a").await.incarnation, 2);
    tree.stop("done").await.or_else(killed).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_that_stops_is_not_watched() {
    let slow = worker("a", async |ctx: Context| -> Exit {
        ctx.cancelled().await;
        tokio::time::sleep(secs(100)).await;
        Ok(())
    });
    let tree = start(eager().child(slow.watchdog(secs(30)).shutdown(secs(200)))).await;
    let mut events = tree.events();
    sleep(secs(20)).await;
    let began = Instant::now();
    tree.stop_child("a").await.unwrap();
    assert_eq!(began.elapsed(), secs(100));
    assert_eq!(
        edges(&mut events),
        ["a#1 active → deactivating", "a#1 deactivating → stopped: shut down"]
    );
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_default_applies_to_workers_and_not_to_supervisors() {
    let pool = Supervisor::builder("pool").child(silent("b").watchdog(secs(90)));
    let app = eager().child(worker("a", async |ctx: Context| ctx.cancelled().await)).child(pool);
    let tree = start(app.defaults(|child| child.backoff(Backoff::none()).watchdog(secs(30)))).await;
    let watchdog = async |name| tree.child_spec(name).await.unwrap().watchdog;
    assert_eq!(watchdog("a").await, Some(secs(30)));
    assert_eq!(watchdog("pool").await, None);
    assert_eq!(watchdog("pool/b").await, Some(secs(90)));
    let json = serde_json::to_value(tree.child_spec("a").await.unwrap()).unwrap();
    assert_eq!(json["watchdog_ms"], 30_000);
    sleep(secs(30)).await;
    assert_eq!(seen(&tree, "a").await.incarnation, 2);
    assert_eq!(seen(&tree, "pool").await.incarnation, 1);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn if_the_runtime_was_late_no_child_is_called_hung() {
    let log = Log::at(LevelFilter::WARN);
    let tree = start(eager().child(silent("a")).child(silent("b"))).await;
    // Its restarts are busy, which is warned of.
    drop(log.lines());
    // As after a SIGSTOP: the clock has gone on, and no task has run.
    tokio::time::advance(secs(90)).await;
    settle().await;
    for name in ["a", "b"] {
        assert_eq!(seen(&tree, name).await.incarnation, 1, "{name}");
    }
    assert_eq!(
        log.lines(),
        ["WARN verger::lifecycle: the runtime was late: no child is called hung child=app \
             late=60s"]
    );

    // Both have a whole interval from then on.
    sleep(secs(30) - millis(1)).await;
    assert_eq!(seen(&tree, "a").await.incarnation, 1);
    sleep(millis(1)).await;
    assert_eq!(seen(&tree, "a").await.incarnation, 2);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_on_the_context_of_an_older_incarnation_is_ignored() {
    let contexts: Arc<Mutex<Vec<Context>>> = Arc::default();
    let kept = Arc::clone(&contexts);
    let child = worker("a", move |ctx: Context| {
        let kept = Arc::clone(&kept);
        async move {
            kept.lock().await.push(ctx.clone());
            ctx.cancelled().await;
        }
    });
    let tree = start(eager().child(child.watchdog(secs(30)))).await;
    sleep(secs(30)).await;
    let old = contexts.lock().await[0].clone();
    let _waiting = old.waiting();
    sleep(secs(20)).await;
    old.heartbeat();
    sleep(secs(10)).await;
    assert_eq!(seen(&tree, "a").await.incarnation, 3);
    tree.stop("done").await.unwrap();
}
