//! The task that receives the events and dead letters of a tree, and keeps the latest.

use std::sync::Arc;

use super::letters::{Letter, Letters};
use super::stream::Streams;
use crate::app::companion::ReloadNews;
use crate::dead_letter::DeadLetter;

use crate::handle::SupervisorHandle;
use crate::invisible::Visible;
use crate::named_task::OwnedTask;
use crate::status::{Event, EventLevel, EventLog, Subscription};
use crate::sync::Mutex;

/// The entries of the history that aren't in reserve for a child.
const KEPT: usize = 1_000;

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

    /// Adds the outcome of a reload to the history.
    pub(super) fn note_reload(&self, tree: &SupervisorHandle, news: &ReloadNews<'_>) {
        let Some((applied, outcome)) = news.outcome else { return };
        let level = if applied { EventLevel::Info } else { EventLevel::Warn };
        let mut text = format!("{outcome}, by {}", news.trigger);
        if let Some(reason) = news.reason {
            text.push_str(": ");
            text.push_str(reason);
        }
        let text = Visible(text).to_string();
        let entry = EventLog::note(tree.root_path(), tree.wall_clock(), level, "reloaded", text);
        self.events.lock().add(entry);
    }

    fn note_missed(&self, missed: u64) {
        self.events.lock().set_missed(missed);
        self.streams.note_missed();
    }
}
