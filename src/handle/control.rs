//! The operations of a handle that change a tree: its children are added, started, held, stopped and removed.

use std::future::Future;
use std::sync::OnceLock;
use std::{fmt, slice};

use tokio::task::coop::consume_budget;

use super::route::{SupervisorHandle, check};
use crate::child::{ChildSpec, Context, check_mailboxes, once};
use crate::core::ChildRequest;
use crate::error::ControlError;
use crate::exit::Outcome;
use crate::path::Path;
use crate::policy::Layers;
use crate::runtime::SupervisorShared;
use crate::runtime::request::{
    Addition, ChildName, HandleRequest, NewChild, StartOutcome, Started,
};
use crate::status::ChildKind;
use crate::subscriber;

impl SupervisorHandle {
    /// Returns a handle to the supervisor at `path`.
    ///
    /// ```
    /// use verger::{Context, ControlError, DynamicSupervisor, Supervisor, worker};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = Supervisor::builder("app")
    ///     .child(worker("db", async |ctx: Context| ctx.cancelled().await))
    ///     .child(DynamicSupervisor::builder("conns"))
    ///     .build()?
    ///     .start()
    ///     .await?;
    ///
    /// assert_eq!(app.supervisor("conns").await?.path().as_str(), "app/conns");
    ///
    /// let error = app.supervisor("db").await.unwrap_err();
    /// assert!(matches!(error, ControlError::NotASupervisor { .. }));
    /// assert_eq!(error.to_string(), "`app/db` is not a supervisor");
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ControlError::NotASupervisor`] if the child is a worker, and the common errors.
    pub async fn supervisor(&self, path: &str) -> Result<Self, ControlError> {
        consume_budget().await;
        check(path)?;
        if let Some(supervisor) = self.supervisor.tree.supervisor(&self.full_path(path)) {
            return Ok(Self { supervisor, note: self.note.clone() });
        }
        if self.which_child(path).await?.kind == ChildKind::Worker {
            return Err(ControlError::NotASupervisor { path: self.full_path(path) });
        }
        Err(self.not_running(&self.full_path(path)).await)
    }

    /// Adds a child, last in start order, and starts it, like OTP's `start_child`. Resolves when the child is up.
    ///
    /// Also resolves if the child declines to start, or waits for a sibling that is down for good
    /// ([`ChildRef::is_gated`]) or for its first message ([`ChildRef::is_dormant`]). A function is up
    /// as soon as its task is spawned. As with `tokio::spawn`, it may not have been polled yet.
    ///
    /// If the first activation fails, the child is removed and not retried. Use [`add_child`](Self::add_child) for a
    /// child that is retried. Added children are lost when the supervisor itself is restarted. An invalid spec is refused,
    /// whether the supervisor runs or not.
    ///
    /// ```
    /// use verger::{Context, ControlError, DynamicSupervisor, Exit, Readiness, Supervisor, worker};
    ///
    /// async fn idle(ctx: Context) {
    ///     ctx.cancelled().await;
    /// }
    ///
    /// async fn refused(_ctx: Context) -> Exit {
    ///     Err("connection refused".into())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = Supervisor::builder("app")
    ///     .child(DynamicSupervisor::builder("conns").max_children(1))
    ///     .build()?
    ///     .start()
    ///     .await?;
    /// let conns = app.supervisor("conns").await?;
    ///
    /// let cache = app.start_child(worker("cache", idle)).await?;
    /// assert_eq!(cache.incarnation(), Some(1));
    ///
    /// let error = app.start_child(worker("a/b", idle)).await.unwrap_err();
    /// assert!(matches!(error, ControlError::InvalidSpec(_)));
    ///
    /// let error = app.start_child(worker("cache", idle)).await.unwrap_err();
    /// assert!(matches!(error, ControlError::NameTaken { running: true, .. }));
    ///
    /// app.stop_child("cache").await?;
    /// let error = app.start_child(worker("cache", idle)).await.unwrap_err();
    /// assert!(matches!(error, ControlError::NameTaken { running: false, .. }));
    ///
    /// conns.start_child(worker("conn", idle)).await?;
    /// let error = conns.start_child(worker("conn", idle)).await.unwrap_err();
    /// assert!(matches!(error, ControlError::MaxChildren { max: 1, .. }));
    ///
    /// let db = worker("db", refused).readiness(Readiness::Signal);
    /// let error = app.start_child(db).await.unwrap_err();
    /// assert!(matches!(error, ControlError::ActivationFailed { .. }));
    ///
    /// let slow = worker("slow", idle).readiness(Readiness::Signal);
    /// let (started, _) = tokio::join!(app.start_child(slow), app.stop_child("slow"));
    /// assert!(matches!(started, Err(ControlError::Stopped { .. })));
    ///
    /// app.stop("the example is over").await?;
    /// let error = app.start_child(worker("late", idle)).await.unwrap_err();
    /// assert!(matches!(error, ControlError::Ended { .. }));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A child that is added while its group is restarted starts with the group. If the restart fails, the call
    /// doesn't wait for the next one:
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::{Context, ControlError, Exit, Readiness, Strategy, Supervisor, worker};
    ///
    /// /// Comes up once.
    /// async fn db(ctx: Context) -> Exit {
    ///     if ctx.incarnation() == 1 {
    ///         ctx.ready();
    ///     }
    ///     tokio::time::sleep(Duration::from_secs(1)).await;
    ///     Err("connection refused".into())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = Supervisor::builder("app")
    ///     .strategy(Strategy::OneForAll)
    ///     .child(worker("db", db).readiness(Readiness::Signal))
    ///     .build()?
    ///     .start()
    ///     .await?;
    /// tokio::time::sleep(Duration::from_secs(2)).await; // `db` has failed, and is activating again.
    ///
    /// let http = worker("http", async |ctx: Context| ctx.cancelled().await);
    /// let error = app.start_child(http).await.unwrap_err();
    /// assert!(matches!(error, ControlError::Restarting { .. }));
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`ControlError::InvalidSpec`] if the spec is invalid,
    /// * [`ControlError::NameTaken`] if a child of that name exists, running or not,
    /// * [`ControlError::MaxChildren`] if a dynamic supervisor is full,
    /// * [`ControlError::ActivationFailed`] if the child failed before it was up,
    /// * [`ControlError::Stopped`] if the child was stopped before it was up,
    /// * [`ControlError::Restarting`] if a failure interrupted a restart of the group that would have come
    ///   to the child; the child was added, and is started with its group,
    ///
    /// and the common errors.
    pub async fn start_child(&self, spec: impl Into<ChildSpec>) -> Result<ChildRef, ControlError> {
        self.add(spec.into(), Addition::Start).await
    }

    async fn add(&self, spec: ChildSpec, addition: Addition) -> Result<ChildRef, ControlError> {
        let running = self.running();
        let spec = match admit(running.as_ref().unwrap_or(&self.supervisor), spec) {
            Ok(spec) => spec,
            Err(error) => {
                consume_budget().await;
                return Err(error);
            }
        };
        let Some(supervisor) = running else {
            return Err(self.not_running(self.supervisor.path()).await);
        };
        let note = self.note.clone();
        let request = |answer| HandleRequest::Start(NewChild { spec, addition, note, answer });
        self.call(&supervisor, request).await.map(|it| ChildRef::new(&supervisor, it))
    }

    /// Adds a child, last in start order, as if the builder had declared it.
    ///
    /// Resolves as soon as the child is in the tree. The supervisor starts it, and a first start that fails is an
    /// ordinary failure: the child is restarted after its backoff. Use it for a child that a reload or a user adds, and
    /// whose server may be down at that time. The child is lost when the supervisor itself is restarted.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::{Context, Exit, Readiness, Supervisor, worker};
    ///
    /// /// The server is down at first.
    /// async fn tunnel(ctx: Context) -> Exit {
    ///     if ctx.incarnation() == 1 {
    ///         return Err("connection refused".into());
    ///     }
    ///     ctx.ready();
    ///     ctx.cancelled().await;
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = Supervisor::builder("app").build()?.start().await?;
    ///
    /// let tunnel = app.add_child(worker("tunnel", tunnel).readiness(Readiness::Signal)).await?;
    /// assert_eq!(tunnel.path().as_str(), "app/tunnel");
    ///
    /// // After the backoff.
    /// assert_eq!(app.child("tunnel").await?.incarnation(), Some(2));
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`ControlError::InvalidSpec`] if the spec is invalid,
    /// * [`ControlError::NameTaken`] if a child of that name exists, running or not,
    /// * [`ControlError::MaxChildren`] if a dynamic supervisor is full,
    ///
    /// and the common errors.
    pub async fn add_child(&self, spec: impl Into<ChildSpec>) -> Result<ChildRef, ControlError> {
        self.add(spec.into(), Addition::Declare).await
    }

    /// Puts a child in the place of the child of its name. Resolves as [`start_child`](Self::start_child) does.
    ///
    /// The supervisor stops the old child, within its grace, and removes it with its counts and its mailbox. Then it
    /// adds the new one at the same place in the start order, and starts it. No sibling is stopped. Without a child of
    /// that name, the new one is last in start order. If its first start fails, its restart type decides what follows.
    ///
    /// Once the call has begun, dropping its future changes nothing.
    ///
    /// ```
    /// use verger::{Context, Supervisor, worker_with};
    ///
    /// /// Serves one address.
    /// async fn serve(ctx: Context, address: &'static str) {
    ///     ctx.set_status(address);
    ///     ctx.cancelled().await;
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = Supervisor::builder("app").child(worker_with("http", "[::1]:80", serve));
    /// let app = app.build()?.start().await?;
    ///
    /// app.replace_child(worker_with("http", "[::1]:8080", serve)).await?;
    /// # tokio::task::yield_now().await;
    /// assert_eq!(app.which_child("http").await?.status.as_deref(), Some("[::1]:8080"));
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`ControlError::InvalidSpec`] if the spec is invalid; the old child isn't stopped then,
    /// * [`ControlError::IsDynamic`] under a dynamic supervisor, whose children can have equal names,
    /// * [`ControlError::ActivationFailed`] if the new child failed before it was active,
    /// * [`ControlError::Stopped`] if it was stopped before it was active,
    /// * [`ControlError::Restarting`] if a failure interrupted a restart of the group that would have come
    ///   to the child,
    ///
    /// and the common errors.
    pub async fn replace_child(
        &self,
        spec: impl Into<ChildSpec>,
    ) -> Result<ChildRef, ControlError> {
        self.add(spec.into(), Addition::Replace).await
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
    /// The child stays down until a call, or a restart of its group, starts it; [`hold`](Self::hold) keeps it down
    /// through both. A temporary child is removed, and so is a child of a dynamic supervisor. What else it does depends
    /// on the state of the child:
    ///
    /// * A child that is down already stays down.
    /// * A child that waits for its restart, or that a callback is deciding on, is no longer restarted. If a group waits
    ///   with it, the rest of the group stays stopped.
    /// * A child that its group is about to start stays down, and the group starts without it.
    /// * If the supervisor is stopping, the call waits until that has stopped the child.
    ///
    /// ```
    /// use verger::{Context, ControlError, Lifecycle, Supervisor, worker};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
    /// let app = Supervisor::builder("app").child(db).build()?.start().await?;
    ///
    /// app.stop_child("db").await?;
    /// app.stop_child("db").await?;
    /// assert_eq!(app.which_child("db").await?.lifecycle, Lifecycle::Stopped);
    ///
    /// let error = app.stop_child("app").await.unwrap_err();
    /// assert_eq!(error.to_string(), "`app` is the root of the tree; use `stop`");
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The common errors.
    pub async fn stop_child(&self, path: &str) -> Result<(), ControlError> {
        self.act(path, "stop_child", ChildRequest::Stop).await.map(drop)
    }

    /// Stops a child, grace included, and removes it, so that its name is free. Resolves when the child is gone.
    ///
    /// Works in every state of the child. A sibling that requires it, and is started later, waits until there is a child
    /// of that name again.
    ///
    /// ```
    /// use verger::{Context, ControlError, Supervisor, worker};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
    /// let app = Supervisor::builder("app").child(db).build()?.start().await?;
    ///
    /// app.remove("db").await?;
    ///
    /// let error = app.remove("db").await.unwrap_err();
    /// assert!(matches!(error, ControlError::NotFound { .. }));
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The common errors.
    pub async fn remove(&self, path: &str) -> Result<(), ControlError> {
        self.act(path, "remove", ChildRequest::Remove).await.map(drop)
    }

    /// Runs a new incarnation of a child in any state. Resolves when the child has passed its start:
    /// when it is active, has declined to start, or waits for a requirement ([`ChildRef::is_gated`]).
    ///
    /// The restart doesn't count as a failure. What it does depends on the state of the child:
    ///
    /// * A child that runs is stopped and started again, with the children that its supervisor's strategy restarts
    ///   with it. A child that is being stopped is started when it is down.
    /// * A child that waits for its backoff is started now, and so is the group that waits with it. The failures so
    ///   far and the place on the curve stay.
    /// * A child that was given up or has leaked is started with the children that the strategy restarts with it. The
    ///   restarts so far no longer count, neither against the supervisor's limit nor against the child's own ones. A
    ///   leaked incarnation may still run beside the new one.
    /// * A child that a callback is deciding on is started. The decision is discarded.
    /// * A child that is down for another reason is started alone.
    ///
    /// ```
    /// use verger::{Context, Supervisor, worker};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
    /// let app = Supervisor::builder("app").child(db).build()?.start().await?;
    ///
    /// assert_eq!(app.restart("db").await?.incarnation(), Some(2));
    ///
    /// app.stop_child("db").await?;
    /// assert_eq!(app.restart("db").await?.incarnation(), Some(3));
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`ControlError::Withheld`] if a hold, the configuration or a lease keeps the child from being started,
    /// * [`ControlError::Spent`] if it is a [one-shot child](crate::once) that was started already,
    /// * [`ControlError::ActivationFailed`] if the new incarnation failed before it was active; its restart
    ///   type decides what follows, which the error names ([`NextStep`](crate::error::NextStep)),
    /// * [`ControlError::Stopped`] if the child was stopped before it was active,
    /// * [`ControlError::Restarting`] if a failure interrupted a restart of the group that would have come to
    ///   the child,
    ///
    /// and the common errors.
    pub async fn restart(&self, path: &str) -> Result<ChildRef, ControlError> {
        self.act(path, "restart", ChildRequest::RESTART).await
    }

    /// Brings a child up in any state. Resolves as [`restart`](Self::restart) does.
    ///
    /// A child that runs is left alone, and its incarnation is the answer. In every other state it does what
    /// [`restart`](Self::restart) does.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::policy::OnExhausted;
    /// use verger::{Context, Exit, Lifecycle, Supervisor, worker};
    ///
    /// async fn flaky(ctx: Context) -> Exit {
    ///     if ctx.incarnation() < 3 {
    ///         return Err("connection refused".into());
    ///     }
    ///     ctx.cancelled().await;
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let flaky = worker("flaky", flaky)
    ///     .own_restarts(1, Duration::from_secs(60))
    ///     .on_exhausted(OnExhausted::Park);
    /// let app = Supervisor::builder("app").child(flaky).build()?.start().await?;
    /// tokio::time::sleep(Duration::from_secs(1)).await;
    /// assert_eq!(app.which_child("flaky").await?.lifecycle, Lifecycle::Errored);
    ///
    /// assert_eq!(app.resume("flaky").await?.incarnation(), Some(3));
    /// assert_eq!(app.resume("flaky").await?.incarnation(), Some(3));
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`restart`](Self::restart). A child that runs isn't withheld.
    pub async fn resume(&self, path: &str) -> Result<ChildRef, ControlError> {
        self.act(path, "resume", ChildRequest::RESUME).await
    }

    /// Aborts a child's task, which its supervisor handles as a failure. A child that is being stopped is aborted now.
    ///
    /// Resolves when the task was aborted, which may be before it has ended. Without a task, nothing happens.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::{Context, ExitKind, Supervisor, worker};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
    /// let app = Supervisor::builder("app").child(db).build()?.start().await?;
    ///
    /// assert!(app.kill("db").await?.was_running);
    /// // It waits for its backoff.
    /// assert!(!app.kill("db").await?.was_running);
    /// tokio::time::sleep(Duration::from_secs(1)).await;
    ///
    /// assert_eq!(app.child("db").await?.incarnation(), Some(2));
    /// let last_exit = app.which_child("db").await?.last_exit.unwrap();
    /// assert_eq!(last_exit.reason.exit_kind(), ExitKind::Aborted);
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The common errors.
    pub async fn kill(&self, path: &str) -> Result<KillOutcome, ControlError> {
        match self.act(path, "kill", ChildRequest::Kill).await {
            Ok(_) => Ok(KillOutcome { was_running: true }),
            Err(ControlError::InvalidState { .. }) => Ok(KillOutcome { was_running: false }),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn act(
        &self,
        path: &str,
        call: &'static str,
        request: ChildRequest,
    ) -> Result<ChildRef, ControlError> {
        let (supervisor, segment) = self.find(path).await?;
        let note = self.note.clone();
        let started = self
            .call(&supervisor, |answer| HandleRequest::Act { segment, call, note, request, answer })
            .await
            .map_err(|error| match error {
                ControlError::NotFound { .. } if path == self.root_path().as_str() => {
                    ControlError::Root { path: self.root_path() }
                }
                error => error,
            })?;
        Ok(ChildRef::new(&supervisor, started))
    }
}

/// Checks a new child, in the caller's task.
pub(crate) fn admit(
    supervisor: &SupervisorShared,
    spec: ChildSpec,
) -> Result<ChildSpec, ControlError> {
    let mut warnings = Vec::new();
    let resolved = spec.resolved(supervisor.path(), &mut warnings)?;
    let path = || supervisor.path().clone();
    let blueprint = supervisor.blueprint();
    let rules = supervisor.resolve(&resolved.options, &blueprint.rules, Layers::default());
    blueprint.check_child(&path, &resolved, &rules, &mut warnings)?;
    if resolved.lends() {
        check_mailboxes(supervisor.path(), slice::from_ref(&resolved), true)?;
    }
    for warning in &warnings {
        subscriber::warn!(target: "verger::lifecycle", "{warning}");
    }
    Ok(resolved)
}

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
    /// app.kill("db").await?;
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
    ///   decides what follows, which the error names ([`NextStep`](crate::error::NextStep)),
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
    pub async fn reset(&self, path: &str) -> Result<(), ControlError> {
        self.act(path, "reset", ChildRequest::Reset).await.map(drop)
    }
}

/// The answer of [`SupervisorHandle::kill`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KillOutcome {
    /// Whether the child had a task, which was aborted.
    pub was_running: bool,
}

/// A child that was started or found through a handle.
///
/// ```
/// use verger::{Context, DynamicSupervisor, Supervisor, worker};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = Supervisor::builder("app").child(DynamicSupervisor::builder("conns")).build()?;
/// let app = app.start().await?;
/// let conns = app.supervisor("conns").await?;
///
/// let conn = conns.start_child(worker("conn", async |ctx: Context| ctx.cancelled().await)).await?;
/// assert_eq!(conn.name(), "conn#1");
/// assert_eq!(conn.path().as_str(), "app/conns/conn#1");
/// assert_eq!(conn.incarnation(), Some(1));
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ChildRef {
    parent: Path,
    child: ChildName,
    /// Built on demand.
    path: OnceLock<Path>,
    outcome: StartOutcome,
}

impl PartialEq for ChildRef {
    fn eq(&self, other: &Self) -> bool {
        (&self.parent, &self.child, &self.outcome) == (&other.parent, &other.child, &other.outcome)
    }
}

impl Eq for ChildRef {}

impl fmt::Debug for ChildRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ChildRef");
        shown.field("path", self.path()).field("outcome", &self.outcome).finish()
    }
}

impl ChildRef {
    pub(crate) fn new(parent: &SupervisorShared, started: Started) -> Self {
        let Started { child, outcome } = started;
        Self { parent: parent.path().clone(), child, path: OnceLock::new(), outcome }
    }

    /// Returns the path of the child.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.path.get_or_init(|| self.child.under(&self.parent))
    }

    /// Returns the last name of the child's path, to use in further calls.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path().name()
    }

    /// Returns the number of the incarnation that was started or found, if any.
    #[must_use]
    pub fn incarnation(&self) -> Option<u32> {
        match self.outcome {
            StartOutcome::Up(incarnation) => Some(incarnation),
            _ => None,
        }
    }

    /// Returns whether the child declined to start.
    #[must_use]
    pub fn declined(&self) -> bool {
        self.outcome == StartOutcome::Declined
    }

    /// Returns whether the child waits for a sibling that it requires and that is down for good.
    ///
    /// The child starts when that sibling does.
    #[must_use]
    pub fn is_gated(&self) -> bool {
        matches!(self.outcome, StartOutcome::Gated(_))
    }

    /// Returns the names of the siblings that a [gated](Self::is_gated) child waits for.
    #[must_use]
    pub fn waits_for(&self) -> &[String] {
        match &self.outcome {
            StartOutcome::Gated(siblings) => siblings,
            _ => &[],
        }
    }

    /// Returns whether the child waits for its first message, at which it starts.
    ///
    /// See [`start_on_message`](crate::ChildSpec::start_on_message).
    #[must_use]
    pub fn is_dormant(&self) -> bool {
        self.outcome == StartOutcome::Dormant
    }
}
