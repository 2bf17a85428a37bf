//! Log lines that name what a start or a stop waits for, once it takes long.
//!
//! # Invariants
//!
//! 1. A line is due 10 s after the operation began, and then every 30 s, however often it goes on.

use std::time::{Duration, Instant};

use super::state::Driver;
use crate::core::{Operation, WaitReason};
use crate::policy::later;
use crate::runtime::log;

const FIRST: Duration = Duration::from_secs(10);
const FURTHER: Duration = Duration::from_secs(30);
/// How many children are named at once.
const NAMED: usize = 10;

/// The operation under way, if any, when it began, and when the next lines are due.
#[derive(Debug, Default)]
pub(super) struct WaitReport(Option<(Operation, Instant, Instant)>);

impl WaitReport {
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.map(|(_, _, next)| next)
    }
}

impl Driver {
    /// Reports what the operation under way waits for, if that is due.
    pub(super) fn report_waits(&mut self, now: Instant) {
        let Some(operation) = self.machine.operation() else {
            self.waits.0 = None;
            return;
        };
        match self.waits.0 {
            Some((of, began, next)) if of == operation => {
                if next <= now {
                    self.waits.0 = Some((of, began, later(now, FURTHER)));
                    self.log_waits(now.saturating_duration_since(began), now);
                }
            }
            _ => self.waits.0 = Some((operation, now, later(now, FIRST))),
        }
    }

    fn log_waits(&self, waited: Duration, now: Instant) {
        let mut waits = self.machine.waits(now, NAMED + 1);
        let more = waits.len() > NAMED;
        waits.truncate(NAMED);
        for (key, reason) in waits {
            // A supervisor that starts or stops reports what is below it.
            let reports = matches!(
                reason,
                WaitReason::Readiness | WaitReason::Stop { .. } | WaitReason::Abort
            );
            if reports && self.is_supervisor(key) {
                continue;
            }
            let requires = match reason {
                WaitReason::Requirement(Some(provider)) => Some(self.children.path(provider)),
                _ => None,
            };
            log::waiting(&self.children.path(key), reason, requires.as_ref(), waited);
        }
        if more {
            log::waiting_for_more(self.shared.lazy_path(), waited);
        }
    }
}
