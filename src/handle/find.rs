//! Finding a child by its name: its incarnation that runs.
//!
//! A supervisor that runs knows its own children. If the supervisor of a child doesn't run, the nearest one
//! above that does knows the one below it as its child, and whether it comes up.
//!
//! # Invariants
//!
//! 1. No incarnation is found whose exit was reported before the call.
//! 2. A call waits only while the child, or a supervisor above it, is on its way up. It fails when the
//!    handle's own supervisor stops, or one above that.

use tokio::task::coop::consume_budget;
use tokio::task::yield_now;

use super::child_ref::ChildRef;
use super::route::{SupervisorHandle, ask, check};
use crate::core::ChildRequest;
use crate::error::ControlError;
use crate::path::Path;
use crate::runtime::SupervisorShared;
use crate::runtime::request::Request;
use crate::status::ChildKind;

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
    /// app.terminate_child("db").await?;
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
                let which = |answer| Request::Which { segment: segment.to_owned(), answer };
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
                Request::Act { segment, call, note: None, request, answer }
            };
            match ask(&supervisor, act).await {
                Some(Ok(found)) if is_last => return Ok(ChildRef::new(&supervisor, found)),
                // A supervisor on the way to the child is up. It isn't registered if it has ended since, and
                // its exit is yet to be handled.
                Some(Ok(_)) if wait || self.is_registered(&nearest.join(segment)) => {
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

    fn is_registered(&self, path: &Path) -> bool {
        self.supervisor.tree.supervisor(path).is_some()
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
        ControlError::NotFound { similar, .. } => ControlError::NotFound { path, similar },
        ControlError::Restarting { .. } => ControlError::Restarting { path },
        error @ ControlError::ShuttingDown { .. } => error,
        _ => ControlError::NotRunning { path, nearest },
    }
}
