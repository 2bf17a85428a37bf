//! Rules of actor-ts (`seed0`), SignalPy (`seed3`) and elfo (`seed4`).

mod actor_ts;
mod elfo;
mod signalpy;

use std::time::Duration;

use verger::policy::Jitter;
use verger::status::{Event, EventKind, Subscription};
use verger::{Backoff, Lifecycle, Supervisor, SupervisorBuilder, SupervisorHandle};

const MINUTE: Duration = Duration::from_secs(60);

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A root whose children are restarted after 2, 4, 8, … seconds.
fn app() -> SupervisorBuilder {
    waiting(Supervisor::builder("app").unlimited_restarts())
}

/// The same, with a limit of restarts per minute.
fn limited(max: u32) -> SupervisorBuilder {
    waiting(Supervisor::builder("app").restarts(max, MINUTE))
}

fn waiting(builder: SupervisorBuilder) -> SupervisorBuilder {
    builder.defaults(|child| {
        child.backoff(Backoff::exponential(secs(2), secs(64)).jitter(Jitter::None))
    })
}

async fn start(builder: SupervisorBuilder) -> SupervisorHandle {
    builder.build().unwrap().start().await.unwrap()
}

async fn lifecycle(handle: &SupervisorHandle, path: &str) -> Lifecycle {
    handle.which_child(path).await.unwrap().lifecycle
}

/// Returns the transitions so far, as in `app/a#2 active → errored (panicked)`.
fn edges(events: &mut Subscription<Event>) -> Vec<String> {
    let received = std::iter::from_fn(|| events.try_next());
    received
        .filter_map(|event| match event.kind {
            EventKind::Moved { from, to, reason, wait, .. } => {
                let reason =
                    reason.map(|reason| format!(" ({})", reason.kind())).unwrap_or_default();
                let wait =
                    wait.map(|(n, wait)| format!(", attempt {n} in {wait:?}")).unwrap_or_default();
                Some(format!("{}#{} {from} → {to}{reason}{wait}", event.path, event.incarnation))
            }
            _ => None,
        })
        .collect()
}
