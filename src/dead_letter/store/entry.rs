//! What a store tells of itself.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Serialize, Serializer};

use crate::dead_letter::{DeadLetter, DeadLetterReason, Refused};
use crate::path::Path;

/// A letter that is kept.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct DeadLetterEntry {
    /// Which one it is.
    pub id: EntryId,
    /// The letter; after a replay in vain, the last one.
    pub letter: DeadLetter,
    /// How often the message was replayed, each time in vain.
    pub replays: u32,
    /// That was too often. The message can still be [taken](DeadLetter::take).
    pub quarantined: bool,
}

/// How many letters a store has had.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeadLetterCounts {
    /// All. A message that was replayed in vain is counted each time.
    pub total: u64,
    /// The same by reason; those that there were none of are left out.
    pub by_reason: BTreeMap<DeadLetterReason, u64>,
    /// How many messages were put into a mailbox again.
    pub replayed: u64,
    /// How many entries had to make room, or were too old.
    pub forgotten: u64,
}

impl DeadLetterCounts {
    /// How many letters there were for this reason.
    #[must_use]
    pub fn of(&self, reason: DeadLetterReason) -> u64 {
        self.by_reason.get(&reason).copied().unwrap_or(0)
    }

    pub(super) fn add(&mut self, reason: DeadLetterReason) {
        self.total += 1;
        *self.by_reason.entry(reason).or_default() += 1;
    }
}

/// Why the message of an entry was not sent again.
///
/// `Debug` prints the same text as `Display`.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// There is no such entry, or not any more: it was replayed, was too old, or had to make room.
    #[error(
        "there is no dead letter {id} in this store; `entries()` has those there are, and a larger \
         `ring` or a longer `retention` keeps them longer"
    )]
    UnknownEntry {
        /// Which one it was to be.
        id: EntryId,
    },
    /// It was replayed as often as is allowed, each time in vain.
    #[error(
        "dead letter {id} for `{path}` was replayed {replays} times and is in quarantine; \
         `take` its message and `remove` it, or allow more with `max_replays`"
    )]
    Quarantined {
        /// Which one it is.
        id: EntryId,
        /// Whom it is for.
        path: Path,
        /// How often it was replayed.
        replays: u32,
    },
    /// The mailbox that it came from is gone. The letter is kept.
    #[error("the mailbox of `{path}` is gone; replay dead letter {id} to another address")]
    Unresolved {
        /// Which one it is.
        id: EntryId,
        /// Whom it is for.
        path: Path,
    },
    /// The mailbox does not take it. The letter is kept.
    #[error("dead letter {id} for `{path}` is not replayed: the mailbox {why}")]
    Refused {
        /// Which one it is.
        id: EntryId,
        /// Whom it is for.
        path: Path,
        /// Why.
        why: Refused,
    },
    /// There is no message in it. The letter is kept.
    #[error(
        "dead letter {id} for `{path}` has no message: a subscriber has taken it, it is being \
         replayed, or the letter is about the child itself; `remove` it if it is of no use"
    )]
    NoPayload {
        /// Which one it is.
        id: EntryId,
        /// Whom it is for.
        path: Path,
    },
}

impl fmt::Debug for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Which entry of a store, as long as there is the store.
///
/// Shown and serialised as its [number](Self::number).
// It also carries how often the message was replayed: nobody else knows that while it is in a
// mailbox, and most messages never come back.
#[derive(Clone, Copy, Debug)]
pub struct EntryId {
    pub(super) store: u64,
    pub(super) number: u64,
    pub(super) replays: u32,
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
