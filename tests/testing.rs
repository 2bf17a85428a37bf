//! The test kit: what it does to a tree, and what it sees. What it says when a test fails is in
//! `testing_failures.rs`.

#![cfg(feature = "testing")]

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use verger::testing::{Expect, TestTree};
use verger::{
    Backoff, Child, ChildSpec, Context, DynamicSupervisor, Exit, ExitError, Lifecycle, Readiness,
    RestartType, RunError, StartError, Strategy, Supervisor, SupervisorBuilder, async_trait, child,
    worker,
};

const SECOND: Duration = Duration::from_secs(1);

/// A function that does what it is asked.
fn idle(name: &str) -> ChildSpec {
    worker(name, async |ctx: Context| ctx.cancelled().await).backoff(Backoff::constant(SECOND))
}

/// A value that does what it is asked, and counts how often it got to its `deactivate`.
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

fn pair() -> SupervisorBuilder {
    Supervisor::builder("app").child(idle("db")).child(idle("api"))
}

/// How long it takes.
async fn elapsed(future: impl Future) -> Duration {
    let began = Instant::now();
    future.await;
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_spawned_tree_is_seen_from_its_first_event_and_a_started_one_from_when_it_is_up() {
    let start = [
        "db: discovered -> resolved",
        "db: resolved -> activating",
        "db: activating -> active",
        "api: discovered -> resolved",
        "api: resolved -> activating",
        "api: activating -> active",
    ];
    let stop = [
        "api: active -> deactivating",
        "api: deactivating -> stopped (shutdown)",
        "db: active -> deactivating",
        "db: deactivating -> stopped (shutdown)",
    ];

    let spawned = TestTree::spawn(pair());
    assert_eq!(spawned.events().len(), 0, "nothing has run yet");
    spawned.up().await;
    spawned.stop().await;
    spawned.expect_exactly(start.into_iter().chain(stop)).await;

    let started = TestTree::start(pair()).await;
    assert_eq!(started.events().len(), start.len());
    started.stop().await;
    started.expect_exactly(stop).await;
    assert_eq!(started.events().len(), start.len() + stop.len(), "and all of it is kept");
}

#[tokio::test(start_paused = true)]
async fn a_state_is_waited_for_until_it_is_there_and_not_longer() {
    let tree = TestTree::start(pair()).await;

    assert_eq!(elapsed(tree.wait_for("db", Lifecycle::Active)).await, Duration::ZERO);

    tree.kill("db").await;
    assert_eq!(elapsed(tree.wait_for("db", Lifecycle::Restarting)).await, Duration::ZERO);
    assert_eq!(elapsed(tree.wait_for("db", Lifecycle::Active)).await, SECOND, "after its backoff");
    assert_eq!(tree.handle().which_child("db").await.unwrap().incarnation, 2);

    tree.stop().await;
    assert_eq!(elapsed(tree.wait_for("db", Lifecycle::Stopped)).await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_state_that_does_not_last_is_seen_nevertheless() {
    let tree = TestTree::start(pair()).await;

    let activating = tree.wait_for("db", Lifecycle::Activating);
    let restart = async { tree.handle().restart("db").await.unwrap() };
    let ((), restarted) = tokio::join!(activating, restart);

    assert_eq!(restarted.incarnation(), Some(2));
    tree.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_child_need_not_be_there_yet_to_be_waited_for() {
    let tree = TestTree::start(pair()).await;

    let waited = elapsed(tree.wait_for("late", Lifecycle::Active));
    let added = async {
        sleep(7 * SECOND).await;
        tree.start_child("", idle("late")).await.unwrap();
    };
    let (waited, ()) = tokio::join!(waited, added);

    assert_eq!(waited, 7 * SECOND);
    tree.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_killed_child_is_gone_when_the_call_returns() {
    let tree = TestTree::start(pair()).await;

    assert_eq!(elapsed(tree.kill("db")).await, Duration::ZERO);

    assert_eq!(tree.events().len(), 6 + 2, "it has failed, and what follows is decided");
    let db = tree.handle().which_child("db").await.unwrap();
    assert_eq!(db.lifecycle, Lifecycle::Restarting);
    assert_eq!(db.last_exit.unwrap().kind(), "aborted");
    tree.expect_exactly(["db: active -> errored (aborted)", "db: errored -> restarting"]).await;
    tree.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_child_that_hangs_is_aborted_when_its_grace_is_over_by_the_restart_of_its_group() {
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

#[tokio::test(start_paused = true)]
async fn a_child_that_was_spawned_and_did_nothing_yet_can_hang() {
    let app = (0..200).fold(Supervisor::builder("app"), |app, number| {
        app.child(idle(&format!("child-{number}")))
    });
    let tree = TestTree::start(app).await;

    for number in 0..200 {
        tree.hang(&format!("child-{number}"));
    }

    assert_eq!(elapsed(tree.stop()).await, 200 * 5 * SECOND, "each is given its grace");
}

#[tokio::test(start_paused = true)]
async fn a_start_that_is_to_fail_fails_before_the_child_has_a_say() {
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
        verger::EventKind::Moved { reason, .. } => reason.as_ref().unwrap().to_string(),
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
async fn a_start_may_be_declined_for_the_child() {
    let tree = TestTree::spawn(Supervisor::builder("app").child(object("db", &Arc::default())));

    tree.fail_next_start("db", ExitError::ignore());

    tree.expect(["db: activating -> stopped"]).await;
    tree.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_start_that_hangs_runs_into_its_time_out() {
    let db = object("db", &Arc::default()).activation_timeout(4 * SECOND).shutdown(2 * SECOND);
    let tree = TestTree::spawn(Supervisor::builder("app").child(db));

    tree.hang_next_start("db");

    let timed_out = elapsed(tree.expect([Expect::entered("db", Lifecycle::Errored)])).await;
    assert_eq!(timed_out, 4 * SECOND);
    let gone = elapsed(tree.expect(["db: errored -> restarting"])).await;
    assert_eq!(gone, 2 * SECOND, "a grace that it does not use");
    tree.up().await;
    tree.stop().await;
}

#[tokio::test(start_paused = true)]
async fn faults_strike_at_any_depth() {
    let ingest = Supervisor::builder("ingest").child(idle("mqtt").shutdown(3 * SECOND));
    let deep = Supervisor::builder("deep").child(ingest);
    let tree = TestTree::start(Supervisor::builder("app").child(deep)).await;

    tree.hang("deep/ingest/mqtt");
    assert_eq!(elapsed(tree.handle().terminate_child("deep/ingest")).await, 3 * SECOND);

    tree.fail_next_start("deep/ingest/mqtt", "no");
    tree.handle().restart_child("deep/ingest").await.unwrap();
    tree.expect(["deep/ingest/mqtt: active -> errored (failed)"]).await;
    tree.stop().await;
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

#[tokio::test(start_paused = true)]
async fn added_children_are_struck_as_well_dynamic_ones_by_their_name_with_or_without_number() {
    let app = Supervisor::builder("app").child(DynamicSupervisor::builder("conns"));
    let tree = TestTree::start(app).await;

    tree.fail_next_start("conns/conn", "by name");
    tree.fail_next_start("conns/conn#2", "by number");
    for text in ["by name", "by number"] {
        let conn = object("conn", &Arc::default());
        let error = tree.start_child("conns", conn).await.unwrap_err().to_string();
        assert!(error.ends_with(&format!("activation failed: {text}")), "{error}");
    }
    let conn = tree.start_child("conns", idle("conn").shutdown(2 * SECOND)).await.unwrap();
    let db = tree.start_child("", idle("db")).await.unwrap();
    assert_eq!((conn.name(), db.path().as_str()), ("conn#3", "app/db"));

    tree.hang("db");
    tree.hang("conns/conn#3");
    assert_eq!(elapsed(tree.stop()).await, 7 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_root_may_be_dynamic() {
    let tree = TestTree::start(DynamicSupervisor::builder("conns")).await;
    tree.start_child("", idle("conn").restart(RestartType::Temporary)).await.unwrap();

    tree.kill("conn#1").await;

    tree.expect([Expect::entered("conn#1", Lifecycle::Stopped), Expect::removed("conn#1")]).await;
    tree.stop().await;
}

#[tokio::test(start_paused = true)]
async fn each_expectation_goes_on_where_the_last_one_ended() {
    let tree = TestTree::start(pair()).await;
    tree.kill("db").await;
    tree.kill("api").await;
    tree.wait_for("api", Lifecycle::Active).await;

    let first = tree.expect(["db: -> errored", "db: -> restarting", "api: -> errored"]).await;
    assert_eq!(first.len(), 3);
    assert_eq!(first[2].path.as_str(), "app/api");
    tree.expect_exactly(["api: errored -> restarting"]).await;

    tree.forget();
    tree.kill("db").await;
    tree.expect_exactly(["db: active -> errored", "db: errored -> restarting"]).await;
    tree.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_forgotten_while_the_test_does_something_else() {
    let app = Supervisor::builder("app")
        .unlimited_restarts()
        .child(worker("flaky", async |_| Err::<(), _>("no")).backoff(Backoff::constant(SECOND)));
    let tree = TestTree::start(app).await;

    sleep(1000 * SECOND).await;

    assert_eq!(tree.events().iter().map(|event| event.seq).max(), Some(tree.events().len() as u64));
    assert!(tree.events().len() > 4 * 1000, "{}", tree.events().len());
    tree.stop().await;
}

#[tokio::test(start_paused = true)]
async fn how_a_tree_ends_by_itself_is_the_answer_and_letters_are_kept() {
    let app = Supervisor::builder("app").restarts(0, SECOND).child(idle("db"));
    let tree = TestTree::start(app).await;

    tree.kill("db").await;

    let error = tree.ended().await.unwrap_err();
    assert!(matches!(error, RunError::GaveUp { .. }), "{error}");
    tree.expect([Expect::gave_up("db").because("aborted")]).await;
    let letters = tree.dead_letters();
    assert_eq!(letters.len(), 1);
    assert_eq!((letters[0].target.as_str(), letters[0].incarnation), ("app/db", 1));

    let done = worker("done", async |_| ()).restart(RestartType::Transient).significant();
    let app = Supervisor::builder("app").auto_shutdown(verger::AutoShutdown::AnySignificant);
    let tree = TestTree::start(app.child(done)).await;
    assert!(tree.ended().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_tree_that_does_not_come_up_is_an_answer_too() {
    let db = child("db", || NoStart);
    let app = Supervisor::builder("app").first_start(verger::FirstStart::Fail);

    let error = TestTree::try_start(app.child(idle("cache")).child(db)).await.unwrap_err();

    assert!(matches!(error, StartError::ChildFailed { .. }), "{error}");
    assert!(TestTree::try_start(pair()).await.is_ok());
}

struct NoStart;

#[async_trait]
impl Child for NoStart {
    async fn activate(&mut self, _ctx: &Context) -> Exit {
        Err("no route".into())
    }

    async fn run(&mut self, _ctx: &Context) -> Exit {
        unreachable!("it does not start")
    }
}

#[tokio::test(start_paused = true)]
async fn a_tree_that_is_dropped_is_aborted() {
    let alive = Arc::new(());
    let held = Arc::clone(&alive);
    let holder = verger::worker_with("holder", held, async |ctx: Context, held| -> Exit {
        ctx.cancelled().await;
        drop(held);
        Ok(())
    });
    let tree = TestTree::start(Supervisor::builder("app").child(holder)).await;
    let handle = tree.handle().clone();
    let before = Arc::strong_count(&alive);

    drop(tree);

    assert!(matches!(handle.wait().await, Err(RunError::Aborted { .. })));
    tokio::task::yield_now().await;
    assert_eq!((before, Arc::strong_count(&alive)), (3, 2), "the spec, the test, and no child");
}
