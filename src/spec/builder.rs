//! Builders of supervisors.

use std::sync::Arc;
use std::time::Duration;

use super::description::Description;
use super::{Supervisor, check};
use crate::child::{ChildDefaults, ChildSpec, FactoryKind};
use crate::error::BuildError;
use crate::policy::{
    AutoShutdown, ChildFailure, FailureAnswer, FailureCallback, FirstStart, Intensity, OnExhausted,
    Preset, Random, RandomFactory, Start, Strategy,
};

/// A builder of a [`Supervisor`] with ordered children.
///
/// Created by [`Supervisor::builder`]. The order of the calls doesn't matter, except that children
/// start in the order of the [`child`](Self::child) calls. Nothing is checked before
/// [`build`](Self::build). Explicit values take precedence over a [`preset`](Self::preset).
///
/// ```
/// use std::time::Duration;
///
/// use verger::policy::Start;
/// use verger::{Context, Strategy, Supervisor, worker};
///
/// async fn idle(ctx: Context) {
///     ctx.cancelled().await;
/// }
///
/// # fn main() -> Result<(), verger::BuildError> {
/// let ingest = Supervisor::builder("ingest")
///     .strategy(Strategy::RestForOne)
///     .restarts(10, Duration::from_secs(60))
///     .child(worker("socket", idle))
///     .child(worker("parser", idle));
///
/// let tree = Supervisor::builder("app")
///     .start(Start::Concurrent)
///     .defaults(|child| child.shutdown(Duration::from_secs(20)))
///     .child(worker("db", idle))
///     .child(ingest)
///     .build()?;
/// # drop(tree);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct SupervisorBuilder {
    pub(crate) description: Description,
}

/// A builder of a dynamic supervisor, created by [`DynamicSupervisor::builder`].
///
/// ```
/// use verger::policy::OnExhausted;
/// use verger::{DynamicSupervisor, Supervisor};
///
/// let sessions = DynamicSupervisor::builder("sessions")
///     .max_children(1000)
///     // Keeps a session that exceeds its limit, for `resume`.
///     .on_exhausted(OnExhausted::Park);
/// let tree = Supervisor::builder("app").child(sessions).build()?;
/// # drop(tree);
/// # Ok::<(), verger::BuildError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct DynamicSupervisorBuilder {
    pub(crate) description: Description,
}

/// A supervisor of children that are added and removed at run time: connections, jobs, sessions.
///
/// Add children with [`start_child`](crate::SupervisorHandle::start_child); they can be of any kind.
/// They have no order. Each is restarted independently, and is removed when it has ended for good: after an
/// exit that isn't followed by a restart, when it is stopped by a call, or when it exceeds a restart limit.
/// With [`OnExhausted::StopChild`] or [`OnExhausted::Park`], a child that exceeds a limit is kept for
/// [`resume`](crate::SupervisorHandle::resume). Names can repeat: each child has a serial number as well, as in
/// `conn#17`. All children stop at the same time. It is modelled on Elixir's `DynamicSupervisor`.
///
/// By default each child has its own restart limit, 12 in 5 min, and is removed when it exceeds it, so that
/// one that keeps failing doesn't end the others. [`restarts`](DynamicSupervisorBuilder::restarts) sets a limit for
/// all children together, as in OTP, in place of that default.
///
/// ```
/// use verger::{Context, DynamicSupervisor, Exit, RestartType, Supervisor, worker};
///
/// async fn serve(ctx: Context) -> Exit {
///     ctx.cancelled().await;
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = Supervisor::builder("app")
///     .child(DynamicSupervisor::builder("conns").max_children(1000))
///     .build()?
///     .start()
///     .await?;
///
/// let conns = app.supervisor("conns").await?;
/// let conn = conns.start_child(worker("conn", serve).restart(RestartType::Temporary)).await?;
/// assert_eq!(conn.name(), "conn#1");
///
/// conns.stop_child(conn.name()).await?;
/// app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
///
/// The type has no data. Its value can be the type of a field, which declares such a supervisor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DynamicSupervisor;

impl DynamicSupervisor {
    /// Creates a builder of a dynamic supervisor with this name.
    #[track_caller]
    pub fn builder(name: impl Into<String>) -> DynamicSupervisorBuilder {
        DynamicSupervisorBuilder { description: Description::new(name.into(), true) }
    }
}

impl Supervisor {
    /// Creates a builder of a supervisor with this name.
    ///
    /// ```
    /// use verger::{Context, Supervisor, worker};
    ///
    /// # async fn db(ctx: Context) { ctx.cancelled().await }
    /// let app = Supervisor::builder("app").child(worker("db", db)).build()?;
    /// # drop(app);
    /// # Ok::<_, verger::BuildError>(())
    /// ```
    #[track_caller]
    pub fn builder(name: impl Into<String>) -> SupervisorBuilder {
        SupervisorBuilder { description: Description::new(name.into(), false) }
    }
}

/// A builder of a supervisor, ordered or dynamic.
///
/// This trait is sealed and can't be implemented outside of this crate.
///
/// The example of [`Context::children_with`](crate::Context::children_with) passes one.
pub trait TreeBuilder: sealed::Sealed {}

impl TreeBuilder for SupervisorBuilder {}

impl TreeBuilder for DynamicSupervisorBuilder {}

mod sealed {
    use super::{Description, DynamicSupervisorBuilder, SupervisorBuilder};

    /// Keeps [`TreeBuilder`](super::TreeBuilder) to this crate.
    pub trait Sealed {
        fn into_description(self) -> Description;
    }

    impl Sealed for SupervisorBuilder {
        fn into_description(self) -> Description {
            self.description
        }
    }

    impl Sealed for DynamicSupervisorBuilder {
        fn into_description(self) -> Description {
            self.description
        }
    }
}

/// Builds the tree of either builder.
#[cfg(feature = "testing")]
pub(crate) fn build(builder: impl TreeBuilder) -> Result<Supervisor, BuildError> {
    check::root(&builder.into_description())
}

/// Never implemented: its bound reports a call of `with_graceful_shutdown` on a builder.
#[diagnostic::on_unimplemented(
    message = "a builder can't run a tree; call `build()` first",
    label = "write `.build()?.with_graceful_shutdown(…)`"
)]
pub trait Built<'a> {}

/// The methods that both builders have.
macro_rules! common_options {
    () => {
        /// Allows `max` restarts within a sliding `period`, for all children together, as in OTP. Default: no such
        /// limit.
        ///
        /// Without it, each child has its own limit: see
        /// [`ChildSpec::own_restarts`](crate::ChildSpec::own_restarts). This limit replaces that default. A limit
        /// that is written for a child applies beside it.
        ///
        /// At the next restart the supervisor gives up: see [`on_exhausted`](Self::on_exhausted). Zero allows
        /// none.
        ///
        /// An instant exactly `period` ago still counts. An error of a child that wasn't active yet isn't charged
        /// as long as its delay is above zero, so that an outage doesn't look like a bug:
        /// [`count_failed_starts`](Self::count_failed_starts) changes that. A panic is always charged. With
        /// [`Duration::MAX`] a restart counts for as long as the supervisor lives.
        ///
        /// ```
        /// use std::time::Duration;
        ///
        /// use verger::Supervisor;
        ///
        /// let app = Supervisor::builder("app").restarts(3, Duration::from_secs(60));
        /// # drop(app);
        /// ```
        pub fn restarts(self, max: u32, period: Duration) -> Self {
            self.intensity(Intensity::sliding(max, period))
        }

        /// Limits the restarts by a window other than a sliding one.
        ///
        /// See [`restarts`](Self::restarts).
        pub fn intensity(mut self, intensity: Intensity) -> Self {
            self.description.options.restarts(Some(intensity));
            self
        }

        /// Removes the default limit on the restarts of each child.
        ///
        /// A limit that is written for a child, on its spec or in the [defaults](Self::defaults), still applies.
        pub fn unlimited_restarts(mut self) -> Self {
            self.description.options.restarts(None);
            self
        }

        /// Sets whether failures before a child is active are charged to the restart limits. Default: `false`.
        ///
        /// Without it, a child that can't start is tried again with its [backoff](ChildDefaults::backoff) for as long
        /// as that takes: a service recovers when its database does. With it, such a child is given up like one that
        /// fails later, as in OTP. A panic, a restart without a delay and the failure of a supervisor are charged in
        /// either case, and limits that are written for a child are charged every failure. A written `false`
        /// overrides a [preset](Self::preset).
        ///
        /// ```
        /// use std::time::Duration;
        ///
        /// use verger::{Context, Supervisor, worker};
        ///
        /// # let plugin = worker("plugin", async |ctx: Context| ctx.cancelled().await);
        /// // A plugin that fails to start four times within a minute is a bug.
        /// let app = Supervisor::builder("plugins")
        ///     .restarts(3, Duration::from_secs(60))
        ///     .count_failed_starts(true)
        ///     .child(plugin);
        /// # drop(app);
        /// ```
        pub fn count_failed_starts(mut self, count: bool) -> Self {
            self.description.options.values.count_failed_starts = Some(count);
            self
        }

        /// Sets what happens when a child exceeds a restart limit. Default: [`OnExhausted::Escalate`]; for a
        /// [`DynamicSupervisor`]: [`OnExhausted::Remove`].
        ///
        /// A child can have its own answer: see
        /// [`ChildSpec::on_exhausted`](crate::ChildSpec::on_exhausted).
        pub fn on_exhausted(mut self, on_exhausted: OnExhausted) -> Self {
            self.description.options.values.on_exhausted = Some(on_exhausted);
            self
        }

        /// Sets a callback that decides what happens to a child that has failed. Default: none.
        ///
        /// `decide` is a function or an async function. It returns a
        /// [`FailureDecision`](crate::policy::FailureDecision), a `bool` (`true` restarts, `false` gives up), or a
        /// `Result` of one of them. An async closure that captures a value must not move it into its future:
        /// see [`worker`](fn@crate::worker).
        ///
        /// * It is called for every failure that would be followed by a restart, even before the child was
        ///   active. It isn't called for clean exits, for children that were cancelled, and for first starts
        ///   whose failure is returned to a caller ([`start_child`], [`restart_child`]) or handled by
        ///   [`FirstStart::Fail`].
        /// * It applies to all supervisors below as well, down to the next one with its own callback. The
        ///   supervisor of the child carries out the decision.
        /// * It runs in its own task, for at most 5 s. If it returns an error, panics or takes longer, this
        ///   is logged and the failure escalates.
        /// * Meanwhile the child is [`Errored`](crate::Lifecycle::Errored), and its siblings keep running.
        ///   [`restart_child`] returns [`InvalidState`](crate::ControlError::InvalidState). The
        ///   decision is discarded if the child is started, stopped or removed before: by [`restart`], [`resume`],
        ///   [`stop_child`], [`remove`], the restart of its group, or the end of its supervisor.
        /// * The restart limits are checked when the decision arrives. The backoff counts from the failure.
        ///
        /// ```
        /// use verger::policy::{ChildFailure, FailureDecision};
        /// use verger::Supervisor;
        ///
        /// async fn failed(failure: ChildFailure) -> FailureDecision {
        ///     if failure.error.to_string().contains("bad credentials") {
        ///         return FailureDecision::give_up();
        ///     }
        ///     FailureDecision::restart()
        /// }
        ///
        /// let by_function = Supervisor::builder("app").on_child_failure(failed);
        /// let by_closure = Supervisor::builder("app").on_child_failure(|failure| failure.attempt < 5);
        /// # drop((by_function, by_closure));
        /// ```
        ///
        /// [`FirstStart::Fail`]: crate::policy::FirstStart::Fail
        /// [`start_child`]: crate::SupervisorHandle::start_child
        /// [`restart_child`]: crate::OtpCalls::restart_child
        /// [`resume`]: crate::SupervisorHandle::resume
        /// [`restart`]: crate::SupervisorHandle::restart
        /// [`stop_child`]: crate::SupervisorHandle::stop_child
        /// [`remove`]: crate::SupervisorHandle::remove
        pub fn on_child_failure<F, A, When>(mut self, decide: F) -> Self
        where
            F: Fn(ChildFailure) -> A + Send + Sync + 'static,
            A: FailureAnswer<When> + 'static,
            When: 'static,
        {
            self.description.options.on_child_failure = Some(FailureCallback::new(decide));
            self
        }

        /// Sets how long an aborted child may keep running until it is reported as leaked. Default: 1 s.
        ///
        /// The supervisor then goes on without it. tokio aborts a task only at an await point, so code that
        /// blocks its thread can't be aborted.
        pub fn leak_timeout(mut self, timeout: Duration) -> Self {
            self.description.options.values.leak_timeout = Some(timeout);
            self
        }

        /// Sets how long [`stop`](crate::SupervisorHandle::stop) may take as a whole.
        ///
        /// The remaining children are aborted then. Default: the sum of the children's graces. The
        /// [stages](crate::app::StopStages) of an application apply as well.
        pub fn stop_deadline(mut self, deadline: Duration) -> Self {
            self.description.options.values.stop_deadline = Some(deadline);
            self
        }

        /// Sets whether a thread of the process watches this tree for blocked threads. Default: `true`.
        ///
        /// A child that blocks its worker thread can stop all timers of a runtime with several workers. So an
        /// [`Application`](crate::Application), and any other root whose tree has a watchdog, a restarting health check,
        /// an activation timeout, a run-time limit, a lease or a [`stop_deadline`](Self::stop_deadline), has the thread
        /// `verger-watch` wake a free worker five times a second. The thread also logs polls that last 5 s or
        /// longer, and a runtime that makes no progress. There is one for the whole process, and none for a tree on a
        /// `current_thread` runtime without an application. Only the setting of the root has an effect.
        pub fn self_check(mut self, checks: bool) -> Self {
            self.description.options.unwatched = !checks;
            self
        }

        /// Sets whether the time that each child keeps its threads busy is measured. Default: while a
        /// [console](crate::console) shows the tree or [metrics](crate::metrics) are recorded.
        ///
        /// [`ChildInfo::busy`](crate::status::ChildInfo::busy) has the figures, which show the child that makes a
        /// program slow. A poll then reads the clock twice, which takes some 50 ns. Only the setting of the root has
        /// an effect.
        pub fn busy_time(mut self, measures: bool) -> Self {
            self.description.options.busy_time = Some(measures);
            self
        }

        /// Applies the settings of a different system. Explicit values take precedence.
        pub fn preset(mut self, preset: Preset) -> Self {
            self.description.options.preset = Some(preset);
            self
        }

        /// Sets the defaults for children.
        ///
        /// ```
        /// # use std::time::Duration;
        /// # let builder = verger::Supervisor::builder("app");
        /// builder.defaults(|child| child.shutdown(Duration::from_secs(20)))
        /// # ;
        /// ```
        pub fn defaults(mut self, set: impl FnOnce(ChildDefaults) -> ChildDefaults) -> Self {
            let defaults = std::mem::take(&mut self.description.options.defaults);
            self.description.options.defaults = set(defaults);
            self
        }

        /// Sets the factory of random sources for [jitter](crate::policy::Jitter). It is called at each start.
        ///
        /// Default: a newly seeded generator at each start. Use it in tests that need the same delays each
        /// time. Supervisors below have their own source.
        pub fn random<R: Random + 'static>(
            mut self,
            source: impl Fn() -> R + Send + Sync + 'static,
        ) -> Self {
            self.description.options.random = Some(RandomFactory::new(source));
            self
        }

        /// Sets the version of the code, such as `1.4.2 (9f3c2d1)`, which the status shows. Default: none.
        ///
        /// At the root, it is the version of the program. It is informational only. As a child, the supervisor has
        /// this version unless its [spec](crate::ChildSpec::version) has another one.
        pub fn version(mut self, version: impl Into<String>) -> Self {
            self.description.options.version = Some(version.into().into());
            self
        }

        /// Converts the builder into a spec, to set the options of the supervisor as a child.
        ///
        /// ```
        /// use std::time::Duration;
        ///
        /// use verger::Supervisor;
        /// use verger::policy::OnExhausted;
        ///
        /// let plugins = Supervisor::builder("plugins").into_child().on_exhausted(OnExhausted::Park);
        /// let app = Supervisor::builder("app").child(plugins);
        /// # drop(app);
        /// ```
        pub fn into_child(self) -> ChildSpec {
            let (name, version) =
                (self.description.name.clone(), self.description.options.version.clone());
            let nested = FactoryKind::Nested(Arc::new(self.description));
            ChildSpec::new(name, nested).of_version(version)
        }

        /// Checks the description and everything below it.
        ///
        /// A setting that is valid but probably a mistake is logged, and can be read with
        /// [`Supervisor::warnings`].
        ///
        /// ```
        /// use verger::{BuildError, Context, Supervisor, worker};
        ///
        /// async fn idle(ctx: Context) {
        ///     ctx.cancelled().await;
        /// }
        ///
        /// let app = Supervisor::builder("app").child(worker("db", idle)).child(worker("db", idle));
        /// let error = app.build().unwrap_err();
        /// assert!(matches!(error, BuildError::DuplicateChild { .. }));
        /// assert_eq!(
        ///     error.to_string(),
        ///     "`app` has two children named `db`; give one of them another name",
        /// );
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the first mistake, with its path, the value and what to write instead: see
        /// [`BuildError`].
        pub fn build(self) -> Result<Supervisor, BuildError> {
            check::root(&self.description)
        }

        #[doc(hidden)]
        pub fn with_graceful_shutdown<F>(
            self,
            _: F,
        ) -> std::future::Pending<Result<(), crate::error::RunError>>
        where
            for<'a> Self: Built<'a>,
        {
            std::future::pending()
        }
    };
}

impl SupervisorBuilder {
    /// Adds a child. Children start in this order and stop in the reverse order.
    ///
    /// Takes a [`ChildSpec`], a builder of a supervisor, or a [`Supervisor`].
    ///
    /// ```
    /// use verger::{Context, Supervisor, worker};
    ///
    /// # async fn db(ctx: Context) { ctx.cancelled().await }
    /// # async fn poll(ctx: Context) { ctx.cancelled().await }
    /// let ingest = Supervisor::builder("ingest").child(worker("poller", poll));
    /// // `ingest` starts when `db` is ready, and stops before it.
    /// let app = Supervisor::builder("app").child(worker("db", db)).child(ingest);
    /// # drop(app);
    /// ```
    pub fn child(mut self, child: impl Into<ChildSpec>) -> Self {
        self.description.children.push(child.into());
        self
    }

    /// Sets which siblings are restarted together with a failed child.
    ///
    /// Default: [`Strategy::OneForOne`].
    ///
    /// ```
    /// use verger::{Strategy, Supervisor};
    ///
    /// // A failure also restarts the children that are declared after the failed one.
    /// let app = Supervisor::builder("app").strategy(Strategy::RestForOne);
    /// # drop(app);
    /// ```
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.description.options.values.strategy = Some(strategy);
        self
    }

    /// Sets whether the supervisor ends when its significant children have ended.
    ///
    /// Default: [`AutoShutdown::Never`].
    pub fn auto_shutdown(mut self, auto_shutdown: AutoShutdown) -> Self {
        self.description.options.values.auto_shutdown = Some(auto_shutdown);
        self
    }

    /// Sets whether children start one after another or concurrently.
    ///
    /// Default: [`Start::Sequential`].
    pub fn start(mut self, start: Start) -> Self {
        self.description.options.values.start = Some(start);
        self
    }

    /// Sets what happens when a child fails its first start.
    ///
    /// Default: [`FirstStart::Retry`], an ordinary failure.
    pub fn first_start(mut self, first_start: FirstStart) -> Self {
        self.description.options.first_start = Some(first_start);
        self
    }

    common_options!();
}

impl DynamicSupervisorBuilder {
    /// Limits the number of children, including those that wait for a restart. Default: no limit.
    ///
    /// Zero is a [warning](crate::error::BuildWarning::NoRoom) at build.
    pub fn max_children(mut self, max: usize) -> Self {
        self.description.options.values.max_children = Some(max);
        self
    }

    /// Sets how many children have to be active so that the supervisor is ready. Default: 0.
    ///
    /// With fewer, the supervisor is a [problem](crate::status::Status::problems) of the status, and the tree isn't
    /// ready if the supervisor is [essential](crate::ChildSpec::essential): a probe of its readiness fails. The
    /// supervisor starts without its children, so nothing waits for them.
    ///
    /// ```
    /// use verger::{Context, DynamicSupervisor, Supervisor, worker};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let senders = DynamicSupervisor::builder("senders").min_ready(1);
    /// let app = Supervisor::builder("app").child(senders).build()?.start().await?;
    /// let status = app.status().await?;
    /// assert_eq!(status.problems()[0].to_string(), "app/senders: 0 of 1 children are active");
    ///
    /// let senders = app.supervisor("senders").await?;
    /// senders.start_child(worker("sender", async |ctx: Context| ctx.cancelled().await)).await?;
    /// assert!(app.status().await?.is_ready());
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn min_ready(mut self, children: u32) -> Self {
        self.description.options.values.min_ready = Some(children);
        self
    }

    common_options!();
}

impl From<SupervisorBuilder> for ChildSpec {
    fn from(builder: SupervisorBuilder) -> Self {
        builder.into_child()
    }
}

impl From<DynamicSupervisorBuilder> for ChildSpec {
    fn from(builder: DynamicSupervisorBuilder) -> Self {
        builder.into_child()
    }
}
