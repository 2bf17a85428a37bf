//! The calls of OTP's `supervisor` module, with its names and its answers.
//!
//! Each is decided in one step of the supervisor. The other calls of a handle state an intention, which holds in every
//! state of the child; these are refused in a state that OTP refuses them in.

use super::control::ChildRef;
use super::route::SupervisorHandle;
use crate::core::ChildRequest;
use crate::error::ControlError;
use crate::runtime::request::HandleRequest;
use crate::status::{ChildInfo, Counts};

/// OTP's calls about the children of a supervisor. Returned by [`SupervisorHandle::otp`].
///
/// For code that is ported from Erlang or Elixir and depends on the exact answers. The source is the documentation of
/// OTP's [`supervisor`](https://www.erlang.org/doc/apps/stdlib/supervisor.html).
///
/// ```
/// use verger::{Context, ControlError, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
/// let app = Supervisor::builder("app").child(db).build()?.start().await?;
///
/// let error = app.otp().restart_child("db").await.unwrap_err();
/// assert!(matches!(error, ControlError::Running { .. }));
/// app.otp().terminate_child("db").await?;
/// app.otp().restart_child("db").await?;
///
/// let error = app.otp().delete_child("db").await.unwrap_err();
/// assert_eq!(error.to_string(), "`app/db` is running; use `terminate_child` first");
/// app.otp().terminate_child("db").await?;
/// app.otp().delete_child("db").await?;
/// assert_eq!(app.otp().count_children().await?.specs, 0);
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OtpCalls<'a>(&'a SupervisorHandle);

impl SupervisorHandle {
    /// Returns OTP's calls about the children of this supervisor.
    #[must_use]
    pub fn otp(&self) -> OtpCalls<'_> {
        OtpCalls(self)
    }
}

impl OtpCalls<'_> {
    /// Stops a child, grace included, and leaves it stopped. Resolves when the child is down.
    ///
    /// Succeeds if the child is down already. A temporary child is removed, and so is a child of a
    /// dynamic supervisor. A child that waits for its restart is no longer restarted. If a group waits
    /// with it, the rest of the group stays stopped. See [`stop_child`](SupervisorHandle::stop_child).
    ///
    /// # Errors
    ///
    /// The common errors.
    pub async fn terminate_child(self, path: &str) -> Result<(), ControlError> {
        self.0.act(path, "terminate_child", ChildRequest::Terminate).await.map(drop)
    }

    /// Starts a stopped child. Resolves when the child is up, has declined to start, or waits for a sibling that is
    /// down for good ([`ChildRef::is_gated`]).
    ///
    /// If that fails, the child stays stopped, and the start isn't retried. [`resume`](SupervisorHandle::resume) starts a
    /// child in every state.
    ///
    /// # Errors
    ///
    /// * [`ControlError::Running`] or [`ControlError::Restarting`] if the child isn't stopped, or if a
    ///   failure interrupted a restart of the group that would have come to the child,
    /// * [`ControlError::ActivationFailed`] or [`ControlError::Stopped`] if the child didn't come up,
    /// * [`ControlError::InvalidState`] under a dynamic supervisor, which keeps only stopped children that a
    ///   message starts, and while a callback decides on the child,
    ///
    /// and the common errors.
    pub async fn restart_child(self, path: &str) -> Result<ChildRef, ControlError> {
        self.0.act(path, "restart_child", ChildRequest::RESTART_CHILD).await
    }

    /// Removes a stopped child, so that its name can be used again.
    ///
    /// Also removes a failed child that was given up, or that a callback is deciding on.
    /// [`remove`](SupervisorHandle::remove) removes a child in every state.
    ///
    /// # Errors
    ///
    /// [`ControlError::Running`] or [`ControlError::Restarting`] if the child isn't stopped, and the
    /// common errors.
    pub async fn delete_child(self, path: &str) -> Result<(), ControlError> {
        self.0.act(path, "delete_child", ChildRequest::Delete).await.map(drop)
    }

    /// Returns all children of this supervisor, in start order; the same as
    /// [`children`](SupervisorHandle::children).
    ///
    /// # Errors
    ///
    /// The common errors.
    pub async fn which_children(self) -> Result<Vec<ChildInfo>, ControlError> {
        self.0.children().await
    }

    /// Returns how many children of which kind there are.
    ///
    /// # Errors
    ///
    /// The common errors.
    pub async fn count_children(self) -> Result<Counts, ControlError> {
        let supervisor = self.0.here().await?;
        self.0.call(&supervisor, |answer| HandleRequest::Count { answer }).await
    }
}
