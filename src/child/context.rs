//! What a child is handed: who it is, when to stop, and how to speak to its supervisor.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Cancelled;
use super::check::check_policy;
use super::run::{Run, Said, StopLevel};
use crate::error::BuildError;
use crate::path::Path;
use crate::policy::{RestartPolicy, StartCause};

/// The link between one incarnation of a child and its supervisor.
///
/// Cheap to clone, and free to be given to whatever the child starts. It belongs to one incarnation:
/// when that has ended, however it did, the context is cancelled, and what is said through it is
/// ignored.
///
/// Beside the trait of the same name in anyhow, import that one as `use anyhow::Context as _;`.
#[derive(Clone)]
pub struct Context {
    pub(crate) run: Arc<Run>,
}

impl Context {
    pub(crate) fn new(run: Arc<Run>) -> Self {
        Self { run }
    }

    /// Where the child is in the tree, such as `app/ingest/mqtt`.
    #[must_use]
    pub fn path(&self) -> Path {
        self.run.path()
    }

    /// The number of this run of the child, from 1.
    #[must_use]
    pub fn incarnation(&self) -> u32 {
        self.run.incarnation()
    }

    /// Why this run was started.
    #[must_use]
    pub fn start_cause(&self) -> StartCause {
        self.run.cause
    }

    /// Resolves when the child is asked to stop.
    ///
    /// From then on it has its [`shutdown`](crate::ChildSpec::shutdown) grace to return; after that
    /// it is aborted.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped: a new one resolves at once if the child was asked
    /// meanwhile.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled::new(Arc::clone(&self.run))
    }

    /// Whether the child was asked to stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.run.level() > StopLevel::None
    }

    /// Runs `future` to its end, or drops it as soon as the child is asked to stop and returns
    /// `None`.
    ///
    /// # Cancel safety
    ///
    /// As safe as `future` is: it is dropped at one of its await points.
    pub async fn run_until_cancelled<F: Future>(&self, future: F) -> Option<F::Output> {
        tokio::select! {
            biased;
            () = self.cancelled() => None,
            output = future => Some(output),
        }
    }

    /// A token that is cancelled when the child is asked to stop.
    ///
    /// For code that wants tokio-util's own type. Cancelling it by hand stops whoever listens to
    /// it, and not the child: see [`stop_self`](Self::stop_self).
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        self.run.token().child_token()
    }

    /// Says that the child is ready, so that it becomes [`Active`](crate::Lifecycle::Active).
    ///
    /// Needed by children with [`Readiness::Signal`](crate::Readiness::Signal); for others, and the
    /// second time, it does nothing.
    pub fn ready(&self) {
        self.run.say(Said::Ready);
    }

    /// Says that the child works as it should, so that its next backoff begins with the first wait
    /// again.
    pub fn report_healthy(&self) {
        self.run.say(Said::Healthy);
    }

    /// Shows a line beside the child in [`status`](crate::SupervisorHandle::status), such as
    /// `lag 12 ms`, until the next line or the end of this incarnation.
    pub fn set_status(&self, text: impl Into<String>) {
        self.run.set_status(text.into().into());
    }

    /// A property that [`on_child_failure`](crate::SupervisorBuilder::on_child_failure) has given
    /// the child, by its type.
    ///
    /// It is as it was when this incarnation started. `None` if there is none of that type.
    #[must_use]
    pub fn property<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.run.property()
    }

    /// Replaces how the spec says that the child is restarted, for this incarnation only. `None`
    /// gives back what the spec says.
    ///
    /// What was said last before the child ended counts, and is forgotten when the next incarnation
    /// starts. See [`RestartPolicy`].
    ///
    /// Its limits replace those of the spec, each by itself. What is counted belongs to a limit: one
    /// that begins to apply counts from none, and what it has counted is forgotten when a restart is
    /// granted without it. So a child that wants a limit says it in each incarnation.
    ///
    /// # Errors
    ///
    /// What building a tree says of a spec that can't work: [`BuildError::BadBackoff`],
    /// [`BuildError::ZeroPeriod`], [`BuildError::BadScore`], [`BuildError::ZeroDuration`] or
    /// [`BuildError::SetTwice`]. Then nothing is changed.
    pub fn set_restart_policy(&self, policy: Option<RestartPolicy>) -> Result<(), BuildError> {
        if let Some(policy) = &policy {
            check_policy(policy, &|| self.path())?;
        }
        self.run.tell_policy(policy.map(Arc::new));
        Ok(())
    }

    /// Asks for the end of this child: it is stopped like by its supervisor, grace included, and
    /// has then ended normally. Whether it is started again is up to its restart type.
    pub fn stop_self(&self) {
        self.run.say(Said::StopSelf);
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("path", &self.path())
            .field("incarnation", &self.incarnation())
            .field("cancelled", &self.is_cancelled())
            .finish()
    }
}
