//! Replaying a dead letter to another mailbox.

use std::sync::Arc;

use super::address::Address;
use super::shared::MailboxShared;
use crate::clock::now;
use crate::dead_letter::{DeadLetterStore, EntryId, ReplayError};

impl DeadLetterStore {
    /// Sends the message of an entry to another mailbox than the one it was sent to.
    ///
    /// # Errors
    ///
    /// The same as [`replay`](Self::replay). If the address is for another type of message, the error is
    /// [`ReplayError::Refused`].
    pub fn replay_to<M: Send + 'static>(
        &self,
        id: EntryId,
        address: &Address<M>,
    ) -> Result<(), ReplayError> {
        self.replay_into(id, Arc::<MailboxShared<M>>::clone(address.shared()), now())
    }
}
