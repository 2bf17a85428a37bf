//! Rules of our kin (Akka and Pekko, actor-ts, SignalPy, oversight, suture) on groups and trees, by
//! the number under which each was collected.

mod groups;
mod services;

use std::time::Duration;

use verger::{
    Backoff, Event, EventKind, Lifecycle, Subscription, Supervisor, SupervisorBuilder,
    SupervisorHandle,
};

/// What does not apply to a tree of tasks, or not as a whole, and why.
const LEFT_OUT: [(u32, &str); 2] = [
    (101, "an actor that is resumed keeps its state; a child here is restarted, or it is not"),
    (108, "nobody watches another child's end: who needs a sibling says `requires`"),
];

#[test]
fn every_rule_is_tested_or_left_out_for_a_reason() {
    let tests = [include_str!("groups.rs"), include_str!("services.rs")].concat();
    for number in 99..=128 {
        let tested = tests.contains(&format!("async fn kin_{number}_"));
        let left_out = LEFT_OUT.iter().any(|&(left_out, _)| left_out == number);
        assert!(tested != left_out, "{number} is tested: {tested}, left out: {left_out}");
    }
    assert!(LEFT_OUT.iter().all(|(_, reason)| reason.len() > 20));
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A supervisor that restarts at once, and as often as it takes.
fn eager(name: &str) -> SupervisorBuilder {
    at_once(Supervisor::builder(name).unlimited_restarts())
}

/// A supervisor that restarts at once, and so often a minute.
fn limited(name: &str, max: u32) -> SupervisorBuilder {
    at_once(Supervisor::builder(name).restarts(max, secs(60)))
}

fn at_once(builder: SupervisorBuilder) -> SupervisorBuilder {
    builder.defaults(|child| child.backoff(Backoff::none()))
}

async fn start(builder: SupervisorBuilder) -> SupervisorHandle {
    builder.build().unwrap().start().await.unwrap()
}

/// How often each child of a supervisor has been started.
async fn runs(handle: &SupervisorHandle) -> Vec<u32> {
    let children = handle.which_children().await.unwrap();
    children.iter().map(|child| child.incarnation).collect()
}

async fn lifecycle(handle: &SupervisorHandle, path: &str) -> Lifecycle {
    handle.which_child(path).await.unwrap().lifecycle
}

/// How runs have ended so far, as in `app/a#1 killed`.
fn endings(events: &mut Subscription<Event>) -> Vec<String> {
    let told = std::iter::from_fn(|| events.try_next());
    told.filter_map(|event| match event.kind {
        EventKind::Moved { reason: Some(reason), .. } => {
            Some(format!("{}#{} {}", event.path, event.incarnation, reason.kind()))
        }
        _ => None,
    })
    .collect()
}
