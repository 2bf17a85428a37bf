//! The loop that sends what the reporter says.

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::time::Duration;

use tokio::sync::mpsc;

use super::environment::Environment;
use super::message::Message;
use super::reporter::{Notice, Reporter};
use super::socket::Socket;
use crate::clock;
use crate::subscriber::warn;

/// How long to wait while systemd doesn't read.
const RETRY: Duration = Duration::from_millis(100);

/// Tells systemd about an application. See the [module above](super).
#[derive(Debug)]
pub(super) struct Notifier {
    socket: Socket,
    watchdog: Option<Duration>,
}

impl Notifier {
    /// Returns a notifier if systemd runs this process, and waits for notifications.
    ///
    /// A value in the environment that can't be used is logged.
    pub(super) fn from_env() -> Option<Self> {
        Self::new(&Environment::read())
    }

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
        mut notices: mpsc::UnboundedReceiver<Notice>,
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

#[cfg(test)]
mod tests;
