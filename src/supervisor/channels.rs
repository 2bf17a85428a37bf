//! The channels of a supervisor: one for events, one for dead letters.
//!
//! Hardly any supervisor ever has one, so they are made when somebody subscribes. They go with the
//! supervisor, and whoever listens learns from that that it has ended.
//!
//! # Invariants
//!
//! 1. Nothing is sent or dropped under the lock: what a channel holds may run anybody's code when it
//!    is dropped.
//! 2. Once they are closed there are none, and none are made.

use tokio::sync::broadcast::{self, Receiver, Sender};

use crate::dead_letter::{DeadLetter, drop_afterwards};
use crate::event::Event;
use crate::sync::Mutex;

/// How many items a subscriber may be behind before it misses some.
const CAPACITY: usize = 1024;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Channels(Mutex<Option<Box<Senders>>>);

#[derive(Debug, Default)]
pub(super) struct Senders {
    events: Option<Sender<Event>>,
    letters: Option<Sender<DeadLetter>>,
}

/// What a supervisor has a channel for.
pub(super) trait Item: Clone {
    fn of(senders: &mut Senders) -> &mut Option<Sender<Self>>;
}

impl Item for Event {
    fn of(senders: &mut Senders) -> &mut Option<Sender<Self>> {
        &mut senders.events
    }
}

impl Item for DeadLetter {
    fn of(senders: &mut Senders) -> &mut Option<Sender<Self>> {
        &mut senders.letters
    }
}

impl Channels {
    /// `is_over`: whether the supervisor takes nothing in any more, which it doesn't before it
    /// [closes](Self::close) these.
    pub(super) fn subscribe<T: Item>(&self, is_over: impl FnOnce() -> bool) -> Receiver<T> {
        let mut senders = self.0.lock();
        if is_over() {
            // Its sender is gone, so that it ends at once.
            return broadcast::channel(1).1;
        }
        let sender = T::of(senders.get_or_insert_default());
        sender.get_or_insert_with(|| broadcast::channel(CAPACITY).0).subscribe()
    }

    pub(super) fn send<T: Item>(&self, item: &T) {
        let sender = self.0.lock().as_mut().and_then(|senders| T::of(senders).clone());
        if let Some(sender) = sender {
            // It fails if nobody is listening any more: fine.
            let _ = sender.send(item.clone());
        }
    }

    pub(super) fn close(&self) {
        let senders = self.0.lock().take();
        if senders.is_some() {
            drop_afterwards(|| drop(senders));
        }
    }
}
