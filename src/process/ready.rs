//! When a process counts as ready.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::probe;
use super::spawn::{CommandFactory, factory_of};
use crate::child::Context;
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

impl fmt::Debug for LineWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineWatch").finish_non_exhaustive()
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
        if let Ok(Ok(())) = timeout(COMMAND, probe::run(&factory, ctx)).await {
            return;
        }
        sleep(AGAIN).await;
    }
}
