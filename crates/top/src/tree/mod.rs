//! The tree as this program knows it: snapshots and changes in, visible rows out.
//!
//! Knows nothing of terminals and connections. [`rows`] arranges the rows, [`busy`] compares counters of busy time.
//!
//! # Invariants
//!
//! 1. A snapshot doesn't undo a change that is newer: the changes after the snapshot are applied again.
//! 2. A child that isn't the root has a parent in the tree, which lists it once.

mod busy;
mod rows;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::{HashMap, VecDeque};

use self::busy::Shares;
pub(crate) use self::rows::{Many, Row, Sort, View};
use crate::model::{Change, Node, Program, Status, Totals};

/// How many changes are kept to be applied again: more than arrive while a snapshot is taken.
const RECENT: usize = 64;

/// A child in the tree.
#[derive(Debug)]
struct Item {
    /// Without its children.
    node: Node,
    parent: Option<usize>,
    children: Vec<usize>,
}

/// The children of a program.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    items: Vec<Option<Item>>,
    by_path: HashMap<String, usize>,
    view: View,
    recent: VecDeque<Change>,
    rows: Vec<Row>,
    /// The lines that stand for several children, to which rows refer.
    many: Vec<Many>,
    busy: Shares,
    problems: u64,
    pub(crate) program: Program,
    pub(crate) totals: Totals,
    pub(crate) captured_at_ms: u64,
}

impl Tree {
    /// Replaces everything by a snapshot, and applies the changes after it again.
    pub(crate) fn load(&mut self, mut status: Status) {
        if status.program != self.program {
            // Another process counts its events from the beginning.
            self.recent.clear();
            self.captured_at_ms = 0;
        }
        self.items.clear();
        self.by_path.clear();
        let root = std::mem::take(&mut status.root);
        // A loop, because recursion would overflow the stack in a tree of a thousand levels.
        let mut open = vec![(None, root)];
        while let Some((parent, mut node)) = open.pop() {
            let mut children = std::mem::take(&mut node.children);
            // A dynamic supervisor has no order. Here it has one, so that rows stay where they are.
            if node.supervisor.as_ref().is_some_and(|it| &*it.strategy == "dynamic") {
                children.sort_by_key(|child| child.created_at_ms);
            }
            let id = self.add(parent, node);
            open.extend(children.into_iter().rev().map(|child| (Some(id), child)));
        }
        self.program = status.program;
        if status.captured_at_ms >= self.captured_at_ms {
            self.totals = status.totals;
            self.captured_at_ms = status.captured_at_ms;
        }
        let recent = std::mem::take(&mut self.recent);
        for change in recent.iter().filter(|change| change.seq > status.seq) {
            self.update(change);
        }
        self.recent = recent;
        let nodes = self.items.iter().flatten().map(|item| &item.node);
        self.busy.replace(nodes, status.captured_at_ms);
        self.arrange();
    }

    /// Applies a change. Returns whether the tree is complete: if not, a snapshot is needed.
    pub(crate) fn apply(&mut self, mut change: Change) -> bool {
        // Before the first snapshot, and after a connection was lost, changes wait for the snapshot.
        let is_complete = !self.items.is_empty() && self.update(&change) && !change.resync;
        if let Some(totals) = change.totals.take() {
            self.totals = totals;
        }
        if let Some(at) = change.captured_at_ms {
            self.captured_at_ms = self.captured_at_ms.max(at);
        }
        if !change.children.is_empty() || !change.removed.is_empty() {
            change.events.clear();
            self.recent.push_back(change);
            if self.recent.len() > RECENT {
                self.recent.pop_front();
            }
            self.arrange();
        }
        is_complete
    }

    fn update(&mut self, change: &Change) -> bool {
        let mut is_complete = true;
        for path in &change.removed {
            self.remove(path);
        }
        for node in &change.children {
            if let Some(at) = change.captured_at_ms {
                self.busy.record(node, at);
            }
            if let Some(&id) = self.by_path.get(&*node.path) {
                if let Some(item) = &mut self.items[id] {
                    item.node = node.clone();
                }
                continue;
            }
            let parent =
                node.path.rsplit_once('/').and_then(|(parent, _)| self.by_path.get(parent));
            match parent.copied() {
                Some(parent) => _ = self.add(Some(parent), node.clone()),
                None => is_complete = false,
            }
        }
        is_complete
    }

    fn add(&mut self, parent: Option<usize>, node: Node) -> usize {
        let id = self.items.len();
        self.by_path.insert(node.path.to_string(), id);
        self.items.push(Some(Item { node, parent, children: Vec::new() }));
        if let Some(Some(parent)) = parent.and_then(|parent| self.items.get_mut(parent)) {
            parent.children.push(id);
        }
        id
    }

    fn remove(&mut self, path: &str) {
        let Some(&id) = self.by_path.get(path) else { return };
        let parent = self.items[id].as_ref().and_then(|item| item.parent);
        if let Some(Some(parent)) = parent.and_then(|parent| self.items.get_mut(parent)) {
            parent.children.retain(|&child| child != id);
        }
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            if let Some(item) = self.items[id].take() {
                self.by_path.remove(&*item.node.path);
                open.extend(item.children);
            }
        }
    }

    pub(crate) fn node(&self, path: &str) -> Option<&Node> {
        self.items[*self.by_path.get(path)?].as_ref().map(|item| &item.node)
    }

    /// The path of the root; empty before the first snapshot.
    pub(crate) fn root(&self) -> &str {
        self.items.first().and_then(Option::as_ref).map_or("", |item| &item.node.path)
    }

    /// How many children have a problem.
    pub(crate) fn problems(&self) -> u64 {
        self.problems
    }

    /// Which part of the last seconds the child was busy, per mille.
    pub(crate) fn busy(&self, node: &Node) -> Option<u64> {
        self.busy.share(&node.path)
    }
}
