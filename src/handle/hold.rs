//! Holding and releasing a child, and resetting what is counted of it.

use super::route::SupervisorHandle;
use crate::core::ChildRequest;
use crate::error::ControlError;

impl SupervisorHandle {
    /// Holds a child: keeps it from being started again once it is down. A running child goes on.
    ///
    /// Use it to examine a child that keeps failing, or to take it out of operation. Nothing starts a held child: no
    /// backoff that ends, no restart of its group, no message and no call. It is
    /// [`Discovered`](crate::Lifecycle::Discovered) instead, and its siblings start without it. Its failures are
    /// charged as usual. [`release`](Self::release) ends the hold, and so does a restart of the supervisor.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::{Context, ControlError, Supervisor, worker};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
    /// let app = Supervisor::builder("app").child(db).build()?.start().await?;
    ///
    /// app.hold("db").await?;
    /// app.kill_child("db").await?;
    /// tokio::time::sleep(Duration::from_secs(1)).await;
    /// let error = app.child("db").await.unwrap_err();
    /// assert!(matches!(error, ControlError::Withheld { .. }));
    ///
    /// app.release("db").await?;
    /// assert_eq!(app.child("db").await?.incarnation(), Some(2));
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The common errors.
    pub async fn hold(&self, path: &str) -> Result<(), ControlError> {
        self.act(path, "hold", ChildRequest::Hold).await.map(drop)
    }

    /// Ends the hold of a child, and starts the child if it would have been started meanwhile. Resolves when the
    /// child is up.
    ///
    /// Has no effect on a child that isn't held. A child that was stopped or given up stays down.
    ///
    /// # Errors
    ///
    /// * [`ControlError::ActivationFailed`] if the child failed before it was up; its restart type
    ///   decides what follows, which the error names ([`NextStep`](crate::NextStep)),
    /// * [`ControlError::Stopped`] if the child was stopped before it was up,
    ///
    /// and the common errors.
    pub async fn release(&self, path: &str) -> Result<(), ControlError> {
        self.act(path, "release", ChildRequest::Release).await.map(drop)
    }

    /// Resets what is counted of a child's failures.
    ///
    /// The restarts so far no longer count against the supervisor's limit, which all its children share, nor
    /// against the child's own limits. The child's backoff begins again. A delay that was drawn already stays. The
    /// number of the incarnation isn't reset, and neither is [`restarts`](crate::status::ChildInfo::restarts).
    ///
    /// # Errors
    ///
    /// The common errors.
    pub async fn reset_counters(&self, path: &str) -> Result<(), ControlError> {
        self.act(path, "reset_counters", ChildRequest::Reset).await.map(drop)
    }
}
