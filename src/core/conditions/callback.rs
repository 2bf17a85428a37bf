//! The failure callback, which decides what becomes of a child that has failed.
//!
//! Until it has decided, the child is down and Errored, and its siblings continue. If the child is
//! started, stopped or removed meanwhile, the decision is discarded. What a restart costs, and which
//! siblings restart too, is determined after the decision.
//!
//! # Invariants
//!
//! 1. The callback is called at most once for each incarnation, whose number identifies the call.

use std::time::Duration;

use crate::clock::later;
use crate::core::{
    ChildState, Children, ConditionEffect, Decision, DownState, Effect, Finish, IncarnationNumber,
    Key, Machine, StepCx, Timer, each,
};
use crate::exit::ExitReason;
use crate::policy::{FailureDecision, Resolution};

/// How long the failure callback may take. After that the failure is escalated.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(5);

impl Children {
    /// Calls the failure callback, unless it has decided or the child hasn't failed. The child is Errored until it has
    /// decided. Returns whether it was called.
    pub(super) fn ask_callback(
        &mut self,
        key: Key,
        active: bool,
        reason: &ExitReason,
        cx: &mut StepCx<'_>,
    ) -> bool {
        let decided = matches!(self.state(key), Some(ChildState::AwaitingDecision { .. }));
        if !self.rules.has_failure_callback || reason.is_clean() || decided {
            return false;
        }
        self.set(key, ChildState::AwaitingDecision { active });
        self.timers.arm(Timer::Child(key), later(cx.now, ANSWER_WITHIN));
        let entry = self.entry(key);
        let (incarnation, reason) = (entry.incarnation, reason.clone());
        let attempt = entry.history_mut().consecutive_failures.saturating_add(1);
        cx.push(Effect::Condition(ConditionEffect::Ask { key, incarnation, attempt, reason }));
        true
    }

    /// Whether the callback has to decide on the failure of this incarnation.
    pub(super) fn awaits_decision(&self, key: Key, incarnation: IncarnationNumber) -> bool {
        self.entries.get(key).is_some_and(|entry| {
            matches!(entry.state, ChildState::AwaitingDecision { .. })
                && entry.incarnation == incarnation
        })
    }
}

impl Machine {
    /// The failure callback has decided. `None`: it did not in time.
    pub(in crate::core) fn on_decision(
        &mut self,
        key: Key,
        decision: Option<FailureDecision>,
        cx: &mut StepCx<'_>,
    ) {
        self.children_mut().timers.disarm(Timer::Child(key));
        // The group or the supervisor that stops the child decides on it.
        if self.is_to_stop(key) {
            return match self {
                Self::Ordered(ordered) => ordered.absorb(key, cx),
                Self::Dynamic(dynamic) => dynamic.forget(key, cx),
            };
        }
        let children = self.children_mut();
        let active = children.state(key) == Some(ChildState::AwaitingDecision { active: true });
        let (incarnation, reason) = (children.entry(key).incarnation, children.failure(key));
        let resolution = match decision {
            Some(FailureDecision { resolution, changes }) => {
                if !changes.is_empty() {
                    cx.push(Effect::Condition(ConditionEffect::Changed { key, changes }));
                }
                resolution
            }
            None => {
                cx.push(Effect::Condition(ConditionEffect::Unanswered { key, incarnation }));
                Resolution::Escalate
            }
        };
        match resolution {
            Resolution::Restart => {
                let on_exit = children.on_exit(key, active, &reason, cx);
                each!(self, kind => kind.on_failed(key, active, on_exit, &reason, cx));
            }
            Resolution::GiveUp => {
                children.report_decision(key, &reason, Decision::Decline, cx);
                each!(self, kind => kind.set_down(key, DownState::GivenUp, cx));
            }
            Resolution::Escalate => {
                children.report_decision(key, &reason, Decision::Escalate, cx);
                each!(self, kind => kind.give_up(key, cx));
                let reason = ExitReason::clone(&reason);
                each!(self, kind => kind.finish(Finish::Failed { key, reason }));
            }
        }
    }
}
