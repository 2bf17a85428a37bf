//! The limit of a supervisor, and of its children separately.

use std::time::Duration;

use super::{MINUTE, YEAR, comes_back, patient, secs, seen};
use crate::common::{End, FakeChildren, NextStart, settle, start};
use tokio::time::advance;
use verger::policy::{Intensity, OnExhausted};
use verger::status::EventKind;
use verger::{
    Backoff, ChildDefaults, ChildSpec, Context, DynamicSupervisor, Lifecycle, RestartType,
    RunError, Supervisor, worker,
};

#[tokio::test(start_paused = true)]
async fn seed2_24_without_a_limit_a_child_is_retried_for_ever_and_with_a_limit_it_is_not() {
    let fakes = FakeChildren::new();
    let limited = fakes.child("limited").own_restarts(3, YEAR).on_exhausted(OnExhausted::Park);
    let tree = start(patient().child(fakes.child("endless")).child(limited)).await;

    for restart in 1..=100 {
        assert!(comes_back(&tree, &fakes, "endless").await, "restart {restart}");
    }
    let answers = [
        comes_back(&tree, &fakes, "limited").await,
        comes_back(&tree, &fakes, "limited").await,
        comes_back(&tree, &fakes, "limited").await,
        comes_back(&tree, &fakes, "limited").await,
    ];
    assert_eq!(answers, [true, true, true, false]);
}

#[tokio::test(start_paused = true)]
async fn seed3_25_with_a_limit_of_two_the_third_failure_escalates() {
    let fakes = FakeChildren::new();
    let tree = start(patient().child(fakes.child("plugin").own_restarts(2, MINUTE))).await;
    let mut events = tree.events();

    for _ in 0..3 {
        fakes.end("plugin", End::Error).await;
    }

    let RunError::GaveUp { child, reason, .. } = tree.wait().await.unwrap_err() else {
        panic!("it escalates")
    };
    assert_eq!((child.as_str(), reason.kind()), ("app/plugin", "failed"));
    let (mut restarts, mut given_up) = (0, 0);
    while let Some(event) = events.next().await {
        match event.kind {
            EventKind::Moved { to: Lifecycle::Activating, .. } => restarts += 1,
            EventKind::GaveUp { .. } => given_up += 1,
            _ => {}
        }
    }
    assert_eq!((restarts, given_up), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn seed3_26_restarts_are_counted_per_child_or_per_supervisor() {
    let names = ["a", "b", "c"];
    let fakes = FakeChildren::new();
    let each = |child: ChildDefaults| {
        child.backoff(Backoff::none()).own_restarts(1, MINUTE).on_exhausted(OnExhausted::Park)
    };
    let mut tree = Supervisor::builder("app").unlimited_restarts().defaults(each);
    for name in names {
        tree = tree.child(fakes.child(name));
    }
    let tree = start(tree).await;
    for name in names {
        assert!(comes_back(&tree, &fakes, name).await, "{name} has one of its own");
        assert!(!comes_back(&tree, &fakes, name).await, "{name} has used it up");
    }

    let fakes = FakeChildren::new();
    let at_once = |child: ChildDefaults| child.backoff(Backoff::none());
    let mut tree = Supervisor::builder("app").restarts(2, MINUTE).defaults(at_once);
    for name in names {
        tree = tree.child(fakes.child(name));
    }
    let tree = start(tree.on_exhausted(OnExhausted::Park)).await;
    let mut answers = Vec::new();
    for name in names {
        answers.push(comes_back(&tree, &fakes, name).await);
    }
    assert_eq!(answers, [true, true, false], "two for all of them");
}

#[tokio::test(start_paused = true)]
async fn kin_33_children_of_one_spec_have_separate_limits() {
    let idle = worker("a", async |ctx: Context| ctx.cancelled().await);
    let spec = idle.backoff(Backoff::none()).own_restarts(1, MINUTE);
    let spec = spec.on_exhausted(OnExhausted::Park);
    let pool = DynamicSupervisor::builder("app").unlimited_restarts().build().unwrap();
    let tree = pool.start().await.unwrap();
    for name in ["a#1", "a#2"] {
        tree.start_child(spec.clone()).await.unwrap();
        tree.kill(name).await.unwrap();
        settle().await;
        assert_eq!(seen(&tree, name).await.lifecycle, Lifecycle::Active, "{name}");
    }
    tree.kill("a#1").await.unwrap();
    settle().await;
    assert_eq!(seen(&tree, "a#1").await.why, Some("given up"));
    assert_eq!(seen(&tree, "a#2").await.lifecycle, Lifecycle::Active);
}

#[tokio::test(start_paused = true)]
async fn kin_34_without_a_limit_a_child_answers_after_seven_kills() {
    let fakes = FakeChildren::new();
    let tree = start(patient().child(fakes.child("a"))).await;
    for _ in 0..7 {
        assert!(comes_back(&tree, &fakes, "a").await);
    }
    assert_eq!(seen(&tree, "a").await.incarnation, 8);
}

/// The child is a value: `deactivate` runs after each failure, also the last, and `activate`
/// doesn't run after the last.
#[tokio::test(start_paused = true)]
async fn kin_38_the_failure_beyond_the_limit_cleans_up_and_starts_nothing() {
    let fakes = FakeChildren::new();
    let child = fakes.child("a").own_restarts(2, MINUTE).on_exhausted(OnExhausted::StopChild);
    let tree = start(patient().child(child)).await;
    for _ in 0..3 {
        fakes.end("a", End::Error).await;
    }
    let cycle = ["start a", "end a", "dead a"];
    assert_eq!(fakes.log(), cycle.repeat(3));
    assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Stopped);
}

#[tokio::test(start_paused = true)]
async fn kin_40_with_a_limit_of_zero_the_first_failure_is_final() {
    let limits: [fn(ChildSpec) -> ChildSpec; 4] = [
        |spec| spec.own_restarts(0, MINUTE),
        |spec| spec.intensity(Intensity::tumbling(0, MINUTE)),
        |spec| spec.intensity(Intensity::decaying(0.5, MINUTE)),
        |spec| spec.consecutive_restarts(0),
    ];
    for limit in limits {
        let fakes = FakeChildren::new();
        let child = limit(fakes.child("a")).on_exhausted(OnExhausted::StopChild);
        let tree = start(patient().child(child)).await;
        fakes.end("a", End::Error).await;
        assert_eq!(fakes.actions(), ["start a", "end a"]);
        assert_eq!(seen(&tree, "a").await.why, Some("given up"));
    }
}

#[tokio::test(start_paused = true)]
async fn kin_57_with_a_limit_of_two_the_third_exit_ends_the_supervisor() {
    let ends = [(RestartType::Permanent, End::Normal), (RestartType::Transient, End::Error)];
    for (restart, end) in ends {
        let fakes = FakeChildren::new();
        let child = fakes.child("a").restart(restart).own_restarts(2, Duration::MAX);
        let tree = start(patient().child(child)).await;
        for _ in 0..2 {
            fakes.end("a", end).await;
            assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Active);
        }
        fakes.end("a", end).await;
        assert!(matches!(tree.wait().await, Err(RunError::GaveUp { .. })));
    }
}

#[tokio::test(start_paused = true)]
async fn kin_64_with_a_limit_of_five_in_thirty_seconds_the_sixth_failure_ends_the_supervisor() {
    let fakes = FakeChildren::new();
    let tree = start(patient().child(fakes.child("a").own_restarts(5, secs(30)))).await;
    for _ in 0..5 {
        assert!(comes_back(&tree, &fakes, "a").await);
        advance(secs(6)).await;
    }
    fakes.end("a", End::Error).await;
    assert!(matches!(tree.wait().await, Err(RunError::GaveUp { .. })), "the first is 30 s old");
}

#[tokio::test(start_paused = true)]
async fn kin_66_one_failure_and_two_failed_restarts_exceed_the_limit() {
    let fakes = FakeChildren::new();
    let backoff = Backoff::constant(secs(1));
    let tree = start(patient().child(fakes.child("a").backoff(backoff).consecutive_restarts(2)));
    let tree = tree.await;
    fakes.next_starts("a", vec![NextStart::Error; 9]);
    fakes.end("a", End::Error).await;
    for _ in 0..9 {
        advance(secs(1)).await;
        settle().await;
    }
    let RunError::GaveUp { reason, .. } = tree.wait().await.unwrap_err() else { panic!() };
    assert_eq!(reason.to_string(), "activation failed: no start");
    assert_eq!(fakes.actions(), ["start a", "end a", "try a", "try a"]);
}

#[tokio::test(start_paused = true)]
async fn normal_ends_without_a_restart_are_not_counted() {
    let fakes = FakeChildren::new();
    let child = fakes.child("a").restart(RestartType::Transient).own_restarts(1, YEAR);
    let child = child.on_exhausted(OnExhausted::Park);
    let tree = start(patient().child(child)).await;
    for _ in 0..5 {
        fakes.end("a", End::Normal).await;
        tree.otp().restart_child("a").await.unwrap();
    }
    assert!(comes_back(&tree, &fakes, "a").await, "the first that counts");
    assert!(!comes_back(&tree, &fakes, "a").await);
}

#[tokio::test(start_paused = true)]
async fn failures_before_active_count_for_the_child_and_not_for_the_supervisor() {
    let fakes = FakeChildren::new();
    let wait = |child: ChildDefaults| child.backoff(Backoff::constant(secs(1)));
    let builder = Supervisor::builder("app").restarts(1, MINUTE).defaults(wait);
    fakes.next_starts("a", vec![NextStart::Error; 9]);
    let child = fakes.child("a").own_restarts(3, MINUTE).on_exhausted(OnExhausted::StopChild);
    let tree = start(builder.child(child)).await;
    let tree_counts = tree.status().await.unwrap().root.supervisor.unwrap().restarts_in_period;
    let child = seen(&tree, "a").await;
    assert_eq!((child.why, child.incarnation, tree_counts), (Some("given up"), 4, 0));
}
