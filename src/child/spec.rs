//! Child specs: how a child is made, and what is done with it.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::health::HealthCheck;
use super::limits::check_limits;
use super::seed::{Nested, Recipe, Resolved, Seed};
use crate::error::{BuildError, BuildWarning};
use crate::exit::ExitKind;
use crate::path::{Path, Trail, check_name};
use crate::policy::{
    Backoff, ChildOptions, FailureLog, OnExit, OnLeak, Readiness, Shutdown, Trigger, WrittenLimits,
};

/// How a child is made, and what is done with it.
///
/// Made by [`worker`](fn@crate::worker), [`worker_with`](crate::worker_with),
/// [`child`](crate::child), [`component`](crate::component) or the `into_child` of a supervisor's
/// builder. Cheap to clone: clones share what they run, so a spec that is used for a million
/// children is kept once.
///
/// What is left open is up to the supervisor's
/// [`defaults`](crate::SupervisorBuilder::defaults). Nothing is checked before the tree is built,
/// or the child is added to one.
#[derive(Clone)]
#[must_use = "a spec does nothing until it is given to a supervisor"]
pub struct ChildSpec {
    pub(crate) seed: Arc<Seed>,
    pub(crate) options: Arc<ChildOptions>,
    pub(crate) requires: Vec<String>,
    /// What takes its place when it has failed too often.
    pub(crate) fallback: Option<Arc<ChildSpec>>,
    /// How it is asked whether it is well.
    pub(crate) health: Option<Arc<HealthCheck>>,
}

impl ChildSpec {
    pub(crate) fn new(name: String, recipe: Recipe) -> Self {
        // Half a kilobyte that most children have in common, until somebody says something of one.
        static OF_FUNCTION: LazyLock<Arc<ChildOptions>> = LazyLock::new(Arc::default);
        static OF_OBJECT: LazyLock<Arc<ChildOptions>> =
            LazyLock::new(|| Arc::new(ChildOptions { signals: true, ..ChildOptions::default() }));

        let options = match recipe {
            Recipe::Function(_) => Arc::clone(&OF_FUNCTION),
            Recipe::Object(_) => Arc::clone(&OF_OBJECT),
            Recipe::Nested(_) => Arc::new(ChildOptions {
                signals: true,
                signals_itself: true,
                supervisor: Some(Duration::ZERO),
                ..ChildOptions::default()
            }),
        };
        let mut spec = Self::of(Seed::new(name.into(), recipe), options);
        if spec.seed.mailbox().is_some_and(|mailbox| mailbox.delays_traffic()) {
            spec.edit().delays_traffic = true;
        }
        spec
    }

    /// A supervisor that was checked already, and how long it may take to abort what is below it.
    pub(crate) fn of_supervisor(seed: Seed, abort_bound: Duration) -> Self {
        Self::of(seed, Arc::default()).supervising(abort_bound)
    }

    /// Whether it, or what takes its place, has a mailbox, or anything below.
    pub(crate) fn lends(&self) -> bool {
        self.seed.lends() || self.fallback.as_ref().is_some_and(|fallback| fallback.lends())
    }

    fn of(seed: Seed, options: Arc<ChildOptions>) -> Self {
        let seed = Arc::new(seed);
        Self { seed, options, requires: Vec::new(), fallback: None, health: None }
    }

    /// What its type says of it has been said; what is said from now on stands above that.
    pub(crate) fn layer(mut self) -> Self {
        if self.options.limits != WrittenLimits::default() {
            self.edit().limits.layer();
        }
        self
    }

    /// The same as a supervisor: it says itself when it is up, and needs time for all below it.
    pub(crate) fn supervising(mut self, abort_bound: Duration) -> Self {
        let options = self.edit();
        (options.signals, options.signals_itself) = (true, true);
        options.supervisor = Some(abort_bound);
        self
    }

    /// The same under another name, so that what makes a spec can be used twice under one
    /// supervisor.
    ///
    /// Clones that were made before keep their name, and still share what they run. A sibling that
    /// [`requires`](Self::requires) the child has to do so by the new name.
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
        self.seed.rename(name.into().into());
        self
    }

    /// When the child is started again after it has ended: a
    /// [`RestartType`](crate::RestartType) or a [`Trigger`]. Default:
    /// [`RestartType::Permanent`](crate::RestartType::Permanent), always.
    ///
    /// It replaces the supervisor's default as a whole. Exceptions of the child's own, made by
    /// [`restart_if`](Self::restart_if), [`stop_if`](Self::stop_if),
    /// [`on_error`](Self::on_error) and [`on_exit`](Self::on_exit), are not replaced, be they
    /// written before or after this. They are added to what is said here or, if nothing is, to the
    /// default, and come before the exceptions that are made there.
    pub fn restart(mut self, restart: impl Into<Trigger>) -> Self {
        self.edit().restart = Some(restart.into());
        self
    }

    /// What an end of this kind leads to, whatever the restart type says. See [`Trigger::on`].
    pub fn on_exit(mut self, kind: ExitKind, then: OnExit) -> Self {
        self.edit().exceptions.on_exit(kind, then);
        self
    }

    /// What an error leads to of which the answer is yes. See [`Trigger::on_error`].
    pub fn on_error<E: Error + 'static>(
        mut self,
        matches: impl Fn(&E) -> bool + Send + Sync + 'static,
        then: OnExit,
    ) -> Self {
        self.edit().exceptions.on_error(matches, then);
        self
    }

    /// Restarts the child after an error of which the answer is yes, whatever its restart type. See
    /// [`Trigger::restart_if`].
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

    /// Leaves the child after an error of which the answer is yes, whatever its restart type. See
    /// [`Trigger::stop_if`].
    pub fn stop_if<E: Error + 'static>(
        self,
        matches: impl Fn(&E) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.on_error(matches, OnExit::Leave)
    }

    /// How long the child may take to stop before it is aborted: a [`Duration`] or a [`Shutdown`].
    /// Default: 5 s; for a supervisor [`Shutdown::Infinity`], since its children have graces of
    /// their own.
    pub fn shutdown(mut self, shutdown: impl Into<Shutdown>) -> Self {
        self.edit().shutdown = Some(shutdown.into());
        self
    }

    /// How long to wait before each restart. Default: exponential from 200 ms to 30 s, with a
    /// jitter of a fifth.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.edit().backoff = Some(backoff);
        self
    }

    /// Lets the end of this child end its supervisor, which must have an
    /// [`AutoShutdown`](crate::AutoShutdown). Not for children that are restarted after every end,
    /// as permanent ones are.
    pub fn significant(mut self) -> Self {
        self.edit().significant = true;
        self
    }

    /// Starts the child, and each new incarnation of it, only while the sibling `name` is Active
    /// or has ended normally. May be called several times.
    ///
    /// A sibling that fails does not stop the children that require it: that is what
    /// [`Strategy::RestForOne`](crate::Strategy::RestForOne) does.
    pub fn requires(mut self, name: impl Into<String>) -> Self {
        self.requires.push(name.into());
        self
    }

    /// Starts the child when the first message for it arrives, not with its supervisor. It needs a
    /// [mailbox](crate::mailbox()); without one, it is an error at build.
    ///
    /// Until then it is *dormant*: the others start without it, and whoever requires it waits. A
    /// message also starts it again when it has ended and its restart type leaves it, be it after a
    /// clean end or after a failure; a message that came while it ran counts as well. That is not a
    /// restart: it waits for no backoff, and no limit counts it. The child's
    /// [start cause](crate::Context::start_cause) is
    /// [`StartCause::OnMessage`](crate::StartCause::OnMessage).
    ///
    /// A child that ends without having done anything about its messages, and is not restarted, isn't
    /// started again by the same ones: they become dead letters, `handler_error`.
    ///
    /// No message starts a child that was stopped by hand, that has declined to start, has leaked, or
    /// was given up on. Once it runs, it is restarted, stopped and started with its group like any
    /// other child.
    ///
    /// A permanent child, which comes back after each end, is so started once; one that is to be
    /// there only while there is something to do is
    /// [transient](crate::RestartType::Transient), or has a [`Trigger`] that leaves it. A temporary
    /// one is forgotten at its first end, and its mailbox with it. A dynamic supervisor keeps the
    /// others when they have ended, and they count as children of it.
    pub fn start_on_message(mut self) -> Self {
        self.edit().on_message = true;
        self
    }

    /// When the child counts as ready. Default: a function as soon as it is spawned; another child
    /// when its `activate` has returned `Ok`; a supervisor when it has started all its children.
    pub fn readiness(mut self, readiness: Readiness) -> Self {
        let signals = readiness == Readiness::Signal;
        let options = self.edit();
        (options.signals, options.signals_itself) = (signals, signals);
        self
    }

    /// How long the child may take to become ready before that is a failure. Default: for ever.
    pub fn activation_timeout(mut self, timeout: Duration) -> Self {
        self.edit().activation_timeout = Some(timeout);
        self
    }

    /// What to do if the child is still there after it was aborted. Default:
    /// [`OnLeak::Restart`].
    pub fn on_leak(mut self, on_leak: OnLeak) -> Self {
        self.edit().on_leak = Some(on_leak);
        self
    }

    /// How loudly its failures are logged. Default: each as a warning.
    pub fn failure_log(mut self, log: FailureLog) -> Self {
        self.edit().failure_log = Some(log);
        self
    }

    /// The child's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.seed.name
    }

    pub(super) fn edit(&mut self) -> &mut ChildOptions {
        Arc::make_mut(&mut self.options)
    }

    /// Checks what can be checked without the siblings, and makes a nested description runnable.
    pub(crate) fn resolve(
        &self,
        trail: &mut Trail,
        warnings: &mut Vec<BuildWarning>,
    ) -> Result<Self, BuildError> {
        /// A description some of whose children are resolved.
        struct Open<'a> {
            spec: &'a ChildSpec,
            nested: &'a dyn Nested,
            children: Vec<ChildSpec>,
        }

        let mut open: Vec<Open<'_>> = Vec::new();
        let mut spec = self;
        loop {
            spec.check(&|| trail.path())?;
            let mut resolved = None;
            if let Recipe::Nested(nested) = spec.seed.recipe() {
                trail.push(&spec.seed.name);
                nested.check(trail)?;
                open.push(Open { spec, nested: &**nested, children: Vec::new() });
            } else {
                resolved = Some(spec.clone().with_fallback(trail, warnings)?);
            }
            // Up to the next child that is not resolved.
            spec = loop {
                let Some(mut last) = open.pop() else {
                    return Ok(resolved.unwrap_or_else(|| spec.clone()));
                };
                last.children.extend(resolved.take());
                if let Some(next) = last.nested.children().get(last.children.len()) {
                    open.push(last);
                    break next;
                }
                let Open { spec, nested, children } = last;
                let Resolved { seed, abort_bound } = nested.resolve(trail, children, warnings)?;
                trail.pop();
                let mut runnable = spec.clone();
                runnable.seed = seed;
                runnable.edit().supervisor = Some(abort_bound);
                resolved = Some(runnable.with_fallback(trail, warnings)?);
            };
        }
    }

    /// The same for a spec that is not needed any more: most have nothing to be resolved.
    pub(crate) fn resolved(
        self,
        parent: &Path,
        warnings: &mut Vec<BuildWarning>,
    ) -> Result<Self, BuildError> {
        if self.fallback.is_some() || matches!(self.seed.recipe(), Recipe::Nested(_)) {
            return self.resolve(&mut Trail::from(parent.clone()), warnings);
        }
        self.check(&|| parent.clone()).map(|()| self)
    }

    /// Checks the child itself.
    fn check(&self, parent: &dyn Fn() -> Path) -> Result<(), BuildError> {
        check_name(&self.seed.name)
            .map_err(|problem| BuildError::BadName { parent: parent().to_string(), problem })?;
        let path = || parent().join(&self.seed.name);
        if let Some(backoff) = &self.options.backoff {
            backoff.check().map_err(|problem| BuildError::BadBackoff { path: path(), problem })?;
        }
        check_limits(&self.options, &path)?;
        if self.options.on_message && self.seed.mailbox().is_none() {
            return Err(BuildError::NoMailbox { path: path() });
        }
        if let Some(health) = &self.health {
            health.check(&path())?;
        }
        if self.options.activation_timeout.is_some_and(|timeout| timeout.is_zero()) {
            let (path, example) = (path(), Duration::from_secs(10));
            return Err(BuildError::ZeroDuration { path, option: "activation timeout", example });
        }
        Ok(())
    }
}

impl fmt::Debug for ChildSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildSpec")
            .field("name", &self.seed.name)
            .field("options", &self.options)
            .field("requires", &self.requires)
            .finish()
    }
}

/// What children get that do not say otherwise; see
/// [`SupervisorBuilder::defaults`](crate::SupervisorBuilder::defaults).
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ChildDefaults {
    pub(crate) options: ChildOptions,
}

impl ChildDefaults {
    /// See [`ChildSpec::restart`]. Exceptions are part of a [`Trigger`].
    pub fn restart(mut self, restart: impl Into<Trigger>) -> Self {
        self.options.restart = Some(restart.into());
        self
    }

    /// See [`ChildSpec::shutdown`]. Does not apply to supervisors, which have to outlive their
    /// children.
    pub fn shutdown(mut self, shutdown: impl Into<Shutdown>) -> Self {
        self.options.shutdown = Some(shutdown.into());
        self
    }

    /// See [`ChildSpec::backoff`].
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.options.backoff = Some(backoff);
        self
    }

    /// See [`ChildSpec::activation_timeout`].
    pub fn activation_timeout(mut self, timeout: Duration) -> Self {
        self.options.activation_timeout = Some(timeout);
        self
    }

    /// See [`ChildSpec::failure_log`].
    pub fn failure_log(mut self, log: FailureLog) -> Self {
        self.options.failure_log = Some(log);
        self
    }

    /// See [`ChildSpec::on_leak`].
    pub fn on_leak(mut self, on_leak: OnLeak) -> Self {
        self.options.on_leak = Some(on_leak);
        self
    }
}
