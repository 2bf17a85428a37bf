//! A message and what the mailbox knows about it.

use std::sync::Arc;

use super::ask::Refuse;
use crate::dead_letter::EntryId;

/// See the [module](self).
pub(super) struct Envelope<M> {
    /// The number of the message in its mailbox, assigned when it is queued.
    pub(super) id: u64,
    pub(super) message: M,
    /// How often the message was delivered.
    pub(super) attempts: u32,
    /// How many of these attempts failed.
    pub(super) failed: u32,
    /// `None`: sent through an address. Boxed, since all else is rare.
    pub(super) origin: Option<Box<MessageOrigin>>,
    /// Refuses the question, if the message is one.
    pub(super) asker: Option<Arc<dyn Refuse>>,
}

/// How a message came to its mailbox.
pub(super) enum MessageOrigin {
    /// By the mailbox of a child that was down.
    Forwarded,
    /// From a dead letter store.
    Replayed(EntryId),
}

impl<M> Envelope<M> {
    /// Wraps a message that is not queued yet.
    pub(super) fn new(message: M) -> Self {
        Self { id: 0, message, attempts: 0, failed: 0, origin: None, asker: None }
    }

    /// Sets how the message comes to its mailbox.
    pub(super) fn with_origin(self, origin: MessageOrigin) -> Self {
        Self { origin: Some(Box::new(origin)), ..self }
    }

    /// Whether the message was forwarded by another mailbox.
    pub(super) fn is_forwarded(&self) -> bool {
        matches!(self.origin.as_deref(), Some(MessageOrigin::Forwarded))
    }

    /// Wraps a question.
    pub(super) fn question(message: M, asker: Arc<dyn Refuse>) -> Self {
        Self { asker: Some(asker), ..Self::new(message) }
    }

    /// Separates the message from the rest.
    pub(super) fn open(self) -> (M, Envelope<()>) {
        let Self { id, message, attempts, failed, origin, asker } = self;
        (message, Envelope { id, message: (), attempts, failed, origin, asker })
    }

    /// Replaces the message.
    pub(super) fn with<T>(self, message: T) -> Envelope<T> {
        let Self { id, message: _, attempts, failed, origin, asker } = self;
        Envelope { id, message, attempts, failed, origin, asker }
    }
}
