//! Limits that are refused, warned of, or read back.

use std::time::Duration;

use super::{MINUTE, YEAR, ms, patient, secs};
use crate::common::start;
use tokio::time::{Instant, timeout};
use verger::error::BuildWarning;
use verger::policy::{Intensity, OnExhausted, Preset};
use verger::{
    Backoff, BuildError, Child, ChildDefaults, ChildSpec, Context, ControlError, DynamicSupervisor,
    Exit, RunError, Strategy, Supervisor, SupervisorBuilder, async_trait, child, worker,
};

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
         above zero, or limit its restarts with `own_restarts(12, Duration::from_secs(300))`"
    );

    assert!(patient().child(idle().own_restarts(5, MINUTE)).build().is_ok(), "its own limit");
    assert!(Supervisor::builder("app").child(idle()).build().is_ok(), "the one of all");
    // A child that was never active isn't reset, so it can't evade the limit.
    let signals = idle().readiness(verger::Readiness::Signal);
    assert!(patient().child(signals.consecutive_restarts(3)).build().is_err());
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

    let found = warning(slow.clone().own_restarts(1, ms(10)));
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

    let reachable = slow.own_restarts(1, ms(100));
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
    let idle = worker("a", async |ctx: Context| ctx.cancelled().await).own_restarts(3, MINUTE);
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
    assert!(text.contains("no shared limit"), "{text}");

    let idle = worker("a", async |ctx: Context| ctx.cancelled().await);
    let tree = start(Supervisor::builder("app").child(idle)).await;
    let text = tree.status().await.unwrap().to_string();
    assert!(text.contains("12 in 5m for each"), "{text}");

    let tree = start(Supervisor::builder("app").restarts(5, Duration::MAX)).await;
    let text = tree.status().await.unwrap().to_string();
    assert!(text.contains("0/5 for ever"), "{text}");
}

#[test]
fn a_limit_that_is_set_twice_is_refused_with_both_values() {
    let idle = || worker("a", async |ctx: Context| ctx.cancelled().await);
    let error = |spec: ChildSpec| patient().child(spec).build().unwrap_err().to_string();
    assert_eq!(
        error(idle().own_restarts(3, MINUTE).intensity(Intensity::decaying(3.0, MINUTE))),
        "`app/a` has both `own_restarts(3, 1m)` and `decaying(3, 1m)`, which set the same limit; remove one \
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
    let twice = |child: ChildDefaults| child.own_restarts(3, MINUTE).own_restarts(4, MINUTE);
    let error = patient().defaults(twice).build().unwrap_err();
    assert!(error.to_string().starts_with("`app` has both `own_restarts(3, 1m)`"), "{error}");
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
            spec.own_restarts(3, MINUTE).consecutive_restarts(3)
        }

        async fn run(&mut self, _ctx: &Context) -> Exit {
            Ok(())
        }
    }

    let defaults = |child: ChildDefaults| child.own_restarts(1, MINUTE).failing_for(MINUTE);
    let careful = child("a", || Careful).own_restarts(2, MINUTE);
    let builder = Supervisor::builder("app").preset(Preset::otp()).restarts(4, MINUTE);
    assert!(builder.defaults(defaults).child(careful).build().is_ok());
}

#[test]
fn meaningless_limits_are_refused() {
    let idle = || worker("a", async |ctx: Context| ctx.cancelled().await);
    let error = |spec: ChildSpec| patient().child(spec).build().unwrap_err().to_string();
    assert_eq!(
        error(idle().own_restarts(3, Duration::ZERO)),
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

#[test]
fn restarts_without_a_delay_and_without_a_limit_are_warned_of() {
    let idle = || worker("a", async |ctx: Context| ctx.cancelled().await);
    let warnings = |child: ChildSpec| patient().child(child).build().unwrap().warnings().to_vec();
    let [warning] = &*warnings(idle()) else { panic!("it is warned of") };
    let BuildWarning::BusyRestarts { path } = warning else { panic!("{warning}") };
    assert_eq!(path.as_str(), "app/a");
    assert_eq!(
        warning.to_string(),
        "`app/a` is restarted without a delay and without a limit, so a failure that comes back at \
         once keeps a processor busy; set a `backoff`, or limit its restarts with \
         `own_restarts(12, Duration::from_secs(300))`"
    );
    assert_eq!(warnings(idle().backoff(Backoff::constant(ms(1)))), []);
    assert_eq!(warnings(idle().consecutive_restarts(3)), []);
    assert_eq!(warnings(idle().restart(verger::RestartType::Temporary)), []);
    let limited = Supervisor::builder("app").child(idle().backoff(Backoff::none()));
    assert_eq!(limited.build().unwrap().warnings(), []);
    for preset in Preset::all() {
        let name = preset.name();
        let tree = Supervisor::builder("app").preset(preset).child(idle()).build().unwrap();
        assert_eq!(tree.warnings(), [], "{name}");
    }
}

/// A supervisor of one child that fails immediately, and of one that stops only when its grace is over.
fn slow_group(grace: Duration) -> SupervisorBuilder {
    let deaf = worker("deaf", async |_: Context| std::future::pending::<()>().await);
    Supervisor::builder("app")
        .strategy(Strategy::OneForAll)
        .random(|| || 0.0)
        .child(worker("broken", async |_: Context| -> Exit { Err("no luck".into()) }))
        .child(deaf.shutdown(grace))
}

#[tokio::test(start_paused = true)]
async fn a_group_that_takes_long_to_stop_is_given_up_all_the_same() {
    let began = Instant::now();
    let app = slow_group(secs(15)).build().unwrap();
    assert_eq!(app.warnings(), []);
    let error = timeout(secs(3_600), app.run()).await.expect("it gives up").unwrap_err();
    assert!(matches!(error, RunError::GaveUp { .. }), "{error}");
    // Until the seventh failure the grace is longer than the delay. Each delay is measured from the failure: of the
    // twelve, seven are shorter than 15 s, one is 25.6 s, and four are 30 s. Then the group stops once more.
    assert_eq!(began.elapsed(), 7 * secs(15) + ms(25_600) + 4 * secs(30) + secs(15));
}

#[test]
fn a_written_limit_that_may_never_be_reached_because_of_graces_is_warned_of() {
    let warnings = |app: SupervisorBuilder| {
        let app = app.build().unwrap();
        app.warnings().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        warnings(slow_group(secs(5)).restarts(3, secs(10))),
        [
            "`app` has `restarts(3, 10s)`, but a restart can take 6s and its delay, with all graces and timeouts: \
             it may never give up; write a longer period"
        ]
    );
    assert_eq!(warnings(slow_group(secs(5)).restarts(3, secs(20))), [""; 0]);
    let own = |spec: ChildSpec| Supervisor::builder("app").child(spec.own_restarts(5, MINUTE));
    let idle = || worker("a", async |ctx: Context| ctx.cancelled().await);
    assert_eq!(warnings(own(idle().shutdown(secs(20)))), [""; 0], "it isn't stopped when it fails");
    assert_eq!(
        warnings(own(idle().activation_timeout(secs(20)))),
        [
            "`app/a` has `own_restarts(5, 1m)`, but a restart can take 20s and its delay, with all graces and \
             timeouts: it may never give up; write a longer period"
        ]
    );
}
