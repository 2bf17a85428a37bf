//! The ledger of the senders within this program: which of their lines were acknowledged.
//!
//! The senders write it, not the storage. The audit trusts the ledger about what was accepted, and
//! reads what was stored from the database. Its size doesn't grow with the number of lines.

use tokio::sync::watch;

use crate::clients;
use crate::storage::batch::Position;

#[derive(Debug)]
pub(crate) struct Ledger {
    senders: watch::Sender<Senders>,
}

/// The acknowledgements that the senders within this program have received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Senders {
    /// The position up to which the file was accepted.
    pub(crate) file: Position,
    /// Whether the whole file was accepted.
    pub(crate) file_ended: bool,
    /// Why the rest of the file can't be read, if that is so.
    pub(crate) file_refused: Option<String>,
    /// How many lines of each built-in client were acknowledged, in order.
    pub(crate) clients: Vec<u64>,
}

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
        Self { senders: watch::Sender::new(senders) }
    }

    /// Records that the file was accepted up to this position.
    pub(crate) fn file_accepted(&self, position: Position) {
        self.senders.send_modify(|senders| senders.file = position);
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

    pub(crate) fn senders(&self) -> Senders {
        self.senders.borrow().clone()
    }

    /// Waits until the file and every built-in client are acknowledged to the last line, or the file
    /// can't be read.
    pub(crate) async fn done(&self) {
        // The sender lives as long as `self`, so the wait can't fail.
        self.senders.subscribe().wait_for(Senders::are_done).await.ok();
    }
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
}
