//! Handlers of events.
//!
//! # Invariants
//!
//! 1. An event that a queue has accepted is handled, or becomes one dead letter: of the task of the handler when that
//!    ends or, if an emitter pushes it after that, when the last emitter drops the handler.

use std::any::Any;
use std::collections::BTreeMap;
use std::future::{Future, pending};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Weak};

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender};

use super::letters::LetterOwner;
use super::registration::{Inlet, run};
use super::topics::{BusShared, HandlerId, Topic, TopicKey};
use crate::dead_letter::DeadLetterReason;
use crate::exit::{Exit, Outcome};
use crate::panic::Foreign;
use crate::sync::Mutex;

/// A handler, as the emitters see it.
pub(super) struct EventHandler<E: Send + Sync + 'static> {
    id: HandlerId,
    owner: Arc<LetterOwner>,
    queue: Sender<Foreign<E>>,
    /// Whether its only event is taken. `None` for a handler of any number of events.
    once: Option<AtomicBool>,
    /// The other end of the queue, once the task of the handler has ended.
    left: Mutex<Option<Receiver<Foreign<E>>>>,
}

/// What has become of an event that was offered to a handler.
pub(super) enum Offered<E> {
    /// The event is queued, or it is a dead letter because the queue is full.
    Accepted,
    /// The registration has ended.
    Returned(Foreign<E>),
}

impl<E: Send + Sync + 'static> EventHandler<E> {
    pub(super) fn new(
        id: HandlerId,
        owner: &Arc<LetterOwner>,
        queue: Sender<Foreign<E>>,
        once: Option<AtomicBool>,
    ) -> Arc<Self> {
        Arc::new(Self { id, owner: Arc::clone(owner), queue, once, left: Mutex::new(None) })
    }

    /// Queues an event that `emitter` has emitted, without waiting.
    pub(super) fn offer(
        &self,
        event: Foreign<E>,
        emitter: &LetterOwner,
        (shared, key): (&BusShared, &TopicKey),
    ) -> Offered<E> {
        if let Some(taken) = &self.once {
            if taken.swap(true, Ordering::AcqRel) {
                return Offered::Returned(event);
            }
            shared.remove(key, self.id);
        }
        match self.queue.try_send(event) {
            Ok(()) => Offered::Accepted,
            Err(TrySendError::Full(event)) => {
                emitter.publish(DeadLetterReason::MailboxFull, &self.owner, event, None);
                Offered::Accepted
            }
            Err(TrySendError::Closed(event)) => Offered::Returned(event),
        }
    }
}

/// Publishes the events that were queued while the task of the handler ended: no emitter uses the queue any more.
impl<E: Send + Sync + 'static> Drop for EventHandler<E> {
    fn drop(&mut self) {
        let left = self.left.lock().take();
        if let Some(mut queue) = left {
            return_all(&mut queue, &self.owner);
        }
    }
}

/// Makes letters of the events in the queue of a handler that has ended.
fn return_all<E: Send + Sync + 'static>(queue: &mut Receiver<Foreign<E>>, owner: &LetterOwner) {
    while let Ok(event) = queue.try_recv() {
        owner.publish(DeadLetterReason::UndeliveredAtStop, owner, event, None);
    }
}

/// The task of a handler: its queue, and whose handler it is. Dropping it ends the registration, and makes letters
/// of what is queued.
pub(super) struct EventLoop<E: Send + Sync + 'static> {
    /// `None` while it is dropped.
    inlet: Option<Inlet<Foreign<E>>>,
    handler: Weak<EventHandler<E>>,
    owner: Arc<LetterOwner>,
    fails_child: bool,
}

impl<E: Send + Sync + 'static> EventLoop<E> {
    pub(super) fn new(
        inlet: Inlet<Foreign<E>>,
        handler: Weak<EventHandler<E>>,
        owner: &Arc<LetterOwner>,
        fails_child: bool,
    ) -> Self {
        Self { inlet: Some(inlet), handler, owner: Arc::clone(owner), fails_child }
    }

    /// Calls the handler for one event after another, until the registration ends. Returns the first error if that
    /// fails the child.
    pub(super) async fn handle_all<F, Fut>(mut self, mut handler: F) -> Exit
    where
        F: FnMut(Arc<E>) -> Fut,
        Fut: Future<Output: Outcome>,
    {
        while let Some(event) = self.next().await {
            self.handle(event, &mut handler).await?;
        }
        Ok(())
    }

    /// Calls the handler for one event.
    pub(super) async fn handle_one<F, Fut>(mut self, handler: F) -> Exit
    where
        F: FnOnce(Arc<E>) -> Fut,
        Fut: Future<Output: Outcome>,
    {
        match self.next().await {
            Some(event) => self.handle(event, handler).await,
            None => Ok(()),
        }
    }

    async fn next(&mut self) -> Option<Foreign<E>> {
        let inlet = self.inlet.as_mut()?;
        let event = inlet.next().await?;
        if inlet.has_ended() {
            self.owner.publish(DeadLetterReason::UndeliveredAtStop, &self.owner, event, None);
            return None;
        }
        Some(event)
    }

    async fn handle<Fut>(&self, event: Foreign<E>, handler: impl FnOnce(Arc<E>) -> Fut) -> Exit
    where
        Fut: Future<Output: Outcome>,
    {
        let given = Arc::clone(event.shared());
        let in_hand = InHand { event: Some(event), owner: &self.owner };
        let call = || {
            let future = handler(given);
            async move { future.await.into_exit() }
        };
        let exit = run(self.owner.message_span::<E>(), call, pending()).await.unwrap_or(Ok(()));
        let Some(event) = in_hand.handled() else { return Ok(()) };
        match exit {
            // A handler has nothing to decline.
            Err(error) if error.is_ignore() => {}
            Err(error) if self.fails_child => return Err(error),
            Err(error) => {
                let (owner, error) = (&self.owner, Arc::new(error.into_reason()));
                owner.publish(DeadLetterReason::HandlerError, owner, event, Some(error));
            }
            Ok(()) => {}
        }
        Ok(())
    }
}

impl<E: Send + Sync + 'static> Drop for EventLoop<E> {
    fn drop(&mut self) {
        let Some(inlet) = self.inlet.take() else { return };
        let mut queue = inlet.close();
        return_all(&mut queue, &self.owner);
        // An emitter may have passed the queue before it was closed, and push its event only now.
        match self.handler.upgrade() {
            Some(handler) => *handler.left.lock() = Some(queue),
            // The last emitter has dropped the handler since, after its push.
            None => {
                fence(Ordering::Acquire);
                return_all(&mut queue, &self.owner);
            }
        }
    }
}

/// An event that is being handled. It becomes a dead letter if the task of the handler is aborted.
struct InHand<'a, E: Send + Sync + 'static> {
    event: Option<Foreign<E>>,
    owner: &'a LetterOwner,
}

impl<E: Send + Sync + 'static> InHand<'_, E> {
    fn handled(mut self) -> Option<Foreign<E>> {
        self.event.take()
    }
}

impl<E: Send + Sync + 'static> Drop for InHand<'_, E> {
    fn drop(&mut self) {
        if let Some(event) = self.event.take() {
            self.owner.publish(DeadLetterReason::UndeliveredAtStop, self.owner, event, None);
        }
    }
}

/// The handlers of one type of events on one channel.
pub(super) struct EventTopic<E: Send + Sync + 'static> {
    handlers: BTreeMap<HandlerId, Arc<EventHandler<E>>>,
    /// The same handlers, for emitters. Made by the first `emit` after a change.
    snapshot: Option<EventHandlers<E>>,
}

/// The handlers of an event, in the order of their registrations.
pub(super) type EventHandlers<E> = Arc<[Arc<EventHandler<E>>]>;

impl<E: Send + Sync + 'static> Default for EventTopic<E> {
    fn default() -> Self {
        Self { handlers: BTreeMap::new(), snapshot: None }
    }
}

impl<E: Send + Sync + 'static> EventTopic<E> {
    /// Adds a handler. Returns what is to be dropped once no lock is held.
    pub(super) fn add(&mut self, handler: Arc<EventHandler<E>>) -> Option<EventHandlers<E>> {
        self.handlers.insert(handler.id, handler);
        self.snapshot.take()
    }

    /// Returns the handlers that are registered.
    pub(super) fn all(shared: &BusShared, key: &TopicKey) -> Option<EventHandlers<E>> {
        if let Some(snapshot) = shared.read(key, |topic: &Self| topic.snapshot.clone())? {
            return Some(snapshot);
        }
        shared.change(key, |topic: &mut Self| {
            let Self { handlers, snapshot } = topic;
            Arc::clone(snapshot.get_or_insert_with(|| handlers.values().cloned().collect()))
        })
    }
}

impl<E: Send + Sync + 'static> Topic for EventTopic<E> {
    fn remove(&mut self, id: HandlerId) -> Box<dyn Any + Send> {
        Box::new((self.handlers.remove(&id), self.snapshot.take()))
    }

    fn is_empty(&self) -> bool {
        self.handlers.is_empty()
    }
}
