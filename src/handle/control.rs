//! The operations of a handle.

use std::cell::Cell;
use std::future::Future;
use std::slice;

use tokio::task::coop::consume_budget;

use super::child_ref::ChildRef;
use super::root::until_up;
use super::route::SupervisorHandle;
use crate::child::{ChildSpec, Context, StopLevel, check_mailboxes, once};
use crate::core;
use crate::dead_letter::DeadLetter;
use crate::error::{ControlError, RunError};
use crate::exit::Outcome;
use crate::runtime::SupervisorShared;
use crate::runtime::inbox::StopRequest;
use crate::runtime::phase::SupervisorPhase;
use crate::runtime::request::{Page, Request};
use crate::status::Subscription;
use crate::status::{ChildInfo, ChildKind, ChildSpecInfo, Counts, Event};
use crate::subscriber;

impl SupervisorHandle {
    /// Returns a handle to the supervisor at `path`.
    ///
    /// # Errors
    ///
    /// [`ControlError::NotASupervisor`] if the child is a worker, and the common errors.
    pub async fn supervisor(&self, path: &str) -> Result<Self, ControlError> {
        match self.registered(path) {
            Ok(Some(supervisor)) => {
                if takes_a_step() {
                    consume_budget().await;
                }
                return Ok(Self { supervisor, note: self.note.clone() });
            }
            Err(error) => {
                consume_budget().await;
                return Err(error);
            }
            Ok(None) => {}
        }
        if self.which_child(path).await?.kind == ChildKind::Worker {
            return Err(ControlError::NotASupervisor { path: self.full_path(path) });
        }
        Err(self.not_running(&self.full_path(path)).await)
    }

    /// Adds a child, last in start order, and starts it. Resolves when the child is up.
    ///
    /// Also resolves if the child declines to start, or waits for a sibling that is down for good
    /// ([`ChildRef::is_gated`]) or for its first message ([`ChildRef::is_dormant`]). A function is up
    /// as soon as its task is spawned. As with `tokio::spawn`, it may not have been polled yet.
    ///
    /// If the first activation fails, the child is removed and not retried. Added children are lost when the
    /// supervisor itself is restarted. An invalid spec is refused, whether the supervisor runs or not.
    ///
    /// # Errors
    ///
    /// * [`ControlError::InvalidSpec`] if the spec is invalid,
    /// * [`ControlError::AlreadyStarted`] or [`ControlError::AlreadyPresent`] if a child of that name
    ///   exists, running or not,
    /// * [`ControlError::MaxChildren`] if a dynamic supervisor is full,
    /// * [`ControlError::ActivationFailed`] if the child failed before it was up,
    /// * [`ControlError::Stopped`] if the child was stopped before it was up,
    /// * [`ControlError::Restarting`] if a failure interrupted a restart of the group that would have come
    ///   to the child; the child was added, and is started with its group,
    ///
    /// and the common errors.
    pub async fn start_child(&self, spec: impl Into<ChildSpec>) -> Result<ChildRef, ControlError> {
        let running = self.running();
        let spec = match admit(running.as_ref().unwrap_or(&self.supervisor), spec.into()) {
            Ok(spec) => spec,
            Err(error) => {
                consume_budget().await;
                return Err(error);
            }
        };
        let Some(supervisor) = running else {
            return Err(self.not_running(self.supervisor.path()).await);
        };
        self.call(&supervisor, |answer| Request::Start { spec, answer })
            .await
            .map(|it| ChildRef::new(&supervisor, it))
    }

    /// Adds a temporary child that has one incarnation, and starts it. Resolves when the child is up.
    ///
    /// The same as [`start_child`](Self::start_child) with [`once`](crate::once): the function can own what it
    /// has captured.
    ///
    /// ```
    /// use tokio::net::TcpListener;
    /// use verger::{Context, Exit};
    ///
    /// async fn listener(ctx: Context) -> Exit {
    ///     let listener = TcpListener::bind("127.0.0.1:7000").await?;
    ///     let connections = ctx.children();
    ///     while let Some(accepted) = ctx.run_until_cancelled(listener.accept()).await {
    ///         let (mut socket, _) = accepted?;
    ///         connections
    ///             .start_once("conn", async move |_| -> Exit {
    ///                 let (mut reader, mut writer) = socket.split();
    ///                 tokio::io::copy(&mut reader, &mut writer).await?;
    ///                 Ok(())
    ///             })
    ///             .await?;
    ///     }
    ///     Ok(())
    /// }
    /// # drop(listener);
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`start_child`](Self::start_child).
    pub async fn start_once<F, Fut, O>(
        &self,
        name: impl Into<String>,
        run: F,
    ) -> Result<ChildRef, ControlError>
    where
        F: FnOnce(Context) -> Fut + Send + 'static,
        Fut: Future<Output = O> + Send + 'static,
        O: Outcome + 'static,
    {
        self.start_child(once(name, run)).await
    }

    /// Stops a child, grace included, and leaves it stopped. Resolves when the child is down.
    ///
    /// Succeeds if the child is down already. A temporary child is removed, and so is a child of a
    /// dynamic supervisor. A child that waits for its restart is no longer restarted. If a group waits
    /// with it, the rest of the group stays stopped.
    ///
    /// # Errors
    ///
    /// The common errors.
    pub async fn terminate_child(&self, path: &str) -> Result<(), ControlError> {
        self.act(path, "terminate_child", core::ChildRequest::Terminate).await.map(drop)
    }

    /// Starts a stopped child. Resolves when the child is up, has declined to start, or waits for a sibling that is
    /// down for good ([`ChildRef::is_gated`]).
    ///
    /// If that fails, the child stays stopped, and the start isn't retried.
    ///
    /// # Errors
    ///
    /// * [`ControlError::Running`] or [`ControlError::Restarting`] if the child isn't stopped, also if a
    ///   failure interrupted a restart of the group that would have come to the child,
    /// * [`ControlError::ActivationFailed`] or [`ControlError::Stopped`] if the child didn't come up,
    /// * [`ControlError::InvalidState`] under a dynamic supervisor, which keeps only stopped children that a
    ///   message starts, and while a callback decides on the child,
    ///
    /// and the common errors.
    pub async fn restart_child(&self, path: &str) -> Result<ChildRef, ControlError> {
        self.act(path, "restart_child", core::ChildRequest::RestartStopped).await
    }

    /// Restarts a running child, with the children that its supervisor's strategy restarts with it.
    /// Resolves when the child is up.
    ///
    /// The restart doesn't count as a failure.
    ///
    /// # Errors
    ///
    /// * [`ControlError::Restarting`] if the child is being restarted already, also if a failure interrupted
    ///   a restart of the group that would have come to the child,
    /// * [`ControlError::InvalidState`] if the child isn't running,
    /// * [`ControlError::ActivationFailed`] if the new incarnation failed before it was up; its restart
    ///   type decides what follows, which the error names ([`NextStep`](crate::NextStep)),
    /// * [`ControlError::Stopped`] if the child was stopped before it was up,
    ///
    /// and the common errors.
    pub async fn restart(&self, path: &str) -> Result<ChildRef, ControlError> {
        self.act(path, "restart", core::ChildRequest::RestartRunning).await
    }

    /// Aborts a child's task, which its supervisor handles as a failure.
    ///
    /// Resolves when the task was aborted, which may be before it has ended.
    ///
    /// # Errors
    ///
    /// [`ControlError::InvalidState`] if the child isn't running, and the common errors.
    pub async fn kill_child(&self, path: &str) -> Result<(), ControlError> {
        self.act(path, "kill_child", core::ChildRequest::Kill).await.map(drop)
    }

    /// Removes a stopped child, so that its name can be used again.
    ///
    /// Also removes a failed child that was given up, or that a callback is deciding on.
    ///
    /// # Errors
    ///
    /// [`ControlError::Running`] or [`ControlError::Restarting`] if the child isn't stopped, and the
    /// common errors.
    pub async fn delete_child(&self, path: &str) -> Result<(), ControlError> {
        self.act(path, "delete_child", core::ChildRequest::Delete).await.map(drop)
    }

    /// Restarts a child that was given up or has leaked. Resolves when the child is up.
    ///
    /// A child is given up by [`OnExhausted::Park`], [`OnExhausted::StopChild`] or a decision of
    /// [`on_child_failure`]. A leaked child is kept by [`OnLeak::Park`]. The children that the strategy
    /// restarts with it are restarted, too. The restarts so far no longer count, neither against the
    /// supervisor's limit nor against the child's own ones.
    ///
    /// Also starts a child, alone, that stayed errored because of its [`Trigger`](crate::policy::Trigger).
    ///
    /// # Errors
    ///
    /// * [`ControlError::InvalidState`] if the child is in a different state, also while a callback decides
    ///   on it,
    /// * [`ControlError::ActivationFailed`] if the child failed before it was up; its restart type
    ///   decides what follows, which the error names ([`NextStep`](crate::NextStep)),
    /// * [`ControlError::Stopped`] if the child was stopped before it was up,
    /// * [`ControlError::Restarting`] if a failure interrupted a restart of the group that would have come
    ///   to the child,
    ///
    /// and the common errors.
    ///
    /// [`OnExhausted::Park`]: crate::policy::OnExhausted::Park
    /// [`OnExhausted::StopChild`]: crate::policy::OnExhausted::StopChild
    /// [`OnLeak::Park`]: crate::policy::OnLeak::Park
    /// [`on_child_failure`]: crate::SupervisorBuilder::on_child_failure
    pub async fn retry(&self, path: &str) -> Result<ChildRef, ControlError> {
        self.act(path, "retry", core::ChildRequest::Retry).await
    }

    /// Ends the backoff of a child, and starts the child and the group that waits with it.
    ///
    /// # Errors
    ///
    /// [`ControlError::InvalidState`] if the child isn't waiting for its restart, also while a callback
    /// decides on it, and the common errors.
    pub async fn wake(&self, path: &str) -> Result<(), ControlError> {
        self.act(path, "wake", core::ChildRequest::Wake).await.map(drop)
    }

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
    /// # Errors
    ///
    /// The common errors.
    pub async fn which_child(&self, path: &str) -> Result<ChildInfo, ControlError> {
        let (supervisor, segment) = self.find(path).await?;
        self.call(&supervisor, |answer| Request::Which { segment, answer }).await
    }

    /// Returns how many children this supervisor has.
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
        let (supervisor, level) = (self.current(), StopLevel::Cancel);
        supervisor.inbox.push_stop(StopRequest { reason: reason.into().into(), level });
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
        consume_budget().await;
        ended(&self.current()).await
    }

    pub(super) async fn act(
        &self,
        path: &str,
        call: &'static str,
        request: core::ChildRequest,
    ) -> Result<ChildRef, ControlError> {
        let (supervisor, segment) = self.find(path).await?;
        let note = self.note.clone();
        let started = self
            .call(&supervisor, |answer| Request::Act { segment, call, note, request, answer })
            .await?;
        Ok(ChildRef::new(&supervisor, started))
    }
}

/// Returns `true` for every 64th lookup of this thread, which takes a step of the task's budget.
///
/// A loop over lookups would starve other tasks. A step for each would cost more than the lookup.
/// perf: budgets row "lookup"
fn takes_a_step() -> bool {
    thread_local! {
        static LOOKUPS: Cell<u8> = const { Cell::new(0) };
    }
    let lookups = (LOOKUPS.get() + 1) % 64;
    LOOKUPS.set(lookups);
    lookups == 0
}

/// Checks a new child, in the caller's task.
pub(super) fn admit(
    supervisor: &SupervisorShared,
    spec: ChildSpec,
) -> Result<ChildSpec, ControlError> {
    let mut warnings = Vec::new();
    let resolved = spec.resolved(supervisor.lazy_path(), &mut warnings)?;
    let path = || supervisor.path().clone();
    supervisor.blueprint().check_child(&path, &resolved, &mut warnings)?;
    if resolved.lends() {
        check_mailboxes(supervisor.lazy_path(), slice::from_ref(&resolved), true)?;
    }
    for warning in &warnings {
        subscriber::warn!(target: "verger::lifecycle", "{warning}");
    }
    Ok(resolved)
}

pub(super) async fn ended(supervisor: &SupervisorShared) -> Result<(), RunError> {
    supervisor.progress.until_ended().await.result(supervisor.path())
}
