//! The health checks of one supervisor's children.
//!
//! Each active child with a check has a second task, which runs the check periodically and reports
//! changed results to the machine. The task ends when the child is no longer active. The machine
//! decides what follows from a result. The last result is kept here for the status.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::MissedTickBehavior;

use super::task_set::TaskSet;
use crate::child::{Context, HealthCheck};
use crate::clock::now;
use crate::core::Key;
use crate::policy::{HealthCounter, later};

/// The resolution of tokio's timers. After a tick that is this late, a shorter period would be followed by a
/// burst of ticks.
const RESOLUTION: Duration = Duration::from_millis(1);

/// The children with a health check.
#[derive(Debug, Default)]
pub(super) struct HealthTasks {
    checked: BTreeMap<Key, Checked>,
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

impl HealthTasks {
    pub(super) fn add(&mut self, key: Key, check: Option<&Arc<HealthCheck>>) {
        if let Some(check) = check.map(Arc::clone) {
            self.checked.insert(key, Checked { check, task: None, result: None });
        }
    }

    /// Replaces the check from the next incarnation on.
    pub(super) fn replace(&mut self, key: Key, check: Option<&Arc<HealthCheck>>) {
        match (self.checked.get_mut(&key), check) {
            (Some(checked), Some(check)) => checked.check = Arc::clone(check),
            (Some(_), None) => self.remove(key),
            (None, _) => self.add(key, check),
        }
    }

    pub(super) fn remove(&mut self, key: Key) {
        if let Some(mut checked) = self.checked.remove(&key) {
            checked.end();
        }
    }

    pub(super) fn is_checked(&self, key: Key) -> bool {
        self.checked.contains_key(&key)
    }

    /// Returns the last result for the active incarnation, if there is one.
    pub(super) fn result(&self, key: Key) -> Option<&Result<(), Arc<str>>> {
        self.checked.get(&key)?.result.as_ref()
    }

    /// Ends the checks of a child that is no longer active.
    pub(super) fn end(&mut self, key: Key) {
        if let Some(checked) = self.checked.get_mut(&key) {
            checked.end();
        }
    }

    /// Keeps a result, and returns the one before. Returns `None` if the child isn't checked.
    pub(super) fn update(&mut self, key: Key, problem: Option<Arc<str>>) -> Option<Option<bool>> {
        let checked = self.checked.get_mut(&key)?;
        let before = checked.result.replace(problem.map_or(Ok(()), Err));
        Some(before.map(|before| before.is_ok()))
    }

    /// Starts the checks of a child that has become active, if it has any.
    pub(super) fn start(&mut self, key: Key, ctx: Context) {
        let Some(checked) = self.checked.get_mut(&key) else { return };
        checked.end();
        let (path, checks) = (ctx.path(), run_checks(Arc::clone(&checked.check), ctx));
        let name = || format!("{path} (health check)");
        checked.task = Some(self.tasks.spawn(name, checks));
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
