//! Health checks: a question that is put to a running child again and again.
//!
//! A [`HealthCheck`] is what is asked, and how often. It knows how to ask once, and what counts as
//! a failure. Who asks, and what becomes of a child that is unhealthy, is up to its supervisor.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::seed::ExitFuture;
use super::task::Caught;
use super::{ChildSpec, Context};
use crate::error::BuildError;
use crate::exit::Outcome;
use crate::path::Path;
use crate::policy::Rhythm;

/// Looks again and again whether a child that runs is well.
///
/// Set by [`ChildSpec::health_check`]. It begins when the child is
/// [`Active`](crate::Lifecycle::Active), with the first check one period later, and ends as soon as
/// the child isn't any more: what waits for a restart, stops or has ended isn't checked. Each
/// incarnation begins anew.
///
/// A check **reports and does nothing else**. When it has failed a few times in a row, the child is
/// *unhealthy*, which is an event ([`EventKind::Unhealthy`](crate::EventKind::Unhealthy)), a
/// warning in the log, and shown by status. When a check is passed again, it is healthy. Only with
/// [`restarts`](Self::restarts) an unhealthy child is stopped as one that has failed, and restarted
/// as its policy says.
///
/// | | default |
/// | --- | --- |
/// | [`every`](Self::every) | 10 s |
/// | [`timeout`](Self::timeout) | 3 s |
/// | [`failures`](Self::failures) in a row | 3 |
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
///     // Ask the database for something.
///     Ok(())
/// }
///
/// let check = HealthCheck::new(ping).every(Duration::from_secs(5)).failures(2).restarts();
/// let app = Supervisor::builder("app").child(worker("db", db).health_check(check)).build()?;
/// # drop(app);
/// # Ok::<_, verger::BuildError>(())
/// ```
///
/// # What is a failure
///
/// An error that the check returns, a panic in it, and that it takes longer than its time-out, after
/// which it is dropped. A check that returns [`ExitError::ignore`](crate::ExitError::ignore) has
/// found out nothing, and doesn't count.
///
/// Checks of one child never run beside each other. They run in a task of their own beside the
/// child's, which there is only for children that are checked, and which the supervisor aborts; so
/// a child that is busy is checked all the same. A check that blocks its thread can't be dropped
/// nor aborted, as anywhere.
#[derive(Clone)]
#[must_use = "a check does nothing until it is given to a child"]
pub struct HealthCheck {
    check: Arc<dyn Fn(Context) -> ExitFuture + Send + Sync>,
    pub(crate) rhythm: Rhythm,
    pub(crate) restarts: bool,
}

impl HealthCheck {
    /// A check that asks what `check` does: an async function or closure of the child's context.
    ///
    /// The context is that of the incarnation that is checked: its path says who it is, and its
    /// properties are there.
    pub fn new<F, Fut, O>(check: F) -> Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = O> + Send + 'static,
        O: Outcome + 'static,
    {
        let check = Arc::new(check);
        let check = move |ctx| {
            let check = Arc::clone(&check);
            // Called where a panic is caught.
            Box::pin(async move { check(ctx).await.into_exit() }) as ExitFuture
        };
        Self { check: Arc::new(check), rhythm: Rhythm::default(), restarts: false }
    }

    /// How long it is from the beginning of one check to that of the next, and from when the child
    /// is active to the first. A check that takes longer is followed by the next one at once.
    /// Default: 10 s.
    pub fn every(mut self, every: Duration) -> Self {
        self.rhythm.every = every;
        self
    }

    /// How long a check may take. Default: 3 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.rhythm.timeout = timeout;
        self
    }

    /// How many checks in a row have to fail for the child to be unhealthy. Default: 3.
    pub fn failures(mut self, failures: u32) -> Self {
        self.rhythm.failures = failures;
        self
    }

    /// Treats a child that is unhealthy as one that has failed: it is stopped, grace included, and
    /// has then ended as [`ExitReason::Unhealthy`](crate::ExitReason::Unhealthy), whatever it
    /// returns. What follows is up to its restart type, backoff and limits, as after any failure.
    ///
    /// An unhealthy child fails once, however often it is checked until it has stopped. One that
    /// is being stopped already, or whose supervisor ends, doesn't fail besides.
    pub fn restarts(mut self) -> Self {
        self.restarts = true;
        self
    }

    pub(crate) fn check(&self, path: &Path) -> Result<(), BuildError> {
        let Rhythm { every, timeout, failures } = self.rhythm;
        let zero = |option, secs| {
            let (path, example) = (path.clone(), Duration::from_secs(secs));
            Err(BuildError::ZeroDuration { path, option, example })
        };
        match (every, timeout, failures) {
            (Duration::ZERO, _, _) => zero("period of the health check", 10),
            (_, Duration::ZERO, _) => zero("timeout of the health check", 3),
            (_, _, 0) => Err(BuildError::NoFailures { path: path.clone() }),
            _ => Ok(()),
        }
    }

    /// Asks once. `None` if that came to nothing, otherwise what is wrong, if something is.
    pub(crate) async fn ask(&self, ctx: &Context) -> Option<Result<(), String>> {
        let mut asking = (self.check)(ctx.clone());
        let timeout = self.rhythm.timeout;
        let answer = Caught(AssertUnwindSafe(&mut asking));
        let answer = tokio::time::timeout(timeout, answer).await;
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(asking)));
        Some(match answer {
            Ok(Ok(Err(error))) if error.is_ignore() => return None,
            Ok(Ok(Err(error))) => Err(error.to_string()),
            Ok(Err(panic)) => Err(format!("the check panicked: {panic}")),
            Err(_elapsed) => Err(format!("no answer within {timeout:?}")),
            Ok(Ok(Ok(()))) if dropped.is_err() => Err("the check panicked".to_owned()),
            Ok(Ok(Ok(()))) => Ok(()),
        })
    }
}

impl fmt::Debug for HealthCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HealthCheck")
            .field("rhythm", &self.rhythm)
            .field("restarts", &self.restarts)
            .finish_non_exhaustive()
    }
}

impl ChildSpec {
    /// Looks again and again whether the child is well while it runs. Default: nobody does.
    ///
    /// It is reported if it isn't, and restarted only if the check says so. See [`HealthCheck`].
    /// The last one that is set counts.
    pub fn health_check(mut self, check: HealthCheck) -> Self {
        self.edit().fails_unhealthy = check.restarts;
        self.health = Some(Arc::new(check));
        self
    }
}
