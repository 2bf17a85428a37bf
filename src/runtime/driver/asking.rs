//! Asking the callback that decides on a child's failure.
//!
//! Each question is a task of its own, so that neither the supervisor nor its other children wait for
//! it. The answer comes back through the inbox like anything else. Which callback it is was settled
//! when the supervisor started; what an answer leads to is the machine's business.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::{Driver, Step};
use crate::child::{Caught, Parent as _, TaskFuture};
use crate::core::{ANSWER_WITHIN, IncarnationNumber, Key, MachineEvent};
use crate::exit::ExitReason;
use crate::failure::{ChildFailure, FailureCallback, FailureDecision};
use crate::runtime::hub::Hub;
use crate::runtime::trace;

/// What has been asked.
#[derive(Debug, Default)]
pub(super) struct Questions {
    /// Those that are open, and some that are answered. Aborted when dropped.
    tasks: Option<Box<JoinSet<()>>>,
}

impl Questions {
    fn ask(&mut self, question: TaskFuture) {
        let tasks = self.tasks.get_or_insert_default();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(question);
    }
}

impl Driver {
    pub(super) fn ask_about(
        &mut self,
        (key, incarnation): (Key, IncarnationNumber),
        attempt: u32,
        error: ExitReason,
        step: &Step<'_>,
    ) {
        let (restarts_in_period, max_restarts, period) = self.machine.intensity(step.now);
        let Some(callback) = self.hub.callback.clone() else { return };
        let failure = ChildFailure {
            child: self.tasks.path(&self.hub, key),
            supervisor: self.hub.path().clone(),
            type_name: self.type_name(key),
            error,
            attempt,
            incarnation,
            restarts_in_period,
            max_restarts,
            period,
            strategy: self.hub.blueprint.rules.strategy,
            properties: self.tasks.properties(key).cloned().unwrap_or_default(),
        };
        if let Some(ending) = step.ending(key, incarnation) {
            self.remember_life(ending);
        }
        let hub = Arc::clone(&self.hub);
        self.questions.ask(Box::pin(async move {
            if let Some(decision) = decide(&hub, callback, failure).await {
                hub.tell(MachineEvent::Answered { key, incarnation, decision });
            }
        }));
    }

    /// Ours says nothing about a supervisor.
    fn type_name(&self, key: Key) -> Option<&'static str> {
        let worker = self.machine.options(key)?.supervisor.is_none();
        self.tasks.entry(key).filter(|_| worker)?.seed.type_name()
    }
}

/// What the callback decides. Whatever keeps it from deciding escalates; `None` if time is over,
/// which the machine has seen for itself.
async fn decide(
    hub: &Hub,
    callback: FailureCallback,
    failure: ChildFailure,
) -> Option<FailureDecision> {
    let (child, incarnation) = (failure.child.clone(), failure.incarnation);
    let decided = pin!(tokio::time::timeout(ANSWER_WITHIN, async { callback.ask(failure).await }));
    let problem = match Caught(AssertUnwindSafe(decided)).await {
        Ok(Ok(Ok(decision))) => return Some(decision),
        Ok(Ok(Err(error))) => format!("failed: {error}"),
        Ok(Err(_elapsed)) => return None,
        Err(panic) => format!("panicked: {panic}"),
    };
    trace::undecided(hub, &child, incarnation, &problem);
    Some(FailureDecision::escalate())
}
