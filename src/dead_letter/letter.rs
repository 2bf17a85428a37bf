//! A dead letter, its reason, and what it is made of: what a mailbox or the bus reports of a message that it can't deliver.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{Instant, SystemTime};

use super::payload::Payload;
use super::store::EntryId;
use crate::exit::ExitReason;
use crate::path::Path;
use crate::string_enum::string_enum;

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
        let letter = Self {
            reason: undelivered.reason,
            target: undelivered.target,
            incarnation: undelivered.incarnation,
            event_type: Some(undelivered.event_type),
            error: undelivered.error,
            at,
            suppressed,
            payload: Some(Arc::new(Payload::new(undelivered.payload, undelivered.type_id))),
        };
        let Undelivered { entry, origin, .. } = undelivered;
        (letter, Provenance { entry, origin })
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
}

/// Where a letter comes from.
#[derive(Clone, Default)]
pub(crate) struct Provenance {
    /// The entry that the message was replayed from.
    pub(crate) entry: Option<EntryId>,
    /// The mailbox that the message was in, which is gone if there was none. `None` for a letter about a child.
    pub(crate) origin: Option<Weak<dyn Redeliver>>,
}

/// The reason of a [`DeadLetter`](crate::dead_letter::DeadLetter).
///
/// Displayed and serialised in snake case, such as `mailbox_full`.
///
/// The example of [`dead_letter`](crate::dead_letter) compares one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DeadLetterReason {
    /// The message caused a failure and is not tried again.
    ///
    /// A `WhileDown::reply` handler panicked, a handler on the
    /// event bus failed, or the message [started](crate::ChildSpec::start_on_message) a child that
    /// exited without making progress.
    HandlerError,
    /// The mailbox was full, and the overflow policy dropped the message; the
    /// mailbox that it was forwarded to was full; or the queue of a handler on the event bus was full.
    MailboxFull,
    /// The mailbox that the message was forwarded to was closed.
    MailboxClosed,
    /// The mailbox was full while the child was down, and the overflow policy dropped
    /// the message.
    StashOverflow,
    /// The child was down, and `WhileDown` dropped the message; or it was forwarded
    /// twice; or the handler of the mailbox had sent it to its own mailbox.
    DroppedWhileDown,
    /// The message was delivered before and had to make room for a newer one.
    Evicted,
    /// All attempts to deliver the message have failed.
    Poison,
    /// The message was queued or held by the child when the child was down for good; or a handler on the
    /// event bus ended before it had handled the event.
    UndeliveredAtStop,
    /// The supervisor gave up on the child. The letter is about the child itself, or about a message that
    /// its mailbox still held.
    GaveUp,
    /// The child received the message with `recv` and failed, was killed or
    /// leaked before it polled its inbox again.
    ///
    /// The same goes for a child that is aborted because its supervisor was aborted or dropped. If the whole
    /// tree is dropped, subscriptions end with their supervisors: letters about children further down reach
    /// only a [store](crate::dead_letter::DeadLetterStore) and the log.
    ///
    /// The letter has no message. Its [`error`](crate::dead_letter::DeadLetter::error) is the exit of the
    /// child. A message that must survive a failure is received with
    /// `deliver`.
    LostInFailure,
    /// No handler on the event bus was registered for the event or request.
    ///
    /// The target of the letter is the child or supervisor that has emitted it.
    NoHandler,
    /// The handler of a request on the event bus didn't answer in time.
    Timeout,
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
    LostInFailure = "lost_in_failure",
    NoHandler = "no_handler",
    Timeout = "timeout",
);

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
    /// The mailbox that the message was in. `None` if it was in the queue of a bus.
    pub(crate) origin: Option<Weak<dyn Redeliver>>,
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
