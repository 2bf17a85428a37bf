//! The letters of a store. When the ring is full, a new letter replaces the oldest one.
//!
//! # Invariants
//!
//! 1. Every letter is counted, whether or not it is kept.
//! 2. An entry is in `entries` if and only if its age is in `ages`.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::entry::DeadLetterCounts;
use crate::dead_letter::letter::DeadLetter;
use crate::dead_letter::payload::Payload;
use crate::dead_letter::undelivered::Redeliver;

/// See the [module](self).
pub(super) struct Ring {
    pub(super) capacity: usize,
    pub(super) retention: Duration,
    pub(super) max_replays: u32,
    pub(super) counts: DeadLetterCounts,
    /// The number of the last entry.
    last: u64,
    entries: HashMap<u64, StoredLetter>,
    /// When each entry last became a dead letter.
    ages: BTreeSet<(Instant, u64)>,
}

pub(super) struct StoredLetter {
    pub(super) letter: DeadLetter,
    /// The mailbox that the message was in.
    pub(super) origin: Option<Weak<dyn Redeliver>>,
    pub(super) replays: u32,
    pub(super) since: Instant,
}

impl Ring {
    pub(super) fn new(capacity: usize, retention: Duration, max_replays: u32) -> Self {
        Self {
            capacity,
            retention,
            max_replays,
            counts: DeadLetterCounts::default(),
            last: 0,
            entries: HashMap::new(),
            ages: BTreeSet::new(),
        }
    }

    pub(super) fn get(&self, number: u64) -> Option<&StoredLetter> {
        self.entries.get(&number)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the numbers of all entries, the oldest first.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.ages.iter().map(|&(_, number)| number)
    }

    /// Returns the number for a new entry.
    pub(super) fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Inserts an entry and removes the oldest ones that exceed the capacity.
    pub(super) fn insert(&mut self, number: u64, stored: StoredLetter) {
        // A replayed message may come back before the replay has removed its old entry.
        self.remove(number);
        self.ages.insert((stored.since, number));
        self.entries.insert(number, stored);
        while self.entries.len() > self.capacity {
            self.forget_oldest();
        }
    }

    pub(super) fn remove(&mut self, number: u64) {
        if let Some(stored) = self.entries.remove(&number) {
            self.ages.remove(&(stored.since, number));
        }
    }

    /// Removes the entries that are older than the retention.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some(&(since, _)) = self.ages.first() {
            if now.saturating_duration_since(since) < self.retention {
                break;
            }
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, number)) = self.ages.pop_first() {
            self.entries.remove(&number);
            self.counts.forgotten += 1;
        }
    }

    /// Counts a replay, and removes its entry unless the message has become a dead letter again.
    pub(super) fn replayed(&mut self, number: u64, payload: &Arc<Payload>) {
        self.counts.replayed += 1;
        let is_same = |stored: &StoredLetter| {
            stored.letter.payload().is_some_and(|it| Arc::ptr_eq(it, payload))
        };
        if self.entries.get(&number).is_some_and(is_same) {
            self.remove(number);
        }
    }
}
