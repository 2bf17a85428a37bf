//! Exits of children, from a tree's events, and children that stop slowly or never.

use std::time::Duration;

use tokio::time::sleep;
use verger::status::{Event, EventKind, Subscription};
use verger::{ChildSpec, Exit, Lifecycle, SupervisorHandle, worker_with};

/// The exits of incarnations below one supervisor, from its creation on.
pub(crate) struct Journal {
    events: Subscription<Event>,
}

/// The exit of one incarnation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) name: String,
    pub(crate) reason: String,
    /// The state that the incarnation ended in.
    pub(crate) from: Lifecycle,
    /// The time spent in that state.
    pub(crate) after: Duration,
}

impl Journal {
    pub(crate) fn of(handle: &SupervisorHandle) -> Self {
        Self { events: handle.events() }
    }

    /// Returns the exits since the last call.
    pub(crate) fn ended(&mut self) -> Vec<Ended> {
        let mut ended = Vec::new();
        while let Some(event) = self.events.try_next() {
            if let EventKind::Moved { from, after, reason: Some(reason), .. } = event.kind {
                let (name, reason) = (event.path.name().to_owned(), reason.to_string());
                ended.push(Ended { name, reason, from, after });
            }
        }
        assert_eq!(self.events.missed(), 0, "too many events for one look");
        ended
    }

    /// Returns the exits since the last call, each as `name: reason`.
    pub(crate) fn reasons(&mut self) -> Vec<String> {
        self.ended().into_iter().map(|ended| format!("{}: {}", ended.name, ended.reason)).collect()
    }

    /// Returns the exits since the last call, each as `name: reason after time`, with the time that
    /// the stop took.
    pub(crate) fn stops(&mut self) -> Vec<String> {
        let ended = self.ended().into_iter();
        let stops = ended.map(|ended| {
            assert_eq!(ended.from, Lifecycle::Deactivating, "{} was not stopped", ended.name);
            format!("{}: {} after {:?}", ended.name, ended.reason, ended.after)
        });
        stops.collect()
    }
}

/// Returns a function that stops this long after its cancellation.
pub(crate) fn slow(name: &str, time: Duration) -> ChildSpec {
    worker_with(name, time, async |ctx, time| -> Exit {
        ctx.cancelled().await;
        sleep(time).await;
        Ok(())
    })
}

/// Returns a function that ignores its cancellation.
pub(crate) fn ignores_cancellation(name: &str) -> ChildSpec {
    worker_with(name, (), async |_ctx, ()| -> Exit { std::future::pending().await })
}

/// Returns a duration; shorter than `Duration::from_secs` in tables.
pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
