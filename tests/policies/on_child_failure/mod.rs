//! The callback that decides about a failed child, through the public API. The tests of the core
//! cover its inputs and the events that discard its decision.

mod callbacks;
mod decisions;
mod properties;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use verger::policy::{ChildFailure, FailureDecision};
use verger::{Backoff, Lifecycle, Supervisor, SupervisorBuilder, SupervisorHandle};

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

/// The endpoint to connect to.
#[derive(Debug, PartialEq)]
struct Endpoint(u32);

/// The region to connect in.
#[derive(Debug, PartialEq)]
struct Region(&'static str);
