//! Calls to a child that waits for its restart.

use super::{DAY, Recorder, SECOND, app, fail, pass, seen};
use crate::common::{End, FakeChildren, NextStart, settle, start};
use verger::policy::Reset;
use verger::{Backoff, Lifecycle};

#[tokio::test(start_paused = true)]
async fn kin_49_a_stop_in_a_backoff_cancels_the_start_and_asks_the_backoff_no_more() {
    let (fakes, recorder) = (FakeChildren::new(), Recorder::default());
    let tree = start(app().child(fakes.child("a").backoff(recorder.backoff()))).await;
    fakes.end("a", End::Error).await;
    tree.stop("enough").await.unwrap();
    pass(DAY).await;
    assert_eq!(fakes.actions(), ["start a", "end a"]);
    assert_eq!(recorder.indexes(), [0]);
}

#[tokio::test(start_paused = true)]
async fn kin_80_a_stop_during_the_backoff_succeeds_and_nothing_starts_afterwards() {
    let fakes = FakeChildren::new();
    let tree = start(app().child(fakes.child("a").backoff(Backoff::constant(SECOND)))).await;
    fakes.end("a", End::Error).await;
    tree.stop_child("a").await.unwrap();
    assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Stopped);
    pass(DAY).await;
    assert_eq!(seen(&tree, "a").await.incarnation, 1);
}

#[tokio::test(start_paused = true)]
async fn kin_84_a_manual_start_cuts_a_delay_of_a_day_short_and_keeps_the_count() {
    let fakes = FakeChildren::new();
    let backoff = Backoff::constant(DAY).reset(Reset::Manual);
    let tree = start(app().child(fakes.child("a").backoff(backoff))).await;
    fakes.end("a", End::Error).await;
    tree.resume("a").await.unwrap();
    settle().await;
    let info = seen(&tree, "a").await;
    assert_eq!((info.lifecycle, info.failures), (Lifecycle::Active, 1));
    pass(2 * DAY).await;
    assert_eq!(seen(&tree, "a").await.incarnation, 2, "the day is not waited for any more");
}

#[tokio::test(start_paused = true)]
async fn kin_86_a_child_whose_delayed_start_fails_is_listed_and_retried() {
    let fakes = FakeChildren::new();
    let tree = start(app().child(fakes.child("a").backoff(Backoff::constant(SECOND)))).await;
    fakes.next_starts("a", [NextStart::Error]);
    assert_eq!(fail(&tree, &fakes, "a").await, SECOND);
    let info = seen(&tree, "a").await;
    assert_eq!((info.lifecycle, info.incarnation), (Lifecycle::Restarting, 2));
    pass(SECOND).await;
    assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Active);
}

#[tokio::test(start_paused = true)]
async fn kin_87_a_waiting_child_can_be_stopped_deleted_or_started_manually_once() {
    let fakes = FakeChildren::new();
    let backoff = Backoff::constant(SECOND);
    let tree = start(app().child(fakes.child("a").backoff(backoff.clone()))).await;
    fakes.end("a", End::Error).await;
    tree.stop_child("a").await.unwrap();
    tree.otp().delete_child("a").await.unwrap();
    pass(DAY).await;
    assert_eq!(fakes.actions(), ["start a", "end a"]);

    tree.start_child(fakes.child("b").backoff(backoff)).await.unwrap();
    fakes.end("b", End::Error).await;
    tree.stop_child("b").await.unwrap();
    tree.otp().restart_child("b").await.unwrap();
    pass(DAY).await;
    assert_eq!(fakes.actions(), ["start b", "end b", "start b"]);
}
