//! Rules 116 to 128: services that are added, removed, hung or finished.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::time::{Instant, sleep};
use verger::policy::{AutoShutdown, OnExhausted};
use verger::status::EventKind;
use verger::{
    Backoff, Context, ControlError, Exit, Lifecycle, RestartType, Shutdown, Strategy, Supervisor,
    SupervisorBuilder, worker, worker_with,
};

use super::{eager, endings, lifecycle, limited, runs, secs, start};
use crate::common::{End, FakeChildren, settle};

#[tokio::test(start_paused = true)]
async fn kin_116_a_transient_child_that_has_finished_can_be_deleted_from_its_group() {
    let fakes = FakeChildren::new();
    let job = fakes.child("job").restart(RestartType::Transient);
    let tree = eager("app").strategy(Strategy::OneForAll);
    let app = start(tree.child(fakes.child("a")).child(job)).await;
    fakes.end("job", End::Normal).await;
    app.delete_child("job").await.unwrap();
    fakes.actions();

    fakes.end("a", End::Error).await;
    assert_eq!(fakes.actions(), ["end a", "start a"], "the group goes on without it");
    assert_eq!(runs(&app).await, [2]);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_117_a_child_that_ignores_its_cancellation_is_aborted_and_reported() {
    let fakes = FakeChildren::new();
    fakes.ignore_cancellation("hung");
    let app = start(eager("app").child(fakes.child("hung").shutdown(secs(3)))).await;
    let mut events = app.events();
    let called = Instant::now();
    app.stop("done").await.unwrap();
    // A value that ignores its cancellation has three quarters of its grace.
    assert_eq!(called.elapsed(), secs(3) / 4 * 3);
    assert_eq!(endings(&mut events), ["app/hung#1 killed"]);
}

#[tokio::test(start_paused = true)]
async fn kin_118_each_refusal_has_its_own_error() {
    let fakes = FakeChildren::new();
    let app = start(eager("app").child(fakes.child("a"))).await;
    app.terminate_child("a").await.unwrap();
    app.terminate_child("a").await.unwrap();
    let error = app.terminate_child("b").await.unwrap_err();
    assert!(matches!(error, ControlError::NotFound { .. }), "{error}");
    let error = app.start_child(fakes.child("a")).await.unwrap_err();
    assert!(matches!(error, ControlError::AlreadyPresent { .. }), "{error}");
    app.restart_child("a").await.unwrap();
    let error = app.start_child(fakes.child("a")).await.unwrap_err();
    assert!(matches!(error, ControlError::AlreadyStarted { .. }), "{error}");
    let error = app.restart_child("a").await.unwrap_err();
    assert!(matches!(error, ControlError::Running { .. }), "{error}");
    let error = app.terminate_child("").await.unwrap_err();
    assert!(matches!(error, ControlError::NotAChild { .. }), "{error}");

    app.stop("done").await.unwrap();
    for error in [
        app.terminate_child("a").await.unwrap_err(),
        app.start_child(fakes.child("b")).await.unwrap_err(),
        app.which_children().await.unwrap_err(),
        app.supervisor("a").await.unwrap_err(),
    ] {
        assert!(matches!(error, ControlError::Ended { .. }), "{error}");
    }
    assert!(app.stop("again").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn kin_119_an_unlimited_supervisor_never_gives_up_and_a_tree_ends_with_its_last_child() {
    let fakes = FakeChildren::new();
    let app = start(eager("app").child(fakes.child("a"))).await;
    for _ in 0..10 {
        fakes.end("a", End::Error).await;
    }
    assert_eq!(runs(&app).await, [11]);
    app.stop("done").await.unwrap();

    let job = |name, takes| {
        let spec = worker_with(name, takes, async |_ctx, takes| -> Exit {
            sleep(secs(takes)).await;
            Ok(())
        });
        spec.restart(RestartType::Transient).significant()
    };
    let tree = Supervisor::builder("app").auto_shutdown(AutoShutdown::AllSignificant);
    let began = Instant::now();
    tree.child(job("a", 3)).child(job("b", 7)).child(job("c", 5)).build().unwrap().await.unwrap();
    assert_eq!(began.elapsed(), secs(7));
}

/// Suture pauses for a time; verger parks until a manual retry.
#[tokio::test(start_paused = true)]
async fn kin_120_a_service_that_fails_too_often_is_parked_while_its_sibling_runs() {
    let fakes = FakeChildren::new();
    let tree = limited("app", 3).on_exhausted(OnExhausted::Park);
    let app = start(tree.child(fakes.child("a")).child(fakes.child("b"))).await;
    let mut events = app.events();
    for _ in 0..4 {
        fakes.end("a", End::Error).await;
    }
    let received = std::iter::from_fn(|| events.try_next());
    let given_up = received.filter(|event| matches!(event.kind, EventKind::GaveUp { .. })).count();
    assert_eq!(given_up, 1);
    sleep(secs(1000)).await;
    assert_eq!(lifecycle(&app, "a").await, Lifecycle::Errored);
    assert_eq!(lifecycle(&app, "b").await, Lifecycle::Active);
    assert_eq!(runs(&app).await, [4, 1]);

    app.retry("a").await.unwrap();
    for _ in 0..3 {
        fakes.end("a", End::Error).await;
    }
    assert_eq!(lifecycle(&app, "a").await, Lifecycle::Active, "the count began anew");
    assert_eq!(runs(&app).await, [8, 1]);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_121_a_service_can_be_added_while_the_supervisor_runs_and_not_afterwards() {
    let fakes = FakeChildren::new();
    fakes.ignore_cancellation("slow");
    let app = start(eager("app").child(fakes.child("slow"))).await;
    app.start_child(fakes.child("added")).await.unwrap();
    assert_eq!(fakes.actions(), ["start slow", "start added"]);

    let stopping = app.clone();
    let stop = tokio::spawn(async move { stopping.stop("done").await });
    settle().await;
    let error = app.start_child(fakes.child("late")).await.unwrap_err();
    assert_eq!(error.to_string(), "`app` is shutting down");
    stop.await.unwrap().unwrap();
    let error = app.start_child(fakes.child("later")).await.unwrap_err();
    assert_eq!(error.to_string(), "`app` has ended");
}

#[tokio::test(start_paused = true)]
async fn kin_122_a_removal_returns_when_the_service_is_gone_however_it_ended() {
    let fakes = FakeChildren::new();
    fakes.ignore_cancellation("hung");
    let late = worker("late", async |ctx: Context| {
        ctx.cancelled().await;
        sleep(secs(1000)).await;
    });
    let app = start(
        eager("app")
            .child(fakes.child("good"))
            .child(fakes.child("hung").shutdown(secs(8)))
            .child(late.shutdown(Shutdown::Infinity))
            .child(fakes.child("other").shutdown(secs(8))),
    );
    let app = app.await;
    settle().await;
    for (name, takes) in [("good", 0), ("good", 0), ("hung", 6), ("late", 1000)] {
        let called = Instant::now();
        app.terminate_child(name).await.unwrap();
        assert_eq!(called.elapsed(), secs(takes), "{name}");
    }
    // The supervisor is stopped while a caller waits for a child; then the child is gone, too.
    fakes.ignore_cancellation("other");
    app.restart("other").await.unwrap();
    let called = Instant::now();
    let (removed, stopped) = tokio::join!(app.terminate_child("other"), async {
        sleep(secs(1)).await;
        app.stop("done").await
    });
    assert_eq!(called.elapsed(), secs(6));
    stopped.unwrap();
    removed.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_123_only_its_own_supervisor_removes_a_service_and_a_hung_service_blocks_no_sibling() {
    let fakes = FakeChildren::new();
    fakes.ignore_cancellation("hung");
    let mid = eager("mid").child(fakes.child("hung").shutdown(secs(4)));
    let app = start(eager("app").child(mid).child(fakes.child("b"))).await;
    let mid = app.supervisor("mid").await.unwrap();
    let mut events = app.events();
    let error = mid.terminate_child("b").await.unwrap_err();
    assert_eq!(error.to_string(), "there is no `app/mid/b`");
    let error = app.terminate_child("hung").await.unwrap_err();
    assert_eq!(error.to_string(), "there is no `app/hung`");

    mid.terminate_child("hung").await.unwrap();
    assert_eq!(endings(&mut events), ["app/mid/hung#1 killed"]);
    mid.start_child(fakes.child("next")).await.unwrap();
    assert_eq!(lifecycle(&mid, "next").await, Lifecycle::Active);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_124_a_stop_names_exactly_the_aborted_children() {
    let fakes = FakeChildren::new();
    fakes.ignore_cancellation("hung1");
    fakes.ignore_cancellation("hung2");
    let mid = eager("mid").child(fakes.child("hung2")).child(fakes.child("b"));
    let app = start(eager("app").child(fakes.child("hung1")).child(fakes.child("a")).child(mid));
    let app = app.await;
    let mut events = app.events();
    app.stop("done").await.unwrap();
    let mut killed = endings(&mut events);
    killed.retain(|ending| ending.ends_with("killed"));
    assert_eq!(killed, ["app/mid/hung2#1 killed", "app/hung1#1 killed"]);
}

#[tokio::test(start_paused = true)]
async fn kin_125_a_service_can_end_itself_or_its_tree_up_to_a_boundary() {
    let tree = |fakes: &FakeChildren, name: &str| -> SupervisorBuilder {
        let job = |name| fakes.child(name).restart(RestartType::Transient);
        eager(name)
            .auto_shutdown(AutoShutdown::AnySignificant)
            .child(fakes.child("a"))
            .child(job("only"))
            .child(job("all").significant())
    };
    let fakes = FakeChildren::new();
    let app = start(tree(&fakes, "app")).await;
    fakes.end("only", End::Normal).await;
    assert_eq!(app.count_children().await.unwrap().active, 2);
    fakes.actions();
    fakes.end("all", End::Normal).await;
    app.wait().await.unwrap();
    assert_eq!(fakes.actions(), ["end all", "stop a"]);

    let fakes = FakeChildren::new();
    let mid = tree(&fakes, "mid").into_child().restart(RestartType::Transient);
    let app = start(eager("app").child(fakes.child("top")).child(mid)).await;
    fakes.end("all", End::Normal).await;
    assert_eq!(lifecycle(&app, "top").await, Lifecycle::Active);
    let mid = app.which_child("mid").await.unwrap();
    assert_eq!((mid.lifecycle, mid.why), (Lifecycle::Stopped, Some("finished")));
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_126_an_error_that_looks_like_a_cancellation_is_an_error() {
    let spec = worker("a", async |_ctx: Context| -> Exit {
        sleep(secs(1)).await;
        let task = tokio::spawn(std::future::pending::<()>());
        task.abort();
        let error = task.await.unwrap_err();
        assert!(error.is_cancelled());
        Err(error.into())
    });
    let app = start(eager("app").child(spec)).await;
    let mut events = app.events();
    sleep(secs(3) + secs(1) / 2).await;
    let failed = ["app/a#1 failed", "app/a#2 failed", "app/a#3 failed"];
    assert_eq!(endings(&mut events), failed);
    app.stop("done").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kin_126_supervisors_can_be_added_to_a_running_tree_and_children_to_them() {
    let app = start(eager("app")).await;
    let added = (0..200).map(|n| {
        let app = app.clone();
        tokio::spawn(async move {
            let name = format!("sub{n}");
            app.start_child(eager(&name)).await.unwrap();
            let sub = app.supervisor(&name).await.unwrap();
            let idle = worker("idle", async |ctx: Context| ctx.cancelled().await);
            sub.start_child(idle).await.unwrap();
            sub.count_children().await.unwrap().active
        })
    });
    let added: Vec<_> = added.collect();
    for sub in added {
        assert_eq!(sub.await.unwrap(), 1);
    }
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_126_a_hundred_nested_supervisors_can_be_cancelled_at_once() {
    let tree = (0..100).fold(eager("s"), |below, _| eager("s").child(below)).build().unwrap();
    tree.clone().with_graceful_shutdown(async {}).await.unwrap();
    tokio::spawn(tree.start()).abort();
    settle().await;
}

#[tokio::test(start_paused = true)]
async fn kin_126_a_removed_child_does_not_appear_again_when_the_tree_stops() {
    let fakes = FakeChildren::new();
    fakes.ignore_cancellation("hung");
    let app = start(eager("app").child(fakes.child("hung")).child(fakes.child("a"))).await;
    app.terminate_child("hung").await.unwrap();
    app.delete_child("hung").await.unwrap();
    let mut events = app.events();
    let called = Instant::now();
    app.stop("done").await.unwrap();
    assert_eq!(called.elapsed(), secs(0));
    assert_eq!(endings(&mut events), ["app/a#1 shutdown"]);
}

/// Running a tree consumes it, so it can't run twice. A clone of it is a separate tree.
#[tokio::test(start_paused = true)]
async fn kin_127_a_subscriber_receives_the_events_of_all_descendants() {
    let fakes = FakeChildren::new();
    let mid = eager("mid").child(eager("low").child(fakes.child("leaf")));
    let tree = eager("app").child(mid).build().unwrap();
    let app = tree.clone().start().await.unwrap();
    let (mut above, mut below) = (app.events(), app.supervisor("mid").await.unwrap().events());
    fakes.end("leaf", End::Error).await;
    assert_eq!(endings(&mut above), ["app/mid/low/leaf#1 failed"]);
    assert_eq!(endings(&mut below), ["app/mid/low/leaf#1 failed"]);

    let other = tree.start().await.unwrap();
    app.stop("done").await.unwrap();
    assert_eq!(lifecycle(&other, "mid/low/leaf").await, Lifecycle::Active);
    other.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_128_a_finished_job_ends_once() {
    let steps = Arc::new(AtomicU32::new(0));
    let job = worker_with("job", Arc::clone(&steps), async |_ctx, steps| -> Exit {
        // The child fails at every step but the last.
        match steps.fetch_add(1, Ordering::Relaxed) {
            9 => Ok(()),
            step => Err(format!("step {step}").into()),
        }
    });
    let job = job.restart(RestartType::Transient).backoff(Backoff::constant(secs(1)));
    let app = start(eager("app").child(job)).await;
    sleep(secs(1000)).await;
    assert_eq!(steps.load(Ordering::Relaxed), 10);
    let job = app.which_child("job").await.unwrap();
    assert_eq!(
        (job.lifecycle, job.incarnation, job.why),
        (Lifecycle::Stopped, 10, Some("finished"))
    );
    app.stop("done").await.unwrap();
}
