//! The state that outlives every child: options, sockets, addresses, ledger and counters.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;
use verger::SupervisorHandle;
use verger::mailbox::{Address, AskError};
use verger::status::Status;

use crate::chaos::Chaos;
use crate::cli::Options;
use crate::ledger::Ledger;
use crate::stats::Stats;
use crate::storage::batch::{Batch, Receipt};
use crate::storage::pulse::Pulse;
use crate::storage::{Commit, Mailboxes, Offer, mailboxes};

/// Shared by all children and all their incarnations.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) options: Options,
    pub(crate) db: PathBuf,
    /// How many bytes of the file are read, unless it is followed.
    pub(crate) file_len: u64,
    /// The sockets are bound once, so that no client is refused while a listener restarts.
    pub(crate) listen: TcpListener,
    pub(crate) http: TcpListener,
    /// The address for batches.
    writer: Address<Offer>,
    /// The address for the writer's combined batches.
    pub(crate) database: Address<Commit>,
    pub(crate) pulse: Pulse,
    pub(crate) chaos: Chaos,
    pub(crate) stats: Stats,
    pub(crate) ledger: Ledger,
    last_look: Mutex<Option<Status>>,
}

impl App {
    pub(crate) fn new(
        options: Options,
        db: PathBuf,
        file_len: u64,
        listen: TcpListener,
        http: TcpListener,
    ) -> (Self, Mailboxes) {
        let chaos = if options.chaos { Chaos::seeded(options.seed) } else { Chaos::off() };
        let (writer, database, mailboxes) = mailboxes();
        let app = Self {
            ledger: Ledger::new(options.clients),
            writer,
            database,
            pulse: Pulse::default(),
            stats: Stats::new(),
            last_look: Mutex::default(),
            options,
            db,
            file_len,
            listen,
            http,
            chaos,
        };
        (app, mailboxes)
    }

    /// Sends a batch to the writer and waits for its receipt, also while the writer restarts.
    pub(crate) async fn store(
        &self,
        batch: Arc<Batch>,
        within: Duration,
    ) -> Result<Receipt, AskError> {
        self.writer.ask_within(within, |reply| Offer { batch, reply }).await
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

    /// Counts the lines that a commit has added.
    pub(crate) fn count(&self, batches: &[Arc<Batch>], receipts: &[Receipt]) {
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
