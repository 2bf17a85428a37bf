//! The part of the account that makes a difference to later checks, for a
//! [`fingerprint`](crate::core::verify::fingerprint).

use std::collections::BTreeSet;
use std::hash::Hash;

use super::Invariants;
use crate::core::verify::fingerprint::{Fingerprint, policy_text};

impl Invariants {
    /// Leaves out removed children, and everything that was compared with what the machine shows.
    pub(in super::super) fn print(&self, print: &mut Fingerprint) {
        (self.aborting, self.closing, self.group_stays_down).hash(print);
        for (key, child) in self.present() {
            (key.index(), &child.declaration.name).hash(print);
            (child.live, child.cancelled, child.aborted, child.stops_itself, child.taken_out)
                .hash(print);
            (child.cause, child.has_passed, child.was_active).hash(print);
            (child.decided, child.leaked).hash(print);
            (child.lease, child.lost_lease).hash(print);
            (child.answered_failed, child.returns, child.replaced).hash(print);
            (child.pending_decision, child.callback_called, child.resolution).hash(print);
            child.policy.as_ref().map(policy_text).hash(print);
            (child.message_pending, child.set_down, child.not_restarted).hash(print);
            (child.dormant, child.ignores_messages, child.heartbeat_due).hash(print);
            child.group_stop_from.is_some().hash(print);
            print.pos(child.group_stop_from.unwrap_or(0));
            if let Some(due) = child.due {
                print.at(due);
            }
            print.until(child.held);
        }
        // Callers with the same account are answered together.
        let waiting: BTreeSet<_> = self.waiting.values().collect();
        for (key, request, restarts) in waiting {
            (key.index(), request, restarts).hash(print);
        }
    }
}
