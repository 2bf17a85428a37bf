//! A dead letter.

use std::sync::{Arc, Weak};
use std::time::SystemTime;

use super::entry_id::EntryId;
use super::payload::Payload;
use super::reason::DeadLetterReason;
use super::undelivered::{Redeliver, Undelivered};
use crate::exit::ExitReason;
use crate::path::Path;

/// A message that was not delivered, or a child that was given up.
///
/// Clones share the message: the first [`take`](Self::take) returns it. The serialised form has all
/// fields except the message; it needs the feature `serde`.
///
/// The example of [`take`](Self::take) reads one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeadLetter {
    /// Why the message was not delivered.
    pub reason: DeadLetterReason,
    /// The path of the child that the message was for, or of the emitter of an event without a handler.
    pub target: Path,
    /// The last incarnation of that child, counted from 1. 0 before its first start, and for a supervisor
    /// whose handle has emitted an event.
    pub incarnation: u32,
    /// The type name of the message or event. `None` if the letter is about the child itself.
    pub event_type: Option<&'static str>,
    /// How the child exited, if the letter is about the child itself or a message was lost in its
    /// failure; how a handler on the bus failed.
    pub error: Option<Arc<ExitReason>>,
    /// When the message was dropped, or the child was given up.
    pub at: SystemTime,
    /// Messages of this type are suppressed: see
    /// [`suppress_dead_letters`](crate::SupervisorBuilder::suppress_dead_letters).
    pub suppressed: bool,
    pub(super) payload: Option<Arc<Payload>>,
}

impl DeadLetter {
    /// Creates a letter about a child itself.
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

    /// Creates a letter about a message. Also returns where the message came from.
    pub(crate) fn about_message(
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
            payload: Some(Arc::new(Payload::new(payload, type_id))),
        };
        (letter, Provenance { entry, origin: Some(origin) })
    }

    /// Takes the message out of the letter.
    ///
    /// Only the last 128 letters of a tree keep their message, and the letters in a
    /// [`DeadLetterStore`](crate::dead_letter::DeadLetterStore). Otherwise, a subscriber that doesn't read would
    /// hold a thousand messages of any size.
    ///
    /// Returns `None` if the message is not an `M`, or if it is no longer kept. Also returns `None` if it was
    /// [lost](crate::dead_letter::DeadLetterReason::LostInFailure) itself, if a clone of the letter has
    /// taken it, or if it was replayed from a [`DeadLetterStore`](crate::dead_letter::DeadLetterStore). A
    /// message that is never taken is dropped with the last clone of its letter.
    ///
    /// An event or request `E` of the bus is taken as an `Arc<E>`.
    ///
    /// ```
    /// # fn look(letter: verger::dead_letter::DeadLetter) {
    /// struct Order(u32);
    ///
    /// if let Some(Order(number)) = letter.take() {
    ///     println!("order {number} was not delivered: {}", letter.reason);
    /// }
    /// # }
    /// ```
    #[must_use = "the message is lost if it is not used"]
    pub fn take<M: 'static>(&self) -> Option<M> {
        self.payload.as_ref()?.take()
    }

    /// Returns `true` if the letter is about a message of type `M`, whether or not it was taken.
    #[must_use]
    pub fn is<M: 'static>(&self) -> bool {
        self.payload.as_ref().is_some_and(|payload| payload.is::<M>())
    }

    /// Whether the message is still in the letter.
    pub(crate) fn has_message(&self) -> bool {
        self.payload.as_ref().is_some_and(|payload| payload.is_present())
    }

    pub(super) fn payload(&self) -> Option<&Arc<Payload>> {
        self.payload.as_ref()
    }
}

/// Where a letter comes from.
#[derive(Clone, Default)]
pub(crate) struct Provenance {
    /// The entry that the message was replayed from.
    pub(crate) entry: Option<EntryId>,
    /// The mailbox that the message was in, which is gone if there was none. `None` for a letter about a child.
    pub(crate) origin: Option<Weak<dyn Redeliver>>,
}
