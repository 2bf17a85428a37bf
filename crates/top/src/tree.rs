//! The tree as this program knows it: snapshots and changes in, visible rows out.
//!
//! Knows nothing of terminals and connections.
//!
//! # Invariants
//!
//! 1. A snapshot doesn't undo a change that is newer: the changes after the snapshot are applied again.
//! 2. A child that isn't the root has a parent in the tree, which lists it once.
//! 3. A row is made from three numbers; texts are made for those on the screen only.

use std::collections::{HashMap, HashSet, VecDeque};

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

/// A visible line of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    id: usize,
    pub(crate) depth: usize,
    /// Bit n: whether a sibling follows below at n levels above this row.
    pub(crate) more: u64,
}

#[cfg(test)]
impl Row {
    pub(crate) fn new(depth: usize, more: u64) -> Self {
        Self { id: 0, depth, more }
    }
}

/// The children of a program.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    items: Vec<Option<Item>>,
    by_path: HashMap<String, usize>,
    folded: HashSet<String>,
    filter: String,
    recent: VecDeque<Change>,
    rows: Vec<Row>,
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
        let by_path = &self.by_path;
        self.folded.retain(|path| by_path.contains_key(path));
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

    /// Shows only children whose path or state contains the text, and what is above them.
    pub(crate) fn set_filter(&mut self, filter: &str) {
        self.filter = filter.to_lowercase();
        self.arrange();
    }

    /// Hides or shows the children of a supervisor.
    pub(crate) fn fold(&mut self, path: &str) {
        if !self.folded.remove(path) && self.node(path).is_some() {
            self.folded.insert(path.to_owned());
        }
        self.arrange();
    }

    fn arrange(&mut self) {
        let mut rows = std::mem::take(&mut self.rows);
        rows.clear();
        let shown = (!self.filter.is_empty()).then(|| self.matching());
        let is_shown = |id: usize| shown.as_ref().is_none_or(|shown| shown[id]);
        let root = Row { id: 0, depth: 0, more: 0 };
        let mut open: Vec<Row> =
            (!self.items.is_empty() && is_shown(0)).then_some(root).into_iter().collect();
        while let Some(row) = open.pop() {
            rows.push(row);
            let Some(item) = &self.items[row.id] else { continue };
            if shown.is_none() && self.folded.contains(&*item.node.path) {
                continue;
            }
            let mut more = 0;
            for &id in item.children.iter().rev().filter(|&&id| is_shown(id)) {
                open.push(Row { id, depth: row.depth + 1, more: row.more << 1 | more });
                more = 1;
            }
        }
        self.rows = rows;
    }

    /// For each item, whether the filter shows it.
    fn matching(&self) -> Vec<bool> {
        let mut shown = vec![false; self.items.len()];
        for (id, item) in self.items.iter().enumerate() {
            let Some(Item { node, .. }) = item else { continue };
            let is_match = node.path.to_lowercase().contains(&self.filter)
                || node.state().to_lowercase().contains(&self.filter)
                || (node.held && "held".contains(&self.filter));
            let mut next = is_match.then_some(id);
            while let Some(id) = next.filter(|&id| !shown[id]) {
                shown[id] = true;
                next = self.items[id].as_ref().and_then(|item| item.parent);
            }
        }
        shown
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(crate) fn at(&self, row: Row) -> Option<&Node> {
        self.items.get(row.id)?.as_ref().map(|item| &item.node)
    }

    /// How many children the row hides.
    pub(crate) fn hidden(&self, row: Row) -> usize {
        let item = self.items.get(row.id).and_then(Option::as_ref);
        let is_folded =
            |item: &&Item| self.filter.is_empty() && self.folded.contains(&*item.node.path);
        item.filter(is_folded).map_or(0, |item| item.children.len())
    }

    pub(crate) fn node(&self, path: &str) -> Option<&Node> {
        self.items[*self.by_path.get(path)?].as_ref().map(|item| &item.node)
    }

    /// The path of the root; empty before the first snapshot.
    pub(crate) fn root(&self) -> &str {
        self.items.first().and_then(Option::as_ref).map_or("", |item| &item.node.path)
    }

    /// The row of a child, if it is visible.
    pub(crate) fn position(&self, path: &str) -> Option<usize> {
        let id = *self.by_path.get(path)?;
        self.rows.iter().position(|row| row.id == id)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::text::Text;

    pub(crate) fn node(path: &str, lifecycle: &str) -> Node {
        let kind = Text::from("worker");
        let restart = Text::from("permanent");
        Node {
            path: path.into(),
            kind,
            restart,
            lifecycle: lifecycle.into(),
            incarnation: 1,
            ..Node::default()
        }
    }

    pub(crate) fn supervisor(path: &str, children: Vec<Node>) -> Node {
        let supervisor = crate::model::Supervisor {
            strategy: "one_for_one".into(),
            max_restarts: Some(5),
            period_ms: 60_000,
            ..Default::default()
        };
        Node {
            kind: "supervisor".into(),
            supervisor: Some(supervisor),
            children,
            ..node(path, "active")
        }
    }

    pub(crate) fn status(seq: u64, root: Node) -> Status {
        Status { seq, captured_at_ms: seq, root, ..Status::default() }
    }

    fn sample() -> Node {
        let ingest =
            vec![node("app/ingest/reader", "active"), node("app/ingest/writer", "restarting")];
        supervisor(
            "app",
            vec![
                node("app/db", "active"),
                supervisor("app/ingest", ingest),
                node("app/http", "active"),
            ],
        )
    }

    fn tree() -> Tree {
        let mut tree = Tree::default();
        tree.load(status(10, sample()));
        tree
    }

    fn shown(tree: &Tree) -> Vec<String> {
        let rows = tree.rows().iter();
        rows.map(|&row| {
            format!("{}{}:{:b}", " ".repeat(row.depth), tree.at(row).unwrap().name(), row.more)
        })
        .collect()
    }

    #[test]
    fn rows_are_in_start_order_and_know_which_levels_go_on() {
        assert_eq!(
            shown(&tree()),
            ["app:0", " db:1", " ingest:1", "  reader:11", "  writer:10", " http:0"]
        );
    }

    #[test]
    fn a_folded_supervisor_hides_its_children_until_it_is_unfolded_or_filtered() {
        let mut tree = tree();
        tree.fold("app/ingest");
        assert_eq!(shown(&tree), ["app:0", " db:1", " ingest:1", " http:0"]);
        assert_eq!(tree.hidden(tree.rows()[2]), 2);
        tree.load(status(11, sample()));
        assert_eq!(shown(&tree).len(), 4);
        tree.set_filter("WRIT");
        assert_eq!(shown(&tree), ["app:0", " ingest:0", "  writer:0"]);
        tree.set_filter("restarting");
        assert_eq!(shown(&tree).len(), 3);
        tree.set_filter("");
        tree.fold("app/ingest");
        assert_eq!(shown(&tree).len(), 6);
    }

    #[test]
    fn a_change_updates_adds_and_removes_children() {
        let mut tree = tree();
        let change = Change {
            seq: 11,
            captured_at_ms: Some(11),
            children: vec![node("app/db", "errored"), node("app/ingest/spare", "active")],
            removed: vec!["app/http".into(), "app/ingest/reader".into(), "app/unknown".into()],
            ..Change::default()
        };
        assert!(tree.apply(change));
        assert_eq!(shown(&tree), ["app:0", " db:1", " ingest:0", "  writer:1", "  spare:0"]);
        assert_eq!(tree.node("app/db").unwrap().state(), "ERRORED");
    }

    #[test]
    fn a_child_below_an_unknown_supervisor_needs_a_snapshot() {
        let children = vec![node("app/new/a", "active")];
        assert!(!tree().apply(Change { seq: 11, children, ..Change::default() }));
        assert!(!tree().apply(Change { seq: 11, resync: true, ..Change::default() }));
        assert!(!Tree::default().apply(Change::default()));
    }

    #[test]
    fn a_snapshot_does_not_undo_a_newer_change() {
        let mut tree = tree();
        let removed = vec!["app/http".into()];
        tree.apply(Change {
            seq: 12,
            children: vec![node("app/db", "errored")],
            removed,
            ..Change::default()
        });
        tree.load(status(11, sample()));
        assert_eq!(tree.node("app/db").unwrap().state(), "ERRORED");
        assert_eq!(tree.node("app/http"), None);
        tree.load(status(12, sample()));
        assert_eq!(tree.node("app/db").unwrap().state(), "active");
        assert!(tree.node("app/http").is_some());
    }

    #[test]
    fn another_process_starts_afresh() {
        let mut tree = tree();
        tree.apply(Change {
            seq: 12,
            children: vec![node("app/db", "errored")],
            ..Change::default()
        });
        let program = Program { pid: 2, ..Program::default() };
        tree.load(Status { program, ..status(1, sample()) });
        assert_eq!(tree.node("app/db").unwrap().state(), "active");
    }

    #[test]
    fn dynamic_children_are_in_the_order_in_which_they_were_added() {
        let child = |path, created| Node { created_at_ms: Some(created), ..node(path, "active") };
        let mut root =
            supervisor("app", vec![child("app/c#3", 3), child("app/c#1", 1), child("app/c#2", 2)]);
        root.supervisor.as_mut().unwrap().strategy = "dynamic".into();
        let mut tree = Tree::default();
        tree.load(status(1, root));
        assert_eq!(shown(&tree), ["app:0", " c#1:1", " c#2:1", " c#3:0"]);
    }

    #[test]
    fn a_deep_tree_needs_no_stack() {
        let mut root = node("a", "active");
        for _ in 0..1_000 {
            root = supervisor("a", vec![root]);
        }
        let mut tree = Tree::default();
        tree.load(status(1, root));
        assert_eq!(tree.rows().len(), 1_001);
    }
}
