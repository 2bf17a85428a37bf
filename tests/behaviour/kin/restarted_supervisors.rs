//! Rules 99 to 112: supervisors that restart with their children, or give up.

use super::{eager, lifecycle, limited, runs, secs, start};
use crate::common::{End, FakeChildren, NextStart, settle};
use tokio::time::sleep;
use verger::policy::{FirstStart, OnExit};
use verger::{
    Backoff, Child, Context, ControlError, Exit, ExitKind, ExitReason, Lifecycle, RunError,
    Shutdown, Supervisor, async_trait, child, worker_with,
};

#[tokio::test(start_paused = true)]
async fn kin_99_the_children_of_a_restarted_supervisor_stop_and_return_by_name() {
    let fakes = FakeChildren::new();
    let mid = eager("mid").child(fakes.child("a")).child(fakes.child("b"));
    let app = start(eager("app").child(mid)).await;
    let mid = app.supervisor("mid").await.unwrap();
    mid.start_child(fakes.child("added")).await.unwrap();
    fakes.actions();

    app.restart("mid").await.unwrap();
    assert_eq!(fakes.actions(), ["stop added", "stop b", "stop a", "start a", "start b"]);
    // A child added to the old incarnation isn't declared, so its name is free.
    mid.start_child(fakes.child("added")).await.unwrap();
    assert_eq!(runs(&mid).await, [1, 1, 1]);
    app.stop("done").await.unwrap();
}

/// The first child of `mid` adds a sibling at each start, as an actor does in its `preStart`.
#[tokio::test(start_paused = true)]
async fn kin_99_a_child_added_in_a_start_survives_the_restart_of_its_supervisor() {
    struct Spawns(FakeChildren);

    #[async_trait]
    impl Child for Spawns {
        async fn run(&mut self, ctx: &Context) -> Exit {
            ctx.parent().start_child(self.0.child("added")).await?;
            ctx.cancelled().await;
            Ok(())
        }
    }

    let fakes = FakeChildren::new();
    let made = fakes.clone();
    let spawns = child("spawns", move || Spawns(made.clone()));
    let mid = limited("mid", 0).child(spawns).child(fakes.child("b"));
    let app = start(eager("app").child(mid).child(fakes.child("other"))).await;
    settle().await;
    fakes.actions();

    // By a failure that `mid` escalates, and by a call.
    for incarnation in [2, 3] {
        match incarnation {
            2 => fakes.end("b", End::Error).await,
            _ => drop(app.restart("mid").await.unwrap()),
        }
        settle().await;
        let ended = if incarnation == 2 {
            ["end b", "stop added", "start b", "start added"].map(str::to_owned).to_vec()
        } else {
            ["stop added", "stop b", "start b", "start added"].map(str::to_owned).to_vec()
        };
        assert_eq!(fakes.actions(), ended);
        let mid = app.supervisor("mid").await.unwrap();
        assert_eq!(app.which_child("mid").await.unwrap().incarnation, incarnation);
        let names: Vec<_> = mid.children().await.unwrap();
        let names: Vec<_> = names.iter().map(|child| child.path.name().to_owned()).collect();
        assert_eq!(names, ["spawns", "b", "added"]);
        assert_eq!(runs(&mid).await, [1, 1, 1]);
    }
    // A child that must outlive `mid` is declared beside it.
    assert_eq!(app.which_child("other").await.unwrap().incarnation, 1);
    app.stop("done").await.unwrap();
}

/// A child that takes this long to stop.
fn slow(name: &str, takes: u64) -> verger::ChildSpec {
    let spec = worker_with(name, takes, async |ctx: Context, takes| -> Exit {
        ctx.cancelled().await;
        sleep(secs(takes)).await;
        Ok(())
    });
    spec.shutdown(Shutdown::Infinity)
}

#[tokio::test(start_paused = true)]
async fn kin_106_a_failed_supervisor_restarts_when_all_its_children_have_exited() {
    let fakes = FakeChildren::new();
    let mid = Supervisor::builder("mid").restarts(0, secs(60));
    let mid = mid.child(slow("a", 3)).child(slow("b", 2)).child(fakes.child("c"));
    let app = start(eager("app").child(mid)).await;
    let handle = app.supervisor("mid").await.unwrap();
    fakes.end("c", End::Error).await;

    sleep(secs(4)).await;
    assert_eq!(lifecycle(&app, "mid").await, Lifecycle::Active, "it is still busy with its end");
    assert_eq!(lifecycle(&handle, "b").await, Lifecycle::Stopped, "and answers meanwhile");
    assert_eq!(lifecycle(&handle, "a").await, Lifecycle::Deactivating);
    sleep(secs(1)).await;
    settle().await;
    assert_eq!(runs(&app).await, [2]);
    assert_eq!(runs(&handle).await, [1, 1, 1], "the same handle speaks to the new one");
    app.stop("done").await.unwrap();
}

/// Pekko's variants about messages, watching and children that stay have no counterpart.
#[tokio::test(start_paused = true)]
async fn kin_107_a_supervisor_that_fails_to_start_first_stops_its_started_children() {
    let fakes = FakeChildren::new();
    fakes.next_starts("b", [NextStart::Error, NextStart::Error, NextStart::Ok, NextStart::Error]);
    let mid = limited("mid", 0).first_start(FirstStart::Fail);
    let mid = mid.child(fakes.child("a")).child(fakes.child("b"));
    let app = start(eager("app").child(mid)).await;
    let attempt = ["start a", "try b", "stop a"];
    assert_eq!(fakes.actions(), [&attempt[..], &attempt, &["start a", "start b"]].concat());

    // Later starts behave the same.
    fakes.end("b", End::Error).await;
    let again = ["end b", "stop a", "start a", "try b", "stop a", "start a", "start b"];
    assert_eq!(fakes.actions(), again);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_110_a_supervisor_that_gives_up_names_the_child() {
    let fakes = FakeChildren::new();
    let mid = limited("mid", 2).child(fakes.child("leaf"));
    let app = start(Supervisor::builder("app").child(mid)).await;
    let mut letters = app.dead_letters();
    for _ in 0..3 {
        fakes.end("leaf", End::Error).await;
    }
    let mid = app.which_child("mid").await.unwrap();
    assert_eq!((mid.lifecycle, mid.incarnation), (Lifecycle::Restarting, 1));
    let text = "escalated: child app/mid/leaf: failed: leaf failed";
    assert_eq!(mid.last_exit.unwrap().to_string(), text);
    let letter = letters.try_next().unwrap();
    assert_eq!((letter.target.as_str(), letter.incarnation), ("app/mid/leaf", 3));
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_112_supervision_ends_with_the_third_failure_and_with_the_supervisor() {
    let fakes = FakeChildren::new();
    let app = start(limited("app", 2).child(fakes.child("a"))).await;
    let waiting = app.clone();
    let end = tokio::spawn(async move { waiting.wait().await });
    for _ in 0..3 {
        assert!(!end.is_finished());
        fakes.end("a", End::Error).await;
    }
    let error = end.await.unwrap().unwrap_err();
    let RunError::GaveUp { reason: ExitReason::Failed(_), child, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(child.as_str(), "app/a");

    // The supervisor is stopped while its child waits for a restart.
    let fakes = FakeChildren::new();
    let mid = eager("mid").child(fakes.child("a").backoff(Backoff::constant(secs(9))));
    let app = start(eager("app").child(mid)).await;
    fakes.end("a", End::Error).await;
    assert_eq!(lifecycle(&app, "mid/a").await, Lifecycle::Restarting);
    app.stop_child("mid").await.unwrap();
    fakes.actions();
    sleep(secs(1000)).await;
    settle().await;
    assert_eq!(fakes.actions(), [""; 0]);
    let error = app.which_child("mid/a").await.unwrap_err();
    assert!(matches!(error, ControlError::NotRunning { .. }), "{error}");
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_112_a_child_whose_failures_are_not_supervised_stays_failed() {
    let fakes = FakeChildren::new();
    let alone = fakes.child("a").on_exit(ExitKind::Failed, OnExit::Leave);
    let app = start(limited("app", 0).child(alone).child(fakes.child("b"))).await;
    fakes.end("a", End::Error).await;
    sleep(secs(1000)).await;
    settle().await;
    assert_eq!(fakes.actions(), ["start a", "start b", "end a"]);
    let a = app.which_child("a").await.unwrap();
    assert_eq!((a.lifecycle, a.incarnation, a.why), (Lifecycle::Errored, 1, Some("not restarted")));
    assert_eq!(a.last_exit.unwrap().to_string(), "failed: a failed");
    assert_eq!(lifecycle(&app, "b").await, Lifecycle::Active);
    app.stop("done").await.unwrap();
}
