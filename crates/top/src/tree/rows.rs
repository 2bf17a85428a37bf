//! Which children are visible, and in which order.
//!
//! # Invariants
//!
//! 1. A row is made from numbers; texts are made for those on the screen only.
//! 2. In the order of the tree, a child that is shown has its supervisors above it. In any other order the rows are a
//!    list, in which equal ones keep the order of the tree.
//! 3. Dynamic children are folded only where nothing narrows the rows: who searches wants to see what was found.

use std::cmp::{Ordering, Reverse};
use std::collections::HashSet;

use super::{Item, Tree};
use crate::fold::{Part, counts, fold, stem};
use crate::model::Node;

/// By what the rows are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sort {
    #[default]
    Tree,
    Problem,
    Restarts,
    Busy,
    Mailbox,
    Since,
    State,
    Name,
}

impl Sort {
    const ALL: [(Self, &str); 8] = [
        (Self::Tree, "tree"),
        (Self::Problem, "problem, latest first"),
        (Self::Restarts, "restarts, most first"),
        (Self::Busy, "busy time, most first"),
        (Self::Mailbox, "mailbox, fullest first"),
        (Self::Since, "time in the state, shortest first"),
        (Self::State, "state, loudest first"),
        (Self::Name, "path"),
    ];

    pub(crate) fn next(self) -> Self {
        let at = Self::ALL.iter().position(|&(sort, _)| sort == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()].0
    }

    pub(crate) fn words(self) -> &'static str {
        Self::ALL.iter().find(|&&(sort, _)| sort == self).map_or("", |&(_, words)| words)
    }
}

/// What the user has chosen to see.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// In lower case. Without any, all children are shown.
    pub(crate) filter: String,
    /// Shows only children with problems.
    pub(crate) problems: bool,
    pub(crate) sort: Sort,
    pub(crate) reversed: bool,
    /// The paths of supervisors whose children are hidden.
    folded: HashSet<String>,
    /// The paths of lines for several children that are listed one by one.
    unfolded: HashSet<String>,
}

impl View {
    fn narrows(&self) -> bool {
        self.problems || !self.filter.is_empty()
    }

    fn matches(&self, node: &Node) -> bool {
        let has = |text: &str| text.to_lowercase().contains(&self.filter);
        let is_match = || {
            let words = [node.status.as_ref(), node.explanation(), node.alarming.as_ref()];
            has(&node.path)
                || has(node.state())
                || (node.held && "held".contains(&self.filter))
                || words.into_iter().flatten().any(|text| has(text))
                || node.problems.iter().any(|it| has(&it.problem))
                || node.last_exit.as_ref().is_some_and(|exit| has(&exit.reason.message))
        };
        (!self.problems || node.is_problem()) && (self.filter.is_empty() || is_match())
    }
}

/// A visible line of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    what: What,
    pub(crate) depth: usize,
    /// Bit n: whether a sibling follows below at n levels above this row.
    pub(crate) more: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// The child with this number.
    Child(usize),
    /// Several dynamic children, by the position in [`Tree::many`].
    Many(usize),
}

#[cfg(test)]
impl Row {
    pub(crate) fn new(depth: usize, more: u64) -> Self {
        Self { what: What::Child(0), depth, more }
    }
}

/// Dynamic children that one row stands for.
#[derive(Debug)]
pub(crate) struct Many {
    parent: usize,
    /// What their names have before their `#`.
    stem: String,
    members: Vec<usize>,
}

/// The path of the line for a child and its dynamic siblings: `app/conn#…` for `app/conn#7` and for itself.
fn line_of(path: &str) -> Option<String> {
    let (parent, name) = path.rsplit_once('/')?;
    let stem = stem(name)?;
    Some(format!("{parent}/{stem}#…"))
}

impl Tree {
    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// Changes what is shown.
    pub(crate) fn change_view(&mut self, change: impl FnOnce(&mut View)) {
        change(&mut self.view);
        self.view.filter = self.view.filter.to_lowercase();
        self.arrange();
    }

    /// Shows only children in which the text occurs: in the path, the state, the status or the cause.
    #[cfg(test)]
    pub(crate) fn set_filter(&mut self, filter: &str) {
        self.change_view(|view| view.filter = filter.to_owned());
    }

    /// Hides or shows the children of a supervisor, or the dynamic children that have one line.
    pub(crate) fn fold(&mut self, path: &str) {
        let line = line_of(path);
        let is_leaf = self.item(path).is_none_or(|item| item.children.is_empty());
        let (set, path) = match line {
            Some(line) if is_leaf => (&mut self.view.unfolded, line),
            _ => (&mut self.view.folded, path.to_owned()),
        };
        if !set.remove(&path) {
            set.insert(path);
        }
        self.arrange();
    }

    /// Makes a child visible, however the rows are narrowed and folded. Returns whether there is one.
    pub(crate) fn reveal(&mut self, path: &str) -> bool {
        if self.node(path).is_none() {
            return false;
        }
        let mut view = std::mem::take(&mut self.view);
        let is_above = |above: &str| path.strip_prefix(above).is_some_and(|it| it.starts_with('/'));
        view.folded.retain(|folded| !is_above(folded));
        self.view = View { folded: view.folded, unfolded: view.unfolded, ..View::default() };
        self.arrange();
        if self.position(path).is_none() {
            self.view.unfolded.extend(line_of(path));
            self.arrange();
        }
        true
    }

    fn item(&self, path: &str) -> Option<&Item> {
        self.items[*self.by_path.get(path)?].as_ref()
    }

    pub(super) fn arrange(&mut self) {
        self.rows.clear();
        self.many.clear();
        let nodes = self.items.iter().flatten().map(|item| &item.node);
        self.problems = nodes.filter(|node| node.is_problem()).map(|_| 1).sum();
        let by_path = &self.by_path;
        let is_known = |path: &String| by_path.contains_key(path);
        self.view.folded.retain(is_known);
        let has_parent =
            |path: &String| path.rsplit_once('/').is_some_and(|(it, _)| by_path.contains_key(it));
        self.view.unfolded.retain(has_parent);
        if self.view.sort == Sort::Tree { self.arrange_as_tree() } else { self.arrange_as_list() }
    }

    fn arrange_as_tree(&mut self) {
        let shown = self.view.narrows().then(|| self.matching());
        let is_shown = |id: usize| shown.as_ref().is_none_or(|shown| shown[id]);
        let root = Row { what: What::Child(0), depth: 0, more: 0 };
        let mut open: Vec<Row> =
            (!self.items.is_empty() && is_shown(0)).then_some(root).into_iter().collect();
        let (mut rows, mut lines) = (Vec::new(), Vec::new());
        while let Some(row) = open.pop() {
            rows.push(row);
            let What::Child(parent) = row.what else { continue };
            let Some(item) = &self.items[parent] else { continue };
            if shown.is_none() && self.view.folded.contains(&*item.node.path) {
                continue;
            }
            let below = match &shown {
                Some(shown) => {
                    let children = item.children.iter().filter(|&&id| shown[id]);
                    children.map(|&id| What::Child(id)).collect()
                }
                None => self.folded_below(parent, item, &mut lines),
            };
            let mut more = 0;
            for what in below.into_iter().rev() {
                open.push(Row { what, depth: row.depth + 1, more: row.more << 1 | more });
                more = 1;
            }
        }
        (self.rows, self.many) = (rows, lines);
    }

    /// The rows below a supervisor: its children, with one line for many dynamic ones unless it is unfolded.
    fn folded_below(&self, parent: usize, item: &Item, lines: &mut Vec<Many>) -> Vec<What> {
        let children = &item.children;
        let node = |id: usize| self.items[id].as_ref().map(|item| &item.node);
        let siblings = children
            .iter()
            .map(|&id| node(id).map_or(("", false), |it| (it.name(), it.is_problem())));
        let mut rows = Vec::new();
        // A child with a problem may stand behind the line that it belongs to, or in its place in an unfolded one.
        let mut listed = HashSet::new();
        for part in fold(siblings) {
            match part {
                Part::One(at) => rows.extend(listed.insert(at).then(|| What::Child(children[at]))),
                Part::Many(members) => {
                    let first = node(children[members[0]]);
                    let stem = first.and_then(|node| stem(node.name())).unwrap_or_default();
                    if self.view.unfolded.contains(&format!("{}/{stem}#…", item.node.path)) {
                        listed.extend(&members);
                        rows.extend(members.iter().map(|&at| What::Child(children[at])));
                        continue;
                    }
                    rows.push(What::Many(lines.len()));
                    let members = members.iter().map(|&at| children[at]).collect();
                    lines.push(Many { parent, stem: stem.to_owned(), members });
                }
            }
        }
        rows
    }

    fn arrange_as_list(&mut self) {
        let mut found = Vec::new();
        // In the order of the tree, which those keep that are equal.
        let mut open: Vec<usize> = (!self.items.is_empty()).then_some(0).into_iter().collect();
        while let Some(id) = open.pop() {
            let Some(item) = &self.items[id] else { continue };
            if self.view.matches(&item.node) {
                found.push((id, &item.node));
            }
            open.extend(item.children.iter().rev());
        }
        found.sort_by(|(_, a), (_, b)| {
            let order = self.compare(a, b);
            if self.view.reversed { order.reverse() } else { order }
        });
        let row = |(id, _)| Row { what: What::Child(id), depth: 0, more: 0 };
        self.rows = found.into_iter().map(row).collect();
    }

    fn compare(&self, a: &Node, b: &Node) -> Ordering {
        fn by<K: Ord>(a: &Node, b: &Node, key: impl Fn(&Node) -> K) -> Ordering {
            key(a).cmp(&key(b))
        }
        match self.view.sort {
            Sort::Tree => Ordering::Equal,
            Sort::Problem => by(a, b, |it| {
                // One without a time is older than all others.
                Reverse(it.problems.first().map(|it| it.since_ms.unwrap_or(0)))
            }),
            Sort::Restarts => by(a, b, |it| Reverse(it.restarts)),
            Sort::Busy => {
                by(a, b, |it| Reverse((self.busy(it), it.busy.as_ref().map(|it| it.total_ms))))
            }
            Sort::Mailbox => by(a, b, |it| {
                let full = |len: u64, capacity: u64| (len * 1_000).checked_div(capacity);
                Reverse(it.mailbox.as_ref().map(|it| (full(it.len, it.capacity), it.len)))
            }),
            Sort::Since => by(a, b, |it| Reverse(it.since_ms)),
            Sort::State => by(a, b, |it| (!it.is_loud(), it.lifecycle.clone())),
            Sort::Name => by(a, b, |it| it.path.clone()),
        }
    }

    /// For each item, whether it is shown: it matches, or one below it does.
    fn matching(&self) -> Vec<bool> {
        let mut shown = vec![false; self.items.len()];
        for (id, item) in self.items.iter().enumerate() {
            let Some(Item { node, .. }) = item else { continue };
            let mut next = self.view.matches(node).then_some(id);
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

    /// The child of a row; `None` for a line that stands for several.
    pub(crate) fn at(&self, row: Row) -> Option<&Node> {
        let What::Child(id) = row.what else { return None };
        self.items.get(id)?.as_ref().map(|item| &item.node)
    }

    /// What a line for several children shows: its name, how many there are, and their states.
    pub(crate) fn many_at(&self, row: Row) -> Option<(String, usize, String)> {
        let What::Many(at) = row.what else { return None };
        let Many { stem, members, .. } = self.many.get(at)?;
        let nodes = members.iter().filter_map(|&id| self.items[id].as_ref());
        let states = counts(nodes.map(|item| &item.node.lifecycle));
        Some((format!("{stem}#…"), members.len(), states))
    }

    /// The path of a row. A line for several children has one that no child has: `app/conn#…`.
    pub(crate) fn path_at(&self, row: Row) -> String {
        match row.what {
            What::Child(_) => self.at(row).map_or(String::new(), |node| node.path.to_string()),
            What::Many(at) => self.many.get(at).map_or(String::new(), |line| {
                let parent = self.items[line.parent].as_ref().map(|item| &item.node.path);
                format!("{}/{}#…", parent.map_or("", |path| path), line.stem)
            }),
        }
    }

    /// How many children the row hides.
    pub(crate) fn hidden(&self, row: Row) -> usize {
        let What::Child(id) = row.what else { return 0 };
        let item = self.items.get(id).and_then(Option::as_ref);
        let is_tree = self.view.sort == Sort::Tree && !self.view.narrows();
        let is_folded = |item: &&Item| is_tree && self.view.folded.contains(&*item.node.path);
        item.filter(is_folded).map_or(0, |item| item.children.len())
    }

    /// The row of a child, or of the line that a path with `#…` names, if it is visible.
    pub(crate) fn position(&self, path: &str) -> Option<usize> {
        let is_it = |row: &Row| match row.what {
            What::Child(id) => self.by_path.get(path) == Some(&id),
            What::Many(_) => self.path_at(*row) == path,
        };
        self.rows.iter().position(is_it)
    }
}
