//! A broadcast channel of a supervisor, created by the first subscription.
//!
//! It ends with the supervisor, and subscribers learn from that that the supervisor has ended.
//!
//! # Invariants
//!
//! 1. While the lock is held, the channel is only created and cloned. tokio drops old items under locks
//!    of its own, and their `Drop` may run foreign code.
//! 2. Once it is closed, it stays closed.
//! 3. Subscriptions to a tree that doesn't run yet belong to its one run. If there is none, they end.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tokio::sync::broadcast::{self, Receiver, Sender};

use crate::deferred_drop::drop_afterwards;
use crate::panic::catch_panic;
use crate::status::{Event, Subscription};
use crate::sync::Mutex;

/// How many items a subscriber may be behind before it misses some.
pub(super) const CAPACITY: usize = 1024;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Channel<T>(Mutex<ChannelState<T>>);

#[derive(Debug)]
enum ChannelState<T> {
    Unused,
    Open(Sender<T>),
    Closed,
}

impl<T> Default for Channel<T> {
    fn default() -> Self {
        Self(Mutex::new(ChannelState::Unused))
    }
}

impl<T> Channel<T> {
    /// Creates a channel that the holder of its sender has subscribed to already.
    pub(super) fn open(sender: Sender<T>) -> Self {
        Self(Mutex::new(ChannelState::Open(sender)))
    }
}

impl<T: Clone> Channel<T> {
    /// Subscribes to the items that are sent from now on, until the channel is closed.
    pub(super) fn subscribe(&self) -> Receiver<T> {
        let sender = {
            let mut state = self.0.lock();
            match &*state {
                ChannelState::Unused => {
                    let sender = Sender::new(CAPACITY);
                    *state = ChannelState::Open(sender.clone());
                    sender
                }
                ChannelState::Open(sender) => sender.clone(),
                // Its sender is dropped at once, so that the subscription ends.
                ChannelState::Closed => return broadcast::channel(1).1,
            }
        };
        sender.subscribe()
    }

    pub(super) fn send(&self, item: &T) {
        let sender = match &*self.0.lock() {
            ChannelState::Open(sender) => sender.clone(),
            ChannelState::Unused | ChannelState::Closed => return,
        };
        // It fails if all subscriptions were dropped.
        catch_panic(|| sender.send(item.clone()));
    }

    pub(super) fn close(&self) {
        let state = mem::replace(&mut *self.0.lock(), ChannelState::Closed);
        if let ChannelState::Open(sender) = state {
            drop_afterwards(|| drop(sender));
        }
    }
}

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn subscriptions_to_a_closed_channel_end_at_once() {
        let channel = Channel::default();
        let mut before = channel.subscribe();
        channel.send(&1);
        channel.close();
        channel.send(&2);
        assert_eq!(before.try_recv(), Ok(1), "it was sent before");
        assert_eq!(before.try_recv().unwrap_err(), broadcast::error::TryRecvError::Closed);

        let mut after = channel.subscribe();
        assert_eq!(after.try_recv().unwrap_err(), broadcast::error::TryRecvError::Closed);
        assert!(matches!(*channel.0.lock(), ChannelState::Closed), "none is created");
    }
}

/// Subscriptions to the events of a tree that doesn't run yet.
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
