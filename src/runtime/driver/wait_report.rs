//! When the next lines about what an operation waits for are due.
//!
//! # Invariants
//!
//! 1. A line is due 10 s after the operation began, and then every 30 s.

use std::time::{Duration, Instant};

use crate::core::Operation;
use crate::policy::later;

const FIRST: Duration = Duration::from_secs(10);
const FURTHER: Duration = Duration::from_secs(30);

/// The operation under way, if any, when it began, and when the next lines are due.
#[derive(Debug, Default)]
pub(super) struct WaitReport(Option<(Operation, Instant, Instant)>);

impl WaitReport {
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.map(|(_, _, next)| next)
    }

    /// Notes which operation is under way. Returns how long it has been, if that is to be reported.
    pub(super) fn note(&mut self, operation: Option<Operation>, now: Instant) -> Option<Duration> {
        match (operation, self.0) {
            (None, None) => None,
            (Some(operation), Some((of, began, next))) if of == operation => {
                let due = next <= now;
                if due {
                    self.0 = Some((of, began, later(now, FURTHER)));
                }
                due.then(|| now.saturating_duration_since(began))
            }
            (operation, _) => {
                self.0 = operation.map(|operation| (operation, now, later(now, FIRST)));
                None
            }
        }
    }
}
