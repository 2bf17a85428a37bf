//! Restart limits of supervisors and children.

mod checks;
mod children;
mod dynamic;
mod nested;
mod supervisors;
mod windows;

use std::time::Duration;

use crate::common::{End, FakeChildren};
use verger::status::ChildInfo;
use verger::{Backoff, ChildDefaults, Lifecycle, Supervisor, SupervisorBuilder, SupervisorHandle};

const MINUTE: Duration = Duration::from_secs(60);

const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A supervisor that restarts immediately and without a limit of its own.
fn patient() -> SupervisorBuilder {
    let at_once = |child: ChildDefaults| child.backoff(Backoff::none());
    Supervisor::builder("app").unlimited_restarts().defaults(at_once)
}

async fn seen(tree: &SupervisorHandle, name: &str) -> ChildInfo {
    tree.which_child(name).await.unwrap()
}

/// Fails the child, and returns whether it is up again without any time passing.
async fn comes_back(tree: &SupervisorHandle, fakes: &FakeChildren, name: &str) -> bool {
    fakes.end(name, End::Error).await;
    seen(tree, name).await.lifecycle == Lifecycle::Active
}
