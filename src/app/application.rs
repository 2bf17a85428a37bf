//! A tree as a whole program: its options.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use super::hooks::HookStep;
#[cfg(any(feature = "health", feature = "console"))]
use super::listen::ListenAddress;
use super::memory::MemoryGuard;
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
    pub(super) memory: Option<MemoryGuard>,
    #[cfg(feature = "config")]
    pub(super) reloads: super::reload::Reloads,
    /// Whether it only checks whether it could be started.
    #[cfg(feature = "config")]
    pub(super) check_only: bool,
    #[cfg(feature = "health")]
    pub(super) probes: Option<ListenAddress>,
    #[cfg(feature = "console")]
    pub(super) console: Option<(ListenAddress, crate::console::Console)>,
    #[cfg(feature = "systemd")]
    pub(super) systemd: bool,
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
            memory: None,
            #[cfg(feature = "config")]
            reloads: super::reload::Reloads::default(),
            #[cfg(feature = "config")]
            check_only: false,
            #[cfg(feature = "systemd")]
            systemd: false,
            #[cfg(feature = "health")]
            probes: None,
            #[cfg(feature = "console")]
            console: None,
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
        self.program = self.program.on(stop);
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

    /// Guards the memory: when its usage reaches a part of the limit, the tree is stopped in its stages, or a
    /// part of it is [restarted](MemoryGuard::restart).
    ///
    /// The cause of the stop is the usage: `memory at 92 % of 512 MiB (cgroup v2)`. The first signal after that is
    /// ignored, and the next one ends the process. Default: no guard.
    pub fn memory(mut self, guard: MemoryGuard) -> Self {
        self.memory = Some(guard);
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

    /// Reads the configuration from a TOML file, at the start and at each reload.
    ///
    /// A relative path is that of the working directory at that moment. See [`config`](Self::config) for what
    /// reloads it.
    #[cfg(feature = "config-file")]
    pub fn config_file(self, path: impl Into<std::path::PathBuf>) -> Self {
        let path = path.into();
        self.config(move || crate::config::Config::read(&path))
    }

    /// Reads the configuration with this function, at the start and at each reload.
    ///
    /// The function returns a [`Config`](crate::config::Config), or a `Result` of one. It may block; it runs on a
    /// thread of its own. If the configuration is invalid at the start, all
    /// mistakes are printed, no child is started, and the exit code is 2. Later, an invalid configuration is
    /// logged and changes nothing.
    ///
    /// SIGHUP reloads what has changed, and SIGUSR2 [all of it](crate::config::Plan::forced), on Unix, with the
    /// feature `signal`; see [`reload_at_signals`](Self::reload_at_signals). So does a [`reloader`](Self::reloader),
    /// anywhere.
    #[cfg(feature = "config")]
    pub fn config<R: crate::config::IntoConfig>(
        mut self,
        read: impl Fn() -> R + Send + Sync + 'static,
    ) -> Self {
        self.reloads.source = Some(crate::config::ConfigSource::new(read));
        self
    }

    /// Sets whether SIGHUP and SIGUSR2 reload the configuration. Default: `true`.
    ///
    /// If not, or without a configuration, they do what they do in any program: they end the process.
    #[cfg(feature = "config")]
    pub fn reload_at_signals(mut self, at_signals: bool) -> Self {
        self.reloads.at_signals = at_signals;
        self
    }

    /// Returns what reloads the configuration while the application runs.
    #[cfg(feature = "config")]
    #[must_use]
    pub fn reloader(&self) -> super::Reloader {
        self.reloads.reloader()
    }

    /// Checks the tree and its configuration, and starts nothing, if `check_only` is `true`.
    ///
    /// [`run`](Self::run) then returns 0 if the application could be started, and otherwise prints what is wrong
    /// and returns 2. Children check their values, too.
    ///
    /// ```no_run
    /// # use verger::{Application, Supervisor};
    /// # fn f(app: Application) -> Application {
    /// app.check_only(std::env::args().any(|argument| argument == "--check"))
    /// # }
    /// ```
    #[cfg(feature = "config")]
    pub fn check_only(mut self, check_only: bool) -> Self {
        self.check_only = check_only;
        self
    }

    /// Notifies systemd, if it runs the process as a unit with `Type=notify` or `Type=notify-reload`.
    ///
    /// `READY=1` is sent when the first start is complete, `STATUS` when that changes, `STOPPING=1` when
    /// something asks for a stop, then `EXTEND_TIMEOUT_USEC` while the stages last, and `WATCHDOG=1` while the
    /// supervisors' loops turn. Without `NOTIFY_SOCKET` in the environment it has no effect.
    #[cfg(feature = "systemd")]
    pub fn systemd(mut self) -> Self {
        self.systemd = true;
        self
    }

    /// Serves [probes](super::probes()) at this address, such as `0.0.0.0:8080`, on a listener of their own.
    ///
    /// It listens before the tree starts and until the hooks after the stop have run. `/readyz` answers with
    /// 503 as soon as something asks for a stop. If the address can't be bound, the application ends with exit
    /// code 2.
    #[cfg(feature = "health")]
    pub fn probes(mut self, address: impl Into<String>) -> Self {
        self.probes = Some(ListenAddress::Address(address.into()));
        self
    }

    /// Serves [probes](super::probes()) on this listener, such as one that systemd has passed on.
    #[cfg(feature = "health")]
    pub fn probes_on(mut self, listener: std::net::TcpListener) -> Self {
        self.probes = Some(ListenAddress::Bound(listener));
        self
    }

    /// Serves a [console](crate::console) at this address, such as `127.0.0.1:7007`, on a listener of its own.
    ///
    /// It listens before the tree starts and until the hooks after the stop have run. If the address can't be
    /// bound, or isn't a loopback address without
    /// [`allow_remote`](crate::console::Console::allow_remote), the application ends with exit code 2. A log line
    /// with target `verger::console` says where the console is, and which token its actions need.
    ///
    /// ```no_run
    /// use verger::console::Console;
    /// # use verger::{Application, Supervisor};
    ///
    /// # fn f(tree: Supervisor) -> Application {
    /// Application::new(tree).console("127.0.0.1:7007", Console::new().allow_actions(true))
    /// # }
    /// ```
    #[cfg(feature = "console")]
    pub fn console(mut self, address: impl Into<String>, console: crate::console::Console) -> Self {
        self.console = Some((ListenAddress::Address(address.into()), console));
        self
    }

    /// Serves a [console](crate::console) on this listener, such as one whose port the system has chosen.
    #[cfg(feature = "console")]
    pub fn console_on(
        mut self,
        listener: std::net::TcpListener,
        console: crate::console::Console,
    ) -> Self {
        self.console = Some((ListenAddress::Bound(listener), console));
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
