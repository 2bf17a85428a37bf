//! What a program does, each line with the time since its start.

use std::fmt::Display;
use std::sync::{Arc, Mutex};

use tokio::time::Instant;

/// See the [module](self). Clones write to the same lines.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    began: Instant,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Timeline {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), lines: Arc::default() }
    }

    pub(crate) fn note(&self, what: impl Display) {
        let line = format!("{:?}: {what}", self.began.elapsed());
        self.lines.lock().expect("the lock is never poisoned").push(line);
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().expect("the lock is never poisoned").clone()
    }
}
