//! The differences between two snapshots as text, a line for each child.

use std::fmt;

use crate::invisible::Visible;
use crate::status::words::cut;
use crate::status::{ChildChange, ChildDiff, Fact, FactChange, StatusDiff};

/// The width of a line, if its values can be cut to fit.
const WIDTH: usize = 80;
/// The widths to which values are cut: the first one with which the line fits.
const VALUES: [usize; 7] = [60, 50, 40, 32, 24, 20, 16];
/// The width to which values are cut if no line fits.
const LONG: usize = 24;

impl StatusDiff {
    /// Returns whether the snapshots have no differences.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.children.is_empty()
    }
}

/// The format is described at [`StatusDiff`]. Without differences, it is `no differences`.
impl fmt::Display for StatusDiff {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("no differences");
        }
        for (index, child) in self.children.iter().enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            write!(f, "{line_break}{child}")?;
        }
        Ok(())
    }
}

/// Writes one line, without a line break.
impl fmt::Display for ChildDiff {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match &self.change {
            ChildChange::Added { lifecycle } => write!(f, "+ {path}  {lifecycle}"),
            ChildChange::Removed { lifecycle } => write!(f, "- {path}  {lifecycle}"),
            ChildChange::Changed { facts } => {
                let line = |room| {
                    let facts = facts.iter().map(|it| it.in_room(room));
                    facts.fold(format!("~ {path}"), |line, fact| line + "  " + &fact)
                };
                let fits = |line: &String| line.chars().count() <= WIDTH;
                f.write_str(&VALUES.into_iter().map(line).find(fits).unwrap_or_else(|| line(LONG)))
            }
        }
    }
}

impl FactChange {
    /// Returns the fact as text, with values of at most `room` characters.
    #[inline]
    fn in_room(&self, room: usize) -> String {
        let shown = |value: &Option<String>| match value {
            None => "none".to_owned(),
            Some(text) if matches!(self.fact, Fact::Status) => {
                format!("\"{}\"", cut(Visible(text), room))
            }
            Some(text) => cut(Visible(text), room),
        };
        let (before, after) = (shown(&self.before), shown(&self.after));
        match self.fact {
            Fact::Lifecycle => format!("{before} → {after}"),
            fact => format!("{fact} {before} → {after}"),
        }
    }
}
