//! What a step of the mailbox's state leaves to be done once the lock is free.

use std::sync::Arc;
use std::task::Waker;

use super::ask::Question;
use super::binding::Binding;
use crate::child::MailboxOwner;
use crate::core::MachineEvent;
use crate::panic::wake;

/// See the [module](self). What is rare is boxed.
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
    pub(super) notify: Option<Box<(Arc<dyn MailboxOwner>, MachineEvent)>>,
    /// A waker, a question and a binding that were replaced. Dropping each may run foreign code.
    pub(super) stale: Option<Waker>,
    pub(super) question: Option<Question>,
    pub(super) unbound: Option<Box<Binding>>,
}

impl MailboxEffects {
    /// Runs the effects. The mailbox must not be locked.
    pub(super) fn apply(self) {
        if let Some(waker) = self.receiver {
            wake(waker);
        }
        if let Some(waker) = self.sender {
            wake(waker);
        }
        for waker in self.senders {
            wake(waker);
        }
        if let Some(notify) = self.notify {
            let (owner, event) = *notify;
            owner.notify(event);
        }
    }
}
