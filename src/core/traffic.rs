//! Waiting with a child's messages in place of the child.
//!
//! A child whose traffic is delayed starts at once where it would have waited for its restart, and
//! what is sent to it waits until the wait is over. It does so only where it is restarted by itself:
//! a group waits as ever, and so does who pauses.
//!
//! There is one start for each wait. A child that fails again while its messages are held is
//! restarted when they would have been let go, and not before, so that one that cannot live doesn't
//! start without end in no time; its next wait begins then.

use std::time::Instant;

use super::children::{Children, later};
use super::{Key, Turn};

impl Children {
    /// Starts a child again that failed, and would be started at `at` if it waited itself.
    pub(super) fn restart(&mut self, key: Key, at: Instant, turn: &mut Turn<'_>) {
        let delays = self.slot(key).options.delays_traffic;
        let start = if delays { self.exchange(key, at, turn.now) } else { at };
        self.back_off(key, start, turn);
    }

    /// When a child is started that would be at `at`, if its messages wait in its place. Keeps until
    /// when they do.
    fn exchange(&mut self, key: Key, at: Instant, now: Instant) -> Instant {
        let slot = self.slot(key);
        let failed = slot.since;
        let ledger = slot.ledger();
        let held = ledger.held.filter(|&held| held > now);
        let start = held.unwrap_or(now);
        ledger.held = Some(match held {
            Some(held) => later(held, at.saturating_duration_since(failed)),
            None => at,
        });
        if held.is_some() {
            ledger.next = Some((start, start.saturating_duration_since(failed)));
        }
        start
    }

    /// The child's next start is not to wait, and neither are its messages.
    pub(super) fn release_traffic(&mut self, key: Key) {
        if let Some(ledger) = &mut self.slot(key).ledger {
            ledger.held = None;
        }
    }
}
