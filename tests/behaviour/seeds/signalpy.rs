//! Rules of SignalPy's supervision.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use verger::policy::{OnExhausted, Start};
use verger::{
    Context, ControlError, ExitReason, Lifecycle, RunError, Strategy, Supervisor, worker,
};

use super::{MINUTE, app, edges, lifecycle, limited, secs, start};
use crate::common::{End, FakeChildren, NextStart, settle};

#[tokio::test(start_paused = true)]
async fn seed3_08_a_child_parked_at_boot_is_retried_only_manually() {
    let fakes = FakeChildren::new();
    fakes.next_starts("b", [NextStart::Error, NextStart::Error]);
    let app = limited(0).on_exhausted(OnExhausted::Park);
    let app = start(app.child(fakes.child("a")).child(fakes.child("b")).child(fakes.child("c")));
    let app = app.await;
    assert_eq!(fakes.actions(), ["start a", "try b", "start c"], "the boot goes on");
    assert_eq!(lifecycle(&app, "b").await, Lifecycle::Errored);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(fakes.actions(), [""; 0], "nothing is tried by itself");

    let error = app.resume("b").await.unwrap_err();
    let text =
        "`app/b` failed to start: activation failed: no start; it stays errored until `resume`";
    assert_eq!(error.to_string(), text);
    assert_eq!(lifecycle(&app, "b").await, Lifecycle::Errored);
    assert_eq!(app.resume("b").await.unwrap().incarnation(), Some(3));
    assert_eq!(lifecycle(&app, "b").await, Lifecycle::Active);

    assert_eq!(app.resume("b").await.unwrap().incarnation(), Some(3), "it keeps running");
    let error = app.resume("z").await.unwrap_err();
    assert_eq!(error.to_string(), "there is no `app/z`");
    assert!(matches!(error, ControlError::NotFound { .. }));
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn seed3_09_a_child_can_follow_its_parents_up_to_the_root() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = Arc::clone(&seen);
    let leaf = worker("leaf", move |ctx: Context| {
        let mut chain = vec![ctx.path().to_string(), ctx.parent().path().to_string()];
        let above = std::iter::successors(ctx.parent().path().parent(), verger::Path::parent);
        chain.extend(above.map(|path| path.to_string()));
        *sink.lock().unwrap() = chain;
        async move { ctx.cancelled().await }
    });
    let mid = Supervisor::builder("top").child(Supervisor::builder("mid").child(leaf));
    let app = start(app().child(mid)).await;
    settle().await;
    assert_eq!(*seen.lock().unwrap(), ["app/top/mid/leaf", "app/top/mid", "app/top", "app"]);
    app.stop("done").await.unwrap();
}

/// Returns what three children do when the middle one fails, until its backoff is over.
async fn fail_the_middle_of_three(strategy: Strategy) -> (Vec<String>, Vec<u32>) {
    let fakes = FakeChildren::new();
    let app = app().strategy(strategy);
    let app = app.child(fakes.child("a")).child(fakes.child("b")).child(fakes.child("c"));
    let app = start(app).await;
    fakes.actions();
    fakes.end("b", End::Error).await;
    tokio::time::sleep(secs(2)).await;
    settle().await;
    let acts = fakes.actions();
    let children = app.children().await.unwrap();
    app.stop("done").await.unwrap();
    (acts, children.iter().map(|child| child.incarnation).collect())
}

#[tokio::test(start_paused = true)]
async fn seed3_17_one_for_one_restarts_only_the_child_that_failed() {
    let (acts, runs) = fail_the_middle_of_three(Strategy::OneForOne).await;
    assert_eq!(acts, ["end b", "start b"]);
    assert_eq!(runs, [1, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn seed3_18_one_for_all_stops_in_reverse_order_and_starts_in_order() {
    let (acts, runs) = fail_the_middle_of_three(Strategy::OneForAll).await;
    assert_eq!(acts, ["end b", "stop c", "stop a", "start a", "start b", "start c"]);
    assert_eq!(runs, [2, 2, 2]);
}

#[tokio::test(start_paused = true)]
async fn seed3_19_rest_for_one_leaves_earlier_children_alone() {
    let (acts, runs) = fail_the_middle_of_three(Strategy::RestForOne).await;
    assert_eq!(acts, ["end b", "stop c", "start b", "start c"]);
    assert_eq!(runs, [1, 2, 2]);
}

#[test]
fn seed3_20_the_states_have_these_names() {
    let states = [
        (Lifecycle::Discovered, "discovered"),
        (Lifecycle::Resolved, "resolved"),
        (Lifecycle::Activating, "activating"),
        (Lifecycle::Active, "active"),
        (Lifecycle::Errored, "errored"),
        (Lifecycle::Restarting, "restarting"),
        (Lifecycle::Deactivating, "deactivating"),
        (Lifecycle::Stopped, "stopped"),
    ];
    for (state, name) in states {
        assert_eq!(state.to_string(), name);
        assert_eq!(serde_json::to_value(state).unwrap(), name);
    }
}

#[tokio::test(start_paused = true)]
async fn seed3_21_a_child_passes_through_exactly_these_states() {
    let fakes = FakeChildren::new();
    // The child is added later, so that a subscriber sees it from its start.
    let app = start(limited(1).on_exhausted(OnExhausted::Park)).await;
    let mut events = app.events();
    app.start_child(fakes.child("a")).await.unwrap();
    assert_eq!(
        edges(&mut events),
        [
            "app/a#0 discovered → resolved",
            "app/a#1 resolved → activating",
            "app/a#1 activating → active",
        ],
    );
    fakes.next_starts("a", [NextStart::Error]);
    fakes.end("a", End::Error).await;
    tokio::time::sleep(secs(6)).await;
    settle().await;
    assert_eq!(
        edges(&mut events),
        [
            "app/a#1 active → errored (failed)",
            "app/a#1 errored → restarting, attempt 1 in 2s",
            "app/a#1 restarting → resolved",
            "app/a#2 resolved → activating",
            "app/a#2 activating → errored (activation_failed)",
            "app/a#2 errored → restarting, attempt 2 in 4s",
            "app/a#2 restarting → resolved",
            "app/a#3 resolved → activating",
            "app/a#3 activating → active",
        ],
    );
    fakes.end("a", End::Panic).await;
    app.resume("a").await.unwrap();
    app.stop_child("a").await.unwrap();
    assert_eq!(
        edges(&mut events),
        [
            "app/a#3 active → errored (panicked)",
            "app/a#3 errored → resolved",
            "app/a#4 resolved → activating",
            "app/a#4 activating → active",
            "app/a#4 active → deactivating",
            "app/a#4 deactivating → stopped (shutdown)",
        ],
    );
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn seed3_22_a_waiting_child_shows_its_remaining_delay() {
    let fakes = FakeChildren::new();
    let app = start(app().child(fakes.child("a"))).await;
    fakes.end("a", End::Error).await;
    tokio::time::sleep(Duration::from_millis(500)).await;

    let child = app.which_child("a").await.unwrap();
    assert_eq!(child.lifecycle, Lifecycle::Restarting);
    let next = child.next.unwrap();
    assert_eq!((next.attempt, next.delay), (1, secs(2)));
    assert_eq!(next.remaining, Duration::from_millis(1500));
    let seen = serde_json::to_value(app.status().await.unwrap()).unwrap();
    let child = &seen["root"]["children"][0];
    assert_eq!(child["lifecycle"], "restarting");
    let at_ms = seen["captured_at_ms"].as_u64().unwrap() + 1500;
    let next = serde_json::json!({
        "attempt": 1, "at_ms": at_ms, "delay_ms": 2000, "remaining_ms": 1500,
    });
    assert_eq!(child["next"], next);

    tokio::time::sleep(Duration::from_millis(1500)).await;
    settle().await;
    let child = app.which_child("a").await.unwrap();
    assert_eq!((child.lifecycle, child.next), (Lifecycle::Active, None));
    app.stop("done").await.unwrap();
}

/// SignalPy notifies the parent through its callback; in verger, the parent sees how its child
/// ended.
#[tokio::test(start_paused = true)]
async fn seed3_27_a_supervisor_that_gives_up_is_a_failure_for_its_parent() {
    let fakes = FakeChildren::new();
    let mid = Supervisor::builder("mid").restarts(0, MINUTE).child(fakes.child("leaf"));
    let app = start(limited(1).child(mid)).await;
    fakes.end("leaf", End::Error).await;

    let mid = app.which_child("mid").await.unwrap();
    assert_eq!(mid.lifecycle, Lifecycle::Restarting);
    let last = mid.last_exit.as_ref().map(|last| &*last.reason);
    let Some(ExitReason::Escalated { child, source }) = last else { panic!("{mid:?}") };
    assert_eq!(child.as_str(), "app/mid/leaf");
    assert_eq!(source.to_string(), "failed: leaf failed");

    tokio::time::sleep(secs(2)).await;
    settle().await;
    let end = tokio::spawn({
        let app = app.clone();
        async move { app.wait().await }
    });
    fakes.end("leaf", End::Error).await;
    let error = end.await.unwrap().unwrap_err();
    let RunError::GaveUp { path, child, reason, .. } = &error else { panic!("{error}") };
    assert_eq!((path.as_str(), child.as_str(), reason.kind()), ("app", "app/mid", "escalated"));
    assert_eq!(
        error.to_string(),
        "`app` gave up on `app/mid`: escalated: child app/mid/leaf: failed: leaf failed",
    );
}

#[tokio::test(start_paused = true)]
async fn seed3_28_a_root_that_parks_does_nothing_until_a_manual_retry() {
    let fakes = FakeChildren::new();
    let mid = Supervisor::builder("mid").restarts(0, MINUTE).child(fakes.child("leaf"));
    let app = limited(0).on_exhausted(OnExhausted::Park);
    let app = start(app.child(mid).child(fakes.child("other"))).await;
    fakes.end("leaf", End::Error).await;
    fakes.actions();
    tokio::time::sleep(100 * MINUTE).await;

    assert_eq!(fakes.actions(), [""; 0]);
    let mid = app.which_child("mid").await.unwrap();
    assert_eq!((mid.lifecycle, mid.why), (Lifecycle::Errored, Some("given up")));
    let error = app.which_child("mid/leaf").await.unwrap_err();
    assert_eq!(error.to_string(), "the supervisor of `app/mid/leaf` is not running; `app` is");
    app.resume("mid").await.unwrap();
    assert_eq!(fakes.actions(), ["start leaf"]);
    assert_eq!(lifecycle(&app, "mid/leaf").await, Lifecycle::Active);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn seed3_37_a_waiting_child_delays_only_the_siblings_that_start_after_it() {
    for (order, at_once) in [(Start::Concurrent, true), (Start::Sequential, false)] {
        let fakes = FakeChildren::new();
        fakes.next_starts("a", [NextStart::Error]);
        let tree = app().start(order).child(fakes.child("a")).child(fakes.child("b"));
        let began = Instant::now();
        let starting = tokio::spawn(tree.build().unwrap().start());
        settle().await;
        let acts: &[&str] = if at_once { &["try a", "start b"] } else { &["try a"] };
        assert_eq!(fakes.actions(), acts);
        let app = starting.await.unwrap().unwrap();
        assert_eq!(began.elapsed(), secs(2), "up when all have had their turn");

        // Once the tree is up, no child delays a sibling.
        fakes.end("a", End::Error).await;
        let called = Instant::now();
        app.start_child(fakes.child("c")).await.unwrap();
        app.restart("b").await.unwrap();
        assert_eq!(called.elapsed(), Duration::ZERO);
        assert_eq!(lifecycle(&app, "a").await, Lifecycle::Restarting);
        app.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn seed3_38_a_child_that_fails_again_after_a_group_restart_is_retried_again() {
    for strategy in [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne] {
        let fakes = FakeChildren::new();
        let app = app().strategy(strategy).child(fakes.child("a")).child(fakes.child("b"));
        let app = start(app).await;
        fakes.next_starts("a", [NextStart::Error, NextStart::Panic]);
        fakes.end("a", End::Error).await;
        tokio::time::sleep(secs(2 + 4 + 8)).await;
        settle().await;

        let a = app.which_child("a").await.unwrap();
        assert_eq!((a.lifecycle, a.incarnation), (Lifecycle::Active, 4), "{strategy}");
        assert_eq!(lifecycle(&app, "b").await, Lifecycle::Active, "{strategy}");
        app.stop("done").await.unwrap();
    }
}
