//! Limits within a period: what the window holds, and when it is free again.

use std::time::Duration;

use super::{MINUTE, YEAR, comes_back, ms, patient, secs, seen};
use crate::common::{End, FakeChildren, settle, start};
use tokio::time::advance;
use verger::policy::{Intensity, Jitter, OnExhausted};
use verger::{Backoff, ChildDefaults, Context, Lifecycle, Supervisor, SupervisorBuilder, worker};

#[tokio::test(start_paused = true)]
async fn seed0_1_ten_restarts_a_minute_are_granted_and_the_eleventh_stops_the_child() {
    let fakes = FakeChildren::new();
    let flaky = fakes.child("flaky").own_restarts(10, MINUTE).on_exhausted(OnExhausted::StopChild);
    let tree = start(patient().child(flaky)).await;

    for restart in 1..=10 {
        assert!(comes_back(&tree, &fakes, "flaky").await, "restart {restart}");
    }
    fakes.end("flaky", End::Error).await;

    let child = seen(&tree, "flaky").await;
    assert_eq!((child.lifecycle, child.why), (Lifecycle::Stopped, Some("given up")));
    assert_eq!(child.restarts, 10);
}

/// A manual start clears no window, so a recorded refusal would take the place of a restart.
#[tokio::test(start_paused = true)]
async fn seed0_1_a_refused_restart_is_not_recorded() {
    let own = |fakes: &FakeChildren| {
        let flaky = fakes.child("flaky").own_restarts(10, MINUTE);
        patient().child(flaky.on_exhausted(OnExhausted::StopChild))
    };
    let of_the_supervisor = |fakes: &FakeChildren| {
        Supervisor::builder("app")
            .restarts(10, MINUTE)
            .on_exhausted(OnExhausted::StopChild)
            .defaults(|child| child.backoff(Backoff::none()))
            .child(fakes.child("flaky"))
    };
    for app in [own as fn(&FakeChildren) -> SupervisorBuilder, of_the_supervisor] {
        let fakes = FakeChildren::new();
        let tree = start(app(&fakes)).await;
        for _ in 1..=10 {
            assert!(comes_back(&tree, &fakes, "flaky").await);
        }
        // All ten still count after thirty seconds, and after exactly a minute.
        for wait in [MINUTE / 2, MINUTE / 2] {
            advance(wait).await;
            assert!(!comes_back(&tree, &fakes, "flaky").await);
            assert_eq!(seen(&tree, "flaky").await.why, Some("given up"));
            tree.otp().restart_child("flaky").await.unwrap();
        }

        advance(ms(1)).await;
        for restart in 1..=10 {
            assert!(comes_back(&tree, &fakes, "flaky").await, "restart {restart}");
        }
        assert!(!comes_back(&tree, &fakes, "flaky").await, "and not the eleventh");
    }
}

#[tokio::test(start_paused = true)]
async fn seed4_37_a_child_whose_backoff_resets_at_once_ends_by_the_limit_per_time() {
    let fakes = FakeChildren::new();
    let backoff = Backoff::constant(ms(100)).reset_after(Duration::ZERO);
    let child = fakes.child("a").backoff(backoff).own_restarts(3, MINUTE);
    let tree = start(patient().child(child.on_exhausted(OnExhausted::Park))).await;
    for _ in 0..3 {
        fakes.end("a", End::Error).await;
        assert_eq!(seen(&tree, "a").await.next.unwrap().attempt, 1, "each time the first");
        advance(ms(100)).await;
        settle().await;
    }
    fakes.end("a", End::Error).await;
    assert_eq!(seen(&tree, "a").await.why, Some("given up"));
}

#[tokio::test(start_paused = true)]
async fn kin_36_a_limit_with_an_endless_period_is_used_up_once() {
    let fakes = FakeChildren::new();
    let child = fakes.child("a").own_restarts(3, Duration::MAX).on_exhausted(OnExhausted::Park);
    let tree = start(patient().child(child)).await;
    for _ in 0..3 {
        assert!(comes_back(&tree, &fakes, "a").await);
        advance(10 * YEAR).await;
    }
    assert!(!comes_back(&tree, &fakes, "a").await);
}

#[tokio::test(start_paused = true)]
async fn kin_39_two_more_restarts_are_granted_after_the_window_and_the_next_is_not() {
    let fakes = FakeChildren::new();
    let two = Intensity::tumbling(2, secs(2));
    let child = fakes.child("a").intensity(two).on_exhausted(OnExhausted::StopChild);
    let tree = start(patient().child(child)).await;
    for _ in 0..2 {
        assert!(comes_back(&tree, &fakes, "a").await);
    }
    advance(ms(2_100)).await;
    for _ in 0..2 {
        assert!(comes_back(&tree, &fakes, "a").await);
    }
    assert!(!comes_back(&tree, &fakes, "a").await);
}

#[tokio::test(start_paused = true)]
async fn kin_44_quick_failures_before_and_after_a_quiet_time_are_all_restarted() {
    let fakes = FakeChildren::new();
    let backoff = Backoff::exponential(ms(100), ms(300)).jitter(Jitter::None).reset_after(secs(10));
    let child = fakes.child("a").backoff(backoff).own_restarts(3, secs(1));
    let tree = start(patient().child(child)).await;
    for quiet in [secs(1), Duration::ZERO] {
        for _ in 0..3 {
            fakes.end("a", End::Error).await;
            advance(ms(300)).await;
            settle().await;
            assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Active);
        }
        advance(quiet).await;
    }
    fakes.end("a", End::Error).await;
    assert!(tree.wait().await.is_err(), "the fourth within 900 ms");
}

/// A manual restart isn't charged, however many wait for the same stop.
#[tokio::test(start_paused = true)]
async fn kin_45_starts_that_wait_for_a_stop_are_not_charged() {
    let slow = worker("a", async |ctx: Context| {
        ctx.cancelled().await;
        tokio::time::sleep(ms(100)).await;
    });
    let tree = start(Supervisor::builder("app").restarts(0, MINUTE).child(slow)).await;
    for cycle in 2..7 {
        let (stopped, again) = tokio::join!(tree.stop_child("a"), tree.stop_child("a"));
        stopped.and(again).unwrap();
        assert_eq!(tree.otp().restart_child("a").await.unwrap().incarnation(), Some(cycle));
    }
    let (first, second) = tokio::join!(tree.restart("a"), tree.restart("a"));
    assert_eq!([first, second].map(|it| it.unwrap().incarnation()), [Some(7); 2]);
    let supervisor = tree.status().await.unwrap().root.supervisor.unwrap();
    assert_eq!(supervisor.restarts_in_period, 0);
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_whose_score_is_exceeded_gives_up() {
    let fakes = FakeChildren::new();
    let at_once = |child: ChildDefaults| child.backoff(Backoff::none());
    let score = Intensity::decaying(3.5, secs(30));
    let builder = Supervisor::builder("app").intensity(score).defaults(at_once);
    let tree = start(builder.child(fakes.child("a"))).await;
    let shown = async || {
        let supervisor = tree.status().await.unwrap().root.supervisor.unwrap();
        (supervisor.restarts_in_period, supervisor.max_restarts, supervisor.period)
    };
    for _ in 0..3 {
        assert!(comes_back(&tree, &fakes, "a").await);
    }
    assert_eq!(shown().await, (3, Some(3), secs(30)));
    advance(secs(30)).await;
    assert_eq!(shown().await, (1, Some(3), secs(30)), "1.5 leaves room for two");
    for _ in 0..2 {
        assert!(comes_back(&tree, &fakes, "a").await);
    }
    fakes.end("a", End::Error).await;
    assert!(tree.wait().await.is_err());
}
