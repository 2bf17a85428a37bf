//! The options that a child spec can be given, and the defaults of a supervisor for them.

use std::error::Error;
use std::sync::Arc;

use super::health::HealthCheck;
use super::spec::{ChildSpec, ConfigSpec};
use crate::exit::ExitKind;
use crate::policy::{ChildOptions, FailsAfter, OnExit, Readiness, child_setters, policy_setters};

impl ChildSpec {
    /// Renames the child, so that one function can create several children of a supervisor.
    ///
    /// Earlier clones keep their name. A sibling that [`requires`](Self::requires) the child must
    /// use the new name.
    ///
    /// ```
    /// use verger::{ChildSpec, Context, RestartType, Supervisor, worker};
    ///
    /// fn poller() -> ChildSpec {
    ///     let poll = async |ctx: Context| ctx.cancelled().await;
    ///     worker("poller", poll).restart(RestartType::Transient)
    /// }
    ///
    /// let app = Supervisor::builder("app")
    ///     .child(poller().named("north"))
    ///     .child(poller().named("south"))
    ///     .build()?;
    /// # drop(app);
    /// # Ok::<_, verger::BuildError>(())
    /// ```
    pub fn named(mut self, name: impl Into<String>) -> Self {
        let factory = Arc::make_mut(&mut self.factory);
        Arc::make_mut(&mut factory.identity).name = name.into().into();
        self
    }

    /// Sets the version of the child's code, such as `1.0`, which the status shows. Default: none.
    ///
    /// It is informational only.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.edit().version = Some(version.into().into());
        self
    }

    policy_setters!(self => self.edit().values.policy);

    child_setters!(self => self.edit());

    /// Sets what an exit of this kind leads to, regardless of the restart type.
    ///
    /// See [`Trigger::on`](crate::policy::Trigger::on).
    pub fn on_exit(mut self, kind: ExitKind, then: OnExit) -> Self {
        self.edit().exceptions.on_exit(kind, then);
        self
    }

    /// Sets what an error leads to, if `matches` returns `true` for it.
    ///
    /// See [`Trigger::on_error`](crate::policy::Trigger::on_error).
    pub fn on_error<E: Error + 'static>(
        mut self,
        matches: impl Fn(&E) -> bool + Send + Sync + 'static,
        then: OnExit,
    ) -> Self {
        self.edit().exceptions.on_error(matches, then);
        self
    }

    /// Restarts the child after an error for which `matches` returns `true`.
    ///
    /// See [`Trigger::restart_if`](crate::policy::Trigger::restart_if).
    ///
    /// ```
    /// use std::io;
    ///
    /// use verger::{Context, Exit, RestartType, worker};
    ///
    /// async fn poll(ctx: Context) -> Exit {
    ///     ctx.cancelled().await;
    ///     Ok(())
    /// }
    ///
    /// let poller = worker("poller", poll)
    ///     .restart(RestartType::OnAbnormal)
    ///     .restart_if(|error: &io::Error| error.kind() == io::ErrorKind::ConnectionReset);
    /// # drop(poller);
    /// ```
    pub fn restart_if<E: Error + 'static>(
        self,
        matches: impl Fn(&E) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.on_error(matches, OnExit::Restart)
    }

    /// Leaves the child down after an error for which `matches` returns `true`.
    ///
    /// See [`Trigger::leave_down_if`](crate::policy::Trigger::leave_down_if).
    ///
    /// ```
    /// use std::io;
    ///
    /// use verger::{Context, worker};
    ///
    /// # async fn import(_ctx: Context) -> io::Result<()> { Ok(()) }
    /// let importer = worker("importer", import)
    ///     .leave_down_if(|error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied);
    /// # drop(importer);
    /// ```
    pub fn leave_down_if<E: Error + 'static>(
        self,
        matches: impl Fn(&E) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.on_error(matches, OnExit::Leave)
    }

    /// Replaces the child by `spec` when it exceeds a restart limit, its own or its supervisor's.
    ///
    /// Use it for a simpler service in place of the usual one. The fallback has the name and the
    /// position of the child. Siblings that require the child then require the fallback, and it
    /// starts when the requirements of the child are met. All its other options are its own: its
    /// restart type, limits, backoff and grace. It starts at once with the rest of the child's
    /// range, uncharged, and its limits start at zero. If it exceeds a limit as well, its own
    /// [`on_exhausted`](Self::on_exhausted) or fallback applies.
    ///
    /// The fallback stays until the supervisor restarts, or the child is deleted and added again.
    /// The status shows it as *fallback*.
    ///
    /// ```
    /// use verger::{Context, Supervisor, worker};
    ///
    /// async fn recommend(ctx: Context) {
    ///     ctx.cancelled().await
    /// }
    ///
    /// async fn bestsellers(ctx: Context) {
    ///     ctx.cancelled().await
    /// }
    ///
    /// let fallback = worker("bestsellers", bestsellers);
    /// let shop = Supervisor::builder("shop")
    ///     .child(worker("offers", recommend).consecutive_restarts(3).fallback(fallback))
    ///     .build()?;
    /// # drop(shop);
    /// # Ok::<_, verger::BuildError>(())
    /// ```
    pub fn fallback(mut self, spec: impl Into<Self>) -> Self {
        self.fallback = Some(Arc::new(spec.into()));
        self
    }

    /// Makes the child significant: its exit can end its supervisor.
    ///
    /// The supervisor must have an [`AutoShutdown`](crate::policy::AutoShutdown). A child that is restarted
    /// after every exit, such as a permanent one, can't be significant.
    pub fn significant(mut self) -> Self {
        self.edit().significant = true;
        self
    }

    /// Sets whether the tree is [ready](crate::status::Status::is_ready) only if the child is. Default: `true`,
    /// and `false` for the children of a [`DynamicSupervisor`](crate::DynamicSupervisor).
    ///
    /// What is below a supervisor that isn't essential doesn't count.
    pub fn essential(mut self, essential: bool) -> Self {
        self.edit().essential = Some(essential);
        self
    }

    /// Starts each incarnation only while the sibling `name` is active or has ended normally.
    ///
    /// Call it once for each requirement. A sibling that fails doesn't stop the children that
    /// require it; use [`Strategy::RestForOne`](crate::Strategy::RestForOne) for that.
    ///
    /// ```
    /// use verger::{Context, Supervisor, worker};
    ///
    /// # async fn db(ctx: Context) { ctx.cancelled().await }
    /// # async fn api(ctx: Context) { ctx.cancelled().await }
    /// let app = Supervisor::builder("app")
    ///     .child(worker("db", db))
    ///     .child(worker("api", api).requires("db"));
    /// # drop(app);
    /// ```
    pub fn requires(mut self, name: impl Into<String>) -> Self {
        self.requires.push(name.into());
        self
    }

    /// Sets the child's place among its siblings when their supervisor stops: lower numbers stop first.
    /// Default: 0.
    ///
    /// Give what others need until the end, such as a logger, a high number. Since children start in the
    /// reverse of the order in which they stop, it also starts first, wherever it is declared. Of two
    /// children with the same number, the one that is declared later stops first.
    ///
    /// A child that a handle adds to a running supervisor stops before those that are there, whatever its
    /// number. The children of a [`DynamicSupervisor`](crate::DynamicSupervisor) stop at once.
    pub fn stop_order(mut self, order: i8) -> Self {
        self.edit().stop_order = order;
        self
    }

    /// Starts the child at its first message, and not with its supervisor.
    ///
    /// The child needs a mailbox; without one, it is an error at build. Until
    /// the first message it is *dormant*: its siblings start without it, and a child that requires
    /// it waits.
    ///
    /// A message also starts the child again when it has exited and its restart type leaves it
    /// down. A message that arrived while it was running counts. So the mailbox queues all messages while
    /// the child is down, whatever its `while_down` says.
    ///
    /// After a clean exit the child starts immediately, and the start is charged to no limit. After a failure the start
    /// waits until the child's backoff is over, and is charged to the child's own limits, but not to the limit of its
    /// supervisor. Under the preset [`elfo`](crate::policy::Preset::elfo), a message starts a temporary child
    /// immediately and without a charge even then. Its
    /// [start cause](crate::Context::start_cause) is
    /// [`StartCause::OnMessage`](crate::policy::StartCause::OnMessage).
    ///
    /// If a child exits without having handled any of its messages, and isn't restarted, the same
    /// messages don't start it again. They become dead letters with the reason `handler_error`.
    ///
    /// No message starts a child that was stopped by a call, has declined to start, has leaked, or
    /// was given up. Once it runs, it restarts and stops with its group like any other child.
    ///
    /// A permanent child is restarted after each exit, so a message starts it only once. A child
    /// that should run only while there is work should be
    /// [transient](crate::RestartType::Transient) or [temporary](crate::RestartType::Temporary), or have
    /// a [`Trigger`](crate::policy::Trigger) that leaves it down.
    ///
    /// A temporary child is kept when it has ended: it is *stopped*, also after a failure, and keeps its
    /// name and its place until [`remove`](crate::SupervisorHandle::remove). If its group
    /// restarts, it is dormant until the next message. Under the presets
    /// [`otp`](crate::policy::Preset::otp) and [`elixir`](crate::policy::Preset::elixir) it is removed at
    /// its first exit, with its mailbox. A dynamic supervisor also keeps children with this option after
    /// their exit, and they count towards its limit of children.
    pub fn start_on_message(mut self) -> Self {
        self.edit().on_message = true;
        self
    }

    /// Sets when the child counts as ready.
    ///
    /// Default: a function when it is spawned; a [`Child`](crate::Child) when its `activate` has
    /// returned `Ok`; a supervisor when it has started all of its children.
    ///
    /// ```
    /// use verger::{Context, Readiness, worker};
    ///
    /// async fn cache(ctx: Context) {
    ///     // Load the entries, and then let the next child start.
    ///     ctx.ready();
    ///     ctx.cancelled().await;
    /// }
    ///
    /// let cache = worker("cache", cache).readiness(Readiness::Signal);
    /// # drop(cache);
    /// ```
    pub fn readiness(mut self, readiness: Readiness) -> Self {
        let signals = readiness == Readiness::Signal;
        let options = self.edit();
        (options.facts.signals, options.facts.signals_itself) = (signals, signals);
        self
    }

    /// Checks periodically whether the child is healthy while it is active. Default: no check.
    ///
    /// An unhealthy child is reported, and restarted only if the check says so: see [`HealthCheck`].
    /// The last check that is set counts.
    pub fn health_check(mut self, check: HealthCheck) -> Self {
        let options = self.edit();
        options.fails_unhealthy = check.restarts;
        if !options.facts.kind.is_supervisor() {
            options.facts.fails_after =
                check.restarts.then(|| FailsAfter::of_check(check.settings));
        }
        self.health = Some(Arc::new(check));
        self
    }

    /// Sets the type of the child's configuration. `awaits`: whether the child starts only with one.
    pub(crate) fn set_config(mut self, config: ConfigSpec, awaits: bool) -> Self {
        self.edit().awaits_config = awaits;
        let factory = Arc::make_mut(&mut self.factory);
        Arc::make_mut(&mut factory.identity).config = Some(Arc::new(config));
        self
    }
}

/// Defaults for the children of a supervisor.
///
/// Set with [`SupervisorBuilder::defaults`](crate::SupervisorBuilder::defaults). The options of a
/// spec take precedence over the defaults, and the defaults over a
/// [preset](crate::SupervisorBuilder::preset). The limits on restarts count for each child
/// separately.
///
/// ```
/// use std::time::Duration;
///
/// use verger::{Context, RestartType, Supervisor, worker};
///
/// async fn idle(ctx: Context) {
///     ctx.cancelled().await;
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = Supervisor::builder("app")
///     .defaults(|child| child.restart(RestartType::Transient).shutdown(Duration::from_secs(20)))
///     .child(worker("db", idle))
///     .child(worker("cache", idle).restart(RestartType::Permanent))
///     .build()?
///     .start()
///     .await?;
///
/// assert_eq!(app.child_spec("db").await?.restart, RestartType::Transient);
/// assert_eq!(app.child_spec("cache").await?.restart, RestartType::Permanent);
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ChildDefaults {
    pub(crate) options: ChildOptions,
}

impl ChildDefaults {
    policy_setters!(self => self.options.values.policy);

    child_setters!(self => self.options);
}
