//! What a queue knows of its supervisor, and what a letter knows of its queue.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::{Arc, Weak};

use super::{DeadLetterReason, EntryId};
use crate::core;
use crate::exit::ExitReason;
use crate::path::Path;

/// For whom a mailbox works.
pub(crate) trait Owner: fmt::Debug + Send + Sync {
    fn path(&self) -> Path;

    /// Takes a message that could not be delivered. It may be dropped in here, so no lock is to be
    /// held that dropping a message may want.
    fn bury(&self, undelivered: Undelivered);

    fn tell(&self, event: core::MachineEvent);
}

/// What a mailbox says of a message that it could not deliver.
pub(crate) struct Undelivered {
    pub(crate) reason: DeadLetterReason,
    pub(crate) target: Path,
    pub(crate) incarnation: u32,
    pub(crate) event_type: &'static str,
    pub(crate) type_id: TypeId,
    pub(crate) payload: Box<dyn Any + Send>,
    pub(crate) error: Option<Arc<ExitReason>>,
    /// Its loss is what was asked for: logged at debug only, each one.
    pub(crate) quiet: bool,
    /// The entry of a store that it was replayed from.
    pub(crate) entry: Option<EntryId>,
    /// Where it came from, for a replay.
    pub(crate) origin: Weak<dyn Redeliver>,
}

/// A queue that takes a message back from a dead letter.
pub(crate) trait Redeliver: Send + Sync {
    /// Puts the message at the end of the queue, to be delivered as if it had been sent now. If it
    /// becomes a letter again, that is to name `entry`.
    ///
    /// # Errors
    ///
    /// Gives the message back if it can't be put into the queue, with why.
    fn redeliver(
        self: Arc<Self>,
        payload: Box<dyn Any + Send>,
        entry: EntryId,
    ) -> Result<(), (Box<dyn Any + Send>, Refused)>;
}

/// Why a mailbox does not take a message back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refused {
    /// It is for messages of another type.
    OtherType,
    /// It is closed: its child is down and does not come back by itself.
    Closed,
    /// It is full.
    Full,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherType => {
                "is for messages of another type; replay it to an address of its own type"
            }
            Self::Closed => {
                "is closed; start its child again, or replay the message to another address"
            }
            Self::Full => "is full; replay the message when there is room",
        })
    }
}
