//! When a process counts as ready: by a line, a port, a command, or a message on the socket that systemd would read.

use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, fs, io};

use tokio::net::{TcpStream, UnixDatagram};
use tokio::process::Command;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::error::CommandError;
use super::exit::ProcessExit;
use super::keeper::{CommandFactory, Containment, factory_of, spawn};
use super::output::start_of;
use crate::child::{Context, HealthCheck};
use crate::exit::{Exit, ExitError};
use crate::panic::Foreign;
use crate::sync::Mutex;

/// The time between two attempts.
const AGAIN: Duration = Duration::from_millis(100);
/// How long a connection may take, and a command.
const CONNECTION: Duration = Duration::from_secs(1);
const COMMAND: Duration = Duration::from_secs(10);

/// When the process of a child counts as ready; see [`CommandSpec::ready_when`](super::CommandSpec::ready_when).
///
/// Until then the child is activating: siblings that are declared after it wait, and its
/// [`activation_timeout`](crate::ChildSpec::activation_timeout) limits that.
///
/// The example of [`command`](crate::command) waits for a line.
#[derive(Clone, Debug)]
pub struct ReadyWhen(pub(super) Condition);

#[derive(Clone)]
pub(super) enum Condition {
    Spawned,
    Line(Foreign<dyn Fn(&str) -> bool + Send + Sync>),
    Tcp(SocketAddr),
    Notify,
    Command(CommandFactory),
}

impl ReadyWhen {
    /// As soon as the process was started. The default.
    #[must_use]
    pub fn spawned() -> Self {
        Self(Condition::Spawned)
    }

    /// With the first line of stdout or stderr that contains this text.
    ///
    /// One of the two has to be [captured](super::Output::Capture). Many programs write to a pipe only when they have
    /// several kilobytes, unless an option, or `stdbuf -oL`, makes them write each line.
    #[must_use]
    pub fn line_contains(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::line(move |line| line.contains(&text))
    }

    /// With the first line of stdout or stderr for which the function returns `true`.
    ///
    /// A panic of the function is a failure of the child. Otherwise as
    /// [`line_contains`](Self::line_contains).
    #[must_use]
    pub fn line(matches: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self(Condition::Line(Foreign::new(Arc::new(matches))))
    }

    /// Once a TCP connection to this address is accepted. It is closed at once. Tried every 100 ms.
    ///
    /// Any process that listens there makes the child ready.
    #[must_use]
    pub fn tcp(address: impl Into<SocketAddr>) -> Self {
        Self(Condition::Tcp(address.into()))
    }

    /// When the process says so, as to systemd: `READY=1` to the socket in `NOTIFY_SOCKET`.
    ///
    /// `STATUS=` becomes the child's [status](crate::Context::set_status), also later, in place of the last line of its
    /// output. `WATCHDOG=1` is a [heartbeat](crate::Context::heartbeat), so a child with a
    /// [`watchdog`](crate::ChildSpec::watchdog) whose process stops sending them is hung. Set `WATCHDOG_USEC` in the
    /// command for a process that has to be told the interval. What else such a message contains is ignored.
    ///
    /// The socket is in a new directory below [`std::env::temp_dir`]. Any process that knows its name can write to it.
    #[must_use]
    pub fn notify() -> Self {
        Self(Condition::Notify)
    }

    /// Once a second command ends with exit code 0, such as `pg_isready`. Tried every 100 ms.
    ///
    /// `factory` makes the command of each attempt. It has no stdin and no output, and is killed after 10 s.
    #[must_use]
    pub fn command<F, C>(factory: F) -> Self
    where
        F: Fn() -> C + Send + Sync + 'static,
        C: Into<Command>,
    {
        Self(Condition::Command(factory_of(factory)))
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spawned => f.write_str("Spawned"),
            Self::Line(_) => f.write_str("Line"),
            Self::Tcp(address) => f.debug_tuple("Tcp").field(address).finish(),
            Self::Notify => f.write_str("Notify"),
            Self::Command(_) => f.write_str("Command"),
        }
    }
}

/// Waits for a line that makes the child ready.
pub(super) struct LineWatch {
    matches: Foreign<dyn Fn(&str) -> bool + Send + Sync>,
    found: Mutex<Option<oneshot::Sender<()>>>,
}

impl LineWatch {
    pub(super) fn new(
        matches: Foreign<dyn Fn(&str) -> bool + Send + Sync>,
    ) -> (Self, oneshot::Receiver<()>) {
        let (sender, found) = oneshot::channel();
        (Self { matches, found: Mutex::new(Some(sender)) }, found)
    }

    /// Takes the next line of stdout or stderr.
    pub(super) fn line(&self, line: &str) {
        let is_waiting = self.found.lock().is_some();
        // Called without the lock: it is the user's.
        if is_waiting
            && (self.matches)(line)
            && let Some(found) = self.found.lock().take()
        {
            let _ = found.send(());
        }
    }
}

/// Resolves once the address accepts a connection.
pub(super) async fn accepts(address: SocketAddr) {
    loop {
        if let Ok(Ok(_)) = timeout(CONNECTION, TcpStream::connect(address)).await {
            return;
        }
        sleep(AGAIN).await;
    }
}

/// Resolves once the command has succeeded.
pub(super) async fn succeeds(factory: CommandFactory, ctx: &Context) {
    loop {
        if let Ok(Ok(())) = timeout(COMMAND, run(&factory, ctx)).await {
            return;
        }
        sleep(AGAIN).await;
    }
}

impl HealthCheck {
    /// Creates a check that runs a command, which succeeds with exit code 0.
    ///
    /// `factory` makes the command of each check. It has no stdin and no output. One that isn't over after the
    /// [`timeout`](Self::timeout), or when the child ends, is killed with its process group. Use it for any child, with
    /// or without a process.
    ///
    /// ```
    /// use std::process::Command;
    ///
    /// use verger::{HealthCheck, command};
    ///
    /// let check = HealthCheck::command(|| {
    ///     let mut ping = Command::new("redis-cli");
    ///     ping.arg("ping");
    ///     ping
    /// });
    /// let redis = command("redis", || Command::new("redis-server")).into_child().health_check(check);
    /// # drop(redis);
    /// ```
    pub fn command<F, C>(factory: F) -> Self
    where
        F: Fn() -> C + Send + Sync + 'static,
        C: Into<Command>,
    {
        let factory = factory_of(factory);
        Self::new(move |ctx| {
            let factory = factory.clone();
            async move { run(&factory, &ctx).await }
        })
    }
}

/// Runs a command to its end. Dropping the future kills it.
///
/// # Errors
///
/// If it can't be started, or fails.
pub(super) async fn run(factory: &CommandFactory, ctx: &Context) -> Exit {
    // A child that has ended is neither ready nor healthy, and asks no more.
    let Some(guard) = ctx.incarnation.admit_helper() else { return Err(ExitError::ignore()) };
    let mut command = factory();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let (mut process, _pipes) = spawn(command, Containment::default(), ctx, guard)?;
    let status = process.ended().await?;
    if status.success() {
        return Ok(());
    }
    Err(format!("`{program}` {}", ProcessExit::new(status, Vec::new())).into())
}

/// The most bytes of a status that is kept.
const MAX_STATUS: usize = 200;

/// A datagram socket in a directory of its own, which is removed when this is dropped.
pub(super) struct NotifySocket {
    socket: UnixDatagram,
    directory: PathBuf,
    path: PathBuf,
}

/// What a process reports.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ProcessReport {
    pub(super) is_ready: bool,
    pub(super) is_alive: bool,
    pub(super) status: Option<String>,
}

impl NotifySocket {
    /// Creates a socket. Its name can't be guessed, so only a process that is told it can use it.
    pub(super) fn bind() -> Result<Self, CommandError> {
        let directory = std::env::temp_dir().join(format!("verger-{:016x}", fastrand::u64(..)));
        let path = directory.join("notify");
        let failed = |source| CommandError::NotifySocket { path: path.clone(), source };
        // It can be entered, and not listed: the command may run as a different user.
        fs::DirBuilder::new().mode(0o711).create(&directory).map_err(failed)?;
        let bound = bind(&path);
        match bound {
            Ok(socket) => Ok(Self { socket, directory, path }),
            Err(source) => {
                remove(&directory, &path);
                Err(failed(source))
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for the next report.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub(super) async fn report(&self) -> io::Result<ProcessReport> {
        let mut message = [0; 4096];
        let length = self.socket.recv(&mut message).await?;
        Ok(parse(&message[..length]))
    }
}

impl Drop for NotifySocket {
    fn drop(&mut self) {
        remove(&self.directory, &self.path);
    }
}

fn bind(path: &Path) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o666))?;
    Ok(socket)
}

fn remove(directory: &Path, path: &Path) {
    let _ = fs::remove_file(path);
    let _ = fs::remove_dir(directory);
}

/// Reads a message in the format of `sd_notify`. What isn't known is ignored.
fn parse(message: &[u8]) -> ProcessReport {
    let mut report = ProcessReport::default();
    for line in String::from_utf8_lossy(message).lines() {
        match line.split_once('=') {
            Some(("READY", "1")) => report.is_ready = true,
            Some(("WATCHDOG", "1")) => report.is_alive = true,
            Some(("STATUS", text)) => report.status = Some(start_of(text, MAX_STATUS).into_owned()),
            _ => {}
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_a_line_for_each_fact() {
        let report = |message: &str| parse(message.as_bytes());
        let ready = ProcessReport { is_ready: true, ..ProcessReport::default() };
        assert_eq!(report("READY=1"), ready);
        assert_eq!(report("READY=1\n"), ready);
        let status = Some("loading = 3".to_owned());
        assert_eq!(
            report("STATUS=loading = 3"),
            ProcessReport { status, ..ProcessReport::default() }
        );
        assert_eq!(
            report("MAINPID=1\nWATCHDOG=1\nSTATUS=\nREADY=1"),
            ProcessReport { is_ready: true, is_alive: true, status: Some(String::new()) }
        );
        for ignored in ["READY=0", "READY", "", "X_READY=1", "\u{0}"] {
            assert_eq!(report(ignored), ProcessReport::default(), "{ignored}");
        }
        assert_eq!(parse(b"\xff\xfe\nREADY=1"), ready);
    }
}
