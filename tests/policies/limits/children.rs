//! The limits of one child besides that of its supervisor.

use std::time::Duration;

use super::{MINUTE, YEAR, comes_back, ms, patient, secs, seen};
use crate::common::{End, FakeChildren, NextStart, settle, start};
use tokio::time::{Instant, advance};
use verger::policy::{Jitter, OnExhausted};
use verger::{
    Backoff, ChildDefaults, Context, Exit, Lifecycle, Supervisor, SupervisorBuilder, worker,
};

#[tokio::test(start_paused = true)]
async fn seed0_52_one_child_has_a_limit_that_counts_and_a_backoff_that_waits() {
    let fakes = FakeChildren::new();
    let child = fakes.child("broker").own_restarts(2, MINUTE).on_exhausted(OnExhausted::Park);
    let backoff = Backoff::exponential(secs(1), secs(8)).jitter(Jitter::None).reset_after(secs(30));
    let tree = start(patient().child(child.backoff(backoff))).await;

    for wait in [1, 2] {
        let failed = Instant::now();
        fakes.end("broker", End::Error).await;
        let next = seen(&tree, "broker").await.next.unwrap();
        assert_eq!((next.delay, next.remaining), (secs(wait), secs(wait)));
        while seen(&tree, "broker").await.lifecycle != Lifecycle::Active {
            advance(ms(500)).await;
            settle().await;
        }
        assert_eq!(failed.elapsed(), secs(wait));
    }
    fakes.end("broker", End::Error).await;
    assert_eq!(seen(&tree, "broker").await.lifecycle, Lifecycle::Errored);
}

/// In actor-ts, the recipe is a supervisor around the backoff, which counts nothing.
#[tokio::test(start_paused = true)]
async fn seed0_53_a_child_with_a_backoff_is_given_up_after_exactly_its_limit() {
    for max in [0, 1, 10] {
        let fakes = FakeChildren::new();
        let backoff = Backoff::exponential(ms(200), secs(10)).jitter(0.2);
        let child = fakes.child("broker").own_restarts(max, Duration::MAX).backoff(backoff);
        let tree = start(patient().child(child.on_exhausted(OnExhausted::StopChild))).await;
        fakes.next_starts("broker", vec![NextStart::Error; 100]);

        fakes.end("broker", End::Error).await;
        advance(YEAR).await;
        for _ in 0..max {
            advance(secs(12)).await;
            settle().await;
        }

        let child = seen(&tree, "broker").await;
        assert_eq!((child.why, child.restarts), (Some("given up"), max));
    }
}

#[tokio::test(start_paused = true)]
async fn seed4_34_with_a_limit_of_three_the_fourth_failure_is_final_and_by_default_no_failure_is() {
    let fakes = FakeChildren::new();
    let child = fakes.child("a").consecutive_restarts(3).on_exhausted(OnExhausted::StopChild);
    let tree = start(patient().child(child).child(fakes.child("b"))).await;
    for _ in 0..3 {
        assert!(comes_back(&tree, &fakes, "a").await);
    }
    assert!(!comes_back(&tree, &fakes, "a").await);
    advance(YEAR).await;
    settle().await;
    assert_eq!(seen(&tree, "a").await.why, Some("given up"));

    for restart in 1..=1_000 {
        assert!(comes_back(&tree, &fakes, "b").await, "restart {restart}");
    }
}

#[tokio::test(start_paused = true)]
async fn consecutive_restarts_reset_when_the_child_was_active_long_enough() {
    let fakes = FakeChildren::new();
    let backoff = Backoff::constant(ms(1)).reset_after(secs(10));
    let child = fakes.child("a").backoff(backoff).consecutive_restarts(1);
    let tree = start(patient().child(child.on_exhausted(OnExhausted::Park))).await;
    for lived in [secs(0), secs(10), secs(10), secs(10)] {
        advance(lived).await;
        fakes.end("a", End::Error).await;
        assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Restarting);
        advance(ms(1)).await;
        settle().await;
    }
    advance(secs(10) - ms(1)).await;
    assert!(!comes_back(&tree, &fakes, "a").await);
    assert_eq!(seen(&tree, "a").await.why, Some("given up"));
}

#[tokio::test(start_paused = true)]
async fn consecutive_restarts_reset_when_the_child_reports_itself_healthy() {
    let says = worker("a", async |ctx: Context| -> Exit {
        if ctx.incarnation() < 5 {
            ctx.report_healthy();
        }
        Err("no".into())
    });
    let child = says.consecutive_restarts(1).on_exhausted(OnExhausted::StopChild);
    let tree = start(patient().child(child)).await;
    settle().await;
    let child = seen(&tree, "a").await;
    assert_eq!((child.why, child.incarnation), (Some("given up"), 5), "healthy four times");
}

#[tokio::test(start_paused = true)]
async fn a_child_that_keeps_failing_past_its_deadline_is_given_up() {
    let fakes = FakeChildren::new();
    let backoff = Backoff::constant(secs(20)).reset_after(secs(30));
    let child = fakes.child("a").backoff(backoff).failing_for(MINUTE);
    let tree = start(patient().child(child.on_exhausted(OnExhausted::Park))).await;
    advance(YEAR).await;
    fakes.next_starts("a", [NextStart::Error, NextStart::Error, NextStart::Error]);

    // It fails at 0, 20, 40 and 60 s; then it is up, and its next failure comes too late.
    fakes.end("a", End::Error).await;
    for _ in 0..4 {
        assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Restarting);
        advance(secs(20)).await;
        settle().await;
    }
    assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Active);
    fakes.end("a", End::Error).await;
    assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Errored);
}

#[tokio::test(start_paused = true)]
async fn a_restart_refused_by_one_limit_is_counted_by_none() {
    let fakes = FakeChildren::new();
    let builder = Supervisor::builder("app").restarts(3, MINUTE).on_exhausted(OnExhausted::Park);
    let at_once = |child: ChildDefaults| child.backoff(Backoff::none());
    let children = [fakes.child("a").own_restarts(1, MINUTE), fakes.child("b")];
    let builder = children.into_iter().fold(builder, SupervisorBuilder::child);
    let tree = start(builder.defaults(at_once)).await;
    let counted = async || tree.status().await.unwrap().root.supervisor.unwrap().restarts_in_period;

    assert!(comes_back(&tree, &fakes, "a").await);
    assert_eq!(counted().await, 1);
    assert!(!comes_back(&tree, &fakes, "a").await, "its own limit");
    assert_eq!(counted().await, 1, "the supervisor's has two left");
    assert!(comes_back(&tree, &fakes, "b").await);
    assert!(comes_back(&tree, &fakes, "b").await);
    assert!(!comes_back(&tree, &fakes, "b").await, "now it has none");
}
