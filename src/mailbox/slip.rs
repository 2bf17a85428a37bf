//! A message as it lies in the queue: little more than itself, since most are only sent and read.
//!
//! An [`Envelope`] for each would take twice the memory, and what is written by one processor and
//! read by another costs by its size.

use std::sync::Arc;

use super::ask::Refuse;
use super::queue::{Envelope, Origin};

/// See the [module](self).
pub(super) struct Slip<M> {
    pub(super) id: u64,
    pub(super) message: M,
    more: More,
}

/// What is known of a message besides.
enum More {
    /// It was sent, and that is all.
    Nothing,
    /// The same, and somebody waits for the answer.
    Asker(Arc<dyn Refuse>),
    /// All that there is to know.
    All(Box<Envelope<()>>),
}

impl<M> Slip<M> {
    pub(super) fn new(id: u64, message: M, asker: Option<Arc<dyn Refuse>>) -> Self {
        Self { id, message, more: asker.map_or(More::Nothing, More::Asker) }
    }

    pub(super) fn of(envelope: Envelope<M>) -> Self {
        let id = envelope.id;
        let (message, rest) = envelope.open();
        if (rest.attempts, rest.failed, rest.origin) == (0, 0, Origin::Sent) {
            return Self::new(id, message, rest.asker);
        }
        Self { id, message, more: More::All(Box::new(rest)) }
    }

    pub(super) fn open(self) -> Envelope<M> {
        let Self { id, message, more } = self;
        let asker = match more {
            More::Nothing => None,
            More::Asker(asker) => Some(asker),
            More::All(rest) => return rest.with(message),
        };
        Envelope { id, ..Envelope::new(message, Origin::Sent, asker) }
    }

    pub(super) fn was_lent(&self) -> bool {
        matches!(&self.more, More::All(rest) if rest.attempts > 0)
    }

    pub(super) fn has_failed(&self) -> bool {
        matches!(&self.more, More::All(rest) if rest.failed > 0)
    }
}
