//! Thresholds and delays of health checks, and checks that panic: rules of the kubelet's prober.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use verger::status::{ChildInfo, EventKind};
use verger::{ChildSpec, Context, Exit, HealthCheck, Lifecycle, SupervisorHandle, worker};

use super::{eager, lifecycle, secs, start};
use crate::common::settle;

/// The seconds at which an incarnation was checked.
type Checks = Arc<Mutex<Vec<(u64, u32)>>>;

/// A check that passes (`+`), fails (`-`) or panics (`!`) in this order, and passes from then on.
fn script(checks: &Checks, results: &str) -> HealthCheck {
    let (checks, began) = (Arc::clone(checks), Instant::now());
    let results = Mutex::new(results.chars().collect::<Vec<_>>().into_iter());
    HealthCheck::new(move |ctx: Context| {
        let result = results.lock().unwrap().next();
        checks.lock().unwrap().push((began.elapsed().as_secs(), ctx.incarnation()));
        async move {
            match result {
                Some('-') => Exit::Err("no ping".into()),
                Some('!') => panic!("on purpose"),
                _ => Ok(()),
            }
        }
    })
}

fn taken(checks: &Checks) -> Vec<(u64, u32)> {
    std::mem::take(&mut *checks.lock().unwrap())
}

fn idle(name: &str) -> ChildSpec {
    worker(name, async |ctx: Context| ctx.cancelled().await)
}

/// Lets time pass, and everything react that is due.
async fn sleep(time: Duration) {
    tokio::time::sleep(time).await;
    settle().await;
}

async fn seen(tree: &SupervisorHandle, name: &str) -> ChildInfo {
    tree.which_child(name).await.unwrap()
}

/// Returns the child's health after each of the next periods of 10 s, as in `h` or `u`.
async fn health(tree: &SupervisorHandle, periods: usize) -> String {
    let mut text = String::new();
    for _ in 0..periods {
        sleep(secs(10)).await;
        let child = seen(tree, "a").await;
        assert_eq!(child.ready, child.healthy != Some(false));
        text.push(match child.healthy {
            None => '?',
            Some(true) => 'h',
            Some(false) => 'u',
        });
    }
    text
}

#[tokio::test(start_paused = true)]
async fn kin_159_an_unhealthy_child_is_healthy_after_the_third_success_and_one_failure_flips_it() {
    let checks = Checks::default();
    let check = script(&checks, "+-++-+++-").failures(1).successes(3);
    let tree = start(eager("app").child(idle("a").health_check(check))).await;
    let mut events = tree.events();
    assert_eq!(health(&tree, 10).await, "huuuuuuhuu");
    let kinds = std::iter::from_fn(|| events.try_next()).filter_map(|event| match event.kind {
        EventKind::Healthy => Some("healthy"),
        EventKind::Unhealthy { .. } => Some("unhealthy"),
        _ => None,
    });
    assert_eq!(kinds.collect::<Vec<_>>(), ["unhealthy", "healthy", "unhealthy"]);
    assert_eq!(health(&tree, 2).await, "uh");
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_159_a_new_incarnation_needs_one_success_only() {
    let checks = Checks::default();
    let check = script(&checks, "-").failures(1).successes(3).restarts();
    let tree = start(eager("app").child(idle("a").health_check(check))).await;
    assert_eq!(health(&tree, 2).await, "?h");
    assert_eq!(taken(&checks), [(10, 1), (20, 2)]);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_160_before_the_initial_delay_a_child_is_not_checked_and_counts_as_ready() {
    for (delay, first) in [(Some(25), 25), (Some(0), 0), (None, 10)] {
        let checks = Checks::default();
        let mut check = script(&checks, "-----").failures(1).restarts();
        if let Some(delay) = delay {
            check = check.initial_delay(secs(delay));
        }
        let tree = start(eager("app").child(idle("a").health_check(check))).await;
        if first > 0 {
            sleep(secs(first) - Duration::from_millis(1)).await;
            let child = seen(&tree, "a").await;
            assert_eq!((child.healthy, child.ready, child.incarnation), (None, true, 1));
            assert!(tree.status().await.unwrap().is_ready());
            assert_eq!(taken(&checks), []);
            sleep(Duration::from_millis(1)).await;
            assert_eq!(seen(&tree, "a").await.incarnation, 2);
            sleep(secs(first)).await;
            assert_eq!(taken(&checks), [(first, 1), (2 * first, 2)], "each incarnation waits");
        } else {
            sleep(secs(10)).await;
            let expected = [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (0, 6), (10, 6)];
            assert_eq!(taken(&checks), expected);
        }
        tree.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn kin_160_the_checks_after_the_first_are_one_period_apart() {
    let checks = Checks::default();
    let check = script(&checks, "").initial_delay(secs(3)).every(secs(7));
    let tree = start(eager("app").child(idle("a").health_check(check))).await;
    sleep(secs(20)).await;
    assert_eq!(taken(&checks), [(3, 1), (10, 1), (17, 1)]);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_161_a_child_that_failed_as_unhealthy_is_not_checked_until_its_next_incarnation() {
    let checks = Checks::default();
    let check = script(&checks, "---------").failures(2).restarts();
    let slow = worker("a", async |ctx: Context| {
        ctx.cancelled().await;
        tokio::time::sleep(secs(45)).await;
    });
    let slow = slow.shutdown(secs(60)).health_check(check);
    let tree = start(eager("app").child(slow)).await;
    sleep(secs(64)).await;
    let child = seen(&tree, "a").await;
    assert_eq!((child.incarnation, child.lifecycle), (1, Lifecycle::Errored));
    assert_eq!((child.healthy, child.ready), (None, false), "it is on hold and not healthy");
    assert_eq!(taken(&checks), [(10, 1), (20, 1)]);
    sleep(secs(1)).await;
    assert_eq!(seen(&tree, "a").await.incarnation, 2);
    sleep(secs(10)).await;
    assert_eq!(taken(&checks), [(75, 2)]);
    assert_eq!(lifecycle(&tree, "a").await, Lifecycle::Active, "the count began again");
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_162_a_check_that_panics_leaves_the_last_result_and_runs_again() {
    let checks = Checks::default();
    let check = script(&checks, "+!!+-!-!!+!");
    let tree = start(eager("app").child(idle("a").health_check(check))).await;
    assert_eq!(health(&tree, 11).await, "hhhhhhuuuhh");
    assert_eq!(taken(&checks).len(), 11);
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_162_a_stop_clears_the_result_and_may_be_repeated() {
    let checks = Checks::default();
    let check = script(&checks, "-").failures(1);
    let tree = start(eager("app").child(idle("a").health_check(check))).await;
    assert_eq!(health(&tree, 1).await, "u");
    for _ in 0..2 {
        tree.stop_child("a").await.unwrap();
        let child = seen(&tree, "a").await;
        assert_eq!((child.lifecycle, child.healthy), (Lifecycle::Stopped, None));
    }
    sleep(secs(60)).await;
    assert_eq!(taken(&checks), [(10, 1)]);
    tree.otp().restart_child("a").await.unwrap();
    assert_eq!(seen(&tree, "a").await.healthy, None);
    sleep(secs(10)).await;
    assert_eq!(seen(&tree, "a").await.healthy, Some(true));
    assert_eq!(taken(&checks), [(80, 2)]);
    tree.stop("done").await.unwrap();
    tree.stop("again").await.unwrap();
}
