//! What follows a decision, and what happens until it is made.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::{Endpoint, Recorder, eager, lifecycle, limited, secs};
use crate::common::{End, FakeChildren, NextStart, settle, start};
use tokio::time::{Instant, sleep};
use verger::dead_letter::DeadLetterReason;
use verger::policy::{ChildFailure, FailureDecision, Preset};
use verger::status::EventKind;
use verger::{
    Backoff, ControlError, Lifecycle, RestartType, RunError, Strategy, Supervisor, SupervisorHandle,
};

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

        assert_eq!(app.resume("b").await.unwrap().incarnation(), Some(2));
        app.stop("done").await.unwrap();
    }
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

    let refused = app.otp().restart_child("a").await.unwrap_err();
    let ControlError::InvalidState { state, call, .. } = refused else { panic!("{refused}") };
    assert_eq!((state, call), (Lifecycle::Errored, "restart_child"));
    assert!(!app.kill("a").await.unwrap().was_running);
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
    app.stop_child("a").await.unwrap();
    app.otp().delete_child("b").await.unwrap();
    sleep(secs(9)).await;
    settle().await;
    assert_eq!(fakes.actions(), ["end a", "end b"]);
    assert_eq!(lifecycle(&app, "a").await, Lifecycle::Stopped);
    assert!(matches!(app.which_child("b").await, Err(ControlError::NotFound { .. })));

    // Also if the child runs again by then.
    app.otp().restart_child("a").await.unwrap();
    fakes.end("a", End::Error).await;
    app.stop_child("a").await.unwrap();
    app.otp().restart_child("a").await.unwrap();
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
