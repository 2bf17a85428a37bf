//! Starting and ending health checks, and publishing their results.

use std::sync::Arc;
use std::time::Instant;

use super::state::Driver;
use crate::child::Context;
use crate::core::{IncarnationNumber, Key, Report};
use crate::lifecycle::Lifecycle;
use crate::runtime::log;
use crate::status::EventKind;

impl Driver {
    /// Starts the checks of a child that has become active, and ends those of one that no longer is.
    pub(super) fn update_health_task(&mut self, report: &Report) {
        if !self.health.is_checked(report.key) {
            return;
        }
        if report.to == Lifecycle::Active {
            if let Some(incarnation) = self.children.incarnation(report.key) {
                self.health.start(report.key, Context::new(Arc::clone(incarnation)));
            }
        } else if report.from == Lifecycle::Active {
            self.health.end(report.key);
        }
    }

    /// Publishes that the child has become healthy or unhealthy.
    pub(super) fn publish_health(
        &mut self,
        (key, incarnation): (Key, IncarnationNumber),
        problem: Option<Arc<str>>,
        now: Instant,
    ) {
        let Some(before) = self.health.update(key, problem.clone()) else { return };
        let path = self.children.path(key);
        match problem {
            Some(problem) => {
                log::unhealthy(&self.shared.tree.log_bounds, &path, incarnation, &problem);
                self.shared.publish(now, path, incarnation, || EventKind::Unhealthy { problem });
            }
            None if before == Some(false) => {
                log::healthy(&self.shared.tree.log_bounds, &path, incarnation);
                self.shared.publish(now, path, incarnation, || EventKind::Healthy);
            }
            // A child counts as healthy before its first check.
            None => {}
        }
    }
}
