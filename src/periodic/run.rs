//! One run of a periodic child: its context, and how it has ended.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::options::RunOptions;
use super::record::BegunRun;
use crate::child::Context;
use crate::exit::{Exit, ExitError, ExitReason};
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

impl RunOptions {
    /// Ends a run. Returns the failure that the child fails with, if it does.
    pub(super) fn end(&self, ctx: &Context, run: BegunRun, exit: Exit, now: Instant) -> Exit {
        let Err(error) = exit else {
            run.end(RunOutcome::Done, None, now);
            return Ok(());
        };
        if error.is_ignore() {
            run.end(RunOutcome::Done, None, now);
            return Err(error);
        }
        let goes_on = self.logs_failures && !error.is_fatal();
        let reason = error.clone().into_reason();
        let text: Arc<str> = reason.to_string().into();
        run.end(RunOutcome::Failed, Some(Arc::clone(&text)), now);
        if !goes_on {
            return Err(error);
        }
        log_failure(ctx, &text);
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

fn log_failure(ctx: &Context, cause: &str) {
    let (child, incarnation) = (ctx.path(), ctx.incarnation());
    let Some(line) = ctx.incarnation.parent.job_line(&child, true) else { return };
    let note = line.note();
    warn!(
        target: "verger::periodic", %child, incarnation, cause, "a run has failed{note}"
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
