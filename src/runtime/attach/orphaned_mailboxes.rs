//! Mailboxes whose supervisor has ended and may be restarted.
//!
//! The supervisor above holds them, since it knows whether that happens. The next incarnation of the
//! supervisor binds its mailboxes again. Otherwise they are closed, or handed further up.
//!
//! # Invariants
//!
//! 1. A mailbox that is held is bound again, closed, or handed to the supervisor above.
//! 2. A supervisor that has ended holds no mailboxes.

use std::collections::{BTreeMap, HashSet};
use std::mem;
use std::sync::Arc;

use crate::child::{LeftMessages, MailboxControl, MailboxOwner};
use crate::core::Key;
use crate::dead_letter::DeadLetterReason;
use crate::sync::Mutex;

/// The held mailboxes, by the child supervisor that they are below.
type BySupervisor = BTreeMap<Key, Vec<Arc<dyn MailboxControl>>>;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct OrphanedMailboxes {
    /// `None` once the supervisor has ended.
    held: Mutex<Option<BySupervisor>>,
}

impl Default for OrphanedMailboxes {
    fn default() -> Self {
        Self { held: Mutex::new(Some(BTreeMap::new())) }
    }
}

impl OrphanedMailboxes {
    /// Holds the mailboxes below a child supervisor that has ended, in the name of `owner`.
    ///
    /// Those that were held before and are still orphaned stay: the child supervisor may have ended
    /// before it had started their children.
    pub(super) fn hold(
        &self,
        supervisor: Key,
        mut mailboxes: Vec<Arc<dyn MailboxControl>>,
        owner: &Arc<dyn MailboxOwner>,
    ) {
        if mailboxes.is_empty() {
            return;
        }
        let before = self.take(supervisor);
        let known: HashSet<_> = mailboxes.iter().map(address).collect();
        mailboxes.extend(
            before.into_iter().filter(|it| it.is_orphaned() && !known.contains(&address(it))),
        );
        for mailbox in &mailboxes {
            mailbox.orphan(Arc::clone(owner));
        }
        let refused = match &mut *self.held.lock() {
            Some(held) => {
                held.insert(supervisor, mailboxes);
                return;
            }
            None => mailboxes,
        };
        drop(close_orphaned(refused, DeadLetterReason::UndeliveredAtStop));
    }

    /// Closes the mailboxes below a child supervisor that will not be restarted. Returns their messages,
    /// which become dead letters.
    pub(super) fn close(
        &self,
        supervisor: Key,
        reason: DeadLetterReason,
    ) -> Vec<Box<dyn LeftMessages>> {
        close_orphaned(self.take(supervisor), reason)
    }

    /// Returns all mailboxes that are still orphaned, by child supervisor, and holds none from now on.
    pub(super) fn release(&self) -> BySupervisor {
        let mut released = mem::take(&mut *self.held.lock()).unwrap_or_default();
        for mailboxes in released.values_mut() {
            mailboxes.retain(|mailbox| mailbox.is_orphaned());
        }
        released
    }

    fn take(&self, supervisor: Key) -> Vec<Arc<dyn MailboxControl>> {
        let mut held = self.held.lock();
        held.as_mut().and_then(|held| held.remove(&supervisor)).unwrap_or_default()
    }
}

fn address(mailbox: &Arc<dyn MailboxControl>) -> usize {
    Arc::as_ptr(mailbox).addr()
}

/// Closes the mailboxes that were not bound again meanwhile. Returns their messages, which become dead
/// letters.
pub(super) fn close_orphaned(
    mailboxes: Vec<Arc<dyn MailboxControl>>,
    reason: DeadLetterReason,
) -> Vec<Box<dyn LeftMessages>> {
    let mut left = Vec::new();
    for mailbox in mailboxes {
        if mailbox.is_orphaned() {
            left.extend(Arc::clone(&mailbox).close(reason));
            mailbox.unbind();
        }
    }
    left
}
