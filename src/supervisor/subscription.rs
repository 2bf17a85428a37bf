//! A stream of what happens, for one listener.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

/// What happens from now on, one item at a time.
///
/// Nobody waits for a subscriber: one that is more than 1024 items behind misses the oldest, and
/// learns from [`missed`](Self::missed) how many.
pub struct Subscription<T> {
    receiver: broadcast::Receiver<T>,
    missed: u64,
    counted: Option<Arc<AtomicUsize>>,
}

impl<T: Clone> Subscription<T> {
    pub(crate) fn new(receiver: broadcast::Receiver<T>, counted: Option<Arc<AtomicUsize>>) -> Self {
        if let Some(count) = &counted {
            count.fetch_add(1, Ordering::Relaxed);
        }
        Self { receiver, missed: 0, counted }
    }

    /// Waits for the next item. `None`: the supervisor has ended, and there will be no more.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<T> {
        loop {
            match self.receiver.recv().await {
                Ok(item) => return Some(item),
                Err(RecvError::Lagged(missed)) => self.missed += missed,
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// The next item, if it is there already.
    pub fn try_next(&mut self) -> Option<T> {
        loop {
            match self.receiver.try_recv() {
                Ok(item) => return Some(item),
                Err(TryRecvError::Lagged(missed)) => self.missed += missed,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
            }
        }
    }
}

impl<T> Subscription<T> {
    /// How many items were missed so far, because this subscriber was too far behind.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed
    }
}

impl<T> Drop for Subscription<T> {
    fn drop(&mut self) {
        if let Some(count) = &self.counted {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl<T> fmt::Debug for Subscription<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("missed", &self.missed).finish_non_exhaustive()
    }
}
