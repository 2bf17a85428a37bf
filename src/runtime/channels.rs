//! The channels of a supervisor: one for events, one for dead letters.
//!
//! A channel is created at the first subscription. It is closed with the supervisor, so a subscriber
//! learns from it that the supervisor has ended.
//!
//! # Invariants
//!
//! 1. Channels are only created and cloned under the lock. tokio drops the items of a full channel
//!    under locks of its own, which may run foreign code.
//! 2. After `close` there are no channels, and none are created.

use tokio::sync::broadcast::{self, Receiver, Sender};

use crate::dead_letter::{DeadLetter, drop_afterwards};
use crate::status::Event;
use crate::sync::Mutex;

/// How many items a subscriber may lag behind before it misses some.
const CAPACITY: usize = 1024;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Channels(Mutex<Option<Box<ChannelSenders>>>);

#[derive(Debug, Default)]
pub(super) struct ChannelSenders {
    events: Option<Sender<Event>>,
    letters: Option<Sender<DeadLetter>>,
}

/// An item that a supervisor has a channel for.
pub(super) trait Item: Clone {
    fn of(senders: &mut ChannelSenders) -> &mut Option<Sender<Self>>;
}

impl Item for Event {
    fn of(senders: &mut ChannelSenders) -> &mut Option<Sender<Self>> {
        &mut senders.events
    }
}

impl Item for DeadLetter {
    fn of(senders: &mut ChannelSenders) -> &mut Option<Sender<Self>> {
        &mut senders.letters
    }
}

impl Channels {
    /// `is_over` returns whether the supervisor has closed its inbox, which happens before it
    /// [closes](Self::close) the channels.
    pub(super) fn subscribe<T: Item>(&self, is_over: impl FnOnce() -> bool) -> Receiver<T> {
        let sender = {
            let mut senders = self.0.lock();
            if is_over() {
                // Closed at once: its sender is dropped here.
                return broadcast::channel(1).1;
            }
            let sender = T::of(senders.get_or_insert_default());
            sender.get_or_insert_with(|| Sender::new(CAPACITY)).clone()
        };
        sender.subscribe()
    }

    pub(super) fn send<T: Item>(&self, item: &T) {
        let sender = self.0.lock().as_mut().and_then(|senders| T::of(senders).clone());
        if let Some(sender) = sender {
            // Fails if no subscriber is left.
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

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::thread;
    use std::time::SystemTime;

    use super::*;
    use crate::exit::ExitReason;
    use crate::path::Path;
    use crate::status::EventKind;

    /// An error that subscribes while it is dropped.
    #[derive(Debug, thiserror::Error)]
    #[error("listens")]
    struct Listening(Arc<Channels>, mpsc::Sender<()>);

    impl Drop for Listening {
        fn drop(&mut self) {
            self.1.send(()).unwrap();
            // Long enough for the other thread to subscribe meanwhile.
            for _ in 0..10_000 {
                drop(self.0.subscribe::<DeadLetter>(|| false));
                thread::yield_now();
            }
        }
    }

    fn event(reason: ExitReason) -> Event {
        let (path, at) = (Path::root("app"), SystemTime::UNIX_EPOCH);
        Event {
            seq: 1,
            at,
            path,
            incarnation: 1,
            kind: EventKind::GaveUp { reason: reason.into() },
        }
    }

    #[test]
    fn an_item_may_subscribe_while_it_is_dropped() {
        let channels = Arc::<Channels>::default();
        let _behind = channels.subscribe::<Event>(|| false);
        let (tells, told) = mpsc::channel();
        let listening = Listening(Arc::clone(&channels), tells);
        channels.send(&event(ExitReason::Failed(listening.into())));
        let others = {
            let channels = Arc::clone(&channels);
            thread::spawn(move || {
                told.recv().unwrap();
                drop(channels.subscribe::<Event>(|| false));
            })
        };
        // The last of these replaces the first.
        for _ in 0..CAPACITY {
            channels.send(&event(ExitReason::Normal));
        }
        others.join().unwrap();
    }

    #[test]
    fn a_subscription_to_closed_channels_ends_at_once() {
        let channels = Channels::default();
        let mut before = channels.subscribe::<Event>(|| false);
        channels.send(&event(ExitReason::Normal));
        channels.close();
        channels.send(&event(ExitReason::Normal));
        assert!(before.try_recv().is_ok(), "it was sent before");
        assert_eq!(before.try_recv().unwrap_err(), broadcast::error::TryRecvError::Closed);

        let mut after = channels.subscribe::<DeadLetter>(|| true);
        assert_eq!(after.try_recv().unwrap_err(), broadcast::error::TryRecvError::Closed);
        assert!(channels.0.lock().is_none(), "none is created");
    }
}
