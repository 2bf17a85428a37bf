//! Messages that can't be delivered, and what becomes of them.
//!
//! A supervisor may have to publish very many dead letters at once, when it closes a mailbox. It gets the
//! messages as [`LeftMessages`], and publishes some of them in each iteration.
//!
//! # Invariants
//!
//! 1. Each message that is lost is refused if it is a question, and then becomes one dead letter, unless
//!    its tree has ended.
//! 2. No lock is held while a letter is published or a handler is called.
//! 3. While a function of a mailbox runs, no function of that mailbox is called on the same thread.

use std::any::{TypeId, type_name};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ptr;
use std::sync::{Arc, Weak};
use std::time::Instant;

use super::options::WhileDown;
use super::queue::{Envelope, MessageOrigin};
use super::shared::MailboxShared;
use super::state::Undeliverable;
use crate::child::{LeftMessages, MailboxOwner};
use crate::clock::now;
use crate::dead_letter::{DeadLetterReason, Redeliver, Undelivered};
use crate::exit::ExitReason;
use crate::panic::catch_panic;
use crate::path::Path;
use crate::subscriber;

/// The messages of one mailbox; see [`LeftMessages`].
struct MessagesOfOne<M: Send + 'static> {
    mailbox: Arc<MailboxShared<M>>,
    /// The mailbox may be unbound before its letters are published.
    sender: LetterSender,
    messages: VecDeque<Envelope<M>>,
    reason: DeadLetterReason,
}

impl<M: Send + 'static> LeftMessages for MessagesOfOne<M> {
    fn publish(&mut self, max: usize, now: Instant) -> usize {
        let count = self.messages.len().min(max);
        for envelope in self.messages.drain(..count) {
            self.mailbox.publish_from(&self.sender, envelope.map(Some), self.reason.into(), now);
        }
        count
    }

    fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}

impl<M: Send + 'static> Drop for MessagesOfOne<M> {
    fn drop(&mut self) {
        if !self.messages.is_empty() {
            self.publish(usize::MAX, now());
        }
    }
}

/// What a mailbox sends its letters as: the child of this supervisor and path.
struct LetterSender {
    /// `None` if the tree doesn't run.
    owner: Option<(Arc<dyn MailboxOwner>, Path)>,
    incarnation: u32,
}

/// How a message was lost.
pub(super) struct Loss<'a> {
    pub(super) reason: DeadLetterReason,
    /// How the child exited, if that is the cause.
    pub(super) error: Option<&'a Arc<ExitReason>>,
    /// The loss is configured.
    pub(super) quiet: bool,
}

impl From<DeadLetterReason> for Loss<'_> {
    fn from(reason: DeadLetterReason) -> Self {
        Self { reason, error: None, quiet: false }
    }
}

impl<M: Send + 'static> MailboxShared<M> {
    /// Does what remains to be done with a message that can't be delivered.
    pub(super) fn dispose(self: &Arc<Self>, undeliverable: Undeliverable<M>, now: Instant) {
        let (envelope, to) = match undeliverable {
            Undeliverable::DeadLetter(envelope, reason) => {
                return self.dead_letter(envelope, reason, now);
            }
            Undeliverable::Diverted(envelope, to) => (envelope, to),
        };
        let reason = DeadLetterReason::DroppedWhileDown;
        match to {
            WhileDown::Drop => {
                self.publish(envelope.map(Some), Loss { quiet: true, ..reason.into() }, now);
            }
            WhileDown::Stash | WhileDown::DeadLetter => self.dead_letter(envelope, reason, now),
            WhileDown::Reply(handler) => {
                let Some(_running) = FunctionCall::enter(&**self) else {
                    return self.dead_letter(envelope, reason, now);
                };
                let mut handled = None;
                let rest = envelope.map(|message| {
                    handled = catch_panic(|| (handler.0)(message));
                    None
                });
                if handled.is_none() {
                    self.publish(rest, DeadLetterReason::HandlerError.into(), now);
                }
            }
            WhileDown::Forward(_)
                if matches!(envelope.origin.as_deref(), Some(MessageOrigin::Forwarded)) =>
            {
                self.dead_letter(envelope, reason, now);
            }
            WhileDown::Forward(target) => {
                let Envelope { message, origin, asker, .. } = envelope;
                if let Err((message, reason)) = target.shared.forward(message, asker.clone(), now) {
                    let envelope = Envelope { origin, asker, ..Envelope::new(message) };
                    self.dead_letter(envelope, reason, now);
                }
            }
        }
    }

    /// Publishes a message as a dead letter.
    pub(super) fn dead_letter(
        self: &Arc<Self>,
        envelope: Envelope<M>,
        reason: DeadLetterReason,
        now: Instant,
    ) {
        self.publish(envelope.map(Some), reason.into(), now);
    }

    /// Publishes a dead letter. It has no message if the message itself is gone.
    pub(super) fn publish(
        self: &Arc<Self>,
        envelope: Envelope<Option<M>>,
        loss: Loss<'_>,
        now: Instant,
    ) {
        let sender = self.letter_sender();
        self.publish_from(&sender, envelope, loss, now);
    }

    fn letter_sender(&self) -> LetterSender {
        let state = self.state();
        LetterSender { owner: state.binding.owner_and_path(), incarnation: state.incarnation }
    }

    fn publish_from(
        self: &Arc<Self>,
        sender: &LetterSender,
        envelope: Envelope<Option<M>>,
        loss: Loss<'_>,
        now: Instant,
    ) {
        let Loss { reason, error, quiet } = loss;
        let Envelope { message, origin, asker, .. } = envelope;
        if let Some(asker) = &asker {
            asker.refuse(reason);
        }
        let Some((owner, target)) = &sender.owner else {
            // A delivery has outlived its tree.
            subscriber::warn!(
                target: "verger::dead_letter",
                %reason,
                event_type = type_name::<M>(),
                "message lost: its tree has ended"
            );
            catch_panic(|| drop(message));
            return;
        };
        let undelivered = Undelivered {
            reason,
            target: target.clone(),
            incarnation: sender.incarnation,
            event_type: type_name::<M>(),
            type_id: TypeId::of::<M>(),
            payload: message.map(|message| Box::new(message) as _),
            error: error.map(Arc::clone),
            quiet,
            entry: match origin.as_deref() {
                Some(MessageOrigin::Replayed(entry)) => Some(*entry),
                Some(MessageOrigin::Forwarded) | None => None,
            },
            origin: Some(Arc::downgrade(self) as Weak<dyn Redeliver>),
        };
        // A panic in the `Drop` of a message must not reach the supervisor, which may be the caller.
        catch_panic(|| owner.dead_letter(undelivered, now));
    }

    /// Returns messages whose dead letters are to be published, if there are any.
    pub(super) fn left(
        self: Arc<Self>,
        messages: VecDeque<Envelope<M>>,
        reason: DeadLetterReason,
    ) -> Option<Box<dyn LeftMessages>> {
        if messages.is_empty() {
            return None;
        }
        let sender = self.letter_sender();
        Some(Box::new(MessagesOfOne { mailbox: self, sender, messages, reason }))
    }

    /// Closes the mailbox of a child that no longer exists.
    pub(super) fn abandon(self: &Arc<Self>) {
        let reason = DeadLetterReason::MailboxClosed;
        let left = self.step(|state, fx| state.close(reason, fx));
        if left.is_empty() {
            return;
        }
        let (event_type, count) = (type_name::<M>(), left.len());
        for envelope in left {
            if let Some(asker) = &envelope.asker {
                asker.refuse(reason);
            }
            catch_panic(|| drop(envelope));
        }
        subscriber::warn!(
            target: "verger::dead_letter",
            %reason,
            event_type,
            count,
            "messages lost: their tree does not run"
        );
    }
}

thread_local! {
    /// The addresses of the mailboxes, the innermost call last.
    static RUNNING: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// A running call of a function of a mailbox. The call ends when this is dropped.
///
/// A mailbox calls [`final_message`](super::Mailbox::final_message) and the handler of
/// [`WhileDown::reply`](super::WhileDown::reply) in the task that sends. A function that sends to its own
/// mailbox would be called for that message too, within its own call, until the stack overflows. The same
/// happens with two functions that send to the mailbox of the other.
#[must_use]
pub(super) struct FunctionCall(());

impl FunctionCall {
    /// Returns `None` if a function of this mailbox runs on this thread already.
    pub(super) fn enter<T>(mailbox: &T) -> Option<Self> {
        let address = ptr::from_ref(mailbox).addr();
        // The list may be gone while its thread ends. Calls are not counted then.
        let runs = RUNNING.try_with(|running| running.borrow().contains(&address));
        if runs.unwrap_or(false) {
            return None;
        }
        let _ = RUNNING.try_with(|running| running.borrow_mut().push(address));
        Some(Self(()))
    }
}

impl Drop for FunctionCall {
    fn drop(&mut self) {
        let _ = RUNNING.try_with(|running| running.borrow_mut().pop());
    }
}
