//! Dead letters that are sent again, to whichever mailbox is wanted.

use std::any::Any;
use std::sync::Arc;

use super::queue::Origin;
use super::shared::Shared;
use super::state::Patience;
use super::{Address, SendError};
use crate::dead_letter::{DeadLetterStore, EntryId, Redeliver, Refused, ReplayError};

impl DeadLetterStore {
    /// Sends the message of an entry to another mailbox than the one that it was for.
    ///
    /// # Errors
    ///
    /// As for [`replay`](Self::replay). An address of another type of message refuses it.
    pub fn replay_to<M: Send + 'static>(
        &self,
        id: EntryId,
        address: &Address<M>,
    ) -> Result<(), ReplayError> {
        self.replay_into(id, Arc::<Shared<M>>::clone(address.shared()))
    }
}

impl<M: Send + 'static> Redeliver for Shared<M> {
    fn redeliver(
        self: Arc<Self>,
        payload: Box<dyn Any + Send>,
        entry: EntryId,
    ) -> Result<(), (Box<dyn Any + Send>, Refused)> {
        let message = payload.downcast::<M>().map_err(|payload| (payload, Refused::OtherType))?;
        let origin = Origin::Replayed(entry);
        match self.send(*message, origin, None, Patience::Never) {
            Ok(_) => Ok(()),
            Err(error) => {
                let refused = match &error {
                    SendError::Full { .. } => Refused::Full,
                    SendError::Closed { .. } => Refused::Closed,
                };
                Err((Box::new(error.into_message()), refused))
            }
        }
    }
}
