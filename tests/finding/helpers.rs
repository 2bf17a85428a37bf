//! Helper tasks: they end with the incarnation that has spawned them, and fail it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tracing::level_filters::LevelFilter;
use verger::status::{EventKind, Subscription};
use verger::{
    Backoff, Context, Exit, Lifecycle, RestartType, Supervisor, SupervisorHandle, worker,
};

use crate::common::settle;
use crate::log::Log;

/// A value whose drop is counted.
struct Counted(Arc<AtomicU32>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

async fn start(child: verger::ChildSpec) -> SupervisorHandle {
    Supervisor::builder("app").child(child).build().unwrap().start().await.unwrap()
}

/// Returns the reasons of the exits so far.
fn exits(events: &mut Subscription<verger::status::Event>) -> Vec<String> {
    let mut exits = Vec::new();
    while let Some(event) = events.try_next() {
        if let EventKind::Moved { reason: Some(reason), .. } = event.kind {
            exits.push(reason.to_string());
        }
    }
    exits
}

#[tokio::test(start_paused = true)]
async fn a_helper_ends_with_its_incarnation_and_before_the_next_one_starts() {
    let (running, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (alive, seen) = (Arc::clone(&running), Arc::clone(&most));
    let child = worker("a", move |ctx: Context| {
        let (alive, seen) = (Arc::clone(&alive), Arc::clone(&seen));
        async move {
            let now = alive.fetch_add(1, Ordering::SeqCst) + 1;
            seen.fetch_max(now, Ordering::SeqCst);
            let leaving = Leaving(alive);
            ctx.spawn(async move {
                let _leaving = leaving;
                std::future::pending::<()>().await;
            });
            sleep(Duration::from_secs(1)).await;
            Exit::Err("again".into())
        }
    });
    struct Leaving(Arc<AtomicU32>);
    impl Drop for Leaving {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let app = start(child.backoff(Backoff::none())).await;
    sleep(Duration::from_millis(4_500)).await;
    assert_eq!(app.which_child("a").await.unwrap().incarnation, 5);
    assert_eq!((running.load(Ordering::SeqCst), most.load(Ordering::SeqCst)), (1, 1));
    app.stop("enough").await.unwrap();
    assert_eq!(running.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn an_error_or_a_panic_of_a_helper_fails_its_child() {
    let child = worker("a", async |ctx: Context| {
        let number = ctx.incarnation();
        ctx.spawn(async move {
            sleep(Duration::from_secs(1)).await;
            match number {
                1 => Err("the helper's error"),
                2 => panic!("the helper's panic"),
                _ => Ok(()),
            }
        });
        ctx.cancelled().await;
    });
    let app = start(child.backoff(Backoff::constant(Duration::from_secs(1)))).await;
    let mut events = app.events();
    let began = Instant::now();
    sleep(Duration::from_millis(4_500)).await;
    assert_eq!(exits(&mut events), ["failed: the helper's error", "panicked: the helper's panic"]);
    let child = app.which_child("a").await.unwrap();
    assert_eq!((child.incarnation, child.lifecycle), (3, Lifecycle::Active), "it returned `Ok`");
    assert_eq!(began.elapsed(), Duration::from_millis(4_500));
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn detached_errors_are_logged_and_fail_no_child() {
    let log = Log::at(LevelFilter::WARN);
    let child = worker("a", async |ctx: Context| {
        ctx.detached_errors().spawn(async { Err::<(), _>("lost") });
        ctx.detached_errors().spawn(async {
            if true {
                panic!("boom")
            }
        });
        ctx.cancelled().await;
    });
    let app = start(child).await;
    settle().await;
    assert_eq!(app.which_child("a").await.unwrap().incarnation, 1);
    let line = |cause: &str| {
        format!(
            "WARN verger::lifecycle: a helper has failed child=app/a incarnation=1 cause=\"{cause}\""
        )
    };
    let mut lines = log.lines();
    lines.sort();
    assert_eq!(lines, [line("failed: lost"), line("panicked: boom")]);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_failure_after_the_cancellation_is_logged_and_does_not_cut_the_stop_short() {
    let log = Log::at(LevelFilter::WARN);
    let (finished, mut has_finished) = mpsc::unbounded_channel();
    let child = worker("a", move |ctx: Context| {
        let finished = finished.clone();
        async move {
            let helper = ctx.clone();
            ctx.spawn(async move {
                helper.cancelled().await;
                Err::<(), _>("connection lost")
            });
            ctx.cancelled().await;
            sleep(Duration::from_secs(2)).await;
            finished.send(()).unwrap();
        }
    });
    let app = start(child).await;
    let began = Instant::now();
    app.stop("enough").await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(2));
    has_finished.try_recv().unwrap();
    let line = "WARN verger::lifecycle: a helper has failed child=app/a incarnation=1 cause=\"failed: connection lost\"";
    assert_eq!(log.lines(), [line]);
}

#[tokio::test(start_paused = true)]
async fn helpers_of_a_killed_child_are_aborted() {
    let dropped = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&dropped);
    let child = worker("a", move |ctx: Context| {
        let counted = Counted(Arc::clone(&count));
        async move {
            ctx.spawn(async move {
                let _counted = counted;
                std::future::pending::<()>().await;
            });
            ctx.cancelled().await;
        }
    });
    let app = start(child.restart(RestartType::Temporary)).await;
    settle().await;
    app.kill_child("a").await.unwrap();
    settle().await;
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_helper_can_be_awaited_and_aborted() {
    let (report, mut reports) = mpsc::unbounded_channel();
    let child = worker("a", move |ctx: Context| {
        let report = report.clone();
        async move {
            let slow = ctx.spawn(async { sleep(Duration::from_secs(3)).await });
            let began = Instant::now();
            assert!(!slow.is_finished());
            slow.await;
            report.send(began.elapsed()).unwrap();
            let endless = ctx.spawn(std::future::pending::<()>());
            endless.abort();
            endless.await;
            report.send(began.elapsed()).unwrap();
            ctx.cancelled().await;
        }
    });
    let app = start(child).await;
    assert_eq!(reports.recv().await, Some(Duration::from_secs(3)));
    assert_eq!(reports.recv().await, Some(Duration::from_secs(3)));
    assert_eq!(app.which_child("a").await.unwrap().incarnation, 1);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_context_of_an_ended_incarnation_spawns_nothing() {
    let (pass, mut passed) = mpsc::unbounded_channel();
    let child = worker("a", move |ctx: Context| {
        let pass = pass.clone();
        async move { drop(pass.send(ctx)) }
    });
    let app = start(child.restart(RestartType::Temporary)).await;
    let ctx: Context = passed.recv().await.unwrap();
    settle().await;
    let dropped = Arc::new(AtomicU32::new(0));
    let counted = Counted(Arc::clone(&dropped));
    let helper = ctx.spawn(async move {
        let _counted = counted;
        std::future::pending::<()>().await;
    });
    assert!(helper.is_finished());
    helper.await;
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    app.stop("enough").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_helper_that_panics_while_it_is_dropped_fails_no_other_incarnation() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let child = worker("a", async |ctx: Context| {
        ctx.spawn(async {
            let _bomb = Bomb;
            std::future::pending::<()>().await;
        });
        // The helper is polled once.
        tokio::task::yield_now().await;
        Exit::Err("first".into())
    });
    let app = start(child.restart(RestartType::Temporary)).await;
    let mut events = app.events();
    settle().await;
    assert_eq!(exits(&mut events), ["failed: first"]);
    app.stop("enough").await.unwrap();
}
