//! Supervisors below supervisors: default limits that are reached, and explicit ones that aren't.

use std::time::Duration;

use super::{MINUTE, secs};
use tokio::time::{Instant, sleep, timeout};
use verger::policy::{Jitter, OnExhausted};
use verger::{
    Backoff, BuildWarning, ChildDefaults, ChildSpec, Context, DynamicSupervisor, Exit, RestartType,
    RunError, Supervisor, SupervisorBuilder, worker,
};

/// A worker that fails each time when it has been active for so long.
fn failing(life: Duration) -> ChildSpec {
    worker("worker", move |_ctx: Context| async move {
        if !life.is_zero() {
            sleep(life).await;
        }
        Exit::Err("always".into())
    })
}

/// Removes the jitter of the default backoff, so that times are exact.
fn exact(child: ChildDefaults) -> ChildDefaults {
    child.backoff(Backoff::exponential(Duration::from_millis(200), secs(30)).jitter(Jitter::None))
}

fn idle(name: &str) -> ChildSpec {
    worker(name, async |ctx: Context| ctx.cancelled().await)
}

fn nested(worker: ChildSpec, set: fn(SupervisorBuilder) -> SupervisorBuilder) -> SupervisorBuilder {
    let bottom = set(Supervisor::builder("bottom").child(worker));
    let middle = set(Supervisor::builder("middle").child(bottom));
    set(Supervisor::builder("top").child(middle))
}

/// Returns after which time the tree gives up.
async fn gives_up(tree: SupervisorBuilder) -> Duration {
    let started = Instant::now();
    let month = secs(30 * 24 * 3_600);
    let ended = timeout(month, tree.build().unwrap().run()).await.expect("it gives up");
    assert!(matches!(ended, Err(RunError::GaveUp { .. })), "{ended:?}");
    started.elapsed()
}

#[tokio::test(start_paused = true)]
async fn three_nested_default_supervisors_give_up() {
    let set = |builder: SupervisorBuilder| builder.defaults(exact);
    // Five restarts of each level, with delays of 0.2 to 3.2 s: 6.2 s in sum.
    let wait = Duration::from_millis(6_200);
    // A child that is active for 30 s each time begins its backoff again.
    let waits = 5 * Duration::from_millis(200);
    let bottom = wait;
    let middle = 6 * bottom + wait;
    assert_eq!(gives_up(nested(failing(Duration::ZERO), set)).await, 6 * middle + waits);
    let bottom = 6 * secs(1) + wait;
    let middle = 6 * bottom + wait;
    assert_eq!(gives_up(nested(failing(secs(1)), set)).await, 6 * middle + waits);
    // The slowest worker that still exceeds the limit of 5 in 60 s.
    let life = (MINUTE - wait) / 5;
    let bottom = 6 * life + wait;
    let middle = 6 * bottom + waits;
    assert_eq!(gives_up(nested(failing(life), set)).await, 6 * middle + waits);
}

#[tokio::test(start_paused = true)]
async fn status_shows_the_period_of_each_level() {
    let tree = nested(idle("worker"), |builder| builder).build().unwrap();
    assert_eq!(tree.warnings(), []);
    let status = tree.start().await.unwrap().status().await.unwrap();
    let top = &status.root;
    let middle = &top.children[0];
    let bottom = &middle.children[0];
    let periods =
        [top, middle, bottom].map(|node| node.supervisor.as_ref().unwrap().period.as_secs());
    // The bottom one needs 72 s at most, and with jitter five delays are 7.44 s at most: 367.44 s. The
    // middle one needs 504 s at most: 2,527.44 s. Each period is rounded up to whole minutes.
    assert_eq!(periods, [43 * 60, 7 * 60, 60]);
}

#[test]
fn an_explicit_limit_that_supervisors_below_cannot_exceed_in_time_is_warned_of() {
    let app = |limit: u32, period| {
        let bottom = Supervisor::builder("bottom").child(idle("worker")).defaults(exact);
        let middle = Supervisor::builder("middle").child(bottom).defaults(exact);
        Supervisor::builder("top").child(middle).defaults(exact).restarts(limit, period)
    };
    // The middle one gives up after 43.4 s at the soonest.
    let warnings = |limit, period| app(limit, period).build().unwrap().warnings().to_vec();
    let [BuildWarning::UnreachableLimit { path, max, period, most }] = &*warnings(3, MINUTE) else {
        panic!("it is warned of")
    };
    assert_eq!((path.as_str(), *max, *period, *most), ("top", 3, MINUTE, 2));
    assert_eq!(warnings(1, MINUTE), []);
    let three = 3 * Duration::from_millis(43_400 + 200);
    assert_eq!(warnings(3, three), []);
    assert_eq!(warnings(3, three - Duration::from_nanos(1)).len(), 1);

    // A child's own limit, and a supervisor that can't give up either.
    let bottom = || Supervisor::builder("bottom").child(idle("worker")).defaults(exact);
    let app = Supervisor::builder("top").unlimited_restarts();
    let app = app.child(bottom().into_child().restarts(1, secs(6))).build().unwrap();
    let [BuildWarning::UnreachableLimit { path, most: 1, .. }] = app.warnings() else {
        panic!("{:?}", app.warnings())
    };
    assert_eq!(path.as_str(), "top/bottom");
    let never = Supervisor::builder("top").child(bottom().restarts(5, secs(6))).restarts(0, MINUTE);
    let paths: Vec<_> = never.build().unwrap().warnings().iter().map(ToString::to_string).collect();
    assert_eq!(paths.len(), 2, "{paths:?}");
}

#[test]
fn a_supervisor_that_may_fail_in_other_ways_is_not_warned_of() {
    let bottom = || Supervisor::builder("bottom").child(idle("worker"));
    let limited = |bottom: SupervisorBuilder| {
        let app = Supervisor::builder("top").restarts(1, secs(1)).child(bottom);
        app.build().unwrap().warnings().to_vec()
    };
    assert_eq!(limited(bottom()).len(), 1);
    assert_eq!(limited(bottom().defaults(|child| child.consecutive_restarts(0))), []);
    assert_eq!(limited(bottom().on_child_failure(|_| false)), []);
    assert_eq!(limited(bottom().child(idle("stop").restart(RestartType::OnStop))), []);
    assert_eq!(limited(bottom().on_exhausted(OnExhausted::Park)), []);
    let pool = DynamicSupervisor::builder("pool").restarts(3, secs(1));
    let app = Supervisor::builder("top").restarts(1, secs(1)).child(pool).build().unwrap();
    assert_eq!(app.warnings(), []);
}

#[tokio::test(start_paused = true)]
async fn a_default_supervisor_in_a_pool_is_removed_when_it_has_given_up_five_times() {
    let pool = DynamicSupervisor::builder("pool").defaults(exact).build().unwrap();
    let pool = pool.start().await.unwrap();
    let life = (MINUTE - Duration::from_millis(6_200)) / 5;
    let below = Supervisor::builder("below").defaults(exact).child(failing(life));
    pool.start_child(below).await.unwrap();
    let limit = pool.child_spec("below#1").await.unwrap().intensity.unwrap();
    assert_eq!(limit.to_string(), "restarts(5, 7m)");
    sleep(secs(3_600)).await;
    assert!(pool.which_children().await.unwrap().is_empty());
}
