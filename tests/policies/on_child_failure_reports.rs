//! Callbacks that fail to decide, and the log lines of decisions.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::common::{End, FakeChildren, settle, start};
use crate::log::Log;
use tokio::time::{Instant, sleep};
use tracing::level_filters::LevelFilter;
use verger::policy::ChildFailure;
use verger::{Backoff, Supervisor, SupervisorBuilder};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A supervisor that restarts immediately, without a limit.
fn eager(name: &str) -> SupervisorBuilder {
    let builder = Supervisor::builder(name).unlimited_restarts();
    builder.defaults(|child| child.backoff(Backoff::none()))
}

/// In SignalPy, any error except the escalation leaves the child as it is.
#[tokio::test(start_paused = true)]
async fn seed3_16_a_callback_that_fails_or_panics_escalates() {
    async fn fails(_: ChildFailure) -> Result<bool, &'static str> {
        Err("no idea")
    }
    fn panics(failure: ChildFailure) -> bool {
        panic!("no idea about {}", failure.name())
    }
    async fn panics_later(failure: ChildFailure) -> bool {
        sleep(secs(1)).await;
        panics(failure)
    }
    let (no_idea, panicked) = ("failed: no idea", "panicked: no idea about a");
    let table = [
        (eager("app").on_child_failure(fails), no_idea),
        (eager("app").on_child_failure(panics), panicked),
        (eager("app").on_child_failure(panics_later), panicked),
    ];
    for (app, problem) in table {
        let log = Log::at(LevelFilter::ERROR);
        let fakes = FakeChildren::new();
        let app = start(app.child(fakes.child("a"))).await;
        fakes.end("a", End::Error).await;
        let error = app.wait().await.unwrap_err();
        assert_eq!(error.to_string(), "`app` gave up on `app/a`: failed: a failed");
        let lines = log.lines();
        let expected = format!("problem=\"{problem}\"");
        assert!(lines[0].contains("no decision by the callback: escalating"), "{lines:#?}");
        assert!(lines[0].contains("child=app/a incarnation=1"), "{lines:#?}");
        assert!(lines[0].contains(&expected), "{lines:#?}");
        assert!(lines[1].contains("escalated by the callback"), "{lines:#?}");
        assert!(lines[1].contains("cause=\"failed: a failed\""), "{lines:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn seed3_16_a_callback_that_takes_longer_than_five_seconds_escalates() {
    let dropped = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&dropped);
    let app = eager("app").on_child_failure(move |_| {
        let guard = Guard(Arc::clone(&count));
        async move {
            let _guard = guard;
            pending::<bool>().await
        }
    });
    let log = Log::at(LevelFilter::ERROR);
    let fakes = FakeChildren::new();
    let app = start(app.child(fakes.child("a"))).await;
    let began = Instant::now();
    fakes.end("a", End::Panic).await;
    let error = app.wait().await.unwrap_err();

    assert_eq!(began.elapsed(), secs(5));
    assert_eq!(error.to_string(), "`app` gave up on `app/a`: panicked: a panicked");
    let lines = log.lines();
    assert!(lines[0].contains("problem=\"didn't answer within 5s\""), "{lines:#?}");
    settle().await;
    assert_eq!(dropped.load(Ordering::Relaxed), 1, "nothing is left of it");
}

/// The log line of a decision has every input of the decision.
#[tokio::test(start_paused = true)]
async fn a_decision_is_logged_with_the_run_time_of_the_child() {
    let log = Log::at(LevelFilter::ERROR);
    let fakes = FakeChildren::new();
    let app = eager("app").on_child_failure(async |failure: ChildFailure| {
        sleep(secs(1)).await;
        failure.name() == "b"
    });
    let app = start(app.child(fakes.child("a")).child(fakes.child("b"))).await;
    sleep(secs(7)).await;
    fakes.end("a", End::Error).await;
    fakes.end("b", End::Error).await;
    sleep(secs(1)).await;
    settle().await;
    let lines = log.lines();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    let expected = "given up by the callback child=app/a incarnation=1 \
                    cause=\"failed: a failed\" lived=7s";
    assert!(lines[0].contains(expected), "{lines:#?}");
    app.stop("done").await.unwrap();
}

struct Guard(Arc<AtomicU32>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
