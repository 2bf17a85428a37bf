//! Mailboxes whose supervisor has ended, as long as it may come back.
//!
//! What is in them outlives it: its next incarnation gives them their place again. Whether there is
//! one is up to the supervisor above, so that is where they wait; it sends them away when it knows
//! that there is none, or passes them on when it ends itself.
//!
//! # Invariants
//!
//! 1. A mailbox that was adopted gets a place again, is sent away, or is adopted further above.
//! 2. Nothing is adopted by a supervisor that has ended.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::shared::SupervisorShared;
use crate::core::Key;
use crate::dead_letter::{DeadLetterReason, Owner};
use crate::mailbox::Slot;
use crate::sync::{AtomicU8, Mutex, Ordering};

/// Mailboxes below the children that are supervisors.
#[derive(Debug, Default)]
pub(super) struct Wards {
    /// Whether there are any: mostly there are none, and to see that takes no lock.
    there: AtomicU8,
    adopted: Mutex<Adopted>,
}

#[derive(Debug, Default)]
struct Adopted {
    by_child: BTreeMap<Key, Vec<Arc<dyn Slot>>>,
    /// No more are adopted.
    closed: bool,
}

impl Wards {
    /// Whether any have been adopted that were not given up since. They may have their place again.
    pub(super) fn are_there(&self) -> bool {
        self.there.load(Ordering::Acquire) != 0
    }
}

impl SupervisorShared {
    /// Takes the mailboxes of a supervisor that has ended. Those that were taken when it ended before,
    /// and have had no place since, stay: what is below it may not have been started again.
    pub(super) fn adopt(self: &Arc<Self>, supervisor: Key, mut mailboxes: Vec<Arc<dyn Slot>>) {
        if mailboxes.is_empty() {
            return;
        }
        if self.wards.are_there() {
            let before = self.wards.adopted.lock().by_child.remove(&supervisor);
            let still = before.into_iter().flatten().filter(|mailbox| mailbox.is_adopted());
            let again: HashSet<_> = mailboxes.iter().map(addr).collect();
            mailboxes.extend(still.filter(|mailbox| !again.contains(&addr(mailbox))));
        }
        for mailbox in &mailboxes {
            mailbox.adopted_by(Arc::clone(self) as Arc<dyn Owner>);
        }
        let refused = {
            let mut wards = self.wards.adopted.lock();
            if wards.closed {
                mailboxes
            } else {
                wards.by_child.insert(supervisor, mailboxes);
                self.wards.there.store(1, Ordering::Release);
                Vec::new()
            }
        };
        send_away(refused, DeadLetterReason::UndeliveredAtStop);
    }

    /// The supervisor doesn't come back, and so nobody comes for what was below it.
    pub(super) fn dismiss(&self, supervisor: Key, reason: DeadLetterReason) {
        if !self.wards.are_there() {
            return;
        }
        let wards = {
            let mut wards = self.wards.adopted.lock();
            let removed = wards.by_child.remove(&supervisor);
            self.wards.there.store(u8::from(!wards.by_child.is_empty()), Ordering::Release);
            removed
        };
        send_away(wards.unwrap_or_default(), reason);
    }

    /// Gives all of them up, and adopts no more: what is below each supervisor that has no place again.
    pub(super) fn release(&self) -> Vec<(Key, Vec<Arc<dyn Slot>>)> {
        let mut wards = {
            let mut wards = self.wards.adopted.lock();
            wards.closed = true;
            self.wards.there.store(0, Ordering::Release);
            std::mem::take(&mut wards.by_child)
        };
        for mailboxes in wards.values_mut() {
            mailboxes.retain(|mailbox| mailbox.is_adopted());
        }
        wards.into_iter().collect()
    }
}

fn addr(mailbox: &Arc<dyn Slot>) -> usize {
    Arc::as_ptr(mailbox).addr()
}

/// Nobody comes for them, unless they have their place again.
pub(super) fn send_away(mailboxes: Vec<Arc<dyn Slot>>, reason: DeadLetterReason) {
    for mailbox in mailboxes {
        if mailbox.is_adopted() {
            Arc::clone(&mailbox).away(reason);
            mailbox.unbind();
        }
    }
}
