//! Subscriptions to events and dead letters.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::dead_letter::{DeadLetter, drop_afterwards};
use crate::panic::CatchWakerPanic;

/// A stream of events or dead letters, beginning with the call that created it.
///
/// A supervisor never waits for a subscriber. A subscriber that lags more than 1024 items behind
/// misses the oldest ones, and [`missed`](Self::missed) returns how many.
///
/// ```
/// use verger::{Context, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
/// let app = Supervisor::builder("app").child(db).build()?.start().await?;
/// let mut events = app.events();
///
/// app.terminate_child("db").await?;
///
/// let mut lines = Vec::new();
/// while let Some(event) = events.try_next() {
///     lines.push(event.to_string());
/// }
/// assert!(lines.last().unwrap().contains("app/db"), "{lines:?}");
/// assert_eq!(events.missed(), 0);
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
pub struct Subscription<T> {
    /// `None` once dropped.
    receiver: Option<broadcast::Receiver<T>>,
    missed: u64,
    wanted: fn(&T) -> bool,
    counted: Option<Arc<AtomicUsize>>,
}

impl<T: Clone> Subscription<T> {
    pub(crate) fn new(receiver: broadcast::Receiver<T>, counted: Option<Arc<AtomicUsize>>) -> Self {
        if let Some(count) = &counted {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let receiver = Some(receiver);
        Self { receiver, missed: 0, wanted: |_| true, counted }
    }

    /// Waits for the next item, or returns `None` if the supervisor has ended.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: no item is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<T> {
        let receiver = self.receiver.as_mut()?;
        loop {
            match CatchWakerPanic::new(pin!(receiver.recv())).await {
                Ok(item) if (self.wanted)(&item) => return Some(item),
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => self.missed += missed,
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// Returns the next item, if there is one already.
    pub fn try_next(&mut self) -> Option<T> {
        let receiver = self.receiver.as_mut()?;
        loop {
            match receiver.try_recv() {
                Ok(item) if (self.wanted)(&item) => return Some(item),
                Ok(_) => {}
                Err(TryRecvError::Lagged(missed)) => self.missed += missed,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
            }
        }
    }
}

impl<T> Subscription<T> {
    /// Skips the items that are not wanted.
    pub(crate) fn only(mut self, wanted: fn(&T) -> bool) -> Self {
        self.wanted = wanted;
        self
    }

    /// Returns how many items were missed so far because this subscriber lagged behind.
    ///
    /// The count includes items that it would have skipped.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed
    }
}

/// Letters can be [suppressed](crate::SupervisorBuilder::suppress_dead_letters) by the type of their
/// message. By default a subscription skips those.
impl Subscription<DeadLetter> {
    /// Includes suppressed letters.
    #[must_use]
    pub fn with_suppressed(self) -> Self {
        self.only(|_| true)
    }

    /// Includes suppressed letters only.
    #[must_use]
    pub fn only_suppressed(self) -> Self {
        self.only(|letter| letter.suppressed)
    }
}

impl<T> Drop for Subscription<T> {
    fn drop(&mut self) {
        if let Some(count) = &self.counted {
            count.fetch_sub(1, Ordering::Relaxed);
        }
        // The channel drops the items that only this subscriber had not received, under its own lock.
        drop_afterwards(|| self.receiver = None);
    }
}

impl<T> fmt::Debug for Subscription<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("missed", &self.missed).finish_non_exhaustive()
    }
}
