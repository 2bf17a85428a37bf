//! Health checks: what is reported, and when a failed check is a failure.
//!
//! # Invariants
//!
//! 1. A result is reported once, and only for an Active child.
//! 2. A child fails as unhealthy if and only if its check fails, its spec says so, and neither the child
//!    nor its supervisor ends anyway.

use super::{Invariants, Violation, ensure};
use std::time::Instant;

use crate::core::{ConditionEvent, IncarnationNumber, Key, MachineEvent};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;

impl Invariants {
    /// Notes the result of a health check.
    pub(super) fn note_health(&mut self, event: &MachineEvent, now: Instant) {
        self.checked = None;
        if let MachineEvent::Condition(ConditionEvent::Checked { key, incarnation, passed }) =
            *event
        {
            let child = self.child(key);
            if child.incarnation == incarnation && child.lifecycle == Lifecycle::Active {
                child.passes_since = passed.then_some(now);
            }
        }
        let MachineEvent::Condition(ConditionEvent::Health { key, incarnation, problem }) = event
        else {
            return;
        };
        let child = &self.children[key];
        let runs = child.live && child.incarnation == *incarnation;
        if runs && child.lifecycle == Lifecycle::Active {
            let fails =
                child.declaration.options.fails_unhealthy && problem.is_some() && !self.ending;
            self.checked = Some((*key, fails));
        }
    }

    pub(super) fn check_health(
        &mut self,
        key: Key,
        incarnation: IncarnationNumber,
    ) -> Result<(), Violation> {
        let child = &self.children[&key];
        let right = child.incarnation == incarnation && child.lifecycle == Lifecycle::Active;
        let checked = self.checked.is_some_and(|(checked, _)| checked == key);
        ensure(right && checked, "health is reported for active children with a check")?;
        // The report is complete, unless the child has to fail.
        self.checked.take_if(|(_, fails)| !*fails);
        Ok(())
    }

    pub(super) fn check_unhealthy_exit(
        &mut self,
        key: Key,
        reason: &ExitReason,
    ) -> Result<(), Violation> {
        let unhealthy = matches!(reason, ExitReason::Unhealthy(_));
        let fails = self.checked.take_if(|(checked, fails)| *checked == key && *fails).is_some();
        ensure(unhealthy == fails, "a child fails as unhealthy only after a failed check")
    }

    /// Checks that the result has had its effect.
    pub(super) fn check_health_reported(&self) -> Result<(), Violation> {
        ensure(self.checked.is_none(), "each check of an active child is reported")
    }
}
