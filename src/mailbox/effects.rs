//! What a step of the mailbox's state leaves to be done once the lock is free.

use std::sync::Arc;
use std::task::Waker;

use super::binding::{Binding, MailboxOwner};
use crate::core::MachineEvent;

/// See the [module](self).
#[must_use]
#[derive(Default)]
pub(super) struct MailboxEffects {
    /// Wakes the inbox.
    pub(super) receiver: Option<Waker>,
    /// Wakes the sender that was admitted.
    pub(super) sender: Option<Waker>,
    /// Wakes all senders that were released.
    pub(super) senders: Vec<Waker>,
    /// An event for the child's supervisor.
    pub(super) notify: Option<(Arc<dyn MailboxOwner>, MachineEvent)>,
    /// A waker and a binding that were replaced. Dropping either may run foreign code.
    pub(super) stale: Option<Waker>,
    pub(super) unbound: Binding,
}

impl MailboxEffects {
    /// Runs the effects. The mailbox must not be locked.
    pub(super) fn apply(self) {
        let Self { receiver, sender, senders, notify, stale, unbound } = self;
        drop((stale, unbound));
        receiver.into_iter().chain(sender).chain(senders).for_each(Waker::wake);
        if let Some((owner, event)) = notify {
            owner.notify(event);
        }
    }
}
