//! A tree as a whole program: its options.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use super::companion::Companions;
use super::hooks::HookStep;
use super::program::Program;
use super::stages::StopStages;
use super::stop_cause::StopCause;
use crate::error::BuildError;
use crate::handle::SupervisorHandle;
use crate::spec::{DynamicSupervisorBuilder, Supervisor, SupervisorBuilder};

/// How long the process may last after its application has ended.
const EXIT_GRACE: Duration = Duration::from_secs(2);

/// A tree that is run as a whole program.
///
/// An application runs its tree until that ends by itself or something asks for a stop: SIGINT or SIGTERM
/// (with the feature `signal`), or a future that you pass to [`stop_on`](Self::stop_on). Then it stops the
/// tree in [stages](StopStages), which take 26 s at most by default, and returns the exit code for `main`.
///
/// ```no_run
/// use std::process::ExitCode;
///
/// use verger::{Application, Context, Supervisor, worker};
///
/// async fn api(ctx: Context) {
///     ctx.cancelled().await;
/// }
///
/// #[tokio::main]
/// async fn main() -> ExitCode {
///     Application::new(Supervisor::builder("app").child(worker("api", api))).run().await
/// }
/// ```
#[must_use = "an application does nothing until it is run"]
pub struct Application {
    pub(super) tree: Result<Supervisor, BuildError>,
    pub(super) program: Program,
    /// Whether signals stop it.
    pub(super) listens: bool,
    pub(super) on_start: Vec<OnStart>,
    pub(super) exit_grace: Duration,
    pub(super) stop_limit: Option<Duration>,
    /// Whether the times of a stop are logged at the start.
    pub(super) announces: bool,
    /// Whether it only checks whether it could be started.
    pub(super) check_only: bool,
    pub(crate) companions: Companions,
}

/// Something that is done once the tree is about to start.
pub(super) type OnStart = Box<dyn FnOnce(SupervisorHandle) + Send>;

impl Application {
    /// Creates an application from a tree: a [`Supervisor`], a builder, or the result of
    /// [`build`](SupervisorBuilder::build).
    ///
    /// An invalid tree is an error of [`run`](Self::run), with exit code 2.
    pub fn new(tree: impl IntoTree) -> Self {
        Self {
            tree: tree.into_tree(),
            program: Program::default(),
            listens: true,
            exit_grace: EXIT_GRACE,
            stop_limit: None,
            announces: true,
            on_start: Vec::new(),
            check_only: false,
            companions: Companions::default(),
        }
    }

    /// Sets the stages in which the tree stops.
    pub fn stages(mut self, stages: StopStages) -> Self {
        self.program.stages = stages;
        self
    }

    /// Sets for how long the tree goes on after the application has become unready; see
    /// [`StopStages::drain`].
    pub fn drain(mut self, drain: Duration) -> Self {
        self.program.stages = self.program.stages.drain(drain);
        self
    }

    /// Also stops the tree when `stop` resolves. Its output is the cause, which is logged and which children
    /// see as their [`stop_reason`](crate::Context::stop_reason).
    ///
    /// The first of all such futures and signals counts.
    pub fn stop_on<F>(mut self, stop: F) -> Self
    where
        F: Future<Output: StopCause> + Send + 'static,
    {
        self.program.on(stop);
        self
    }

    /// Sets whether SIGINT and SIGTERM stop the tree. Default: `true`.
    ///
    /// They are received from the first poll of [`run`](Self::run) on. For a program that does more before,
    /// make [`signals`](crate::signals) as its first step, and pass them to [`stop_on`](Self::stop_on). Without the
    /// feature `signal` it has no effect.
    pub fn listen_to_signals(mut self, listens: bool) -> Self {
        self.listens = listens;
        self
    }

    /// Calls a function with a handle to the tree when that is about to start.
    ///
    /// For what needs a handle beside the tree, such as a subscription to events or a router of your own.
    pub fn on_start(mut self, call: impl FnOnce(SupervisorHandle) + Send + 'static) -> Self {
        self.on_start.push(Box::new(call));
        self
    }

    /// Adds hooks that run before the tree stops, at once, behind those that were added before.
    ///
    /// They run during the drain, and delay the stop if they take longer. They don't run if the tree ends
    /// by itself.
    pub fn before_stop(mut self, hooks: impl Into<HookStep>) -> Self {
        self.program.before.push(hooks.into());
        self
    }

    /// Adds hooks that run once the tree has ended, at once, behind those that were added before.
    ///
    /// They run however the tree ends. If nothing has asked for a stop, their cause is `ended`.
    pub fn after_stop(mut self, hooks: impl Into<HookStep>) -> Self {
        self.program.after.push(hooks.into());
        self
    }

    /// Sets how long the process may last after [`run`](Self::run) has returned. Default: 2 s.
    ///
    /// Then it ends by itself with the application's exit code, whatever still blocks a thread, and logs
    /// the children that do. `Duration::MAX` turns this off, for programs that go on after that.
    pub fn exit_grace(mut self, grace: Duration) -> Self {
        self.exit_grace = grace;
        self
    }

    /// Sets the time after which a service manager kills the process: `TimeoutStopSec` of systemd,
    /// `terminationGracePeriodSeconds` of Kubernetes.
    ///
    /// A warning is logged at the start if a stop may take longer.
    pub fn stop_limit(mut self, limit: Duration) -> Self {
        self.stop_limit = Some(limit);
        self
    }

    /// Logs the panics of children with their location instead of printing them; see
    /// [`install_panic_hook`](crate::install_panic_hook).
    ///
    /// # Panics
    ///
    /// Panics if the calling thread is panicking.
    pub fn panic_hook(self) -> Self {
        crate::install_panic_hook();
        self
    }
}

impl fmt::Debug for Application {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Application")
            .field("tree", &self.tree)
            .field("stages", &self.program.stages)
            .finish_non_exhaustive()
    }
}

/// What an [`Application`] can be made from.
///
/// This trait is sealed and can't be implemented outside of this crate.
///
/// ```
/// use verger::{Application, Supervisor};
///
/// let of_a_builder = Application::new(Supervisor::builder("app"));
/// let of_a_tree = Application::new(Supervisor::builder("app").build()?);
/// # drop((of_a_builder, of_a_tree));
/// # Ok::<_, verger::BuildError>(())
/// ```
pub trait IntoTree: sealed::Sealed {
    /// Returns the tree, or why it is invalid.
    ///
    /// # Errors
    ///
    /// As for [`build`](SupervisorBuilder::build).
    fn into_tree(self) -> Result<Supervisor, BuildError>;
}

impl IntoTree for Supervisor {
    fn into_tree(self) -> Result<Supervisor, BuildError> {
        Ok(self)
    }
}

impl IntoTree for Result<Supervisor, BuildError> {
    fn into_tree(self) -> Result<Supervisor, BuildError> {
        self
    }
}

impl IntoTree for SupervisorBuilder {
    fn into_tree(self) -> Result<Supervisor, BuildError> {
        self.build()
    }
}

impl IntoTree for DynamicSupervisorBuilder {
    fn into_tree(self) -> Result<Supervisor, BuildError> {
        self.build()
    }
}

mod sealed {
    use crate::error::BuildError;
    use crate::spec::{DynamicSupervisorBuilder, Supervisor, SupervisorBuilder};

    /// Keeps [`IntoTree`](super::IntoTree) to this crate.
    pub trait Sealed {}

    impl Sealed for Supervisor {}
    impl Sealed for SupervisorBuilder {}
    impl Sealed for DynamicSupervisorBuilder {}
    impl Sealed for Result<Supervisor, BuildError> {}
}
