//! A tree as a whole program: its options, and its exit code.

use std::fmt;
use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use super::exit_thread::ExitThread;
use super::hooks::HookStep;
use super::program::Program;
use super::run::print;
use super::stages::StopStages;
use super::stop_bounds::StopBounds;
use super::stop_cause::StopCause;
use crate::error::BuildError;
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
    tree: Result<Supervisor, BuildError>,
    program: Program,
    /// Whether signals stop it.
    listens: bool,
    exit_grace: Duration,
    stop_limit: Option<Duration>,
}

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
    /// Without the feature `signal` it has no effect.
    pub fn listen_to_signals(mut self, listens: bool) -> Self {
        self.listens = listens;
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

    /// Tells the time after which a service manager kills the process: `TimeoutStopSec` of systemd,
    /// `terminationGracePeriodSeconds` of Kubernetes.
    ///
    /// A warning is logged at the start if a stop may take longer.
    pub fn stop_limit(mut self, limit: Duration) -> Self {
        self.stop_limit = Some(limit);
        self
    }

    /// Runs the application, and returns the exit code for `main`.
    ///
    /// Call it as the last thing in `main`: the process ends within the
    /// [`exit_grace`](Self::exit_grace) after it has returned. It also ends, with code 3, if a termination
    /// takes longer than all its stages, because all threads of the runtime are blocked.
    ///
    /// If the tree is invalid or ends with an error, the error is printed to stderr.
    ///
    /// | code | meaning |
    /// | --- | --- |
    /// | 0 | the tree finished, or was stopped in order |
    /// | 1 | the tree gave up, could not start, or was aborted |
    /// | 2 | the tree is invalid |
    /// | 3 | the tree was stopped, but a child missed its grace or leaked |
    /// | 130, 143 | a second SIGINT or SIGTERM ended the process at once |
    /// | the one that was set | a child failed too often, with [`OnExhausted::Exit`] |
    ///
    /// [`OnExhausted::Exit`]: crate::policy::OnExhausted::Exit
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime that has its timers enabled.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is ready, every child is aborted.
    pub async fn run(self) -> ExitCode {
        let tree = match self.tree {
            Ok(tree) => tree,
            Err(error) => return print(&error.into()).into(),
        };
        let mut program = self.program;
        #[cfg(feature = "signal")]
        if self.listens {
            program.on(super::signals::signals());
        }
        let bounds = StopBounds::of(&tree, &program);
        bounds.log(self.stop_limit);
        let root = tree.spawn();
        let exit_thread = ExitThread::start(root.leaked());
        let deadline = bounds.total.saturating_add(self.exit_grace);
        // On the signals thread: if all threads of the runtime are blocked, no termination begins.
        #[cfg(feature = "signal")]
        let _armed = self.listens.then(|| {
            let exit_thread = exit_thread.clone();
            super::signals::on_first_signal(move |_| exit_thread.arm(deadline))
        });
        let code = program.run(&root, || exit_thread.arm(deadline)).await.exit_code();
        exit_thread.finished(code, self.exit_grace);
        code.into()
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
