//! What children say of themselves, in the order in which they say it.
//!
//! A note is made by the child's own code, so it is there before the library can know of what it
//! says: whoever takes the notes after he has heard an event has all that came before it. Notes are
//! never lost; events may be.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use verger::{Path, StartCause};

/// The number of the last note.
static SEQ: AtomicU64 = AtomicU64::new(0);

/// Something that a child says of itself.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    /// Grows with every note of the process.
    pub(crate) seq: u64,
    pub(crate) at: Instant,
    pub(crate) path: Path,
    pub(crate) incarnation: u32,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Its code runs. `signals`: it will say when it is ready.
    Begun { cause: StartCause, signals: bool },
    /// It is about to say that it is ready.
    Ready,
    /// It has noticed that it is to stop. `alone`: by itself, not as one of a range.
    Asked { alone: bool },
    /// It is about to end like that.
    Ends(Fate),
    /// Its `run` has returned.
    Returned,
    /// Its `deactivate` was called.
    Deactivated,
    /// All it had was dropped.
    Ended,
}

/// How a child ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Error,
    Panic,
    Normal,
    /// It asks its supervisor to stop it.
    StopSelf,
    /// It declines to start.
    Decline,
    /// It does nothing any more, whatever it is asked.
    Hang,
}

/// The notes of the children of one zone that nobody has read yet.
#[derive(Debug, Default)]
pub(crate) struct Notebook {
    notes: Mutex<Vec<Note>>,
}

impl Notebook {
    pub(crate) fn write(&self, path: &Path, incarnation: u32, what: What) {
        let path = path.clone();
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock, so that the notes of a zone are in order.
        let seq = SEQ.fetch_add(1, Relaxed) + 1;
        notes.push(Note { seq, at: Instant::now(), path, incarnation, what });
    }

    /// All notes so far. What is written later is not among them.
    pub(crate) fn take(&self) -> Vec<Note> {
        std::mem::take(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
