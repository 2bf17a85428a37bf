//! Errors that no restart can mend: `ExitError::fatal`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::common::{End, FakeChildren, settle, start};
use tokio::time::{Instant, timeout};
use verger::policy::{FirstStart, OnExit, Preset};
use verger::{
    Child, ChildSpec, Context, ControlError, DynamicSupervisor, Exit, ExitError, ExitKind,
    ExitReason, Lifecycle, Readiness, RestartType, RunError, Supervisor, SupervisorBuilder,
    SupervisorHandle, async_trait, child, worker,
};

#[derive(Debug, thiserror::Error)]
#[error("can't listen on port 80")]
struct NoPort(#[source] io::Error);

fn fatal() -> Exit {
    Err(ExitError::fatal(NoPort(io::ErrorKind::AddrInUse.into())))
}

const TEXT: &str = "can't listen on port 80: address in use";

/// A worker that fails fatally when it is active.
fn active(name: &str) -> ChildSpec {
    worker(name, async |_ctx: Context| {
        tokio::task::yield_now().await;
        fatal()
    })
}

/// A worker that fails fatally before it is ready.
fn starting(name: &str) -> ChildSpec {
    active(name).readiness(Readiness::Signal)
}

/// A child whose activation fails fatally.
fn activating(name: &str) -> ChildSpec {
    struct Listener;

    #[async_trait]
    impl Child for Listener {
        async fn activate(&mut self, _ctx: &Context) -> Exit {
            fatal()
        }

        async fn run(&mut self, _ctx: &Context) -> Exit {
            unreachable!("it isn't active")
        }
    }

    child(name, || Listener)
}

/// Returns the error of a tree that ends at once.
async fn ends(tree: SupervisorBuilder) -> RunError {
    let began = Instant::now();
    let tree = tree.build().unwrap();
    let hour = Duration::from_secs(3_600);
    let error = timeout(hour, tree.run()).await.expect("it ends").unwrap_err();
    assert_eq!(began.elapsed(), Duration::ZERO, "it waits for nothing");
    error
}

#[tokio::test(start_paused = true)]
async fn a_fatal_error_ends_the_program_at_once_with_its_causes() {
    for spec in [active("http"), starting("http"), activating("http")] {
        let error = ends(Supervisor::builder("app").unlimited_restarts().child(spec)).await;
        let RunError::GaveUp { child, reason, .. } = &error else { panic!("{error}") };
        assert_eq!(child.as_str(), "app/http");
        let (ExitReason::Failed(inner) | ExitReason::ActivationFailed(inner)) = reason else {
            panic!("{reason}")
        };
        assert!(inner.is_fatal());
        assert_eq!(inner.to_string(), TEXT);
        assert!(inner.downcast_ref::<NoPort>().is_some());
        assert!(error.to_string().ends_with(TEXT), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_fatal_error_ends_each_supervisor_above_and_the_other_children_stop_in_order() {
    let fakes = FakeChildren::new();
    let inner = Supervisor::builder("inner").child(fakes.child("a")).child(active("http"));
    let app = Supervisor::builder("app").child(fakes.child("b")).child(inner);
    let error = ends(app.preset(Preset::kubelet())).await;
    assert!(error.to_string().ends_with(TEXT), "{error}");
    assert_eq!(fakes.actions(), ["start b", "start a", "stop a", "stop b"]);
}

#[tokio::test(start_paused = true)]
async fn a_fatal_error_is_not_decided_by_a_callback_a_limit_or_a_preset() {
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let app = Supervisor::builder("app").on_child_failure(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        true
    });
    ends(app.child(active("http"))).await;
    assert_eq!(asked.load(Ordering::Relaxed), 0);

    for preset in Preset::all() {
        let (name, trigger) = (preset.name(), preset.trigger().clone());
        let restarts = RestartType::Permanent;
        let app = Supervisor::builder("app").preset(preset).first_start(FirstStart::Retry);
        let error = ends(app.child(active("http").restart(restarts))).await;
        assert!(matches!(error, RunError::GaveUp { .. }), "{name} {trigger:?}: {error}");
    }
}

async fn state(tree: &SupervisorHandle, name: &str) -> (Lifecycle, u32) {
    settle().await;
    let child = tree.which_child(name).await.unwrap();
    (child.lifecycle, child.incarnation)
}

#[tokio::test(start_paused = true)]
async fn a_trigger_that_does_not_restart_the_child_contains_a_fatal_error() {
    let fakes = FakeChildren::new();
    let inner = Supervisor::builder("inner").child(active("http"));
    let left = inner.into_child().on_exit(ExitKind::Escalated, OnExit::Leave);
    let stopped = active("stopped").leave_down_if(|_: &NoPort| true);
    let temporary = active("temporary").restart(RestartType::Temporary);
    let app = Supervisor::builder("app").child(left).child(stopped).child(temporary);
    let tree = start(app.child(fakes.child("other"))).await;
    assert_eq!(state(&tree, "inner").await, (Lifecycle::Errored, 1));
    assert_eq!(state(&tree, "stopped").await, (Lifecycle::Errored, 1));
    assert_eq!(state(&tree, "other").await, (Lifecycle::Active, 1));
    fakes.end("other", End::Error).await;
    assert_eq!(state(&tree, "other").await.0, Lifecycle::Restarting, "it runs on");
}

#[tokio::test(start_paused = true)]
async fn a_fatal_error_of_a_dynamic_child_fails_its_supervisor_and_a_failed_call_only_the_call() {
    let app = Supervisor::builder("app").child(DynamicSupervisor::builder("conns"));
    let tree = start(app).await;
    let conns = tree.supervisor("conns").await.unwrap();

    let error = conns.start_child(activating("a")).await.unwrap_err();
    let ControlError::ActivationFailed { reason, .. } = &error else { panic!("{error}") };
    assert_eq!(reason.to_string(), format!("activation failed: {TEXT}"));
    assert_eq!(state(&tree, "conns").await, (Lifecycle::Active, 1));

    conns.start_child(active("b")).await.unwrap();
    let error = tree.wait().await.unwrap_err();
    assert!(error.to_string().ends_with(TEXT), "{error}");
}

#[test]
fn a_fatal_error_is_an_error_with_a_mark() {
    let error = ExitError::fatal("no");
    assert!(error.is_fatal() && !error.is_ignore());
    assert_eq!(error.to_string(), "no");
    assert!(ExitError::fatal(ExitError::fatal("no")).is_fatal());
    assert!(!ExitError::from("no").is_fatal());
    let ignored = ExitError::fatal(ExitError::ignore());
    assert!(ignored.is_ignore() && !ignored.is_fatal(), "there is no error");
}
