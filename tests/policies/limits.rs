//! Restart limits of supervisors and children.

use std::time::Duration;

use crate::common::{End, FakeChildren, NextStart, settle, start};
use tokio::time::{Instant, advance};
use verger::policy::{Intensity, OnExhausted, Preset};
use verger::status::{ChildInfo, EventKind};
use verger::{
    Backoff, BuildError, BuildWarning, Child, ChildDefaults, ChildSpec, Context, ControlError,
    DynamicSupervisor, Exit, Lifecycle, RestartType, RunError, Supervisor, SupervisorBuilder,
    SupervisorHandle, async_trait, child, worker,
};

const MINUTE: Duration = Duration::from_secs(60);
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A supervisor that restarts immediately and without a limit of its own.
fn patient() -> SupervisorBuilder {
    let at_once = |child: ChildDefaults| child.backoff(Backoff::none());
    Supervisor::builder("app").unlimited_restarts().defaults(at_once)
}

async fn seen(tree: &SupervisorHandle, name: &str) -> ChildInfo {
    tree.which_child(name).await.unwrap()
}

/// Fails the child, and returns whether it is up again without any time passing.
async fn comes_back(tree: &SupervisorHandle, fakes: &FakeChildren, name: &str) -> bool {
    fakes.end(name, End::Error).await;
    seen(tree, name).await.lifecycle == Lifecycle::Active
}

#[tokio::test(start_paused = true)]
async fn seed0_1_ten_restarts_a_minute_are_granted_and_the_eleventh_stops_the_child() {
    let fakes = FakeChildren::new();
    let flaky = fakes.child("flaky").restarts(10, MINUTE).on_exhausted(OnExhausted::StopChild);
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
        let flaky = fakes.child("flaky").restarts(10, MINUTE);
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
            tree.restart_child("flaky").await.unwrap();
        }

        advance(ms(1)).await;
        for restart in 1..=10 {
            assert!(comes_back(&tree, &fakes, "flaky").await, "restart {restart}");
        }
        assert!(!comes_back(&tree, &fakes, "flaky").await, "and not the eleventh");
    }
}

#[tokio::test(start_paused = true)]
async fn seed0_52_one_child_has_a_limit_that_counts_and_a_backoff_that_waits() {
    let fakes = FakeChildren::new();
    let child = fakes.child("broker").restarts(2, MINUTE).on_exhausted(OnExhausted::Park);
    let backoff = Backoff::exponential(secs(1), secs(8)).reset_after(secs(30));
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
        let child = fakes.child("broker").restarts(max, Duration::MAX).backoff(backoff);
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
async fn seed2_24_without_a_limit_a_child_is_retried_for_ever_and_with_a_limit_it_is_not() {
    let fakes = FakeChildren::new();
    let limited = fakes.child("limited").restarts(3, YEAR).on_exhausted(OnExhausted::Park);
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
    let tree = start(patient().child(fakes.child("plugin").restarts(2, MINUTE))).await;
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
        child.backoff(Backoff::none()).restarts(1, MINUTE).on_exhausted(OnExhausted::Park)
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

#[test]
fn seed4_37_a_backoff_that_resets_at_once_needs_a_limit_per_time() {
    let forgiving = || Backoff::exponential(ms(200), secs(10)).reset_after(Duration::ZERO);
    let idle = || worker("a", async |ctx: Context| ctx.cancelled().await).backoff(forgiving());

    let error = patient().child(idle().consecutive_restarts(3)).build().unwrap_err();
    let BuildError::EndlessRestarts { path } = &error else { panic!("{error}") };
    assert_eq!(path.as_str(), "app/a");
    assert_eq!(
        error.to_string(),
        "the backoff of `app/a` resets as soon as the child is active, and no intensity limits \
         its restarts, so a child that always fails is restarted forever; write a `reset_after` \
         above zero, or limit its restarts with `restarts(5, Duration::from_secs(60))`"
    );

    assert!(patient().child(idle().restarts(5, MINUTE)).build().is_ok(), "its own limit");
    assert!(Supervisor::builder("app").child(idle()).build().is_ok(), "the one of all");
    // A child that was never active isn't reset, so it can't evade the limit.
    let signals = idle().readiness(verger::Readiness::Signal);
    assert!(patient().child(signals.consecutive_restarts(3)).build().is_err());
}

#[tokio::test(start_paused = true)]
async fn seed4_37_a_child_whose_backoff_resets_at_once_ends_by_the_limit_per_time() {
    let fakes = FakeChildren::new();
    let backoff = Backoff::constant(ms(100)).reset_after(Duration::ZERO);
    let child = fakes.child("a").backoff(backoff).restarts(3, MINUTE);
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
async fn a_dynamic_child_without_any_limit_is_refused_when_it_is_added() {
    let pool = DynamicSupervisor::builder("app").unlimited_restarts().build().unwrap();
    let tree = pool.start().await.unwrap();
    let idle = worker("a", async |ctx: Context| ctx.cancelled().await);
    let idle = idle.backoff(Backoff::constant(secs(1)).reset_after(Duration::ZERO));
    let refused = tree.start_child(idle).await.unwrap_err();
    let right = matches!(refused, ControlError::InvalidSpec(BuildError::EndlessRestarts { .. }));
    assert!(right, "{refused}");
}

#[tokio::test(start_paused = true)]
async fn kin_33_children_of_one_spec_have_separate_limits() {
    let idle = worker("a", async |ctx: Context| ctx.cancelled().await);
    let spec = idle.backoff(Backoff::none()).restarts(1, MINUTE);
    let spec = spec.on_exhausted(OnExhausted::Park);
    let pool = DynamicSupervisor::builder("app").unlimited_restarts().build().unwrap();
    let tree = pool.start().await.unwrap();
    for name in ["a#1", "a#2"] {
        tree.start_child(spec.clone()).await.unwrap();
        tree.kill_child(name).await.unwrap();
        settle().await;
        assert_eq!(seen(&tree, name).await.lifecycle, Lifecycle::Active, "{name}");
    }
    tree.kill_child("a#1").await.unwrap();
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

/// In Pekko, no limit within a period silently means one restart.
#[test]
fn kin_35_an_unlimited_policy_cannot_have_a_period() {
    let error = Supervisor::builder("app").restarts(1, MINUTE).unlimited_restarts().build();
    let BuildError::SetTwice { path, first, second } = error.unwrap_err() else {
        panic!("it is a mistake")
    };
    assert_eq!(
        (path.as_str(), first.as_str(), second.as_str()),
        ("app", "restarts(1, 1m)", "unlimited_restarts()")
    );
}

#[tokio::test(start_paused = true)]
async fn kin_36_a_limit_with_an_endless_period_is_used_up_once() {
    let fakes = FakeChildren::new();
    let child = fakes.child("a").restarts(3, Duration::MAX).on_exhausted(OnExhausted::Park);
    let tree = start(patient().child(child)).await;
    for _ in 0..3 {
        assert!(comes_back(&tree, &fakes, "a").await);
        advance(10 * YEAR).await;
    }
    assert!(!comes_back(&tree, &fakes, "a").await);
}

/// The child is a value: `deactivate` runs after each failure, also the last, and `activate`
/// doesn't run after the last.
#[tokio::test(start_paused = true)]
async fn kin_38_the_failure_beyond_the_limit_cleans_up_and_starts_nothing() {
    let fakes = FakeChildren::new();
    let child = fakes.child("a").restarts(2, MINUTE).on_exhausted(OnExhausted::StopChild);
    let tree = start(patient().child(child)).await;
    for _ in 0..3 {
        fakes.end("a", End::Error).await;
    }
    let cycle = ["start a", "end a", "dead a"];
    assert_eq!(fakes.log(), cycle.repeat(3));
    assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Stopped);
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
async fn kin_40_with_a_limit_of_zero_the_first_failure_is_final() {
    let limits: [fn(ChildSpec) -> ChildSpec; 4] = [
        |spec| spec.restarts(0, MINUTE),
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
async fn kin_44_quick_failures_before_and_after_a_quiet_time_are_all_restarted() {
    let fakes = FakeChildren::new();
    let backoff = Backoff::exponential(ms(100), ms(300)).reset_after(secs(10));
    let child = fakes.child("a").backoff(backoff).restarts(3, secs(1));
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

/// In Pekko, it never ends, without a warning.
#[test]
fn kin_44_a_limit_whose_backoff_outlasts_it_logs_a_warning() {
    let idle = worker("a", async |ctx: Context| ctx.cancelled().await);
    let slow = idle.backoff(Backoff::constant(ms(100)));
    let warning = |spec: ChildSpec| {
        let tree = patient().child(spec).build().unwrap();
        let [warning] = tree.warnings() else { panic!("{:?}", tree.warnings()) };
        warning.clone()
    };

    let found = warning(slow.clone().restarts(1, ms(10)));
    let BuildWarning::UnreachableLimit { path, max: 1, period, most: 1 } = &found else {
        panic!("{found:?}")
    };
    assert_eq!((path.as_str(), *period), ("app/a", ms(10)));
    assert_eq!(
        found.to_string(),
        "`app/a` gives up after 1 restarts in 10ms, but with its backoff there can be 1 at most: \
         it will never give up"
    );
    let found = warning(slow.clone().intensity(Intensity::tumbling(2, ms(100))));
    let tumbling = matches!(found, BuildWarning::UnreachableLimit { max: 2, most: 2, .. });
    assert!(tumbling, "{found:?}");
    let found = warning(slow.clone().intensity(Intensity::decaying(2.0, ms(100))));
    assert_eq!(
        found.to_string(),
        "`app/a` gives up at a score above 2 that is halved every 100ms, but with its backoff \
         the score is 2.00 at most: it will never give up"
    );

    let reachable = slow.restarts(1, ms(100));
    assert_eq!(patient().child(reachable).build().unwrap().warnings(), []);
}

#[test]
fn a_decaying_supervisor_limit_that_is_unreachable_logs_a_warning() {
    let idle = |name| worker(name, async |ctx: Context| ctx.cancelled().await);
    let slow = |child: ChildDefaults| child.backoff(Backoff::constant(secs(1)));
    let tree = |max| {
        let score = Intensity::decaying(max, secs(1));
        let tree = Supervisor::builder("app").intensity(score).defaults(slow);
        tree.child(idle("a")).child(idle("b")).build().unwrap()
    };
    assert_eq!(tree(3.99).warnings(), []);
    let tree = tree(4.0);
    let [BuildWarning::UnreachableScore { path, max, half_life, most }] = tree.warnings() else {
        panic!("{:?}", tree.warnings())
    };
    assert_eq!((path.as_str(), *max, *half_life, *most), ("app", 4.0, secs(1), 4.0));
}

#[test]
fn an_unreachable_consecutive_limit_logs_a_warning() {
    let idle = worker("a", async |ctx: Context| ctx.cancelled().await).restarts(3, MINUTE);
    let idle = idle.backoff(Backoff::constant(secs(1)).reset_after(Duration::ZERO));
    let idle = idle.consecutive_restarts(3).failing_for(MINUTE);
    let tree = patient().child(idle).build().unwrap();
    let texts: Vec<_> = tree.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "`app/a` has `consecutive_restarts(3)`, but its backoff resets as soon as it is \
             active: it will never give up",
            "`app/a` has `failing_for(1m)`, but its backoff resets as soon as it is active: \
             it will never give up",
        ]
    );
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
        let (stopped, again) = tokio::join!(tree.terminate_child("a"), tree.terminate_child("a"));
        stopped.and(again).unwrap();
        assert_eq!(tree.restart_child("a").await.unwrap().incarnation(), Some(cycle));
    }
    let (first, second) = tokio::join!(tree.restart("a"), tree.restart("a"));
    assert_eq!(first.unwrap().incarnation(), Some(7));
    assert!(matches!(second, Err(ControlError::Restarting { .. })), "{second:?}");
    let supervisor = tree.status().await.unwrap().root.supervisor.unwrap();
    assert_eq!(supervisor.restarts_in_period, 0);
}

#[tokio::test(start_paused = true)]
async fn kin_57_with_a_limit_of_two_the_third_exit_ends_the_supervisor() {
    let ends = [(RestartType::Permanent, End::Normal), (RestartType::Transient, End::Error)];
    for (restart, end) in ends {
        let fakes = FakeChildren::new();
        let child = fakes.child("a").restart(restart).restarts(2, Duration::MAX);
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
    let tree = start(patient().child(fakes.child("a").restarts(5, secs(30)))).await;
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
    let children = [fakes.child("a").restarts(1, MINUTE), fakes.child("b")];
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

#[tokio::test(start_paused = true)]
async fn normal_ends_without_a_restart_are_not_counted() {
    let fakes = FakeChildren::new();
    let child = fakes.child("a").restart(RestartType::Transient).restarts(1, YEAR);
    let child = child.on_exhausted(OnExhausted::Park);
    let tree = start(patient().child(child)).await;
    for _ in 0..5 {
        fakes.end("a", End::Normal).await;
        tree.restart_child("a").await.unwrap();
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
    let child = fakes.child("a").restarts(3, MINUTE).on_exhausted(OnExhausted::StopChild);
    let tree = start(builder.child(child)).await;
    let tree_counts = tree.status().await.unwrap().root.supervisor.unwrap().restarts_in_period;
    let child = seen(&tree, "a").await;
    assert_eq!((child.why, child.incarnation, tree_counts), (Some("given up"), 4, 0));
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

#[tokio::test(start_paused = true)]
async fn limits_can_be_read_back() {
    let idle = worker("a", async |ctx: Context| ctx.cancelled().await);
    let three = Intensity::tumbling(3, MINUTE);
    let child = idle.intensity(three).on_exhausted(OnExhausted::Exit(7));
    let defaults = |child: ChildDefaults| child.consecutive_restarts(9).failing_for(YEAR);
    let tree = start(Supervisor::builder("app").defaults(defaults).child(child)).await;
    let spec = tree.child_spec("a").await.unwrap();
    assert_eq!(spec.intensity, Some(three));
    assert_eq!((spec.consecutive_restarts, spec.failing_for), (Some(9), Some(YEAR)));
    assert_eq!(spec.on_exhausted, OnExhausted::Exit(7));
    let text = tree.status().await.unwrap().to_string();
    assert!(text.contains("0/5 in 1m"), "{text}");

    let tree = start(Supervisor::builder("app").restarts(5, Duration::MAX)).await;
    let text = tree.status().await.unwrap().to_string();
    assert!(text.contains("0/5 for ever"), "{text}");
}

#[test]
fn a_limit_that_is_set_twice_is_refused_with_both_values() {
    let idle = || worker("a", async |ctx: Context| ctx.cancelled().await);
    let error = |spec: ChildSpec| patient().child(spec).build().unwrap_err().to_string();
    assert_eq!(
        error(idle().restarts(3, MINUTE).intensity(Intensity::decaying(3.0, MINUTE))),
        "`app/a` has both `restarts(3, 1m)` and `decaying(3, 1m)`, which set the same limit; remove one \
         of them"
    );
    assert_eq!(
        error(idle().consecutive_restarts(3).consecutive_restarts(4)),
        "`app/a` has both `consecutive_restarts(3)` and `consecutive_restarts(4)`, which set the \
         same limit; remove one of them"
    );
    assert_eq!(
        error(idle().failing_for(MINUTE).failing_for(MINUTE)),
        "`app/a` has both `failing_for(1m)` and `failing_for(1m)`, which set the same limit; remove one \
         of them"
    );
    let twice = |child: ChildDefaults| child.restarts(3, MINUTE).restarts(4, MINUTE);
    let error = patient().defaults(twice).build().unwrap_err();
    assert!(error.to_string().starts_with("`app` has both `restarts(3, 1m)`"), "{error}");
    let inner = Supervisor::builder("inner").restarts(3, MINUTE).restarts(3, MINUTE);
    let error = patient().child(inner).build().unwrap_err();
    assert!(error.to_string().starts_with("`app/inner` has both"), "{error}");
}

#[test]
fn a_default_and_an_override_are_not_set_twice() {
    struct Careful;

    #[async_trait]
    impl Child for Careful {
        fn child_spec(spec: ChildSpec) -> ChildSpec {
            spec.restarts(3, MINUTE).consecutive_restarts(3)
        }

        async fn run(&mut self, _ctx: &Context) -> Exit {
            Ok(())
        }
    }

    let defaults = |child: ChildDefaults| child.restarts(1, MINUTE).failing_for(MINUTE);
    let careful = child("a", || Careful).restarts(2, MINUTE);
    let builder = Supervisor::builder("app").preset(Preset::otp()).restarts(4, MINUTE);
    assert!(builder.defaults(defaults).child(careful).build().is_ok());
}

#[test]
fn meaningless_limits_are_refused() {
    let idle = || worker("a", async |ctx: Context| ctx.cancelled().await);
    let error = |spec: ChildSpec| patient().child(spec).build().unwrap_err().to_string();
    assert_eq!(
        error(idle().restarts(3, Duration::ZERO)),
        "`app/a` allows 3 restarts in a period of zero; write a period such as \
         `Duration::from_secs(60)`, or `unlimited_restarts()`"
    );
    assert_eq!(
        error(idle().intensity(Intensity::decaying(-1.0, MINUTE))),
        "`app/a` allows a score of -1; write a number such as 5.0, or, to allow any number of \
         restarts, no limit"
    );
    assert_eq!(
        error(idle().failing_for(Duration::ZERO)),
        "the `failing_for` of `app/a` is zero; write a duration such as `60s`"
    );
    let score = Supervisor::builder("app").intensity(Intensity::decaying(f64::NAN, MINUTE));
    assert!(matches!(score.build(), Err(BuildError::BadScore { .. })));
}
