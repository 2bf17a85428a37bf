//! Health checks: calls that test a running child periodically.
//!
//! A [`HealthCheck`] knows its settings and how to run one check. The supervisor decides when to run
//! it, and what follows if the child is unhealthy.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::check::zero_duration;
use super::context::Context;
use super::task::ExitFuture;
use crate::error::BuildError;
use crate::exit::Outcome;
use crate::panic::{CatchPanic, Foreign, catch_panic};
use crate::path::Path;
use crate::policy::HealthSettings;

/// Tests periodically whether a running child is healthy.
///
/// Set by [`ChildSpec::health_check`](crate::ChildSpec::health_check). The first check runs one period
/// after the child has become [`Active`](crate::Lifecycle::Active), and the checks stop when it leaves
/// that state. Each incarnation starts afresh, and is ready before its first result.
///
/// By default a check **only reports**. After a few consecutive failures the child is *unhealthy*:
/// this is an event ([`EventKind::Unhealthy`](crate::status::EventKind::Unhealthy)), a warning in the log, and
/// shown by the status. After enough consecutive successes, the child is healthy again. With
/// [`restarts`](Self::restarts), an unhealthy child is stopped and treated as failed.
///
/// | | default |
/// | --- | --- |
/// | [`every`](Self::every) | 10 s |
/// | [`initial_delay`](Self::initial_delay) | one period |
/// | [`timeout`](Self::timeout) | 3 s |
/// | consecutive [`failures`](Self::failures) | 3 |
/// | consecutive [`successes`](Self::successes) | 1 |
/// | [`restarts`](Self::restarts) | no |
///
/// ```
/// use std::time::Duration;
///
/// use verger::{Context, Exit, HealthCheck, Supervisor, worker};
///
/// async fn db(ctx: Context) -> Exit {
///     ctx.cancelled().await;
///     Ok(())
/// }
///
/// async fn ping(_ctx: Context) -> Exit {
///     // Send a query to the database.
///     Ok(())
/// }
///
/// let check = HealthCheck::new(ping).every(Duration::from_secs(5)).failures(2).restarts();
/// let app = Supervisor::builder("app").child(worker("db", db).health_check(check)).build()?;
/// # drop(app);
/// # Ok::<_, verger::BuildError>(())
/// ```
///
/// # What counts as a failure
///
/// An error that the check returns, a panic in it, or a check that exceeds its timeout, after which
/// its future is dropped. A check that returns [`ExitError::ignore`](crate::ExitError::ignore) is
/// inconclusive and doesn't count.
///
/// The checks of one child never overlap. They run in a task of their own, which exists only for
/// children with a check, so a busy child is still checked. A check that blocks its thread
/// can be neither dropped nor aborted.
#[derive(Clone)]
#[must_use = "a check does nothing until it is given to a child"]
pub struct HealthCheck {
    check: Foreign<dyn Fn(Context) -> ExitFuture + Send + Sync>,
    pub(crate) settings: HealthSettings,
    pub(crate) restarts: bool,
}

impl HealthCheck {
    /// Creates a check from an async function or closure that takes the child's context.
    ///
    /// The context is that of the incarnation being checked.
    pub fn new<F, Fut, O>(check: F) -> Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = O> + Send + 'static,
        O: Outcome + 'static,
    {
        let check = Arc::new(check);
        let check = move |ctx| {
            let check = Arc::clone(&check);
            // The call is inside of the future, where a panic is caught.
            Box::pin(async move { check(ctx).await.into_exit() }) as ExitFuture
        };
        Self {
            check: Foreign::new(Arc::new(check)),
            settings: HealthSettings::default(),
            restarts: false,
        }
    }

    /// Sets the period: the time from the start of one check to the start of the next. Default: 10 s.
    ///
    /// A period below a millisecond counts as a millisecond.
    /// A check that takes longer than the period is followed by the next one at once.
    pub fn every(mut self, every: Duration) -> Self {
        self.settings.every = every;
        self
    }

    /// Sets the time from the child's becoming active to its first check. Default: one period.
    ///
    /// It applies to each incarnation. With zero, the first check starts at once.
    pub fn initial_delay(mut self, delay: Duration) -> Self {
        self.settings.initial_delay = Some(delay);
        self
    }

    /// Sets how long one check may take. Default: 3 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// Sets how many consecutive checks must fail for the child to be unhealthy. Default: 3.
    pub fn failures(mut self, failures: u32) -> Self {
        self.settings.failures = failures;
        self
    }

    /// Sets how many consecutive checks must pass for an unhealthy child to be healthy again. Default: 1.
    ///
    /// The first check of an incarnation makes it healthy if it passes, whatever this number.
    pub fn successes(mut self, successes: u32) -> Self {
        self.settings.successes = successes;
        self
    }

    /// Treats an unhealthy child as failed.
    ///
    /// The child is stopped, grace included. It has then ended as
    /// [`ExitReason::Unhealthy`](crate::ExitReason::Unhealthy), whatever it returns. Its restart type,
    /// backoff and limits apply as after any failure.
    ///
    /// The time in which the child was unhealthy or not yet checked doesn't count as being healthy: its
    /// [backoff](crate::ChildSpec::backoff) resets only after its latest checks have all passed for long enough.
    ///
    /// An unhealthy child fails once, however often it is checked until it has stopped. A child that
    /// is stopping already, or whose supervisor is ending, doesn't fail in addition.
    pub fn restarts(mut self) -> Self {
        self.restarts = true;
        self
    }

    pub(super) fn check(&self, path: &dyn Fn() -> Path) -> Result<(), BuildError> {
        let HealthSettings { every, timeout, failures, successes, .. } = self.settings;
        let threshold = |option| BuildError::ZeroThreshold { path: path(), option };
        Err(match (every, timeout, failures, successes) {
            (Duration::ZERO, ..) => zero_duration(path, "period of the health check", 10),
            (_, Duration::ZERO, ..) => zero_duration(path, "timeout of the health check", 3),
            (_, _, 0, _) => threshold("failures"),
            (_, _, _, 0) => threshold("successes"),
            _ => return Ok(()),
        })
    }

    /// Runs the check once. Returns `None` if it was inconclusive.
    pub(crate) async fn run(&self, ctx: &Context) -> Option<Result<(), String>> {
        let timeout = self.settings.timeout;
        let mut check = CatchPanic((self.check)(ctx.clone()));
        let result = tokio::time::timeout(timeout, &mut check).await;
        let dropped = catch_panic(|| drop(check));
        Some(match result {
            Ok(Ok(Err(error))) if error.is_ignore() => return None,
            Ok(Ok(Err(error))) => Err(error.to_string()),
            Ok(Err(message)) => Err(format!("the check panicked: {message}")),
            Err(_elapsed) => Err(format!("no answer within {timeout:?}")),
            Ok(Ok(Ok(()))) if dropped.is_none() => Err("the check panicked".to_owned()),
            Ok(Ok(Ok(()))) => Ok(()),
        })
    }
}

impl fmt::Debug for HealthCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HealthCheck")
            .field("settings", &self.settings)
            .field("restarts", &self.restarts)
            .finish_non_exhaustive()
    }
}
