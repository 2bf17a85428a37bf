//! The faults that the test kit injects, and how a tree handles them.

#![cfg(feature = "testing")]

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use verger::policy::Start;
use verger::testing::{Expect, TestTree};
use verger::{
    Backoff, Child, ChildSpec, Context, DynamicSupervisor, Exit, ExitError, Lifecycle, Readiness,
    Strategy, Supervisor, async_trait, child, worker,
};

const SECOND: Duration = Duration::from_secs(1);

/// A function that reacts to its cancellation.
fn idle(name: &str) -> ChildSpec {
    worker(name, async |ctx: Context| ctx.cancelled().await).backoff(Backoff::constant(SECOND))
}

/// Returns the duration of a future.
async fn elapsed(future: impl Future) -> Duration {
    let began = Instant::now();
    future.await;
    began.elapsed()
}

/// A value that reacts to its cancellation, and counts its calls of `deactivate`.
fn object(name: &str, deactivated: &Arc<AtomicU32>) -> ChildSpec {
    let deactivated = Arc::clone(deactivated);
    child(name, move || Object { deactivated: Arc::clone(&deactivated) })
        .backoff(Backoff::exponential(SECOND, 10 * SECOND).jitter(0.0))
}

struct Object {
    deactivated: Arc<AtomicU32>,
}

#[async_trait]
impl Child for Object {
    async fn run(&mut self, ctx: &Context) -> Exit {
        ctx.cancelled().await;
        Ok(())
    }

    async fn deactivate(&mut self, _ctx: &Context) -> Exit {
        self.deactivated.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// A supervisor that hangs ignores its cancellation until it counts as leaked.
#[tokio::test(start_paused = true)]
async fn a_kill_returns_when_the_child_has_exited() {
    let ingest = Supervisor::builder("ingest").leak_timeout(3 * SECOND).child(idle("mqtt"));
    let app = Supervisor::builder("app").leak_timeout(4 * SECOND).child(ingest);
    let tree = TestTree::start(app).await;

    tree.hang("ingest");

    assert_eq!(elapsed(tree.kill("ingest")).await, 7 * SECOND);
    tree.expect(["ingest: active -> errored (aborted)", "ingest: leaked"]).await;
    tree.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_hanging_child_is_aborted_by_its_group_restart_after_its_grace() {
    let deactivated = Arc::default();
    let app = Supervisor::builder("app")
        .strategy(Strategy::OneForAll)
        .child(idle("db"))
        .child(object("pool", &deactivated).shutdown(8 * SECOND))
        .child(idle("api").shutdown(3 * SECOND));
    let tree = TestTree::start(app).await;

    tree.hang("pool");
    tree.hang("api");
    tree.kill("db").await;

    let api = elapsed(tree.expect(["api: deactivating -> stopped (killed)"])).await;
    assert_eq!(api, 3 * SECOND);
    let pool = elapsed(tree.expect(["pool: deactivating -> stopped (killed)"])).await;
    assert_eq!(pool, 8 * SECOND, "the whole of it, `deactivate` hangs as well");
    assert_eq!(elapsed(tree.expect(["api: -> active"])).await, Duration::ZERO);
    assert_eq!(deactivated.load(Ordering::Relaxed), 0);

    assert_eq!(elapsed(tree.stop()).await, Duration::ZERO, "the new incarnations do not hang");
    assert_eq!(deactivated.load(Ordering::Relaxed), 1);
}

/// Runs on a runtime that returns to the test after each task, and so before the child's first
/// poll.
#[test]
fn a_spawned_child_can_hang_before_its_first_poll() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).event_interval(1).build().unwrap();
    runtime.block_on(async {
        let polled = Arc::new(AtomicU32::new(0));
        let db = verger::worker_with("db", Arc::clone(&polled), async |_ctx, polled| {
            polled.fetch_add(1, Ordering::Relaxed);
        });
        let tree = TestTree::start(Supervisor::builder("app").child(db)).await;

        tree.hang("db");

        assert_eq!(elapsed(tree.stop()).await, 5 * SECOND);
        assert_eq!(polled.load(Ordering::Relaxed), 0);
    });
}

#[tokio::test(start_paused = true)]
async fn a_hanging_value_does_no_more_work() {
    let worked = Arc::new(AtomicU32::new(0));
    let ticker = Arc::clone(&worked);
    let ticker = child("ticker", move || Ticker { worked: Arc::clone(&ticker) });
    let tree = TestTree::start(Supervisor::builder("app").child(ticker)).await;
    sleep(10 * SECOND + SECOND / 2).await;
    assert_eq!(worked.load(Ordering::Relaxed), 10);

    tree.hang("ticker");
    sleep(10 * SECOND).await;

    assert_eq!(worked.load(Ordering::Relaxed), 10);
    tree.stop().await;
}

struct Ticker {
    worked: Arc<AtomicU32>,
}

#[async_trait]
impl Child for Ticker {
    async fn run(&mut self, _ctx: &Context) -> Exit {
        loop {
            sleep(SECOND).await;
            self.worked.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_injected_start_failure_precedes_the_childs_own_code() {
    let deactivated = Arc::default();
    let app = Supervisor::builder("app").child(object("db", &deactivated));
    let tree = TestTree::spawn(app);
    let began = Instant::now();

    tree.fail_next_start("db", "no route");
    tree.fail_next_start("db", std::io::Error::other("connection refused"));
    tree.up().await;

    assert_eq!(began.elapsed(), 3 * SECOND, "one second, and then two");
    let failures = tree.expect(["db: activating -> errored (activation_failed)"; 2]).await;
    let texts = failures.iter().map(|event| match &event.kind {
        verger::status::EventKind::Moved { reason, .. } => reason.as_ref().unwrap().to_string(),
        other => panic!("{other:?}"),
    });
    let texts: Vec<_> = texts.collect();
    assert_eq!(texts, ["activation failed: no route", "activation failed: connection refused"]);
    assert_eq!(failures[1].at.duration_since(failures[0].at).unwrap(), SECOND);
    tree.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_function_fails_its_start_when_it_is_first_polled() {
    let app = Supervisor::builder("app")
        .child(idle("at-once"))
        .child(idle("signals").readiness(Readiness::Signal));
    let tree = TestTree::spawn(app);

    tree.fail_next_start("at-once", "no");
    tree.fail_next_start("signals", "no");

    tree.expect(["at-once: active -> errored (failed)"]).await;
    tree.expect(["signals: activating -> errored (activation_failed)"]).await;
    tree.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_injected_decline_replaces_the_childs_start() {
    let tree = TestTree::spawn(Supervisor::builder("app").child(object("db", &Arc::default())));

    tree.fail_next_start("db", ExitError::ignore());

    tree.expect(["db: activating -> stopped"]).await;
    tree.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_hanging_start_reaches_its_timeout() {
    let db = object("db", &Arc::default()).activation_timeout(4 * SECOND).shutdown(2 * SECOND);
    let tree = TestTree::spawn(Supervisor::builder("app").child(db));

    tree.hang_next_start("db");

    let timed_out = elapsed(tree.expect([Expect::entered("db", Lifecycle::Errored)])).await;
    assert_eq!(timed_out, 4 * SECOND);
    // The backoff of a second began with the failure, and has passed when the task is gone.
    let gone = elapsed(tree.expect(["db: errored -> resolved"])).await;
    assert_eq!(gone, 2 * SECOND, "a grace that it does not use");
    tree.up().await;
    tree.stop().await;
}

#[tokio::test(start_paused = true)]
async fn faults_apply_at_any_depth() {
    let ingest = Supervisor::builder("ingest").child(idle("mqtt").shutdown(3 * SECOND));
    let deep = Supervisor::builder("deep").child(ingest);
    let tree = TestTree::start(Supervisor::builder("app").child(deep)).await;

    tree.hang("deep/ingest/mqtt");
    assert_eq!(elapsed(tree.handle().stop_child("deep/ingest")).await, 3 * SECOND);

    tree.fail_next_start("deep/ingest/mqtt", "no");
    tree.handle().otp().restart_child("deep/ingest").await.unwrap();
    tree.expect(["deep/ingest/mqtt: active -> errored (failed)"]).await;
    tree.stop().await;
}

#[tokio::test(start_paused = true)]
async fn faults_apply_to_renamed_children_under_their_new_names() {
    let (db, pool) = (idle("db"), object("pool", &Arc::default()));
    let ingest = Supervisor::builder("ingest").child(db.clone()).child(pool.clone().named("north"));
    let ingest = ingest.into_child();
    let app = Supervisor::builder("app").child(ingest.clone()).child(ingest.named("egress"));
    let app = app.child(pool).child(db.named("south"));
    let tree = TestTree::spawn(app.start(Start::Concurrent));

    for path in ["egress/north", "south"] {
        tree.fail_next_start(path, "no");
    }
    tree.up().await;
    tree.expect(["south: active -> errored (failed)"]).await;
    tree.expect(["egress/north: activating -> errored (activation_failed)"]).await;

    tree.hang("egress/north");
    assert_eq!(elapsed(tree.handle().stop_child("ingest")).await, Duration::ZERO);
    assert_eq!(elapsed(tree.handle().stop_child("egress")).await, 5 * SECOND);
    tree.hang("south");
    assert_eq!(elapsed(tree.stop()).await, 5 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_is_a_child_that_can_fail_its_start_and_be_killed() {
    let ingest = Supervisor::builder("ingest").child(idle("mqtt"));
    let ingest = ingest.into_child().backoff(Backoff::constant(9 * SECOND));
    let tree = TestTree::spawn(Supervisor::builder("app").child(ingest));

    tree.fail_next_start("ingest", "no");
    assert_eq!(elapsed(tree.up()).await, 9 * SECOND);
    tree.expect(["ingest: activating -> errored (activation_failed)", "ingest/mqtt: -> active"])
        .await;

    tree.kill("ingest").await;
    tree.expect(["ingest: active -> errored (aborted)", "ingest/mqtt: -> stopped (killed)"]).await;
    assert_eq!(elapsed(tree.wait_for("ingest", Lifecycle::Active)).await, 9 * SECOND);
    tree.stop().await;
}

/// By a call, by code of the tree, and below a worker.
#[tokio::test(start_paused = true)]
async fn faults_apply_to_children_that_the_program_adds() {
    async fn manager(ctx: Context) -> Exit {
        ctx.parent().add_child(idle("added")).await?;
        ctx.children().start_child(idle("own")).await?;
        ctx.cancelled().await;
        Ok(())
    }
    let fails = worker("fails", async |_| Exit::Err("no".into()));
    let fails = fails.backoff(Backoff::none()).consecutive_restarts(0).fallback(idle("rest"));
    let tree = Supervisor::builder("app").child(DynamicSupervisor::builder("conns"));
    let tree = TestTree::start(tree.child(worker("manager", manager)).child(fails)).await;
    let conns = tree.handle().supervisor("conns").await.unwrap();
    conns.start_child(idle("conn")).await.unwrap();
    tree.wait_for("manager/own#1", Lifecycle::Active).await;
    tokio::time::sleep(SECOND).await;

    for path in ["added", "manager/own#1", "conns/conn#1", "fails"] {
        tree.fail_next_start(path, "on purpose");
        tree.kill(path).await;
        let fails = format!("{path}: active -> errored (failed)");
        tree.expect([fails, format!("{path}: activating -> active")]).await;

        tree.hang(path);
        // Its grace, which a child that is idle doesn't need.
        assert_eq!(elapsed(tree.handle().stop_child(path)).await, 5 * SECOND, "{path}");
    }
    tree.stop().await;
}

#[cfg(feature = "config-file")]
#[tokio::test(start_paused = true)]
async fn faults_apply_to_children_of_new_code() {
    let tree = TestTree::start(Supervisor::builder("app").child(idle("db"))).await;
    let new = Supervisor::builder("app").child(idle("db")).child(idle("api")).build().unwrap();
    let none = verger::config::Config::new();
    let plan = tree.handle().plan_tree(&new, &none).await.unwrap();
    tree.handle().apply(plan).await.unwrap();
    for path in ["db", "api"] {
        tree.hang(path);
        assert_eq!(elapsed(tree.handle().stop_child(path)).await, 5 * SECOND, "{path}");
    }
    tree.stop().await;
}

#[tokio::test(start_paused = true)]
async fn faults_apply_to_added_children_with_or_without_their_number() {
    let app = Supervisor::builder("app").child(DynamicSupervisor::builder("conns"));
    let tree = TestTree::start(app).await;

    tree.fail_next_start("conns/conn", "by name");
    tree.fail_next_start("conns/conn#2", "by number");
    for text in ["by name", "by number"] {
        let conn = object("conn", &Arc::default());
        let error = tree.start_child("conns", conn).await.unwrap_err().to_string();
        let expected = format!("activation failed: {text}; it was removed, and can be added again");
        assert!(error.ends_with(&expected), "{error}");
    }
    let conn = tree.start_child("conns", idle("conn").shutdown(2 * SECOND)).await.unwrap();
    let db = tree.start_child("", idle("db")).await.unwrap();
    assert_eq!((conn.name(), db.path().as_str()), ("conn#3", "app/db"));

    tree.hang("db");
    tree.hang("conns/conn#3");
    assert_eq!(elapsed(tree.stop()).await, 7 * SECOND);
}
