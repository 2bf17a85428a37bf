//! Storage: the writer combines batches of all sources, and the database commits them.
//!
//! The writer provides a `Sink` to the sources, and the database its address to the writer. The two restart
//! together, and their mailboxes keep their messages. A message that was not
//! acknowledged is delivered again. A batch may therefore be committed twice, which has the effect of
//! once, and its source gets a receipt for one of the commits.

pub(crate) mod batch;
pub(crate) mod database;
pub(crate) mod progress;
pub(crate) mod pulse;
pub(crate) mod sink;
pub(crate) mod sqlite;
pub(crate) mod writer;

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use verger::mailbox::{Address, Mailbox, Reply};
use verger::mailbox_with_capacity;

use self::batch::{Batch, Receipt};
use self::sink::Sink;
use crate::limits::OFFERS;

/// The writer sends one commit at a time, and may leave one behind at each restart.
const COMMITS: usize = 16;

/// A batch, with the reply for its receipt.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) batch: Arc<Batch>,
    pub(crate) reply: Reply<Receipt>,
    /// The room that the batch takes in the writer's mailbox, which is therefore never full.
    pub(crate) _room: OwnedSemaphorePermit,
    /// The share of the memory for long lines.
    pub(crate) _memory: Option<OwnedSemaphorePermit>,
}

/// Batches that are committed in one transaction, with the reply for their receipts.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) batches: Arc<[Arc<Batch>]>,
    pub(crate) reply: Reply<Vec<Receipt>>,
}

/// The mailboxes of the two children, and what sends to them.
#[derive(Debug)]
pub(crate) struct Mailboxes {
    pub(crate) sink: Sink,
    pub(crate) writer: Mailbox<Offer>,
    pub(crate) commits: Address<Commit>,
    pub(crate) database: Mailbox<Commit>,
}

/// Returns the mailboxes of writer and database.
///
/// There is no limit to the deliveries of a message: if storage fails, it is not because of the
/// message. The supervisor limits the restarts instead.
pub(crate) fn mailboxes() -> Mailboxes {
    let ((offers, writer), (commits, database)) =
        (mailbox_with_capacity(OFFERS), mailbox_with_capacity(COMMITS));
    let (writer, database) = (writer.unlimited_attempts(), database.unlimited_attempts());
    Mailboxes { sink: Sink::new(offers), writer, commits, database }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::batch::Position;
    use super::*;
    use crate::app::tests::app;
    use crate::chaos::Struck;
    use crate::cli::Options;
    use crate::tree;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn sources_get_a_receipt_despite_all_failures_and_each_line_is_stored_once() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { chaos: true, seed: 1, ..Options::default() };
        let app = app(dir.path(), options).await;
        let mailboxes = mailboxes();
        let (sink, commits) = (mailboxes.sink.clone(), mailboxes.commits.clone());
        // After the first commit, all failures of the first 1,000 lines are due: each kind at the
        // database and at the writer, between a commit and its receipt.
        let to = Position { n: 1_000, offset: 1_000, before: 0 };
        let texts = vec![Vec::new(); 1_000];
        let batch = Batch::File { from: Position::default(), to, again: false, texts };
        let asked = tokio::join!(sink.store(Arc::new(batch), None, PATIENCE), async {
            tree::storage(&app, mailboxes).build().unwrap().start().await.unwrap()
        });

        let (receipt, tree) = asked;
        let repeated = Receipt { new: Vec::new(), stored: 0, position: to };
        assert_eq!(receipt.unwrap(), repeated, "it hears of the last commit, which stored nothing");
        let expected = Struck { panics: 1, errors: 1, hangs: 1, aborts: 2 };
        assert_eq!(app.chaos.struck(), expected);
        assert_eq!(sqlite::resume(&app.db).unwrap().0, to);
        assert_eq!(app.stats.snapshot().stored, 1_000);
        tree.stop("the test is over").await.unwrap();
        assert_eq!(commits.len(), 0);
    }
}
