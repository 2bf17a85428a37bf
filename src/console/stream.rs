//! Messages to the pages that are open, with what has changed since the last message.
//!
//! One task composes the messages, for all pages at the same time, while there is a page.
//!
//! # Invariants
//!
//! 1. The task ends when the last page is gone, and nothing is collected without a page.
//! 2. At most [`AHEAD`] messages wait for a page, which shares them with all others. A page that lags behind gets
//!    one message that makes it read everything again.
//! 3. Once closed, there is no page and there won't be one.
//! 4. At most [`KEPT`] paths and as many events are kept. Beyond that, a page has to read the whole tree again.

use std::collections::{BTreeSet, HashSet};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use futures_core::Stream;
use serde::Serialize;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc};
use tokio::time::{sleep, timeout};

use super::problem::{HttpProblem, json_text};
use super::snapshots::Snapshots;
use crate::error::ControlError;
use crate::handle::SupervisorHandle;
use crate::named_task::OwnedTask;
use crate::path::Path;
use crate::serde::Millis;
use crate::status::serde::Explained;
use crate::status::{Event, EventKind, Node, SupervisorInfo, Totals};
use crate::sync::Mutex;

/// The most pages at once.
pub(super) const MOST: usize = 64;
/// The most messages that wait for a page.
const AHEAD: usize = 4;
/// The shortest time between two messages.
const APART: Duration = Duration::from_millis(250);
/// The time between two messages while nothing changes.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// The first message: how long a browser waits before it connects again.
const HELLO: &str = "retry: 1000\n\n";

/// See the [module](self).
#[derive(Default)]
pub(super) struct Streams {
    inner: Mutex<Inner>,
    /// Notified at the first change after a message, and when the streams are closed.
    changed: Notify,
}

#[derive(Default)]
struct Inner {
    pages: Vec<Page>,
    changes: Changes,
    /// The number of the last event.
    seq: u64,
    closed: bool,
    publisher: Option<OwnedTask<()>>,
}

struct Page {
    messages: mpsc::Sender<Bytes>,
    lags: bool,
}

impl Streams {
    /// Adds a page.
    ///
    /// # Errors
    ///
    /// If there are too many, or the console is closed.
    pub(super) fn open(
        self: &Arc<Self>,
        tree: &SupervisorHandle,
        snapshots: &Arc<Snapshots>,
    ) -> Result<Messages, HttpProblem> {
        let mut inner = self.inner.lock();
        if inner.closed {
            return Err(HttpProblem::unavailable("shutting_down", "the console is about to end"));
        }
        inner.pages.retain(|page| !page.messages.is_closed());
        if inner.pages.len() >= MOST {
            let text = format!("there are {MOST} open pages already");
            return Err(HttpProblem::unavailable("too_many", text));
        }
        let (messages, received) = mpsc::channel(AHEAD);
        inner.pages.push(Page { messages, lags: false });
        if inner.publisher.is_none() {
            let state = (Arc::downgrade(self), tree.clone(), Arc::clone(snapshots));
            let publisher = OwnedTask::restarted("verger console pages", state, |state| {
                let (streams, tree, snapshots) = state;
                Box::pin(publish(Weak::clone(streams), tree.clone(), Arc::clone(snapshots)))
            });
            inner.publisher = Some(publisher);
        }
        Ok(Messages { hello: true, received })
    }

    /// Adds an event to the next message.
    pub(super) fn note(&self, event: &Event) {
        let mut inner = self.inner.lock();
        inner.seq = inner.seq.max(event.seq);
        self.change(&mut inner, |changes| changes.note(event));
    }

    /// Makes the pages read the whole tree, because events were missed.
    pub(super) fn note_missed(&self) {
        self.change(&mut self.inner.lock(), |changes| *changes = Changes::everything());
    }

    fn change(&self, inner: &mut Inner, change: impl FnOnce(&mut Changes)) {
        if inner.pages.is_empty() {
            return;
        }
        let was_empty = inner.changes.is_empty();
        change(&mut inner.changes);
        if was_empty {
            self.changed.notify_one();
        }
    }

    /// Ends all streams.
    pub(super) fn close(&self) {
        let mut inner = self.inner.lock();
        inner.closed = true;
        inner.pages.clear();
        self.changed.notify_one();
    }

    /// Returns the changes of the next message, or `None` if there is no page any more. The publisher then ends.
    fn take(&self) -> Option<(Changes, u64)> {
        let mut inner = self.inner.lock();
        let changes = std::mem::take(&mut inner.changes);
        inner.pages.retain(|page| !page.messages.is_closed());
        if inner.pages.is_empty() {
            // The publisher aborts itself here, and ends at its next await.
            inner.publisher = None;
            return None;
        }
        Some((changes, inner.seq))
    }

    fn send(&self, message: &Bytes, instead: Option<&Bytes>) {
        for page in &mut self.inner.lock().pages {
            let wanted = if page.lags { instead.unwrap_or(message) } else { message };
            match page.messages.try_send(wanted.clone()) {
                Ok(()) => page.lags = false,
                Err(TrySendError::Full(_)) => page.lags = true,
                Err(TrySendError::Closed(_)) => {}
            }
        }
    }
}

/// Sends messages while there is a page.
async fn publish(streams: Weak<Streams>, tree: SupervisorHandle, snapshots: Arc<Snapshots>) {
    let mut last = None;
    loop {
        let Some(streams) = streams.upgrade() else { return };
        let _ = timeout(HEARTBEAT, streams.changed.notified()).await;
        let Some((changes, seq)) = streams.take() else { return };
        if let Ok(snapshot) = snapshots.cheap(&tree).await {
            last = Some(snapshot);
        }
        let totals = last.as_ref().map(|it| &it.status.totals);
        let is_whole = changes.resync;
        let message = framed(&changes.message(&tree, totals, seq).await);
        let any_lags = streams.inner.lock().pages.iter().any(|page| page.lags);
        let instead = match !is_whole && any_lags {
            true => Some(framed(&Changes::everything().message(&tree, totals, seq).await)),
            false => None,
        };
        streams.send(&message, instead.as_ref());
        drop(streams);
        sleep(APART).await;
    }
}

fn framed(json: &[u8]) -> Bytes {
    [b"event: change\ndata: ", json, b"\n\n"].concat().into()
}

/// The body of a stream.
pub(super) struct Messages {
    /// Whether the first message is due.
    hello: bool,
    received: mpsc::Receiver<Bytes>,
}

impl Stream for Messages {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if std::mem::take(&mut self.hello) {
            return Poll::Ready(Some(Ok(Bytes::from_static(HELLO.as_bytes()))));
        }
        self.received.poll_recv(cx).map(|message| message.map(Ok))
    }
}

/// The most children, and the most events, of a message.
const KEPT: usize = 200;
/// How long the children of a message may take to be read.
const PATIENCE: Duration = Duration::from_secs(2);

/// What has changed since the last message to the pages.
#[derive(Default)]
struct Changes {
    /// In the order of their first change.
    paths: Vec<Path>,
    known: HashSet<Path>,
    removed: BTreeSet<Path>,
    events: Vec<Event>,
    resync: bool,
}

impl Changes {
    /// Returns changes that don't fit into a message: pages read the whole tree again.
    fn everything() -> Self {
        Self { resync: true, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty() && !self.resync
    }

    /// Adds an event. The supervisor of its child has also changed, because of its counts and limits.
    pub(super) fn note(&mut self, event: &Event) {
        if self.resync {
            return;
        }
        let path = &event.path;
        match event.kind {
            EventKind::Removed => _ = self.removed.insert(path.clone()),
            // A child of the same name may have been added since.
            _ => _ = self.removed.remove(path),
        }
        for path in [Some(path.clone()), path.parent()].into_iter().flatten() {
            if self.known.insert(path.clone()) {
                self.paths.push(path);
            }
        }
        self.events.push(event.clone());
        if self.paths.len().max(self.events.len()) > KEPT {
            *self = Self::everything();
        }
    }

    /// Reads the children that have changed, and returns the message about them.
    ///
    /// `totals`: the latest ones. `last`: the number of the last event that was received.
    pub(super) async fn message(
        mut self,
        tree: &SupervisorHandle,
        totals: Option<&Totals>,
        last: u64,
    ) -> Vec<u8> {
        let mut children = Vec::new();
        let read = async {
            for path in &self.paths {
                if self.removed.contains(path) {
                    continue;
                }
                match tree.node(path).await {
                    Ok(node) => children.push(node),
                    Err(ControlError::NotFound { .. }) => _ = self.removed.insert(path.clone()),
                    // The supervisor of the child is down, so nothing is known of the child.
                    Err(_) => {}
                }
            }
        };
        if timeout(PATIENCE, read).await.is_err() {
            self = Self::everything();
            children.clear();
        }
        let events = self.events.iter();
        let events = events.map(|event| EventWithText { event, text: event.kind.to_string() });
        let message = Message {
            seq: self.events.last().map_or(last, |event| event.seq.max(last)),
            captured_at_ms: tree.wall_clock().millis(),
            totals,
            children: children.iter().map(NodeAlone::from).collect(),
            removed: &self.removed,
            events: events.collect(),
            resync: self.resync,
        };
        json_text(&message)
    }
}

#[derive(Serialize)]
struct Message<'a> {
    seq: u64,
    captured_at_ms: u64,
    totals: Option<&'a Totals>,
    children: Vec<NodeAlone<'a>>,
    removed: &'a BTreeSet<Path>,
    events: Vec<EventWithText<'a>>,
    resync: bool,
}

/// A child without its children.
#[derive(Serialize)]
pub(super) struct NodeAlone<'a> {
    #[serde(flatten)]
    child: Explained<'a>,
    supervisor: &'a Option<Box<SupervisorInfo>>,
}

impl<'a> From<&'a Node> for NodeAlone<'a> {
    fn from(node: &'a Node) -> Self {
        Self { child: Explained::from(node), supervisor: &node.supervisor }
    }
}

#[derive(Serialize)]
struct EventWithText<'a> {
    #[serde(flatten)]
    event: &'a Event,
    text: String,
}
