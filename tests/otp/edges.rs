//! OTP's rules for failures, limits and groups that meet, which its own suite doesn't assert.

use std::time::Duration;

use crate::common::{End, FakeChildren, NextStart, settle, start};
use crate::journal::{Journal, seconds};
use tokio::time::{Instant, sleep, sleep_until};
use verger::policy::{AutoShutdown, Preset};
use verger::status::ChildInfo;
use verger::{
    Backoff, Lifecycle, RestartType, RunError, Strategy, Supervisor, SupervisorBuilder,
    SupervisorHandle,
};

fn app(strategy: Strategy) -> SupervisorBuilder {
    Supervisor::builder("app").strategy(strategy)
}

/// Returns the name, state and incarnation of each child.
async fn seen(tree: &SupervisorHandle) -> Vec<(String, Lifecycle, u32)> {
    let children = tree.otp().which_children().await.unwrap();
    let seen =
        |child: ChildInfo| (child.path.name().to_owned(), child.lifecycle, child.incarnation);
    children.into_iter().map(seen).collect()
}

fn active(name: &str, incarnation: u32) -> (String, Lifecycle, u32) {
    (name.to_owned(), Lifecycle::Active, incarnation)
}

fn stopped(name: &str, incarnation: u32) -> (String, Lifecycle, u32) {
    (name.to_owned(), Lifecycle::Stopped, incarnation)
}

#[tokio::test(start_paused = true)]
async fn otp_108_a_transient_supervisor_that_gave_up_stays_stopped_under_otps_rules() {
    let fakes = FakeChildren::new();
    let below = Supervisor::builder("below").preset(Preset::otp()).child(fakes.child("a"));
    let below = below.into_child().restart(RestartType::Transient);
    let tree = start(app(Strategy::OneForOne).child(below)).await;
    let mut journal = Journal::of(&tree);
    fakes.end("a", End::Error).await;
    fakes.end("a", End::Error).await;
    sleep(seconds(3600)).await;

    assert_eq!(seen(&tree).await, [stopped("below", 1)]);
    assert_eq!(fakes.actions(), ["start a", "end a", "start a", "end a"]);
    let reasons = ["a: failed: a failed", "a: failed: a failed", "below: shut down"];
    assert_eq!(journal.reasons(), reasons);
}

/// In verger the supervisor fails, so a transient supervisor is restarted.
#[tokio::test(start_paused = true)]
async fn otp_108_a_transient_supervisor_that_gave_up_is_restarted_by_default() {
    let fakes = FakeChildren::new();
    let below = Supervisor::builder("below").restarts(0, seconds(5)).child(fakes.child("a"));
    let below = below.into_child().restart(RestartType::Transient);
    let below = below.backoff(Backoff::constant(seconds(3)));
    let tree = start(app(Strategy::OneForOne).child(below)).await;
    let mut journal = Journal::of(&tree);
    fakes.end("a", End::Error).await;
    assert_eq!(tree.which_child("below").await.unwrap().next.unwrap().remaining, seconds(3));
    sleep(seconds(3)).await;
    settle().await;

    assert_eq!(seen(&tree).await, [active("below", 2)]);
    let escalated = "below: escalated: child app/below/a: failed: a failed";
    assert_eq!(journal.reasons(), ["a: failed: a failed", escalated]);
}

#[tokio::test(start_paused = true)]
async fn otp_109_a_group_restart_restarts_finished_and_terminated_children_of_its_range() {
    for strategy in [Strategy::OneForAll, Strategy::RestForOne] {
        let fakes = FakeChildren::new();
        let tree = start(
            app(strategy)
                .preset(Preset::otp())
                .child(fakes.child("done-before").restart(RestartType::Transient))
                .child(fakes.child("stopped-before"))
                .child(fakes.child("culprit"))
                .child(fakes.child("done-after").restart(RestartType::Transient))
                .child(fakes.child("stopped-after")),
        )
        .await;
        for place in ["before", "after"] {
            fakes.end(&format!("done-{place}"), End::Normal).await;
            tree.otp().terminate_child(&format!("stopped-{place}")).await.unwrap();
        }
        fakes.actions();

        fakes.end("culprit", End::Error).await;

        let before = if strategy == Strategy::OneForAll { active } else { stopped };
        let incarnation = if strategy == Strategy::OneForAll { 2 } else { 1 };
        let expected = [
            before("done-before", incarnation),
            before("stopped-before", incarnation),
            active("culprit", 2),
            active("done-after", 2),
            active("stopped-after", 2),
        ];
        assert_eq!(seen(&tree).await, expected, "{strategy}");
        let mut acts =
            vec!["end culprit", "start culprit", "start done-after", "start stopped-after"];
        if strategy == Strategy::OneForAll {
            acts.splice(1..1, ["start done-before", "start stopped-before"]);
        }
        assert_eq!(fakes.actions(), acts, "{strategy}");
    }
}

#[tokio::test(start_paused = true)]
async fn otp_110_two_children_that_fail_together_cost_a_group_one_restart() {
    let fakes = FakeChildren::new();
    let builder = app(Strategy::OneForAll).preset(Preset::otp());
    let tree = start(builder.child(fakes.child("a")).child(fakes.child("b"))).await;
    let mut journal = Journal::of(&tree);
    fakes.actions();

    fakes.end_without_settling("a", End::Error);
    fakes.end_without_settling("b", End::Panic);
    settle().await;

    assert_eq!(seen(&tree).await, [active("a", 2), active("b", 2)]);
    assert_eq!(fakes.actions(), ["end a", "end b", "start a", "start b"]);
    assert_eq!(journal.reasons(), ["a: failed: a failed", "b: panicked: b panicked"]);
    let status = tree.status().await.unwrap();
    assert_eq!(status.root.supervisor.unwrap().restarts_in_period, 1);
}

#[tokio::test(start_paused = true)]
async fn otp_110_two_children_that_fail_together_cost_two_restarts_one_for_one() {
    let fakes = FakeChildren::new();
    let builder = app(Strategy::OneForOne).preset(Preset::otp());
    let tree = start(builder.child(fakes.child("a")).child(fakes.child("b"))).await;

    fakes.end_without_settling("a", End::Error);
    fakes.end_without_settling("b", End::Error);

    let ended = tree.wait().await.unwrap_err();
    assert_eq!(ended.to_string(), "`app` gave up on `app/b`: failed: b failed");
}

/// OTP restarts at once; verger at the later of the two deadlines.
#[tokio::test(start_paused = true)]
async fn otp_111_an_earlier_childs_failure_replaces_the_pending_retry_of_a_later_child() {
    let tick = Duration::from_millis(1);
    for (wait, due) in [(Duration::from_millis(500), seconds(10)), (seconds(20), seconds(29))] {
        let fakes = FakeChildren::new();
        let tree = start(
            app(Strategy::RestForOne)
                .child(fakes.child("zero"))
                .child(fakes.child("a").backoff(Backoff::constant(wait)))
                .child(fakes.child("b"))
                .child(fakes.child("c").backoff(Backoff::constant(seconds(5)))),
        )
        .await;
        fakes.actions();
        let began = Instant::now();
        fakes.next_starts("c", [NextStart::Error]);
        fakes.end("c", End::Error).await;
        sleep_until(began + seconds(9)).await;
        assert_eq!(fakes.actions(), ["end c", "try c"], "its next attempt would be at 10 s");

        fakes.end("a", End::Error).await;

        assert_eq!(fakes.actions(), ["end a", "stop b"]);
        sleep_until(began + due - tick).await;
        settle().await;
        assert_eq!(fakes.actions(), [""; 0], "too early");
        sleep_until(began + due).await;
        settle().await;
        assert_eq!(fakes.actions(), ["start a", "start b", "start c"]);

        sleep(seconds(3600)).await;
        assert_eq!(fakes.actions(), [""; 0], "a stale retry");
        let expected = [active("zero", 1), active("a", 2), active("b", 2), active("c", 3)];
        assert_eq!(seen(&tree).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn otp_112_a_significant_child_in_a_retry_loop_is_not_gone_and_a_terminated_child_is() {
    for terminated in [false, true] {
        let fakes = FakeChildren::new();
        let child = |name| {
            let child = fakes.child(name).restart(RestartType::Transient).significant();
            child.backoff(Backoff::constant(seconds(10)))
        };
        let mode = AutoShutdown::AllSignificant;
        let builder = app(Strategy::OneForOne).auto_shutdown(mode).child(fakes.child("worker"));
        let tree = start(builder.child(child("a")).child(child("b"))).await;
        fakes.next_starts("a", [NextStart::Error]);
        fakes.end("a", End::Error).await;
        sleep(seconds(15)).await;
        assert_eq!(tree.which_child("a").await.unwrap().lifecycle, Lifecycle::Restarting);
        if terminated {
            tree.otp().terminate_child("a").await.unwrap();
            assert_eq!(
                tree.otp().count_children().await.unwrap().active,
                2,
                "that alone ends nothing"
            );
        }
        fakes.actions();

        fakes.end("b", End::Normal).await;

        if terminated {
            tree.wait().await.unwrap();
            assert_eq!(fakes.actions(), ["end b", "stop worker"]);
        } else {
            sleep(seconds(5)).await;
            settle().await;
            assert_eq!(fakes.actions(), ["end b", "start a"]);
            fakes.end("a", End::Normal).await;
            tree.wait().await.unwrap();
            assert_eq!(fakes.actions(), ["end a", "stop worker"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn otp_113_with_no_restarts_allowed_the_first_failure_ends_the_supervisor() {
    for strategy in [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne] {
        for is_otp in [true, false] {
            let fakes = FakeChildren::new();
            let below = Supervisor::builder("below").strategy(strategy).restarts(0, seconds(5));
            let below = if is_otp { below.preset(Preset::otp()) } else { below };
            let below = below
                .child(fakes.child("a"))
                .child(fakes.child("b"))
                .child(fakes.child("c"))
                .into_child();
            let below = below.restart(RestartType::Temporary);
            let tree = start(app(Strategy::OneForOne).child(below)).await;
            let mut journal = Journal::of(&tree);
            fakes.actions();

            let began = Instant::now();
            fakes.end("b", End::Error).await;

            assert_eq!(fakes.actions(), ["end b", "stop c", "stop a"], "{strategy}");
            let escalated = "below: escalated: child app/below/b: failed: b failed";
            let last = if is_otp { "below: shut down" } else { escalated };
            assert_eq!(journal.reasons().pop().unwrap(), last, "{strategy}");
            assert_eq!(began.elapsed(), Duration::ZERO);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn otp_114_a_child_that_never_starts_again_is_attempted_up_to_the_limit() {
    for strategy in [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne] {
        for max in [0, 1, 2, 5] {
            let fakes = FakeChildren::new();
            let builder = app(strategy).preset(Preset::otp()).restarts(max, seconds(5));
            let tree = start(builder.child(fakes.child("a"))).await;
            fakes.next_starts("a", vec![NextStart::Error; 100]);

            fakes.end("a", End::Error).await;

            assert!(matches!(tree.wait().await, Err(RunError::GaveUp { .. })));
            let tries = fakes.actions().iter().filter(|act| *act == "try a").count();
            assert_eq!(tries, max as usize, "{strategy}");
        }
    }
}

/// With a delay between attempts, verger doesn't count attempts that fail before the child is
/// active.
#[tokio::test(start_paused = true)]
async fn otp_114_a_child_with_a_delay_between_attempts_is_retried_until_it_starts() {
    let fakes = FakeChildren::new();
    let child = fakes.child("a").backoff(Backoff::constant(seconds(1)));
    let tree = start(app(Strategy::OneForOne).restarts(1, seconds(3600)).child(child)).await;
    fakes.next_starts("a", vec![NextStart::Error; 100]);

    fakes.end("a", End::Error).await;
    sleep(seconds(101)).await;
    settle().await;

    assert_eq!(seen(&tree).await, [active("a", 102)]);
}

#[tokio::test(start_paused = true)]
async fn otp_115_a_group_restart_counts_once_however_many_children_it_has() {
    let fakes = FakeChildren::new();
    let mut builder = app(Strategy::OneForAll).preset(Preset::otp()).restarts(2, seconds(5));
    let names: Vec<_> = (0..10).map(|index| format!("child-{index}")).collect();
    for name in &names {
        builder = builder.child(fakes.child(name));
    }
    let tree = start(builder).await;

    for incarnation in [2, 3] {
        fakes.end("child-7", End::Error).await;
        let expected: Vec<_> = names.iter().map(|name| active(name, incarnation)).collect();
        assert_eq!(seen(&tree).await, expected);
    }
    fakes.end("child-3", End::Error).await;
    let ended = tree.wait().await.unwrap_err();
    assert_eq!(ended.to_string(), "`app` gave up on `app/child-3`: failed: child-3 failed");
}

#[tokio::test(start_paused = true)]
async fn otp_116_a_child_that_declines_its_restart_stays_stopped() {
    for strategy in [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne] {
        for wait in [Duration::ZERO, seconds(2)] {
            let fakes = FakeChildren::new();
            let backoff = if wait.is_zero() { Backoff::none() } else { Backoff::constant(wait) };
            let builder = app(strategy).child(fakes.child("a").backoff(backoff));
            let tree = start(builder.child(fakes.child("b"))).await;
            fakes.next_starts("a", [NextStart::Ignore]);

            fakes.end("a", End::Error).await;
            sleep(wait).await;
            sleep(seconds(3600)).await;

            let a = tree.which_child("a").await.unwrap();
            assert_eq!((a.lifecycle, a.incarnation), (Lifecycle::Stopped, 2), "{strategy}");
            assert_eq!((a.why, a.next), (Some("declined to start"), None), "{strategy}");
            let tries = fakes.actions().iter().filter(|act| *act == "try a").count();
            assert_eq!(tries, 1, "{strategy}");
            assert_eq!(tree.which_child("b").await.unwrap().lifecycle, Lifecycle::Active);
        }
    }
}
