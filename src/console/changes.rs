//! What has changed since the last message to the open pages.
//!
//! # Invariants
//!
//! 1. At most [`MOST`] paths and as many events are kept. Beyond that, a page has to read the whole tree again.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use serde::Serialize;
use tokio::time::timeout;

use crate::error::ControlError;
use crate::handle::SupervisorHandle;
use crate::path::Path;
use crate::serde::Millis;
use crate::status::{Event, EventKind, Explained, Node, SupervisorInfo, Totals};

/// The most children, and the most events, of a message.
const MOST: usize = 200;
/// How long the children of a message may take to be read.
const PATIENCE: Duration = Duration::from_secs(2);

/// See the [module](self).
#[derive(Default)]
pub(super) struct Changes {
    /// In the order of their first change.
    paths: Vec<Path>,
    known: HashSet<Path>,
    removed: BTreeSet<Path>,
    events: Vec<Event>,
    resync: bool,
}

impl Changes {
    /// Returns changes that don't fit into a message: pages read the whole tree again.
    pub(super) fn everything() -> Self {
        Self { resync: true, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty() && !self.resync
    }

    pub(super) fn resync(&self) -> bool {
        self.resync
    }

    /// Adds an event. The supervisor of its child counts as changed as well, because of its counts and limits.
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
        if self.paths.len().max(self.events.len()) > MOST {
            *self = Self::everything();
        }
    }

    /// Records that events were missed.
    pub(super) fn note_missed(&mut self) {
        *self = Self::everything();
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
        let message = Message {
            seq: self.events.last().map_or(last, |event| event.seq.max(last)),
            captured_at_ms: tree.wall_clock().millis(),
            totals,
            children: children.iter().map(NodeAlone::from).collect(),
            removed: &self.removed,
            events: self.events.iter().map(EventWithText::from).collect(),
            resync: self.resync,
        };
        serde_json::to_vec(&message).expect("all keys are strings and no field fails to serialise")
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
        Self { child: Explained::from(&node.child), supervisor: &node.supervisor }
    }
}

#[derive(Serialize)]
struct EventWithText<'a> {
    #[serde(flatten)]
    event: &'a Event,
    text: String,
}

impl<'a> From<&'a Event> for EventWithText<'a> {
    fn from(event: &'a Event) -> Self {
        Self { event, text: event.kind.to_string() }
    }
}
