//! Handles: how the rest of a program speaks to a running tree.

mod route;
mod snapshot;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub use self::snapshot::{StatusChange, StatusStream};
use crate::child::{ChildSpec, Context};
use crate::clock::{now, wall};
use crate::core;
use crate::dead_letter::DeadLetter;
use crate::error::{ControlError, RunError};
use crate::path::Path;
use crate::runtime::Subscription;
use crate::runtime::blueprint::Blueprint;
use crate::runtime::hub::Hub;
use crate::runtime::inbox::StopRequest;
use crate::runtime::phase::Phase;
use crate::runtime::request::{Begun, ChildName, Page, Request, Started};
use crate::status::Event;
use crate::status::{ChildInfo, ChildKind, ChildSpecInfo, Counts};

/// A link to a running supervisor.
///
/// Cheap to clone, and free to be kept anywhere: dropping one stops nothing. It speaks to whichever
/// incarnation of its supervisor runs. Children are named by their path below it, such as `db` or
/// `ingest/mqtt`; those of a [`DynamicSupervisor`](crate::DynamicSupervisor) by the name that
/// [`start_child`](Self::start_child) returned, such as `conns/conn#17`.
///
/// Calls are served by the supervisor of the child in question, also while it starts, restarts or
/// waits. On a runtime with several threads, whoever calls may find that nobody is at it, and then
/// serves the supervisor himself, in his own poll: his call, and what had come in before. So that
/// poll may run what you have given the supervisor to decide with, such as the question of
/// [`restart_if`](crate::ChildSpec::restart_if), or drop what it has let go of, such as an error.
/// Don't hold a lock that these need while you poll a call.
///
/// Apart from what each of them lists, calls fail with
///
/// * [`ControlError::NotFound`] if there is no such child,
/// * [`ControlError::NotRunning`] if the child's supervisor does not run just now,
/// * [`ControlError::ShuttingDown`] if it is stopping, where the call would change something,
/// * [`ControlError::Ended`] if the tree has ended.
///
/// # Cancel safety
///
/// A request is made at the first poll and not taken back: if the future is dropped, it is still
/// carried out, and only the answer is lost.
#[derive(Clone, Debug)]
pub struct SupervisorHandle {
    hub: Arc<Hub>,
}

/// A child that was started through a handle.
#[derive(Clone)]
pub struct ChildRef {
    parent: Path,
    child: ChildName,
    /// Put together when it is asked for: most who start a child don't want to know.
    path: OnceLock<Path>,
    begun: Begun,
}

impl PartialEq for ChildRef {
    fn eq(&self, other: &Self) -> bool {
        (&self.parent, &self.child, self.begun) == (&other.parent, &other.child, other.begun)
    }
}

impl Eq for ChildRef {}

impl fmt::Debug for ChildRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ChildRef");
        shown.field("path", self.path()).field("begun", &self.begun).finish()
    }
}

impl ChildRef {
    /// Where the child is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.path.get_or_init(|| self.child.under(&self.parent))
    }

    /// The child's own part of its path, to be used in other calls.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path().name()
    }

    /// The number of the run that was started; `None` if none was.
    #[must_use]
    pub fn incarnation(&self) -> Option<u32> {
        match self.begun {
            Begun::Up(incarnation) => Some(incarnation),
            _ => None,
        }
    }

    /// Whether the child declined to start.
    #[must_use]
    pub fn declined(&self) -> bool {
        self.begun == Begun::Declined
    }

    /// Whether the child waits for one that it requires and that is down for good. It will start
    /// when that one comes.
    #[must_use]
    pub fn is_gated(&self) -> bool {
        self.begun == Begun::Gated
    }

    /// Whether the child waits for its first message, as its spec
    /// [says](crate::ChildSpec::start_on_message). It will start when that comes.
    #[must_use]
    pub fn is_dormant(&self) -> bool {
        self.begun == Begun::Dormant
    }
}

impl SupervisorHandle {
    pub(crate) fn new(hub: Arc<Hub>) -> Self {
        Self { hub }
    }

    /// Where this supervisor is.
    #[must_use]
    pub fn path(&self) -> Path {
        self.hub.path().clone()
    }

    /// A handle to a supervisor below this one.
    ///
    /// # Errors
    ///
    /// [`ControlError::NotASupervisor`] if it is a worker, and the common ones.
    pub async fn supervisor(&self, path: &str) -> Result<Self, ControlError> {
        if let Some(hub) = self.registered(path)? {
            return Ok(Self::new(hub));
        }
        if self.which_child(path).await?.kind == ChildKind::Worker {
            return Err(ControlError::NotASupervisor { path: self.below(path) });
        }
        Err(self.not_running(&self.below(path)).await)
    }

    /// Adds a child and starts it, last in start order. Resolves when it is up, or has declined, or
    /// waits for a sibling that is down for good ([`ChildRef::is_gated`]), or at once if it waits for
    /// its first message ([`ChildRef::is_dormant`]). A function is up as soon as its task is spawned,
    /// and, as with `tokio::spawn`, may not have been polled yet.
    ///
    /// If its first activation fails, the child is forgotten. Children that were added are lost
    /// when the supervisor itself is restarted. A child that cannot work is refused here, whether
    /// the supervisor runs or not.
    ///
    /// # Errors
    ///
    /// * [`ControlError::InvalidSpec`] if the child cannot work,
    /// * [`ControlError::AlreadyStarted`] or [`ControlError::AlreadyPresent`] if there is one of
    ///   that name, running or not,
    /// * [`ControlError::MaxChildren`] if a dynamic supervisor is full,
    /// * [`ControlError::ActivationFailed`] if it failed before it was up,
    /// * [`ControlError::Stopped`] if it was stopped before that,
    ///
    /// and the common ones.
    pub async fn start_child(&self, spec: impl Into<ChildSpec>) -> Result<ChildRef, ControlError> {
        let running = self.running();
        let spec = running.as_ref().unwrap_or(&self.hub).admit(spec.into())?;
        let Some(hub) = running else {
            return Err(self.not_running(self.hub.path()).await);
        };
        self.call(&hub, |answer| Request::Start { spec, answer }).await.map(|it| hub.child(it))
    }

    /// Stops a child, grace included, and leaves it stopped. Resolves when it is down; a child that
    /// is down already is fine. A temporary child is forgotten, and so is one of a dynamic
    /// supervisor.
    ///
    /// A child that waits for its restart waits no more. If a group waits with it, the rest of the
    /// group stays stopped.
    ///
    /// # Errors
    ///
    /// The common ones.
    pub async fn terminate_child(&self, path: &str) -> Result<(), ControlError> {
        self.act(path, "terminate_child", core::Request::Terminate).await.map(drop)
    }

    /// Starts a stopped child again. Resolves when it is up, or has declined.
    ///
    /// If that fails it stays stopped, and nothing is retried.
    ///
    /// # Errors
    ///
    /// * [`ControlError::Running`] or [`ControlError::Restarting`] if it is not stopped,
    /// * [`ControlError::ActivationFailed`] or [`ControlError::Stopped`] if it did not come up,
    /// * [`ControlError::InvalidState`] under a dynamic supervisor, which keeps no stopped children but those
    ///   that a message starts, and while a callback decides on the child,
    ///
    /// and the common ones.
    pub async fn restart_child(&self, path: &str) -> Result<ChildRef, ControlError> {
        self.act(path, "restart_child", core::Request::RestartStopped).await
    }

    /// Stops a running child, with whatever its supervisor's strategy restarts together with it,
    /// and starts them again. That is not counted as a failure. Resolves when the child is up.
    ///
    /// # Errors
    ///
    /// * [`ControlError::Restarting`] if that is about to happen anyway,
    /// * [`ControlError::InvalidState`] if it is not running,
    /// * [`ControlError::ActivationFailed`] if the new incarnation failed before it was up; from
    ///   there on its restart type decides,
    /// * [`ControlError::Stopped`] if it was stopped before that,
    ///
    /// and the common ones.
    pub async fn restart(&self, path: &str) -> Result<ChildRef, ControlError> {
        self.act(path, "restart", core::Request::RestartRunning).await
    }

    /// Aborts a child, as an outsider would: for its supervisor it is a failure like any other.
    /// Resolves when the child's task was told, which may be before it is gone.
    ///
    /// # Errors
    ///
    /// [`ControlError::InvalidState`] if it is not running, and the common ones.
    pub async fn kill_child(&self, path: &str) -> Result<(), ControlError> {
        self.act(path, "kill_child", core::Request::Kill).await.map(drop)
    }

    /// Forgets a stopped child, so that its name is free again. Also one that has failed and that
    /// its supervisor gave up on, or is being decided on.
    ///
    /// # Errors
    ///
    /// * [`ControlError::Running`] or [`ControlError::Restarting`] if it is not stopped,
    ///
    /// and the common ones.
    pub async fn delete_child(&self, path: &str) -> Result<(), ControlError> {
        self.act(path, "delete_child", core::Request::Delete).await.map(drop)
    }

    /// Tries a child again that was given up ([`OnExhausted::Park`], [`OnExhausted::StopChild`], or
    /// a decision of [`on_child_failure`]) or that had leaked ([`OnLeak::Park`]), together with what
    /// its strategy restarts with it. The restarts so far are forgotten, by the supervisor's limit
    /// and by the child's own ones. Or starts one, by itself, that stayed errored because its
    /// [`Trigger`](crate::Trigger) left it. Resolves when the child is up.
    ///
    /// # Errors
    ///
    /// * [`ControlError::InvalidState`] if it is in another state, also while a callback decides on it,
    /// * [`ControlError::ActivationFailed`] if it failed before it was up; from there on its
    ///   restart type decides,
    /// * [`ControlError::Stopped`] if it was stopped before that,
    ///
    /// and the common ones.
    ///
    /// [`OnExhausted::Park`]: crate::OnExhausted::Park
    /// [`OnExhausted::StopChild`]: crate::OnExhausted::StopChild
    /// [`OnLeak::Park`]: crate::OnLeak::Park
    /// [`on_child_failure`]: crate::SupervisorBuilder::on_child_failure
    pub async fn retry(&self, path: &str) -> Result<ChildRef, ControlError> {
        self.act(path, "retry", core::Request::Retry).await
    }

    /// Cuts the backoff of a child short: it is started now, and so is the group that waits with
    /// it.
    ///
    /// # Errors
    ///
    /// [`ControlError::InvalidState`] if it does not wait, also while a callback decides on it, and the
    /// common ones.
    pub async fn wake(&self, path: &str) -> Result<(), ControlError> {
        self.act(path, "wake", core::Request::Wake).await.map(drop)
    }

    /// All children of this supervisor, in start order.
    ///
    /// # Errors
    ///
    /// The common ones.
    pub async fn which_children(&self) -> Result<Vec<ChildInfo>, ControlError> {
        let hub = self.here().await?;
        let mut children = Vec::new();
        let each = |page: Page| {
            if children.is_empty() {
                children.reserve_exact(page.supervisor.counts.specs as usize);
            }
            children.extend(page.children);
        };
        self.pages(&hub, each).await?;
        Ok(children)
    }

    /// One child.
    ///
    /// # Errors
    ///
    /// The common ones.
    pub async fn which_child(&self, path: &str) -> Result<ChildInfo, ControlError> {
        let (hub, segment) = self.find(path).await?;
        self.call(&hub, |answer| Request::Which { segment, answer }).await
    }

    /// How many children this supervisor has.
    ///
    /// # Errors
    ///
    /// The common ones.
    pub async fn count_children(&self) -> Result<Counts, ControlError> {
        let hub = self.here().await?;
        self.call(&hub, |answer| Request::Count { answer }).await
    }

    /// How a child is treated, every default filled in.
    ///
    /// # Errors
    ///
    /// The common ones.
    pub async fn child_spec(&self, path: &str) -> Result<ChildSpecInfo, ControlError> {
        let (hub, segment) = self.find(path).await?;
        self.call(&hub, |answer| Request::Spec { segment, answer }).await
    }

    /// What happens to children below this supervisor, from now on until this incarnation of it
    /// ends. The root's has everything.
    #[must_use]
    pub fn events(&self) -> Subscription<Event> {
        self.current().subscribe_events()
    }

    /// What could not be delivered below this supervisor, and whom it gave up on, from now on until
    /// this incarnation of it ends. The root's has everything.
    ///
    /// Letters about messages whose type is
    /// [suppressed](crate::SupervisorBuilder::suppress_dead_letters) are left out, unless the
    /// subscription is asked for [them, too](Subscription::with_suppressed).
    #[must_use]
    pub fn dead_letters(&self) -> Subscription<DeadLetter> {
        self.current().subscribe_letters()
    }

    /// Asks the supervisor to stop, for a reason that is logged, and waits until it has.
    ///
    /// Children stop in reverse order, one at a time, each within its own grace; those of a dynamic
    /// supervisor all at once. There is no deadline for all of it unless
    /// [`stop_deadline`](crate::SupervisorBuilder::stop_deadline) was set.
    ///
    /// A supervisor below the root has then ended normally, and by default is started again by its
    /// own; to leave it stopped, use [`terminate_child`](Self::terminate_child) on the one above.
    ///
    /// A child that waits here for the end of its own supervisor is waited for itself, and so
    /// aborted when its grace is over. It should return instead.
    ///
    /// # Errors
    ///
    /// As for [`wait`](Self::wait).
    pub async fn stop(&self, reason: impl Into<String>) -> Result<(), RunError> {
        let hub = self.current();
        hub.inbox.stop(StopRequest { reason: reason.into().into(), within: None });
        hub.ended().await
    }

    /// Waits until the supervisor has ended, in the incarnation that runs now.
    ///
    /// # Errors
    ///
    /// * [`RunError::GaveUp`] if a child failed more often than it allows,
    /// * [`RunError::Exited`] if that is to end the program with a code other than 0,
    /// * [`RunError::Start`] if it could not start a child for the first time,
    /// * [`RunError::Leaked`] if something below it was aborted and is still there,
    /// * [`RunError::Aborted`] if it was aborted, or its runtime ended.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped.
    pub async fn wait(&self) -> Result<(), RunError> {
        self.current().ended().await
    }

    async fn act(
        &self,
        path: &str,
        call: &'static str,
        request: core::Request,
    ) -> Result<ChildRef, ControlError> {
        let (hub, segment) = self.find(path).await?;
        let started =
            self.call(&hub, |answer| Request::Act { segment, call, request, answer }).await?;
        Ok(hub.child(started))
    }
}

impl Hub {
    fn child(&self, started: Started) -> ChildRef {
        let Started { child, result } = started;
        ChildRef { parent: self.path().clone(), child, path: OnceLock::new(), begun: result }
    }

    /// Checks a child that is to be added, in the caller.
    fn admit(&self, spec: ChildSpec) -> Result<ChildSpec, ControlError> {
        let mut warnings = Vec::new();
        let resolved = spec.resolved(self.path(), &mut warnings)?;
        self.blueprint.check_child(&|| self.path().clone(), &resolved, &mut warnings)?;
        for warning in &warnings {
            tracing::warn!(target: "verger::lifecycle", "{warning}");
        }
        Ok(resolved)
    }

    async fn ended(&self) -> Result<(), RunError> {
        let is_over = |phase: &Phase| matches!(phase, Phase::Ended { .. });
        match self.progress.reached(is_over).await {
            Phase::Ended { end, .. } => end.result(self.path()),
            Phase::Starting | Phase::Up => unreachable!("that is not what was waited for"),
        }
    }
}

impl Context {
    /// A handle to the supervisor of this child.
    #[must_use]
    pub fn parent(&self) -> SupervisorHandle {
        SupervisorHandle::new(self.hub())
    }

    fn hub(&self) -> Arc<Hub> {
        let parent = Arc::clone(&*self.run.parent).as_any().downcast::<Hub>();
        parent.expect("only supervisors have children")
    }

    /// The pieces of a supervisor that is this child.
    pub(crate) fn hub_below(&self, blueprint: &Arc<Blueprint>) -> Arc<Hub> {
        let above = self.hub();
        let tree = Arc::clone(&above.tree);
        Hub::new(self.run.name(), Some(above), tree, Arc::clone(blueprint), now())
    }
}

/// Makes the pieces of a new root.
pub(crate) fn root(blueprint: Arc<Blueprint>) -> Arc<Hub> {
    let name = Arc::clone(&blueprint.name);
    let tree = Arc::new(crate::runtime::Tree::new(now(), wall()));
    Hub::new(name, None, tree, blueprint, now())
}

/// Waits until a root is up.
pub(crate) async fn until_up(hub: &Hub) -> Option<crate::runtime::End> {
    match hub.progress.reached(|phase| !matches!(phase, Phase::Starting)).await {
        // It may have ended since it was up.
        Phase::Ended { end, was_up: false } => Some(end),
        _ => None,
    }
}

/// Asks a root to stop within a time.
pub(crate) fn ask_to_stop(hub: &Hub, reason: &str, within: Option<Duration>) {
    hub.inbox.stop(StopRequest { reason: reason.into(), within });
}
