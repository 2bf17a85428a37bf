//! The state that outlives every child: options, open resources, addresses, ledger and counters.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use verger::SupervisorHandle;
use verger::status::Status;

use crate::acknowledged::Acknowledged;
use crate::chaos::Chaos;
use crate::cli::Options;
use crate::clients;
use crate::input::Input;
use crate::ledger::Ledger;
use crate::limits::{LONG_LINES, REQUESTS};
use crate::room::Room;
use crate::stats::Stats;
use crate::storage::batch::{Batch, Receipt};
use crate::storage::pulse::Pulse;

/// What is opened once, before the tree starts, so that restarts neither lose nor refuse anything.
#[derive(Debug)]
pub(crate) struct Resources {
    pub(crate) db: PathBuf,
    pub(crate) input: Input,
    pub(crate) listen: TcpListener,
    pub(crate) http: TcpListener,
    pub(crate) acknowledged: Acknowledged,
}

/// Shared by all children and all their incarnations.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) options: Options,
    pub(crate) db: PathBuf,
    pub(crate) input: Arc<Input>,
    pub(crate) listen: TcpListener,
    pub(crate) http: TcpListener,
    pub(crate) connections: Arc<Room>,
    pub(crate) requests: Arc<Room>,
    /// The sockets of the built-in clients.
    pub(crate) builtin: clients::Sockets,
    /// The memory for long lines, one permit for each byte.
    pub(crate) long_lines: Arc<Semaphore>,
    pub(crate) pulse: Pulse,
    pub(crate) chaos: Chaos,
    pub(crate) stats: Stats,
    pub(crate) ledger: Ledger,
    pub(crate) acknowledged: Acknowledged,
    last_look: Mutex<Option<Status>>,
}

impl App {
    pub(crate) fn new(options: Options, resources: Resources) -> Self {
        let Resources { db, input, listen, http, acknowledged } = resources;
        let chaos = if options.chaos { Chaos::seeded(options.seed) } else { Chaos::off() };
        Self {
            ledger: Ledger::new(options.clients),
            connections: Room::new(options.connections),
            requests: Room::new(REQUESTS),
            builtin: clients::Sockets::default(),
            long_lines: Arc::new(Semaphore::new(LONG_LINES)),
            pulse: Pulse::default(),
            stats: Stats::new(),
            last_look: Mutex::default(),
            options,
            db,
            input: Arc::new(input),
            listen,
            http,
            acknowledged,
            chaos,
        }
    }

    /// Takes a snapshot of the tree, unless it has ended.
    pub(crate) async fn look(&self, tree: &SupervisorHandle) {
        if let Ok(status) = tree.status().await {
            *self.last_look.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
        }
    }

    /// Returns the last snapshot of the tree.
    pub(crate) fn last_look(&self) -> Option<Status> {
        self.last_look.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a commit and the lines that it has added.
    pub(crate) fn count(&self, batches: &[Arc<Batch>], receipts: &[Receipt]) {
        self.stats.transaction();
        for (batch, receipt) in batches.iter().zip(receipts) {
            let offered = batch.len() as u64;
            match **batch {
                Batch::File { .. } => self.chaos.count(receipt.stored, 0),
                Batch::Connection(_) => self.chaos.count(0, receipt.stored),
            }
            self.stats.committed(receipt.stored, offered - receipt.stored.min(offered));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use super::*;
    use crate::storage::batch::Position;

    /// Returns an app with a database in this directory, and nothing that runs.
    pub(crate) async fn app(dir: &Path, options: Options) -> Arc<App> {
        let bind = || TcpListener::bind("127.0.0.1:0");
        let resources = Resources {
            db: dir.join("feed.db"),
            input: Input::open(&options.file, false, Position::default(), None).unwrap(),
            listen: bind().await.unwrap(),
            http: bind().await.unwrap(),
            acknowledged: Acknowledged::open().unwrap(),
        };
        Arc::new(App::new(options, resources))
    }
}
