//! The state of a mailbox: its messages, its loan, and its options.
//!
//! A mailbox is *lent* to one incarnation after another. Between two loans it follows its
//! [`WhileDown`]. When its child is down for good it is *closed*, and accepts no messages until the
//! child is started again.
//!
//! A message that `recv` returns is *in hand* until its incarnation polls the inbox again, which means
//! that the message was handled. If the incarnation fails, is killed or leaks with a message in hand,
//! the message is lost and its loss is reported. A clean exit and an answered question report nothing.
//!
//! Every method is a pure step: it calls no foreign code, reads no clock, and leaves what is to be done
//! in a [`MailboxEffects`].
//!
//! # Invariants
//!
//! 1. A message that was accepted is received for good, becomes a dead letter, or is queued or lent.
//! 2. At most one loan is in force. An inbox of an earlier loan receives the end of the stream.
//! 3. An inbox that found no message is woken when there is a message for it, or the end.
//! 4. An inbox that awaits its cancellation is woken when the stop of its incarnation begins.
//! 5. The loss of a message in hand is reported at most once, for the incarnation that received it.

mod control;
mod lending;

use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

pub(super) use self::control::Binding;
use super::ask::OpenQuestion;
use super::options::{IsFinal, MailboxOptions, Overflow, WhileDown};
use super::queue::{Envelope, MessageQueue};
use crate::child::MailboxOwner;
use crate::core::{ChildRequest, ConditionEvent, MachineEvent, NO_TICKET};
use crate::dead_letter::DeadLetterReason;
use crate::panic::wake;

/// See the [module](self).
pub(super) struct MailboxState<M> {
    pub(super) queue: MessageQueue<M>,
    /// perf: budgets row "bytes-mailbox"
    extras: Option<Box<MailboxExtras<M>>>,
    pub(super) binding: Binding,
    /// The incarnation of the last loan.
    pub(super) incarnation: u32,
    phase: MailboxPhase,
    /// The number of the last loan.
    loans: u64,
    /// Wakes the inbox of the current loan.
    receiver: Option<Waker>,
    /// The supervisor was notified of a waiting message since the last loan.
    notified: bool,
    /// The last loan has brought some message closer to its end.
    progress: bool,
    /// The current incarnation has a message in hand.
    in_hand: bool,
    /// How far the stop of the child's incarnation is, which may be cancelled before it borrows the mailbox.
    stop: LoanEnding,
}

/// What few mailboxes have: options, a delay, or a question in hand.
struct MailboxExtras<M> {
    options: MailboxOptions<M>,
    /// Nothing is delivered before this. Set by the supervisor of a child whose failures delay messages.
    delivery_from: Option<Instant>,
    /// The message in hand, if it is a question.
    question: Option<OpenQuestion>,
}

impl<M: 'static> Default for MailboxExtras<M> {
    fn default() -> Self {
        Self { options: MailboxOptions::NEW, delivery_from: None, question: None }
    }
}

impl<M> MailboxState<M> {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            queue: MessageQueue::new(capacity),
            extras: None,
            binding: Binding::Unbound,
            incarnation: 0,
            phase: MailboxPhase::Fresh,
            loans: 0,
            receiver: None,
            notified: false,
            progress: false,
            in_hand: false,
            stop: LoanEnding::No,
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        let is_closed = match &self.phase {
            MailboxPhase::Fresh => false,
            MailboxPhase::Lent(loan) => loan.ending == LoanEnding::Closing,
            MailboxPhase::Down { closed } => *closed,
            MailboxPhase::Closed(_) => true,
        };
        is_closed || self.stop == LoanEnding::Closing
    }
}

impl<M: 'static> MailboxState<M> {
    pub(super) fn options_mut(&mut self) -> &mut MailboxOptions<M> {
        &mut self.extras.get_or_insert_default().options
    }

    pub(super) fn options(&self) -> &MailboxOptions<M> {
        self.extras.as_ref().map_or(MailboxOptions::DEFAULT, |extras| &extras.options)
    }

    /// Accepts a message. `checked`: it isn't the child's final one, or that was handled.
    ///
    /// A sender that has waited keeps its place if it has to wait on, or if the message is to be checked.
    pub(super) fn send(
        &mut self,
        envelope: Envelope<M>,
        when_full: WhenFull<'_>,
        checked: bool,
        fx: &mut MailboxEffects,
    ) -> Result<Sent<M>, Unsent<M>> {
        let down = matches!(self.phase, MailboxPhase::Down { .. });
        if down
            && !checked
            && let Some(is_final) = &self.options().final_message
        {
            return Err(Unsent::MayBeFinal(envelope, is_final.clone()));
        }
        // The number under which the sender has waited. It leaves its place unless it waits on.
        let waited = match when_full {
            WhenFull::Wait { number, .. } => number,
            WhenFull::Overflow | WhenFull::Reject => None,
        };
        let (is_closed, diverts) = (self.is_closed(), down && self.diverts());
        if let Some(number) = waited.filter(|_| is_closed || diverts) {
            self.leave(number, fx);
        }
        if is_closed {
            return Err(Unsent::Closed(envelope.message));
        }
        if diverts {
            let to = self.options().while_down.clone();
            return Ok(Sent::Undeliverable(Undeliverable::Diverted(envelope, to)));
        }
        let mut sent = Sent::Queued;
        // A sender that may wait stays behind those that wait already.
        let has_room = match when_full {
            WhenFull::Wait { number, .. } => self.queue.has_room_for(number),
            WhenFull::Overflow | WhenFull::Reject => !self.queue.is_full(),
        };
        if !has_room {
            match self.overflow(when_full) {
                WhenFull::Wait { number, waker } => {
                    let (number, stale) = self.queue.wait(number, waker);
                    fx.stale = stale;
                    return Ok(Sent::Waiting(envelope.message, number));
                }
                WhenFull::Reject => return Err(Unsent::Full(envelope.message)),
                WhenFull::Overflow if self.options().overflow == Overflow::DropNewest => {
                    let reason = self.overflow_reason();
                    return Ok(Sent::Undeliverable(Undeliverable::DeadLetter(envelope, reason)));
                }
                WhenFull::Overflow => {
                    let Some(oldest) = self.queue.evict() else {
                        return Err(Unsent::Full(envelope.message));
                    };
                    let was_delivered = oldest.attempts > 0;
                    let reason = if was_delivered {
                        DeadLetterReason::Evicted
                    } else {
                        self.overflow_reason()
                    };
                    sent = Sent::Undeliverable(Undeliverable::DeadLetter(oldest, reason));
                }
            }
        }
        if let Some(number) = waited {
            fx.stale = self.queue.end_wait(number);
        }
        self.queue.push(envelope);
        fx.receiver = self.receiver.take();
        self.notify_pending(true, fx);
        Ok(sent)
    }

    /// Resolves what a sender does about a full mailbox: `Overflow` remains only if a message is to be
    /// dropped.
    fn overflow<'a>(&self, when_full: WhenFull<'a>) -> WhenFull<'a> {
        // Without an owner, no dead letter could be published.
        let rejects = self.options().overflow == Overflow::Reject || !self.binding.has_owner();
        match when_full {
            WhenFull::Overflow if rejects => WhenFull::Reject,
            _ => when_full,
        }
    }

    /// Returns the reason for the dead letter of a message that finds no room.
    fn overflow_reason(&self) -> DeadLetterReason {
        match self.phase {
            MailboxPhase::Lent(_) => DeadLetterReason::MailboxFull,
            _ => DeadLetterReason::StashOverflow,
        }
    }

    /// Returns `true` if messages aren't queued while the child is down. A child that is started by
    /// messages gets all of them.
    fn diverts(&self) -> bool {
        !matches!(self.options().while_down, WhileDown::Stash) && !self.binding.start_on_message()
    }

    /// Removes a sender that waits for room.
    pub(super) fn leave(&mut self, number: u64, fx: &mut MailboxEffects) {
        (fx.stale, fx.sender) = self.queue.leave(number);
    }

    /// Stops a child that is down from being restarted, for its final message was sent.
    pub(super) fn terminate(&self, fx: &mut MailboxEffects) {
        let request = ChildRequest::Stop;
        fx.notify =
            self.binding.event(|key| MachineEvent::Request { ticket: NO_TICKET, key, request });
    }

    /// Notifies the supervisor that a message waits for a child that is started by messages. It is
    /// notified once between two loans.
    ///
    /// Without a `new` message it is notified only if the last incarnation made progress. Otherwise the
    /// next one would be started without delay to do the same again.
    fn notify_pending(&mut self, new: bool, fx: &mut MailboxEffects) {
        let pending = matches!(self.phase, MailboxPhase::Fresh | MailboxPhase::Down { .. })
            && self.binding.start_on_message()
            && !self.queue.is_empty()
            && (new || self.progress);
        if pending && !std::mem::replace(&mut self.notified, true) {
            let pending = |key| MachineEvent::Condition(ConditionEvent::MessagePending { key });
            fx.notify = self.binding.event(pending);
        }
    }
}

/// Where a mailbox is in its life.
pub(super) enum MailboxPhase {
    /// The mailbox was never lent, or its child was just started: messages wait for the next loan.
    Fresh,
    Lent(CurrentLoan),
    /// The last loan has ended.
    Down {
        /// The mailbox accepts no messages.
        closed: bool,
    },
    /// The child is down for good, unless a call starts it again.
    Closed(DeadLetterReason),
}

/// The loan to the current incarnation.
pub(super) struct CurrentLoan {
    pub(super) hold: Option<DrainHold>,
    pub(super) ending: LoanEnding,
    /// The holder was cancelled and has put a delivery back: it receives no more messages.
    pub(super) put_back: bool,
}

/// Keeps messages back from an incarnation that has just started. It is lifted when both conditions are
/// met.
pub(super) struct DrainHold {
    /// The inbox still waits for the hold's deadline.
    pub(super) timed: bool,
    /// The incarnation must still become ready.
    pub(super) until_ready: bool,
    /// Messages with smaller numbers are kept back.
    pub(super) below: u64,
}

/// How far the end of a loan, or of an incarnation, is. It never goes back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LoanEnding {
    No,
    /// The holder was cancelled, and the mailbox stays open until the holder closes it.
    Open,
    /// The queued messages are kept for the next incarnation.
    Leaving,
    /// The mailbox accepts no messages; the holder receives the queued ones.
    Closing,
}

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
    Diverted(Envelope<M>, WhileDown<M>),
}

/// A message that `recv` returned to an incarnation which has failed.
pub(super) struct LostMessage {
    /// `None` if the message is no question.
    pub(super) question: Option<OpenQuestion>,
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

/// An event for the supervisor of a child.
type OwnerEvent = Box<(Arc<dyn MailboxOwner>, MachineEvent)>;

/// What a step leaves to be done once the lock is free. What is rare is boxed.
#[must_use]
#[derive(Default)]
pub(super) struct MailboxEffects {
    /// Wakes the inbox.
    pub(super) receiver: Option<Waker>,
    /// Wakes the sender that has room now.
    pub(super) sender: Option<Waker>,
    /// Wakes senders that have room now, or were released.
    pub(super) senders: Vec<Waker>,
    /// An event for the child's supervisor.
    pub(super) notify: Option<OwnerEvent>,
    /// A waker, a question and a binding that were replaced. Dropping each may run foreign code.
    pub(super) stale: Option<Waker>,
    pub(super) question: Option<OpenQuestion>,
    pub(super) unbound: Option<Box<Binding>>,
}

impl MailboxEffects {
    /// Runs the effects. The mailbox must not be locked.
    pub(super) fn apply(self) {
        self.receiver.into_iter().chain(self.sender).chain(self.senders).for_each(wake);
        if let Some(notify) = self.notify {
            let (owner, event) = *notify;
            owner.notify(event);
        }
    }
}
