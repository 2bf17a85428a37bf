//! Running counters for `/stats` and for status texts. They are informational only.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use serde::Serialize;

#[derive(Debug)]
pub(crate) struct Stats {
    started: Instant,
    stored: AtomicU64,
    repeated: AtomicU64,
    commits: AtomicU64,
    transactions: AtomicU64,
    connections: AtomicU64,
}

/// A snapshot of the counters.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Snapshot {
    pub(crate) uptime_ms: u128,
    /// Lines stored since the start.
    pub(crate) stored: u64,
    /// Lines that were sent again and were already stored.
    pub(crate) repeated: u64,
    /// Batches answered.
    pub(crate) batches: u64,
    /// Transactions that stored them.
    pub(crate) transactions: u64,
    /// Connections accepted.
    pub(crate) connections: u64,
    pub(crate) lines_per_second: u64,
}

impl Stats {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            stored: AtomicU64::new(0),
            repeated: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            transactions: AtomicU64::new(0),
            connections: AtomicU64::new(0),
        }
    }

    pub(crate) fn committed(&self, stored: u64, repeated: u64) {
        self.stored.fetch_add(stored, Relaxed);
        self.repeated.fetch_add(repeated, Relaxed);
        self.commits.fetch_add(1, Relaxed);
    }

    pub(crate) fn transaction(&self) {
        self.transactions.fetch_add(1, Relaxed);
    }

    pub(crate) fn accepted(&self) {
        self.connections.fetch_add(1, Relaxed);
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let uptime_ms = self.started.elapsed().as_millis();
        let stored = self.stored.load(Relaxed);
        Snapshot {
            uptime_ms,
            stored,
            repeated: self.repeated.load(Relaxed),
            batches: self.commits.load(Relaxed),
            transactions: self.transactions.load(Relaxed),
            connections: self.connections.load(Relaxed),
            lines_per_second: (u128::from(stored) * 1_000 / uptime_ms.max(1)) as u64,
        }
    }

    /// A short text for the status of the tree.
    pub(crate) fn line(&self) -> String {
        let Snapshot { stored, repeated, .. } = self.snapshot();
        format!("{stored} stored, {repeated} repeated")
    }
}
