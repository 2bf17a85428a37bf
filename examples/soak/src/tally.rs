//! Counters and violations.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// How many violations are printed.
const SHOWN: u64 = 40;

/// Counters of the whole run.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) began: Instant,
    pub(crate) starts: AtomicU64,
    pub(crate) restarts: AtomicU64,
    pub(crate) ends: AtomicU64,
    pub(crate) panics: AtomicU64,
    pub(crate) hangs: AtomicU64,
    pub(crate) aborts: AtomicU64,
    pub(crate) events: AtomicU64,
    /// Events that an observer missed because it lagged behind.
    pub(crate) missed: AtomicU64,
    /// Granted restarts.
    pub(crate) grants: AtomicU64,
    /// Refused restarts.
    pub(crate) refusals: AtomicU64,
    /// How many of both were not checked exactly, because events were missed or a hand cleared the
    /// window at that moment.
    pub(crate) doubts: AtomicU64,
    /// Children reported as leaked that did not block their thread.
    pub(crate) leaked: AtomicU64,
    /// Children reported as leaked that deliberately blocked their thread.
    pub(crate) planned_leaks: AtomicU64,
    pub(crate) calls: AtomicU64,
    pub(crate) audits: AtomicU64,
    violations: AtomicU64,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            starts: AtomicU64::new(0),
            restarts: AtomicU64::new(0),
            ends: AtomicU64::new(0),
            panics: AtomicU64::new(0),
            hangs: AtomicU64::new(0),
            aborts: AtomicU64::new(0),
            events: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            grants: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
            doubts: AtomicU64::new(0),
            leaked: AtomicU64::new(0),
            planned_leaks: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            audits: AtomicU64::new(0),
            violations: AtomicU64::new(0),
        }
    }

    /// Returns how many lives are in progress.
    pub(crate) fn live(&self) -> u64 {
        let ends = self.ends.load(Relaxed);
        self.starts.load(Relaxed).saturating_sub(ends)
    }

    /// Reports a violation.
    pub(crate) fn violation(&self, what: impl AsRef<str>) {
        let count = self.violations.fetch_add(1, Relaxed) + 1;
        let elapsed = self.began.elapsed().as_secs_f64();
        match count {
            ..=SHOWN => eprintln!("soak: {elapsed:.3} s: violation: {}", what.as_ref()),
            _ if count == SHOWN + 1 => eprintln!("soak: more violations are only counted"),
            _ => {}
        }
    }

    pub(crate) fn violations(&self) -> u64 {
        self.violations.load(Relaxed)
    }
}

/// Increments a counter.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}
