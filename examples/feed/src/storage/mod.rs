//! Storage: the writer gathers what the sources send, the database commits it.
//!
//! The two are restarted together, and their mailboxes stay. What one of them had in hand when it
//! went down is delivered again: a batch may be committed twice with the effect of once, and its
//! source hears of the second commit if it hasn't of the first.

pub(crate) mod batch;
pub(crate) mod database;
pub(crate) mod pulse;
pub(crate) mod sqlite;
pub(crate) mod writer;

use std::sync::Arc;

use verger::{Address, Mailbox, Reply, mailbox};

use self::batch::{Batch, Receipt};

/// Room for a batch of every connection and of the file, since each waits for its receipt before it
/// sends the next, and for some from sources that are gone.
const OFFERS: usize = 1_000;

/// The writer asks for one commit at a time; each time it is restarted it may leave one behind.
const COMMITS: usize = 16;

/// A batch for the writer.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) batch: Arc<Batch>,
    pub(crate) reply: Reply<Receipt>,
}

/// Batches for the database, which all are committed or none.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) batches: Arc<[Arc<Batch>]>,
    pub(crate) reply: Reply<Vec<Receipt>>,
}

/// What the children read their messages from.
#[derive(Debug)]
pub(crate) struct Mailboxes {
    pub(crate) writer: Mailbox<Offer>,
    pub(crate) database: Mailbox<Commit>,
}

/// The writer's address, the database's, and their mailboxes.
///
/// No message is poison here: what fails is the storage, for each of them. How often it may is for
/// its supervisor to say.
pub(crate) fn mailboxes() -> (Address<Offer>, Address<Commit>, Mailboxes) {
    let ((offers, writer), (commits, database)) = (mailbox(OFFERS), mailbox(COMMITS));
    let (writer, database) = (writer.unlimited_attempts(), database.unlimited_attempts());
    (offers, commits, Mailboxes { writer, database })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::net::TcpListener;

    use super::batch::Position;
    use super::*;
    use crate::app::App;
    use crate::chaos::Struck;
    use crate::cli::Options;
    use crate::tree;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn whoever_asked_before_all_failures_has_a_receipt_and_all_is_stored_once() {
        let dir = tempfile::tempdir().unwrap();
        let bind = || TcpListener::bind("127.0.0.1:0");
        let options = Options { chaos: true, seed: 1, ..Options::default() };
        let db = dir.path().join("feed.db");
        let (app, mailboxes) =
            App::new(options, db.clone(), 0, bind().await.unwrap(), bind().await.unwrap());
        let app = Arc::new(app);
        // After the first commit everything is due that strikes within the first 1,000 lines: each
        // kind at the database and the writer, between a commit and its receipt.
        let to = Position { n: 1_000, offset: 1_000 };
        let texts = vec![Vec::new(); 1_000];
        let batch = Batch::File { from: Position::default(), to, again: false, texts };
        let asked = tokio::join!(app.store(Arc::new(batch), PATIENCE), async {
            tree::storage(&app, mailboxes).build().unwrap().start().await.unwrap()
        });

        let (receipt, tree) = asked;
        let repeated = Receipt { new: Vec::new(), stored: 0, position: to };
        assert_eq!(receipt.unwrap(), repeated, "it hears of the last commit, which stored nothing");
        let expected = Struck { panics: 1, errors: 1, hangs: 1, aborts: 2 };
        assert_eq!(app.chaos.struck(), expected);
        assert_eq!(sqlite::resume(&db).unwrap().0, to);
        assert_eq!(app.stats.snapshot().stored, 1_000);
        tree.stop("the test is over").await.unwrap();
        assert_eq!(app.database.len(), 0);
    }
}
