//! Letters that are kept, to be looked at and replayed.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Serialize, Serializer};

/// Which entry of a store, as long as there is the store.
///
/// Shown and serialised as its [number](Self::number).
// It also carries how often the message was replayed: nobody else knows that while it is in a
// mailbox, and most messages never come back.
#[derive(Clone, Copy, Debug)]
pub struct EntryId {
    store: u64,
    number: u64,
    replays: u32,
}

impl EntryId {
    /// Counted from 1.
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

impl Serialize for EntryId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.number)
    }
}
