//! Counters that grow for as long as a tree runs. They are informational only: the status shows them.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of one tree.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) starts: Counter,
    /// The starts that were not the first of their child.
    pub(crate) restarts: Counter,
    pub(crate) failures: Counter,
}

/// A number that only grows, in steps of one.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
