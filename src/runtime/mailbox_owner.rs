//! A supervisor, as the mailboxes of its children see it.

use std::time::Instant;

use super::hub::Hub;
use crate::core::Event;
use crate::dead_letter::Undelivered;
use crate::mailbox::MailboxOwner;
use crate::path::Path;

impl MailboxOwner for Hub {
    fn path(&self) -> Path {
        self.path().clone()
    }

    fn dead_letter(&self, undelivered: Undelivered, now: Instant) {
        self.dead_letters.undelivered(undelivered, now, self.tree.wall(now));
    }

    fn notify(&self, event: Event) {
        self.hear(event);
    }
}
