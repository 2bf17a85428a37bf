//! The properties of a child, which a decision can change.

use std::sync::{Arc, Mutex};

use super::{Endpoint, Recorder, Region, eager};
use crate::common::{End, FakeChildren, killed, settle, start};
use tokio::sync::Notify;
use verger::policy::FailureDecision;
use verger::{ChildSpec, Context, Exit, ExitReason, Strategy, worker};

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
    app.stop("done").await.or_else(killed).unwrap();
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
            app.kill("client").await.unwrap();
            settle().await;
        }
        // Restarted manually, and with its group.
        app.restart("client").await.unwrap();
        app.stop_child("client").await.unwrap();
        app.otp().restart_child("client").await.unwrap();
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
        app.stop_child("client").await.unwrap();
        app.otp().delete_child("client").await.unwrap();
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
    app.kill("client").await.unwrap();
    settle().await;
    app.resume("client").await.unwrap();
    settle().await;
    assert_eq!(*seen.lock().unwrap(), [(None, None), (Some(3), None)]);
    app.stop("done").await.unwrap();
}
