//! Rules 116 to 125, and 128: services that are added, removed, hung or finished.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use super::{at_once, eager, endings, lifecycle, runs, secs, start};
use crate::common::{End, FakeChildren, killed, settle};
use tokio::time::{Instant, sleep};
use verger::policy::{AutoShutdown, Intensity, OnExhausted};
use verger::status::EventKind;
use verger::{
    Backoff, Context, ControlError, Exit, Lifecycle, Readiness, RestartType, RunError, Shutdown,
    Strategy, Supervisor, SupervisorBuilder, worker, worker_with,
};

#[tokio::test(start_paused = true)]
async fn kin_116_a_transient_child_that_has_finished_can_be_deleted_from_its_group() {
    let fakes = FakeChildren::new();
    let job = fakes.child("job").restart(RestartType::Transient);
    let tree = eager("app").strategy(Strategy::OneForAll);
    let app = start(tree.child(fakes.child("a")).child(job)).await;
    fakes.end("job", End::Normal).await;
    app.otp().delete_child("job").await.unwrap();
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
    app.stop("done").await.or_else(killed).unwrap();
    // A value that ignores its cancellation has three quarters of its grace.
    assert_eq!(called.elapsed(), secs(3) / 4 * 3);
    assert_eq!(endings(&mut events), ["app/hung#1 killed"]);
}

/// Uses real time, because only a blocked thread can't be aborted. The leak timeout of 1 ms is the
/// only timer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kin_117_a_child_that_cannot_be_aborted_is_reported_as_leaked_and_the_tree_ends() {
    let (release, blocked) = mpsc::channel::<()>();
    let blocked = Arc::new(Mutex::new(Some(blocked)));
    let hung = worker("hung", move |ctx: Context| {
        let blocked = Arc::clone(&blocked);
        async move {
            ctx.ready();
            let blocked = blocked.lock().unwrap().take().unwrap();
            tokio::task::block_in_place(|| blocked.recv()).unwrap_err();
        }
    });
    let tree = eager("app").leak_timeout(Duration::from_millis(1));
    let hung = hung.readiness(Readiness::Signal).shutdown(Shutdown::BrutalKill);
    let app = start(tree.child(hung)).await;
    let mut events = app.events();
    let error = app.stop("done").await.unwrap_err();
    let RunError::Forced { leaked: children, .. } = &error else { panic!("{error}") };
    let children: Vec<_> = children.iter().map(ToString::to_string).collect();
    assert_eq!(children, ["app/hung"]);
    let leaked = std::iter::from_fn(|| events.try_next());
    let leaked = leaked.filter(|event| matches!(event.kind, EventKind::Leaked));
    let leaked: Vec<_> = leaked.map(|event| (event.path.to_string(), event.incarnation)).collect();
    assert_eq!(leaked, [("app/hung".to_owned(), 1)]);
    drop(release);
}

#[tokio::test(start_paused = true)]
async fn kin_118_each_refusal_has_its_own_error() {
    let fakes = FakeChildren::new();
    let app = start(eager("app").child(fakes.child("a"))).await;
    app.stop_child("a").await.unwrap();
    app.stop_child("a").await.unwrap();
    let error = app.stop_child("b").await.unwrap_err();
    assert!(matches!(error, ControlError::NotFound { .. }), "{error}");
    let error = app.start_child(fakes.child("a")).await.unwrap_err();
    assert!(matches!(error, ControlError::NameTaken { running: false, .. }), "{error}");
    app.otp().restart_child("a").await.unwrap();
    let error = app.start_child(fakes.child("a")).await.unwrap_err();
    assert!(matches!(error, ControlError::NameTaken { running: true, .. }), "{error}");
    let error = app.otp().restart_child("a").await.unwrap_err();
    assert!(matches!(error, ControlError::Running { .. }), "{error}");
    let error = app.stop_child("").await.unwrap_err();
    assert!(matches!(error, ControlError::NotAChild { .. }), "{error}");

    app.stop("done").await.unwrap();
    for error in [
        app.stop_child("a").await.unwrap_err(),
        app.start_child(fakes.child("b")).await.unwrap_err(),
        app.children().await.unwrap_err(),
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

#[tokio::test(start_paused = true)]
async fn kin_120_a_service_that_fails_too_often_pauses_while_its_sibling_runs() {
    let fakes = FakeChildren::new();
    // A score that halves every 30 s, and may not exceed 3.5.
    let tree = at_once(Supervisor::builder("app").intensity(Intensity::decaying(3.5, secs(30))));
    let tree = tree.on_exhausted(OnExhausted::Pause(secs(15)));
    let app = start(tree.child(fakes.child("a")).child(fakes.child("b"))).await;
    let mut events = app.events();
    let mut paused = move || -> Vec<_> {
        let received = std::iter::from_fn(|| events.try_next());
        let paused = received.filter_map(|event| match event.kind {
            EventKind::Paused { length, .. } => Some((event.path.to_string(), length)),
            _ => None,
        });
        paused.collect()
    };
    let used = async || app.status().await.unwrap().root.supervisor.unwrap().restarts_in_period;
    for _ in 0..2 {
        for count in 1..=3 {
            assert_eq!(paused(), []);
            fakes.end("a", End::Error).await;
            assert_eq!(lifecycle(&app, "a").await, Lifecycle::Active);
            assert_eq!(used().await, count);
        }
        fakes.end("a", End::Error).await;
        assert_eq!(paused(), [("app/a".to_owned(), secs(15))]);
        fakes.actions();
        sleep(secs(15) - Duration::from_millis(1)).await;
        settle().await;
        assert_eq!(lifecycle(&app, "a").await, Lifecycle::Restarting);
        assert_eq!((lifecycle(&app, "b").await, fakes.actions()), (Lifecycle::Active, vec![]));

        sleep(Duration::from_millis(1)).await;
        settle().await;
        assert_eq!(fakes.actions(), ["start a"]);
        assert_eq!(used().await, 0, "the next failures are counted from zero");
    }
    assert_eq!(runs(&app).await, [9, 1]);
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
    stop.await.unwrap().or_else(killed).unwrap();
    let error = app.start_child(fakes.child("later")).await.unwrap_err();
    assert_eq!(error.to_string(), "`app` has ended");
}

#[tokio::test(start_paused = true)]
async fn kin_122_a_removal_returns_when_the_service_is_gone_however_it_ended() {
    let fakes = FakeChildren::new();
    for deaf in ["hung", "other"] {
        fakes.ignore_cancellation(deaf);
    }
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
    let mut events = app.events();
    for (name, takes, ended) in [
        ("good", 0, &["app/good#1 shutdown"][..]),
        ("good", 0, &[]),
        ("hung", 6, &["app/hung#1 killed"]),
        ("late", 1000, &["app/late#1 shutdown"]),
        ("late", 0, &[]),
    ] {
        let called = Instant::now();
        app.stop_child(name).await.unwrap();
        assert_eq!(called.elapsed(), secs(takes), "{name}");
        assert_eq!(endings(&mut events), ended, "{name}");
        assert_eq!(lifecycle(&app, name).await, Lifecycle::Stopped);
    }
    app.otp().delete_child("good").await.unwrap();
    for error in [app.stop_child("good").await, app.otp().delete_child("good").await] {
        assert_eq!(error.unwrap_err().to_string(), "there is no `app/good`");
    }

    // The supervisor is stopped while a caller waits for a child; then the child is gone, too.
    let called = Instant::now();
    let (removed, stopped) = tokio::join!(app.stop_child("other"), async {
        sleep(secs(1)).await;
        app.stop("done").await
    });
    assert_eq!(called.elapsed(), secs(6));
    stopped.or_else(killed).unwrap();
    removed.unwrap();
    assert_eq!(endings(&mut events), ["app/other#1 killed"]);
    let error = app.stop_child("other").await.unwrap_err();
    assert_eq!(error.to_string(), "`app` has ended");
}

#[tokio::test(start_paused = true)]
async fn kin_123_only_its_own_supervisor_removes_a_service_and_a_hung_service_blocks_no_sibling() {
    let fakes = FakeChildren::new();
    fakes.ignore_cancellation("hung");
    let mid = eager("mid").child(fakes.child("hung").shutdown(secs(4)));
    let app = start(eager("app").child(mid).child(fakes.child("b"))).await;
    let mid = app.supervisor("mid").await.unwrap();
    let mut events = app.events();
    let error = mid.stop_child("b").await.unwrap_err();
    assert_eq!(error.to_string(), "there is no `app/mid/b`; did you mean `app/b`?");
    let error = app.stop_child("hung").await.unwrap_err();
    assert_eq!(error.to_string(), "there is no `app/hung`; did you mean `app/mid/hung`?");

    mid.stop_child("hung").await.unwrap();
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
    app.stop("done").await.or_else(killed).unwrap();
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
    assert_eq!(app.otp().count_children().await.unwrap().active, 2);
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
