//! The operations of a handle that show a tree, or wait for its end.

use super::root::{request_stop, until_up};
use super::route::SupervisorHandle;
use crate::child::StopLevel;
use crate::dead_letter::DeadLetter;
use crate::error::{ControlError, RunError};
use crate::runtime::SupervisorPhase;
use crate::runtime::SupervisorShared;
use crate::runtime::request::{Page, Request};
use crate::status::{ChildInfo, ChildSpecInfo, Counts, Event, Subscription};

impl SupervisorHandle {
    /// Returns all children of this supervisor, in start order.
    ///
    /// # Errors
    ///
    /// The common errors.
    pub async fn which_children(&self) -> Result<Vec<ChildInfo>, ControlError> {
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
        self.call(&supervisor, |answer| Request::Which { segment, answer }).await
    }

    /// Returns how many children this supervisor has.
    ///
    /// ```
    /// use verger::{Context, Supervisor, worker};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
    /// let cache = worker("cache", async |ctx: Context| ctx.cancelled().await);
    /// let app = Supervisor::builder("app").child(db).child(cache).build()?.start().await?;
    /// app.terminate_child("cache").await?;
    ///
    /// let counts = app.count_children().await?;
    /// assert_eq!((counts.specs, counts.active), (2, 1));
    /// let children = app.which_children().await?;
    /// assert_eq!(children[1].path.as_str(), "app/cache");
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The common errors.
    pub async fn count_children(&self) -> Result<Counts, ControlError> {
        let supervisor = self.here().await?;
        self.call(&supervisor, |answer| Request::Count { answer }).await
    }

    /// Returns how a child is supervised, with every default filled in.
    ///
    /// # Errors
    ///
    /// The common errors.
    pub async fn child_spec(&self, path: &str) -> Result<ChildSpecInfo, ControlError> {
        let (supervisor, segment) = self.find(path).await?;
        self.call(&supervisor, |answer| Request::Spec { segment, answer }).await
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
    /// dynamic supervisor stop all at once. The stop as a whole has no deadline, unless you set
    /// [`stop_deadline`](crate::SupervisorBuilder::stop_deadline).
    ///
    /// A supervisor below the root has then ended normally, and by default is restarted. To leave it
    /// stopped, call [`terminate_child`](Self::terminate_child) on the supervisor above.
    ///
    /// A child that awaits the end of its own supervisor here is aborted when its grace is over,
    /// because the supervisor waits for the child. Return from the child instead.
    ///
    /// # Errors
    ///
    /// As for [`wait`](Self::wait).
    pub async fn stop(&self, reason: impl Into<String>) -> Result<(), RunError> {
        let supervisor = self.current();
        request_stop(&supervisor, reason.into(), StopLevel::Cancel);
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
    /// let (ended, killed) = tokio::join!(cache.wait(), app.kill_child("cache"));
    /// killed?;
    /// assert!(matches!(ended, Err(RunError::Aborted { .. })));
    ///
    /// let (ended, _) = tokio::join!(app.wait(), app.stop("done"));
    /// let Err(RunError::Leaked { children }) = ended else { panic!("{ended:?}") };
    /// assert_eq!(children[0].as_str(), "app/stuck");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`RunError::GaveUp`] if a child failed more often than the limits allow,
    /// * [`RunError::Exited`] if an exceeded limit ends the program with a code other than 0,
    /// * [`RunError::Start`] if the first start of a child failed,
    /// * [`RunError::Leaked`] if a child below was aborted and still runs,
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
    supervisor.progress.until_ended().await.result(supervisor.path())
}
