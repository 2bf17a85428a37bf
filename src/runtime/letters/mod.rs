//! Where the dead letters of a supervisor go: first into the stores, so that those are complete,
//! then to whoever listens, and then into the log.

#[cfg(test)]
mod tests;

use std::any::TypeId;
use std::sync::Arc;
use std::time::Instant;

use super::log;
use super::shared::SupervisorShared;
use super::subscription::Subscription;
use crate::clock::now;
use crate::core;
use crate::dead_letter::{
    DeadLetter, DeadLetterStore, Owner, Provenance, Undelivered, drop_afterwards,
};
use crate::path::Path;
use crate::policy::{DeadLetterLog, Throttle};
use crate::sync::Mutex;

/// What a supervisor says of the letters from it and below.
#[derive(Clone, Debug, Default)]
pub(crate) struct LetterOptions {
    pub(crate) log: Option<DeadLetterLog>,
    pub(crate) stores: Vec<DeadLetterStore>,
    /// The types of messages whose letters are not to be seen.
    pub(crate) suppressed: Vec<TypeId>,
}

/// What is in force at a supervisor: what it says itself, and what those above say.
pub(super) struct Letters {
    /// The same as above, if it says nothing itself, as most supervisors do.
    in_force: Arc<InForce>,
}

struct InForce {
    /// Its own, or the nearest one above, which then counts for both.
    log: Arc<Mutex<Throttle>>,
    /// Its own first, each once.
    stores: Vec<DeadLetterStore>,
    suppressed: Vec<TypeId>,
}

impl Letters {
    pub(super) fn new(own: &LetterOptions, above: Option<&Self>) -> Self {
        let says_nothing = own.log.is_none() && own.stores.is_empty() && own.suppressed.is_empty();
        let in_force = match above.map(|above| &above.in_force) {
            Some(above) if says_nothing => Arc::clone(above),
            above => Arc::new(InForce::new(own, above.map(|above| &**above))),
        };
        Self { in_force }
    }
}

impl InForce {
    fn new(own: &LetterOptions, above: Option<&Self>) -> Self {
        let log = match (own.log, above) {
            (None, Some(above)) => Arc::clone(&above.log),
            (log, _) => Arc::new(Mutex::new(Throttle::new(log.unwrap_or_default()))),
        };
        let mut stores = Vec::<DeadLetterStore>::new();
        let from_above = above.map_or(&[][..], |above| &above.stores);
        for store in own.stores.iter().chain(from_above) {
            if !stores.iter().any(|it| it.is(store)) {
                stores.push(store.clone());
            }
        }
        let mut suppressed = above.map(|above| above.suppressed.clone()).unwrap_or_default();
        for kind in &own.suppressed {
            if !suppressed.contains(kind) {
                suppressed.push(*kind);
            }
        }
        Self { log, stores, suppressed }
    }
}

impl SupervisorShared {
    pub(crate) fn subscribe_letters(&self) -> Subscription<DeadLetter> {
        Subscription::new(self.listen(), None).only(|letter| !letter.suppressed)
    }

    /// Puts a letter into the stores and the channels of this supervisor and all above.
    ///
    /// One about a child itself is not logged: what was decided of the child already is.
    pub(super) fn send_letter(&self, letter: &DeadLetter, from: &Provenance, now: Instant) {
        drop_afterwards(|| {
            for store in &self.letters.in_force.stores {
                store.capture(letter, from, now);
            }
            for supervisor in self.upward() {
                supervisor.channels.send(letter);
            }
        });
    }

    fn log_letter(&self, letter: &DeadLetter, quiet: bool, now: Instant) {
        if quiet {
            log::quiet_letter(letter);
            return;
        }
        let line = self.letters.in_force.log.lock().letter(now);
        if let Some(line) = line {
            log::letter(letter, line);
        }
    }
}

impl Owner for SupervisorShared {
    fn path(&self) -> Path {
        self.path().clone()
    }

    fn bury(&self, undelivered: Undelivered) {
        // Whoever forwards letters into a mailbox that is dead itself would do so for ever.
        if undelivered.type_id == TypeId::of::<DeadLetter>() {
            log::letter_about_letter(&undelivered);
            return;
        }
        let now = now();
        let quiet = undelivered.quiet;
        let suppressed = self.letters.in_force.suppressed.contains(&undelivered.type_id);
        let (letter, from) = DeadLetter::about(undelivered, self.tree.wall_clock(now), suppressed);
        self.send_letter(&letter, &from, now);
        if !suppressed {
            self.log_letter(&letter, quiet, now);
        }
    }

    fn tell(&self, event: core::MachineEvent) {
        self.push_event(event);
    }
}
