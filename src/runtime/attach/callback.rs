//! Calls of the failure callback, which decides on a child's failure.
//!
//! Each call is a task of its own, so that neither the supervisor nor its other children wait for it.
//! The decision comes back through the inbox. The machine decides what follows from it.

use std::pin::pin;
use std::sync::Arc;

use super::task_set::TaskSet;
use super::{Attachment, StepView};
use crate::core::{
    ANSWER_WITHIN, ConditionEffect, ConditionEvent, Effect, IncarnationNumber, Key, MachineEvent,
};
use crate::exit::ExitReason;
use crate::panic::CatchPanic;
use crate::policy::{ChildFailure, FailureCallback, FailureDecision};
use crate::runtime::log;
use crate::runtime::shared::SupervisorShared;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Callback {
    /// The calls under way.
    tasks: TaskSet,
}

impl Attachment for Callback {
    fn before(&mut self, effect: &Effect, view: &StepView<'_>) {
        match effect {
            Effect::Condition(ConditionEffect::Ask { key, incarnation, attempt, reason }) => {
                self.call(*key, *incarnation, *attempt, reason, view);
            }
            Effect::Condition(ConditionEffect::Unanswered { key, incarnation }) => {
                let problem = format!("didn't answer within {ANSWER_WITHIN:?}");
                let (bounds, path) = (&view.shared.tree.log_bounds, view.path(*key));
                log::undecided(bounds, &path, *incarnation, &problem);
            }
            _ => {}
        }
    }
}

impl Callback {
    /// Calls the failure callback for a failed child.
    fn call(
        &mut self,
        key: Key,
        incarnation: IncarnationNumber,
        attempt: u32,
        error: &ExitReason,
        view: &StepView<'_>,
    ) {
        let (restarts_in_period, max_restarts, period) = view.machine.intensity_of(key, view.now);
        let Some(callback) = view.shared.callback.clone() else { return };
        let failure = ChildFailure {
            child: view.path(key),
            supervisor: view.shared.path().clone(),
            type_name: type_name(key, view),
            error: error.clone(),
            attempt,
            incarnation,
            restarts_in_period,
            max_restarts,
            period,
            strategy: view.blueprint.rules.strategy,
            properties: view.children.properties(key).cloned().unwrap_or_default(),
        };
        let shared = Arc::clone(view.shared);
        let name = || format!("{} (failure callback)", view.shared.path());
        self.tasks.spawn(name, async move {
            if let Some(decision) = decide(&shared, callback, failure).await {
                let answered = ConditionEvent::Answered { key, incarnation, decision };
                shared.push_event(MachineEvent::Condition(answered));
            }
        });
    }
}

fn type_name(key: Key, view: &StepView<'_>) -> Option<&'static str> {
    let entry = view.children.entry(key).filter(|_| !view.machine.is_supervisor(key))?;
    entry.factory.type_name()
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
    log::undecided(&supervisor.tree.log_bounds, &child, incarnation, &problem);
    Some(FailureDecision::escalate())
}
