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
    pub(super) origin: MessageOrigin,
    /// Refuses the question, if the message is one.
    pub(super) asker: Option<Arc<dyn Refuse>>,
}

/// How a message came to its mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MessageOrigin {
    Sent,
    /// By the mailbox of a child that was down.
    Forwarded,
    /// From a dead letter store. Boxed, since it is rare and larger than most messages.
    Replayed(Box<EntryId>),
}

impl<M> Envelope<M> {
    /// Wraps a message that is not queued yet.
    pub(super) fn new(message: M, origin: MessageOrigin) -> Self {
        Self { id: 0, message, attempts: 0, failed: 0, origin, asker: None }
    }

    /// Wraps a question.
    pub(super) fn question(message: M, asker: Arc<dyn Refuse>) -> Self {
        Self { asker: Some(asker), ..Self::new(message, MessageOrigin::Sent) }
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
