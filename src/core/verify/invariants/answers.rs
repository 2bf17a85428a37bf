//! The failure callback: when it is called, and that its decision is carried out.
//!
//! Knows calls and decisions, and nothing of what a restart costs.
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

use super::{Invariants, QuestionState, Violation, ensure};
use crate::core::ANSWER_WITHIN;
use crate::core::{Decision, IncarnationNumber, Key, MachineEvent};
use crate::exit::ExitReason;
use crate::lifecycle::Lifecycle;
use crate::policy::Resolution;

impl Invariants {
    /// Notes decisions of the callback, and policies that children set.
    pub(super) fn listen(&mut self, event: &MachineEvent) {
        match event {
            MachineEvent::Policy { key, incarnation, policy } => {
                let child = self.child(*key);
                if child.live && child.incarnation == *incarnation {
                    child.policy = policy.as_deref().cloned();
                }
            }
            MachineEvent::Answered { key, incarnation, decision } => {
                let child = self.child(*key);
                if child.question == QuestionState::Open && child.incarnation == *incarnation {
                    child.answer = Some(decision.resolution);
                }
            }
            _ => {}
        }
    }

    /// Whether a decision about this incarnation may change something.
    pub(super) fn is_asked(&self, key: Key, incarnation: IncarnationNumber) -> bool {
        let child = &self.children[&key];
        child.question != QuestionState::None && child.incarnation == incarnation
    }

    pub(super) fn check_question(
        &mut self,
        key: Key,
        incarnation: IncarnationNumber,
        attempt: u32,
        reason: &ExitReason,
        now: Instant,
    ) -> Result<(), Violation> {
        let rules = std::sync::Arc::clone(&self.rules);
        self.left.take_if(|left| *left == key);
        let ending = self.ending;
        let child = self.child(key);
        let called_for = !reason.is_clean() && child.on_exit(&rules, reason).restarts();
        ensure(rules.has_failure_callback && called_for, "only about a restart is anybody asked")?;
        ensure(!ending, "the callback is not called once the end has begun")?;
        let free = child.condemned.is_some();
        ensure(!free, "the callback is not called about a child that stops with its group")?;
        let down = !child.live && child.lifecycle == Lifecycle::Errored;
        ensure(down, "a child that the callback decides on is Errored and has no task")?;
        ensure(child.incarnation == incarnation, "a question names the incarnation")?;
        ensure(
            attempt == child.consecutive_failures + 1,
            "a question says the how manieth attempt it is",
        )?;
        ensure(!std::mem::replace(&mut child.asked_once, true), "an end is asked about once")?;
        (child.question, child.asked_at) = (QuestionState::Open, now);
        Ok(())
    }

    pub(super) fn check_silence(&mut self, key: Key, now: Instant) -> Result<(), Violation> {
        let child = self.child(key);
        ensure(
            child.question == QuestionState::Open,
            "only a callback that was called can answer",
        )?;
        ensure(now >= child.asked_at + ANSWER_WITHIN, "an answer may take its time")?;
        child.answer = Some(Resolution::Escalate);
        Ok(())
    }

    pub(super) fn check_change(&mut self, key: Key) -> Result<(), Violation> {
        let answered = self.child(key).answer.is_some();
        ensure(answered, "a child is changed by an answer that counts")
    }

    /// Checks the decision about an end that the callback may have decided.
    pub(super) fn heard(
        &mut self,
        key: Key,
        clean: bool,
        decision: Decision,
    ) -> Result<(), Violation> {
        let asks = self.rules.has_failure_callback && !clean;
        let child = self.child(key);
        let open =
            std::mem::replace(&mut child.question, QuestionState::None) == QuestionState::Open;
        let answer = child.answer.take();
        ensure(open == asks, "a callback that has to be called is called before the decision")?;
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
            | Decision::Exit => answer.is_none(),
        };
        self.ending |= decision == Decision::Escalate;
        ensure(right, "what is answered is what is done")
    }
}
