//! The binding of a mailbox to a child, and what the supervisor decides about it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::MailboxState;
use crate::child::{ChildBinding, MailboxOwner};
use crate::dead_letter::DeadLetterReason;
use crate::mailbox::binding::Binding;
use crate::mailbox::effects::MailboxEffects;
use crate::mailbox::message::Envelope;
use crate::mailbox::outcome::LostMessage;
use crate::mailbox::phase::{LoanEnding, MailboxPhase};

impl<M: 'static> MailboxState<M> {
    /// Binds the mailbox to a child, unless it is bound to one.
    pub(in crate::mailbox) fn bind(&mut self, child: ChildBinding, fx: &mut MailboxEffects) {
        if self.binding.is_child() {
            fx.unbound = Some(Box::new(Binding::Child(child)));
            return;
        }
        self.rebind(Binding::Child(child), fx);
        (self.notified, self.stop) = (false, LoanEnding::No);
        self.reopen_if(|phase| matches!(phase, MailboxPhase::Closed(_)));
        self.notify_pending(true, fx);
    }

    /// Ends the binding of a child that was removed.
    pub(in crate::mailbox) fn unbind(&mut self, fx: &mut MailboxEffects) {
        let binding = self.binding.path().map_or(Binding::Unbound, Binding::Ended);
        self.rebind(binding, fx);
    }

    /// The supervisor of the child has ended; `owner`, the one above, knows whether it is restarted.
    pub(in crate::mailbox) fn orphan(
        &mut self,
        owner: Arc<dyn MailboxOwner>,
        fx: &mut MailboxEffects,
    ) {
        let Some(path) = self.binding.path() else { return };
        let start_on_message = self.binding.start_on_message();
        let orphaned = Binding::Orphaned { owner, path, start_on_message };
        self.rebind(orphaned, fx);
    }

    fn rebind(&mut self, binding: Binding, fx: &mut MailboxEffects) {
        fx.unbound = Some(Box::new(std::mem::replace(&mut self.binding, binding)));
    }

    pub(in crate::mailbox) fn delay_delivery(&mut self, until: Instant) {
        self.extras.get_or_insert_default().delivery_from = Some(until);
    }

    /// The child was started. Its task borrows the mailbox later, but senders may send at once.
    pub(in crate::mailbox) fn reopen(&mut self, fx: &mut MailboxEffects) {
        fx.question = self.put_down();
        self.stop = LoanEnding::No;
        self.reopen_if(|phase| !matches!(phase, MailboxPhase::Lent(_)));
    }

    fn reopen_if(&mut self, condition: impl FnOnce(&MailboxPhase) -> bool) {
        if condition(&self.phase) {
            self.phase = MailboxPhase::Fresh;
        }
    }

    /// The child is down until a message is sent. Returns the messages that the last incarnation has
    /// left without making progress, which are dead letters.
    pub(in crate::mailbox) fn mark_idle(
        &mut self,
        fx: &mut MailboxEffects,
    ) -> VecDeque<Envelope<M>> {
        // Also if the inbox still exists or has closed the mailbox: the next message starts the child.
        self.stop = LoanEnding::No;
        let down = MailboxPhase::Down { closed: false };
        if let MailboxPhase::Lent(_) = std::mem::replace(&mut self.phase, down) {
            self.loans += 1;
            fx.receiver = self.receiver.take();
        }
        self.notify_pending(false, fx);
        if self.notified {
            return VecDeque::new();
        }
        let left = self.queue.drain();
        fx.senders = self.queue.wake_all();
        left
    }

    /// The child is down for good. Returns all queued messages, which are dead letters.
    pub(in crate::mailbox) fn close(
        &mut self,
        reason: DeadLetterReason,
        fx: &mut MailboxEffects,
    ) -> VecDeque<Envelope<M>> {
        self.phase = MailboxPhase::Closed(reason);
        self.loans += 1;
        self.notified = false;
        if let Some(extras) = &mut self.extras {
            extras.delivery_from = None;
        }
        fx.senders = self.queue.release_senders();
        fx.receiver = self.receiver.take();
        self.queue.drain()
    }

    /// The incarnation has failed. Returns the message that it had in hand, if there is one.
    pub(in crate::mailbox) fn lose(&mut self, incarnation: u32) -> Option<LostMessage> {
        let lost = self.incarnation == incarnation && self.in_hand;
        lost.then(|| LostMessage { question: self.put_down() })
    }
}
