//! The ledger of the senders: which of their lines were acknowledged.
//!
//! The senders write it, not the storage. The audit trusts the ledger about what was accepted, and
//! reads what was stored from the database.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::clients;
use crate::storage::batch::Line;

#[derive(Debug)]
pub(crate) struct Ledger {
    senders: watch::Sender<Senders>,
    external: Mutex<External>,
}

/// The acknowledgements that the senders within this program have received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Senders {
    /// The byte up to which the file was accepted.
    pub(crate) file: u64,
    /// Whether the whole file was accepted.
    pub(crate) file_ended: bool,
    /// Why the rest of the file can't be read, if that is so.
    pub(crate) file_refused: Option<String>,
    /// How many lines of each built-in client were acknowledged, in order.
    pub(crate) clients: Vec<u64>,
}

/// External lines that were acknowledged, by source and n.
///
/// Their texts may be large and can't be generated again, so the ledger keeps a digest of each.
/// There is no digest for a line that was already stored when it was first acknowledged, because
/// the stored text is unknown.
pub(crate) type External = HashMap<Arc<str>, BTreeMap<i64, Option<u64>>>;

impl Senders {
    /// Whether the file and all built-in clients are finished.
    pub(crate) fn are_done(&self) -> bool {
        let answered =
            self.file_ended && self.clients.iter().all(|&answered| answered == clients::LINES);
        answered || self.file_refused.is_some()
    }
}

impl Ledger {
    pub(crate) fn new(clients: usize) -> Self {
        let senders = Senders { clients: vec![0; clients], ..Senders::default() };
        Self { senders: watch::Sender::new(senders), external: Mutex::default() }
    }

    /// Records that the file was accepted up to this byte.
    pub(crate) fn file_accepted(&self, offset: u64) {
        self.senders.send_modify(|senders| senders.file = offset);
    }

    /// Records that the whole file was accepted.
    pub(crate) fn file_ended(&self) {
        self.senders.send_modify(|senders| senders.file_ended = true);
    }

    /// Records that the rest of the file can't be read.
    pub(crate) fn file_refused(&self, why: String) {
        self.senders.send_modify(|senders| senders.file_refused = Some(why));
    }

    /// Returns how many lines of a built-in client were acknowledged.
    pub(crate) fn client_answered(&self, index: usize) -> u64 {
        self.senders.borrow().clients[index]
    }

    /// Records that a built-in client was acknowledged up to this line.
    pub(crate) fn client_acknowledged(&self, index: usize, n: u64) {
        self.senders.send_modify(|senders| senders.clients[index] = n);
    }

    /// Records lines of a connection that are about to be acknowledged. `new` marks those that were not
    /// stored before.
    pub(crate) fn external_acknowledged(&self, lines: &[Line], new: &[bool]) {
        let mut external = self.external.lock().unwrap_or_else(PoisonError::into_inner);
        for (line, &new) in lines.iter().zip(new) {
            if clients::index(&line.source).is_none() {
                let answered = external.entry(Arc::clone(&line.source)).or_default();
                if new {
                    answered.insert(line.n, Some(digest(&line.text)));
                } else {
                    answered.entry(line.n).or_insert(None);
                }
            }
        }
    }

    pub(crate) fn senders(&self) -> Senders {
        self.senders.borrow().clone()
    }

    pub(crate) fn external(&self) -> External {
        self.external.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the file and every built-in client are acknowledged to the last line, or the file
    /// can't be read.
    pub(crate) async fn done(&self) {
        // The sender lives as long as `self`, so the wait can't fail.
        self.senders.subscribe().wait_for(Senders::are_done).await.ok();
    }
}

/// Returns the digest of a text.
pub(crate) fn digest(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_senders_are_done_when_the_file_and_each_client_are_acknowledged() {
        let ledger = Ledger::new(2);
        ledger.client_acknowledged(0, clients::LINES);
        ledger.file_ended();
        assert!(!ledger.senders().are_done());

        ledger.client_acknowledged(1, clients::LINES);
        assert!(ledger.senders().are_done());
    }

    #[test]
    fn the_digest_is_of_the_batch_that_stored_the_line() {
        let ledger = Ledger::new(0);
        let line = |text: &str| Line { source: "mill".into(), n: 1, text: text.into() };

        ledger.external_acknowledged(&[line("y"), line("x"), line("y")], &[false, true, false]);

        let answered = ledger.external()["mill"].clone();
        assert_eq!(answered, BTreeMap::from([(1, Some(digest(b"x")))]));
    }
}
