//! Notes that children make about their own lives, in order.
//!
//! The child's own code makes a note before the library can observe the same fact. An observer that
//! reads the notes after it received an event therefore has all notes that precede the event. Notes
//! are never missed; events may be.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use verger::Path;
use verger::policy::StartCause;

/// The number of the last note.
static SEQ: AtomicU64 = AtomicU64::new(0);

/// A note of a child.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    /// The number of the note in the process.
    pub(crate) seq: u64,
    pub(crate) at: Instant,
    pub(crate) path: Path,
    pub(crate) incarnation: u32,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The child's code runs. With `signals`, it will signal when it is ready.
    Begun { cause: StartCause, signals: bool },
    /// The child is about to signal that it is ready.
    Ready,
    /// The child has noticed its cancellation. `alone`: not as part of a group.
    Cancelled { alone: bool },
    /// The child is about to end like this.
    Ends(Fate),
    /// Its `run` has returned.
    Returned,
    /// Its `deactivate` was called.
    Deactivated,
    /// The state of the incarnation was dropped.
    Ended,
}

/// How a child ends of its own accord.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Error,
    Panic,
    Normal,
    /// The child calls `stop_self`.
    StopSelf,
    /// The child declines to start.
    Decline,
    /// The child hangs, and ignores its cancellation.
    Hang,
}

/// The notes of one zone that its observer has not read yet.
#[derive(Debug, Default)]
pub(crate) struct Notebook {
    notes: Mutex<Vec<Note>>,
}

impl Notebook {
    pub(crate) fn write(&self, path: &Path, incarnation: u32, what: What) {
        let path = path.clone();
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        // Numbered under the lock, so that the notes of a zone are in order.
        let seq = SEQ.fetch_add(1, Relaxed) + 1;
        notes.push(Note { seq, at: Instant::now(), path, incarnation, what });
    }

    /// Takes all notes so far.
    pub(crate) fn take(&self) -> Vec<Note> {
        std::mem::take(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
