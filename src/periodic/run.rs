//! One run of a periodic child: its context, its limit, how it has ended, and what is reported of that.
//!
//! The limit knows no task and no timer: the time is an argument.
//!
//! # Invariants
//!
//! 1. A run that has failed is reported by one line: by `a run has failed`, or by the line about the failure of its
//!    child. A panic that is its failure has no other line, unless it fails the child.
//! 2. A panic that isn't the failure of its run, for example because the run has caught it, has a line.
//! 3. A run is cancelled once, when its limit is reached.
//! 4. From its cancellation on, a run has the whole grace of its child, even if the limit was noticed late. Without a
//!    grace it is dropped immediately, and with an infinite one never.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime};

use tokio::task::coop::consume_budget;
use tokio_util::sync::CancellationToken;
use tracing::field;

use super::options::RunOptions;
use super::record::{BegunRun, HealthChange};
use crate::child::task::{catch, drop_after, log_recorded, panicked};
use crate::child::{Cancelled, Context};
use crate::clock::now;
use crate::exit::{Exit, ExitError, ExitReason, Outcome};
use crate::handle::supervisor_of;
use crate::panic::{RecordedPanic, catch_panic, catch_panic_message, collect};
use crate::path::Path;
use crate::policy::LetterLine;
use crate::runtime::log_bounds::LineKind;
use crate::start_of::{TEXT, start_of};
use crate::status::RunOutcome;
use crate::subscriber::warn;

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
pub(super) struct EndedRun {
    exit: Exit,
    panics: Vec<RecordedPanic>,
}

impl EndedRun {
    pub(super) fn new(exit: Exit) -> Self {
        Self { exit, panics: Vec::new() }
    }

    pub(super) fn is_ok(&self) -> bool {
        self.exit.is_ok()
    }

    /// Replaces what the run has returned.
    /// Drops what is left of the run. A panic in that is its failure.
    pub(super) fn then_drop(mut self, rest: impl FnOnce()) -> Self {
        let (exit, panics) = collect(|| drop_after(self.exit, rest));
        self.panics.extend(panics);
        Self { exit, ..self }
    }
}

/// Calls the function of a run. A panic is the end of the run.
pub(super) fn call<R>(function: impl FnOnce() -> R) -> Result<R, EndedRun> {
    let (called, panics) = collect(|| catch_panic_message(function));
    called.map_err(|panic| EndedRun { exit: Err(panicked(panic)), panics })
}

/// Polls a run.
pub(super) fn poll_run<O: Outcome>(
    ctx: &Context,
    poll: impl FnOnce() -> Poll<O>,
) -> Poll<EndedRun> {
    let (polled, panics) = collect(|| catch(|| poll().map(Outcome::into_exit)));
    match polled {
        Poll::Ready(exit) => Poll::Ready(EndedRun { exit, panics }),
        Poll::Pending => {
            log_recorded(&ctx.incarnation, panics);
            Poll::Pending
        }
    }
}

impl RunOptions {
    /// Ends a run. Returns the failure that the child fails with, if it does.
    pub(super) fn end(&self, ctx: &Context, run: BegunRun, ended: EndedRun, now: Instant) -> Exit {
        let EndedRun { exit, panics } = ended;
        let Some(error) = exit.as_ref().err().filter(|error| !error.is_ignore()).cloned() else {
            log_recorded(&ctx.incarnation, panics);
            report_health(ctx, run.end(RunOutcome::Done, None, now).health);
            return exit;
        };
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
        let at = crate::clock::later(now, self.limit?);
        let token = run.ctx.token();
        run.token = Some(token.clone());
        Some(RunLimit::new(token, at, grace))
    }

    /// Returns how a run has ended that may be over its limit. Such a run has timed out, even if it has returned since.
    pub(super) fn over_limit(&self, is_over: bool, ended: EndedRun) -> EndedRun {
        let Some(limit) = self.limit.filter(|_| is_over) else { return ended };
        EndedRun { exit: Err(ExitError::from_reason(ExitReason::TimedOut(limit))), ..ended }
    }
}

/// See the [module](self).
pub(super) struct RunLimit {
    /// Cancelled at the limit, and with the child.
    token: CancellationToken,
    /// When the run is over its limit.
    at: Instant,
    /// The grace of the child. `None` if it is infinite.
    grace: Option<Duration>,
    state: State,
}

enum State {
    Within,
    /// The run was cancelled. It is dropped at this instant.
    Over(Option<Instant>),
}

/// What to do with a run now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LimitStep {
    WaitUntil(Instant),
    /// Wait until the run has ended, without a bound.
    WaitForEnd,
    /// The run was just cancelled: poll it, so that it can react.
    Poll,
    Drop,
}

impl RunLimit {
    pub(super) fn new(token: CancellationToken, at: Instant, grace: Option<Duration>) -> Self {
        Self { token, at, grace, state: State::Within }
    }

    /// Whether the run is over its limit, and so has failed.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Over(_))
    }

    /// Returns what to do now. Cancels the run if its limit is reached.
    pub(super) fn step(&mut self, now: Instant) -> LimitStep {
        match self.state {
            State::Within if now < self.at => LimitStep::WaitUntil(self.at),
            State::Within => {
                let drop_at = self.grace.and_then(|grace| now.checked_add(grace));
                self.state = State::Over(drop_at);
                if drop_at == Some(now) {
                    return LimitStep::Drop;
                }
                // The wakers may be a user's.
                catch_panic(|| self.token.cancel());
                LimitStep::Poll
            }
            State::Over(Some(at)) if at <= now => LimitStep::Drop,
            State::Over(Some(at)) => LimitStep::WaitUntil(at),
            State::Over(None) => LimitStep::WaitForEnd,
        }
    }
}

/// Adds to the number of failed runs. Zero registers the metric.
pub(super) fn count_failed(_ctx: &Context, _count: u64) {
    #[cfg(feature = "metrics")]
    if crate::metrics::is_installed() {
        supervisor_of(_ctx).dead_letters.scope.failed_runs(&_ctx.path(), _count);
    }
}

fn report_health(ctx: &Context, change: HealthChange) {
    let problem = match change {
        HealthChange::None => return,
        HealthChange::Healthy => None,
        HealthChange::Unhealthy(problem) => Some(problem),
    };
    supervisor_of(ctx).publish_health(now(), ctx.path(), ctx.incarnation(), problem);
}

/// Logs a failed run, with the panics that it has failed with.
fn log_failure(ctx: &Context, cause: &str, failed_in_a_row: u64, panics: Vec<RecordedPanic>) {
    // The cause of a panic contains its message, or the start of a long one.
    let is_cause =
        |recorded: &RecordedPanic| cause.contains(start_of(recorded.panic.message(), TEXT / 2));
    let (mut own, others): (Vec<_>, Vec<_>) = panics.into_iter().partition(is_cause);
    log_recorded(&ctx.incarnation, others);
    let (child, incarnation) = (ctx.path(), ctx.incarnation());
    let Some(line) = line(ctx, &child, true) else { return };
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
    let Some(line) = line(ctx, &child, false) else { return };
    let note = line.note();
    warn!(
        target: "verger::periodic",
        %child, incarnation, count, total, cause, "skipped planned runs{note}"
    );
}

/// Counts a log line about a run that has failed or was skipped. Returns how it is logged, or `None` if it isn't.
fn line(ctx: &Context, child: &Path, has_failed: bool) -> Option<LetterLine> {
    supervisor_of(ctx).tree.log_bounds.count(child, LineKind::Run { has_failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn limited(grace: Option<Duration>) -> (RunLimit, CancellationToken, Instant) {
        let (token, now) = (CancellationToken::new(), crate::clock::now());
        (RunLimit::new(token.clone(), now + 5 * SECOND, grace), token, now)
    }

    #[test]
    fn a_run_is_cancelled_at_its_limit_and_dropped_when_the_grace_is_over() {
        let (mut limit, token, now) = limited(Some(2 * SECOND));
        assert_eq!(limit.step(now), LimitStep::WaitUntil(now + 5 * SECOND));
        assert!(!limit.is_over() && !token.is_cancelled());
        assert_eq!(limit.step(now + 5 * SECOND), LimitStep::Poll);
        assert!(limit.is_over() && token.is_cancelled());
        assert_eq!(limit.step(now + 6 * SECOND), LimitStep::WaitUntil(now + 7 * SECOND));
        assert_eq!(limit.step(now + 7 * SECOND), LimitStep::Drop);
    }

    #[test]
    fn a_run_whose_limit_is_noticed_late_has_the_whole_grace() {
        let (mut limit, _token, now) = limited(Some(2 * SECOND));
        assert_eq!(limit.step(now + 60 * SECOND), LimitStep::Poll);
        assert_eq!(limit.step(now + 60 * SECOND), LimitStep::WaitUntil(now + 62 * SECOND));
    }

    #[test]
    fn without_a_grace_a_run_is_dropped_immediately_and_with_an_infinite_one_never() {
        let (mut limit, token, now) = limited(Some(Duration::ZERO));
        assert_eq!(limit.step(now + 5 * SECOND), LimitStep::Drop);
        assert!(!token.is_cancelled());
        let (mut limit, _token, now) = limited(None);
        assert_eq!(limit.step(now + 5 * SECOND), LimitStep::Poll);
        assert_eq!(limit.step(now + 1_000_000 * SECOND), LimitStep::WaitForEnd);
    }
}
