//! Rules of Akka and Pekko, actor-ts, SignalPy, oversight, suture, fx, systemd, elfo and the kubelet for groups
//! and trees. `tests/README.md` lists them by number.

mod groups;
mod health;
mod nested_services;
mod restarted_supervisors;
mod services;
mod starts_and_stops;

use std::time::Duration;

use verger::status::{Event, EventKind, Subscription};
use verger::{Backoff, Lifecycle, Supervisor, SupervisorBuilder, SupervisorHandle};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A supervisor that restarts immediately, without a limit.
fn eager(name: &str) -> SupervisorBuilder {
    at_once(Supervisor::builder(name).unlimited_restarts())
}

/// A supervisor that restarts immediately, up to a limit per minute.
fn limited(name: &str, max: u32) -> SupervisorBuilder {
    at_once(Supervisor::builder(name).restarts(max, secs(60)))
}

fn at_once(builder: SupervisorBuilder) -> SupervisorBuilder {
    builder.defaults(|child| child.backoff(Backoff::none()))
}

async fn start(builder: SupervisorBuilder) -> SupervisorHandle {
    builder.build().unwrap().start().await.unwrap()
}

/// Returns how often each child of a supervisor was started.
async fn runs(handle: &SupervisorHandle) -> Vec<u32> {
    let children = handle.children().await.unwrap();
    children.iter().map(|child| child.incarnation).collect()
}

async fn lifecycle(handle: &SupervisorHandle, path: &str) -> Lifecycle {
    handle.which_child(path).await.unwrap().lifecycle
}

/// Returns the exits so far, as in `app/a#1 killed`.
fn endings(events: &mut Subscription<Event>) -> Vec<String> {
    let received = std::iter::from_fn(|| events.try_next());
    received
        .filter_map(|event| match event.kind {
            EventKind::Moved { reason: Some(reason), .. } => {
                Some(format!("{}#{} {}", event.path, event.incarnation, reason.kind()))
            }
            _ => None,
        })
        .collect()
}
