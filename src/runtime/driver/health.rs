//! Asking the children that are checked whether they are well.
//!
//! Each that is active has a task beside its own, which asks and tells the machine when the answer
//! changes. It ends when the child isn't active any more. What an answer leads to is the machine's
//! business; here is kept what status shows.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Instant;

use tokio::task::{AbortHandle, JoinSet};
use tokio::time::MissedTickBehavior;

use super::Driver;
use crate::child::{Context, HealthCheck, TaskFuture};
use crate::core::{Incarnation, Key, Machine, Report};
use crate::lifecycle::Lifecycle;
use crate::policy::HealthCounter;
use crate::runtime::few::Few;
use crate::runtime::trace;
use crate::status::EventKind;

/// The children that are checked. Few are.
#[derive(Debug, Default)]
pub(super) struct Health {
    checked: Few<Key, Checked>,
    /// Those that ask, and some that are done. Aborted when dropped.
    tasks: Option<Box<JoinSet<()>>>,
}

#[derive(Debug)]
struct Checked {
    check: Arc<HealthCheck>,
    asks: Option<AbortHandle>,
    /// As was told last of the incarnation that is active.
    healthy: Option<bool>,
}

impl Checked {
    fn end(&mut self) {
        self.healthy = None;
        if let Some(asks) = self.asks.take() {
            asks.abort();
        }
    }
}

impl Health {
    pub(super) fn add(&mut self, key: Key, check: Option<&Arc<HealthCheck>>) {
        if let Some(check) = check.map(Arc::clone) {
            self.checked.insert(key, Checked { check, asks: None, healthy: None });
        }
    }

    /// The child is another from now on, or gone.
    pub(super) fn remove(&mut self, key: Key) {
        if let Some(mut checked) = self.checked.remove(&key) {
            checked.end();
        }
    }

    /// Whether the child is well, if it is checked and that is known.
    pub(super) fn of(&self, key: Key) -> Option<bool> {
        self.checked.get(&key)?.healthy
    }

    fn begin(&mut self, key: Key, ctx: Context) {
        let Some(checked) = self.checked.get_mut(&key) else { return };
        checked.end();
        let tasks = self.tasks.get_or_insert_default();
        while tasks.try_join_next().is_some() {}
        let asks: TaskFuture = Box::pin(keep_asking(Arc::clone(&checked.check), ctx));
        checked.asks = Some(tasks.spawn(asks));
    }
}

impl<M: Machine> Driver<M> {
    /// Begins to ask a child that has become active, and ceases to when it isn't any more.
    pub(super) fn watch(&mut self, report: &Report) {
        if self.health.checked.is_empty() {
            return;
        }
        if report.to == Lifecycle::Active {
            if let Some(ctx) = self.tasks.context(report.key) {
                self.health.begin(report.key, ctx);
            }
        } else if report.from == Lifecycle::Active
            && let Some(checked) = self.health.checked.get_mut(&report.key)
        {
            checked.end();
        }
    }

    /// The child is healthy or unhealthy, and was not before.
    pub(super) fn is_well(
        &mut self,
        key: Key,
        incarnation: Incarnation,
        problem: Option<Arc<str>>,
        now: Instant,
    ) {
        let Some(checked) = self.health.checked.get_mut(&key) else { return };
        let before = checked.healthy.replace(problem.is_none());
        let path = self.tasks.path(&self.hub, key);
        match problem {
            Some(problem) => {
                trace::unhealthy(&path, incarnation, &problem);
                self.hub.publish(now, path, incarnation, || EventKind::Unhealthy { problem });
            }
            None if before == Some(false) => {
                trace::healthy(&path, incarnation);
                self.hub.publish(now, path, incarnation, || EventKind::Healthy);
            }
            // That it is well is what everybody thought.
            None => {}
        }
    }
}

/// Asks for as long as the child is active, and tells what has changed.
async fn keep_asking(check: Arc<HealthCheck>, ctx: Context) {
    let rhythm = check.rhythm;
    // A tree with none is refused.
    let failures = NonZeroU32::new(rhythm.failures).unwrap_or(NonZeroU32::MIN);
    let mut pulse = HealthCounter::default();
    let mut ticks = tokio::time::interval(rhythm.every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first one comes at once, and the child has just begun.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let Some(answer) = check.ask(&ctx).await else { continue };
        if pulse.record(answer.is_ok(), failures).is_some() {
            ctx.run.tell_health(answer.err().map(Arc::from));
        }
    }
}
