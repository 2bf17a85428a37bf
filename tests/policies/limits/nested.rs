//! Supervisors below supervisors: default limits that are reached, and explicit ones that aren't.

use std::time::Duration;

use super::{MINUTE, secs};
use tokio::time::{Instant, sleep, timeout};
use verger::error::BuildWarning;
use verger::policy::{Jitter, OnExhausted};
use verger::{
    Backoff, ChildDefaults, ChildSpec, Context, DynamicSupervisor, Exit, RestartType, RunError,
    Supervisor, SupervisorBuilder, worker,
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
    // Twelve restarts of the worker, with delays of 0.2 to 25.6 s and four of 30 s.
    let wait = secs(171);
    // Three restarts of each supervisor. A child that is active for 30 s each time begins its backoff again.
    let waits = 3 * Duration::from_millis(200);
    // The last worker is the slowest one that still exceeds 12 in 5 min.
    for life in [Duration::ZERO, secs(1), (5 * MINUTE - wait) / 12] {
        let bottom = 13 * life + wait;
        let middle = 4 * bottom + waits;
        assert_eq!(gives_up(nested(failing(life), set)).await, 4 * middle + waits, "{life:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn status_shows_the_period_of_each_level() {
    let tree = nested(idle("worker"), |builder| builder).build().unwrap();
    assert_eq!(tree.warnings(), []);
    let status = tree.start().await.unwrap().status().await.unwrap();
    let top = &status.root;
    let middle = &top.children[0];
    let bottom = &middle.children[0];
    let worker = &bottom.children[0];
    let limits = [middle, bottom, worker].map(|node| {
        let limit = node.child.limit.as_ref().unwrap();
        (limit.max_restarts, limit.period.as_secs() / 60)
    });
    // The bottom one needs 325 s at most, and with jitter three delays are 1.68 s at most: 976.68 s. The middle
    // one needs 1,360 s at most: 4,081.68 s. Each period is rounded up to whole minutes.
    assert_eq!(limits, [(3, 69), (3, 17), (12, 5)]);
    assert_eq!(top.supervisor.as_ref().unwrap().max_restarts, None, "no limit is shared");
}

#[test]
fn an_explicit_limit_that_supervisors_below_cannot_exceed_in_time_is_warned_of() {
    let app = |limit: u32, period| {
        let bottom = Supervisor::builder("bottom").child(idle("worker")).defaults(exact);
        let middle = Supervisor::builder("middle").child(bottom).defaults(exact);
        Supervisor::builder("top").child(middle).defaults(exact).restarts(limit, period)
    };
    // The bottom one gives up after 55.2 s at the soonest, if its worker is healthy for 30 s in between, and the middle
    // one after 221.4 s.
    let warnings = |limit, period| app(limit, period).build().unwrap().warnings().to_vec();
    let [BuildWarning::UnreachableLimit { path, max, period, most }] = &*warnings(3, MINUTE) else {
        panic!("it is warned of")
    };
    assert_eq!((path.as_str(), *max, *period, *most), ("top", 3, MINUTE, 1));
    assert_eq!(warnings(0, MINUTE), []);
    let three = 3 * Duration::from_millis(221_400 + 200);
    assert_eq!(warnings(3, three), []);
    assert_eq!(warnings(3, three - Duration::from_nanos(1)).len(), 1);

    // A child's own limit, and a supervisor that can't give up either.
    let bottom = || Supervisor::builder("bottom").child(idle("worker")).defaults(exact);
    let app = Supervisor::builder("top").unlimited_restarts();
    let app = app.child(bottom().into_child().own_restarts(1, secs(6))).build().unwrap();
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
async fn a_default_supervisor_in_a_pool_is_removed_when_it_has_given_up_four_times() {
    let pool = DynamicSupervisor::builder("pool").defaults(exact).build().unwrap();
    let pool = pool.start().await.unwrap();
    let life = (5 * MINUTE - secs(171)) / 12;
    let below = Supervisor::builder("below").defaults(exact).child(failing(life));
    pool.start_child(below).await.unwrap();
    let limit = pool.child_spec("below#1").await.unwrap().intensity.unwrap();
    assert_eq!(limit.to_string(), "restarts(3, 17m)");
    sleep(secs(3_600)).await;
    assert!(pool.children().await.unwrap().is_empty());
}
