//! The callback that decides about a failed child, through the public API. The tests of the core
//! cover its inputs and the events that discard its decision.

use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{End, FakeChildren, NextStart, settle, start};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use verger::dead_letter::DeadLetterReason;
use verger::policy::{ChildFailure, FailureDecision, Preset};
use verger::status::EventKind;
use verger::{
    Backoff, ChildSpec, Context, ControlError, DynamicSupervisor, Exit, ExitReason, Lifecycle,
    RestartType, RunError, Strategy, Supervisor, SupervisorBuilder, SupervisorHandle, worker,
};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A supervisor that restarts immediately, without a limit.
fn eager(name: &str) -> SupervisorBuilder {
    limited(name).unlimited_restarts()
}

/// A supervisor that restarts immediately, with a limit.
fn limited(name: &str) -> SupervisorBuilder {
    Supervisor::builder(name).defaults(|child| child.backoff(Backoff::none()))
}

async fn lifecycle(handle: &SupervisorHandle, path: &str) -> Lifecycle {
    handle.which_child(path).await.unwrap().lifecycle
}

/// Records the failures that a callback was called with.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<ChildFailure>>>);

impl Recorder {
    fn note(&self, failure: &ChildFailure) {
        self.0.lock().unwrap().push(failure.clone());
    }

    fn taken(&self) -> Vec<ChildFailure> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// Returns the failed child and its supervisor for each call.
    fn paths(&self) -> Vec<String> {
        let failures = self.taken();
        failures.iter().map(|it| format!("{} of {}", it.child, it.supervisor)).collect()
    }

    /// Returns a callback that always decides the same.
    fn always(
        &self,
        decision: FailureDecision,
    ) -> impl Fn(ChildFailure) -> FailureDecision + use<> {
        let recorder = self.clone();
        move |failure| {
            recorder.note(&failure);
            decision.clone()
        }
    }
}

/// SignalPy supervises no child without a callback. Here, the child's policy decides.
#[tokio::test(start_paused = true)]
async fn seed3_10_without_a_callback_the_policy_of_the_child_decides() {
    let fakes = FakeChildren::new();
    let app = start(eager("app").child(fakes.child("a"))).await;
    fakes.end("a", End::Error).await;
    assert_eq!(fakes.actions(), ["start a", "end a", "start a"]);
    assert!(!app.status().await.unwrap().root.supervisor.unwrap().on_child_failure);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn seed3_11_the_nearest_supervisor_above_that_has_a_callback_decides() {
    let fakes = FakeChildren::new();
    let (top, own) = (Recorder::default(), Recorder::default());
    let restart = FailureDecision::restart;
    // The supervisor between has no callback; its sibling has its own.
    let mid = eager("mid").child(eager("low").child(fakes.child("a")));
    let conns = DynamicSupervisor::builder("conns");
    let beside = eager("beside").on_child_failure(own.always(restart())).child(fakes.child("b"));
    let app = eager("app").on_child_failure(top.always(restart())).child(mid);
    let app = start(app.child(beside).child(conns)).await;
    app.supervisor("conns").await.unwrap().start_child(fakes.child("c")).await.unwrap();

    for name in ["a", "b", "c"] {
        fakes.end(name, End::Error).await;
    }
    assert_eq!(top.paths(), ["app/mid/low/a of app/mid/low", "app/conns/c#1 of app/conns"]);
    assert_eq!(own.paths(), ["app/beside/b of app/beside"]);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn seed3_11_the_childs_own_supervisor_carries_the_decision_out() {
    let fakes = FakeChildren::new();
    let recorder = Recorder::default();
    let mid = limited("mid").strategy(Strategy::OneForAll).restarts(1, secs(60));
    let mid = mid.child(fakes.child("a")).child(fakes.child("b"));
    let app = eager("app").on_child_failure(recorder.always(FailureDecision::restart()));
    let app = start(app.child(mid)).await;
    fakes.actions();

    fakes.end("b", End::Error).await;
    assert_eq!(fakes.actions(), ["end b", "stop a", "start a", "start b"], "its strategy");
    let [failure] = &recorder.taken()[..] else { panic!("it is called once") };
    assert_eq!(failure.strategy, Strategy::OneForAll);
    assert_eq!((failure.restarts_in_period, failure.max_restarts), (0, Some(1)));

    // Beyond its limit, its own failure is passed to the callback.
    fakes.end("a", End::Error).await;
    let failures = recorder.taken();
    let paths: Vec<_> = failures.iter().map(|it| it.child.as_str()).collect();
    assert_eq!(paths, ["app/mid/a", "app/mid"]);
    assert_eq!(failures[0].restarts_in_period, 1);
    assert_eq!(failures[1].error.to_string(), "escalated: child app/mid/a: failed: a failed");
    assert_eq!(app.which_child("mid").await.unwrap().incarnation, 2);
    app.stop("done").await.unwrap();
}

/// SignalPy's defaults are 3 in 60 s, and one second doubled.
#[tokio::test(start_paused = true)]
async fn seed3_12_a_supervisor_with_a_callback_has_the_same_defaults_as_any() {
    let fakes = FakeChildren::new();
    let recorder = Recorder::default();
    let app = Supervisor::builder("app").on_child_failure(recorder.always(true.into()));
    let app = start(app.child(fakes.child("a"))).await;
    let backoff = app.child_spec("a").await.unwrap().backoff;
    assert_eq!(backoff, Backoff::default());
    fakes.end("a", End::Error).await;
    let [failure] = &recorder.taken()[..] else { panic!("it is called once") };
    assert_eq!(failure.strategy, Strategy::OneForOne);
    assert_eq!((failure.max_restarts, failure.period), (Some(5), secs(60)));
    app.stop("done").await.unwrap();
}

mod forms {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("can't tell")]
    pub(super) struct Unknown;

    pub(super) fn plain(failure: ChildFailure) -> bool {
        failure.attempt < 3
    }

    pub(super) async fn later(failure: ChildFailure) -> FailureDecision {
        sleep(Duration::from_millis(1)).await;
        (failure.attempt < 3).into()
    }

    pub(super) async fn fallible(failure: ChildFailure) -> Result<bool, Unknown> {
        if failure.attempt > 9 { Err(Unknown) } else { Ok(failure.attempt < 3) }
    }

    pub(super) struct Node;

    impl Node {
        pub(super) fn failed(failure: ChildFailure) -> Result<FailureDecision, &'static str> {
            Ok((failure.attempt < 3).into())
        }
    }
}

#[tokio::test(start_paused = true)]
async fn seed3_14_a_callback_is_a_function_an_async_function_or_a_closure() {
    let limit = Arc::new(3);
    let (here, there, everywhere) = (Arc::clone(&limit), Arc::clone(&limit), limit);
    let forms = [
        eager("app").on_child_failure(forms::plain),
        eager("app").on_child_failure(forms::later),
        eager("app").on_child_failure(forms::fallible),
        eager("app").on_child_failure(forms::Node::failed),
        eager("app").on_child_failure(|failure| failure.attempt < 3),
        eager("app").on_child_failure(move |failure| failure.attempt < *here),
        eager("app").on_child_failure(async |failure: ChildFailure| failure.attempt < 3),
        eager("app").on_child_failure(
            async move |failure| -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
                let attempt = failure.attempt;
                sleep(Duration::from_millis(1)).await;
                Ok(attempt < 3)
            },
        ),
        eager("app").on_child_failure(move |failure| {
            let limit = Arc::clone(&there);
            async move { failure.attempt < *limit }
        }),
        eager("app").on_child_failure(move |failure| -> Result<_, forms::Unknown> {
            Ok(FailureDecision::from(failure.attempt < *everywhere))
        }),
    ];
    for (number, app) in forms.into_iter().enumerate() {
        let fakes = FakeChildren::new();
        let app = start(app.child(fakes.child("a"))).await;
        for _ in 0..3 {
            fakes.end("a", End::Error).await;
            sleep(Duration::from_millis(1)).await;
            settle().await;
        }
        let child = app.which_child("a").await.unwrap();
        assert_eq!((child.incarnation, child.lifecycle), (3, Lifecycle::Errored), "{number}");
        app.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn seed3_15_a_child_that_is_given_up_stays_errored_and_its_siblings_run() {
    for strategy in [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne] {
        let fakes = FakeChildren::new();
        let recorder = Recorder::default();
        let app = limited("app").strategy(strategy).restarts(1, secs(60));
        let app = app.on_child_failure(recorder.always(false.into()));
        let app = app.child(fakes.child("a")).child(fakes.child("b")).child(fakes.child("c"));
        let app = start(app).await;
        let (mut events, mut letters) = (app.events(), app.dead_letters());
        fakes.actions();

        fakes.end("b", End::Error).await;
        sleep(secs(3600)).await;
        assert_eq!(recorder.taken().len(), 1, "one call");
        assert_eq!(fakes.actions(), ["end b"], "{strategy}");
        let b = app.which_child("b").await.unwrap();
        assert_eq!((b.lifecycle, b.why), (Lifecycle::Errored, Some("given up")));
        let supervisor = app.status().await.unwrap().root.supervisor.unwrap();
        assert_eq!(supervisor.restarts_in_period, 0, "nothing is charged");

        let gave_up = std::iter::from_fn(|| events.try_next());
        let gave_up = gave_up.filter(|event| matches!(event.kind, EventKind::GaveUp { .. }));
        assert_eq!(gave_up.count(), 1);
        let letter = letters.try_next().unwrap();
        assert_eq!((letter.reason, letter.target.as_str()), (DeadLetterReason::GaveUp, "app/b"));

        assert_eq!(app.retry("b").await.unwrap().incarnation(), Some(2));
        app.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn seed3_29_a_callback_receives_every_field_of_the_failure() {
    async fn serve(_: Context) -> Exit {
        Err("no network")?
    }
    let recorder = Recorder::default();
    let app = Supervisor::builder("app")
        .strategy(Strategy::RestForOne)
        .restarts(7, secs(30))
        .defaults(|child| child.backoff(Backoff::constant(secs(1))))
        .on_child_failure(recorder.always(FailureDecision::restart().with(Region("eu"))));
    let fakes = FakeChildren::new();
    let app = start(app.child(worker("serve", serve)).child(fakes.child("writer"))).await;
    sleep(secs(1)).await;
    settle().await;

    let failures = recorder.taken();
    let [first, second] = &failures[..] else { panic!("{failures:#?}") };
    assert_eq!((first.child.as_str(), first.name()), ("app/serve", "serve"));
    assert_eq!(first.supervisor.as_str(), "app");
    let name = first.type_name.unwrap();
    assert!(name.ends_with("::serve"), "{name}");
    assert_eq!(first.error.to_string(), "failed: no network");
    assert_eq!((first.attempt, first.incarnation), (1, 1));
    assert_eq!((first.restarts_in_period, first.max_restarts), (0, Some(7)));
    assert_eq!((first.period, first.strategy), (secs(30), Strategy::RestForOne));
    assert!(first.property::<Region>().is_none());

    assert_eq!((second.attempt, second.incarnation), (2, 2));
    assert_eq!(second.restarts_in_period, 1);
    assert_eq!(second.property::<Region>().unwrap().0, "eu");

    app.stop("done").await.unwrap();

    // A value has the name of its type, and a supervisor has none.
    let app = eager("app").on_child_failure(recorder.always(true.into()));
    let app = start(app.child(fakes.child("writer"))).await;
    fakes.end("writer", End::Error).await;
    let name = recorder.taken().last().unwrap().type_name.unwrap();
    assert!(name.ends_with("common::FakeChild"), "{name}");
    app.stop("done").await.unwrap();

    let low = limited("low").restarts(0, secs(1)).on_child_failure(|_| true);
    let app = eager("app").on_child_failure(recorder.always(true.into()));
    let app = start(app.child(low.child(fakes.child("x")))).await;
    fakes.end("x", End::Error).await;
    assert_eq!(recorder.taken()[0].type_name, None);
    app.stop("done").await.unwrap();
}

/// The endpoint to connect to.
#[derive(Debug, PartialEq)]
struct Endpoint(u32);

/// The region to connect in.
#[derive(Debug, PartialEq)]
struct Region(&'static str);

/// The endpoint and the region of an incarnation.
type Seen = (Option<u32>, Option<&'static str>);

/// A child that records the endpoint it connects to, and its region.
fn client(seen: &Arc<Mutex<Vec<Seen>>>) -> ChildSpec {
    let seen = Arc::clone(seen);
    worker("client", move |ctx: Context| {
        let endpoint = ctx.property::<Endpoint>().map(|endpoint| endpoint.0);
        let region = ctx.property::<Region>().map(|region| region.0);
        seen.lock().unwrap().push((endpoint, region));
        assert!(ctx.property::<u8>().is_none(), "no property of that type is set");
        async move { ctx.cancelled().await }
    })
}

#[tokio::test(start_paused = true)]
async fn a_context_that_outlives_its_incarnation_keeps_its_properties() {
    let kept: Arc<Mutex<Vec<Context>>> = Arc::default();
    let keeps = Arc::clone(&kept);
    let fails = Arc::new(Notify::new());
    let failing = Arc::clone(&fails);
    let client = worker("client", move |ctx: Context| {
        keeps.lock().unwrap().push(ctx);
        let fails = Arc::clone(&failing);
        async move {
            fails.notified().await;
            Exit::Err("no network".into())
        }
    });
    let app = eager("app")
        .on_child_failure(|failure| FailureDecision::restart().with(Endpoint(failure.incarnation)));
    let app = start(app.child(client)).await;
    for _ in 0..2 {
        settle().await;
        fails.notify_one();
    }
    settle().await;

    let endpoints: Vec<_> = {
        let kept = kept.lock().unwrap();
        kept.iter().map(|ctx| ctx.property::<Endpoint>().map(|endpoint| endpoint.0)).collect()
    };
    assert_eq!(endpoints, [None, Some(1), Some(2)]);
    app.stop("done").await.unwrap();
}

/// SignalPy changes properties under `one_for_one` only. There, too, a change is merged into the
/// properties of the child.
#[tokio::test(start_paused = true)]
async fn seed3_30_changed_properties_are_merged_and_persist_under_every_strategy() {
    for strategy in [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne] {
        let (fakes, seen, recorder) = (FakeChildren::new(), Arc::default(), Recorder::default());
        let failures = recorder.clone();
        let app = eager("app").strategy(strategy).on_child_failure(move |failure| {
            failures.note(&failure);
            let decision = FailureDecision::restart();
            match (failure.name(), failure.incarnation) {
                ("client", 2) => decision.with(Endpoint(2)),
                ("client", 3) => decision.with(Region("eu")),
                ("client", 5) => decision.with(Endpoint(5)),
                _ => decision,
            }
        });
        let app = app.child(fakes.child("first")).child(client(&seen));
        let app = start(app).await;
        for _ in 0..6 {
            app.kill_child("client").await.unwrap();
            settle().await;
        }
        // Restarted manually, and with its group.
        app.restart("client").await.unwrap();
        app.terminate_child("client").await.unwrap();
        app.restart_child("client").await.unwrap();
        fakes.end("first", End::Error).await;
        let (two, both) = ((Some(2), None), (Some(2), Some("eu")));
        let changed = (Some(5), Some("eu"));
        let mut expected = vec![(None, None); 2];
        expected.extend([two, both, both, changed, changed, changed, changed]);
        if strategy != Strategy::OneForOne {
            expected.push(changed);
        }
        assert_eq!(*seen.lock().unwrap(), expected, "{strategy}");
        // The callback sees what the failed incarnation had.
        let failures = recorder.taken().into_iter().filter(|failure| failure.name() == "client");
        let known: Vec<_> = failures
            .map(|failure| {
                let endpoint = failure.property::<Endpoint>().map(|endpoint| endpoint.0);
                (endpoint, failure.property::<Region>().map(|region| region.0))
            })
            .collect();
        assert_eq!(known, expected[..6], "{strategy}");

        // A new child with that name starts without them.
        app.terminate_child("client").await.unwrap();
        app.delete_child("client").await.unwrap();
        app.start_child(client(&seen)).await.unwrap();
        settle().await;
        assert_eq!(seen.lock().unwrap().last(), Some(&(None, None)));
        app.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn seed3_30_a_callback_can_switch_to_a_fallback_endpoint_at_the_second_failure() {
    let dialled: Arc<Mutex<Vec<u32>>> = Arc::default();
    let dials = Arc::clone(&dialled);
    let client = worker("client", move |ctx: Context| {
        let endpoint = ctx.property::<Endpoint>().map_or(0, |endpoint| endpoint.0);
        dials.lock().unwrap().push(endpoint);
        async move {
            if endpoint == 0 {
                return Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
            }
            ctx.cancelled().await;
            Ok(())
        }
    });
    let app = eager("app").on_child_failure(|failure| {
        let restart = FailureDecision::restart();
        let ExitReason::Failed(error) = &failure.error else { return restart };
        match error.downcast_ref::<std::io::Error>() {
            Some(_) if failure.attempt >= 2 => restart.with(Endpoint(1)),
            _ => restart,
        }
    });
    let app = start(app.child(client)).await;
    settle().await;
    assert_eq!(*dialled.lock().unwrap(), [0, 0, 1]);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn seed3_30_properties_set_with_a_refusal_apply_to_a_manual_retry() {
    let seen = Arc::default();
    let app = eager("app").on_child_failure(|_| FailureDecision::give_up().with(Endpoint(3)));
    let app = start(app.child(client(&seen))).await;
    app.kill_child("client").await.unwrap();
    settle().await;
    app.retry("client").await.unwrap();
    settle().await;
    assert_eq!(*seen.lock().unwrap(), [(None, None), (Some(3), None)]);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn seed3_31_a_decision_to_escalate_ends_the_supervisor_with_the_childs_reason() {
    let fakes = FakeChildren::new();
    let decided = Recorder::default();
    let mid = eager("mid").on_child_failure(|_| FailureDecision::escalate());
    let mid = mid.child(fakes.child("a")).child(fakes.child("b"));
    let app = eager("app").on_child_failure(decided.always(FailureDecision::restart()));
    let app = start(app.child(mid)).await;
    fakes.actions();
    fakes.end("b", End::Panic).await;
    assert_eq!(fakes.actions(), ["end b", "stop a", "start a", "start b"]);
    let [failure] = &decided.taken()[..] else { panic!("it is called once") };
    let text = "escalated: child app/mid/b: panicked: b panicked";
    assert_eq!((failure.child.as_str(), &*failure.error.to_string()), ("app/mid", text));
    app.stop("done").await.unwrap();
}

/// Under OTP's preset, a supervisor that gives up ends normally. An escalation isn't a normal end.
#[tokio::test(start_paused = true)]
async fn an_escalation_is_a_failure_also_under_a_preset_that_gives_up_cleanly() {
    for (escalates, restarted) in [(true, 2), (false, 1)] {
        let fakes = FakeChildren::new();
        let mid = Supervisor::builder("mid").preset(Preset::otp()).restarts(0, secs(1));
        let mid = mid.on_child_failure(move |_| match escalates {
            true => FailureDecision::escalate(),
            false => FailureDecision::restart(),
        });
        let mid = mid.child(fakes.child("a")).into_child().restart(RestartType::Transient);
        let app = start(eager("app").child(mid)).await;
        fakes.end("a", End::Error).await;
        assert_eq!(app.which_child("mid").await.unwrap().incarnation, restarted);
        app.stop("done").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn seed3_32_status_shows_which_supervisors_have_a_callback_of_their_own() {
    let own = eager("own").on_child_failure(|_| true);
    let conns = DynamicSupervisor::builder("conns").on_child_failure(|_| true);
    let app = start(eager("app").child(own).child(eager("none")).child(conns)).await;
    let status = app.status().await.unwrap();
    let info = |path: &str| {
        let nodes = status.root.children.iter();
        let mut nodes = nodes.filter(|node| node.child.path.name() == path);
        nodes.next().unwrap().supervisor.as_ref().unwrap().on_child_failure
    };
    assert!(!status.root.supervisor.as_ref().unwrap().on_child_failure);
    assert_eq!([info("own"), info("none"), info("conns")], [true, false, true]);
    let json = serde_json::to_value(&status).unwrap();
    let text = status.to_string();
    let lines: Vec<_> = text.lines().filter(|line| line.contains("callback")).collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_eq!(json["root"]["children"][0]["supervisor"]["on_child_failure"], true);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_104_a_failed_restart_consults_the_callback_again_and_the_child_starts() {
    let fakes = FakeChildren::new();
    let recorder = Recorder::default();
    let app = limited("app").restarts(3, secs(60)).on_child_failure(recorder.always(true.into()));
    let app = start(app.child(fakes.child("a"))).await;
    fakes.next_starts("a", [NextStart::Panic]);
    fakes.end("a", End::Error).await;
    assert_eq!(fakes.actions(), ["start a", "end a", "try a", "start a"], "three in all");
    let attempts: Vec<_> = recorder.taken().iter().map(|it| (it.attempt, it.incarnation)).collect();
    assert_eq!(attempts, [(1, 1), (2, 2)]);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_110_an_escalation_names_the_child_and_a_declined_failure_is_not_restarted() {
    let fakes = FakeChildren::new();
    let app = limited("app").restarts(2, secs(60)).on_child_failure(|_| true);
    let app = start(app.child(fakes.child("a"))).await;
    for _ in 0..3 {
        fakes.end("a", End::Error).await;
    }
    let error = app.wait().await.unwrap_err();
    assert_eq!(error.to_string(), "`app` gave up on `app/a`: failed: a failed");
    assert!(matches!(error, RunError::GaveUp { ref child, .. } if child.as_str() == "app/a"));

    let app = start(eager("app").on_child_failure(|_| false).child(fakes.child("a"))).await;
    fakes.actions();
    fakes.end("a", End::Error).await;
    sleep(secs(60)).await;
    assert_eq!(fakes.actions(), ["end a"]);
    assert_eq!(lifecycle(&app, "a").await, Lifecycle::Errored);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kin_111_a_child_is_errored_until_the_decision_and_restarting_until_it_starts() {
    let fakes = FakeChildren::new();
    let app = Supervisor::builder("app").defaults(|c| c.backoff(Backoff::constant(secs(3))));
    let app = app.on_child_failure(async |_: ChildFailure| {
        sleep(secs(1)).await;
        true
    });
    let app = start(app.child(fakes.child("a"))).await;
    fakes.end("a", End::Error).await;
    for (passed, expected) in
        [(500, Lifecycle::Errored), (1_000, Lifecycle::Restarting), (2_000, Lifecycle::Active)]
    {
        sleep(Duration::from_millis(passed)).await;
        settle().await;
        assert_eq!(lifecycle(&app, "a").await, expected);
    }
    app.stop("done").await.unwrap();
}

/// A supervisor of `a` and `b` whose callback takes a second to decide on a restart.
async fn slowly(fakes: &FakeChildren) -> SupervisorHandle {
    let app = eager("app").on_child_failure(async |_: ChildFailure| {
        sleep(secs(1)).await;
        FailureDecision::restart().with(Endpoint(1))
    });
    start(app.child(fakes.child("a")).child(fakes.child("b"))).await
}

#[tokio::test(start_paused = true)]
async fn siblings_run_and_requests_are_served_while_a_callback_decides() {
    let fakes = FakeChildren::new();
    let app = slowly(&fakes).await;
    fakes.actions();
    fakes.end("a", End::Error).await;
    app.start_child(fakes.child("c")).await.unwrap();
    app.restart("b").await.unwrap();
    assert_eq!(fakes.actions(), ["end a", "start c", "stop b", "start b"]);
    let a = app.which_child("a").await.unwrap();
    assert_eq!((a.lifecycle, a.why), (Lifecycle::Errored, Some("being decided on")));

    let refused = [
        app.retry("a").await.map(drop),
        app.wake("a").await,
        app.restart("a").await.map(drop),
        app.restart_child("a").await.map(drop),
        app.kill_child("a").await,
    ];
    let calls = ["retry", "wake", "restart", "restart_child", "kill_child"];
    for (result, name) in refused.into_iter().zip(calls) {
        let Err(ControlError::InvalidState { state, call, .. }) = result else {
            panic!("{result:?}")
        };
        assert_eq!((state, call), (Lifecycle::Errored, name));
    }
    sleep(secs(1)).await;
    settle().await;
    assert_eq!(fakes.actions(), ["start a"]);
    app.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_change_to_the_child_discards_a_pending_decision() {
    let fakes = FakeChildren::new();
    let app = slowly(&fakes).await;
    fakes.actions();
    fakes.end("a", End::Error).await;
    fakes.end("b", End::Error).await;
    app.terminate_child("a").await.unwrap();
    app.delete_child("b").await.unwrap();
    sleep(secs(9)).await;
    settle().await;
    assert_eq!(fakes.actions(), ["end a", "end b"]);
    assert_eq!(lifecycle(&app, "a").await, Lifecycle::Stopped);
    assert!(matches!(app.which_child("b").await, Err(ControlError::NotFound { .. })));

    // Also if the child runs again by then.
    app.restart_child("a").await.unwrap();
    fakes.end("a", End::Error).await;
    app.terminate_child("a").await.unwrap();
    app.restart_child("a").await.unwrap();
    fakes.actions();
    sleep(secs(9)).await;
    settle().await;
    assert_eq!(fakes.actions(), [""; 0]);
    assert_eq!(app.which_child("a").await.unwrap().incarnation, 3);
    app.stop("done").await.unwrap();
}

struct Guard(Arc<AtomicU32>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_a_decision_and_leaves_no_task() {
    let (begun, dropped) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (begins, drops) = (Arc::clone(&begun), Arc::clone(&dropped));
    let app = eager("app").on_child_failure(move |_| {
        begins.fetch_add(1, Ordering::Relaxed);
        let guard = Guard(Arc::clone(&drops));
        async move {
            let _guard = guard;
            pending::<bool>().await
        }
    });
    let fakes = FakeChildren::new();
    let app = start(app.child(fakes.child("a")).child(fakes.child("b"))).await;
    fakes.end("a", End::Error).await;
    fakes.end("b", End::Error).await;
    let began = Instant::now();
    app.stop("done").await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    settle().await;
    let [begun, dropped] = [begun, dropped].map(|count| count.load(Ordering::Relaxed));
    assert_eq!((begun, dropped), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_callback_of_a_dynamic_supervisor_decides_for_each_child_separately() {
    let fakes = FakeChildren::new();
    let conns = DynamicSupervisor::builder("conns")
        .defaults(|child| child.backoff(Backoff::none()))
        .on_child_failure(|failure| match failure.child.name() {
            "a#1" => FailureDecision::restart().with(Endpoint(1)),
            "b#2" => FailureDecision::give_up(),
            _ => FailureDecision::escalate(),
        });
    let app = start(eager("app").child(conns)).await;
    let handle = app.supervisor("conns").await.unwrap();
    for name in ["a", "b", "c"] {
        handle.start_child(fakes.child(name)).await.unwrap();
    }
    fakes.end("a", End::Error).await;
    fakes.end("b", End::Error).await;
    let states: Vec<_> = handle.which_children().await.unwrap();
    let states: Vec<_> = states.iter().map(|it| (it.lifecycle, it.incarnation)).collect();
    let (active, errored) = (Lifecycle::Active, Lifecycle::Errored);
    assert_eq!(states, [(active, 2), (errored, 1), (active, 1)]);
    assert_eq!(handle.retry("b#2").await.unwrap().incarnation(), Some(2));

    fakes.end("c", End::Error).await;
    let conns = app.which_child("conns").await.unwrap();
    assert_eq!(conns.incarnation, 2);
    let text = "escalated: child app/conns/c#3: failed: c failed";
    assert_eq!(conns.last_exit.unwrap().to_string(), text);
    app.stop("done").await.unwrap();
}
