//! A stream of what happens, for one listener.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::dead_letter::{DeadLetter, drop_afterwards};

/// What happens from now on, one item at a time.
///
/// Nobody waits for a subscriber: one that is more than 1024 items behind misses the oldest, and
/// learns from [`missed`](Self::missed) how many.
pub struct Subscription<T> {
    /// There until this is dropped.
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

    /// Waits for the next item. `None`: the supervisor has ended, and there will be no more.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<T> {
        let receiver = self.receiver.as_mut()?;
        loop {
            match receiver.recv().await {
                Ok(item) if (self.wanted)(&item) => return Some(item),
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => self.missed += missed,
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// The next item, if it is there already.
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
    /// Passes over the items that are not wanted, and over no others.
    pub(super) fn only(mut self, wanted: fn(&T) -> bool) -> Self {
        self.wanted = wanted;
        self
    }

    /// How many items were missed so far, because this subscriber was too far behind. Those that it
    /// would have passed over are among them.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed
    }
}

/// Letters may be [suppressed](crate::SupervisorBuilder::suppress_dead_letters), by the type of
/// their message. Unless it is said here, a subscriber doesn't see those.
impl Subscription<DeadLetter> {
    /// All letters, suppressed or not.
    #[must_use]
    pub fn with_suppressed(self) -> Self {
        self.only(|_| true)
    }

    /// The suppressed ones, and no others.
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
        // The channel drops what only this subscriber had not seen, under a lock of its own.
        drop_afterwards(|| self.receiver = None);
    }
}

impl<T> fmt::Debug for Subscription<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("missed", &self.missed).finish_non_exhaustive()
    }
}
