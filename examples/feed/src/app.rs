//! The state that outlives every child: options, open resources, addresses, ledger and counters.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use verger::mailbox::Address;
use verger::status::Status;
use verger::{ExitError, SupervisorHandle};

use crate::acknowledged::Acknowledged;
use crate::chaos::Chaos;
use crate::cli::Options;
use crate::clients;
use crate::input::Input;
use crate::ledger::Ledger;
use crate::limits::{LONG_LINES, OFFERS, REQUESTS};
use crate::room::Room;
use crate::stats::Stats;
use crate::storage::batch::{Batch, Receipt};
use crate::storage::progress::Progress;
use crate::storage::pulse::Pulse;
use crate::storage::{Commit, Mailboxes, Offer, mailboxes};

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
    /// The address for batches.
    writer: Address<Offer>,
    /// The writer's room for batches.
    offers: Arc<Semaphore>,
    /// The address for the writer's combined batches.
    pub(crate) database: Address<Commit>,
    pub(crate) pulse: Pulse,
    pub(crate) progress: Progress,
    pub(crate) chaos: Chaos,
    pub(crate) stats: Stats,
    pub(crate) ledger: Ledger,
    pub(crate) acknowledged: Acknowledged,
    last_look: Mutex<Option<Status>>,
}

impl App {
    pub(crate) fn new(options: Options, resources: Resources) -> (Self, Mailboxes) {
        let Resources { db, input, listen, http, acknowledged } = resources;
        let chaos = if options.chaos { Chaos::seeded(options.seed) } else { Chaos::off() };
        let (writer, database, mailboxes) = mailboxes();
        let app = Self {
            ledger: Ledger::new(options.clients),
            connections: Room::new(options.connections),
            requests: Room::new(REQUESTS),
            builtin: clients::Sockets::default(),
            long_lines: Arc::new(Semaphore::new(LONG_LINES)),
            writer,
            offers: Arc::new(Semaphore::new(OFFERS)),
            database,
            pulse: Pulse::default(),
            progress: Progress::new(),
            stats: Stats::new(),
            last_look: Mutex::default(),
            options,
            db,
            input: Arc::new(input),
            listen,
            http,
            acknowledged,
            chaos,
        };
        (app, mailboxes)
    }

    /// Sends a batch to the writer and waits for its receipt, also while the writer restarts.
    ///
    /// The batch holds its share of the memory for long lines as long as the writer's mailbox has it,
    /// which may be longer than its source waits.
    pub(crate) async fn store(
        &self,
        batch: Arc<Batch>,
        memory: Option<OwnedSemaphorePermit>,
        within: Duration,
    ) -> Result<Receipt, ExitError> {
        let receipt = async {
            let room = Arc::clone(&self.offers).acquire_owned().await?;
            if self.writer.is_empty() {
                self.progress.made();
            }
            let offer = |reply| Offer { batch, reply, _room: room, _memory: memory };
            Ok(self.writer.ask(offer).await?)
        };
        let late = || format!("the batch was not stored within {within:?}");
        timeout(within, receipt).await.map_err(|_elapsed| late())?
    }

    /// Returns how long storage has owed a receipt without sending one.
    pub(crate) fn owed(&self) -> Duration {
        if self.writer.is_empty() { Duration::ZERO } else { self.progress.age() }
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

    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::storage::batch::Position;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns an app with a database in this directory, and nothing that runs.
    pub(crate) async fn app(dir: &Path, options: Options) -> (Arc<App>, Mailboxes) {
        let bind = || TcpListener::bind("127.0.0.1:0");
        let resources = Resources {
            db: dir.join("feed.db"),
            input: Input::open(&options.file, false, Position::default(), None).unwrap(),
            listen: bind().await.unwrap(),
            http: bind().await.unwrap(),
            acknowledged: Acknowledged::open().unwrap(),
        };
        let (app, mailboxes) = App::new(options, resources);
        (Arc::new(app), mailboxes)
    }

    fn batch() -> Arc<Batch> {
        Arc::new(Batch::Connection(Vec::new()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_waits_for_room_in_the_mailbox_of_a_writer_that_hangs() {
        let dir = tempfile::tempdir().unwrap();
        let (app, _mailboxes) = app(dir.path(), Options::default()).await;
        for _ in 0..OFFERS {
            let asked = app.store(batch(), None, Duration::ZERO).await;
            assert_eq!(asked.unwrap_err().to_string(), "the batch was not stored within 0ns");
        }
        let began = Instant::now();

        let error = app.store(batch(), None, SECOND).await.unwrap_err();

        assert_eq!(error.to_string(), "the batch was not stored within 1s");
        assert_eq!((began.elapsed(), app.writer.len()), (SECOND, OFFERS));
    }

    #[tokio::test(start_paused = true)]
    async fn storage_owes_a_receipt_from_the_first_batch_on() {
        let dir = tempfile::tempdir().unwrap();
        let (app, _mailboxes) = app(dir.path(), Options::default()).await;
        sleep(SECOND).await;
        assert_eq!(app.owed(), Duration::ZERO, "there is no batch");

        for _ in 0..3 {
            app.store(batch(), None, SECOND).await.unwrap_err();
        }

        assert_eq!(app.owed(), 3 * SECOND);
    }
}
