//! What an application notifies systemd of: that its tree is ready, what is wrong with it, and that it stops.
//!
//! `sd_notify::notify` sends to the socket that the environment names, blocks while systemd is busy, and
//! doesn't know abstract sockets. So the datagrams are sent here.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::future::pending;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::pin::pin;
use std::time::Duration;
use std::{env, io};

use async_trait::async_trait;
use tokio::sync::mpsc::{self, UnboundedSender, unbounded_channel};
use tokio::time::{sleep, timeout};

use super::SYSTEMD_VARIABLES;
use super::reporter::{Message, Reporter, SystemdNotice};
use crate::app::companion::{Companion, MaybeCompanion, RunStart, companion};
use crate::clock;
use crate::handle::SupervisorHandle;
use crate::named_task::OwnedTask;
use crate::status::Status;
use crate::subscriber::warn;

/// How long to wait while systemd doesn't read.
const RETRY: Duration = Duration::from_millis(100);

/// Tells systemd about an application. See the [module above](super).
pub(super) struct Notifier {
    socket: Socket,
    watchdog: Option<Duration>,
}

impl Notifier {
    /// Returns a notifier if systemd runs this process, and waits for notifications.
    ///
    /// A value in the environment that can't be used is logged.
    fn new(environment: &Environment) -> Option<Self> {
        let address = environment.socket.as_deref()?;
        let socket = Socket::open(address).map_err(|error| {
            let (address, error) = (address.to_string_lossy(), error.to_string());
            let address = &*address;
            warn!(target: "verger::systemd", address, error, "can't notify systemd");
        });
        let watchdog = environment.watchdog().unwrap_or_else(|(variable, value)| {
            warn!(target: "verger::systemd", variable, value, "no number: watchdog ignored");
            None
        });
        Some(Self { socket: socket.ok()?, watchdog })
    }

    /// Sends what the notices say until their channel is closed, and all of it is sent.
    ///
    /// The watchdog is pinged while `alive` returns `true`: whether all loops of the tree turn. It is called
    /// at half of the watchdog's interval.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, what systemd hasn't received yet is lost.
    pub(super) async fn run(
        self,
        mut notices: mpsc::UnboundedReceiver<SystemdNotice>,
        alive: impl Fn() -> bool,
    ) {
        let mut reporter = Reporter::new(self.watchdog, clock::now());
        let mut outbox = Outbox { socket: self.socket, unsent: VecDeque::new(), failed: false };
        loop {
            let retry = (!outbox.flush()).then(|| clock::now() + RETRY);
            let deadline = [retry, reporter.next_deadline()].into_iter().flatten().min();
            let wait = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                notice = notices.recv() => match notice {
                    Some(notice) => outbox.push(reporter.on_notice(notice, clock::now())),
                    None => break,
                },
                () = wait => outbox.push(reporter.on_time(clock::now(), &alive)),
            }
        }
        // A systemd that still doesn't read must not keep the process from ending.
        for _ in 0..10 {
            if outbox.flush() {
                break;
            }
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// The datagrams that systemd hasn't received yet.
struct Outbox {
    socket: Socket,
    unsent: VecDeque<String>,
    /// Whether a send has failed, which was logged.
    failed: bool,
}

impl Outbox {
    fn push(&mut self, messages: impl IntoIterator<Item = Message>) {
        self.unsent.extend(messages.into_iter().map(|message| message.text()));
    }

    /// Sends what can be sent, and returns whether nothing is left.
    fn flush(&mut self) -> bool {
        while let Some(text) = self.unsent.front() {
            match self.socket.send(text) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) if !self.failed => {
                    self.failed = true;
                    let error = error.to_string();
                    warn!(target: "verger::systemd", error, "can't notify systemd");
                }
                Ok(()) | Err(_) => {}
            }
            self.unsent.pop_front();
        }
        true
    }
}

/// The variables that systemd sets for a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Environment {
    /// `NOTIFY_SOCKET`.
    pub(super) socket: Option<OsString>,
    /// `WATCHDOG_USEC`.
    pub(super) watchdog_usec: Option<OsString>,
    /// `WATCHDOG_PID`.
    watchdog_pid: Option<OsString>,
    /// The number of this process.
    pub(super) process: u32,
}

impl Environment {
    pub(super) fn read() -> Self {
        let [socket, watchdog_usec, watchdog_pid] = SYSTEMD_VARIABLES.map(env::var_os);
        Self { socket, watchdog_usec, watchdog_pid, process: std::process::id() }
    }

    /// Returns how often systemd expects a sign of life of this process, if it does.
    ///
    /// # Errors
    ///
    /// The name and the value of a variable that is no number.
    pub(super) fn watchdog(&self) -> Result<Option<Duration>, (&'static str, String)> {
        let Some(micros) = number::<u64>("WATCHDOG_USEC", self.watchdog_usec.as_deref())? else {
            return Ok(None);
        };
        // The watchdog may be meant for the parent of this process.
        let process = number::<u32>("WATCHDOG_PID", self.watchdog_pid.as_deref())?;
        let is_meant = process.is_none_or(|process| process == self.process);
        Ok((is_meant && micros > 0).then(|| Duration::from_micros(micros)))
    }
}

fn number<N: std::str::FromStr>(
    name: &'static str,
    value: Option<&OsStr>,
) -> Result<Option<N>, (&'static str, String)> {
    let Some(value) = value else { return Ok(None) };
    let parsed = value.to_str().and_then(|value| value.parse().ok());
    parsed.map(Some).ok_or_else(|| (name, value.to_string_lossy().into_owned()))
}

/// The socket on which systemd receives what the service reports.
struct Socket {
    socket: UnixDatagram,
    address: SocketAddr,
}

impl Socket {
    /// Opens a socket that sends to an address: a path, or an abstract name after `@`.
    fn open(address: &OsStr) -> io::Result<Self> {
        let address = match address.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            [b'/', ..] => SocketAddr::from_pathname(address)?,
            _ => {
                let problem = "neither an absolute path nor an abstract socket";
                return Err(io::Error::new(io::ErrorKind::Unsupported, problem));
            }
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, address })
    }

    /// Sends a datagram. An error of the kind `WouldBlock` means that systemd has to read others first.
    pub(super) fn send(&self, text: &str) -> io::Result<()> {
        // Not connected, so that a systemd that has opened its socket again still gets it.
        self.socket.send_to_addr(text.as_bytes(), &self.address).map(drop)
    }
}

/// How often the status is looked at.
const PERIOD: Duration = Duration::from_secs(5);
/// How long that may take.
const SNAPSHOT: Duration = Duration::from_secs(2);

/// The tasks that notify systemd. They end when this is dropped.
struct SystemdTasks {
    notices: UnboundedSender<SystemdNotice>,
    notifier: OwnedTask<()>,
    watcher: OwnedTask<()>,
}

/// The notifications of an application. `None` before the start, and if systemd waits for none.
#[derive(Default)]
struct Systemd(Option<SystemdTasks>);

pub(super) fn systemd() -> MaybeCompanion {
    companion(Systemd::default())
}

#[async_trait]
impl Companion for Systemd {
    fn start(&mut self, run: &mut RunStart<'_>) {
        let Some(notifier) = Notifier::new(&Environment::read()) else { return };
        let alive = std::mem::take(&mut run.alive);
        let (notices, received) = unbounded_channel();
        // Weak, so that it doesn't keep the notifier from ending.
        let of_reload = notices.downgrade();
        run.on_reload.push(Box::new(move |news| {
            let Some(notices) = of_reload.upgrade() else { return };
            let _ = notices.send(match news.outcome {
                Some((_, outcome)) => SystemdNotice::Reloaded { status: outcome.to_owned() },
                None => SystemdNotice::Reloading,
            });
        }));
        let watched = (run.handle(), notices.clone());
        let watcher = OwnedTask::restarted("verger notices", watched, |(tree, notices)| {
            Box::pin(watch(tree.clone(), notices.clone()))
        });
        let notify = notifier.run(received, move || alive.iter().all(|alive| alive()));
        let notifier = OwnedTask::spawn("verger notifier", notify);
        self.0 = Some(SystemdTasks { notices, notifier, watcher });
    }

    fn stage(&mut self, cause: &str, stage: &str, within: Duration) {
        if let Some(tasks) = &self.0 {
            let status = format!("stopping because of {cause}: {stage}");
            let _ = tasks.notices.send(SystemdNotice::Stopping { status, within });
        }
    }

    /// Waits until systemd has received all notifications.
    async fn finish(self: Box<Self>) {
        let Some(SystemdTasks { notices, mut notifier, watcher }) = self.0 else { return };
        drop(watcher);
        // The notifier ends once it has sent the rest.
        drop(notices);
        let _ = notifier.join().await;
    }
}

/// Notifies of what the start waits for, of its end, and then of each change between ready and not ready.
async fn watch(tree: SupervisorHandle, notices: UnboundedSender<SystemdNotice>) {
    let mut last = String::new();
    let mut started = pin!(tree.until_started());
    loop {
        tokio::select! {
            biased;
            true = &mut started => break,
            () = sleep(PERIOD) => {}
        }
        let starting = snapshot(&tree).await.map(|status| format!("starting: {}", text(&status)));
        if let Some(starting) = starting.filter(|starting| *starting != last) {
            last.clone_from(&starting);
            let _ = notices.send(SystemdNotice::Status(starting));
        }
    }
    let _ = notices.send(SystemdNotice::Ready { status: "started".to_owned() });
    loop {
        if let Some(status) = snapshot(&tree).await
            && let text = text(&status)
            && text != last
        {
            last.clone_from(&text);
            let _ = notices.send(match status.is_ready() {
                true => SystemdNotice::Ready { status: text },
                false => SystemdNotice::Unready { status: text },
            });
        }
        sleep(PERIOD).await;
    }
}

async fn snapshot(tree: &SupervisorHandle) -> Option<Status> {
    timeout(SNAPSHOT, tree.status()).await.ok()?.ok()
}

/// The state of a tree in a line.
fn text(status: &Status) -> String {
    let problems = status.problems();
    let mut problems = problems.iter().filter(|problem| problem.essential);
    match (problems.next(), problems.count()) {
        (None, _) => "ready".to_owned(),
        (Some(first), 0) => first.to_string(),
        (Some(first), more) => format!("{first} (and {more} more)"),
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod environment_tests {
    use super::*;

    #[test]
    fn the_watchdog_is_for_the_process_that_it_names_or_for_any() {
        let watchdog = |usec: Option<&str>, pid: Option<&str>| {
            let [watchdog_usec, watchdog_pid] = [usec, pid].map(|it| it.map(OsString::from));
            Environment { socket: None, watchdog_usec, watchdog_pid, process: 7 }.watchdog()
        };
        let ten = Ok(Some(Duration::from_secs(10)));
        assert_eq!(watchdog(Some("10000000"), Some("7")), ten);
        assert_eq!(watchdog(Some("10000000"), None), ten);
        assert_eq!(watchdog(Some("10000000"), Some("8")), Ok(None));
        assert_eq!(watchdog(None, Some("7")), Ok(None));
        assert_eq!(watchdog(Some("0"), None), Ok(None));
        assert_eq!(watchdog(Some("10s"), None), Err(("WATCHDOG_USEC", "10s".to_owned())));
        assert_eq!(watchdog(Some("1"), Some("")), Err(("WATCHDOG_PID", String::new())));
    }
}

#[cfg(all(test, not(verger_loom)))]
mod tasks_tests {
    use std::future::pending;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn dropping_it_ends_its_tasks() {
        let task = || {
            let (held, ended) = oneshot::channel::<()>();
            let task = OwnedTask::spawn("test", async move {
                let _held = held;
                pending().await
            });
            (task, ended)
        };
        let ((notifier, notifier_ended), (watcher, watcher_ended)) = (task(), task());
        drop(SystemdTasks { notices: unbounded_channel().0, notifier, watcher });
        assert!(notifier_ended.await.is_err());
        assert!(watcher_ended.await.is_err());
    }
}
