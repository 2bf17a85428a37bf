//! Locations: where a value is in the text of a file.
//!
//! A [`Location`] knows the file and a range of bytes. It doesn't know what the value means.
//!
//! # Invariants
//!
//! 1. The starts of the lines are computed once for each file, so a line is found by binary search.
//! 2. Every range is within the text and ends at character boundaries.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::start_of::start_of;

/// A file that was read.
pub(crate) struct Source {
    name: Arc<str>,
    text: Arc<str>,
    /// The byte at which each line begins.
    starts: Vec<usize>,
}

impl Source {
    pub(crate) fn new(text: &str, name: &str) -> Arc<Self> {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(index, _)| index + 1)).collect();
        Arc::new(Self { name: name.into(), text: text.into(), starts })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// A range of a file. Shown as `feed.toml:12`.
#[derive(Clone)]
pub(crate) struct Location {
    source: Arc<Source>,
    start: usize,
    end: usize,
}

impl Location {
    /// Creates a location. A range that isn't within the text is cut.
    pub(crate) fn new(source: &Arc<Source>, range: Range<usize>) -> Self {
        let boundary = |index| start_of(&source.text, index).len();
        let start = boundary(range.start);
        Self { source: Arc::clone(source), start, end: boundary(range.end).max(start) }
    }

    pub(crate) fn file(&self) -> &Arc<str> {
        &self.source.name
    }

    /// The first byte, which orders the locations of a file.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// The number of the line, from 1.
    pub(crate) fn line(&self) -> usize {
        self.source.starts.partition_point(|&start| start <= self.start)
    }

    /// The number of the line in which the range ends, from 1.
    pub(crate) fn last_line(&self) -> usize {
        // An exclusive end at the start of a line belongs to the line before.
        let last = self.end.saturating_sub(1).max(self.start);
        self.source.starts.partition_point(|&start| start <= last)
    }

    /// The number of the first character in its line, from 1.
    pub(crate) fn column(&self) -> usize {
        let line_start = self.source.starts[self.line() - 1];
        self.source.text[line_start..self.start].chars().count() + 1
    }

    /// The text before the line.
    pub(crate) fn text_before(&self) -> &str {
        &self.source.text[..self.source.starts[self.line() - 1]]
    }

    /// The text of the line before the range, the part of the range in this line, and the rest of the line.
    pub(crate) fn line_parts(&self) -> (&str, &str, &str) {
        let text = &*self.source.text;
        let line = self.line();
        let next = self.source.starts.get(line).map_or(text.len(), |&start| start - 1);
        // A location at the end of a line may be at its line break.
        let (line_start, start) = (self.source.starts[line - 1], self.start.min(next));
        let end = self.end.clamp(start, next);
        (&text[line_start..start], &text[start..end], &text[end..next])
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.source.name, self.line())
    }
}

/// The same as `Display`: the text of the file may contain secrets.
impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_in_characters() {
        let source = Source::new("a = 1\nä€ = 2\n\nend", "x.toml");
        let at = |range: Range<usize>| {
            let location = Location::new(&source, range);
            (location.line(), location.column(), location.last_line())
        };
        assert_eq!(at(0..1), (1, 1, 1));
        assert_eq!(at(6..8), (2, 1, 2));
        assert_eq!(at(14..15), (2, 6, 2), "two characters of two and three bytes");
        assert_eq!(at(5..6), (1, 6, 1), "the line break");
        assert_eq!(at(16..16), (3, 1, 3), "an empty line");
        assert_eq!(at(17..20), (4, 1, 4));
        assert_eq!(at(99..120), (4, 4, 4), "beyond the end");
        assert_eq!(at(7..8), (2, 1, 2), "within a character");
        assert_eq!(Location::new(&source, 6..8).to_string(), "x.toml:2");
    }

    #[test]
    fn a_line_is_split_at_the_range() {
        let source = Source::new("a = 1\nä€ = 2 # x\n", "x.toml");
        let parts = |range| {
            let location = Location::new(&source, range);
            let (before, inside, after) = location.line_parts();
            [before, inside, after].map(str::to_owned)
        };
        assert_eq!(parts(14..15), ["ä€ = ", "2", " # x"]);
        assert_eq!(parts(4..12), ["a = ", "1", ""], "only the first line");
        assert_eq!(parts(5..6), ["a = 1", "", ""]);
        assert_eq!(parts(99..99), ["", "", ""]);
    }
}
