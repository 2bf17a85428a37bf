//! The handle, and how it finds the supervisor that answers a call about a path, or a child that runs.
//!
//! A supervisor that runs knows its own children. If the supervisor of a child doesn't run, the nearest one
//! above that does knows the one below it as its child, and whether it comes up.
//!
//! Names that may be meant by one that doesn't exist are looked up in the caller's task, among the children that
//! supervisors declare. Children that were added later are not among them.
//!
//! # Invariants
//!
//! 1. No incarnation is found whose exit was reported before the call.
//! 2. A call waits only while the child, or a supervisor above it, is on its way up. It fails when the
//!    handle's own supervisor stops, or one above that.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::coop::consume_budget;
use tokio::task::yield_now;

use super::control::ChildRef;
use crate::child::ChildSpec;
use crate::core::ChildRequest;
use crate::error::ControlError;
use crate::panic::CatchWakerPanic;
use crate::path::{Path, SerialName};
use crate::runtime::SupervisorShared;
use crate::runtime::request::{CallNote, HandleRequest, Responder, Segment};
use crate::start_of::start_with_mark;
use crate::status::ChildKind;
use crate::suggest;

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
/// app.stop_child("db").await?;
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

/// The most bytes of the name of a caller, and of its reason.
const CALLER: usize = 100;
const REASON: usize = 1_000;

impl SupervisorHandle {
    pub(crate) fn new(supervisor: Arc<SupervisorShared>) -> Self {
        Self { supervisor, note: None }
    }

    /// Returns a handle whose calls name their caller, such as `operator`, and a reason.
    ///
    /// Each call that changes a child is then logged with `by` and `reason`, and published as the event
    /// [`Called`](crate::status::EventKind::Called). The status of the child shows it as
    /// [`last_call`](crate::status::ChildInfo::last_call), and explains with it why the child is stopped or held.
    /// An empty reason counts as none. A name that exceeds 100 bytes, and a reason that exceeds 1,000, end in `…`.
    ///
    /// ```
    /// # use verger::{Context, Supervisor, worker};
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = worker("db", async |ctx: Context| ctx.cancelled().await);
    /// # let app = Supervisor::builder("app").child(db).build()?.start().await?;
    /// app.on_behalf_of("operator", "disk swap").stop_child("db").await?;
    ///
    /// let db = app.which_child("db").await?;
    /// assert_eq!(db.explanation().unwrap(), "stopped by operator: disk swap");
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn on_behalf_of(&self, by: impl Into<String>, reason: impl Into<String>) -> Self {
        let bounded = |text: String, bytes| match text.len() <= bytes {
            true => text,
            false => start_with_mark(text, bytes),
        };
        let (by, reason) = (bounded(by.into(), CALLER), bounded(reason.into(), REASON));
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
        request: impl FnOnce(Responder<T>) -> HandleRequest,
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
        match ask(&supervisor, |answer| HandleRequest::Which { segment, answer }).await {
            Some(Ok(child)) if child.kind == ChildKind::Worker && !deeper.is_empty() => {
                self.not_found(path)
            }
            Some(Err(_)) => self.not_found(path),
            Some(Ok(_)) | None => ControlError::NotRunning { path, nearest },
        }
    }
}

/// Sends a request to a supervisor. Returns its answer, or `None` if it has ended.
async fn ask<T>(
    supervisor: &SupervisorShared,
    request: impl FnOnce(Responder<T>) -> HandleRequest,
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

/// How many names, and how many supervisors, are looked at.
const LOOKED_AT: usize = 1000;
/// How many paths an error lists.
const LISTED: usize = 3;

impl SupervisorHandle {
    /// Returns the error about a child that doesn't exist.
    pub(crate) fn not_found(&self, path: Path) -> ControlError {
        let similar = self.similar(&path);
        ControlError::NotFound { path, similar, exit: None }
    }

    /// Adds the paths that may be meant to an error about a child that doesn't exist.
    fn with_similar(&self, error: ControlError) -> ControlError {
        match error {
            ControlError::NotFound { path, similar, exit } if similar.is_empty() => {
                ControlError::NotFound { similar: self.similar(&path), path, exit }
            }
            error => error,
        }
    }

    fn similar(&self, path: &Path) -> Vec<Path> {
        let Some((above, supervisor)) = self.supervisor.tree.nearest(path) else {
            return Vec::new();
        };
        let rest = path.as_str().get(above.as_str().len() + 1..).unwrap_or_default();
        let (name, below) = match rest.split_once('/') {
            Some((name, below)) => (name, Some(below)),
            None => (rest, None),
        };
        // The children of a dynamic supervisor come and go.
        if SerialName::parse(name).is_some() {
            return Vec::new();
        }
        let blueprint = supervisor.blueprint();
        // A declared child that was deleted is not meant.
        let names = blueprint.children.iter().map(ChildSpec::name).filter(|it| *it != name);
        let similar = suggest::similar(name, names.take(LOOKED_AT), LISTED);
        let with_rest = |name: &str| {
            let child = above.join(name);
            let whole = below.map(|below| Path::from_text([child.as_str(), "/", below].concat()));
            whole.filter(|whole| self.declares(whole)).unwrap_or(child)
        };
        let similar: Vec<_> = similar.into_iter().map(with_rest).collect();
        if similar.is_empty() { self.namesakes(path) } else { similar }
    }

    /// Returns the declared children with the last name of this path, below any supervisor that runs.
    fn namesakes(&self, path: &Path) -> Vec<Path> {
        let running = self.supervisor.tree.some_supervisors(LOOKED_AT);
        let declaring = running.iter().filter(|it| has_child(it, path.name()));
        let paths = declaring.map(|it| it.path().join(path.name()));
        let mut paths: Vec<_> = paths.filter(|it| it != path).collect();
        paths.sort_unstable();
        paths.truncate(LISTED);
        paths
    }

    /// Whether a supervisor that runs declares a child at this path.
    fn declares(&self, path: &Path) -> bool {
        let above = path.parent().and_then(|above| self.supervisor.tree.supervisor(&above));
        above.is_some_and(|above| has_child(&above, path.name()))
    }
}

fn has_child(supervisor: &SupervisorShared, name: &str) -> bool {
    supervisor.blueprint().keys.contains_key(name)
}

impl SupervisorHandle {
    /// Finds a child, and returns its incarnation that runs.
    ///
    /// Waits while the child is on its way up: while it starts or restarts, waits for its group or for what
    /// it requires, or is being decided on, and also while a supervisor above it does. The answer is never
    /// an incarnation whose exit was reported before the call. By the time that the caller uses it, that
    /// incarnation may have ended, of course.
    ///
    /// The wait has no limit of its own; use [`tokio::time::timeout`], or [`try_child`](Self::try_child). A
    /// child that waits here delays its own stop: it must also watch
    /// [`Context::cancelled`](crate::Context::cancelled).
    ///
    /// ```
    /// use verger::{Context, ControlError, Supervisor, worker};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
    /// let app = Supervisor::builder("app").child(db).build()?.start().await?;
    ///
    /// assert_eq!(app.child("db").await?.incarnation(), Some(1));
    ///
    /// app.stop_child("db").await?;
    /// let error = app.child("db").await.unwrap_err();
    /// assert!(matches!(error, ControlError::InvalidState { .. }));
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`ControlError::InvalidState`] if the child is down and nothing starts it: it is stopped, given up
    ///   on, was never started, or waits for its first message or for a requirement that is down itself,
    /// * [`ControlError::Withheld`] if its configuration prevents its start,
    /// * [`ControlError::Stopped`] if the child was stopped while the call waited,
    /// * [`ControlError::NotRunning`] if a supervisor above it is down and nothing starts it,
    /// * [`ControlError::ShuttingDown`] if the supervisor of this handle, or one above that, is stopping,
    ///
    /// and the common errors.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe.
    pub async fn child(&self, path: &str) -> Result<ChildRef, ControlError> {
        self.seek(path, "child", true).await.map_err(|error| self.with_similar(error))
    }

    /// Finds a child, and returns its incarnation that runs, without waiting for one.
    ///
    /// # Errors
    ///
    /// * [`ControlError::Restarting`] if the child, or a supervisor above it, is on its way up, where
    ///   [`child`](Self::child) waits,
    /// * [`ControlError::InvalidState`], [`ControlError::Withheld`] and [`ControlError::NotRunning`] as for
    ///   [`child`](Self::child),
    /// * [`ControlError::ShuttingDown`] if the supervisor of the child is stopping,
    ///
    /// and the common errors.
    pub async fn try_child(&self, path: &str) -> Result<ChildRef, ControlError> {
        self.seek(path, "try_child", false).await.map_err(|error| self.with_similar(error))
    }

    async fn seek(
        &self,
        path: &str,
        call: &'static str,
        wait: bool,
    ) -> Result<ChildRef, ControlError> {
        if let Err(error) = check(path) {
            consume_budget().await;
            return Err(error);
        }
        let path = self.full_path(path);
        loop {
            let Some((nearest, supervisor)) = self.supervisor.tree.nearest(&path) else {
                consume_budget().await;
                return Err(ControlError::Ended { path: self.path() });
            };
            let rest = path.as_str().get(nearest.as_str().len() + 1..).unwrap_or_default();
            let (segment, is_last) = match rest.split_once('/') {
                Some((segment, _)) => (segment, false),
                None => (rest, true),
            };
            if !is_last {
                // Asked first, since no wait brings up a child below a worker.
                let which = |answer| HandleRequest::Which { segment: segment.to_owned(), answer };
                match ask(&supervisor, which).await {
                    Some(Ok(child)) if child.kind == ChildKind::Worker => {
                        return Err(self.not_found(path));
                    }
                    Some(Err(error)) => return Err(of_supervisor(error, path, nearest)),
                    Some(Ok(_)) | None => {}
                }
            }
            let act = |answer| {
                let (segment, request) = (segment.to_owned(), ChildRequest::Find { wait });
                HandleRequest::Act { segment, call, note: None, request, answer }
            };
            match ask(&supervisor, act).await {
                Some(Ok(found)) if is_last => return Ok(ChildRef::new(&supervisor, found)),
                // A supervisor on the way to the child is up. It isn't registered if it has ended since, and
                // its exit is yet to be handled.
                Some(Ok(_))
                    if wait
                        || self.supervisor.tree.supervisor(&nearest.join(segment)).is_some() =>
                {
                    yield_now().await;
                }
                Some(Ok(_)) => return Err(ControlError::Restarting { path }),
                Some(Err(ControlError::ShuttingDown { .. })) if wait => {
                    self.until_ended(&supervisor).await?;
                }
                Some(Err(error)) if is_last => return Err(error),
                Some(Err(error)) => return Err(of_supervisor(error, path, nearest)),
                // The supervisor has ended, and is no longer registered.
                None => yield_now().await,
            }
        }
    }

    /// Waits for the end of a supervisor that is stopping, unless that of this handle stops with it.
    async fn until_ended(&self, supervisor: &SupervisorShared) -> Result<(), ControlError> {
        let own = self.supervisor.path();
        let holds_own = |it: &&SupervisorShared| {
            let below = own.as_str().strip_prefix(it.path().as_str());
            below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        };
        let is_stopping = |it: &&SupervisorShared| {
            // It has answered so, perhaps before it has noted that.
            std::ptr::eq(*it, supervisor) || it.progress.stopping_since().is_some()
        };
        let mut stopping = supervisor.upward().filter(is_stopping);
        if let Some(it) = stopping.find(holds_own) {
            return Err(ControlError::ShuttingDown { path: it.path().clone() });
        }
        supervisor.progress.until_ended().await;
        Ok(())
    }
}

/// Returns why a child isn't found, from the error about a supervisor above it.
fn of_supervisor(error: ControlError, path: Path, nearest: Path) -> ControlError {
    match error {
        // It is the supervisor that has exited.
        ControlError::NotFound { similar, .. } => {
            ControlError::NotFound { path, similar, exit: None }
        }
        ControlError::Restarting { .. } => ControlError::Restarting { path },
        error @ ControlError::ShuttingDown { .. } => error,
        _ => ControlError::NotRunning { path, nearest },
    }
}
