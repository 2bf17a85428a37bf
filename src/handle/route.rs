//! The handle, and how it finds the supervisor that answers a call about a path.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::coop::consume_budget;

use crate::error::ControlError;
use crate::panic::CatchWakerPanic;
use crate::path::Path;
use crate::runtime::SupervisorShared;
use crate::runtime::request::{CallNote, Request, Responder, Segment};
use crate::status::ChildKind;

/// A handle to inspect and control a running supervisor.
///
/// Cheap to clone. Dropping a handle stops nothing. A handle addresses the incarnation of its
/// supervisor that currently runs.
///
/// ```
/// use verger::{Context, Lifecycle, Supervisor, worker};
///
/// async fn idle(ctx: Context) {
///     ctx.cancelled().await;
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = Supervisor::builder("app").child(worker("db", idle)).build()?.start().await?;
///
/// let cache = app.start_child(worker("cache", idle)).await?;
/// assert_eq!(cache.path().as_str(), "app/cache");
///
/// assert_eq!(app.restart("db").await?.incarnation(), Some(2));
/// app.terminate_child("db").await?;
/// assert_eq!(app.which_child("db").await?.lifecycle, Lifecycle::Stopped);
///
/// app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
///
/// # Paths
///
/// Each call takes the path of a child in one of two forms:
///
/// * relative to the supervisor of the handle, such as `db` or `ingest/mqtt`,
/// * in full, such as `app/ingest/mqtt`: the first name is that of the tree's root, and more names
///   follow. Every handle of the tree takes the same full path, also the handle of a
///   [`Context::parent`](crate::Context::parent) deep below.
///
/// A single name is always relative. If a child has the same name as the root, write the full path of
/// what is below it.
///
/// A child of a [`DynamicSupervisor`](crate::DynamicSupervisor) has the name that
/// [`start_child`](Self::start_child) returned, such as `conns/conn#17`.
///
/// Each call is answered by the supervisor of the child in question, also while that supervisor
/// starts, restarts or waits.
///
/// # Errors
///
/// In addition to the errors that each method lists, calls fail with
///
/// * [`ControlError::NotFound`] if no such child exists,
/// * [`ControlError::NotRunning`] if the child's supervisor isn't running at the moment,
/// * [`ControlError::ShuttingDown`] if the supervisor is stopping and the call would change it,
/// * [`ControlError::Ended`] if the tree has ended.
///
/// # Cancel safety
///
/// A request is sent at the first poll. If the future is dropped after that, the request is still
/// carried out, and only the answer is lost.
#[derive(Clone, Debug)]
pub struct SupervisorHandle {
    pub(crate) supervisor: Arc<SupervisorShared>,
    /// The caller that its calls name.
    pub(super) note: Option<Arc<CallNote>>,
}

impl SupervisorHandle {
    pub(crate) fn new(supervisor: Arc<SupervisorShared>) -> Self {
        Self { supervisor, note: None }
    }

    /// Returns a handle whose calls name their caller, such as `operator`, and a reason.
    ///
    /// Each call that changes a child is then logged with `by` and `reason`, and published as the event
    /// [`Called`](crate::status::EventKind::Called). The status of the child shows it as
    /// [`last_call`](crate::status::ChildInfo::last_call), and explains with it why the child is stopped or held.
    /// An empty reason counts as none.
    ///
    /// ```
    /// # use verger::{Context, Supervisor, worker};
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = worker("db", async |ctx: Context| ctx.cancelled().await);
    /// # let app = Supervisor::builder("app").child(db).build()?.start().await?;
    /// app.on_behalf_of("operator", "disk swap").terminate_child("db").await?;
    ///
    /// let db = app.which_child("db").await?;
    /// assert_eq!(db.explanation().unwrap(), "stopped by operator: disk swap");
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn on_behalf_of(&self, by: impl Into<String>, reason: impl Into<String>) -> Self {
        let (by, reason) = (by.into(), reason.into());
        let reason = (!reason.is_empty()).then(|| reason.into());
        let note = Some(Arc::new(CallNote { by: by.into(), reason }));
        Self { supervisor: Arc::clone(&self.supervisor), note }
    }

    /// Returns the path of this supervisor.
    #[must_use]
    pub fn path(&self) -> Path {
        self.supervisor.path().clone()
    }

    /// Returns the path of the tree's root.
    pub(crate) fn root_path(&self) -> Path {
        self.supervisor.upward().last().map_or_else(|| self.path(), |root| root.path().clone())
    }

    pub(crate) async fn call<T>(
        &self,
        supervisor: &Arc<SupervisorShared>,
        request: impl FnOnce(Responder<T>) -> Request,
    ) -> Result<T, ControlError> {
        match ask(supervisor, request).await {
            Some(answer) => answer.map_err(|error| self.with_similar(error)),
            None => Err(self.not_running(supervisor.path()).await),
        }
    }

    /// Returns the running incarnation of this supervisor, or the one that the handle was made for.
    pub(crate) fn current(&self) -> Arc<SupervisorShared> {
        self.running().unwrap_or_else(|| Arc::clone(&self.supervisor))
    }

    pub(crate) async fn here(&self) -> Result<Arc<SupervisorShared>, ControlError> {
        match self.running() {
            Some(supervisor) => Ok(supervisor),
            None => Err(self.not_running(self.supervisor.path()).await),
        }
    }

    /// Returns the running incarnation of this supervisor.
    pub(super) fn running(&self) -> Option<Arc<SupervisorShared>> {
        if self.supervisor.inbox.is_closed() {
            self.supervisor.tree.supervisor(self.supervisor.path())
        } else {
            Some(Arc::clone(&self.supervisor))
        }
    }

    /// Returns the full path of a path that a call was given.
    pub(crate) fn full_path(&self, path: &str) -> Path {
        if self.supervisor.tree.is_full_path(path) {
            return Path::from_text(path.to_owned());
        }
        Path::from_text([self.supervisor.path().as_str(), "/", path].concat())
    }

    /// Returns the supervisor that runs at a path that a call was given.
    pub(super) fn registered(
        &self,
        path: &str,
    ) -> Result<Option<Arc<SupervisorShared>>, ControlError> {
        check(path)?;
        Ok(self.supervisor.tree.supervisor(&self.full_path(path)))
    }

    /// Returns the supervisor of the child at `path`, and the child's name there.
    pub(crate) async fn find(
        &self,
        path: &str,
    ) -> Result<(Arc<SupervisorShared>, Segment), ControlError> {
        if let Err(error) = check(path) {
            consume_budget().await;
            return Err(error);
        }
        let (parent, name) = match path.rsplit_once('/') {
            Some((_, name)) => {
                let above = self.full_path(path).parent();
                (above.and_then(|above| self.supervisor.tree.supervisor(&above)), name)
            }
            None => (self.running(), path),
        };
        match parent {
            Some(supervisor) => Ok((supervisor, name.to_owned())),
            None => Err(self.not_running(&self.full_path(path)).await),
        }
    }

    /// Returns why no supervisor can answer a call about `path`.
    pub(crate) async fn not_running(&self, path: &Path) -> ControlError {
        consume_budget().await;
        let path = path.clone();
        let Some((nearest, supervisor)) = self.supervisor.tree.nearest(&path) else {
            return ControlError::Ended { path: self.path() };
        };
        // Does the nearest supervisor have a child with the next name of the path?
        let rest = path.as_str().get(nearest.as_str().len() + 1..).unwrap_or_default();
        let (segment, deeper) = rest.split_once('/').unwrap_or((rest, ""));
        let segment = segment.to_owned();
        match ask(&supervisor, |answer| Request::Which { segment, answer }).await {
            Some(Ok(child)) if child.kind == ChildKind::Worker && !deeper.is_empty() => {
                self.not_found(path)
            }
            Some(Err(_)) => self.not_found(path),
            Some(Ok(_)) | None => ControlError::NotRunning { path, nearest },
        }
    }
}

/// Sends a request to a supervisor. Returns its answer, or `None` if it has ended.
pub(super) async fn ask<T>(
    supervisor: &SupervisorShared,
    request: impl FnOnce(Responder<T>) -> Request,
) -> Option<Result<T, ControlError>> {
    let (answer, answered) = oneshot::channel();
    // A request that an ended supervisor returns is dropped here, which drops its answer.
    let pushed = supervisor.inbox.push_request(request(answer)).is_ok();
    let answered = CatchWakerPanic::new(answered);
    if pushed { answered.await.ok() } else { None }
}

/// Checks that no name in a path is empty.
pub(super) fn check(path: &str) -> Result<(), ControlError> {
    if path.split('/').any(str::is_empty) {
        return Err(ControlError::NotAChild { path: path.to_owned() });
    }
    Ok(())
}
