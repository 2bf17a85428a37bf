//! Child specs, and the factories that make each incarnation of a child.
//!
//! A [`ChildFactory`] is a name and a [`FactoryKind`]. A [`ChildSpec`] adds how the child is
//! supervised. Both are in one file, because a supervisor's factory holds the specs of its children.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::config_spec::ConfigSpec;
use super::context::Context;
use super::graces::ExplicitGraces;
use super::health::HealthCheck;
use super::identity::ChildIdentity;
use super::task::ExitFuture;
use crate::error::{BuildError, BuildWarning};
use crate::exit::ExitKind;
use crate::mailbox::MailboxControl;
use crate::panic::Foreign;
use crate::path::LazyPath;
use crate::policy::{
    ChildOptions, FailsAfter, OnExit, Readiness, WrittenLimits, child_setters, policy_setters,
};

/// A description of a child: the factory of its incarnations, and its options.
///
/// Created by [`worker`](fn@crate::worker), [`worker_with`](crate::worker_with),
/// [`child`](crate::child), [`component`](crate::component) or the `into_child` of a supervisor's
/// builder. A clone shares the factory and the options.
///
/// For an option that isn't set, the supervisor's
/// [`defaults`](crate::SupervisorBuilder::defaults) apply. The options are checked when the tree is
/// built, or when the child is added to a running supervisor.
#[derive(Clone)]
#[must_use = "a spec does nothing until it is given to a supervisor"]
pub struct ChildSpec {
    pub(crate) factory: Arc<ChildFactory>,
    pub(crate) options: Arc<ChildOptions>,
    pub(crate) requires: Vec<String>,
    /// Replaces the child when it exceeds a limit.
    pub(crate) fallback: Option<Arc<ChildSpec>>,
    pub(crate) health: Option<Arc<HealthCheck>>,
}

impl ChildSpec {
    pub(crate) fn new(name: String, kind: FactoryKind) -> Self {
        // Most children share one of these until an option is set.
        static OF_FUNCTION: LazyLock<Arc<ChildOptions>> = LazyLock::new(Arc::default);
        static OF_VALUE: LazyLock<Arc<ChildOptions>> =
            LazyLock::new(|| Arc::new(ChildOptions { signals: true, ..ChildOptions::default() }));

        let options = match kind {
            FactoryKind::Function(_) => Arc::clone(&OF_FUNCTION),
            FactoryKind::Value(_) => Arc::clone(&OF_VALUE),
            FactoryKind::Nested(_) => Arc::new(ChildOptions {
                signals: true,
                signals_itself: true,
                supervisor: Some(Duration::ZERO),
                ..ChildOptions::default()
            }),
        };
        let mut spec = Self::of(Arc::new(ChildFactory::new(name.into(), kind)), options);
        if spec.factory.mailbox().is_some_and(|mailbox| mailbox.delays_delivery()) {
            spec.edit().delays_delivery = true;
        }
        spec
    }

    /// Creates the spec of a supervisor that is checked.
    pub(crate) fn of_supervisor(resolved: Resolved) -> Self {
        let Resolved { factory, abort_bound, gives_up } = resolved;
        let mut spec = Self::of(factory, Arc::default()).supervising(abort_bound);
        spec.edit().fails_after = gives_up;
        spec
    }

    /// Whether the child, its fallback, or any child below has a mailbox.
    pub(crate) fn lends(&self) -> bool {
        self.factory.lends() || self.fallback.as_ref().is_some_and(|fallback| fallback.lends())
    }

    /// How many levels of supervisors the child or its fallback has, as far as they are declared. 0 for a
    /// worker.
    pub(crate) fn levels(&self) -> usize {
        let fallback = self.fallback.as_ref().map_or(0, |fallback| fallback.levels());
        self.factory.levels().max(fallback)
    }

    /// Moves the specs that only this one holds to `specs`: its fallback, and the children of the
    /// supervisor that it describes. Otherwise they would be dropped one inside of the other.
    pub(crate) fn take_specs(&mut self, specs: &mut Vec<Self>) {
        specs.extend(self.fallback.take().and_then(Arc::into_inner));
        if let Some(factory) = Arc::get_mut(&mut self.factory)
            && let FactoryKind::Nested(nested) = &mut factory.kind
            && let Some(nested) = Arc::get_mut(nested)
        {
            specs.append(&mut nested.take_children());
        }
    }

    fn of(factory: Arc<ChildFactory>, options: Arc<ChildOptions>) -> Self {
        Self { factory, options, requires: Vec::new(), fallback: None, health: None }
    }

    /// Marks the limits so far as those of the child's type. Later limits take precedence.
    pub(crate) fn layer(mut self) -> Self {
        if self.options.limits != WrittenLimits::default() {
            self.edit().limits.layer();
        }
        self
    }

    /// Makes it the spec of a supervisor, which signals readiness and has children to abort.
    pub(crate) fn supervising(mut self, abort_bound: Duration) -> Self {
        let options = self.edit();
        (options.signals, options.signals_itself) = (true, true);
        options.supervisor = Some(abort_bound);
        self
    }

    pub(super) fn edit(&mut self) -> &mut ChildOptions {
        Arc::make_mut(&mut self.options)
    }
}

impl fmt::Debug for ChildSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildSpec")
            .field("name", self.factory.name())
            .field("options", &self.options)
            .field("requires", &self.requires)
            .finish()
    }
}

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

    policy_setters!(self => self.edit());

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
    /// See [`Trigger::stop_if`](crate::policy::Trigger::stop_if).
    pub fn stop_if<E: Error + 'static>(
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
    /// The child needs a [mailbox](crate::mailbox()); without one, it is an error at build. Until
    /// the first message it is *dormant*: its siblings start without it, and a child that requires
    /// it waits.
    ///
    /// A message also starts the child again when it has exited and its restart type leaves it
    /// down. A message that arrived while it was running counts. So the mailbox queues all messages while
    /// the child is down, whatever its [`while_down`](crate::mailbox::Mailbox::while_down) says.
    ///
    /// After a clean exit the child starts at once, and no limit counts it. After a failure the start waits
    /// until the child's backoff is over, and counts for the child's own limits; the limit of its supervisor
    /// doesn't count it. Its
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
    /// name and its place until [`delete_child`](crate::SupervisorHandle::delete_child). If its group
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
    pub fn readiness(mut self, readiness: Readiness) -> Self {
        let signals = readiness == Readiness::Signal;
        let options = self.edit();
        (options.signals, options.signals_itself) = (signals, signals);
        self
    }

    /// Checks periodically whether the child is healthy while it is active. Default: no check.
    ///
    /// An unhealthy child is reported, and restarted only if the check says so: see [`HealthCheck`].
    /// The last check that is set counts.
    pub fn health_check(mut self, check: HealthCheck) -> Self {
        let options = self.edit();
        options.fails_unhealthy = check.restarts;
        if options.supervisor.is_none() {
            options.fails_after = check.restarts.then(|| FailsAfter::of_check(check.settings));
        }
        self.health = Some(Arc::new(check));
        self
    }

    /// Sets the type of the child's configuration. `awaits`: whether the child starts only with one.
    #[cfg(feature = "config")]
    pub(crate) fn set_config(mut self, config: ConfigSpec, awaits: bool) -> Self {
        self.edit().awaits_config = awaits;
        let factory = Arc::make_mut(&mut self.factory);
        Arc::make_mut(&mut factory.identity).config = Some(Arc::new(config));
        self
    }

    /// Returns the name of the child.
    #[must_use]
    pub fn name(&self) -> &str {
        self.factory.name()
    }
}

/// Makes the incarnations of a child.
pub(crate) trait IncarnationFactory: Send + Sync {
    /// Returns the future of one incarnation. Code of the user runs in its first poll, and not before.
    fn life(self: Arc<Self>, ctx: Context, phases: Phases) -> ExitFuture;

    fn meta(&self) -> &dyn ChildMeta;
}

/// What the future of a child with `activate`, `run` and `deactivate` does between them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Phases {
    /// The child is a supervisor of this crate.
    pub(crate) is_supervisor: bool,
    /// Sends [`Signal::Ready`](super::Signal::Ready) when `activate` has returned.
    pub(crate) signals_ready: bool,
    /// The child's shutdown grace, of which `deactivate` gets the last quarter.
    pub(crate) grace: Option<Duration>,
}

/// What is known about a child before it runs. `()` has no information.
pub(crate) trait ChildMeta: Send + Sync + 'static {
    /// The name of the type or function, unless the child is a supervisor of this crate.
    fn type_name(&self) -> Option<&'static str> {
        None
    }

    /// The mailbox that each incarnation borrows.
    fn mailbox(&self) -> Option<Arc<dyn MailboxControl>> {
        None
    }

    /// Whether the child, or any child below it, has a mailbox.
    fn lends(&self) -> bool {
        self.mailbox().is_some()
    }

    /// How many levels of supervisors it has, as far as they are declared.
    fn levels(&self) -> usize {
        0
    }

    /// The children that are declared below it, if it is a supervisor.
    fn children(&self) -> &[ChildSpec] {
        &[]
    }

    /// The blueprint of a supervisor whose children are declared, which only the upper rows know.
    #[cfg_attr(not(feature = "config"), allow(dead_code, reason = "for the module `config`"))]
    fn blueprint(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }

    /// The graces below it that were set explicitly, if it is a supervisor.
    fn explicit_graces(&self) -> ExplicitGraces {
        ExplicitGraces::default()
    }
}

impl ChildMeta for () {}

/// How each incarnation is made.
#[derive(Clone)]
pub(crate) enum FactoryKind {
    /// From an async function.
    Function(Foreign<dyn IncarnationFactory>),
    /// From a value that implements [`Child`](super::Child).
    Value(Foreign<dyn IncarnationFactory>),
    /// From a description of children that has to be checked first.
    Nested(Arc<dyn Nested>),
}

impl FactoryKind {
    fn meta(&self) -> &dyn ChildMeta {
        match self {
            Self::Function(factory) | Self::Value(factory) => factory.meta(),
            Self::Nested(_) => &(),
        }
    }
}

/// The description of a supervisor that is a child.
///
/// The description is checked in two steps with its children between them, by a caller that keeps a
/// list and doesn't recurse: a tree may be a thousand levels deep. The last name of `path` is the
/// child's, which may differ from the name given to the builder.
pub(crate) trait Nested: Send + Sync + 'static {
    fn children(&self) -> &[ChildSpec];

    /// Removes the children, so that a deep description can be dropped without recursion.
    fn take_children(&mut self) -> Vec<ChildSpec>;

    /// Checks what can be checked without the children.
    fn check(&self, path: &LazyPath) -> Result<(), BuildError>;

    /// Checks the rest and makes the supervisor runnable. `children` are its resolved children.
    fn resolve(
        &self,
        path: &LazyPath,
        children: Vec<ChildSpec>,
        warnings: &mut Vec<BuildWarning>,
    ) -> Result<Resolved, BuildError>;

    /// Returns the same description with each child replaced by `change(child)`.
    #[cfg(feature = "testing")]
    fn map(&self, change: &dyn Fn(ChildSpec) -> ChildSpec) -> Arc<dyn Nested>;
}

/// A checked description of a supervisor.
pub(crate) struct Resolved {
    pub(crate) factory: Arc<ChildFactory>,
    /// How long it may take to abort everything below.
    pub(crate) abort_bound: Duration,
    /// How long it runs until it gives up, if it does and that is known.
    pub(crate) gives_up: Option<FailsAfter>,
}

/// See the [module](self).
#[derive(Clone)]
pub(crate) struct ChildFactory {
    pub(crate) identity: Arc<ChildIdentity>,
    pub(crate) kind: FactoryKind,
}

impl ChildFactory {
    pub(crate) fn new(name: Arc<str>, kind: FactoryKind) -> Self {
        let mailbox = kind.meta().mailbox();
        Self { identity: Arc::new(ChildIdentity { name, mailbox, config: None }), kind }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.identity.name
    }

    /// Returns the future of one incarnation.
    pub(crate) fn life(&self, ctx: Context, phases: Phases) -> ExitFuture {
        match &self.kind {
            FactoryKind::Function(factory) | FactoryKind::Value(factory) => {
                Arc::clone(factory.shared()).life(ctx, phases)
            }
            FactoryKind::Nested(_) => unreachable!("a description is resolved before it is run"),
        }
    }

    fn meta(&self) -> &dyn ChildMeta {
        self.kind.meta()
    }

    pub(crate) fn type_name(&self) -> Option<&'static str> {
        self.meta().type_name()
    }

    pub(crate) fn mailbox(&self) -> Option<&Arc<dyn MailboxControl>> {
        self.identity.mailbox.as_ref()
    }

    pub(crate) fn config(&self) -> Option<&Arc<ConfigSpec>> {
        self.identity.config.as_ref()
    }

    pub(crate) fn lends(&self) -> bool {
        self.meta().lends()
    }

    pub(crate) fn levels(&self) -> usize {
        self.meta().levels()
    }

    pub(crate) fn children(&self) -> &[ChildSpec] {
        self.meta().children()
    }

    #[cfg(feature = "config")]
    pub(crate) fn blueprint(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.meta().blueprint()
    }

    pub(crate) fn explicit_graces(&self) -> ExplicitGraces {
        self.meta().explicit_graces()
    }
}

impl fmt::Debug for ChildFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildFactory").field("name", self.name()).finish_non_exhaustive()
    }
}
