//! A stream of status changes.

use std::collections::HashMap;

use tokio::task::coop::consume_budget;

use super::event::{Event, EventKind};
use super::subscription::Subscription;
use crate::lifecycle::Lifecycle;
use crate::path::Path;

/// A child's current state.
///
/// The example of [`StatusStream`] reads some.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatusChange {
    /// The path of the child.
    pub path: Path,
    /// The number of its incarnation.
    pub incarnation: u32,
    /// Its state, or `None` if the child was removed.
    pub lifecycle: Option<Lifecycle>,
}

/// A stream of the current state of every child, followed by each change; see
/// [`SupervisorHandle::subscribe_status`](crate::SupervisorHandle::subscribe_status).
///
/// ```
/// use verger::Lifecycle;
/// use verger::{Context, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
/// let app = Supervisor::builder("app").child(db).build()?.start().await?;
///
/// let mut changes = app.subscribe_status().await?;
/// // The current states come first.
/// while let Some(change) = changes.next().await {
///     if change.path.as_str() == "app/db" {
///         assert_eq!(change.lifecycle, Some(Lifecycle::Active));
///         break;
///     }
/// }
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct StatusStream {
    /// In reverse order.
    pub(crate) replay: Vec<StatusChange>,
    /// The sequence number of the last event that the replay of each child reflects.
    pub(crate) reflected: HashMap<Path, u64>,
    pub(crate) events: Subscription<Event>,
}

impl StatusStream {
    /// Waits for the next change, or returns `None` if the supervisor has ended.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: no change is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<StatusChange> {
        consume_budget().await;
        if let Some(change) = self.replay.pop() {
            return Some(change);
        }
        loop {
            let event = self.events.next().await?;
            let lifecycle = match event.kind {
                _ if self.reflected.get(&event.path).is_some_and(|&seq| event.seq <= seq) => {
                    continue;
                }
                EventKind::Moved { to, .. } => Some(to),
                EventKind::Removed => None,
                _ => continue,
            };
            let Event { path, incarnation, .. } = event;
            // Later events of the child are newer than the replay. The child may be gone for good.
            self.reflected.remove(&path);
            return Some(StatusChange { path, incarnation, lifecycle });
        }
    }

    /// Returns how many changes were missed because this subscriber lagged behind.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.events.missed()
    }
}
