//! OTP's rules for the start and end of a tree that its own suite doesn't assert.

use std::time::Duration;

use crate::common::{End, FakeChildren, NextStart, killed, settle, start};
use crate::journal::{Journal, seconds, slow};
use tokio::time::{Instant, sleep};
use verger::policy::{AutoShutdown, Preset};
use verger::{
    ControlError, DynamicSupervisor, Lifecycle, RestartType, StartError, Strategy, Supervisor,
    SupervisorBuilder, worker,
};

fn app() -> SupervisorBuilder {
    Supervisor::builder("app")
}

#[tokio::test(start_paused = true)]
async fn otp_117_a_failed_first_start_stops_the_started_children_in_reverse_order() {
    let failures = [
        (NextStart::Error, "activation failed: no start"),
        (NextStart::Panic, "panicked: panic at start"),
    ];
    for (failure, text) in failures {
        let fakes = FakeChildren::new();
        fakes.next_starts("c", [failure]);
        let builder =
            ["a", "b", "c", "d"].iter().fold(app(), |it, name| it.child(fakes.child(name)));

        let failed = builder.preset(Preset::otp()).build().unwrap().start().await.unwrap_err();

        let StartError::ChildFailed { path, reason, .. } = failed else { panic!("{failed:?}") };
        assert_eq!((path.as_str(), &*reason.to_string()), ("app/c", text));
        assert_eq!(fakes.actions(), ["start a", "start b", "try c", "stop b", "stop a"]);
    }
}

/// A cancellation doesn't end a tokio task: a task that ignores it would be aborted here.
#[tokio::test(start_paused = true)]
async fn otp_118_a_listening_child_is_cancelled_even_with_a_grace_of_zero() {
    let listens = || {
        let function = worker("function", async |ctx| {
            ctx.cancelled().await;
        });
        [FakeChildren::new().child("first"), function, FakeChildren::new().child("last")]
            .map(|child| child.shutdown(Duration::ZERO))
    };
    let ordered = start(listens().into_iter().fold(app(), SupervisorBuilder::child)).await;
    let dynamic = DynamicSupervisor::builder("pool").build().unwrap().start().await.unwrap();
    for child in listens() {
        dynamic.start_child(child).await.unwrap();
    }
    settle().await;

    for tree in [ordered, dynamic] {
        let mut journal = Journal::of(&tree);
        let began = Instant::now();
        tree.stop("enough").await.unwrap();
        assert_eq!(began.elapsed(), Duration::ZERO);
        let stops = journal.stops();
        assert_eq!(stops.len(), 3);
        assert!(stops.iter().all(|stop| stop.ends_with(": shut down after 0ns")), "{stops:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn otp_119_a_supervisor_whose_parent_ends_normally_stops_its_children() {
    let fakes = FakeChildren::new();
    let below =
        Supervisor::builder("below").child(slow("x", seconds(1))).child(slow("y", seconds(2)));
    let done = fakes.child("done").restart(RestartType::Transient).significant();
    let tree =
        start(app().auto_shutdown(AutoShutdown::AnySignificant).child(below).child(done)).await;
    let mut journal = Journal::of(&tree);

    let began = Instant::now();
    fakes.end_without_settling("done", End::Normal);
    tree.wait().await.unwrap();

    assert_eq!(began.elapsed(), seconds(3));
    let reasons = ["done: ended normally", "y: shut down", "x: shut down", "below: shut down"];
    assert_eq!(journal.reasons(), reasons);
}

/// Two workers two levels down, and one beside them.
fn family(fakes: &FakeChildren) -> SupervisorBuilder {
    let inner = Supervisor::builder("inner").child(fakes.child("x")).child(fakes.child("y"));
    let below = Supervisor::builder("below").child(fakes.child("w")).child(inner).into_child();
    app().child(below.restart(RestartType::Temporary))
}

/// Returns the workers that are gone.
fn dropped(fakes: &FakeChildren) -> Vec<String> {
    let mut log = fakes.log();
    log.retain(|entry| entry.starts_with("dead"));
    log.sort();
    log
}

const ALL_DROPPED: [&str; 3] = ["dead w", "dead x", "dead y"];

#[tokio::test(start_paused = true)]
async fn otp_120_no_child_survives_a_killed_supervisor() {
    let fakes = FakeChildren::new();
    for name in ["w", "x", "y"] {
        fakes.ignore_cancellation(name);
    }

    let tree = start(family(&fakes)).await;
    settle().await;
    tree.kill("below").await.unwrap();
    settle().await;
    assert_eq!(dropped(&fakes), ALL_DROPPED, "killed through its own supervisor");
    assert_eq!(tree.otp().count_children().await.unwrap().specs, 0);
    tree.stop("enough").await.unwrap();

    let run = tokio::spawn(family(&fakes).build().unwrap().run());
    settle().await;
    run.abort();
    settle().await;
    assert_eq!(dropped(&fakes), ALL_DROPPED, "the task that runs the tree is aborted");

    tokio::select! {
        biased;
        ended = family(&fakes).build().unwrap().run() => panic!("{ended:?}"),
        () = settle() => {}
    }
    settle().await;
    assert_eq!(dropped(&fakes), ALL_DROPPED, "the future that runs the tree is dropped");
}

#[test]
fn otp_120_no_child_survives_its_runtime() {
    let fakes = FakeChildren::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let _tree = start(family(&fakes)).await;
        settle().await;
    });
    assert_eq!(dropped(&fakes), [""; 0], "dropping a handle stops nothing");
    drop(runtime);
    assert_eq!(dropped(&fakes), ALL_DROPPED);
}

/// OTP waits for a pending start. verger cancels the child, which has its grace.
#[tokio::test(start_paused = true)]
async fn otp_121_a_stop_does_not_wait_for_a_pending_start() {
    let fakes = FakeChildren::new();
    fakes.next_starts("deaf", [NextStart::Hang]);
    let began = Instant::now();
    let builder = app().child(fakes.child("a")).child(fakes.child("deaf").shutdown(seconds(2)));
    let tree = builder.child(fakes.child("never")).build().unwrap();
    tree.with_graceful_shutdown(sleep(seconds(1))).await.or_else(killed).unwrap();
    assert_eq!(began.elapsed(), seconds(3), "cancelled after 1 s, aborted 2 s later");
    assert_eq!(fakes.actions(), ["start a", "try deaf", "stop a"]);

    let listens = worker("listens", async |ctx| {
        ctx.cancelled().await;
    });
    let listens = listens.readiness(verger::Readiness::Signal);
    let began = Instant::now();
    let builder = app().child(fakes.child("a")).child(listens).child(fakes.child("never"));
    builder.build().unwrap().with_graceful_shutdown(sleep(seconds(1))).await.unwrap();
    assert_eq!(began.elapsed(), seconds(1));
    assert_eq!(fakes.actions(), ["start a", "stop a"]);
}

#[tokio::test(start_paused = true)]
async fn otp_121_the_caller_of_a_pending_start_learns_that_the_supervisor_stops() {
    let fakes = FakeChildren::new();
    fakes.next_starts("b", [NextStart::Hang]);
    let tree = start(app().child(fakes.child("a"))).await;
    let began = Instant::now();

    let (started, served, stopped) = tokio::join!(
        tree.start_child(fakes.child("b").shutdown(seconds(2))),
        async {
            sleep(Duration::from_millis(500)).await;
            (tree.which_child("b").await.unwrap().lifecycle, began.elapsed())
        },
        async {
            sleep(seconds(1)).await;
            tree.stop("enough").await
        },
    );

    assert_eq!(served, (Lifecycle::Activating, Duration::from_millis(500)));
    assert!(matches!(&started, Err(ControlError::ShuttingDown { path }) if path.as_str() == "app"));
    stopped.or_else(killed).unwrap();
    assert_eq!(began.elapsed(), seconds(3));
}

#[tokio::test(start_paused = true)]
async fn otp_122_a_child_that_is_deleted_and_added_again_comes_last() {
    let fakes = FakeChildren::new();
    let builder = app().strategy(Strategy::RestForOne);
    let builder = ["a", "b", "c"].iter().fold(builder, |it, name| it.child(fakes.child(name)));
    let tree = start(builder).await;

    tree.otp().terminate_child("a").await.unwrap();
    tree.otp().delete_child("a").await.unwrap();
    tree.start_child(fakes.child("a")).await.unwrap();

    let children = tree.otp().which_children().await.unwrap();
    let names: Vec<_> = children.iter().map(|child| child.path.name()).collect();
    assert_eq!(names, ["b", "c", "a"]);
    fakes.actions();
    tree.stop("enough").await.unwrap();
    assert_eq!(fakes.actions(), ["stop a", "stop c", "stop b"]);
}
