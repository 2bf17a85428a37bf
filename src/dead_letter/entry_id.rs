//! The identity of an entry of a store, which also travels with a replayed message.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// Identifies an entry of a [`DeadLetterStore`](crate::dead_letter::DeadLetterStore).
///
/// Displayed and serialised as its [number](Self::number).
///
/// The example of [`ReplayError`](crate::dead_letter::ReplayError) replays an entry by it.
// While a replayed message is in a mailbox its entry is gone, so the id carries the count of replays.
#[derive(Clone, Copy, Debug)]
pub struct EntryId {
    pub(super) store: u64,
    pub(super) number: u64,
    pub(super) replays: u32,
}

impl EntryId {
    /// Returns the number of the entry in its store, counted from 1.
    #[must_use]
    pub fn number(self) -> u64 {
        self.number
    }

    fn identity(self) -> (u64, u64) {
        (self.store, self.number)
    }
}

impl PartialEq for EntryId {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for EntryId {}

impl Ord for EntryId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.identity().cmp(&other.identity())
    }
}

impl PartialOrd for EntryId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for EntryId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.number, f)
    }
}
