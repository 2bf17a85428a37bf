//! The health checks of one supervisor's children.
//!
//! Each active child with a check has a second task, which runs the check periodically and reports
//! changed results to the machine. The task ends when the child is no longer active. The machine
//! decides what follows from a result. The last result is kept here for the status.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Instant;

use tokio::task::{AbortHandle, JoinSet};
use tokio::time::MissedTickBehavior;

use super::Driver;
use crate::child::{Context, HealthCheck};
use crate::core::{IncarnationNumber, Key, Report};
use crate::lifecycle::Lifecycle;
use crate::policy::Pulse;
use crate::runtime::log;
use crate::status::EventKind;

/// The children with a health check.
#[derive(Debug, Default)]
pub(super) struct HealthTasks {
    checked: HashMap<Key, Checked>,
    /// Aborted when dropped.
    tasks: Option<JoinSet<()>>,
}

#[derive(Debug)]
struct Checked {
    check: Arc<HealthCheck>,
    task: Option<AbortHandle>,
    /// The last result for the active incarnation.
    healthy: Option<bool>,
}

impl Checked {
    fn end(&mut self) {
        self.healthy = None;
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

impl HealthTasks {
    pub(super) fn add(&mut self, key: Key, check: Option<&Arc<HealthCheck>>) {
        if let Some(check) = check.map(Arc::clone) {
            self.checked.insert(key, Checked { check, task: None, healthy: None });
        }
    }

    pub(super) fn remove(&mut self, key: Key) {
        if let Some(mut checked) = self.checked.remove(&key) {
            checked.end();
        }
    }

    /// Returns whether the child is healthy, if that is known.
    pub(super) fn is_healthy(&self, key: Key) -> Option<bool> {
        self.checked.get(&key)?.healthy
    }

    fn start(&mut self, key: Key, ctx: Context) {
        let Some(checked) = self.checked.get_mut(&key) else { return };
        checked.end();
        let tasks = self.tasks.get_or_insert_default();
        while tasks.try_join_next().is_some() {}
        checked.task = Some(tasks.spawn(run_checks(Arc::clone(&checked.check), ctx)));
    }
}

impl Driver {
    /// Starts the checks of a child that has become active, and ends those of one that no longer is.
    pub(super) fn update_health_task(&mut self, report: &Report) {
        let Some(checked) = self.health.checked.get_mut(&report.key) else { return };
        if report.to == Lifecycle::Active {
            if let Some(incarnation) = self.children.incarnation(report.key) {
                self.health.start(report.key, Context::new(Arc::clone(incarnation)));
            }
        } else if report.from == Lifecycle::Active {
            checked.end();
        }
    }

    /// Publishes that the child has become healthy or unhealthy.
    pub(super) fn publish_health(
        &mut self,
        (key, incarnation): (Key, IncarnationNumber),
        problem: Option<Arc<str>>,
        now: Instant,
    ) {
        let Some(checked) = self.health.checked.get_mut(&key) else { return };
        let before = checked.healthy.replace(problem.is_none());
        let path = self.children.path(key);
        match problem {
            Some(problem) => {
                log::unhealthy(&path, incarnation, &problem);
                self.shared.publish(now, path, incarnation, || EventKind::Unhealthy { problem });
            }
            None if before == Some(false) => {
                log::healthy(&path, incarnation);
                self.shared.publish(now, path, incarnation, || EventKind::Healthy);
            }
            // A child counts as healthy before its first check.
            None => {}
        }
    }
}

/// Runs the check periodically until aborted, and reports each changed result.
async fn run_checks(check: Arc<HealthCheck>, ctx: Context) {
    let rhythm = check.rhythm;
    // A spec with zero failures is refused.
    let failures = NonZeroU32::new(rhythm.failures).unwrap_or(NonZeroU32::MIN);
    let mut pulse = Pulse::default();
    let mut ticks = tokio::time::interval(rhythm.every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick resolves at once, but the first check runs one period later.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let Some(result) = check.run(&ctx).await else { continue };
        if pulse.take(result.is_ok(), failures).is_some() {
            ctx.incarnation.report_health(result.err().map(Arc::from));
        }
    }
}
