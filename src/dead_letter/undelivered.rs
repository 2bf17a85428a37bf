//! What a mailbox or the bus reports of a message that it can't deliver, and how the message is sent again.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Instant;

use super::entry_id::EntryId;
use super::reason::DeadLetterReason;
use crate::exit::ExitReason;
use crate::path::Path;

/// A message that can't be delivered.
pub(crate) struct Undelivered {
    pub(crate) reason: DeadLetterReason,
    pub(crate) target: Path,
    pub(crate) incarnation: u32,
    pub(crate) event_type: &'static str,
    /// The type that [`event_type`](Self::event_type) names, by which letters are suppressed.
    pub(crate) type_id: TypeId,
    /// What is taken out of the letter: the message, or an `Arc` of an event. `None` if the message itself is
    /// gone.
    pub(crate) payload: Option<Box<dyn Any + Send>>,
    pub(crate) error: Option<Arc<ExitReason>>,
    /// The loss is configured: the letter is logged at `DEBUG` only.
    pub(crate) quiet: bool,
    /// The entry of a store that the message was replayed from.
    pub(crate) entry: Option<EntryId>,
    /// The mailbox that the message was in.
    pub(crate) origin: Weak<dyn Redeliver>,
}

/// A mailbox that accepts a message out of a dead letter.
pub(crate) trait Redeliver: Send + Sync {
    /// Queues the message as if it were sent now. If it becomes a dead letter again, the letter belongs to `entry`.
    ///
    /// # Errors
    ///
    /// Returns the message if it is refused, with the reason.
    fn redeliver(
        self: Arc<Self>,
        payload: Box<dyn Any + Send>,
        entry: EntryId,
        now: Instant,
    ) -> Result<(), (Box<dyn Any + Send>, Refused)>;
}

/// Why a mailbox has refused a message that was replayed.
///
/// The example of [`ReplayError`](crate::dead_letter::ReplayError) matches one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refused {
    /// The mailbox is for messages of a different type.
    OtherType,
    /// The mailbox is closed: its child is down and will not be restarted.
    Closed,
    /// The mailbox is full.
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
