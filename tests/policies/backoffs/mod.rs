//! The backoff of one failing child.

mod delays;
mod failed_starts;
mod incarnations;
mod owner;
mod resets;
mod waiting;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{End, FakeChildren, settle};
use tokio::time::sleep;
use verger::policy::Curve;
use verger::status::ChildInfo;
use verger::{Backoff, Supervisor, SupervisorBuilder, SupervisorHandle};

const SECOND: Duration = Duration::from_secs(1);

const DAY: Duration = Duration::from_secs(24 * 3600);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A curve of one second each that records the indexes it was asked for.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<u32>>>);

impl Recorder {
    fn indexes(&self) -> Vec<u32> {
        self.0.lock().unwrap().clone()
    }

    fn backoff(&self) -> Backoff {
        Backoff::custom(self.clone())
    }
}

impl Curve for Recorder {
    fn delay(&self, index: u32) -> Duration {
        self.0.lock().unwrap().push(index);
        SECOND
    }
}

fn app() -> SupervisorBuilder {
    Supervisor::builder("app").unlimited_restarts()
}

async fn seen(tree: &SupervisorHandle, name: &str) -> ChildInfo {
    tree.which_child(name).await.unwrap()
}

/// Sleeps, and lets every task react that is due.
async fn pass(time: Duration) {
    sleep(time).await;
    settle().await;
}

/// Fails the child, and waits for its delay.
async fn fail(tree: &SupervisorHandle, fakes: &FakeChildren, path: &str) -> Duration {
    let name = path.rsplit('/').next().unwrap_or(path);
    fakes.end(name, End::Error).await;
    let wait = seen(tree, path).await.next.map_or(Duration::ZERO, |next| next.delay);
    pass(wait).await;
    wait
}
