//! What the writer provides to the sources of batches.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use verger::ExitError;
use verger::mailbox::Address;

use super::Offer;
use super::batch::{Batch, Receipt};
use super::progress::Progress;
use crate::limits::OFFERS;

/// Takes batches, also while storage restarts: a clone stays valid, because the address does.
#[derive(Clone, Debug)]
pub(crate) struct Sink {
    /// The address for batches.
    writer: Address<Offer>,
    /// The writer's room for batches.
    offers: Arc<Semaphore>,
    pub(super) progress: Arc<Progress>,
}

impl Sink {
    pub(crate) fn new(writer: Address<Offer>) -> Self {
        let (offers, progress) = (Arc::new(Semaphore::new(OFFERS)), Arc::new(Progress::new()));
        Self { writer, offers, progress }
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
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::storage::mailboxes;

    const SECOND: Duration = Duration::from_secs(1);

    fn batch() -> Arc<Batch> {
        Arc::new(Batch::Connection(Vec::new()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_waits_for_room_in_the_mailbox_of_a_writer_that_hangs() {
        let mailboxes = mailboxes();
        let sink = &mailboxes.sink;
        for _ in 0..OFFERS {
            let asked = sink.store(batch(), None, Duration::ZERO).await;
            assert_eq!(asked.unwrap_err().to_string(), "the batch was not stored within 0ns");
        }
        let began = Instant::now();

        let error = sink.store(batch(), None, SECOND).await.unwrap_err();

        assert_eq!(error.to_string(), "the batch was not stored within 1s");
        assert_eq!((began.elapsed(), sink.writer.len()), (SECOND, OFFERS));
    }

    #[tokio::test(start_paused = true)]
    async fn storage_owes_a_receipt_from_the_first_batch_on() {
        let mailboxes = mailboxes();
        let sink = &mailboxes.sink;
        sleep(SECOND).await;
        assert_eq!(sink.owed(), Duration::ZERO, "there is no batch");

        for _ in 0..3 {
            sink.store(batch(), None, SECOND).await.unwrap_err();
        }

        assert_eq!(sink.owed(), 3 * SECOND);
    }
}
