//! Rules of actor-ts's backoff supervisor.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tokio::time::Instant;
use tracing::level_filters::LevelFilter;
use verger::status::EventKind;
use verger::{Backoff, Context, ControlError, Exit, Lifecycle, Readiness, Supervisor, worker};

use super::{MINUTE, app, edges, lifecycle, secs, start};
use crate::common::{End, FakeChildren, settle};
use crate::log::Log;

#[tokio::test(start_paused = true)]
async fn seed0_05_an_external_abort_is_handled_like_a_failure() {
    for (how, kind) in [(0, "failed"), (1, "panicked"), (2, "aborted")] {
        let fakes = FakeChildren::new();
        let app = start(app().child(fakes.child("a"))).await;
        let mut events = app.events();
        match how {
            0 => fakes.end("a", End::Error).await,
            1 => fakes.end("a", End::Panic).await,
            _ => drop(app.kill("a").await.unwrap()),
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

/// Uses real time, because only a blocked thread exits late. The supervisor's leak timeout of 1 ms
/// is the only timer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seed0_12_a_late_exit_of_an_older_incarnation_changes_nothing() {
    let (release, blocked) = mpsc::channel::<()>();
    let blocked = Arc::new(Mutex::new(Some(blocked)));
    let blocking = worker("a", move |ctx: Context| {
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
    let app = app.child(blocking.readiness(Readiness::Signal).backoff(Backoff::none()));
    let app = start(app).await;
    let mut events = app.events();

    app.kill("a").await.unwrap();
    let mut kinds = Vec::new();
    while !matches!(kinds.last(), Some(EventKind::Moved { to: Lifecycle::Active, .. })) {
        kinds.push(events.next().await.unwrap().kind);
    }
    assert!(kinds.iter().any(|kind| matches!(kind, EventKind::Leaked)), "{kinds:?}");
    drop(release);
    let late = events.next().await.unwrap();
    assert!(matches!(late.kind, EventKind::LeakEnded), "{late:?}");
    assert_eq!(late.incarnation, 1);

    let now = app.which_child("a").await.unwrap();
    assert_eq!((now.lifecycle, now.incarnation), (Lifecycle::Active, 2));
    assert_eq!(
        now.last_exit.unwrap().reason.kind(),
        "aborted",
        "the panic was not taken for its end"
    );
    app.stop("done").await.unwrap();
    let rest = edges(&mut events);
    assert_eq!(
        rest,
        ["app/a#2 active → deactivating", "app/a#2 deactivating → stopped (shutdown)"]
    );
}

/// The timer of the backoff can't fire once the child runs. Each call that would start the child is
/// refused instead of being logged, or answers with the child that runs.
#[tokio::test(start_paused = true)]
async fn seed0_13_a_backoff_cut_short_starts_no_second_incarnation() {
    let log = Log::at(LevelFilter::WARN);
    let fakes = FakeChildren::new();
    let app = start(app().child(fakes.child("a"))).await;
    fakes.end("a", End::Error).await;
    assert_eq!(log.lines().len(), 1, "the failure");

    tokio::time::sleep(secs(1)).await;
    app.resume("a").await.unwrap();
    settle().await;
    assert_eq!(fakes.log(), ["start a", "end a", "dead a", "start a"]);
    for _ in 0..2 {
        assert_eq!(app.resume("a").await.unwrap().incarnation(), Some(2), "it keeps running");
        let restarted = app.otp().restart_child("a").await.unwrap_err();
        assert!(matches!(restarted, ControlError::Running { .. }), "{restarted}");
        let started = app.start_child(fakes.child("a")).await.unwrap_err();
        assert!(matches!(started, ControlError::NameTaken { running: true, .. }), "{started}");
        // The backoff would have ended by now.
        tokio::time::sleep(MINUTE).await;
        settle().await;
    }

    assert_eq!((fakes.log(), log.lines()), (vec![], vec![]));
    let alive = app.which_child("a").await.unwrap();
    assert_eq!((alive.lifecycle, alive.incarnation), (Lifecycle::Active, 2));
    assert_eq!(app.otp().count_children().await.unwrap().active, 1);
    app.stop("done").await.unwrap();
    assert_eq!(fakes.log(), ["stop a", "dead a"]);
}

#[tokio::test(start_paused = true)]
async fn seed0_14_stopping_the_supervisor_cancels_the_pending_restart() {
    let made = Arc::new(AtomicU32::new(0));
    let makes = Arc::clone(&made);
    // The factory is called for each incarnation, and the child fails at once.
    let child = worker("a", move |_ctx: Context| {
        makes.fetch_add(1, Ordering::Relaxed);
        async { Exit::Err("no".into()) }
    });
    let app = start(app().child(child)).await;
    tokio::time::sleep(secs(3)).await;
    settle().await;
    assert_eq!(lifecycle(&app, "a").await, Lifecycle::Restarting);
    assert_eq!(made.load(Ordering::Relaxed), 2);
    let mut events = app.events();

    let called = Instant::now();
    app.stop("done").await.unwrap();
    assert_eq!(called.elapsed(), Duration::ZERO, "there is no child to wait for");
    assert_eq!(edges(&mut events), ["app/a#2 restarting → stopped"]);
    tokio::time::sleep(MINUTE).await;
    settle().await;
    assert_eq!(made.load(Ordering::Relaxed), 2);
    assert_eq!(edges(&mut events), [""; 0]);
}
