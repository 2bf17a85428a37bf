//! All children of a snapshot, each before its own children.
//!
//! # Invariants
//!
//! 1. No recursion: the stack of the caller doesn't grow with the depth of the tree.
//! 2. A child is numbered after its supervisor and before its own children, without gaps, from 0.

use std::slice;

use crate::status::{Node, Status};

/// A child, and its place in the tree.
pub(super) struct Visit<'a> {
    pub(super) node: &'a Node,
    /// The number of supervisors above.
    pub(super) depth: usize,
    /// How many children have been visited before.
    pub(super) number: usize,
    /// The supervisor; `None` for the root.
    pub(super) above: Option<Above>,
}

/// The supervisor of a child that is visited.
pub(super) struct Above {
    pub(super) number: usize,
    /// Whether the child is the last one of this supervisor.
    pub(super) is_last: bool,
}

/// For each level above the next child, the number of the supervisor and its children that aren't visited yet.
pub(super) struct Walk<'a> {
    root: Option<&'a Node>,
    open: Vec<(usize, slice::Iter<'a, Node>)>,
    visited: usize,
}

impl Status {
    /// Visits the root and all children below it.
    #[inline]
    pub(super) fn walk(&self) -> Walk<'_> {
        self.root.walk()
    }
}

impl Node {
    /// Visits this child and all children below it.
    #[inline]
    pub(super) fn walk(&self) -> Walk<'_> {
        Walk { root: Some(self), open: Vec::new(), visited: 0 }
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Visit<'a>;

    #[inline]
    fn next(&mut self) -> Option<Visit<'a>> {
        let (node, above) = match self.root.take() {
            Some(root) => (root, None),
            None => loop {
                let (number, children) = self.open.last_mut()?;
                if let Some(node) = children.next() {
                    let is_last = children.as_slice().is_empty();
                    break (node, Some(Above { number: *number, is_last }));
                }
                self.open.pop();
            },
        };
        let (depth, number) = (self.open.len(), self.visited);
        self.open.push((number, node.children.iter()));
        self.visited += 1;
        Some(Visit { node, depth, number, above })
    }
}

#[cfg(test)]
mod tests {
    use crate::status::samples;

    #[test]
    fn each_child_is_visited_after_its_supervisor_and_before_its_own_children() {
        let service = samples::service();
        let visits = service.walk().map(|it| {
            let above = it.above.map_or("-".to_owned(), |above| {
                let last = if above.is_last { " last" } else { "" };
                format!("{}{last}", above.number)
            });
            format!("{} {} {} {above}", it.number, it.depth, it.node.child.path)
        });

        assert_eq!(
            visits.collect::<Vec<_>>(),
            [
                "0 0 app -",
                "1 1 app/db 0",
                "2 1 app/ingest 0",
                "3 2 app/ingest/writer 2",
                "4 2 app/ingest/mqtt 2 last",
                "5 1 app/cache 0",
                "6 1 app/feed 0",
                "7 1 app/migrate 0",
                "8 1 app/http 0",
                "9 1 app/search 0",
                "10 1 app/old 0",
                "11 1 app/report 0 last",
            ]
        );
    }
}
