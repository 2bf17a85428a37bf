//! The failure callback: when it is called, and that its decision is applied.
//!
//! These checks use calls and decisions. Costs are checked in [`costs`](super::costs).
//!
//! # Invariants
//!
//! 1. The callback is called only if the rules have one, at most once for each incarnation, and only
//!    for a failure that a restart would follow.
//! 2. The decision about the child is that of the callback. No decision in time is an escalation.
//! 3. A decision changes nothing once the child was started, stopped or removed, or is about to be
//!    stopped with its group.
//! 4. A policy that an incarnation sets counts while it runs and at its end, and no longer.

use std::time::Instant;

use super::{Invariants, PendingDecision, Violation, ensure};
use crate::core::{ANSWER_WITHIN, ConditionEvent, Decision, IncarnationNumber, Key, MachineEvent};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::Resolution;

impl Invariants {
    /// Notes the decisions of the callback and the policies that children set.
    pub(super) fn note_callback(&mut self, event: &MachineEvent) {
        match event {
            MachineEvent::Policy { key, incarnation, policy } => {
                let child = self.child(*key);
                if child.live && child.incarnation == *incarnation {
                    child.policy = policy.as_deref().cloned();
                }
            }
            MachineEvent::Condition(ConditionEvent::Answered { key, incarnation, decision }) => {
                let child = self.child(*key);
                if child.pending_decision == PendingDecision::Open
                    && child.incarnation == *incarnation
                {
                    child.resolution = Some(decision.resolution);
                }
            }
            _ => {}
        }
    }

    /// Whether a decision about this incarnation may change something.
    pub(super) fn awaits_decision(&self, key: Key, incarnation: IncarnationNumber) -> bool {
        let child = &self.children[&key];
        child.pending_decision != PendingDecision::None && child.incarnation == incarnation
    }

    pub(super) fn check_callback(
        &mut self,
        key: Key,
        incarnation: IncarnationNumber,
        attempt: u32,
        reason: &ExitReason,
        now: Instant,
    ) -> Result<(), Violation> {
        let rules = std::sync::Arc::clone(&self.rules);
        self.undecided.take_if(|of| *of == key);
        let ending = self.ending;
        let child = self.child(key);
        let called_for = !reason.is_clean() && child.on_exit(reason).restarts();
        ensure(
            rules.has_failure_callback && called_for,
            "the callback is called only before a restart",
        )?;
        ensure(!ending, "the callback is not called once the end has begun")?;
        let free = child.group_stop_from.is_some();
        ensure(!free, "the callback is not called about a child that stops with its group")?;
        let down = !child.live && child.lifecycle == Lifecycle::Errored;
        ensure(down, "a child that the callback decides on is Errored and has no task")?;
        ensure(child.incarnation == incarnation, "the call names the incarnation")?;
        ensure(
            attempt == child.consecutive_failures + 1,
            "the call has the number of the attempt",
        )?;
        ensure(
            !std::mem::replace(&mut child.callback_called, true),
            "the callback is called once for each incarnation",
        )?;
        (child.pending_decision, child.callback_called_at) = (PendingDecision::Open, now);
        Ok(())
    }

    pub(super) fn check_no_decision(&mut self, key: Key, now: Instant) -> Result<(), Violation> {
        let child = self.child(key);
        ensure(
            child.pending_decision == PendingDecision::Open,
            "only a callback that was called can be late",
        )?;
        ensure(
            now >= child.callback_called_at + ANSWER_WITHIN,
            "the callback has its time to decide",
        )?;
        child.resolution = Some(Resolution::Escalate);
        Ok(())
    }

    pub(super) fn check_changed(&mut self, key: Key) -> Result<(), Violation> {
        let answered = self.child(key).resolution.is_some();
        ensure(answered, "a child is changed only by a decision that counts")
    }

    /// Checks the decision about an end that the callback may have decided.
    pub(super) fn check_resolution(
        &mut self,
        key: Key,
        clean: bool,
        decision: Decision,
    ) -> Result<(), Violation> {
        let asks = self.rules.has_failure_callback && !clean;
        let child = self.child(key);
        let open = std::mem::replace(&mut child.pending_decision, PendingDecision::None)
            == PendingDecision::Open;
        let answer = child.resolution.take();
        ensure(open == asks, "the callback is called before the decision if it has to be")?;
        let right = match decision {
            Decision::Decline => answer == Some(Resolution::GiveUp),
            Decision::Escalate => answer == Some(Resolution::Escalate),
            Decision::Restart { .. }
            | Decision::GiveUp { .. }
            | Decision::FallBack
            | Decision::Pause { .. }
                if asks =>
            {
                answer == Some(Resolution::Restart)
            }
            Decision::Restart { .. }
            | Decision::GiveUp { .. }
            | Decision::FallBack
            | Decision::Pause { .. }
            | Decision::Leave
            | Decision::EndSupervisor
            | Decision::FailSupervisor
            | Decision::FailStart
            | Decision::Exit => answer.is_none(),
        };
        self.ending |= decision == Decision::Escalate;
        ensure(right, "the decision is that of the callback")
    }
}
