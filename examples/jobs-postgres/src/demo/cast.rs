//! What script, processes and proxies share.

use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::watch;

use super::Options;
use super::proxy::Network;
use crate::report::say;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Cast {
    pub(super) options: Options,
    pub(super) members: Vec<Member>,
    /// The process that has added jobs last.
    pub(super) scheduler: watch::Sender<Scheduler>,
    began: Instant,
}

/// One of the processes.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: &'static str,
    /// Where its proxy listens.
    pub(super) listener: TcpListener,
    pub(super) network: watch::Sender<Network>,
    /// Its process, if one runs.
    pub(super) id: watch::Sender<Option<u32>>,
    /// How often it has said that its lease was lost.
    pub(super) leases_lost: watch::Sender<u32>,
    /// How often it has said that the database doesn't answer.
    pub(super) silences: watch::Sender<u32>,
}

/// Which process is the scheduler. The first token is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scheduler {
    pub(super) member: usize,
    pub(super) token: u64,
}

impl Member {
    pub(super) fn new(name: &'static str, listener: TcpListener) -> Self {
        Self {
            name,
            listener,
            network: watch::Sender::new(Network::Works),
            id: watch::Sender::default(),
            leases_lost: watch::Sender::default(),
            silences: watch::Sender::default(),
        }
    }
}

impl Cast {
    pub(super) fn new(options: Options, members: Vec<Member>) -> Self {
        Self { options, members, scheduler: watch::Sender::default(), began: Instant::now() }
    }

    /// Prints a line about the demo itself or a member, with the time since the beginning.
    pub(super) fn tell(&self, subject: &str, text: &str) {
        say!("{:6.1}s  {subject:<5} {text}", self.began.elapsed().as_secs_f64());
    }

    /// Prints a line of a member, and takes from it what the script waits for.
    pub(super) fn hear(&self, member: usize, line: &str) {
        self.tell(self.members[member].name, line);
        if let Some(token) = line.strip_prefix("scheduler: adds jobs, token=") {
            let token = token.parse().unwrap_or_default();
            // A scheduler that loses its connection starts again with the same token.
            self.scheduler.send_replace(Scheduler { member, token });
        }
        if line.starts_with("scheduler: lease lost") {
            self.members[member].leases_lost.send_modify(|times| *times += 1);
        }
        if line.contains("hasn't answered within") {
            self.members[member].silences.send_modify(|times| *times += 1);
        }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}
