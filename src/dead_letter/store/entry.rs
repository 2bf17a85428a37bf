//! The entries and the counts of a store, and the errors of a replay.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::dead_letter::{DeadLetter, DeadLetterReason, Refused};
use crate::path::Path;

/// A dead letter that is kept in a [`DeadLetterStore`](crate::dead_letter::DeadLetterStore).
///
/// The example of [`DeadLetterStore`](crate::dead_letter::DeadLetterStore) reads one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeadLetterEntry {
    /// Identifies the entry.
    pub id: EntryId,
    /// The letter. After a failed replay, the letter of that replay.
    pub letter: DeadLetter,
    /// How often the message was replayed and became a dead letter again.
    pub replays: u32,
    /// Whether the message can no longer be replayed; see
    /// [`max_replays`](crate::dead_letter::DeadLetterStore::max_replays). It can still be [taken](DeadLetter::take).
    pub quarantined: bool,
}

/// How many letters a [`DeadLetterStore`](crate::dead_letter::DeadLetterStore) has received.
///
/// The example of [`DeadLetterStore`](crate::dead_letter::DeadLetterStore) reads them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetterCounts {
    /// The number of letters. A message whose replay fails counts again.
    pub total: u64,
    /// The number of letters by reason. Reasons without letters are left out.
    pub by_reason: BTreeMap<DeadLetterReason, u64>,
    /// The number of messages that were sent again.
    pub replayed: u64,
    /// The number of entries that were removed because the store was full or they were too old.
    pub forgotten: u64,
}

impl DeadLetterCounts {
    /// Returns the number of letters with this reason.
    #[must_use]
    pub fn of(&self, reason: DeadLetterReason) -> u64 {
        self.by_reason.get(&reason).copied().unwrap_or(0)
    }

    pub(super) fn add(&mut self, reason: DeadLetterReason) {
        self.total += 1;
        *self.by_reason.entry(reason).or_default() += 1;
    }
}

/// Error returned by [`DeadLetterStore::replay`](crate::dead_letter::DeadLetterStore::replay) and
/// `replay_to`.
///
/// `Debug` prints the same text as `Display`.
///
/// ```
/// use verger::dead_letter::{DeadLetterStore, Refused, ReplayError};
///
/// /// Delivers the letters that are kept, until a mailbox is full.
/// fn replay(store: &DeadLetterStore) {
///     for entry in store.entries() {
///         match store.replay(entry.id) {
///             Ok(()) => println!("{} was delivered", entry.id),
///             Err(ReplayError::Quarantined { id, .. }) => drop(store.remove(id)),
///             Err(ReplayError::Refused { why: Refused::Full, .. }) => break,
///             Err(error) => eprintln!("{error}"),
///         }
///     }
/// }
///
/// replay(&DeadLetterStore::ring(100));
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The store has no such entry. It may have been replayed or removed.
    #[error(
        "there is no dead letter {id} in this store; `entries()` lists the letters, and a larger \
         `ring` or a longer `retention` keeps them longer"
    )]
    UnknownEntry {
        /// The requested entry.
        id: EntryId,
    },
    /// The message was replayed as often as is allowed.
    #[error(
        "dead letter {id} for `{path}` was replayed {replays} times and is in quarantine; \
         `take` its message and `remove` it, or allow more with `max_replays`"
    )]
    Quarantined {
        /// The entry.
        id: EntryId,
        /// The child that the message is for.
        path: Path,
        /// How often the message was replayed.
        replays: u32,
    },
    /// The mailbox that the message was in no longer exists. The letter is kept.
    #[error("the mailbox of `{path}` is gone; replay dead letter {id} to another address")]
    Unresolved {
        /// The entry.
        id: EntryId,
        /// The child that the message is for.
        path: Path,
    },
    /// The mailbox has refused the message. The letter is kept.
    #[error("dead letter {id} for `{path}` was not replayed: the mailbox {why}")]
    Refused {
        /// The entry.
        id: EntryId,
        /// The child that the message is for.
        path: Path,
        /// Why the mailbox has refused it.
        why: Refused,
    },
    /// The letter has no message. The letter is kept.
    #[error(
        "dead letter {id} for `{path}` has no message: a subscriber has taken it, it is being \
         replayed, or the letter is about the child itself; `remove` it if it is of no use"
    )]
    NoPayload {
        /// The entry.
        id: EntryId,
        /// The child that the letter is about.
        path: Path,
    },
}

impl fmt::Debug for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

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
