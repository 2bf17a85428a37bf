//! The health checks of one supervisor's children.
//!
//! Each active child with a check has a second task, which runs the check periodically and reports
//! changed results to the machine. The task ends when the child is no longer active. The machine
//! decides what follows from a result. The last result is kept here for the status.
//!
//! A heartbeat is no event: the child notes when it sent the last one, and the machine asks for it when a watchdog's deadline is due.

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::task::AbortHandle;
use tokio::time::MissedTickBehavior;

use super::task_set::TaskSet;
use super::{Attachment, StepView};
use crate::child::{ChildSpec, Context, HealthCheck};
use crate::clock::{later, now};
use crate::core::{
    ConditionEffect, ConditionEvent, Decision, Effect, IncarnationNumber, Key, MachineEvent, Report,
};
use crate::lifecycle::Lifecycle;
use crate::policy::HealthCounter;
use crate::runtime::log;
use crate::status::ChildInfo;

/// The resolution of tokio's timers. After a tick that is this late, a shorter period would be followed by a
/// burst of ticks.
const RESOLUTION: Duration = Duration::from_millis(1);

/// The children with a health check.
#[derive(Debug, Default)]
pub(super) struct HealthChecks {
    checked: FxHashMap<Key, Checked>,
    tasks: TaskSet,
}

#[derive(Debug)]
struct Checked {
    check: Arc<HealthCheck>,
    task: Option<AbortHandle>,
    /// The last result for the active incarnation: what the check has reported, if that isn't healthy.
    result: Option<Result<(), Arc<str>>>,
}

impl Checked {
    fn end(&mut self) {
        self.result = None;
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

impl Attachment for HealthChecks {
    fn declared(&mut self, key: Key, spec: &ChildSpec, _view: &StepView<'_>) {
        self.add(key, spec.health.as_ref());
    }

    fn recoded(&mut self, key: Key, spec: &ChildSpec) {
        match (self.checked.get_mut(&key), &spec.health) {
            (Some(checked), Some(check)) => checked.check = Arc::clone(check),
            (Some(_), None) => self.remove(key),
            (None, check) => self.add(key, check.as_ref()),
        }
    }

    fn before(&mut self, effect: &Effect, view: &StepView<'_>) {
        match effect {
            Effect::Report(report) => self.on_edge(report, view),
            Effect::Condition(ConditionEffect::Health { key, incarnation, problem }) => {
                self.publish(*key, *incarnation, problem.clone(), view);
            }
            Effect::Decided { key, decision: Decision::FallBack, .. } => {
                self.remove(*key);
                let fallback = view.children.entry(*key).and_then(|entry| entry.fallback.as_ref());
                self.add(*key, fallback.and_then(|spec| spec.health.as_ref()));
            }
            Effect::Removed { key, .. } => self.remove(*key),
            _ => {}
        }
    }

    fn show(&self, key: Key, _view: &StepView<'_>, info: &mut ChildInfo) {
        if let Some(result) = self.checked.get(&key).and_then(|checked| checked.result.as_ref()) {
            info.healthy = Some(result.is_ok());
            info.problem = result.as_ref().err().cloned();
        }
    }
}

impl HealthChecks {
    fn add(&mut self, key: Key, check: Option<&Arc<HealthCheck>>) {
        if let Some(check) = check.map(Arc::clone) {
            self.checked.insert(key, Checked { check, task: None, result: None });
        }
    }

    fn remove(&mut self, key: Key) {
        if let Some(mut checked) = self.checked.remove(&key) {
            checked.end();
        }
    }

    /// Starts the checks of a child that has become active, and ends those of one that no longer is.
    fn on_edge(&mut self, report: &Report, view: &StepView<'_>) {
        let Some(checked) = self.checked.get_mut(&report.key) else { return };
        if report.to == Lifecycle::Active {
            checked.end();
            let Some(incarnation) = view.children.incarnation(report.key) else { return };
            let ctx = Context::new(Arc::clone(incarnation));
            let (path, checks) = (ctx.path(), run_checks(Arc::clone(&checked.check), ctx));
            let name = || format!("{path} (health check)");
            checked.task = Some(self.tasks.spawn(name, checks));
        } else if report.from == Lifecycle::Active {
            checked.end();
        }
    }

    /// Publishes that the child has become healthy or unhealthy.
    fn publish(
        &mut self,
        key: Key,
        incarnation: IncarnationNumber,
        problem: Option<Arc<str>>,
        view: &StepView<'_>,
    ) {
        let Some(checked) = self.checked.get_mut(&key) else { return };
        let before = checked.result.replace(problem.clone().map_or(Ok(()), Err));
        // A child is healthy before its first check.
        if problem.is_some() || before.is_some_and(|before| before.is_err()) {
            view.shared.publish_health(view.now, view.path(key), incarnation, problem);
        }
    }
}

/// Runs the check periodically until aborted, and reports each changed result.
async fn run_checks(check: Arc<HealthCheck>, ctx: Context) {
    let settings = check.settings;
    let mut counter = HealthCounter::default();
    let mut passed = None;
    let every = settings.every.max(RESOLUTION);
    let first = later(now(), settings.initial_delay.unwrap_or(every));
    let mut ticks = tokio::time::interval_at(first.into(), every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(result) = check.run(&ctx).await else { continue };
        // What counts as healthy matters only where a failed check is a failure of the child.
        if check.restarts && passed.replace(result.is_ok()) != Some(result.is_ok()) {
            ctx.incarnation.report_checked(result.is_ok());
        }
        if counter.record(result.is_ok(), settings).is_some() {
            ctx.incarnation.report_health(result.err().map(Arc::from));
        }
    }
}

/// Answers the question for a heartbeat, or reports that the runtime was late.
pub(super) fn answer_heartbeat(
    effect: &ConditionEffect,
    view: &StepView<'_>,
) -> Option<MachineEvent> {
    match *effect {
        ConditionEffect::CheckHeartbeat { key, incarnation } => {
            let running = view.children.incarnation(key).filter(|it| it.number == incarnation)?;
            let last = running.cell.last_heartbeat(view.now);
            Some(MachineEvent::Condition(ConditionEvent::Heartbeat { key, incarnation, last }))
        }
        ConditionEffect::RuntimeLate { late } => {
            log::runtime_late(&view.shared.tree.log_bounds, view.shared.path(), late);
            None
        }
        _ => None,
    }
}
