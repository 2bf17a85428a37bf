//! Starts that fail: they are failures, and their caller learns what follows.

use std::time::Duration;

use super::{DAY, Recorder, SECOND, app, pass, secs, seen};
use crate::common::{FakeChildren, NextStart, settle, start};
use verger::error::NextStep;
use verger::policy::{FirstStart, OnExhausted, OnExit};
use verger::{
    Backoff, ChildRef, ChildSpec, ControlError, DynamicSupervisor, ExitKind, Lifecycle,
    RestartType, Strategy,
};

#[tokio::test(start_paused = true)]
async fn seed0_7_a_failed_start_is_a_failure() {
    let (fakes, recorder) = (FakeChildren::new(), Recorder::default());
    fakes.next_starts("a", [NextStart::Error, NextStart::Error]);
    let child = fakes.child("a").backoff(recorder.backoff());
    let tree = tokio::spawn(start(app().child(child)));
    pass(secs(2)).await;
    let tree = tree.await.unwrap();
    assert_eq!(recorder.indexes(), [0, 1]);
    assert_eq!(seen(&tree, "a").await.incarnation, 3);
}

#[tokio::test(start_paused = true)]
async fn kin_48_after_two_failed_starts_the_third_incarnation_answers() {
    let (fakes, recorder) = (FakeChildren::new(), Recorder::default());
    fakes.next_starts("a", [NextStart::Panic, NextStart::Error]);
    let tree = start(app().child(fakes.child("a").backoff(recorder.backoff()))).await;
    assert_eq!(recorder.indexes(), [0, 1]);
    assert_eq!(fakes.actions(), ["try a", "try a", "start a"]);
    assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Active);
}

/// A failed start is a failure in all three cases: with a limit, with a backoff, and with neither.
#[tokio::test(start_paused = true)]
async fn kin_70_a_failed_start_is_an_ordinary_failure() {
    let plain = |child: ChildSpec| child.backoff(Backoff::none());
    let limited = |child: ChildSpec| child.backoff(Backoff::none()).own_restarts(2, secs(60));
    let delayed = |child: ChildSpec| child.backoff(Backoff::constant(SECOND));
    for spec in [plain, limited, delayed] {
        let fakes = FakeChildren::new();
        fakes.next_starts("a", [NextStart::Error, NextStart::Error]);
        let tree = start(app().child(spec(fakes.child("a")))).await;
        assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Active);
    }
    let fakes = FakeChildren::new();
    fakes.next_starts("a", [NextStart::Error; 3]);
    let error = app().child(limited(fakes.child("a"))).build().unwrap().run().await.unwrap_err();
    assert!(error.to_string().contains("activation failed: no start"), "{error}");
}

/// Makes the child's next start fail, calls, and returns the next step that the error names.
async fn next_step(
    fakes: &FakeChildren,
    call: impl Future<Output = Result<ChildRef, ControlError>>,
) -> NextStep {
    fakes.next_starts("a", [NextStart::Error]);
    let error = call.await.unwrap_err();
    let ControlError::ActivationFailed { ref path, ref reason, next } = error else {
        panic!("{error}")
    };
    assert_eq!((path.as_str(), reason.kind()), ("app/a", "activation_failed"));
    let text = "`app/a` failed to start: activation failed: no start; ";
    assert_eq!(error.to_string(), format!("{text}{next}"), "cause and next step");
    next
}

/// In pebble, the next step is to restart the service or to ignore its exit. Here, it also depends on
/// the call.
#[tokio::test(start_paused = true)]
async fn kin_81_the_caller_of_a_start_learns_of_the_failure_and_of_the_next_step() {
    let fakes = FakeChildren::new();
    let tree = start(app()).await;
    // A child that is added is removed.
    let next = next_step(&fakes, tree.start_child(fakes.child("a"))).await;
    assert_eq!(next, NextStep::Removed);
    assert_eq!(next.to_string(), "it was removed, and can be added again");
    pass(DAY).await;
    let gone = tree.which_child("a").await.unwrap_err();
    assert!(matches!(gone, ControlError::NotFound { .. }), "it is forgotten, and not retried");
    assert_eq!(fakes.actions(), ["try a"]);

    // A stopped child stays stopped.
    tree.start_child(fakes.child("a").backoff(Backoff::constant(SECOND))).await.unwrap();
    tree.stop_child("a").await.unwrap();
    let next = next_step(&fakes, tree.otp().restart_child("a")).await;
    assert_eq!(next, NextStep::StaysDown { state: Lifecycle::Stopped });
    assert_eq!(next.to_string(), "it stays stopped until `resume`");
    pass(DAY).await;
    assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Stopped);
    assert_eq!(fakes.actions(), ["start a", "stop a", "try a"]);

    // A running child is restarted by its policy.
    tree.otp().restart_child("a").await.unwrap();
    let next = next_step(&fakes, tree.restart("a")).await;
    assert_eq!(next, NextStep::Restart { after: SECOND });
    assert_eq!(next.to_string(), "it is restarted in 1s");
    let info = seen(&tree, "a").await;
    assert_eq!((info.lifecycle, info.next.unwrap().remaining), (Lifecycle::Restarting, SECOND));
    pass(SECOND).await;
    assert_eq!(fakes.actions(), ["start a", "stop a", "try a", "start a"]);
}

#[tokio::test(start_paused = true)]
async fn kin_81_the_next_step_is_that_of_the_childs_policy() {
    type Policy = fn(ChildSpec) -> ChildSpec;
    let policies: [(Policy, _, _); 5] = [
        (
            |child| child.backoff(Backoff::none()),
            NextStep::Restart { after: Duration::ZERO },
            "it is restarted at once",
        ),
        (
            |child| child.on_exit(ExitKind::ActivationFailed, OnExit::Leave),
            NextStep::StaysDown { state: Lifecycle::Errored },
            "it stays errored until `resume`",
        ),
        (
            |child| child.own_restarts(0, SECOND).on_exhausted(OnExhausted::Park),
            NextStep::StaysDown { state: Lifecycle::Errored },
            "it stays errored until `resume`",
        ),
        (
            |child| child.restart(RestartType::Temporary),
            NextStep::Removed,
            "it was removed, and can be added again",
        ),
        (
            |child| child.on_exit(ExitKind::ActivationFailed, OnExit::FailSupervisor),
            NextStep::SupervisorEnds,
            "its supervisor ends",
        ),
    ];
    for (policy, expected, text) in policies {
        let fakes = FakeChildren::new();
        let tree = start(app().child(policy(fakes.child("a")))).await;
        let next = next_step(&fakes, tree.restart("a")).await;
        assert_eq!((next, next.to_string().as_str()), (expected, text));
        settle().await;
        let state = tree.which_child("a").await.map(|info| info.lifecycle);
        match expected {
            NextStep::Restart { .. } => assert_eq!(state.unwrap(), Lifecycle::Active),
            NextStep::StaysDown { state: down } => assert_eq!(state.unwrap(), down),
            NextStep::Removed => {
                assert!(matches!(state, Err(ControlError::NotFound { .. })), "{state:?}");
            }
            _ => assert!(matches!(state, Err(ControlError::Ended { .. })), "{state:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn kin_81_while_a_callback_decides_the_next_step_is_its_decision() {
    let fakes = FakeChildren::new();
    let undecided = app().on_child_failure(|_| std::future::pending::<bool>());
    let tree = start(undecided.child(fakes.child("a"))).await;
    let next = next_step(&fakes, tree.restart("a")).await;
    assert_eq!(next, NextStep::Undecided);
    assert_eq!(next.to_string(), "`on_child_failure` decides what follows");
    assert_eq!(seen(&tree, "a").await.lifecycle, Lifecycle::Errored);
}

/// A group that waits for its restart, and a dynamic supervisor.
#[tokio::test(start_paused = true)]
async fn kin_81_the_next_step_of_a_group_and_of_a_dynamic_child() {
    let fakes = FakeChildren::new();
    let group = app().strategy(Strategy::OneForAll);
    let a = fakes.child("a").backoff(Backoff::constant(SECOND));
    let tree = start(group.child(a).child(fakes.child("b"))).await;
    let next = next_step(&fakes, tree.restart("a")).await;
    assert_eq!(next, NextStep::Restart { after: SECOND });
    assert_eq!(seen(&tree, "b").await.lifecycle, Lifecycle::Stopped);
    pass(SECOND).await;
    assert_eq!(seen(&tree, "b").await.lifecycle, Lifecycle::Active);

    let fakes = FakeChildren::new();
    let pool = DynamicSupervisor::builder("pool").unlimited_restarts();
    let tree = start(app().child(pool)).await;
    let pool = tree.supervisor("pool").await.unwrap();
    let patient = fakes.child("a").own_restarts(5, SECOND).backoff(Backoff::constant(SECOND));
    let child = pool.start_child(patient).await.unwrap();
    fakes.next_starts("a", [NextStart::Error]);
    let error = pool.restart(child.name()).await.unwrap_err();
    let text = "failed to start: activation failed: no start; it is restarted in 1s";
    assert!(error.to_string().ends_with(text), "{error}");
}

/// A tree whose first start isn't retried doesn't start.
#[tokio::test(start_paused = true)]
async fn kin_81_the_error_of_a_first_start_names_the_child_and_that_it_was_not_started() {
    let fakes = FakeChildren::new();
    fakes.next_starts("b", [NextStart::Error]);
    let tree = app().first_start(FirstStart::Fail).child(fakes.child("a")).child(fakes.child("b"));
    let error = tree.build().unwrap().start().await.unwrap_err();
    assert_eq!(error.to_string(), "`app/b` could not be started: activation failed: no start");
    assert_eq!(fakes.actions(), ["start a", "try b", "stop a"], "what had started was stopped");
}

#[tokio::test(start_paused = true)]
async fn kin_82_a_stop_while_the_start_is_pending_fails_the_start_and_succeeds_itself() {
    let fakes = FakeChildren::new();
    let tree = start(app()).await;
    fakes.next_starts("a", [NextStart::Hang]);
    let starter = tree.clone();
    let spec = fakes.child("a").restart(RestartType::Permanent);
    let started = tokio::spawn(async move { starter.start_child(spec).await });
    settle().await;
    let stopper = tree.clone();
    let stopped = tokio::spawn(async move { stopper.stop_child("a").await });
    let error = started.await.unwrap().unwrap_err();
    assert!(matches!(error, ControlError::Stopped { .. }), "{error}");
    stopped.await.unwrap().unwrap();
}
