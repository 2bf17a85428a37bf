//! Log lines that name what a start or a stop waits for, once it takes long.
//!
//! # Invariants
//!
//! 1. Lines are due 10 s after the operation began, and then every 30 s.
//! 2. An aborted child is named once it has been waited for that long since its abort, and with that time.

use std::time::{Duration, Instant};

use super::state::Driver;
use crate::clock::later;
use crate::core::{Operation, WaitReason};
use crate::runtime::log;

/// How many children are named at once.
const NAMED: usize = 10;

impl Driver {
    /// Reports what the operation under way waits for, if that is due.
    pub(super) fn report_waits(&mut self, now: Instant) {
        if let Some(waited) = self.waits.note(self.machine.operation(), now)
            && let Some(later) = self.log_waits(waited, now)
        {
            self.waits.again_within(later, now);
        }
    }

    /// Returns when the next child is to be named, if that is before the next lines are due.
    fn log_waits(&self, waited: Duration, now: Instant) -> Option<Duration> {
        let mut later = None;
        let mut waits = self.machine.waits(now, NAMED + 1);
        let more = waits.len() > NAMED;
        waits.truncate(NAMED);
        for (key, reason) in waits {
            // A supervisor that starts or stops reports what is below it.
            let reports = matches!(
                reason,
                WaitReason::Readiness | WaitReason::Stop { .. } | WaitReason::Abort { .. }
            );
            if reports && self.machine.is_supervisor(key) {
                continue;
            }
            let waited = match reason {
                WaitReason::Abort { since } if since < FIRST => {
                    let left = FIRST.saturating_sub(since);
                    later = Some(later.map_or(left, |later: Duration| later.min(left)));
                    continue;
                }
                WaitReason::Abort { since } => since,
                _ => waited,
            };
            let requires = match reason {
                WaitReason::Requirement(Some(provider)) => Some(self.children.path(provider)),
                _ => None,
            };
            log::waiting(&self.children.path(key), reason, requires.as_ref(), waited);
        }
        if more {
            log::waiting_for_more(self.shared.path(), waited);
        }
        later
    }
}

const FIRST: Duration = Duration::from_secs(10);
const FURTHER: Duration = Duration::from_secs(30);

/// The operation under way, if any, when it began, and when the next lines are due.
#[derive(Debug, Default)]
pub(super) struct WaitReport(Option<(Operation, Instant, Instant)>);

impl WaitReport {
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.map(|(_, _, next)| next)
    }

    /// Makes the next lines due within this time.
    fn again_within(&mut self, within: Duration, now: Instant) {
        if let Some((_, _, next)) = &mut self.0 {
            *next = (*next).min(later(now, within));
        }
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
