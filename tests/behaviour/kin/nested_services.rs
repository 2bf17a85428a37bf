//! Rules 126 and 127: services in nested supervisors, and errors that look like cancellations.

use std::time::Duration;

use super::{eager, endings, lifecycle, limited, secs, start};
use crate::common::{End, FakeChildren, settle};
use tokio::time::{Instant, sleep};
use verger::{Context, Exit, Lifecycle, Supervisor, SupervisorBuilder, worker};

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
            sub.otp().count_children().await.unwrap().active
        })
    });
    let added: Vec<_> = added.collect();
    for sub in added {
        assert_eq!(sub.await.unwrap(), 1);
    }
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_126_a_hundred_nested_supervisors_start_and_stop_in_order() {
    let (fakes, tree) = nested();
    let app = start(tree).await;
    let mut events = app.events();
    assert_eq!(fakes.log(), ["start leaf"]);
    // In full, because the child has the name of the root.
    let path = vec!["s"; 100].join("/");
    let lowest = app.supervisor(&path).await.unwrap();
    assert_eq!(lowest.path().as_str(), path);
    assert_eq!(lowest.which_child("leaf").await.unwrap().lifecycle, Lifecycle::Active);

    app.stop("done").await.unwrap();
    assert_eq!(fakes.log(), ["stop leaf", "dead leaf"]);
    // The innermost is the first to be down; the root has no state of its own.
    let mut ended = vec![format!("{}/leaf#1 shutdown", lowest.path())];
    ended.extend((2..=100).rev().map(|depth| format!("{}#1 shutdown", vec!["s"; depth].join("/"))));
    assert_eq!(endings(&mut events), ended);
}

#[tokio::test(start_paused = true)]
async fn kin_126_a_hundred_nested_supervisors_can_be_cancelled_at_once() {
    let (fakes, tree) = nested();
    let run = tree.build().unwrap().with_graceful_shutdown(async {});
    run.await.unwrap();
    settle().await;
    let log = fakes.log();
    assert!(log.is_empty() || log == ["start leaf", "stop leaf", "dead leaf"], "{log:?}");

    // A start that is dropped, after any number of polls, leaves no child.
    for polls in [0, 1, 2, 10, 50, 100, 150, 200, 1000] {
        let (fakes, tree) = nested();
        let starting = tokio::spawn(tree.build().unwrap().start());
        for _ in 0..polls {
            tokio::task::yield_now().await;
        }
        starting.abort();
        if let Ok(app) = starting.await {
            app.unwrap().stop("done").await.unwrap();
        }
        settle().await;
        let mut log = fakes.log();
        log.retain(|entry| entry != "stop leaf");
        assert!(log.is_empty() || log == ["start leaf", "dead leaf"], "{polls}: {log:?}");
    }
}

/// A leaf below a hundred supervisors, each of which gives up at the first failure.
fn nested() -> (FakeChildren, SupervisorBuilder) {
    let fakes = FakeChildren::new();
    let lowest = limited("s", 0).child(fakes.child("leaf"));
    (fakes, (1..100).fold(lowest, |below, _| limited("s", 0).child(below)))
}

#[tokio::test(start_paused = true)]
async fn kin_126_a_removed_child_does_not_appear_again_when_the_tree_stops() {
    let fakes = FakeChildren::new();
    fakes.ignore_cancellation("hung");
    let app = start(eager("app").child(fakes.child("hung")).child(fakes.child("a"))).await;
    app.stop_child("hung").await.unwrap();
    app.otp().delete_child("hung").await.unwrap();
    let mut events = app.events();
    let called = Instant::now();
    app.stop("done").await.unwrap();
    assert_eq!(called.elapsed(), secs(0));
    assert_eq!(endings(&mut events), ["app/a#1 shutdown"]);
}

#[tokio::test(start_paused = true)]
async fn kin_127_a_subscriber_receives_the_events_of_all_descendants() {
    let fakes = FakeChildren::new();
    let mid = eager("mid").child(eager("low").child(fakes.child("leaf")));
    let app = start(eager("app").child(mid)).await;
    let (mut above, mut below) = (app.events(), app.supervisor("mid").await.unwrap().events());
    fakes.end("leaf", End::Error).await;
    assert_eq!(endings(&mut above), ["app/mid/low/leaf#1 failed"]);
    assert_eq!(endings(&mut below), ["app/mid/low/leaf#1 failed"]);

    app.stop("done").await.unwrap();
    let ended = ["app/mid/low/leaf#2 shutdown", "app/mid/low#1 shutdown", "app/mid#1 shutdown"];
    assert_eq!(endings(&mut above), ended);
    assert_eq!(endings(&mut below), ended[..2], "the end of `mid` is an event of `app`");
}

/// Running a tree consumes it, so it can't run twice. A clone of it is a separate tree.
#[tokio::test(start_paused = true)]
async fn kin_127_a_clone_of_a_tree_is_a_tree_of_its_own() {
    let idle = worker("idle", async |ctx: Context| ctx.cancelled().await);
    let tree = eager("app").child(eager("mid").child(idle)).build().unwrap();
    let app = tree.clone().start().await.unwrap();
    let other = tree.start().await.unwrap();
    let mut events = other.events();
    app.stop("done").await.unwrap();
    sleep(secs(1000)).await;
    assert_eq!(endings(&mut events), [""; 0]);
    assert_eq!(lifecycle(&other, "mid/idle").await, Lifecycle::Active);
    other.stop("done").await.unwrap();
    assert_eq!(endings(&mut events), ["app/mid/idle#1 shutdown", "app/mid#1 shutdown"]);
}

/// A child can't exist without a spec. A mistake in a spec is an error with its path, at any depth.
#[tokio::test(start_paused = true)]
async fn kin_127_a_mistake_in_a_nested_supervisor_is_an_error_with_its_path() {
    let fakes = FakeChildren::new();
    let twice = eager("low").child(fakes.child("a")).child(fakes.child("a"));
    let unnamed = eager("low").child(fakes.child(""));
    let slash = eager("low").child(fakes.child("a/b"));
    let period = Supervisor::builder("low").restarts(3, Duration::ZERO);
    for (low, text) in [
        (twice, "`app/mid/low` has two children named `a`; "),
        (unnamed, "`app/mid/low` has a child with a bad name: the name \"\" is empty; "),
        (slash, "`app/mid/low` has a child with a bad name: the name \"a/b\" "),
        (period, "`app/mid/low` "),
    ] {
        let error = eager("app").child(eager("mid").child(low)).build().unwrap_err();
        assert!(error.to_string().starts_with(text), "{error}");
    }
    assert_eq!(fakes.log(), [""; 0], "nothing was started");
}
