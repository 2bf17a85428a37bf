//! What the sources hand to storage, and what they hear back.
//!
//! Every batch may be stored twice with the effect of once: one from the file says which position
//! it goes on from, one from a connection carries its lines' identities. So a source that wasn't
//! answered sends its batch again and never has to know how far the last attempt came.

use std::fmt;
use std::sync::Arc;

/// How far the file has been stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// Lines stored.
    pub(crate) n: u64,
    /// The byte behind the last of them, and behind its newline if it has one.
    pub(crate) offset: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} (byte {})", self.n, self.offset)
    }
}

/// Lines that are stored together.
#[derive(Debug)]
pub(crate) enum Batch {
    /// The next lines of the file.
    File {
        from: Position,
        to: Position,
        /// The first text takes the place of line `from.n`, which had no newline when it was
        /// stored and may have grown since.
        again: bool,
        texts: Vec<Vec<u8>>,
    },
    /// Lines from a connection, each with its identity.
    Connection(Vec<Line>),
}

/// A line that names itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) source: Arc<str>,
    pub(crate) n: i64,
    pub(crate) text: Vec<u8>,
}

impl Batch {
    /// How many lines the batch holds.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::File { texts, .. } => texts.len(),
            Self::Connection(lines) => lines.len(),
        }
    }

    /// The size of its texts.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::File { texts, .. } => texts.iter().map(Vec::len).sum(),
            Self::Connection(lines) => lines.iter().map(|line| line.text.len()).sum(),
        }
    }
}

/// What became of a batch, told after the commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Receipt {
    /// For each line of a connection, whether it is new; the others had been stored before.
    pub(crate) new: Vec<bool>,
    /// How many lines this commit added.
    pub(crate) stored: u64,
    /// Where the file stands now. A batch from another position than it stood at stores nothing.
    pub(crate) position: Position,
}
