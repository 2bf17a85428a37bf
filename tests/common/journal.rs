//! How children ended, as a tree's events tell it, and children with a script of their own.

use std::time::Duration;

use tokio::time::sleep;
use verger::{
    ChildSpec, Event, EventKind, Exit, Lifecycle, Subscription, SupervisorHandle, worker_with,
};

/// The ends of incarnations below one supervisor, from now on.
pub(crate) struct Journal {
    events: Subscription<Event>,
}

/// The end of one incarnation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) name: String,
    pub(crate) reason: String,
    /// Where it was when it ended.
    pub(crate) from: Lifecycle,
    /// How long it had been there.
    pub(crate) after: Duration,
}

impl Journal {
    pub(crate) fn of(handle: &SupervisorHandle) -> Self {
        Self { events: handle.events() }
    }

    /// The ends since this was asked last.
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

    /// The same, each as `name: reason`.
    pub(crate) fn reasons(&mut self) -> Vec<String> {
        self.ended().into_iter().map(|ended| format!("{}: {}", ended.name, ended.reason)).collect()
    }

    /// The same, each as `name: reason after time`; the time is how long it took to stop.
    pub(crate) fn stops(&mut self) -> Vec<String> {
        let ended = self.ended().into_iter();
        let stops = ended.map(|ended| {
            assert_eq!(ended.from, Lifecycle::Deactivating, "{} was not stopped", ended.name);
            format!("{}: {} after {:?}", ended.name, ended.reason, ended.after)
        });
        stops.collect()
    }
}

/// A function that takes its time to stop once it is asked to.
pub(crate) fn slow(name: &str, time: Duration) -> ChildSpec {
    worker_with(name, time, async |ctx, time| -> Exit {
        ctx.cancelled().await;
        sleep(time).await;
        Ok(())
    })
}

/// A function that does not react to being asked to stop.
pub(crate) fn deaf(name: &str) -> ChildSpec {
    worker_with(name, (), async |_ctx, ()| -> Exit { std::future::pending().await })
}

/// `seconds(3)`, to keep tables narrow.
pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
