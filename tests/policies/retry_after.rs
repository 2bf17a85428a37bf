//! Delays that errors request, and restarts that aren't charged to the supervisor.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use crate::common::{settle, start};
use tokio::time::{Instant, sleep};
use verger::policy::{Jitter, OnExit, Preset, RestartPolicy};
use verger::resilience::CallError;
use verger::{
    Backoff, ChildSpec, Context, DynamicSupervisor, ExitKind, Lifecycle, RestartType, RunError,
    Supervisor, SupervisorBuilder, SupervisorHandle, worker,
};

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A vendor's response, with its `Retry-After`.
#[derive(Debug, thiserror::Error)]
#[error("too many requests")]
struct TooMany {
    retry_after: Option<Duration>,
}

fn retry_after(error: &TooMany) -> Option<Duration> {
    error.retry_after
}

type Refused = Result<(), CallError<TooMany>>;

fn refused(retry_after: Option<Duration>) -> Refused {
    Err(CallError::Failed(TooMany { retry_after }))
}

/// A child whose incarnations fail as soon as they are active, each with the function's error for
/// its number. It stays up once the function returns none.
fn poller(fails: impl Fn(u32) -> Option<Refused> + Send + Sync + 'static) -> ChildSpec {
    let fails = Arc::new(fails);
    worker("poller", move |ctx: Context| {
        let fails = Arc::clone(&fails);
        async move {
            // Not at its first poll, so that it becomes active.
            tokio::task::yield_now().await;
            match fails(ctx.incarnation()) {
                Some(result) => result,
                None => {
                    ctx.cancelled().await;
                    Ok(())
                }
            }
        }
    })
}

/// A child whose first failures request five seconds each, and whose backoff is a minute.
fn throttled(times: u32) -> ChildSpec {
    poller(move |incarnation| (incarnation <= times).then(|| refused(Some(secs(5)))))
        .backoff(Backoff::constant(secs(60)))
}

fn app() -> SupervisorBuilder {
    Supervisor::builder("app").restarts(1, secs(3_600))
}

async fn state(tree: &SupervisorHandle, path: &str) -> (Lifecycle, u32) {
    settle().await;
    let child = tree.which_child(path).await.unwrap();
    (child.lifecycle, child.incarnation)
}

/// Returns the restarts charged to the root's limit.
async fn charged(tree: &SupervisorHandle) -> usize {
    tree.status().await.unwrap().root.supervisor.unwrap().restarts_in_period
}

#[tokio::test(start_paused = true)]
async fn a_child_waits_for_the_delay_its_error_requests_and_status_shows_it() {
    let tree = start(app().child(throttled(1).retry_after(retry_after))).await;
    assert_eq!(state(&tree, "poller").await, (Lifecycle::Restarting, 1));
    sleep(secs(2)).await;
    let next = tree.which_child("poller").await.unwrap().next.unwrap();
    assert_eq!((next.attempt, next.delay, next.remaining), (1, secs(5), secs(3)));

    sleep(secs(3)).await;
    assert_eq!(state(&tree, "poller").await, (Lifecycle::Active, 2));
    assert_eq!(charged(&tree).await, 1, "the delay does not change the charge");
}

#[tokio::test(start_paused = true)]
async fn a_dynamic_child_waits_for_the_requested_delay() {
    let conns = DynamicSupervisor::builder("conns").build().unwrap().start().await.unwrap();
    let child = conns.start_child(throttled(1).retry_after(retry_after)).await.unwrap();
    assert_eq!(state(&conns, child.name()).await, (Lifecycle::Restarting, 1));
    sleep(secs(5)).await;
    assert_eq!(state(&conns, child.name()).await, (Lifecycle::Active, 2));
}

#[tokio::test(start_paused = true)]
async fn an_error_without_a_requested_delay_uses_the_backoff() {
    let answers = [None, Some(secs(5)), None];
    let fails = move |incarnation: u32| Some(refused(*answers.get(incarnation as usize - 1)?));
    let backoff = Backoff::linear(secs(60), secs(60), secs(600)).jitter(Jitter::None);
    let tree = Supervisor::builder("app").restarts(9, secs(3_600));
    let tree = start(tree.child(poller(fails).backoff(backoff).retry_after(retry_after))).await;
    let mut waits = Vec::new();
    for _ in answers {
        settle().await;
        let next = tree.which_child("poller").await.unwrap().next.unwrap();
        waits.push((next.attempt, next.delay));
        sleep(next.delay).await;
    }
    let expected = [(1, secs(60)), (2, secs(5)), (3, secs(120))];
    assert_eq!(waits, expected, "the backoff goes on where it was");
}

#[tokio::test(start_paused = true)]
async fn a_panicking_delay_function_uses_the_backoff_and_is_called_again() {
    let panics = |_: &TooMany| -> Option<Duration> { panic!("on purpose") };
    let tree = start(app().child(throttled(1).retry_after(panics))).await;
    settle().await;
    assert_eq!(tree.which_child("poller").await.unwrap().next.unwrap().delay, secs(60));

    let tree = start(app().child(throttled(1).retry_after(panics).retry_after(retry_after))).await;
    settle().await;
    assert_eq!(tree.which_child("poller").await.unwrap().next.unwrap().delay, secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_waits_for_the_delay_its_childs_error_requests() {
    let count = Arc::new(AtomicU32::new(0));
    let fails = {
        let count = Arc::clone(&count);
        move |_| (count.fetch_add(1, Relaxed) < 1).then(|| refused(Some(secs(5))))
    };
    let vendor = Supervisor::builder("vendor").restarts(0, secs(1)).child(poller(fails));
    let vendor = vendor.into_child().backoff(Backoff::constant(secs(60))).retry_after(retry_after);
    let tree = start(app().child(vendor)).await;
    assert_eq!(state(&tree, "vendor").await, (Lifecycle::Restarting, 1));
    sleep(secs(5)).await;
    assert_eq!(state(&tree, "vendor").await, (Lifecycle::Active, 2));
}

#[tokio::test(start_paused = true)]
async fn the_childs_delay_function_precedes_the_default() {
    let ten = |_: &TooMany| Some(secs(10));
    let nine = |_: &io::Error| Some(secs(9));
    for (spec, wait) in [
        (throttled(1), 10),
        (throttled(1).retry_after(retry_after), 5),
        (throttled(1).retry_after(nine), 10),
    ] {
        let tree = app().defaults(|child| child.retry_after(ten)).child(spec);
        let tree = start(tree).await;
        settle().await;
        assert_eq!(tree.which_child("poller").await.unwrap().next.unwrap().delay, secs(wait));
    }
}

#[tokio::test(start_paused = true)]
async fn a_requested_delay_can_be_cut_short_and_ends_at_a_stop() {
    let tree =
        start(app().child(throttled(1).retry_after(|_: &TooMany| Some(Duration::MAX)))).await;
    settle().await;
    tree.resume("poller").await.unwrap();
    assert_eq!(state(&tree, "poller").await, (Lifecycle::Active, 2));

    let tree =
        start(app().child(throttled(1).retry_after(|_: &TooMany| Some(Duration::MAX)))).await;
    settle().await;
    let before = Instant::now();
    tree.stop("done").await.unwrap();
    assert_eq!(before.elapsed(), Duration::ZERO);
}

/// A limit that a backoff makes unreachable can be reached with requested delays.
#[tokio::test]
async fn no_limit_is_reported_as_unreachable_where_errors_request_delays() {
    let app = || Supervisor::builder("app").restarts(9, secs(60));
    assert_eq!(app().child(throttled(0)).build().unwrap().warnings().len(), 1);
    assert_eq!(app().child(throttled(0).retry_after(retry_after)).build().unwrap().warnings(), []);
    let defaults = app().defaults(|child| child.retry_after(retry_after));
    assert_eq!(defaults.child(throttled(0)).build().unwrap().warnings(), []);
}

// --- Charging ------------------------------------------------------------------------------------

/// Any number of requested delays is allowed.
fn excepted(spec: ChildSpec) -> ChildSpec {
    spec.on_error(|_: &TooMany| true, OnExit::RestartUncharged)
}

#[tokio::test(start_paused = true)]
async fn an_uncharged_exit_uses_up_no_limit_of_the_supervisor() {
    let began = Instant::now();
    let tree = start(app().child(excepted(throttled(20).retry_after(retry_after)))).await;
    sleep(secs(100)).await;
    assert_eq!(state(&tree, "poller").await, (Lifecycle::Active, 21));
    assert_eq!((charged(&tree).await, began.elapsed()), (0, secs(100)));

    tree.kill("poller").await.unwrap();
    settle().await;
    assert_eq!(charged(&tree).await, 1, "other ends do");
}

#[tokio::test(start_paused = true)]
async fn an_uncharged_restart_of_a_dynamic_child_uses_up_no_limit() {
    let conns = DynamicSupervisor::builder("conns").restarts(1, secs(3_600));
    let conns = conns.build().unwrap().start().await.unwrap();
    let spec =
        throttled(3).retry_after(retry_after).on_exit(ExitKind::Failed, OnExit::RestartUncharged);
    let child = conns.start_child(spec).await.unwrap();
    sleep(secs(15)).await;
    assert_eq!(state(&conns, child.name()).await, (Lifecycle::Active, 4));
    assert_eq!(charged(&conns).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_restart_without_a_delay_is_charged_so_that_no_loop_is_endless() {
    let at_once = || excepted(throttled(u32::MAX));
    let limited = |max| Supervisor::builder("app").restarts(max, secs(3_600));
    let every_second = || at_once().backoff(Backoff::constant(secs(1)));
    let table = [
        (limited(2).child(at_once().backoff(Backoff::none())), 0),
        (limited(2).child(at_once().retry_after(|_: &TooMany| Some(Duration::ZERO))), 0),
        (limited(2).preset(Preset::otp()).child(every_second()), 2),
        (limited(0).child(every_second()), 0),
    ];
    for (tree, after) in table {
        let before = Instant::now();
        let ended = tree.build().unwrap().start().await.unwrap().wait().await;
        let Err(RunError::GaveUp { child, .. }) = ended else { panic!("{ended:?}") };
        assert_eq!((child.as_str(), before.elapsed()), ("app/poller", secs(after)));
    }
}

#[tokio::test(start_paused = true)]
async fn the_limits_of_the_child_itself_count_an_uncharged_restart() {
    let spec = excepted(throttled(9).retry_after(retry_after)).consecutive_restarts(2);
    let tree = start(app().child(spec)).await;
    let before = Instant::now();
    let ended = tree.wait().await;
    assert!(matches!(ended, Err(RunError::GaveUp { .. })), "{ended:?}");
    assert_eq!(before.elapsed(), secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_child_can_mark_its_own_restart_as_uncharged() {
    let spec = worker("poller", async |ctx: Context| -> Refused {
        tokio::task::yield_now().await;
        if ctx.incarnation() > 3 {
            ctx.cancelled().await;
            return Ok(());
        }
        let own = verger::policy::Trigger::from(RestartType::Transient)
            .on_error(|_: &TooMany| true, OnExit::RestartUncharged);
        ctx.set_restart_policy(Some(RestartPolicy::new().restart(own))).unwrap();
        refused(None)
    });
    let tree = start(app().child(spec.backoff(Backoff::constant(secs(1))))).await;
    sleep(secs(3)).await;
    assert_eq!(state(&tree, "poller").await, (Lifecycle::Active, 4));
    assert_eq!(charged(&tree).await, 0);
}
