//! What a failure costs and how long it waits, reckoned once more and simply.
//!
//! Knows ends, decisions and the rules; nothing of ranges, and not how the machine counts.
//!
//! # Invariants
//!
//! 1. An end is decided once, and by the child's trigger.
//! 2. A restart that counts is granted if fewer than the limit were granted in the period before it;
//!    the supervisor gives up only where one that counts is not.
//! 3. The wait is the one of the backoff's curve, which begins anew after the child was active for
//!    long enough or said that it is healthy.
//! 4. The machine counts as many restarts and failures as there were.

use std::sync::Arc;
use std::time::Instant;

use super::super::{Decision, Key};
use super::{Broken, Subject, Witness, ensure};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::{FirstStart, OnExhausted, OnExit};

impl Witness {
    pub(super) fn decided(
        &mut self,
        key: Key,
        reason: &ExitReason,
        decision: Decision,
        now: Instant,
    ) -> Result<(), Broken> {
        let (ordered, up) = (self.ordered, self.up);
        let rules = Arc::clone(&self.rules);
        self.left.take_if(|left| *left == key);
        let child = self.child(key);
        ensure(!std::mem::replace(&mut child.decided, true), "an end is decided once")?;
        ensure(child.condemned.is_none(), "an end in a range that is being stopped is free")?;
        let clean = reason.is_clean();
        let first = ordered && !up && rules.first_start == FirstStart::Fail;
        if first && !child.was_active && !clean {
            self.ending = true;
            return ensure(decision == Decision::GiveUp, "a first start is not tried again");
        }
        let then = rules.on_exit(&child.nature.options, reason, child.was_active);
        let right = match decision {
            Decision::Leave => then == OnExit::Leave,
            Decision::EndSupervisor => then == OnExit::EndSupervisor,
            Decision::FailSupervisor => then == OnExit::FailSupervisor,
            Decision::Restart { .. } | Decision::GiveUp => then == OnExit::Restart,
        };
        ensure(right, "what becomes of a child is what its trigger says")?;
        child.returns = then == OnExit::Restart;
        if !child.returns {
            self.ending |= then != OnExit::Leave;
            return Ok(());
        }
        let backoff = rules.backoff(&child.nature.options);
        let [least, most] = [0.0, 1.0]
            .map(|unit| backoff.delay(child.streak, &mut || unit).expect("a curve without an end"));
        child.streak += 1;
        let (streak, since) = (child.streak, child.since);
        let counts = child.was_active
            || rules.max_restarts == Some(0)
            || least.is_zero()
            || rules.charge_everything
            || matches!(reason, ExitReason::Escalated { .. });
        let room = rules.max_restarts.is_none_or(|max| self.granted(now) < max as usize);
        match decision {
            Decision::Restart { attempt, delay } => {
                ensure(room || !counts, "no more restarts than may be")?;
                ensure(attempt == streak, "an attempt says the how manieth it is")?;
                ensure((least..=most).contains(&delay), "a wait is the one of the curve")?;
                if counts && rules.max_restarts.is_some() {
                    self.granted.push(now);
                }
                self.child(key).due = Some(since + delay);
                self.condemn(key, false);
            }
            Decision::GiveUp => {
                ensure(counts && !room, "it gives up only if the limit is reached")?;
                match rules.on_exhausted {
                    OnExhausted::Park => {
                        self.condemn(key, false);
                        self.call_off(key);
                    }
                    OnExhausted::Escalate => self.ending = true,
                }
            }
            Decision::Leave | Decision::EndSupervisor | Decision::FailSupervisor => {}
        }
        Ok(())
    }

    /// How many restarts count at `now`.
    fn granted(&mut self, now: Instant) -> usize {
        let period = self.rules.period;
        self.granted.retain(|&at| now.saturating_duration_since(at) <= period);
        self.granted.len()
    }

    /// A child has left a state.
    pub(super) fn lived(&mut self, key: Key, from: Lifecycle, since: Instant, now: Instant) {
        let rules = Arc::clone(&self.rules);
        let child = self.child(key);
        let resets_after = rules.backoff(&child.nature.options).resets_after();
        if from == Lifecycle::Active && resets_after.is_some_and(|enough| now - since >= enough) {
            child.streak = 0;
        }
    }

    pub(super) fn check_costs<M: Subject>(
        &mut self,
        machine: &M,
        now: Instant,
    ) -> Result<(), Broken> {
        let granted = self.granted(now);
        ensure(machine.intensity(now).0 == granted, "restarts are counted")?;
        let kept = machine.children().window.granted(now);
        ensure(
            kept.eq(self.granted.iter().copied()),
            "restarts count from when they were granted",
        )?;
        for (key, child) in self.present() {
            let history = machine.view(key, now).and_then(|view| view.history);
            let attempt = history.map_or(0, |history| history.attempt);
            let resets_after = self.rules.backoff(&child.nature.options).resets_after();
            let well = child.lifecycle == Lifecycle::Active
                && resets_after.is_some_and(|enough| now - child.since >= enough);
            let streak = if well { 0 } else { child.streak };
            ensure(attempt == streak, "failures in a row are counted")?;
        }
        Ok(())
    }
}
