//! Batches that sources send to storage, and the receipts that they get.
//!
//! Storing a batch is idempotent: a batch of the file names the position that it continues from, and
//! a batch of a connection carries the identity of each line. A source that gets no receipt sends
//! its batch again.

use std::fmt;
use std::sync::Arc;

/// How far the file has been stored. Of two positions, the greater one is the later one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    /// Lines stored.
    pub(crate) n: u64,
    /// How many of them were stored from files before the one that the offset belongs to.
    pub(crate) before: u64,
    /// The offset after the last stored line, including its newline if it has one.
    pub(crate) offset: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} (byte {})", self.n, self.offset)
    }
}

/// Lines that are stored in one transaction.
#[derive(Debug)]
pub(crate) enum Batch {
    /// Lines of the file that follow `from`.
    File {
        from: Position,
        to: Position,
        /// Whether the first text replaces line `from.n`, which had no newline when it was
        /// stored and may have grown since.
        again: bool,
        texts: Vec<Vec<u8>>,
    },
    /// Lines from a connection, each with its identity.
    Connection(Vec<Line>),
}

/// A line with its identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) source: Arc<str>,
    pub(crate) n: i64,
    pub(crate) text: Vec<u8>,
}

impl Batch {
    /// Returns the number of lines.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::File { texts, .. } => texts.len(),
            Self::Connection(lines) => lines.len(),
        }
    }

    /// Returns the size of all texts, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::File { texts, .. } => texts.iter().map(Vec::len).sum(),
            Self::Connection(lines) => lines.iter().map(|line| line.text.len()).sum(),
        }
    }
}

/// The receipt for a batch, sent after the commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Receipt {
    /// For each line of a connection, whether it was not stored before.
    pub(crate) new: Vec<bool>,
    /// How many lines the commit added.
    pub(crate) stored: u64,
    /// The position in the file after the commit. A batch from any other position stores nothing.
    pub(crate) position: Position,
}
