//! Calls of the failure callback, which decides on a child's failure.
//!
//! Each call is a task of its own, so that neither the supervisor nor its other children wait for it.
//! The decision comes back through the inbox. The machine decides what follows from it.

use std::pin::pin;
use std::sync::Arc;

use super::state::{Driver, Step};
use crate::core::{ANSWER_WITHIN, ConditionEvent, IncarnationNumber, Key, MachineEvent};
use crate::exit::ExitReason;
use crate::panic::CatchPanic;
use crate::policy::{ChildFailure, FailureCallback, FailureDecision};
use crate::runtime::log;
use crate::runtime::shared::SupervisorShared;

impl Driver {
    /// Calls the failure callback for a failed child.
    pub(super) fn call_failure_callback(
        &mut self,
        (key, incarnation): (Key, IncarnationNumber),
        attempt: u32,
        error: ExitReason,
        step: &Step,
    ) {
        let (restarts_in_period, max_restarts, period) = self.machine.intensity_of(key, step.now);
        let Some(callback) = self.shared.callback.clone() else { return };
        let failure = ChildFailure {
            child: self.children.path(key),
            supervisor: self.shared.path().clone(),
            type_name: self.type_name(key),
            error,
            attempt,
            incarnation,
            restarts_in_period,
            max_restarts,
            period,
            strategy: self.blueprint.rules.strategy,
            properties: self.children.properties(key).cloned().unwrap_or_default(),
        };
        if let Some(exit) = step.exit_of(key, incarnation) {
            self.remember_lifetime(exit);
        }
        let shared = Arc::clone(&self.shared);
        let name = || format!("{} (failure callback)", self.shared.path());
        self.callback_tasks.spawn(name, async move {
            if let Some(decision) = decide(&shared, callback, failure).await {
                shared.push_event(MachineEvent::Condition(ConditionEvent::Answered {
                    key,
                    incarnation,
                    decision,
                }));
            }
        });
    }

    fn type_name(&self, key: Key) -> Option<&'static str> {
        let is_worker = !self.machine.rules_of(key)?.is_supervisor();
        self.children.entry(key).filter(|_| is_worker)?.factory.type_name()
    }
}

/// Returns the callback's decision, or `None` after its timeout, which the machine observes itself.
///
/// An error or a panic of the callback escalates the failure.
async fn decide(
    supervisor: &SupervisorShared,
    callback: FailureCallback,
    failure: ChildFailure,
) -> Option<FailureDecision> {
    let (child, incarnation) = (failure.child.clone(), failure.incarnation);
    let call = pin!(tokio::time::timeout(ANSWER_WITHIN, async { callback.ask(failure).await }));
    let problem = match CatchPanic(call).await {
        Ok(Ok(Ok(decision))) => return Some(decision),
        Ok(Ok(Err(error))) => format!("failed: {error}"),
        Ok(Err(_elapsed)) => return None,
        Err(message) => format!("panicked: {message}"),
    };
    log::undecided(&supervisor.tree.log_bounds, supervisor.path(), &child, incarnation, &problem);
    Some(FailureDecision::escalate())
}
