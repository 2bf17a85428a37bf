//! Options and rules that change while children run.
//!
//! A changed value decides on what happens from now on. Nothing that was decided before is taken back:
//! deadlines that were drawn stay, and so do the restarts that were counted.
//!
//! A child whose configuration withholds it is gated like one that lacks a requirement: whatever starts
//! it, it is *discovered* instead, and its siblings start without it.
//!
//! # Invariants
//!
//! 1. A child that runs is stopped if its options withhold it, and is gated then.
//! 2. A gated child is started when nothing withholds it any more. A child that is down for another reason
//!    is not.

use std::sync::Arc;

use crate::core::{
    ChildAnswer, ChildState, Children, Key, Links, StepCx, StopReason, Ticket, WaitFor,
};
use crate::policy::{ChildRules, RestartWindow, Rules, StartCause, Withheld};

impl Children {
    /// Replaces the rules of a child, and stops or starts it if they withhold it or no longer do. Returns the answer for
    /// the caller, unless that comes later.
    pub(in crate::core) fn configure(
        &mut self,
        key: Key,
        rules: Arc<ChildRules>,
        ticket: Option<Ticket>,
        trial: bool,
        cx: &mut StepCx<'_>,
    ) -> Option<ChildAnswer> {
        let was_withheld = self.entry(key).rules.withheld().is_some();
        self.set_child_rules(key, rules, cx);
        self.note_down(key);
        let entry = self.entry(key);
        if let (false, true, Some(history)) =
            (was_withheld, entry.rules.withheld().is_some(), &mut entry.history)
        {
            // What failed before isn't charged to what is started with different values.
            history.recover();
        }
        let goal = match (was_withheld, entry.rules.withheld().is_some(), entry.state) {
            (false, true, ChildState::Activating | ChildState::Active) => {
                self.begin_stop(key, StopReason::Restart, cx);
                WaitFor::Down
            }
            (_, true, ChildState::Stopping { .. }) => WaitFor::Down,
            (false, true, _) => {
                self.withhold(key, cx);
                return Some(ChildAnswer::Done);
            }
            (true, false, ChildState::Gated(_)) if !entry.held => {
                // Its configuration has done its part. The requirement may need long.
                if !self.admit(key) {
                    return Some(ChildAnswer::Gated);
                }
                if trial { WaitFor::Configured } else { WaitFor::Renewed }
            }
            _ => return Some(ChildAnswer::Done),
        };
        ticket.and_then(|ticket| self.wait(key, ticket, goal))
    }

    /// Gates a child without a task that is on its way up, now that something withholds it.
    pub(super) fn withhold(&mut self, key: Key, cx: &mut StepCx<'_>) {
        match self.entry(key).state {
            // Its backoff is over, so a later start counts as one by a call, and not as the end of the backoff.
            ChildState::Backoff(_) => self.launch(key, StartCause::Manual, cx),
            ChildState::Gated(_) => {
                self.requirements.stop_waiting(key);
                self.recheck_lease(key);
                // Its requirement may be about to be met, which starts the child no more.
                self.answer_up(key, &ChildAnswer::Gated, cx);
            }
            _ => {}
        }
    }

    /// Starts a gated child, now that nothing withholds it any more. Returns `false` if it lacks a
    /// requirement.
    pub(super) fn admit(&mut self, key: Key) -> bool {
        if self.entry(key).state == ChildState::Gated(StartCause::Restart) {
            // The start follows from the call, and not from the end of a backoff.
            self.set(key, ChildState::Gated(StartCause::Manual));
        }
        // A group that is being stopped starts the child later.
        self.requirements.release(key);
        self.requirements.lacks(key).is_none()
    }

    /// Holds a child back whose start with a new configuration has failed, until it is configured again.
    pub(in crate::core) fn hold_back(&mut self, key: Key, cx: &mut StepCx<'_>) {
        let rules = self.entry(key).rules.withheld_as(Some(Withheld::Reconfigured));
        self.set_child_rules(key, Arc::new(rules), cx);
        self.gate(key, StartCause::Manual, cx);
    }

    /// Replaces the rules of a child.
    pub(super) fn set_child_rules(
        &mut self,
        key: Key,
        rules: Arc<ChildRules>,
        cx: &mut StepCx<'_>,
    ) {
        let state = self.entry(key).state;
        let limited = self.entry(key).limits();
        self.count_significant(key, state, false);
        let old = std::mem::replace(&mut self.entry(key).rules, rules);
        self.count_significant(key, state, true);
        let entry = self.entries.get_mut(key).expect("the child that is configured");
        self.counts.replaced(&old, &entry.rules);
        let limits = entry.limits().filter(|limits| limited != Some(*limits));
        if let (Some(limits), Some(history)) = (limits, &mut entry.history) {
            history.tracker.set_limits(&limits, cx.now);
        }
        self.on_rules(key, Some(&old), cx);
    }

    /// Sets what a child provides and requires, also while it runs or waits.
    pub(in crate::core) fn link(&mut self, key: Key, links: Links) {
        self.requirements.stop_waiting(key);
        let entries = &self.entries;
        let is_met = |key| entries.get(key).is_some_and(|entry| entry.state.is_met());
        self.requirements.link(key, links, is_met);
        let state = self.entry(key).state;
        self.requirements.provide(key, state.is_met());
        if let ChildState::Gated(_) = state {
            self.requirements.release(key);
        }
        self.note_down(key);
    }

    /// Replaces the rules, which keep the failure callback. The restarts so far still count.
    pub(in crate::core) fn set_rules(&mut self, rules: Arc<Rules>, cx: &mut StepCx<'_>) {
        self.window = rules.intensity.map(|intensity| match self.window.take() {
            Some(mut window) => {
                window.set_intensity(intensity, cx.now);
                window
            }
            None => RestartWindow::new(intensity),
        });
        // Or each child would need another record.
        debug_assert_eq!(self.rules.has_failure_callback, rules.has_failure_callback);
        self.rules = rules;
    }

    /// Adds a significant child to what is counted of them, or removes it.
    fn count_significant(&mut self, key: Key, state: ChildState, adds: bool) {
        if !self.entry(key).rules.spec.significant {
            return;
        }
        let (remaining, stopping) =
            (u32::from(state.is_remaining()), u32::from(state.is_stopping_manually()));
        if adds {
            self.significant_remaining += remaining;
            self.significant_stopping += stopping;
        } else {
            self.significant_remaining -= remaining;
            self.significant_stopping -= stopping;
        }
    }
}
