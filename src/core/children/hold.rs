//! Children that a caller holds, and counters that a caller resets.
//!
//! A hold suspends starts: a held child that runs goes on, and once it is down it is gated, like a child that
//! its configuration withholds. Failures are charged and delayed as usual.
//!
//! # Invariants
//!
//! 1. A held child is started by nothing: no backoff that ends, no group, no message and no call.
//! 2. A release starts the child if it is gated and all its requirements are met. A child that is down for another reason
//!    stays down.

use crate::core::{ChildAnswer, ChildState, Children, Key, StepCx, Ticket, WaitFor};

impl Children {
    /// Keeps the child from being started.
    pub(in crate::core) fn hold(&mut self, key: Key, cx: &mut StepCx<'_>) -> Option<ChildAnswer> {
        let was_withheld = self.entry(key).withheld().is_some();
        self.entry(key).held = true;
        self.note_down(key);
        if !was_withheld {
            self.withhold(key, cx);
        }
        Some(ChildAnswer::Done)
    }

    /// Ends a hold. Returns the answer, unless that comes later.
    pub(in crate::core) fn release(&mut self, ticket: Ticket, key: Key) -> Option<ChildAnswer> {
        let was_held = std::mem::take(&mut self.entry(key).held);
        let entry = self.entry(key);
        match entry.state {
            ChildState::Gated(_) if was_held && entry.withheld().is_none() => {
                // It may take long until the requirement is met.
                if !self.admit(key) {
                    return Some(ChildAnswer::Gated);
                }
                self.wait(key, ticket, WaitFor::Renewed)
            }
            _ => Some(ChildAnswer::Done),
        }
    }

    /// Resets the restart limits that count the child's failures, and its failures in a row.
    pub(in crate::core) fn reset(&mut self, key: Key) -> Option<ChildAnswer> {
        self.reset_limits(key);
        if let Some(history) = &mut self.entry(key).history {
            history.recover();
        }
        Some(ChildAnswer::Done)
    }
}
