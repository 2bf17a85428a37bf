//! The failure callback, which decides what becomes of a child that has failed.
//!
//! Until it has decided, the child is down and Errored, and its siblings go on. If the child is
//! started, stopped or removed meanwhile, the decision is discarded. What a restart costs, and which
//! siblings restart too, is determined after the decision.
//!
//! # Invariants
//!
//! 1. The callback is called at most once for each incarnation, whose number identifies the call.

use std::sync::Arc;
use std::time::Duration;

use super::Children;
use crate::core::arena::Key;
use crate::core::child::{ChildState, Timer};
use crate::core::effect::{ConditionEffect, Effect, StepCx};
use crate::exit::ExitReason;
use crate::policy::later;
use crate::policy::{FailureDecision, Resolution};

/// How long the failure callback may take. After that the failure is escalated.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(5);

impl Children {
    /// Whether the failure callback decides on this end, which calls for a restart.
    pub(in crate::core) fn needs_callback(&self, key: Key, reason: &ExitReason) -> bool {
        let decided = || matches!(self.state(key), Some(ChildState::AwaitingDecision { .. }));
        self.rules.has_failure_callback && !reason.is_clean() && !decided()
    }

    /// Calls the failure callback. The child is Errored until it has decided.
    pub(in crate::core) fn ask_callback(
        &mut self,
        key: Key,
        active: bool,
        reason: ExitReason,
        cx: &mut StepCx<'_>,
    ) {
        self.set(key, ChildState::AwaitingDecision { active });
        self.timers.arm(Timer::Child(key), later(cx.now, ANSWER_WITHIN));
        let entry = self.entry(key);
        let incarnation = entry.incarnation;
        let attempt = entry.history_mut().consecutive_failures.saturating_add(1);
        cx.push(Effect::Condition(ConditionEffect::Ask { key, incarnation, attempt, reason }));
    }

    /// Takes the callback's decision. `None`: it was not made in time. Returns whether the child had
    /// been Active, how it failed, and what becomes of it.
    pub(in crate::core) fn take_decision(
        &mut self,
        key: Key,
        decision: Option<FailureDecision>,
        cx: &mut StepCx<'_>,
    ) -> (bool, Arc<ExitReason>, Resolution) {
        let active = self.state(key) == Some(ChildState::AwaitingDecision { active: true });
        let incarnation = self.entry(key).incarnation;
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
        (active, self.failure(key), resolution)
    }
}
