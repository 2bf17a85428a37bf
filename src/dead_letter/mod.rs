//! Dead letters: what could not be delivered, and what was given up.
//!
//! | file | what it is |
//! | --- | --- |
//! | `payload` | the message of a letter, which all its copies share |
//! | `owner` | what a queue knows of its supervisor, and a letter of its queue |
//! | `store` | letters that are kept, to be looked at and replayed |
//!
//! Each supervisor has a channel of its own, made when somebody subscribes to it. A letter climbs:
//! it is also put into the channels of all supervisors above. How often letters are logged is the
//! rule of [`DeadLetterLog`](crate::DeadLetterLog).
//!
//! # Invariants
//!
//! 1. A message is taken out of its letter at most once, whoever of all that have a copy does it.
//! 2. A message is never dropped while a lock is held: that is foreign code, and may well send
//!    further messages that become letters.
//! 3. There is no letter about a letter.

mod owner;
mod payload;
mod store;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Weak};
use std::time::SystemTime;

use serde::Serialize;

pub(crate) use self::owner::Owner;
pub use self::owner::Refused;
pub(crate) use self::owner::{Redeliver, Undelivered};
pub(crate) use self::payload::{Payload, drop_afterwards};
pub use self::store::{DeadLetterCounts, DeadLetterEntry, DeadLetterStore, EntryId, ReplayError};

use crate::exit::ExitReason;
use crate::millis;
use crate::path::Path;
use crate::policy::string_enum;

/// Something that did not arrive, or will not happen any more.
///
/// Its copies share the message, so that whoever [takes](Self::take) it first has it. Serialised,
/// it is everything but the message.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct DeadLetter {
    /// Why it is dead.
    pub reason: DeadLetterReason,
    /// Whom it was for.
    pub target: Path,
    /// The run of the target that was the last one then, from 1; 0 before the first.
    pub incarnation: u32,
    /// The name of the message's type. `None`: it is about the child itself, and has no message.
    pub event_type: Option<&'static str>,
    /// What went wrong.
    pub error: Option<Arc<ExitReason>>,
    /// When it happened.
    #[serde(rename = "at_ms", serialize_with = "millis::since_epoch")]
    pub at: SystemTime,
    /// Letters about messages of this type are not to be seen: see
    /// [`suppress_dead_letters`](crate::SupervisorBuilder::suppress_dead_letters).
    pub suppressed: bool,
    #[serde(skip)]
    payload: Option<Arc<Payload>>,
}

impl DeadLetter {
    /// A letter about a child itself.
    pub(crate) fn about_child(
        reason: DeadLetterReason,
        child: Path,
        incarnation: u32,
        error: Arc<ExitReason>,
        at: SystemTime,
    ) -> Self {
        Self {
            reason,
            target: child,
            incarnation,
            event_type: None,
            error: Some(error),
            at,
            suppressed: false,
            payload: None,
        }
    }

    /// Takes the message out of the letter.
    ///
    /// `None`: it is no `M`, or is gone already, because another subscriber has taken it or because
    /// it was replayed from a [`DeadLetterStore`]. A message that nobody takes is dropped with the
    /// last copy of its letter.
    ///
    /// ```
    /// # fn look(letter: verger::DeadLetter) {
    /// struct Order(u32);
    ///
    /// if let Some(Order(number)) = letter.take() {
    ///     println!("order {number} did not arrive: {}", letter.reason);
    /// }
    /// # }
    /// ```
    #[must_use = "the message is lost if it is not used"]
    pub fn take<M: 'static>(&self) -> Option<M> {
        self.payload.as_ref()?.take()
    }

    /// Whether the letter is about a message of this type, be it taken or not.
    #[must_use]
    pub fn is<M: 'static>(&self) -> bool {
        self.payload.as_ref().is_some_and(|payload| payload.is::<M>())
    }

    /// The letter about a message, and where to send it if it is replayed.
    pub(crate) fn about(
        undelivered: Undelivered,
        at: SystemTime,
        suppressed: bool,
    ) -> (Self, Provenance) {
        let Undelivered {
            reason,
            target,
            incarnation,
            event_type,
            type_id,
            payload,
            error,
            quiet: _,
            entry,
            origin,
        } = undelivered;
        let letter = Self {
            reason,
            target,
            incarnation,
            event_type: Some(event_type),
            error,
            at,
            suppressed,
            payload: Some(Arc::new(Payload::new(type_id, payload))),
        };
        (letter, Provenance { entry, origin: Some(origin) })
    }
}

/// Where a letter comes from.
#[derive(Clone, Default)]
pub(crate) struct Provenance {
    /// What it was replayed from.
    pub(crate) entry: Option<EntryId>,
    /// The queue that it was to be delivered by. `None`: there was none.
    pub(crate) origin: Option<Weak<dyn Redeliver>>,
}

/// Why a letter is dead.
///
/// Shown and serialised as one word in snake case, such as `mailbox_full`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DeadLetterReason {
    /// What was to handle it failed and is not tried again: a function of
    /// [`WhileDown::reply`](crate::WhileDown::reply) panicked over it, or it had a child
    /// [started](crate::ChildSpec::start_on_message) that has ended without doing anything about it.
    HandlerError,
    /// There was no room, and it was the one to go; or it was to be forwarded to a full mailbox.
    MailboxFull,
    /// It was to be forwarded to a child that is down for good or stopping.
    MailboxClosed,
    /// There was no room while the child was down, and it was the one to go.
    StashOverflow,
    /// The child was down, and [that is what was asked for](crate::WhileDown); or it had been
    /// forwarded once before.
    DroppedWhileDown,
    /// It had been delivered before, and had to make room for a newer one.
    Evicted,
    /// It was delivered as often as is allowed, and never acknowledged.
    Poison,
    /// It was waiting in the mailbox, or in hand, when the child was down for good.
    UndeliveredAtStop,
    /// The supervisor gave up on the child, or fails with it; the letter is about the child, or about
    /// a message that it has left.
    GaveUp,
}

string_enum!(
    DeadLetterReason, "reason of a dead letter":
    HandlerError = "handler_error",
    MailboxFull = "mailbox_full",
    MailboxClosed = "mailbox_closed",
    StashOverflow = "stash_overflow",
    DroppedWhileDown = "dropped_while_down",
    Evicted = "evicted",
    Poison = "poison",
    UndeliveredAtStop = "undelivered_at_stop",
    GaveUp = "gave_up",
);
