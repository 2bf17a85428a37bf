//! One run of a periodic child: its context, and how it has ended.
//!
//! # Invariants
//!
//! 1. A run that has failed is reported by one line: by `a run has failed`, or by the line about the failure of its
//!    child. A panic that is its failure has no other line, unless it fails the child.
//! 2. A panic that isn't the failure of its run, for example because the run has caught it, has a line.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime};

use tokio::task::coop::consume_budget;
use tokio_util::sync::CancellationToken;

use super::limit::RunLimit;
use super::options::RunOptions;
use super::record::BegunRun;
use super::report::{count_failed, log_failure, report_health};
use crate::child::task::{catch, drop_after, log_recorded, panicked};
use crate::child::{Cancelled, Context};
use crate::exit::{Exit, ExitError, ExitReason, Outcome};
use crate::panic::{RecordedPanic, catch_panic_message, collect};
use crate::status::RunOutcome;

/// What a run is given: the [`Context`] of its child, the time for which it was planned, and its own cancellation.
///
/// It dereferences to the context, so that all methods of that can be called on it. The run is cancelled with its child,
/// and when it is over its [limit](crate::periodic::Every::limit_run).
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
    /// Cancelled at the limit of the run, and with the child. `None` without a limit.
    token: Option<CancellationToken>,
}

impl RunContext {
    pub(super) fn new(ctx: Context, planned: SystemTime, number: u64, now: SystemTime) -> Self {
        let late = now.duration_since(planned).unwrap_or_default();
        Self { ctx, planned, late, number, token: None }
    }

    /// Sets what cancels the run.
    pub(super) fn cancelled_by(&mut self, token: CancellationToken) {
        self.token = Some(token);
    }

    /// Returns the context of the child, for code that takes one.
    ///
    /// That context isn't cancelled at the [limit](crate::periodic::Every::limit_run) of the run.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.ctx
    }

    /// Resolves when the run is cancelled: with its child, or at its [limit](crate::periodic::Every::limit_run).
    ///
    /// From then on the run has the [`shutdown`](crate::ChildSpec::shutdown) grace of its child to return.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: if the run is cancelled after the future was dropped, a new future resolves
    /// immediately.
    pub fn cancelled(&self) -> Cancelled {
        match &self.token {
            Some(token) => Cancelled::with_token(Arc::clone(&self.ctx.incarnation), token.clone()),
            None => self.ctx.cancelled(),
        }
    }

    /// Returns whether the run is cancelled: with its child, or at its [limit](crate::periodic::Every::limit_run).
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.ctx.is_cancelled() || self.token.as_ref().is_some_and(CancellationToken::is_cancelled)
    }

    /// Runs `future` to completion. Drops it and returns `None` if the run is cancelled first.
    ///
    /// # Cancel safety
    ///
    /// As cancel safe as `future`, which is dropped at one of its await points.
    pub async fn run_until_cancelled<F: Future>(&self, future: F) -> Option<F::Output> {
        consume_budget().await;
        tokio::select! {
            biased;
            () = self.cancelled() => None,
            output = future => Some(output),
        }
    }

    /// Returns a token that is cancelled with the run.
    ///
    /// For code that takes tokio-util's own type. Cancelling the token yourself doesn't cancel the run.
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        self.token.as_ref().map_or_else(|| self.ctx.token(), CancellationToken::child_token)
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

    /// Replaces what the run has returned.
    pub(super) fn with_exit(self, exit: Exit) -> Self {
        Self { exit, ..self }
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
        count_failed(ctx, 1);
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

    /// Limits a run that begins now, if runs have a limit.
    pub(super) fn limit(
        &self,
        run: &mut RunContext,
        now: Instant,
        grace: Option<Duration>,
    ) -> Option<RunLimit> {
        let at = crate::policy::later(now, self.limit?);
        let token = run.ctx.token();
        run.cancelled_by(token.clone());
        Some(RunLimit::new(token, at, grace))
    }

    /// Returns how a run has ended that may be over its limit. Such a run has timed out, even if it has returned since.
    pub(super) fn over_limit(&self, is_over: bool, ended: Ended) -> Ended {
        let Some(limit) = self.limit.filter(|_| is_over) else { return ended };
        ended.with_exit(Err(ExitError::from_reason(ExitReason::TimedOut(limit))))
    }
}
