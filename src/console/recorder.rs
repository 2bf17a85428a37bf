//! The task that receives the events and dead letters of a tree, and keeps the latest.
//!
//! # Invariants
//!
//! 1. No message is kept: a letter is dropped once its row is made. Only a store keeps messages.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::Serialize;

use super::stream::Streams;
use crate::dead_letter::{DeadLetter, DeadLetterReason, DeadLetterStore};
use crate::handle::SupervisorHandle;
use crate::named_task::OwnedTask;
use crate::path::Path;
use crate::serde::Millis;
use crate::start_of::cut;
use crate::status::{Event, EventLog, Subscription};
use crate::sync::Mutex;

/// The most entries of the list of events.
const KEPT: usize = 2_000;

/// What was received.
pub(super) struct Records {
    pub(super) events: Mutex<EventLog>,
    pub(super) letters: Mutex<Letters>,
    pub(super) streams: Arc<Streams>,
}

/// Starts the task. `ends_with_tree`: whether the streams are closed when the tree begins to stop.
pub(super) fn record(
    records: Arc<Records>,
    tree: &SupervisorHandle,
    events: Subscription<Event>,
    ends_with_tree: bool,
) -> OwnedTask<()> {
    let (letters, tree) = (tree.dead_letters(), tree.clone());
    let received = Received { records, tree, events, letters, ends_with_tree };
    OwnedTask::restarted("verger console events", received, |received| Box::pin(received.run()))
}

/// What the task receives.
struct Received {
    records: Arc<Records>,
    tree: SupervisorHandle,
    events: Subscription<Event>,
    letters: Subscription<DeadLetter>,
    ends_with_tree: bool,
}

impl Received {
    async fn run(&mut self) {
        let Self { records, tree, events, letters, ends_with_tree } = self;
        let stop = async {
            match ends_with_tree {
                true => tree.until_stopping().await,
                false => std::future::pending().await,
            }
        };
        records.receive(events, letters, stop).await;
    }
}

impl Default for Records {
    fn default() -> Self {
        let events = Mutex::new(EventLog::new(KEPT));
        Self { events, letters: Mutex::default(), streams: Arc::default() }
    }
}

impl Records {
    async fn receive(
        &self,
        events: &mut Subscription<Event>,
        letters: &mut Subscription<DeadLetter>,
        stop: impl Future<Output = ()>,
    ) {
        let mut stop = std::pin::pin!(stop);
        let (mut stops, mut has_letters) = (false, true);
        let mut missed = 0;
        loop {
            tokio::select! {
                () = &mut stop, if !stops => {
                    stops = true;
                    self.streams.close();
                }
                letter = letters.next(), if has_letters => match letter {
                    Some(letter) => self.keep(&letter, letters.missed()),
                    None => has_letters = false,
                },
                event = events.next() => {
                    let Some(event) = event else { break };
                    self.record(&event);
                    if events.missed() > missed {
                        missed = events.missed();
                        self.note_missed(missed);
                    }
                }
            }
        }
        // The tree has ended.
        while let Some(letter) = letters.next().await {
            self.keep(&letter, letters.missed());
        }
        if !stops {
            stop.await;
            self.streams.close();
        }
    }

    fn keep(&self, letter: &DeadLetter, missed: u64) {
        let row = Letter::new(0, letter, false);
        let mut list = self.letters.lock();
        list.push(row);
        list.missed = missed;
    }

    fn record(&self, event: &Event) {
        let entry = EventLog::entry(event);
        if let Some(entry) = entry {
            self.events.lock().add(entry);
        }
        self.streams.note(event);
    }

    fn note_missed(&self, missed: u64) {
        self.events.lock().set_missed(missed);
        self.streams.note_missed();
    }
}

/// The most letters in a list.
const MOST: usize = 500;

/// The letters that were received, at most [`MOST`].
#[derive(Default)]
pub(super) struct Letters {
    rows: VecDeque<Letter>,
    /// The number of the last one.
    last: u64,
    missed: u64,
}

/// One row of the list.
#[derive(Clone, Serialize)]
struct Letter {
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
    fn push(&mut self, row: Letter) {
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
