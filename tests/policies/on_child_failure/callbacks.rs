//! Which callback is called, and what it receives.

use std::sync::Arc;
use std::time::Duration;

use super::{Endpoint, Recorder, Region, eager, limited, secs};
use crate::common::{End, FakeChildren, settle, start};
use tokio::time::sleep;
use verger::policy::{ChildFailure, FailureDecision};
use verger::{Backoff, Context, DynamicSupervisor, Exit, Lifecycle, Strategy, Supervisor, worker};

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
    assert_eq!((failure.max_restarts, failure.period), (Some(12), secs(300)));
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

    // A limit of the child itself, which is the one that refuses first.
    let app = Supervisor::builder("app")
        .restarts(7, secs(30))
        .defaults(|child| child.backoff(Backoff::constant(secs(1))))
        .on_child_failure(recorder.always(true.into()));
    let app = start(app.child(worker("serve", serve).own_restarts(3, secs(20)))).await;
    sleep(secs(2)).await;
    settle().await;
    let limits = recorder.taken().into_iter();
    let limits = limits.map(|it| (it.restarts_in_period, it.max_restarts, it.period));
    let limits: Vec<_> = limits.collect();
    assert_eq!(limits, [0, 1, 2].map(|granted| (granted, Some(3), secs(20))));
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
    let states: Vec<_> = handle.children().await.unwrap();
    let states: Vec<_> = states.iter().map(|it| (it.lifecycle, it.incarnation)).collect();
    let (active, errored) = (Lifecycle::Active, Lifecycle::Errored);
    assert_eq!(states, [(active, 2), (errored, 1), (active, 1)]);
    assert_eq!(handle.resume("b#2").await.unwrap().incarnation(), Some(2));

    fakes.end("c", End::Error).await;
    let conns = app.which_child("conns").await.unwrap();
    assert_eq!(conns.incarnation, 2);
    let text = "escalated: child app/conns/c#3: failed: c failed";
    assert_eq!(conns.last_exit.unwrap().to_string(), text);
    app.stop("done").await.unwrap();
}
