//! Children other than async functions: blocking threads, closures, local futures, adopted tasks.

mod adopt;
mod blocking;
mod clock;
mod closures;
#[path = "../common/mod.rs"]
mod common;
mod local;
#[path = "../common/log.rs"]
mod log;

use std::sync::mpsc;
use std::time::Duration;

use verger::status::{Event, EventKind, Subscription};
use verger::{ChildSpec, Supervisor, SupervisorHandle};

/// Starts a supervisor with one child. The leak timeout is so short that a test can wait for it.
async fn start(child: impl Into<ChildSpec>) -> SupervisorHandle {
    let app = Supervisor::builder("app").leak_timeout(Duration::from_millis(1));
    app.child(child).build().unwrap().start().await.unwrap()
}

/// Returns the reason of the next exit.
async fn next_exit(events: &mut Subscription<Event>) -> String {
    loop {
        if let EventKind::Moved { reason: Some(reason), .. } = events.next().await.unwrap().kind {
            return reason.to_string();
        }
    }
}

/// Waits for an event of this kind.
async fn until(events: &mut Subscription<Event>, wanted: fn(&EventKind) -> bool) -> (String, u32) {
    loop {
        let event = events.next().await.unwrap();
        if wanted(&event.kind) {
            return (event.path.to_string(), event.incarnation);
        }
    }
}

const LEAKED: fn(&EventKind) -> bool = |kind| matches!(kind, EventKind::Leaked);
const LEAK_ENDED: fn(&EventKind) -> bool = |kind| matches!(kind, EventKind::LeakEnded);

/// Blocks this thread until the sender is dropped.
fn block(released: &mpsc::Receiver<()>) {
    released.recv().unwrap_err();
}
