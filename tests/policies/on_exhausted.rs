//! What follows when a limit is exceeded.

use std::process::ExitCode;
use std::time::Duration;

use crate::common::{End, FakeChildren, NextStart, counts, settle, start};
use tokio::time::{Instant, advance, sleep};
use verger::policy::OnExhausted;
use verger::status::{ChildInfo, ChildKind, Event, EventKind, Subscription};
use verger::{
    Application, Backoff, BuildError, ChildDefaults, ChildSpec, Context, DynamicSupervisor,
    Lifecycle, RestartType, RunError, Strategy, Supervisor, SupervisorBuilder, SupervisorHandle,
    worker,
};

const MINUTE: Duration = Duration::from_secs(60);
const PAUSE: OnExhausted = OnExhausted::Pause(Duration::from_secs(15));

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A supervisor that restarts immediately, with a limit per minute.
fn app(max: u32) -> SupervisorBuilder {
    let at_once = |child: ChildDefaults| child.backoff(Backoff::none());
    Supervisor::builder("app").restarts(max, MINUTE).defaults(at_once)
}

fn abc(fakes: &FakeChildren, builder: SupervisorBuilder) -> SupervisorBuilder {
    ["a", "b", "c"].into_iter().fold(builder, |builder, name| builder.child(fakes.child(name)))
}

async fn seen(tree: &SupervisorHandle, name: &str) -> ChildInfo {
    tree.which_child(name).await.unwrap()
}

async fn lifecycles(tree: &SupervisorHandle) -> Vec<String> {
    let children = tree.children().await.unwrap();
    children.into_iter().map(|child| format!("{} {}", child.path.name(), child.lifecycle)).collect()
}

/// Returns the events other than transitions, each with its child.
fn limit_events(events: &mut Subscription<Event>) -> Vec<String> {
    let mut texts = Vec::new();
    while let Some(Event { path, kind, .. }) = events.try_next() {
        let name = path.name();
        match kind {
            EventKind::GaveUp { reason } => texts.push(format!("{name} given up: {reason}")),
            EventKind::FellBack { reason } => texts.push(format!("{name} fell back: {reason}")),
            EventKind::Paused { reason, length } => {
                texts.push(format!("{name} pauses for {length:?}: {reason}"));
            }
            _ => {}
        }
    }
    texts
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_given_up_stops_with_its_range_and_its_other_siblings_run() {
    let table = [
        (Strategy::OneForOne, ["a active", "b stopped", "c active"]),
        (Strategy::RestForOne, ["a active", "b stopped", "c stopped"]),
        (Strategy::OneForAll, ["a stopped", "b stopped", "c stopped"]),
    ];
    for (strategy, expected) in table {
        let fakes = FakeChildren::new();
        let builder = app(0).strategy(strategy).on_exhausted(OnExhausted::StopChild);
        let tree = start(abc(&fakes, builder)).await;
        let mut events = tree.events();
        fakes.end("b", End::Error).await;

        assert_eq!(lifecycles(&tree).await, expected, "{strategy}");
        assert_eq!(seen(&tree, "b").await.why, Some("given up"));
        assert_eq!(limit_events(&mut events), ["b given up: failed: b failed"]);
        advance(secs(3600)).await;
        settle().await;
        assert_eq!(lifecycles(&tree).await, expected, "{strategy}: and it stays so");

        tree.resume("b").await.unwrap();
        settle().await;
        let all = ["a active", "b active", "c active"];
        assert_eq!(lifecycles(&tree).await, all, "{strategy}: the range comes back");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_clears_the_limits_and_is_not_charged() {
    for what in [OnExhausted::Park, OnExhausted::StopChild] {
        let fakes = FakeChildren::new();
        let child =
            fakes.child("a").own_restarts(1, MINUTE).consecutive_restarts(1).on_exhausted(what);
        let tree = start(app(1).child(child)).await;
        for _ in 0..3 {
            fakes.end("a", End::Error).await;
            assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Active, "{what}");
            fakes.end("a", End::Error).await;
            assert_eq!(seen(&tree, "a").await.why, Some("given up"), "{what}");
            tree.resume("a").await.unwrap();
            let supervisor = tree.status().await.unwrap().root.supervisor.unwrap();
            assert_eq!(supervisor.restarts_in_period, 0, "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_dynamic_child_that_is_stopped_is_kept_for_a_retry() {
    let fakes = FakeChildren::new();
    let pool = DynamicSupervisor::builder("app").restarts(0, MINUTE);
    let pool = pool.on_exhausted(OnExhausted::StopChild).build().unwrap();
    let tree = pool.start().await.unwrap();
    tree.start_child(fakes.child("a")).await.unwrap();
    fakes.end("a", End::Error).await;
    let child = seen(&tree, "a#1").await;
    assert_eq!((child.lifecycle, child.why), (Lifecycle::Stopped, Some("given up")));
    tree.resume("a#1").await.unwrap();
    assert_eq!(seen(&tree, "a#1").await.lifecycle, Lifecycle::Active);
}

#[tokio::test(start_paused = true)]
async fn a_childs_setting_wins_over_the_defaults_and_the_defaults_over_the_supervisor() {
    let defaults = |child: ChildDefaults| child.on_exhausted(OnExhausted::StopChild);
    let fakes = FakeChildren::new();
    let tree = app(0).on_exhausted(OnExhausted::Escalate).defaults(defaults);
    let tree = tree.child(fakes.child("a")).child(fakes.child("b").on_exhausted(OnExhausted::Park));
    let tree = start(tree).await;
    fakes.end("a", End::Error).await;
    fakes.end("b", End::Error).await;
    assert_eq!(lifecycles(&tree).await, ["a stopped", "b errored"]);
}

#[tokio::test(start_paused = true)]
async fn seed3_27_an_escalation_climbs_one_supervisor_at_a_time() {
    let fakes = FakeChildren::new();
    let leaf = fakes.child("leaf");
    let mid = app(0).child(leaf).into_child().named("mid");
    let tree = start(app(0).child(mid).on_exhausted(OnExhausted::Park)).await;
    let mut events = tree.events();
    fakes.end("leaf", End::Error).await;

    let child = seen(&tree, "mid").await;
    assert_eq!(child.lifecycle, Lifecycle::Errored);
    let reason = child.last_exit.unwrap().reason;
    assert_eq!(
        reason.to_string(),
        "escalated: child app/mid/leaf: failed: leaf failed",
        "the child is named at each level"
    );
    assert_eq!(
        limit_events(&mut events),
        [
            "leaf given up: failed: leaf failed",
            "mid given up: escalated: child app/mid/leaf: failed: leaf failed",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn seed3_28_a_failure_that_reaches_the_root_waits_for_a_manual_retry() {
    let fakes = FakeChildren::new();
    let mid = app(0).child(fakes.child("leaf")).into_child().named("mid");
    let tree = start(app(0).child(mid).on_exhausted(OnExhausted::Park)).await;
    fakes.end("leaf", End::Error).await;
    let starts = fakes.actions();
    advance(Duration::from_secs(365 * 24 * 3600)).await;
    settle().await;
    assert_eq!(seen(&tree, "mid").await.lifecycle, Lifecycle::Errored);
    assert_eq!((starts.len(), fakes.actions()), (2, vec![]), "nothing by itself");

    tree.resume("mid").await.unwrap();
    assert_eq!(seen(&tree, "mid").await.lifecycle, Lifecycle::Active);
    assert_eq!(fakes.actions(), ["start leaf"]);
}

#[tokio::test(start_paused = true)]
async fn all_limits_are_reset_after_a_pause() {
    let fakes = FakeChildren::new();
    let tree = start(app(2).on_exhausted(PAUSE).child(fakes.child("a"))).await;
    let mut events = tree.events();
    for _ in 0..2 {
        for _ in 0..2 {
            fakes.end("a", End::Error).await;
            assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Active);
        }
        let failed = Instant::now();
        fakes.end("a", End::Error).await;
        let child = seen(&tree, "a").await;
        let next = child.next.unwrap();
        assert_eq!(child.lifecycle, Lifecycle::Restarting);
        assert_eq!((next.delay, next.remaining), (secs(15), secs(15)));
        assert_eq!(limit_events(&mut events), ["a pauses for 15s: failed: a failed"]);

        sleep(secs(15) - Duration::from_millis(1)).await;
        settle().await;
        assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Restarting);
        sleep(Duration::from_millis(1)).await;
        settle().await;
        assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Active);
        assert_eq!(failed.elapsed(), secs(15));
        let supervisor = tree.status().await.unwrap().root.supervisor.unwrap();
        assert_eq!(supervisor.restarts_in_period, 0, "uncharged");
    }
}

#[tokio::test(start_paused = true)]
async fn a_sibling_that_fails_in_a_pause_waits_for_its_end_and_is_not_counted() {
    let fakes = FakeChildren::new();
    let tree = start(abc(&fakes, app(1).on_exhausted(PAUSE))).await;
    fakes.end("a", End::Error).await;
    fakes.end("a", End::Error).await;
    sleep(secs(5)).await;
    fakes.end("b", End::Error).await;

    let next = seen(&tree, "b").await.next.unwrap();
    assert_eq!((next.delay, next.remaining), (secs(10), secs(10)));
    assert_eq!(lifecycles(&tree).await, ["a restarting", "b restarting", "c active"]);
    sleep(secs(10)).await;
    settle().await;
    assert_eq!(lifecycles(&tree).await, ["a active", "b active", "c active"]);
    let supervisor = tree.status().await.unwrap().root.supervisor.unwrap();
    assert_eq!(supervisor.restarts_in_period, 0);

    // After the pause, failures count again.
    fakes.end("b", End::Error).await;
    assert_eq!(seen(&tree, "b").await.lifecycle, Lifecycle::Active);
    fakes.end("c", End::Error).await;
    assert_eq!(seen(&tree, "c").await.lifecycle, Lifecycle::Restarting);
}

#[tokio::test(start_paused = true)]
async fn a_group_pauses_together() {
    let fakes = FakeChildren::new();
    let builder = app(0).strategy(Strategy::RestForOne).on_exhausted(PAUSE);
    let tree = start(abc(&fakes, builder)).await;
    fakes.log();
    fakes.end("b", End::Error).await;
    assert_eq!(lifecycles(&tree).await, ["a active", "b restarting", "c stopped"]);
    assert_eq!(fakes.actions(), ["end b", "stop c"]);

    sleep(secs(5)).await;
    fakes.end("a", End::Error).await;
    assert_eq!(lifecycles(&tree).await, ["a restarting", "b stopped", "c stopped"]);
    sleep(secs(10)).await;
    settle().await;
    assert_eq!(fakes.actions(), ["end a", "start a", "start b", "start c"]);
}

#[tokio::test(start_paused = true)]
async fn a_pause_for_a_childs_own_limit_affects_only_that_child() {
    let fakes = FakeChildren::new();
    let a = fakes.child("a").consecutive_restarts(1).on_exhausted(PAUSE);
    let tree = start(app(3).child(a).child(fakes.child("b"))).await;
    fakes.end("a", End::Error).await;
    fakes.end("a", End::Error).await;
    fakes.end("b", End::Error).await;
    assert_eq!(lifecycles(&tree).await, ["a restarting", "b active"]);
    let supervisor = tree.status().await.unwrap().root.supervisor.unwrap();
    assert_eq!(supervisor.restarts_in_period, 2, "one of each");

    sleep(secs(15)).await;
    settle().await;
    fakes.end("a", End::Error).await;
    assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Active, "it counts from none");
}

#[tokio::test(start_paused = true)]
async fn a_manual_retry_and_a_stop_cut_a_pause_short() {
    let fakes = FakeChildren::new();
    let tree = start(app(0).on_exhausted(PAUSE).child(fakes.child("a"))).await;
    fakes.end("a", End::Error).await;
    tree.resume("a").await.unwrap();
    settle().await;
    assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Active);

    fakes.end("a", End::Error).await;
    let began = Instant::now();
    tree.stop("the test is over").await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(fakes.actions(), ["start a", "end a", "start a", "end a"]);
}

#[tokio::test(start_paused = true)]
async fn a_dynamic_supervisor_pauses_too() {
    let fakes = FakeChildren::new();
    let pool = DynamicSupervisor::builder("app").restarts(0, MINUTE).on_exhausted(PAUSE);
    // Jitter would make the pause longer.
    let pool = pool.defaults(|child| child.backoff(Backoff::none()));
    let tree = pool.build().unwrap().start().await.unwrap();
    for name in ["a", "b"] {
        tree.start_child(fakes.child(name)).await.unwrap();
    }
    fakes.end("a", End::Error).await;
    sleep(secs(5)).await;
    fakes.end("b", End::Error).await;
    assert_eq!(lifecycles(&tree).await, ["a#1 restarting", "b#2 restarting"]);
    sleep(secs(10)).await;
    settle().await;
    assert_eq!(lifecycles(&tree).await, ["a#1 active", "b#2 active"]);
}

fn exit_code(code: ExitCode) -> String {
    format!("{code:?}")
}

/// An application that doesn't end the process.
fn application(tree: SupervisorBuilder) -> Application {
    Application::new(tree).listen_to_signals(false).exit_grace(Duration::MAX)
}

/// The exit of the child makes no difference: one fails, one ends normally.
#[tokio::test(start_paused = true)]
async fn kin_83_the_program_ends_with_the_code_that_was_set_and_not_by_how_the_child_ended() {
    for end in [End::Error, End::Normal, End::Panic] {
        for code in [0, 3] {
            let fakes = FakeChildren::new();
            let builder = app(0).child(fakes.child("a")).on_exhausted(OnExhausted::Exit(code));
            let run = tokio::spawn(application(builder).run());
            settle().await;
            fakes.end("a", end).await;
            let ended = exit_code(run.await.unwrap());
            assert_eq!(ended, exit_code(ExitCode::from(code)), "{end:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_exit_stops_the_children_in_order_and_is_an_error_unless_it_is_0() {
    for code in [0, 3] {
        let fakes = FakeChildren::new();
        let builder = abc(&fakes, app(0).on_exhausted(OnExhausted::Exit(code)));
        let tree = start(builder).await;
        fakes.log();
        fakes.end("b", End::Error).await;
        assert_eq!(fakes.actions(), ["end b", "stop c", "stop a"]);

        let Err(error) = tree.wait().await else {
            assert_eq!(code, 0);
            continue;
        };
        assert_eq!((code, error.exit_code()), (3, 3));
        assert_eq!(
            error.to_string(),
            "`app` ended the program with code 3 because of `app/b`: failed: b failed"
        );
        assert!(matches!(error, RunError::Exited { code: 3, .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn an_exit_goes_through_every_supervisor_whatever_its_policies_are() {
    let fakes = FakeChildren::new();
    let inner = app(0).child(fakes.child("leaf")).on_exhausted(OnExhausted::Exit(4));
    let inner = inner.into_child().named("inner").restart(RestartType::Temporary);
    let mid = app(100).child(fakes.child("before")).child(inner).child(fakes.child("beside"));
    let mid = mid.on_exhausted(OnExhausted::Park).into_child().named("mid");
    let fallback = fakes.child("instead");
    let root = Supervisor::builder("app").unlimited_restarts().strategy(Strategy::OneForAll);
    let tree = start(root.child(mid.fallback(fallback)).child(fakes.child("other"))).await;
    fakes.log();
    let mut events = tree.events();
    fakes.end("leaf", End::Error).await;

    assert_eq!(fakes.actions(), ["end leaf", "stop beside", "stop before", "stop other"]);
    let RunError::Exited { path, code, child, reason, .. } = tree.wait().await.unwrap_err() else {
        panic!("it ended otherwise")
    };
    assert_eq!((path.as_str(), code, child.as_str()), ("app", 4, "app/mid/inner/leaf"));
    assert_eq!(reason.to_string(), "failed: leaf failed");
    let mut ends = Vec::new();
    while let Some(event) = events.next().await {
        if let EventKind::Moved { reason: Some(reason), .. } = event.kind
            && reason.kind() == "exit"
        {
            ends.push(format!("{}: {reason}", event.path));
        }
    }
    assert_eq!(
        ends,
        [
            "app/mid/inner: exit 4: child app/mid/inner/leaf: failed: leaf failed",
            "app/mid: exit 4: child app/mid/inner/leaf: failed: leaf failed",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_exit_during_the_first_start_ends_the_program() {
    let fakes = FakeChildren::new();
    fakes.next_starts("a", [NextStart::Error]);
    let builder = app(0).child(fakes.child("a")).on_exhausted(OnExhausted::Exit(9));
    let code = application(builder).run().await;
    assert_eq!(exit_code(code), exit_code(ExitCode::from(9)));
}

#[tokio::test(start_paused = true)]
async fn an_exit_of_a_dynamic_supervisor_ends_the_one_above() {
    let fakes = FakeChildren::new();
    let pool = DynamicSupervisor::builder("pool").restarts(0, MINUTE);
    let pool = pool.on_exhausted(OnExhausted::Exit(5));
    let tree = start(app(9).child(pool).child(fakes.child("other"))).await;
    tree.start_child_below(&fakes).await;
    fakes.end("a", End::Error).await;
    let RunError::Exited { code: 5, child, .. } = tree.wait().await.unwrap_err() else {
        panic!("it ended otherwise")
    };
    assert_eq!(child.as_str(), "app/pool/a#1");
}

trait StartBelow {
    async fn start_child_below(&self, fakes: &FakeChildren);
}

impl StartBelow for SupervisorHandle {
    async fn start_child_below(&self, fakes: &FakeChildren) {
        let pool = self.supervisor("pool").await.unwrap();
        pool.start_child(fakes.child("a")).await.unwrap();
    }
}

#[test]
fn a_pause_of_zero_is_refused() {
    let none = OnExhausted::Pause(Duration::ZERO);
    let idle = || worker("a", async |ctx: Context| ctx.cancelled().await);
    let error = app(1).child(idle().on_exhausted(none)).build().unwrap_err();
    assert_eq!(error.to_string(), "the pause of `app/a` is zero; write a duration such as `15s`");
    let error = app(1).on_exhausted(none).build().unwrap_err();
    assert_eq!(error.to_string(), "the pause of `app` is zero; write a duration such as `15s`");
}

fn with_fallback(fakes: &FakeChildren) -> ChildSpec {
    let fallback = fakes.child("simple").consecutive_restarts(1).on_exhausted(OnExhausted::Park);
    fakes.child("usual").consecutive_restarts(1).fallback(fallback.backoff(Backoff::none()))
}

#[tokio::test(start_paused = true)]
async fn seed2_22_a_fallback_replaces_a_child_that_failed_too_often() {
    let fakes = FakeChildren::new();
    let tree = start(app(9).child(with_fallback(&fakes)).child(fakes.child("other"))).await;
    let mut events = tree.events();
    fakes.end("usual", End::Error).await;
    assert_eq!(seen(&tree, "usual").await.why, None, "one restart it has");
    fakes.end("usual", End::Error).await;

    let child = seen(&tree, "usual").await;
    assert_eq!((child.lifecycle, child.why), (Lifecycle::Active, Some("fallback")));
    assert_eq!((child.incarnation, child.next), (3, None));
    assert_eq!(limit_events(&mut events), ["usual fell back: failed: usual failed"]);
    let supervisor = tree.status().await.unwrap().root.supervisor.unwrap();
    assert_eq!(supervisor.restarts_in_period, 1, "the fallback is not charged");
    assert_eq!(
        fakes.actions(),
        ["start usual", "start other", "end usual", "start usual", "end usual", "start simple"]
    );

    // It has its own limits, which start from zero, and then it is given up.
    fakes.end("simple", End::Error).await;
    assert_eq!(seen(&tree, "usual").await.lifecycle, Lifecycle::Active);
    fakes.end("simple", End::Error).await;
    let child = seen(&tree, "usual").await;
    assert_eq!((child.lifecycle, child.why), (Lifecycle::Errored, Some("given up")));
    assert_eq!(limit_events(&mut events), ["usual given up: failed: simple failed"]);
    tree.resume("usual").await.unwrap();
    assert_eq!(seen(&tree, "usual").await.why, Some("fallback"));
}

#[tokio::test(start_paused = true)]
async fn a_fallback_also_follows_on_the_limit_of_the_supervisor() {
    let fakes = FakeChildren::new();
    let child = fakes.child("usual").fallback(fakes.child("simple"));
    let tree = start(app(0).child(child)).await;
    fakes.end("usual", End::Error).await;
    assert_eq!(seen(&tree, "usual").await.why, Some("fallback"));
    fakes.end("simple", End::Error).await;
    assert!(matches!(tree.wait().await, Err(RunError::GaveUp { .. })), "what all say follows");
}

#[tokio::test(start_paused = true)]
async fn a_fallback_takes_the_childs_position_and_starts_with_its_range() {
    let fakes = FakeChildren::new();
    let b = fakes.child("b").consecutive_restarts(0).fallback(fakes.child("simple"));
    let builder = app(9).strategy(Strategy::RestForOne).child(fakes.child("a")).child(b);
    let tree = start(builder.child(fakes.child("c").requires("b"))).await;
    fakes.log();
    fakes.end("b", End::Error).await;
    assert_eq!(fakes.actions(), ["end b", "stop c", "start simple", "start c"]);
    assert_eq!(lifecycles(&tree).await, ["a active", "b active", "c active"]);
    tree.stop("the test is over").await.unwrap();
    assert_eq!(fakes.actions(), ["stop c", "stop simple", "stop a"]);
}

#[tokio::test(start_paused = true)]
async fn a_fallback_of_a_fallback_follows_it() {
    let fakes = FakeChildren::new();
    let last = fakes.child("third");
    let second = fakes.child("second").consecutive_restarts(0).fallback(last);
    let first = fakes.child("first").consecutive_restarts(0).fallback(second);
    let tree = start(app(9).child(first)).await;
    fakes.end("first", End::Error).await;
    fakes.end("second", End::Error).await;
    assert_eq!(
        fakes.actions(),
        ["start first", "end first", "start second", "end second", "start third"]
    );
    assert_eq!(seen(&tree, "first").await.lifecycle, Lifecycle::Active);
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_can_be_a_fallback_and_can_have_one() {
    let fakes = FakeChildren::new();
    let inner = app(0).child(fakes.child("leaf")).into_child();
    let inner = inner.consecutive_restarts(0).fallback(fakes.child("last"));
    let child = fakes.child("node").consecutive_restarts(0).fallback(inner);
    let tree = start(app(9).child(child)).await;
    assert_eq!(counts(&tree).await, [1, 1, 0, 1]);

    fakes.end("node", End::Error).await;
    let node = seen(&tree, "node").await;
    assert_eq!((node.kind, node.why), (ChildKind::Supervisor, Some("fallback")));
    assert_eq!(counts(&tree).await, [1, 1, 1, 0]);
    assert_eq!(seen(&tree, "node/leaf").await.lifecycle, Lifecycle::Active);

    fakes.end("leaf", End::Error).await;
    assert_eq!(seen(&tree, "node").await.kind, ChildKind::Worker);
    assert_eq!(counts(&tree).await, [1, 1, 0, 1]);
    tree.stop("the test is over").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_dynamic_child_has_a_fallback_under_its_own_name() {
    let fakes = FakeChildren::new();
    let pool = DynamicSupervisor::builder("app").build().unwrap();
    let tree = pool.start().await.unwrap();
    let child = fakes.child("job").consecutive_restarts(0).fallback(fakes.child("simple"));
    tree.start_child(child).await.unwrap();
    fakes.end("job", End::Error).await;
    let child = seen(&tree, "job#1").await;
    assert_eq!((child.lifecycle, child.why), (Lifecycle::Active, Some("fallback")));
    tree.stop_child("job#1").await.unwrap();
    assert_eq!(counts(&tree).await, [0; 4]);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_child_returns_without_its_fallback() {
    let fakes = FakeChildren::new();
    let tree = start(app(9).child(with_fallback(&fakes))).await;
    for _ in 0..2 {
        fakes.end("usual", End::Error).await;
    }
    tree.stop_child("usual").await.unwrap();
    tree.otp().delete_child("usual").await.unwrap();
    fakes.log();
    tree.start_child(with_fallback(&fakes)).await.unwrap();
    assert_eq!(seen(&tree, "usual").await.why, None);
    assert_eq!(fakes.actions(), ["start usual"]);
}

#[test]
fn a_fallback_has_no_requirements_and_cannot_be_wrong_either() {
    let idle = |name| worker(name, async |ctx: Context| ctx.cancelled().await);
    let error = |fallback: ChildSpec| {
        let builder = app(1).child(idle("db")).child(idle("a").fallback(fallback));
        builder.build().unwrap_err()
    };
    let requires = error(idle("b").requires("db"));
    assert!(matches!(requires, BuildError::FallbackRequires { .. }));
    assert_eq!(
        requires.to_string(),
        "the fallback of `app/a` requires `db`, but a fallback has the requirements of the child \
         that it replaces; write `requires(\"db\")` on that child instead"
    );
    let zero = error(idle("b").activation_timeout(Duration::ZERO));
    assert!(matches!(zero, BuildError::ZeroDuration { .. }));
    let twice = error(idle("b").consecutive_restarts(1).consecutive_restarts(2));
    assert!(matches!(twice, BuildError::SetTwice { .. }));
    let forgiving = Backoff::constant(secs(1)).reset_after(Duration::ZERO);
    let endless = Supervisor::builder("app").unlimited_restarts();
    let endless = endless.child(idle("a").fallback(idle("b").backoff(forgiving))).build();
    assert!(matches!(endless, Err(BuildError::EndlessRestarts { .. })));
    let permanent = error(idle("b").significant());
    assert!(matches!(permanent, BuildError::SignificantPermanent { .. }));
}
