//! What the steps of a mailbox's state are asked for, and what they return.

use std::task::Waker;

use super::ask::Question;
use super::message::Envelope;
use super::options::{Diversion, IsFinal};
use crate::dead_letter::DeadLetterReason;

/// What a sender does if the mailbox is full.
#[derive(Clone, Copy)]
pub(super) enum WhenFull<'a> {
    /// Follows the mailbox's [`Overflow`].
    Overflow,
    /// Takes the message back.
    Reject,
    /// Waits for room, and is then woken. `number`: the sender has waited under it.
    Wait { number: Option<u64>, waker: &'a Waker },
}

/// What happened to a message that was sent.
pub(super) enum Sent<M> {
    Queued,
    /// The message was accepted and it, or an older one, can't be delivered.
    Undeliverable(Undeliverable<M>),
    /// The sender waits for room under this number.
    Waiting(M, u64),
}

/// A message that can't be delivered to the child.
pub(super) enum Undeliverable<M> {
    DeadLetter(Envelope<M>, DeadLetterReason),
    /// The child is down, and its messages go elsewhere.
    Diverted(Envelope<M>, Diversion<M>),
}

/// A message that `recv` returned to an incarnation which has failed.
pub(super) struct LostMessage {
    /// `None` if the message is no question.
    pub(super) question: Option<Question>,
}

/// Why a message was not accepted.
pub(super) enum Unsent<M> {
    Full(M),
    Closed(M),
    /// The child is down, and this may be its final message: ask, then send again.
    MayBeFinal(Envelope<M>, IsFinal<M>),
}

/// How an inbox takes a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Take {
    /// For good.
    Receive,
    /// Until it is acknowledged.
    Deliver,
}

/// What an inbox gets.
pub(super) enum NextMessage<M> {
    /// A message, and what decides whether it is the child's final one.
    Message(Envelope<M>, Option<IsFinal<M>>),
    /// No message is available now.
    None,
    /// The holder of the loan was cancelled.
    Stopping,
    /// This loan gets no more messages.
    End,
}
