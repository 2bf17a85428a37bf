//! What the test kit observes of a tree.

#![cfg(feature = "testing")]

mod failures;
mod faults;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use verger::testing::{Expect, TestTree};
use verger::{
    Backoff, Child, ChildSpec, Context, DynamicSupervisor, Exit, Lifecycle, RestartType, RunError,
    StartError, Supervisor, SupervisorBuilder, async_trait, child, worker,
};

const SECOND: Duration = Duration::from_secs(1);

/// A function that reacts to its cancellation.
fn idle(name: &str) -> ChildSpec {
    worker(name, async |ctx: Context| ctx.cancelled().await).backoff(Backoff::constant(SECOND))
}

fn pair() -> SupervisorBuilder {
    Supervisor::builder("app").child(idle("db")).child(idle("api"))
}

/// Returns the duration of a future.
async fn elapsed(future: impl Future) -> Duration {
    let began = Instant::now();
    future.await;
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_spawned_tree_is_observed_from_its_first_event_and_a_started_tree_once_it_is_up() {
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
async fn waiting_for_a_state_ends_when_the_state_is_reached() {
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
async fn a_transient_state_is_observed() {
    let tree = TestTree::start(pair()).await;

    let activating = tree.wait_for("db", Lifecycle::Activating);
    let restart = async { tree.handle().restart("db").await.unwrap() };
    let ((), restarted) = tokio::join!(activating, restart);

    assert_eq!(restarted.incarnation(), Some(2));
    tree.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_test_can_wait_for_a_child_that_does_not_exist_yet() {
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
    assert_eq!(db.last_exit.unwrap().reason.kind(), "aborted");
    tree.expect_exactly(["db: active -> errored (aborted)", "db: errored -> restarting"]).await;
    tree.stop().await;
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
async fn each_expectation_continues_after_the_previous_one() {
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
async fn events_are_kept_while_the_test_is_busy() {
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
async fn the_result_of_a_tree_is_returned_and_its_dead_letters_are_kept() {
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
    let app =
        Supervisor::builder("app").auto_shutdown(verger::policy::AutoShutdown::AnySignificant);
    let tree = TestTree::start(app.child(done)).await;
    assert!(tree.ended().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_tree_that_fails_to_start_returns_its_error() {
    let db = child("db", || NoStart);
    let app = Supervisor::builder("app").first_start(verger::policy::FirstStart::Fail);

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
async fn a_dropped_tree_is_aborted() {
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
