//! The dead letters that a console lists: the ones that it has received, or a store's.
//!
//! # Invariants
//!
//! 1. No message is kept: a letter is dropped once its row is made. Only a store keeps messages.

use std::collections::VecDeque;

use serde::Serialize;

use crate::dead_letter::{DeadLetter, DeadLetterReason, DeadLetterStore};
use crate::path::Path;
use crate::serde::Millis;
use crate::start_of::cut;

/// The most letters in a list.
const MOST: usize = 500;

/// The letters that were received, at most [`MOST`].
#[derive(Default)]
pub(super) struct Letters {
    rows: VecDeque<Letter>,
    /// The number of the last one.
    last: u64,
    pub(super) missed: u64,
}

/// One row of the list.
#[derive(Clone, Serialize)]
pub(super) struct Letter {
    id: u64,
    at_ms: u64,
    path: Path,
    reason: DeadLetterReason,
    event_type: Option<&'static str>,
    error: Option<String>,
    /// Messages have no text.
    payload: Option<()>,
    replayable: bool,
}

/// The whole list, the oldest first.
#[derive(Serialize)]
pub(super) struct LetterList {
    missed: u64,
    letters: Vec<Letter>,
}

impl Letter {
    /// Calls the `Display` of users' errors, so not under a lock.
    pub(super) fn new(id: u64, letter: &DeadLetter, replayable: bool) -> Self {
        Self {
            id,
            at_ms: letter.at.millis(),
            path: letter.target.clone(),
            reason: letter.reason,
            event_type: letter.event_type,
            error: letter.error.as_ref().map(|error| cut(error.to_string())),
            payload: None,
            replayable,
        }
    }
}

impl Letters {
    /// Adds the row of a letter, whose number is replaced.
    pub(super) fn push(&mut self, row: Letter) {
        self.last += 1;
        self.rows.push_back(Letter { id: self.last, ..row });
        if self.rows.len() > MOST {
            self.rows.pop_front();
        }
    }

    pub(super) fn list(&self) -> LetterList {
        let (missed, letters) = (self.missed, self.rows.iter().cloned().collect());
        LetterList { missed, letters }
    }
}

impl LetterList {
    /// Lists the letters of a store.
    pub(super) fn of_store(store: &DeadLetterStore) -> Self {
        let entries = store.entries();
        let some = &entries[entries.len().saturating_sub(MOST)..];
        let letters = some.iter().map(|entry| {
            let has_message = entry.letter.has_message();
            let replayable = has_message && !entry.quarantined;
            Letter::new(entry.id.number(), &entry.letter, replayable)
        });
        Self { missed: store.counts().forgotten, letters: letters.collect() }
    }
}
