//! A tree as a whole program: its options, and what is beside it from before the start until after the last hook.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::process::ExitCode;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::companion::{Companion, Companions, RunStart};
use super::exit_thread::ExitThread;
use super::program::{Program, exit_code, print};
use super::run::StopCause;
use super::stop::{HookStep, StopBounds, StopStages};
use crate::child::PollWatch;
use crate::clock::now;
use crate::error::{BuildError, RunError};
use crate::handle::SupervisorHandle;
use crate::panic::catch_panic;
use crate::path::Path;
use crate::runtime::tree::StopRequests;
use crate::runtime::watch;
use crate::spec::{DynamicSupervisorBuilder, Supervisor, SupervisorBuilder};
use crate::subscriber;

/// How long the process may last after its application has ended.
const EXIT_GRACE: Duration = Duration::from_secs(2);

/// A tree that is run as a whole program.
///
/// An application runs its tree until that exits or something requests a stop: SIGINT, SIGTERM or SIGHUP
/// (with the feature `signal`), a future that you pass to [`stop_on`](Self::stop_on), or
/// [`stop`](SupervisorHandle::stop) of the root. Then it stops the
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
    exit_grace: Duration,
    stop_limit: Option<Duration>,
    /// Whether the times of a stop are logged at the start.
    pub(super) announces: bool,
    /// Whether it only checks whether it could be started.
    pub(super) check_only: bool,
    pub(crate) companions: Companions,
}

/// Something that is done once the tree is about to start.
type OnStart = Box<dyn FnOnce(SupervisorHandle) + Send>;

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
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::{Application, Supervisor};
    ///
    /// # fn f(tree: Supervisor) -> Application {
    /// // A load balancer has five seconds to notice that the probe of readiness fails.
    /// Application::new(tree).drain(Duration::from_secs(5))
    /// # }
    /// ```
    pub fn drain(mut self, drain: Duration) -> Self {
        self.program.stages = self.program.stages.drain(drain);
        self
    }

    /// Also stops the tree when `stop` resolves. Its output is the cause, which is logged and which children
    /// see as their [`stop_reason`](crate::Context::stop_reason).
    ///
    /// A signal, such a future, [`stop`](SupervisorHandle::stop) of the root, the console and the memory guard stop the
    /// tree in the same way; the first of them is the cause. While the configuration is read, there is nothing to stop,
    /// so no hook runs.
    ///
    /// If the future panics, the tree stops, too, and the exit code is 1.
    ///
    /// ```
    /// use verger::{Application, Supervisor};
    ///
    /// # async fn disk_is_full() {}
    /// # fn f(tree: Supervisor) -> Application {
    /// Application::new(tree).stop_on(async {
    ///     disk_is_full().await;
    ///     "the disk is full"
    /// })
    /// # }
    /// ```
    pub fn stop_on<F>(mut self, stop: F) -> Self
    where
        F: Future<Output: StopCause> + Send + 'static,
    {
        self.program.on(stop);
        self
    }

    /// Sets whether SIGINT, SIGTERM and SIGHUP stop the tree. Default: `true`.
    ///
    /// They are received from the first poll of [`run`](Self::run) on, before the configuration is read. SIGHUP doesn't
    /// stop the tree if it reloads the configuration, or if it was ignored when the process started, as by `nohup`. For a program that does more before,
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
    ///
    /// ```
    /// use verger::app::hook;
    /// use verger::{Application, Supervisor};
    ///
    /// # async fn deregister() -> Result<(), std::io::Error> { Ok(()) }
    /// # fn f(tree: Supervisor) -> Application {
    /// Application::new(tree).before_stop(hook("deregister", async |_cause| deregister().await))
    /// # }
    /// ```
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

/// How much longer than its bound a termination may take until the process is ended.
const MARGIN: Duration = Duration::from_secs(1);

impl Application {
    /// Runs the application, and returns the exit code for `main`.
    ///
    /// Call it as the last thing in `main`: the process ends within the
    /// [`exit_grace`](Self::exit_grace) after it has returned. It also ends, with code 3, if a termination
    /// takes longer than all its stages, because all threads of the runtime are blocked. So in tests, and where
    /// several applications run in one process, use [`run_to_end`](Self::run_to_end), or an exit grace of
    /// `Duration::MAX`, which turns off both.
    ///
    /// If the tree is invalid or ends with an error, the error is printed to stderr.
    ///
    /// | code | meaning |
    /// | --- | --- |
    /// | 0 | the tree finished, or was stopped in order |
    /// | 1 | the tree gave up, could not start, or was aborted |
    /// | 2 | the tree, its configuration or an option is invalid, or the probes or the console can't listen on their address |
    /// | 3 | the tree was stopped, but a child was killed at the end of its grace, or leaked: [`RunError::Forced`] |
    /// | 4 | the memory guard stopped the tree |
    /// | 129, 130, 143 | a second SIGHUP, SIGINT or SIGTERM ended the process immediately |
    /// | the one that was set | a child failed too often, with [`OnExhausted::Exit`], or a [`StopCause`] has an exit code |
    ///
    /// A future of [`stop_on`](Self::stop_on) that panics stops the tree in order, with code 1. If a supervisor gave up
    /// and children had to be forced, the code is 1.
    ///
    /// [`OnExhausted::Exit`]: crate::policy::OnExhausted::Exit
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime that has its timers enabled; with probes or a console, also its I/O.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is ready, every child is aborted.
    pub async fn run(self) -> ExitCode {
        let grace = self.exit_grace;
        let (result, exit_thread) = match launch(self, true).await {
            Ok(launched) => launched,
            Err(error) => return print(&error).into(),
        };
        let code = exit_code(&result);
        if let Some(exit_thread) = exit_thread {
            exit_thread.finished(code, grace);
        }
        code.into()
    }

    /// Runs the application, and returns how the tree ended.
    ///
    /// For programs that do more after that: nothing ends the process, and nothing is printed.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::{Application, Context, Exit, RunError, Supervisor, worker};
    ///
    /// async fn flaky(_ctx: Context) -> Exit {
    ///     Err("connection refused".into())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let app = Supervisor::builder("app")
    ///     .restarts(1, Duration::from_secs(60))
    ///     .child(worker("flaky", flaky));
    ///
    /// let error = Application::new(app).run_to_end().await.unwrap_err();
    /// assert!(matches!(error, RunError::GaveUp { .. }));
    /// # let invalid = Supervisor::builder("a/b");
    /// # let error = Application::new(invalid).run_to_end().await.unwrap_err();
    /// # assert!(matches!(error, RunError::Build(_)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`SupervisorHandle::wait`](crate::SupervisorHandle::wait); [`RunError::Build`] if the tree is invalid; [`RunError::Listen`] if the
    /// probes or the console can't listen on their address.
    ///
    /// # Panics
    ///
    /// As for [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// As for [`run`](Self::run).
    pub async fn run_to_end(self) -> Result<(), RunError> {
        launch(self, false).await?.0
    }
}

/// Runs an application to the end of its tree, and returns the result of that.
///
/// If it `ends_process`, the thread that does so is returned.
///
/// # Errors
///
/// If it can't be started.
fn launch(app: Application, ends_process: bool) -> Launch {
    // Otherwise each program would compile all of it once more, because it is the first to poll it.
    Box::pin(launch_here(app, ends_process))
}

type Launched = (Result<(), RunError>, Option<ExitThread>);
type Launch = Pin<Box<dyn Future<Output = Result<Launched, RunError>> + Send>>;

async fn launch_here(app: Application, ends_process: bool) -> Result<Launched, RunError> {
    let (tree, mut program) = (app.tree?, app.program);
    let path = Path::root(&tree.blueprint().name);
    let mut companions = app.companions.in_order();
    // Before anything is read: a signal that comes meanwhile must not end the process.
    #[cfg(feature = "signal")]
    if app.listens {
        program.on(super::signals::signals());
    }
    let prepared = {
        let mut preparing = pin!(prepare(tree, &mut companions, app.check_only));
        let stopped_or = |cx: &mut Context<'_>| match preparing.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(result.map(Ok)),
            Poll::Pending => program.poll_stop(cx).map(|cause| Ok(Err(cause))),
        };
        poll_fn(stopped_or).await?
    };
    let tree = match prepared {
        Ok(Some(tree)) => tree,
        Ok(None) => return Ok((Ok(()), None)),
        Err(cause) => {
            let (child, reason) = (path.as_str(), &*cause.text);
            subscriber::info!(target: "verger::shutdown", child, cause = reason, "stopped before the start");
            // A thread that still reads the configuration must not keep the process.
            let exit_thread = ends_process.then(|| ExitThread::start(Vec::new));
            return Ok((cause.over(path, Ok(())), exit_thread));
        }
    };
    let bounds = StopBounds::of(&tree, &program);
    bounds.report(app.announces, app.stop_limit);
    // From before the first poll: a child may block a thread from then on. Without the watch, children that only wait for
    // that thread would have leaked.
    let _watch = PollWatch::new();
    let stops = Arc::<StopRequests>::default();
    let root = tree.spawn_with(Some(Arc::clone(&stops)));
    program.on(async move { stops.requested().await.to_string() });
    for call in app.on_start {
        let handle = root.handle();
        if catch_panic(|| call(handle)).is_none() {
            subscriber::error!(target: "verger::lifecycle", "a function of `on_start` has panicked");
        }
    }
    watch::watch_application(&root.shared);
    let exit_thread = ends_process.then(|| ExitThread::start(root.blocked()));
    // With time for what is between two stages.
    let deadline = bounds.total.saturating_add(app.exit_grace.max(MARGIN));
    let mut run = RunStart::new(&root, &mut program);
    let watched = Arc::clone(&root.shared.tree);
    run.alive.push(Box::new(move || watched.watch.makes_progress()));
    // On the signals thread: if all threads of the runtime are blocked, no termination begins.
    if let Some(exit_thread) = exit_thread.clone() {
        run.on_signal.push(Box::new(move || exit_thread.arm(deadline)));
    }
    companions.iter_mut().rev().for_each(|companion| companion.start(&mut run));
    drop(run);
    let mut began = None;
    let mut observe = |cause: &str, stage: &str| {
        let began = *began.get_or_insert_with(now);
        let left = deadline.saturating_sub(now().saturating_duration_since(began));
        if let Some(exit_thread) = &exit_thread {
            exit_thread.arm(left);
        }
        companions.iter_mut().for_each(|companion| companion.stage(cause, stage, left));
    };
    let cause = program.run(&root, &mut observe).await;
    for companion in companions {
        companion.finish().await;
    }
    let result = cause.over(path, root.result().await);
    Ok((result, exit_thread))
}

/// Prepares everything for the start. `None`: the tree was only checked.
async fn prepare(
    mut tree: Supervisor,
    companions: &mut [Box<dyn Companion>],
    check_only: bool,
) -> Result<Option<Supervisor>, RunError> {
    for companion in companions.iter_mut() {
        tree = companion.configure(tree).await?;
    }
    if check_only {
        subscriber::info!(target: "verger::config", "the tree and its configuration are valid");
        return Ok(None);
    }
    for companion in companions.iter_mut() {
        companion.prepare(&mut tree).await?;
    }
    Ok(Some(tree))
}

/// Sends panics of children to the log instead of stderr, with their location.
///
/// Call it at the start of `main`, after the `tracing` subscriber is set. From then on a panic inside of
/// a child is logged once the child has unwound, and stderr stays clean:
///
/// ```text
/// ERROR verger::panic: panicked child=app/db incarnation=1 location="src/db.rs:10:5" panic="no connection"
/// ```
///
/// Where `RUST_BACKTRACE` enables backtraces, the line also has the field `backtrace`. The reason of the
/// exit, [`ExitReason::Panicked`](crate::ExitReason::Panicked), has the
/// [location](crate::exit::PanicMessage::location) as well, so that the status and the lines about restarts
/// show it. Panics that code inside of a child catches itself are logged, too.
///
/// The previous hook is called for every other panic: on threads and in tasks that a child has spawned, in
/// callbacks of a supervisor, and outside of trees. It is also called for a child's panic if no subscriber
/// receives error lines, or if the program is compiled with `panic = "abort"`. A panic that aborts the
/// process because it happens while another one unwinds is printed to stderr.
///
/// Further calls have no effect. Without a call, this crate sets no hook.
///
/// # Panics
///
/// Panics if the calling thread is panicking.
///
/// # Example
///
/// ```
/// use verger::{Context, Exit, Supervisor, install_panic_hook, worker};
///
/// async fn db(_ctx: Context) -> Exit {
///     panic!("no connection");
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tracing_subscriber::fmt().with_writer(std::io::sink).init();
/// install_panic_hook();
///
/// let tree = Supervisor::builder("app").child(worker("db", db)).build()?.start().await?;
/// # tokio::time::sleep(std::time::Duration::from_millis(1)).await;
/// let status = tree.status().await?;
/// let text = status.to_string();
/// assert!(text.contains("panicked at "), "{text}");
/// # Ok(())
/// # }
/// ```
pub fn install_panic_hook() {
    crate::panic::install(crate::subscriber::is_listening);
}
