//! The reasons of dead letters.

use crate::string_enum::string_enum;

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
