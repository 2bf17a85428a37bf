//! The operations of a handle that show a tree, or wait for its end, and the state that they look at.

use std::sync::Arc;
use std::time::SystemTime;

use super::route::{SupervisorHandle, check};
use super::snapshot::as_root;
use crate::child::{Context, StopLevel};
use crate::clock::now;
use crate::dead_letter::DeadLetter;
use crate::error::{ControlError, RunError};
use crate::path::Path;
use crate::runtime::inbox::StopRequest;
use crate::runtime::request::{HandleRequest, Page};
use crate::runtime::{Blueprint, End, SupervisorPhase, SupervisorShared};
use crate::status::{ChildInfo, ChildSpecInfo, Event, Node, Subscription};

impl SupervisorHandle {
    /// Returns all children of this supervisor, in start order.
    ///
    /// ```
    /// use verger::{Context, Lifecycle, Supervisor, worker};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
    /// let cache = worker("cache", async |ctx: Context| ctx.cancelled().await);
    /// let app = Supervisor::builder("app").child(db).child(cache).build()?.start().await?;
    /// app.stop_child("cache").await?;
    ///
    /// let children = app.children().await?;
    /// assert_eq!(children[1].path.as_str(), "app/cache");
    /// assert_eq!(children[1].lifecycle, Lifecycle::Stopped);
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The common errors.
    pub async fn children(&self) -> Result<Vec<ChildInfo>, ControlError> {
        let supervisor = self.here().await?;
        let mut children = Vec::new();
        let each = |page: Page| {
            if let Some(supervisor) = page.supervisor {
                children.reserve_exact(supervisor.counts.specs as usize);
            }
            children.extend(page.children);
        };
        self.pages(&supervisor, each).await?;
        Ok(children)
    }

    /// Returns one child.
    ///
    /// ```
    /// use verger::{Context, ControlError, Supervisor, worker};
    ///
    /// async fn db(ctx: Context) {
    ///     ctx.set_status("connected");
    ///     ctx.cancelled().await;
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = Supervisor::builder("app").child(worker("db", db)).build()?.start().await?;
    /// # tokio::task::yield_now().await;
    ///
    /// assert_eq!(app.which_child("db").await?.status.as_deref(), Some("connected"));
    ///
    /// let error = app.which_child("bd").await.unwrap_err();
    /// assert!(matches!(error, ControlError::NotFound { .. }));
    /// assert_eq!(error.to_string(), "there is no `app/bd`; did you mean `app/db`?");
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The common errors.
    pub async fn which_child(&self, path: &str) -> Result<ChildInfo, ControlError> {
        let (supervisor, segment) = self.find(path).await?;
        self.call(&supervisor, |answer| HandleRequest::Which { segment, answer }).await
    }

    /// Returns how a child is supervised, with every default filled in.
    ///
    /// # Errors
    ///
    /// The common errors.
    pub async fn child_spec(&self, path: &str) -> Result<ChildSpecInfo, ControlError> {
        let (supervisor, segment) = self.find(path).await?;
        self.call(&supervisor, |answer| HandleRequest::Spec { segment, answer }).await
    }

    /// Subscribes to the events of all children below, from now on.
    ///
    /// The subscription ends with this incarnation of the supervisor. Subscribe at the root to get all
    /// events of the tree.
    ///
    /// ```
    /// use verger::status::EventKind;
    /// use verger::{Context, Lifecycle, Supervisor, worker};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
    /// let app = Supervisor::builder("app").child(db).build()?.start().await?;
    /// let mut events = app.events();
    ///
    /// app.restart("db").await?;
    ///
    /// while let Some(event) = events.next().await {
    ///     if matches!(event.kind, EventKind::Moved { to: Lifecycle::Active, .. }) {
    ///         assert_eq!((event.path.as_str(), event.incarnation), ("app/db", 2));
    ///         break;
    ///     }
    /// }
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn events(&self) -> Subscription<Event> {
        self.current().subscribe_events()
    }

    /// Subscribes to the dead letters of all children below, from now on.
    ///
    /// They are about messages that weren't delivered and children that were given up. The
    /// subscription ends with this incarnation of the supervisor. Subscribe at the root to get all
    /// letters of the tree.
    ///
    /// Letters about a [suppressed](crate::SupervisorBuilder::suppress_dead_letters) message type are
    /// skipped, unless you call [`with_suppressed`](Subscription::with_suppressed).
    #[must_use]
    pub fn dead_letters(&self) -> Subscription<DeadLetter> {
        self.current().dead_letters.subscribe()
    }

    /// Stops the supervisor, and waits until it has ended. The reason is logged.
    ///
    /// Children stop in reverse order, one at a time, each within its own grace. The children of a
    /// dynamic supervisor stop at the same time. The stop as a whole has no deadline, unless you set
    /// [`stop_deadline`](crate::SupervisorBuilder::stop_deadline).
    ///
    /// The root of an [`Application`](crate::Application), and of a tree in
    /// [`with_graceful_shutdown`](crate::Supervisor::with_graceful_shutdown), stops as after a signal: in
    /// [stages](crate::app::StopStages), with the hooks before and after.
    ///
    /// A supervisor below the root has then ended normally, and by default is restarted. To leave it
    /// stopped, call [`stop_child`](Self::stop_child) on the supervisor above.
    ///
    /// A child that awaits the end of its own supervisor here is aborted when its grace is over,
    /// because the supervisor waits for the child. Return from the child instead.
    ///
    /// ```
    /// use verger::{Context, Supervisor, worker};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = worker("db", async |ctx: Context| ctx.cancelled().await);
    /// let app = Supervisor::builder("app").child(db).build()?.start().await?;
    /// app.stop("the test is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`wait`](Self::wait).
    pub async fn stop(&self, reason: impl Into<String>) -> Result<(), RunError> {
        let (supervisor, reason) = (self.current(), reason.into());
        match supervisor.program_stops() {
            Some(stops) => stops.request(reason.into()),
            None => request_stop(&supervisor, reason, StopLevel::Cancel),
        }
        ended(&supervisor).await
    }

    /// Returns whether the first start of the supervisor is complete, also if it has ended since.
    #[must_use]
    pub fn has_started(&self) -> bool {
        match self.current().progress.phase() {
            SupervisorPhase::Starting => false,
            SupervisorPhase::Up => true,
            SupervisorPhase::Ended { was_up, .. } => was_up,
        }
    }

    /// Waits until the first start of the supervisor is complete. Returns `false` if it ends before.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe.
    pub async fn until_started(&self) -> bool {
        until_up(&self.current()).await.is_none()
    }

    /// Waits until the current incarnation of the supervisor has ended.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::{Context, Exit, RunError, Supervisor, worker};
    ///
    /// async fn flaky(_ctx: Context) -> Exit {
    ///     Err("connection refused".into())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = Supervisor::builder("app")
    ///     .restarts(1, Duration::from_secs(60))
    ///     .child(worker("flaky", flaky))
    ///     .build()?
    ///     .start()
    ///     .await?;
    ///
    /// let error = app.wait().await.unwrap_err();
    /// assert!(matches!(error, RunError::GaveUp { .. }));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A child that blocks its thread can be leaked, and the task of a supervisor can be aborted:
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::{BlockingContext, Readiness, RunError, Shutdown, Supervisor, blocking};
    ///
    /// /// A driver that doesn't return.
    /// fn stuck(ctx: BlockingContext) {
    ///     ctx.ready();
    ///     loop {
    ///         std::thread::park();
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "multi_thread", worker_threads = 2)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let stuck = blocking("stuck", stuck).readiness(Readiness::Signal);
    /// let app = Supervisor::builder("app")
    ///     .leak_timeout(Duration::from_millis(1))
    ///     .child(Supervisor::builder("cache"))
    ///     .child(stuck.shutdown(Shutdown::BrutalKill))
    ///     .build()?
    ///     .start()
    ///     .await?;
    ///
    /// let cache = app.supervisor("cache").await?;
    /// let (ended, killed) = tokio::join!(cache.wait(), app.kill("cache"));
    /// killed?;
    /// assert!(matches!(ended, Err(RunError::Aborted { .. })));
    ///
    /// let (ended, _) = tokio::join!(app.wait(), app.stop("done"));
    /// let Err(RunError::Forced { leaked, .. }) = ended else { panic!("{ended:?}") };
    /// assert_eq!(leaked[0].as_str(), "app/stuck");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`RunError::GaveUp`] if a child failed more often than the limits allow,
    /// * [`RunError::Exited`] if an exceeded limit ends the program with a code other than 0,
    /// * [`RunError::Start`] if the first start of a child failed,
    /// * [`RunError::Forced`] if a child below was killed at the end of its grace, or was aborted and still runs,
    /// * [`RunError::Aborted`] if the supervisor was aborted, or its runtime ended.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe.
    pub async fn wait(&self) -> Result<(), RunError> {
        ended(&self.current()).await
    }
}

pub(crate) async fn ended(supervisor: &SupervisorShared) -> Result<(), RunError> {
    supervisor.progress.until_ended().await.result(supervisor.path(), supervisor.forced_now())
}

impl Context {
    /// Returns a handle to the supervisor of this child.
    ///
    /// ```
    /// use verger::{Context, Exit};
    ///
    /// async fn report(ctx: Context) -> Exit {
    ///     println!("{}", ctx.parent().status().await?);
    ///     Ok(())
    /// }
    /// # drop(report);
    /// ```
    #[must_use]
    pub fn parent(&self) -> SupervisorHandle {
        SupervisorHandle::new(supervisor_of(self))
    }
}

/// Returns the supervisor of a child.
pub(crate) fn supervisor_of(ctx: &Context) -> Arc<SupervisorShared> {
    Arc::clone(&ctx.incarnation.parent)
}

/// Creates the shared state of a supervisor that is this child, or that this child has started as a worker.
pub(crate) fn supervisor_below(
    ctx: &Context,
    blueprint: &Arc<Blueprint>,
    is_of_worker: bool,
) -> Arc<SupervisorShared> {
    let (segment, token) = (ctx.incarnation.segment(), ctx.token_of_lease());
    supervisor_of(ctx).below(&segment, Arc::clone(blueprint), token, is_of_worker)
}

/// Waits until a root is up. Returns its end if it has ended before.
pub(crate) async fn until_up(root: &SupervisorShared) -> Option<End> {
    match root.progress.reached(|phase| !matches!(phase, SupervisorPhase::Starting)).await {
        SupervisorPhase::Ended { end, was_up: false } => Some(end),
        _ => None,
    }
}

/// Stops a supervisor, as urgently as `level`.
pub(crate) fn request_stop(
    supervisor: &SupervisorShared,
    reason: impl Into<Arc<str>>,
    level: StopLevel,
) {
    supervisor.inbox.push_stop(StopRequest { reason: reason.into(), level });
}

impl SupervisorHandle {
    /// Returns a handle to the root of the tree.
    pub(crate) fn of_root(&self) -> Self {
        let root = self.supervisor.tree.supervisor(&self.root_path());
        root.map_or_else(|| self.clone(), Self::new)
    }

    /// Has the tree measured while the guard exists. `None` if its root has switched it off.
    #[cfg(feature = "console")]
    pub(crate) fn measure_busy(&self) -> Option<crate::child::BusyGuard> {
        crate::child::BusyGuard::new(&self.supervisor)
    }

    /// Returns the full path of a path that a request has given. The name of the root is the root.
    pub(crate) fn path_of(&self, path: &str) -> Result<Path, ControlError> {
        check(path)?;
        let root = self.root_path();
        if path == root.as_str() { Ok(root) } else { Ok(self.full_path(path)) }
    }

    /// Returns the time by the clock of the tree, like those of its snapshots and events.
    pub(crate) fn wall_clock(&self) -> SystemTime {
        self.supervisor.tree.wall_clock(now())
    }

    /// Waits until the supervisor has begun to end.
    pub(crate) async fn until_stopping(&self) {
        self.current().progress.until_stopping().await;
    }

    /// Returns one child, or the root, without the children below it. The handle is that of the root.
    pub(crate) async fn node(&self, path: &Path) -> Result<Node, ControlError> {
        let child = match *path == self.path() {
            true => as_root(&*self.here().await?),
            false => self.which_child(path.as_str()).await?,
        };
        let mut node = Node { child, supervisor: None, children: Vec::new() };
        if let Some(supervisor) = self.supervisor.tree.supervisor(path) {
            let page =
                self.call(&supervisor, |answer| HandleRequest::Page { place: 0, answer }).await;
            node.supervisor = page.ok().and_then(|page| page.supervisor);
        }
        Ok(node)
    }
}
