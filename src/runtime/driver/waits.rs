//! Log lines that name what a start or a stop waits for, once it takes long.

use std::time::{Duration, Instant};

use super::state::Driver;
use crate::core::WaitReason;
use crate::runtime::log;

/// How many children are named at once.
const NAMED: usize = 10;

impl Driver {
    /// Reports what the operation under way waits for, if that is due.
    pub(super) fn report_waits(&mut self, now: Instant) {
        if let Some(waited) = self.waits.note(self.machine.operation(), now) {
            self.log_waits(waited, now);
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
            if reports && self.machine.is_supervisor(key) {
                continue;
            }
            let requires = match reason {
                WaitReason::Requirement(Some(provider)) => Some(self.children.path(provider)),
                _ => None,
            };
            log::waiting(&self.children.path(key), reason, requires.as_ref(), waited);
        }
        if more {
            log::waiting_for_more(self.shared.path(), waited);
        }
    }
}
