//! One run of a periodic child: its context, and how it has ended.
//!
//! # Invariants
//!
//! 1. A run that has failed is reported by one line: by `a run has failed`, or by the line about the failure of its
//!    child. A panic that is its failure has no other line, unless it fails the child.
//! 2. A panic that isn't the failure of its run, for example because the run has caught it, has a line.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime};

use tracing::field;

use super::options::RunOptions;
use super::record::{BegunRun, HealthChange};
use crate::child::{Context, catch, drop_after, log_recorded, panicked};
use crate::exit::{Exit, ExitError, ExitReason, Outcome};
use crate::panic::{RecordedPanic, catch_panic_message, collect};
use crate::status::RunOutcome;
use crate::subscriber::warn;

/// What a run is given: the [`Context`] of its child, and the time for which it was planned.
///
/// It dereferences to the context, so that all methods of that can be called on it.
///
/// ```
/// use std::time::Duration;
///
/// use verger::every;
/// use verger::periodic::RunContext;
///
/// async fn report(run: RunContext) {
///     run.set_status(format!("report {} of {:?}", run.number(), run.planned()));
/// }
///
/// let spec = every("report", Duration::from_secs(60), report);
/// # drop(spec);
/// ```
#[derive(Clone)]
pub struct RunContext {
    ctx: Context,
    planned: SystemTime,
    late: Duration,
    number: u64,
}

impl RunContext {
    pub(super) fn new(ctx: Context, planned: SystemTime, number: u64, now: SystemTime) -> Self {
        let late = now.duration_since(planned).unwrap_or_default();
        Self { ctx, planned, late, number }
    }

    /// Returns the context of the child, for code that takes one.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.ctx
    }

    /// Returns the time for which the run was planned, as the wall clock had it when the run began.
    #[must_use]
    pub fn planned(&self) -> SystemTime {
        self.planned
    }

    /// Returns how long after its planned time the run began.
    #[must_use]
    pub fn late(&self) -> Duration {
        self.late
    }

    /// Returns the number of the run, from 1. It counts on when the child is restarted.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl Deref for RunContext {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.ctx
    }
}

impl fmt::Debug for RunContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunContext")
            .field("path", &self.ctx.path())
            .field("number", &self.number)
            .field("planned", &self.planned)
            .finish_non_exhaustive()
    }
}

/// How a run has ended, and the panics in it that no line has reported yet.
pub(super) struct Ended {
    exit: Exit,
    panics: Vec<RecordedPanic>,
}

impl Ended {
    pub(super) fn new(exit: Exit) -> Self {
        Self { exit, panics: Vec::new() }
    }

    pub(super) fn is_ok(&self) -> bool {
        self.exit.is_ok()
    }

    /// Drops what is left of the run. A panic in that is its failure.
    pub(super) fn then_drop(mut self, rest: impl FnOnce()) -> Self {
        let (exit, panics) = collect(|| drop_after(self.exit, rest));
        self.panics.extend(panics);
        Self { exit, ..self }
    }
}

/// Calls the function of a run. A panic is the end of the run.
pub(super) fn call<R>(function: impl FnOnce() -> R) -> Result<R, Ended> {
    let (called, panics) = collect(|| catch_panic_message(function));
    called.map_err(|panic| Ended { exit: Err(panicked(panic)), panics })
}

/// Polls a run.
pub(super) fn poll_run<O: Outcome>(ctx: &Context, poll: impl FnOnce() -> Poll<O>) -> Poll<Ended> {
    let (polled, panics) = collect(|| catch(|| poll().map(Outcome::into_exit)));
    match polled {
        Poll::Ready(exit) => Poll::Ready(Ended { exit, panics }),
        Poll::Pending => {
            log_recorded(&ctx.incarnation, panics);
            Poll::Pending
        }
    }
}

impl RunOptions {
    /// Ends a run. Returns the failure that the child fails with, if it does.
    pub(super) fn end(&self, ctx: &Context, run: BegunRun, ended: Ended, now: Instant) -> Exit {
        let Ended { exit, panics } = ended;
        let Err(error) = exit.as_ref().map_err(Clone::clone) else {
            log_recorded(&ctx.incarnation, panics);
            report_health(ctx, run.end(RunOutcome::Done, None, now).health);
            return exit;
        };
        if error.is_ignore() {
            log_recorded(&ctx.incarnation, panics);
            report_health(ctx, run.end(RunOutcome::Done, None, now).health);
            return exit;
        }
        let cause: Arc<str> = error.clone().into_reason().to_string().into();
        let end = run.end(RunOutcome::Failed, Some(Arc::clone(&cause)), now);
        ctx.incarnation.parent.count_failed_runs(&ctx.path(), 1);
        let is_last = self.fail_after.is_some_and(|runs| end.streak >= runs.into());
        if is_last || error.is_fatal() {
            // The line about the failure of the child has the cause, as that of any other child.
            log_recorded(&ctx.incarnation, panics);
            return exit;
        }
        log_failure(ctx, &cause, end.streak, panics);
        report_health(ctx, end.health);
        Ok(())
    }

    /// Returns when a run that began then is over its limit.
    pub(super) fn deadline(&self, began: Instant) -> Option<Instant> {
        self.limit.map(|limit| crate::policy::later(began, limit))
    }

    /// The exit of a run that is over its limit.
    pub(super) fn timed_out(&self) -> Exit {
        Err(ExitError::from_reason(ExitReason::TimedOut(self.limit.unwrap_or_default())))
    }
}

fn report_health(ctx: &Context, change: HealthChange) {
    match change {
        HealthChange::None => {}
        HealthChange::Healthy => ctx.incarnation.parent.job_health(&ctx.incarnation, None),
        HealthChange::Unhealthy(problem) => {
            ctx.incarnation.parent.job_health(&ctx.incarnation, Some(problem));
        }
    }
}

/// Logs a failed run, with the panics that it has failed with.
fn log_failure(ctx: &Context, cause: &str, failed_in_a_row: u64, panics: Vec<RecordedPanic>) {
    // The cause of a panic contains its message.
    let (mut own, others): (Vec<_>, Vec<_>) =
        panics.into_iter().partition(|recorded| cause.contains(recorded.panic.message()));
    log_recorded(&ctx.incarnation, others);
    let (child, incarnation) = (ctx.path(), ctx.incarnation());
    let Some(line) = ctx.incarnation.parent.job_line(&child, true) else { return };
    let note = line.note();
    let backtrace = own.pop().and_then(|recorded| recorded.backtrace).map(field::display);
    warn!(
        target: "verger::periodic",
        %child, incarnation, cause, failed_in_a_row, backtrace, "a run has failed{note}"
    );
}

/// Logs that runs were skipped.
pub(super) fn log_skipped(ctx: &Context, count: u64, total: u64, cause: &str) {
    let (child, incarnation) = (ctx.path(), ctx.incarnation());
    let Some(line) = ctx.incarnation.parent.job_line(&child, false) else { return };
    let note = line.note();
    warn!(
        target: "verger::periodic",
        %child, incarnation, count, total, cause, "skipped planned runs{note}"
    );
}
