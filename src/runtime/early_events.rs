//! Subscriptions to the events of a tree that doesn't run yet.
//!
//! # Invariants
//!
//! 1. The subscriptions belong to one run. If there is none, they end when this is dropped.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tokio::sync::broadcast::Sender;

use super::channel::CAPACITY;
use crate::status::{Event, Subscription};

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct EarlyEvents {
    sender: Option<Sender<Event>>,
    listeners: Arc<AtomicUsize>,
}

impl EarlyEvents {
    pub(crate) fn subscribe(&mut self) -> Subscription<Event> {
        let sender = self.sender.get_or_insert_with(|| Sender::new(CAPACITY));
        Subscription::new(sender.subscribe(), Some(Arc::clone(&self.listeners)))
    }

    /// Returns what the run takes over: the channel of its root, and the number of subscriptions.
    pub(super) fn take(self) -> (Option<Sender<Event>>, Arc<AtomicUsize>) {
        (self.sender, self.listeners)
    }
}
