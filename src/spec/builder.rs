//! The builders: what can be said of a supervisor.

use std::time::Duration;

use super::Supervisor;
use super::check;
use crate::child::{ChildDefaults, ChildSpec, Nested, Recipe, Resolved};
use crate::error::{BuildError, BuildWarning};
use crate::failure::{ChildFailure, FailureAnswer, FailureCallback};
use crate::path::Trail;
use crate::policy::{
    self, AutoShutdown, FirstStart, Intensity, OnExhausted, Preset, Random, SetTwice, Sources,
    Start, Strategy,
};
use crate::runtime::{Drive, LetterOptions};

/// What either kind of supervisor can be told.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub(super) strategy: Strategy,
    pub(super) auto_shutdown: AutoShutdown,
    pub(super) start: Start,
    pub(super) first_start: Option<FirstStart>,
    pub(super) on_exhausted: Option<OnExhausted>,
    pub(super) restarts: Option<Restarts>,
    pub(super) twice: Option<SetTwice>,
    pub(super) leak_timeout: Option<Duration>,
    pub(super) stop_deadline: Option<Duration>,
    pub(super) max_children: Option<usize>,
    pub(super) preset: Option<Preset>,
    pub(super) defaults: ChildDefaults,
    pub(super) random: Option<Sources>,
    pub(super) on_child_failure: Option<FailureCallback>,
    pub(super) letters: LetterOptions,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Restarts {
    Unlimited,
    Within(Intensity),
}

impl Options {
    fn restarts(&mut self, restarts: Restarts) {
        let text = |restarts: &Restarts| match restarts {
            Restarts::Unlimited => "unlimited_restarts()".to_owned(),
            Restarts::Within(intensity) => intensity.to_string(),
        };
        policy::set(&mut self.restarts, restarts, &mut self.twice, text);
    }
}

/// Describes a [`Supervisor`] whose children have an order.
///
/// Made by [`Supervisor::builder`]. Methods may be called in any order, except that children start
/// in the order of the [`child`](Self::child) calls. Nothing is checked before
/// [`build`](Self::build). What is set by hand wins over a [`preset`](Self::preset).
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct SupervisorBuilder {
    pub(super) name: String,
    pub(super) options: Options,
    pub(super) children: Vec<ChildSpec>,
}

/// Describes a dynamic supervisor; made by [`DynamicSupervisor::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct DynamicSupervisorBuilder {
    pub(super) name: String,
    pub(super) options: Options,
    pub(super) drive: Drive,
}

/// A supervisor of children that come and go: one for each connection, job or session.
///
/// Children are added to it with [`start_child`](crate::SupervisorHandle::start_child), and may be
/// of any kind. They have no order and no siblings: each is restarted by itself, and forgotten when
/// it has ended for good. Names may repeat; each child gets a number besides, as in `conn#17`. All
/// stop at once. The source is Elixir's `DynamicSupervisor`.
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
/// conns.terminate_child(conn.name()).await?;
/// app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
///
/// The type itself holds nothing, and is there for its builder. It has a value so that it can be
/// the type of a field, which says that there is such a supervisor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DynamicSupervisor;

impl DynamicSupervisor {
    /// Describes a dynamic supervisor with this name.
    pub fn builder(name: impl Into<String>) -> DynamicSupervisorBuilder {
        let options = Options::default();
        DynamicSupervisorBuilder { name: name.into(), options, drive: Drive::DYNAMIC }
    }
}

impl Supervisor {
    /// Describes a supervisor with this name.
    pub fn builder(name: impl Into<String>) -> SupervisorBuilder {
        let options = Options::default();
        SupervisorBuilder { name: name.into(), options, children: Vec::new() }
    }
}

/// Never implemented: its bound reports a call of `with_graceful_shutdown` on a builder.
#[diagnostic::on_unimplemented(
    message = "a builder can't run a tree; call `build()` first",
    label = "write `.build()?.with_graceful_shutdown(…)`"
)]
pub trait Built<'a> {}

/// What both builders have in common, written once.
macro_rules! common_options {
    () => {
        /// Allows `max` restarts within `period`, for all children together. One more, and the
        /// supervisor gives up: see [`on_exhausted`](Self::on_exhausted). Zero allows none.
        ///
        /// The window slides, and an instant exactly `period` ago still counts. A child that fails
        /// before it was active is not counted as long as it waits between attempts, so that an
        /// outage does not look like a bug. With [`Duration::MAX`] it is `max` restarts for as long
        /// as the supervisor lives. Default: 5 in 60 s.
        ///
        /// A child may have limits of its own besides: see
        /// [`ChildSpec::restarts`](crate::ChildSpec::restarts).
        pub fn restarts(self, max: u32, period: Duration) -> Self {
            self.intensity(Intensity::sliding(max, period))
        }

        /// The same as [`restarts`](Self::restarts) with another kind of window.
        pub fn intensity(mut self, intensity: Intensity) -> Self {
            self.options.restarts(Restarts::Within(intensity));
            self
        }

        /// Restarts children for ever, as far as it is up to the supervisor.
        pub fn unlimited_restarts(mut self) -> Self {
            self.options.restarts(Restarts::Unlimited);
            self
        }

        /// What follows when a child has failed more often than is allowed. A child may say
        /// [otherwise](crate::ChildSpec::on_exhausted). Default: [`OnExhausted::Escalate`].
        pub fn on_exhausted(mut self, on_exhausted: OnExhausted) -> Self {
            self.options.on_exhausted = Some(on_exhausted);
            self
        }

        /// Asks `decide` what becomes of a child that has failed, before its supervisor does anything
        /// about it. Default: nobody is asked, and the child is restarted.
        ///
        /// A function or an async one, which returns a [`FailureDecision`](crate::FailureDecision),
        /// a `bool` (`true` restarts, `false` gives up), or a `Result` of one of them. A closure that
        /// captures something must not move it into its future: see [`worker`](fn@crate::worker).
        ///
        /// * It is asked about every failure that would be followed by a restart, also one before the
        ///   child was active. Not about clean ends, nor children that were asked to stop, nor first
        ///   starts that a caller waits for ([`start_child`], [`restart_child`]) or that
        ///   [`FirstStart::Fail`] answers.
        /// * It decides for all supervisors below as well, up to the next one that has a callback of
        ///   its own. The child's own supervisor carries out what it decides.
        /// * It runs in its own task, for 5 s at most. If it returns an error, panics or takes longer,
        ///   that is logged and the failure escalates.
        /// * Meanwhile the child is [`Errored`](crate::Lifecycle::Errored), and nobody else waits.
        ///   [`retry`], [`wake`], [`restart`], [`restart_child`] and [`kill_child`] answer that they
        ///   have nothing to do ([`Unfit`](crate::ControlError::Unfit)). Whatever stops, forgets or
        ///   restarts the child before has discarded the decision: [`terminate_child`],
        ///   [`delete_child`], the restart of its group, the end of its supervisor.
        /// * The restart intensity is looked at when the decision is there; the backoff counts from
        ///   the failure.
        ///
        /// ```
        /// use verger::{ChildFailure, FailureDecision, Supervisor};
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
        /// [`FirstStart::Fail`]: crate::FirstStart::Fail
        /// [`start_child`]: crate::SupervisorHandle::start_child
        /// [`restart_child`]: crate::SupervisorHandle::restart_child
        /// [`retry`]: crate::SupervisorHandle::retry
        /// [`wake`]: crate::SupervisorHandle::wake
        /// [`restart`]: crate::SupervisorHandle::restart
        /// [`kill_child`]: crate::SupervisorHandle::kill_child
        /// [`terminate_child`]: crate::SupervisorHandle::terminate_child
        /// [`delete_child`]: crate::SupervisorHandle::delete_child
        pub fn on_child_failure<F, A, When>(mut self, decide: F) -> Self
        where
            F: Fn(ChildFailure) -> A + Send + Sync + 'static,
            A: FailureAnswer<When> + 'static,
            When: 'static,
        {
            self.options.on_child_failure = Some(FailureCallback::new(decide));
            self
        }

        /// How long an aborted child may take to be gone before it is reported as leaked and the
        /// supervisor goes on without it. tokio aborts a task only where it awaits, so code that
        /// blocks its thread can't be killed. Default: 1 s.
        pub fn leak_timeout(mut self, timeout: Duration) -> Self {
            self.options.leak_timeout = Some(timeout);
            self
        }

        /// How long [`stop`](crate::SupervisorHandle::stop) may take as a whole; what is left then
        /// is aborted. Default: as long as the graces of the children add up to. With
        /// [`with_graceful_shutdown`](Supervisor::with_graceful_shutdown): 45 s.
        pub fn stop_deadline(mut self, deadline: Duration) -> Self {
            self.options.stop_deadline = Some(deadline);
            self
        }

        /// Takes the defaults from another system. What is set by hand wins.
        pub fn preset(mut self, preset: Preset) -> Self {
            self.options.preset = Some(preset);
            self
        }

        /// Sets what children get that do not say otherwise.
        ///
        /// ```
        /// # use std::time::Duration;
        /// # let builder = verger::Supervisor::builder("app");
        /// builder.defaults(|child| child.shutdown(Duration::from_secs(20)))
        /// # ;
        /// ```
        pub fn defaults(mut self, set: impl FnOnce(ChildDefaults) -> ChildDefaults) -> Self {
            self.options.defaults = set(self.options.defaults);
            self
        }

        /// Where the random numbers for [jitter](crate::Jitter) come from: called each time the
        /// supervisor is started. Default: a source that is seeded anew each time.
        ///
        /// For tests, in which waits are to be the same each time. Supervisors below have their
        /// own.
        pub fn random<R: Random + 'static>(
            mut self,
            source: impl Fn() -> R + Send + Sync + 'static,
        ) -> Self {
            self.options.random = Some(Sources::new(source));
            self
        }

        /// Makes it a child, to say how it is treated by the supervisor above.
        pub fn into_child(self) -> ChildSpec {
            ChildSpec::new(self.name.clone(), Recipe::Nested(Box::new(self)))
        }

        /// Checks the description, and all that is below.
        ///
        /// What is legal but probably not meant is logged, and can be read with
        /// [`Supervisor::warnings`].
        ///
        /// # Errors
        ///
        /// The first mistake found, with the path, the value and what to write instead: see
        /// [`BuildError`].
        pub fn build(self) -> Result<Supervisor, BuildError> {
            check::root(&self)
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
    /// Adds a child. Children start in this order and stop in the reverse.
    ///
    /// A [`ChildSpec`], a builder of another supervisor, or a [`Supervisor`].
    pub fn child(mut self, child: impl Into<ChildSpec>) -> Self {
        self.children.push(child.into());
        self
    }

    /// Which children are restarted together with one that fails. Default:
    /// [`Strategy::OneForOne`].
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.options.strategy = strategy;
        self
    }

    /// Whether the supervisor ends when its significant children have. Default: never.
    pub fn auto_shutdown(mut self, auto_shutdown: AutoShutdown) -> Self {
        self.options.auto_shutdown = auto_shutdown;
        self
    }

    /// Whether children start one after the other, or all that can at once. Default:
    /// [`Start::Sequential`].
    pub fn start(mut self, start: Start) -> Self {
        self.options.start = start;
        self
    }

    /// What a first start that fails means. Default: [`FirstStart::Retry`], an ordinary failure.
    pub fn first_start(mut self, first_start: FirstStart) -> Self {
        self.options.first_start = Some(first_start);
        self
    }

    /// The same with every child replaced by what `change` makes of it.
    #[cfg(feature = "testing")]
    pub(crate) fn map_children(mut self, change: impl Fn(ChildSpec) -> ChildSpec) -> Self {
        self.children = self.children.into_iter().map(change).collect();
        self
    }

    common_options!();
}

impl DynamicSupervisorBuilder {
    /// How many children there may be, those that wait for a restart included. Default: any
    /// number.
    pub fn max_children(mut self, max: usize) -> Self {
        self.options.max_children = Some(max);
        self
    }

    common_options!();
}

impl Nested for SupervisorBuilder {
    fn children(&self) -> &[ChildSpec] {
        &self.children
    }

    fn check(&self, path: &Trail) -> Result<(), BuildError> {
        check::alone(self, path)
    }

    fn resolve(
        &self,
        path: &Trail,
        children: Vec<ChildSpec>,
        warnings: &mut Vec<BuildWarning>,
    ) -> Result<Resolved, BuildError> {
        check::nested(self, path, children, warnings)
    }

    #[cfg(feature = "testing")]
    fn map(&self, change: &dyn Fn(ChildSpec) -> ChildSpec) -> Box<dyn Nested> {
        Box::new(self.clone().map_children(change))
    }
}

impl Nested for DynamicSupervisorBuilder {
    fn children(&self) -> &[ChildSpec] {
        &[]
    }

    fn check(&self, path: &Trail) -> Result<(), BuildError> {
        check::alone(self, path)
    }

    fn resolve(
        &self,
        path: &Trail,
        children: Vec<ChildSpec>,
        warnings: &mut Vec<BuildWarning>,
    ) -> Result<Resolved, BuildError> {
        check::nested(self, path, children, warnings)
    }

    #[cfg(feature = "testing")]
    fn map(&self, _change: &dyn Fn(ChildSpec) -> ChildSpec) -> Box<dyn Nested> {
        Box::new(self.clone())
    }
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
