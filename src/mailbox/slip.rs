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

/// What is known of a message besides. Two variants, since the compiler finds room for the tag of so
/// many in a pointer: a third takes a word of each message.
enum More {
    /// It was sent, and somebody waits for the answer.
    Asker(Arc<dyn Refuse>),
    /// All that there is to know. `None`: it was sent, and that is all.
    All(Option<Box<Envelope<()>>>),
}

impl<M> Slip<M> {
    #[inline]
    pub(super) fn new(id: u64, message: M, asker: Option<Arc<dyn Refuse>>) -> Self {
        Self { id, message, more: asker.map_or(More::All(None), More::Asker) }
    }

    pub(super) fn of(envelope: Envelope<M>) -> Self {
        let id = envelope.id;
        let (message, rest) = envelope.open();
        if (rest.attempts, rest.failed, rest.origin) == (0, 0, Origin::Sent) {
            return Self::new(id, message, rest.asker);
        }
        Self { id, message, more: More::All(Some(Box::new(rest))) }
    }

    pub(super) fn open(self) -> Envelope<M> {
        let Self { id, message, more } = self;
        let asker = match more {
            More::Asker(asker) => Some(asker),
            More::All(None) => None,
            More::All(Some(rest)) => return rest.with(message),
        };
        Envelope { id, ..Envelope::new(message, Origin::Sent, asker) }
    }

    pub(super) fn was_lent(&self) -> bool {
        matches!(&self.more, More::All(Some(rest)) if rest.attempts > 0)
    }

    pub(super) fn has_failed(&self) -> bool {
        matches!(&self.more, More::All(Some(rest)) if rest.failed > 0)
    }
}

#[cfg(all(test, not(verger_loom), target_pointer_width = "64"))]
mod tests {
    use super::*;

    #[test]
    fn a_message_lies_in_the_queue_with_24_bytes_more() {
        assert_eq!(size_of::<Slip<u64>>(), 32);
    }
}
