//! Where the dead letters of a supervisor go: to whoever listens here and above.

use std::any::TypeId;
use std::time::Instant;

use super::hub::Hub;
use crate::dead_letter::{DeadLetter, Owner, Provenance, Undelivered, not_here};
use crate::machine;
use crate::path::Path;

impl Hub {
    /// Puts a letter into the channels of this supervisor and all above.
    pub(super) fn deliver(&self, letter: &DeadLetter, _from: &Provenance, _now: Instant) {
        not_here(|| {
            for hub in self.upward() {
                hub.letters.lock().send(letter);
            }
        });
    }
}

impl Owner for Hub {
    fn path(&self) -> Path {
        self.path.clone()
    }

    fn bury(&self, undelivered: Undelivered) {
        if undelivered.type_id == TypeId::of::<DeadLetter>() {
            return;
        }
        let now = crate::clock::now();
        let (letter, from) = DeadLetter::about(undelivered, self.tree.wall(now), false);
        self.deliver(&letter, &from, now);
    }

    fn tell(&self, event: machine::Event) {
        self.hear(event);
    }
}
