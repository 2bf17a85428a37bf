//! The binding of a mailbox to a child, and what the supervisor decides about it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{LoanEnding, LostMessage, MailboxEffects, MailboxPhase, MailboxState, OwnerEvent};
use crate::child::{ChildBinding, ChildId, DefaultDrain, MailboxOwner};
use crate::core::{Key, MachineEvent};
use crate::dead_letter::DeadLetterReason;
use crate::mailbox::options::Drain;
use crate::mailbox::queue::Envelope;
use crate::path::Path;

/// The place of a mailbox in the tree.
pub(crate) enum Binding {
    /// Its tree was not started.
    Unbound,
    Child(ChildBinding),
    /// Its supervisor has ended and may be restarted.
    Orphaned {
        /// The supervisor above, which knows whether that happens.
        owner: Arc<dyn MailboxOwner>,
        path: Path,
        start_on_message: bool,
    },
    /// Its child was removed.
    Ended(Path),
}

impl Binding {
    pub(crate) fn is_child(&self) -> bool {
        matches!(self, Self::Child(_))
    }

    /// Returns `true` if some supervisor publishes the mailbox's dead letters.
    pub(crate) fn has_owner(&self) -> bool {
        matches!(self, Self::Child(_) | Self::Orphaned { .. })
    }

    pub(crate) fn belongs_to(&self, child: ChildId) -> bool {
        matches!(self, Self::Child(it) if ChildId::new(&it.owner, it.key) == child)
    }

    pub(crate) fn path(&self) -> Option<Path> {
        match self {
            Self::Unbound => None,
            Self::Child(child) => Some(child.path()),
            Self::Orphaned { path, .. } | Self::Ended(path) => Some(path.clone()),
        }
    }

    pub(crate) fn owner_and_path(&self) -> Option<(Arc<dyn MailboxOwner>, Path)> {
        match self {
            Self::Child(child) => Some((Arc::clone(&child.owner), child.path())),
            Self::Orphaned { owner, path, .. } => Some((Arc::clone(owner), path.clone())),
            Self::Unbound | Self::Ended(_) => None,
        }
    }

    /// Returns an event for the supervisor that runs the child.
    pub(crate) fn event(&self, event: impl FnOnce(Key) -> MachineEvent) -> Option<OwnerEvent> {
        let Self::Child(child) = self else { return None };
        Some(Box::new((Arc::clone(&child.owner), event(child.key))))
    }

    pub(crate) fn drain(&self) -> Drain {
        match self {
            Self::Child(ChildBinding { drain: DefaultDrain::AtReady, .. }) => Drain::AtReady,
            Self::Child(ChildBinding { drain: DefaultDrain::AfterMicros(micros), .. }) => {
                Drain::After(Duration::from_micros((*micros).into()))
            }
            Self::Unbound | Self::Orphaned { .. } | Self::Ended(_) => Drain::AtStart,
        }
    }

    pub(crate) fn start_on_message(&self) -> bool {
        match self {
            Self::Child(ChildBinding { start_on_message, .. })
            | Self::Orphaned { start_on_message, .. } => *start_on_message,
            Self::Unbound | Self::Ended(_) => false,
        }
    }
}

impl<M: 'static> MailboxState<M> {
    /// Binds the mailbox to a child, unless it is bound to one.
    pub(crate) fn bind(&mut self, child: ChildBinding, fx: &mut MailboxEffects) {
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
    pub(crate) fn unbind(&mut self, fx: &mut MailboxEffects) {
        let binding = self.binding.path().map_or(Binding::Unbound, Binding::Ended);
        self.rebind(binding, fx);
    }

    /// The supervisor of the child has ended; `owner`, the one above, knows whether it is restarted.
    pub(crate) fn orphan(&mut self, owner: Arc<dyn MailboxOwner>, fx: &mut MailboxEffects) {
        let Some(path) = self.binding.path() else { return };
        let start_on_message = self.binding.start_on_message();
        let orphaned = Binding::Orphaned { owner, path, start_on_message };
        self.rebind(orphaned, fx);
    }

    fn rebind(&mut self, binding: Binding, fx: &mut MailboxEffects) {
        fx.unbound = Some(Box::new(std::mem::replace(&mut self.binding, binding)));
    }

    pub(crate) fn delay_delivery(&mut self, until: Instant) {
        self.extras.get_or_insert_default().delivery_from = Some(until);
    }

    /// Senders that have room now are woken. Messages that have no room any more stay.
    pub(crate) fn set_capacity(
        &mut self,
        child: ChildId,
        capacity: usize,
        fx: &mut MailboxEffects,
    ) {
        if self.binding.belongs_to(child) {
            self.queue.capacity = capacity;
            fx.senders = self.queue.wake_all();
        }
    }

    /// The child was started. Its task borrows the mailbox later, but senders may send at once.
    pub(crate) fn reopen(&mut self, fx: &mut MailboxEffects) {
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
    pub(crate) fn mark_idle(&mut self, fx: &mut MailboxEffects) -> VecDeque<Envelope<M>> {
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
    pub(crate) fn close(
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
    pub(crate) fn lose(&mut self, incarnation: u32) -> Option<LostMessage> {
        let lost = self.incarnation == incarnation && self.in_hand;
        lost.then(|| LostMessage { question: self.put_down() })
    }
}
