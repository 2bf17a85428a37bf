//! The description of a child that is an OS process.

use std::future::Future;
use std::panic::Location;
#[cfg(target_os = "linux")]
use std::path::PathBuf;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::{fmt, io};

use tokio::process::{ChildStdin, Command};

use super::exit::{StopSignal, Successes};
use super::keeper::{CommandFactory, factory_of};
use super::life::ProcessFactory;
use super::ready::ReadyWhen;
use crate::child::{ChildSpec, Component, FactoryKind};
use crate::panic::Foreign;

/// Describes a child that is an OS process, whose command `factory` makes for each incarnation.
///
/// The factory returns a [`std::process::Command`] or a [`tokio::process::Command`]. Options of the process are set on
/// the returned [`CommandSpec`]; those of any child, such as its restart policy, on
/// [`into_child`](CommandSpec::into_child).
///
/// ```
/// use std::process::Command;
/// use std::time::Duration;
///
/// use verger::process::ReadyWhen;
/// use verger::{Supervisor, command};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = "echo listening; exec sleep 1000";
/// let server = command("server", move || {
///     let mut command = Command::new("sh");
///     command.args(["-c", script]);
///     command
/// })
/// .ready_when(ReadyWhen::line_contains("listening"))
/// .into_child()
/// .shutdown(Duration::from_secs(10));
///
/// let app = Supervisor::builder("app").child(server).build()?.start().await?;
/// app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
///
/// See the [module](super) for what happens to the process.
#[track_caller]
pub fn command<F, C>(name: impl Into<String>, factory: F) -> CommandSpec
where
    F: Fn() -> C + Send + Sync + 'static,
    C: Into<Command>,
{
    CommandSpec {
        name: name.into(),
        type_name: std::any::type_name::<F>(),
        factory: factory_of(factory),
        options: ProcessOptions::default(),
        defined_at: Location::caller(),
    }
}

/// A description of a child that is an OS process; see [`command`].
///
/// It converts into a [`ChildSpec`], so it can be given to a supervisor as it is. In a struct with
/// [`#[supervisor]`](macro@crate::supervisor), a field with `#[child]` can be of this type.
///
/// The example of [`command`] sets its options.
#[derive(Clone)]
#[must_use = "a spec does nothing until it is given to a supervisor"]
pub struct CommandSpec {
    name: String,
    type_name: &'static str,
    factory: CommandFactory,
    options: ProcessOptions,
    defined_at: &'static Location<'static>,
}

impl CommandSpec {
    /// Returns the spec of the child, for the options that each child has.
    pub fn into_child(self) -> ChildSpec {
        let Self { name, type_name, factory, options, defined_at } = self;
        let factory = Arc::new(ProcessFactory { factory, options, type_name });
        ChildSpec::new(name, FactoryKind::Value(Foreign::new(factory))).described_at(defined_at)
    }

    /// Sets exit codes that are no failure, beside 0. Default: none.
    ///
    /// The child has ended normally then. Its restart type decides whether it is restarted.
    pub fn success_exit_codes(mut self, codes: impl IntoIterator<Item = i32>) -> Self {
        self.options.successes.codes = codes.into_iter().collect();
        self
    }

    /// Sets signals that are no failure if they end the process. Default: none.
    ///
    /// The end by its [`stop_signal`](Self::stop_signal), or with the exit code 128 plus its number, is never a failure
    /// if the child was cancelled.
    pub fn success_signals(mut self, signals: impl IntoIterator<Item = StopSignal>) -> Self {
        self.options.successes.signals = signals.into_iter().collect();
        self
    }

    /// Sets the signal that the process group gets when the child is cancelled. Default: [`StopSignal::Term`].
    ///
    /// The group then has the child's [`shutdown`](ChildSpec::shutdown) grace: the child has stopped when the last
    /// process of the group has ended. After the grace the group is killed. SIGCONT follows the signal, so that a
    /// suspended process gets it. [`kill_mode`](Self::kill_mode) sends it to the process alone.
    pub fn stop_signal(mut self, signal: StopSignal) -> Self {
        self.options.successes.stop_signal = signal;
        self
    }

    /// Sets which processes get the stop signal. Default: [`KillMode::ControlGroup`], all of the process group.
    pub fn kill_mode(mut self, mode: KillMode) -> Self {
        self.options.kill_mode = mode;
        self
    }

    /// Sets where stdout goes. Default: [`Output::Capture`].
    pub fn stdout(mut self, output: Output) -> Self {
        self.options.stdout = output;
        self
    }

    /// Sets where stderr goes. Default: [`Output::Capture`].
    pub fn stderr(mut self, output: Output) -> Self {
        self.options.stderr = output;
        self
    }

    /// Sets how many of the last lines of stderr a [`ProcessExit`](super::ProcessExit) has. Default: 20.
    pub fn kept_lines(mut self, lines: usize) -> Self {
        self.options.kept_lines = lines;
        self
    }

    /// Gives these bytes to the stdin of each incarnation, and then its end.
    ///
    /// Without this and the methods below, stdin has its end at once, as that of `/dev/null`.
    pub fn stdin_bytes(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.options.stdin = StdinFrom::Bytes(bytes.into().into());
        self
    }

    /// Calls `feed` for each incarnation with its stdin, which has its end when `feed` drops it.
    ///
    /// A process that reads no more is no failure. Any other error that `feed` returns is one: the process is killed,
    /// and the child fails as [`CommandError::Stdin`](super::CommandError::Stdin).
    ///
    /// ```
    /// use std::process::Command;
    ///
    /// use tokio::io::AsyncWriteExt;
    /// use verger::command;
    ///
    /// let sorted = command("sort", || Command::new("sort")).stdin_from(|mut stdin| async move {
    ///     for row in 0..1000 {
    ///         stdin.write_all(format!("{row}\n").as_bytes()).await?;
    ///     }
    ///     Ok(())
    /// });
    /// # drop(sorted);
    /// ```
    pub fn stdin_from<F, Fut>(mut self, feed: F) -> Self
    where
        F: Fn(ChildStdin) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<()>> + Send + 'static,
    {
        let feed = Arc::new(move |stdin| Box::pin(feed(stdin)) as _);
        self.options.stdin = StdinFrom::Function(Foreign::new(feed));
        self
    }

    /// Gives the process a stdin that stays open until the process, or this program, has ended.
    ///
    /// A process that reads its stdin to the end, and ends then, so ends with this program, also if that is killed
    /// with `kill -9`. Nothing is ever written to it.
    pub fn ends_with_stdin(mut self) -> Self {
        self.options.stdin = StdinFrom::Open;
        self
    }

    /// Leaves stdin as the command itself sets it.
    pub fn stdin_of_command(mut self) -> Self {
        self.options.stdin = StdinFrom::Command;
        self
    }

    /// Sets when the process counts as ready. Default: [`ReadyWhen::spawned`].
    pub fn ready_when(mut self, ready: ReadyWhen) -> Self {
        self.options.ready = ready;
        self
    }

    /// Also kills processes of the child that have left its process group, found by a variable in their environment.
    /// Linux only, 5.3 or newer.
    ///
    /// Each incarnation gets a variable with a unique name, `VERGER_CHILD_…`, that the processes it starts inherit. Once
    /// the group was killed, all processes of this user that have the variable are killed, until there are none. This
    /// reads the environment of every process of the user.
    ///
    /// A process escapes if it was started with an environment from which the variable was removed, runs as a different user,
    /// or isn't in the `/proc` of this program. A [`cgroup`](Self::cgroup) has none of these limits.
    #[cfg(target_os = "linux")]
    pub fn kill_marked(mut self) -> Self {
        self.options.kills_marked = true;
        self
    }

    /// Runs each incarnation in a new cgroup below this one, and kills all processes in it. Linux only, 5.14 or newer.
    ///
    /// `parent` is the directory of a cgroup v2 in which this program may create cgroups and move processes; see
    /// [`own_cgroup`](super::own_cgroup). If that fails, the child fails to start as
    /// [`CommandError::Cgroup`](super::CommandError::Cgroup). The cgroup is removed when the incarnation has ended. If
    /// this program is killed, it remains with its processes: `verger-PID-N`, with the number of this program.
    ///
    /// The process is moved just after it was started. What it starts before that, within microseconds, remains outside,
    /// and is still killed with the process group if it hasn't left that as well.
    #[cfg(target_os = "linux")]
    pub fn cgroup(mut self, parent: impl Into<PathBuf>) -> Self {
        self.options.cgroup = Some(parent.into());
        self
    }
}

impl From<CommandSpec> for ChildSpec {
    fn from(spec: CommandSpec) -> Self {
        spec.into_child()
    }
}

/// The same process under that name.
impl Component for CommandSpec {
    fn into_spec(self, name: String) -> ChildSpec {
        self.into_child().named(name)
    }
}

impl fmt::Debug for CommandSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandSpec")
            .field("name", &self.name)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
pub(super) struct ProcessOptions {
    pub(super) stdin: StdinFrom,
    pub(super) stdout: Output,
    pub(super) stderr: Output,
    pub(super) kept_lines: usize,
    pub(super) successes: Successes,
    pub(super) kill_mode: KillMode,
    pub(super) ready: ReadyWhen,
    #[cfg(target_os = "linux")]
    pub(super) kills_marked: bool,
    #[cfg(target_os = "linux")]
    pub(super) cgroup: Option<PathBuf>,
}

impl Default for ProcessOptions {
    fn default() -> Self {
        let successes =
            Successes { codes: Vec::new(), signals: Vec::new(), stop_signal: StopSignal::Term };
        Self {
            stdin: StdinFrom::default(),
            stdout: Output::default(),
            stderr: Output::default(),
            kept_lines: 20,
            successes,
            kill_mode: KillMode::default(),
            ready: ReadyWhen::spawned(),
            #[cfg(target_os = "linux")]
            kills_marked: false,
            #[cfg(target_os = "linux")]
            cgroup: None,
        }
    }
}

/// Where the stdout or the stderr of a process goes.
///
/// The example of [`StopSignal`](crate::process::StopSignal) sets one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Output {
    /// Each line is logged, at `INFO` with the target `verger::process`. The default.
    #[default]
    Capture,
    /// To the same place as that of this program.
    Inherit,
    /// Nowhere.
    Null,
    /// Where the command itself says, for example to a file.
    Command,
}

/// Which processes of a child get its [stop signal](CommandSpec::stop_signal), in the words of systemd's `KillMode=`.
///
/// ```
/// use std::process::Command;
///
/// use verger::command;
/// use verger::process::KillMode;
///
/// // The server stops its workers itself, one after the other.
/// let server = command("server", || Command::new("/usr/local/bin/server")).kill_mode(KillMode::Mixed);
/// # drop(server);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KillMode {
    /// All processes of the process group. Each has the grace to end, also after the end of the process that was
    /// started. The default.
    #[default]
    ControlGroup,
    /// The process that was started, alone. When it has ended, what is left of its group is killed immediately.
    Mixed,
}

type Feed =
    dyn Fn(ChildStdin) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send>> + Send + Sync;

/// Where the stdin of a process comes from.
#[derive(Clone, Default)]
pub(super) enum StdinFrom {
    /// It has an end at once.
    #[default]
    Nothing,
    /// A pipe that stays open while this program lives.
    Open,
    Bytes(Arc<[u8]>),
    Function(Foreign<Feed>),
    /// Where the command itself says.
    Command,
}

impl fmt::Debug for StdinFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "Nothing",
            Self::Open => "Open",
            Self::Bytes(_) => "Bytes",
            Self::Function(_) => "Function",
            Self::Command => "Command",
        })
    }
}

/// Connects the standard streams.
pub(super) fn connect(command: &mut Command, stdin: &StdinFrom, stdout: Output, stderr: Output) {
    match stdin {
        StdinFrom::Nothing => drop(command.stdin(Stdio::null())),
        StdinFrom::Open | StdinFrom::Bytes(_) | StdinFrom::Function(_) => {
            command.stdin(Stdio::piped());
        }
        StdinFrom::Command => {}
    }
    if let Some(stdout) = stdio(stdout) {
        command.stdout(stdout);
    }
    if let Some(stderr) = stdio(stderr) {
        command.stderr(stderr);
    }
}

fn stdio(output: Output) -> Option<Stdio> {
    match output {
        Output::Capture => Some(Stdio::piped()),
        Output::Inherit => Some(Stdio::inherit()),
        Output::Null => Some(Stdio::null()),
        Output::Command => None,
    }
}
