//! Behaviours of actor-ts (`seed0`), SignalPy (`seed3`) and elfo (`seed4`) that we keep.

mod common;

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use verger::{
    Backoff, Context, ControlError, Event, EventKind, Exit, ExitReason, Lifecycle, OnExhausted,
    Readiness, RestartType, RunError, Start, Strategy, Subscription, Supervisor, SupervisorBuilder,
    SupervisorHandle, worker,
};

use self::common::{End, NextStart, World, settle};

const MINUTE: Duration = Duration::from_secs(60);

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A root whose children wait 2, 4, 8, … seconds.
fn app() -> SupervisorBuilder {
    Supervisor::builder("app")
        .unlimited_restarts()
        .defaults(|child| child.backoff(Backoff::exponential(secs(2), secs(64))))
}

async fn start(builder: SupervisorBuilder) -> SupervisorHandle {
    builder.build().unwrap().start().await.unwrap()
}

async fn lifecycle(handle: &SupervisorHandle, path: &str) -> Lifecycle {
    handle.which_child(path).await.unwrap().lifecycle
}

/// The edges that have been told so far, as in `app/a#2 active → errored (panicked)`.
fn edges(events: &mut Subscription<Event>) -> Vec<String> {
    let told = std::iter::from_fn(|| events.try_next());
    told.filter_map(|event| match event.kind {
        EventKind::Moved { from, to, reason, wait, .. } => {
            let reason = reason.map(|reason| format!(" ({})", reason.kind())).unwrap_or_default();
            let wait = wait.map(|(n, wait)| format!(", attempt {n} in {wait:?}")).unwrap_or_default();
            Some(format!("{}#{} {from} → {to}{reason}{wait}", event.path, event.incarnation))
        }
        _ => None,
    })
    .collect()
}

#[tokio::test(start_paused = true)]
async fn seed0_05_a_child_aborted_from_outside_goes_the_same_way_as_one_that_fails() {
    for (how, kind) in [(0, "failed"), (1, "panicked"), (2, "aborted")] {
        let world = World::new();
        let app = start(app().child(world.child("a"))).await;
        let mut events = app.events();
        match how {
            0 => world.end("a", End::Error).await,
            1 => world.end("a", End::Panic).await,
            _ => app.kill_child("a").await.unwrap(),
        }
        settle().await;
        assert_eq!(
            edges(&mut events),
            [
                format!("app/a#1 active → errored ({kind})"),
                "app/a#1 errored → restarting, attempt 1 in 2s".to_owned(),
            ],
        );
        tokio::time::sleep(secs(2)).await;
        settle().await;
        assert_eq!(
            edges(&mut events),
            [
                "app/a#1 restarting → resolved",
                "app/a#2 resolved → activating",
                "app/a#2 activating → active",
            ],
        );
        app.stop("done").await.unwrap();
    }
}

/// Real time, since blocking a thread is the only way to end late: nothing here waits for a clock
/// but the supervisor, 1 ms.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seed0_12_the_late_end_of_an_older_incarnation_changes_nothing() {
    let (release, blocked) = mpsc::channel::<()>();
    let blocked = Arc::new(Mutex::new(Some(blocked)));
    let stubborn = worker("a", move |ctx: Context| {
        let blocked = blocked.lock().unwrap().take();
        async move {
            ctx.ready();
            if let Some(blocked) = blocked {
                tokio::task::block_in_place(|| blocked.recv()).unwrap_err();
                panic!("the late end");
            }
            ctx.cancelled().await;
        }
    });
    let app = Supervisor::builder("app").leak_timeout(Duration::from_millis(1));
    let app = app.child(stubborn.readiness(Readiness::Signal).backoff(Backoff::none()));
    let app = start(app).await;
    let mut events = app.events();

    app.kill_child("a").await.unwrap();
    let mut told = Vec::new();
    while !matches!(told.last(), Some(EventKind::Moved { to: Lifecycle::Active, .. })) {
        told.push(events.next().await.unwrap().kind);
    }
    assert!(told.iter().any(|kind| matches!(kind, EventKind::Leaked)), "{told:?}");
    drop(release);
    let late = events.next().await.unwrap();
    assert!(matches!(late.kind, EventKind::LeakEnded), "{late:?}");
    assert_eq!(late.incarnation, 1);

    let now = app.which_child("a").await.unwrap();
    assert_eq!((now.lifecycle, now.incarnation), (Lifecycle::Active, 2));
    assert_eq!(now.last_exit.unwrap().kind(), "aborted", "the panic was not taken for its end");
    app.stop("done").await.unwrap();
    let rest = edges(&mut events);
    assert_eq!(rest, ["app/a#2 active → deactivating", "app/a#2 deactivating → stopped (shutdown)"]);
}

#[tokio::test(start_paused = true)]
async fn seed0_13_a_wait_that_was_cut_short_does_not_start_a_second_child_when_it_would_be_over() {
    let world = World::new();
    let app = start(app().child(world.child("a"))).await;
    world.end("a", End::Error).await;

    tokio::time::sleep(secs(1)).await;
    app.wake("a").await.unwrap();
    settle().await;
    assert_eq!(world.acts(), ["start a", "end a", "start a"]);
    tokio::time::sleep(MINUTE).await;

    assert_eq!(world.acts(), [""; 0]);
    let alive = app.which_child("a").await.unwrap();
    assert_eq!((alive.lifecycle, alive.incarnation), (Lifecycle::Active, 2));
    let error = app.wake("a").await.unwrap_err();
    assert_eq!(error.to_string(), "`app/a` is active, so `wake` has nothing to do");
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn seed0_14_stopping_the_supervisor_cancels_the_pending_restart() {
    let world = World::new();
    let app = start(app().child(world.child("a"))).await;
    world.end("a", End::Error).await;
    assert_eq!(lifecycle(&app, "a").await, Lifecycle::Restarting);
    world.log();

    let asked = Instant::now();
    app.stop("done").await.unwrap();
    assert_eq!(asked.elapsed(), Duration::ZERO, "there is nobody to wait for");
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.log(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn seed3_08_a_child_that_is_parked_at_boot_is_retried_by_hand_and_only_then() {
    let world = World::new();
    world.next_starts("b", [NextStart::Error, NextStart::Error]);
    let app = app().restarts(0, MINUTE).on_exhausted(OnExhausted::Park);
    let app = start(app.child(world.child("a")).child(world.child("b")).child(world.child("c")));
    let app = app.await;
    assert_eq!(world.acts(), ["start a", "try b", "start c"], "the boot goes on");
    assert_eq!(lifecycle(&app, "b").await, Lifecycle::Errored);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.acts(), [""; 0], "nothing is tried by itself");

    let error = app.retry("b").await.unwrap_err();
    let text = "`app/b` failed to start: activation failed: no start";
    assert_eq!(error.to_string(), text);
    assert_eq!(lifecycle(&app, "b").await, Lifecycle::Errored);
    assert_eq!(app.retry("b").await.unwrap().incarnation(), Some(3));
    assert_eq!(lifecycle(&app, "b").await, Lifecycle::Active);

    let error = app.retry("b").await.unwrap_err();
    assert_eq!(error.to_string(), "`app/b` is active, so `retry` has nothing to do");
    assert!(matches!(error, ControlError::Unfit { state: Lifecycle::Active, .. }));
    let error = app.retry("z").await.unwrap_err();
    assert_eq!(error.to_string(), "there is no `app/z`");
    assert!(matches!(error, ControlError::NotFound { .. }));
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn seed3_09_a_child_can_follow_its_parents_up_to_the_root() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = Arc::clone(&seen);
    let leaf = worker("leaf", move |ctx: Context| {
        let mut chain = vec![ctx.path().to_string(), ctx.parent().path().to_string()];
        let above = std::iter::successors(ctx.parent().path().parent(), verger::Path::parent);
        chain.extend(above.map(|path| path.to_string()));
        *told.lock().unwrap() = chain;
        async move { ctx.cancelled().await }
    });
    let mid = Supervisor::builder("top").child(Supervisor::builder("mid").child(leaf));
    let app = start(app().child(mid)).await;
    settle().await;
    assert_eq!(*seen.lock().unwrap(), ["app/top/mid/leaf", "app/top/mid", "app/top", "app"]);
    app.stop("done").await.unwrap();
}

/// What three children do when the middle one fails, from the failure to the end of the wait.
async fn fail_the_middle_of_three(strategy: Strategy) -> (Vec<String>, Vec<u32>) {
    let world = World::new();
    let app = app().strategy(strategy);
    let app = app.child(world.child("a")).child(world.child("b")).child(world.child("c"));
    let app = start(app).await;
    world.acts();
    world.end("b", End::Error).await;
    tokio::time::sleep(secs(2)).await;
    settle().await;
    let acts = world.acts();
    let children = app.which_children().await.unwrap();
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
async fn seed3_21_a_child_goes_through_these_states_and_no_others() {
    let world = World::new();
    // The child is added later, so that somebody can listen to it from the start.
    let app = start(app().restarts(1, MINUTE).on_exhausted(OnExhausted::Park)).await;
    let mut events = app.events();
    app.start_child(world.child("a")).await.unwrap();
    assert_eq!(
        edges(&mut events),
        [
            "app/a#0 discovered → resolved",
            "app/a#1 resolved → activating",
            "app/a#1 activating → active",
        ],
    );
    world.next_starts("a", [NextStart::Error]);
    world.end("a", End::Error).await;
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
    world.end("a", End::Panic).await;
    app.retry("a").await.unwrap();
    app.terminate_child("a").await.unwrap();
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
async fn seed3_22_a_child_that_waits_shows_what_is_left_of_its_wait() {
    let world = World::new();
    let app = start(app().child(world.child("a"))).await;
    world.end("a", End::Error).await;
    tokio::time::sleep(Duration::from_millis(500)).await;

    let child = app.which_child("a").await.unwrap();
    assert_eq!(child.lifecycle, Lifecycle::Restarting);
    let next = child.next.unwrap();
    assert_eq!((next.attempt, next.delay), (1, secs(2)));
    assert_eq!(next.remaining, Duration::from_millis(1500));
    let seen = serde_json::to_value(app.status().await.unwrap()).unwrap();
    let child = &seen["root"]["children"][0];
    assert_eq!(child["lifecycle"], "restarting");
    let next = serde_json::json!({ "attempt": 1, "delay_ms": 2000, "remaining_ms": 1500 });
    assert_eq!(child["next"], next);

    tokio::time::sleep(Duration::from_millis(1500)).await;
    settle().await;
    let child = app.which_child("a").await.unwrap();
    assert_eq!((child.lifecycle, child.next), (Lifecycle::Active, None));
    app.stop("done").await.unwrap();
}

/// SignalPy tells the supervisor above through its callback; ours sees how its child has ended.
#[tokio::test(start_paused = true)]
async fn seed3_27_who_gives_up_fails_for_the_supervisor_above() {
    let world = World::new();
    let mid = Supervisor::builder("mid").restarts(0, MINUTE).child(world.child("leaf"));
    let app = start(app().restarts(1, MINUTE).child(mid)).await;
    world.end("leaf", End::Error).await;

    let mid = app.which_child("mid").await.unwrap();
    assert_eq!(mid.lifecycle, Lifecycle::Restarting);
    let Some(ExitReason::Escalated { child, source }) = mid.last_exit else { panic!("{mid:?}") };
    assert_eq!(child.as_str(), "app/mid/leaf");
    assert_eq!(source.to_string(), "failed: leaf failed");

    tokio::time::sleep(secs(2)).await;
    settle().await;
    let end = tokio::spawn({
        let app = app.clone();
        async move { app.wait().await }
    });
    world.end("leaf", End::Error).await;
    let error = end.await.unwrap().unwrap_err();
    let RunError::GaveUp { path, child, reason } = &error else { panic!("{error}") };
    assert_eq!((path.as_str(), child.as_str(), reason.kind()), ("app", "app/mid", "escalated"));
    assert_eq!(
        error.to_string(),
        "`app` gave up on `app/mid`: escalated: child app/mid/leaf: failed: leaf failed",
    );
}

#[tokio::test(start_paused = true)]
async fn seed3_28_where_the_root_parks_nothing_happens_until_somebody_acts() {
    let world = World::new();
    let mid = Supervisor::builder("mid").restarts(0, MINUTE).child(world.child("leaf"));
    let app = app().restarts(0, MINUTE).on_exhausted(OnExhausted::Park);
    let app = start(app.child(mid).child(world.child("other"))).await;
    world.end("leaf", End::Error).await;
    world.acts();
    tokio::time::sleep(100 * MINUTE).await;

    assert_eq!(world.acts(), [""; 0]);
    let mid = app.which_child("mid").await.unwrap();
    assert_eq!((mid.lifecycle, mid.why), (Lifecycle::Errored, Some("given up")));
    let error = app.which_child("mid/leaf").await.unwrap_err();
    assert_eq!(error.to_string(), "the supervisor of `app/mid/leaf` is not running; `app` is");
    app.retry("mid").await.unwrap();
    assert_eq!(world.acts(), ["start leaf"]);
    assert_eq!(lifecycle(&app, "mid/leaf").await, Lifecycle::Active);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn seed3_37_a_child_that_waits_holds_up_nobody_but_those_started_after_it_in_order() {
    for (order, at_once) in [(Start::Concurrent, true), (Start::Sequential, false)] {
        let world = World::new();
        world.next_starts("a", [NextStart::Error]);
        let tree = app().start(order).child(world.child("a")).child(world.child("b"));
        let began = Instant::now();
        let starting = tokio::spawn(tree.build().unwrap().start());
        settle().await;
        let acts: &[&str] = if at_once { &["try a", "start b"] } else { &["try a"] };
        assert_eq!(world.acts(), acts);
        let app = starting.await.unwrap().unwrap();
        assert_eq!(began.elapsed(), secs(2), "up when all have had their turn");

        // Once it is up, nobody waits for anybody.
        world.end("a", End::Error).await;
        let asked = Instant::now();
        app.start_child(world.child("c")).await.unwrap();
        app.restart("b").await.unwrap();
        assert_eq!(asked.elapsed(), Duration::ZERO);
        assert_eq!(lifecycle(&app, "a").await, Lifecycle::Restarting);
        app.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn seed3_38_a_child_that_fails_again_after_a_group_restart_is_retried_again() {
    for strategy in [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne] {
        let world = World::new();
        let app = app().strategy(strategy).child(world.child("a")).child(world.child("b"));
        let app = start(app).await;
        world.next_starts("a", [NextStart::Error, NextStart::Panic]);
        world.end("a", End::Error).await;
        tokio::time::sleep(secs(2 + 4 + 8)).await;
        settle().await;

        let a = app.which_child("a").await.unwrap();
        assert_eq!((a.lifecycle, a.incarnation), (Lifecycle::Active, 4), "{strategy}");
        assert_eq!(lifecycle(&app, "b").await, Lifecycle::Active, "{strategy}");
        app.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn seed4_51_who_subscribes_first_learns_where_every_child_is_and_then_each_change() {
    async fn next(stream: &mut verger::StatusStream) -> String {
        let change = stream.next().await.unwrap();
        let state = change.lifecycle.map_or("gone".to_owned(), |state| state.to_string());
        format!("{}#{} {state}", change.path, change.incarnation)
    }
    let world = World::new();
    let speaking = worker("speaking", async |ctx: Context| -> Exit {
        ctx.set_status("lag 12 ms");
        ctx.cancelled().await;
        Ok(())
    });
    let job = world.child("job").restart(RestartType::Temporary);
    let mid = Supervisor::builder("mid").child(speaking);
    let app = start(app().child(world.child("a")).child(job).child(mid)).await;
    world.end("a", End::Error).await;
    world.end("job", End::Normal).await;

    let expected = ["app/a#1 restarting", "app/mid#1 active", "app/mid/speaking#1 active"];
    let mut first = app.subscribe_status().await.unwrap();
    for expected in expected {
        assert_eq!(next(&mut first).await, expected, "and nothing of the job, which is forgotten");
    }
    // The wait passes while nobody has anything else to do.
    for expected in ["app/a#1 resolved", "app/a#2 activating", "app/a#2 active"] {
        assert_eq!(next(&mut first).await, expected);
    }
    let mut second = app.subscribe_status().await.unwrap();
    assert_eq!(next(&mut second).await, "app/a#2 active", "its own replay, as of now");
    assert_eq!(next(&mut second).await, "app/mid#1 active");
    assert_eq!(app.which_child("mid/speaking").await.unwrap().status.unwrap(), "lag 12 ms");

    app.terminate_child("a").await.unwrap();
    app.delete_child("a").await.unwrap();
    for expected in ["app/a#2 deactivating", "app/a#2 stopped"] {
        assert_eq!(next(&mut first).await, expected);
    }
    let gone = first.next().await.unwrap();
    assert_eq!((gone.path.as_str(), gone.lifecycle), ("app/a", None));
    app.stop("done").await.unwrap();
}
