//! The task that receives the events and dead letters of a tree, and keeps the latest.

use std::sync::Arc;

use super::letters::{Letter, Letters};
use super::stream::Streams;
use crate::dead_letter::DeadLetter;
use crate::handle::SupervisorHandle;
use crate::owned_task::OwnedTask;
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

/// The task. It ends when this is dropped.
pub(super) struct Recorder {
    _task: OwnedTask<()>,
}

impl Recorder {
    /// `ends_with_tree`: whether the streams are closed when the tree begins to stop.
    pub(super) fn start(
        records: Arc<Records>,
        tree: &SupervisorHandle,
        events: Subscription<Event>,
        ends_with_tree: bool,
    ) -> Self {
        let (letters, tree) = (tree.dead_letters(), tree.clone());
        let stop = async move {
            match ends_with_tree {
                true => tree.until_stopping().await,
                false => std::future::pending().await,
            }
        };
        Self {
            _task: OwnedTask::spawn(
                "verger console events",
                records.receive(events, letters, stop),
            ),
        }
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
        self: Arc<Self>,
        mut events: Subscription<Event>,
        mut letters: Subscription<DeadLetter>,
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
                    Some(letter) => {
                        let row = Letter::new(0, &letter, false);
                        let mut list = self.letters.lock();
                        list.push(row);
                        list.note_missed(letters.missed());
                    }
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
            let row = Letter::new(0, &letter, false);
            let mut list = self.letters.lock();
            list.push(row);
            list.note_missed(letters.missed());
        }
        if !stops {
            stop.await;
            self.streams.close();
        }
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
