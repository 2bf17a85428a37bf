//! A supervisor, as the mailboxes of its children see it.

use std::time::Instant;

use super::shared::SupervisorShared;
use crate::core::MachineEvent;
use crate::dead_letter::Undelivered;
use crate::mailbox::MailboxOwner;
use crate::path::Path;

impl MailboxOwner for SupervisorShared {
    fn path(&self) -> Path {
        self.path().clone()
    }

    fn dead_letter(&self, undelivered: Undelivered, now: Instant) {
        self.dead_letters.undelivered(undelivered, now, self.tree.wall_clock(now));
    }

    fn notify(&self, event: MachineEvent) {
        self.push_event(event);
    }
}
