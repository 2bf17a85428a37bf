//! A [`Status`] as text, in 80 columns.
//!
//! Each child has a line: guides and name, policy, the state of its lifecycle, and then facts. Facts
//! that don't fit continue below the line.
//!
//! # Invariants
//!
//! 1. No line is wider than [`WIDTH`].
//! 2. The columns are fixed, so that a diff of two texts shows only what changed.
//! 3. Every function is `#[inline]`, so that only a program that shows the text compiles it.

use std::fmt::{self, Write};
use std::slice;

use super::words::{self, cut, cut_in_the_middle, intensity, state, time};
use crate::status::{Node, Status};

/// The width of a line, in characters.
const WIDTH: usize = 80;
/// The width of the column with guides and name.
const NAME: usize = 22;
/// The width of the columns with a policy or a state: `rest_for_one`, `deactivating`.
const WORD: usize = 12;
/// The width to which the path in the first line is cut.
const PATH: usize = 24;
/// How many levels of guides fit in front of a name.
const LEVELS: usize = 4;

/// For each level above the current node, the siblings that are still to be written.
type OpenLevels<'a> = Vec<slice::Iter<'a, Node>>;

/// The format is described at [`Status`].
impl fmt::Display for Status {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.head().write(f)?;
        // A loop, because recursion would overflow the stack in a tree of a thousand levels.
        let mut open: OpenLevels<'_> = vec![self.root.children.iter()];
        while let Some(children) = open.last_mut() {
            let Some(node) = children.next() else {
                open.pop();
                continue;
            };
            f.write_char('\n')?;
            node.row(&open).write(f)?;
            open.push(node.children.iter());
        }
        Ok(())
    }
}

/// The lines of one child.
struct Entry<'a> {
    /// The beginning of the first line, up to the facts.
    line: String,
    /// The beginning of the lines that continue it.
    below: String,
    /// What separates the first fact from the beginning of the first line.
    gap: &'static str,
    node: &'a Node,
    /// The counts of children, for the root only. They replace the restart intensity, which the
    /// root's first line shows already.
    counts: Option<String>,
}

impl Node {
    /// Returns the lines of the root.
    #[inline]
    fn head(&self) -> Entry<'_> {
        let name = cut_in_the_middle(self.child.path.as_str(), PATH);
        let intensity = self.supervisor.as_ref().map(|it| format!(" {}", intensity(it)));
        let (intensity, state) = (intensity.unwrap_or_default(), state(self.child.lifecycle));
        Entry {
            line: format!("{name}  {}{intensity}  {state}", words::policy(self)),
            below: self.stem().to_owned(),
            gap: "  ",
            node: self,
            counts: Some(words::counts(self)),
        }
    }

    /// Returns the lines of a child below the supervisors in `open`.
    #[inline]
    fn row(&self, open: &OpenLevels<'_>) -> Entry<'_> {
        let depth = open.len();
        let (mut line, mut below) = (String::new(), String::new());
        let mut drawn = &open[..];
        if depth > LEVELS {
            let hidden = format!("+{}", depth - 2);
            drawn = &open[depth - 2..];
            // As wide as two levels of guides.
            line = format!("{hidden:<6}");
            below = " ".repeat(line.chars().count());
        }
        for (level, siblings) in drawn.iter().enumerate() {
            let is_last = siblings.as_slice().is_empty();
            let is_own = level + 1 == drawn.len();
            line.push_str(match (is_own, is_last) {
                (true, true) => "└─ ",
                (true, false) => "├─ ",
                (false, true) => "   ",
                (false, false) => "│  ",
            });
            below.push_str(if is_last { "   " } else { "│  " });
        }
        below.push_str(self.stem());
        let room = NAME.saturating_sub(line.chars().count());
        let name = cut_in_the_middle(self.child.path.name(), room);
        let (policy, state) = (words::policy(self), state(self.child.lifecycle));
        let line = format!("{line}{name:<room$} {policy:<WORD$} {state:<WORD$}");
        Entry { line, below, gap: " ", node: self, counts: None }
    }

    /// Returns the guide that leads from this node down to its children.
    #[inline]
    fn stem(&self) -> &'static str {
        if self.children.is_empty() { "   " } else { "│  " }
    }
}

impl Entry<'_> {
    #[inline]
    fn write(mut self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let room = WIDTH - self.below.chars().count();
        let mut line = std::mem::take(&mut self.line);
        let mut gap = self.gap;
        for fact in self.facts(room) {
            if line.chars().count() + gap.len() + fact.chars().count() > WIDTH {
                f.write_str(line.trim_end())?;
                f.write_char('\n')?;
                line.clone_from(&self.below);
                gap = "";
            }
            line.push_str(gap);
            line.push_str(&fact);
            gap = "  ";
        }
        f.write_str(line.trim_end())
    }

    /// Returns what follows the columns, each fact at most `room` wide.
    #[inline]
    fn facts(&self, room: usize) -> impl Iterator<Item = String> {
        let limit = match &self.counts {
            Some(counts) => Some(cut(counts, room)),
            None => self.node.supervisor.as_deref().map(intensity),
        };
        [time(&self.node.child)].into_iter().chain(limit).chain(words::notes(self.node, room))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::ExitReason;
    use crate::path::Path;
    use crate::status::{ChildInfo, ChildKind, LastExit};

    fn node(path: Path, children: Vec<Node>) -> Node {
        let kind = if children.is_empty() { ChildKind::Worker } else { ChildKind::Supervisor };
        let child = ChildInfo::sample(path, kind);
        Node { child, supervisor: None, children }
    }

    fn text(root: Node) -> String {
        Status::sample(root).to_string()
    }

    /// A supervisor above a supervisor, and so on, `levels` of them, each with a worker as well.
    fn deep(levels: usize) -> Node {
        let mut paths = vec![Path::root("s0")];
        for level in 1..levels {
            paths.push(paths[level - 1].join(&format!("s{level}")));
        }
        let worker = |path: &Path| node(path.join("w"), Vec::new());
        let lowest = worker(&paths[levels - 1].join("x"));
        paths.into_iter().rev().fold(lowest, |below, path| {
            let worker = worker(&path);
            node(path, vec![below, worker])
        })
    }

    #[test]
    fn below_the_fourth_level_the_levels_that_are_not_drawn_are_counted() {
        assert_eq!(
            text(deep(6)).lines().collect::<Vec<_>>(),
            [
                "s0  supervisor  active  up 0s  12 children",
                "├─ s1                  supervisor   active       up 0s",
                "│  ├─ s2               supervisor   active       up 0s",
                "│  │  ├─ s3            supervisor   active       up 0s",
                "│  │  │  ├─ s4         supervisor   active       up 0s",
                "+3    │  ├─ s5         supervisor   active       up 0s",
                "+4    │  ├─ w          permanent    active       up 0s",
                "+4    │  └─ w          permanent    active       up 0s",
                "+3    │  └─ w          permanent    active       up 0s",
                "│  │  │  └─ w          permanent    active       up 0s",
                "│  │  └─ w             permanent    active       up 0s",
                "│  └─ w                permanent    active       up 0s",
                "└─ w                   permanent    active       up 0s",
            ]
        );
    }

    #[test]
    fn a_thousand_levels_and_a_hundred_thousand_children_are_80_columns_wide() {
        let mut tree = deep(1_000);
        for serial in 0..100_000 {
            let mut child = node(tree.child.path.join(&format!("conn#{serial}")), Vec::new());
            child.child.status = Some("longword".repeat(20));
            tree.children.push(child);
        }
        let text = text(tree);

        assert_eq!(text.lines().map(|line| line.chars().count()).max(), Some(WIDTH));
        assert_eq!(text.lines().count(), 1 + 1_000 + 1_000 + 2 * 100_000);
        let lowest = text.lines().skip(999).take(2).collect::<Vec<_>>();
        assert_eq!(
            lowest,
            [
                "+997  │  ├─ s999       supervisor   active       up 0s",
                "+998  │  ├─ w          permanent    active       up 0s",
            ]
        );
    }

    #[test]
    fn a_status_text_stays_on_its_line_whatever_it_contains() {
        let mut child = node(Path::root("app").join("a"), Vec::new());
        child.child.status = Some("\n one\ttwo\r\nthree\u{1b}[31m ".to_owned());
        child.child.last_exit =
            Some(LastExit::sample(ExitReason::Panicked("line 1\n  line 2".into())));
        child.child.restarts = 4_000_000_000;
        let mut blank = node(Path::root("app").join("b"), Vec::new());
        blank.child.status = Some(" \n".to_owned());

        assert_eq!(
            text(node(Path::root("app"), vec![child, blank])).lines().collect::<Vec<_>>(),
            [
                "app  supervisor  active  up 0s  2 children",
                "├─ a                   permanent    active       up 0s  restarts=4000000000",
                "│     \"one two three [31m\"  last: panicked: line 1 line 2",
                "└─ b                   permanent    active       up 0s",
            ]
        );
    }

    #[test]
    fn a_hostile_text_stays_in_its_line() {
        let text = crate::status::samples::hostile().to_string();

        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            [
                r##"app  one_for_one 0/5 in 7m  active  up 0s  1 child"##,
                r##"└─ "<b>&\              permanent    active       up 0s"##,
                r##"      ""<script>alert('&')</script>\ [31m %%{init}%%`#1""##,
                r##"      last: panicked: "<script>alert('&')</script>\ [31m %%{init}%%`#1"##,
            ]
        );
    }
}
