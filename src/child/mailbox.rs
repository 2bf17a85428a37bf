//! The mailbox of a child, as the child and its supervisor see it, whatever the type of its messages.
//!
//! The module `mailbox` implements it.
//!
//! # Invariants
//!
//! 1. The span of one message, event or request is a root. It follows from the span in which it is made, usually the
//!    child's. As a part of that span, all messages of a child would be in one trace, which may be open for weeks.
//! 2. Without a subscriber that enables the span, no text is made for it.

use std::any::Any;
use std::fmt;
use std::num::{NonZeroU64, NonZeroUsize};
use std::sync::Arc;
use std::time::Instant;

use tracing::Span;

use crate::core::{Key, MachineEvent};
use crate::dead_letter::{DeadLetterReason, Undelivered};
use crate::exit::ExitReason;
use crate::path::Path;
use crate::subscriber;

/// How full a mailbox is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MailboxLoad {
    pub(crate) len: usize,
    pub(crate) capacity: usize,
    /// When it was first found nearly full, if it has been so since.
    pub(crate) full_since: Option<Instant>,
}

/// The mailbox of a child. As [`Any`], it is downcast to the mailbox with the type of its messages.
pub(crate) trait MailboxControl: Any + Send + Sync {
    /// Returns the type of the messages.
    fn message_type(&self) -> &'static str;

    /// Binds the mailbox to a child. It stays bound to the child that it has, if any.
    fn bind(&self, child: ChildBinding);

    /// Ends the binding of a child that was removed.
    fn unbind(&self);

    /// Hands the mailbox to `owner`, since the supervisor of its child has ended.
    fn orphan(&self, owner: Arc<dyn MailboxOwner>);

    /// Returns `true` if the supervisor of its child has ended and has not bound it again.
    fn is_orphaned(&self) -> bool;

    /// Returns `true` if it was never bound.
    fn is_unbound(&self) -> bool;

    /// Returns the path of the child that it is bound to.
    fn bound_to(&self) -> Option<Path>;

    /// Returns `true` if it is bound to this child.
    ///
    /// A mailbox can be given to two children by mistake; the supervisor of the second leaves it alone.
    fn belongs_to(&self, child: ChildId) -> bool;

    /// The child's incarnation is ready.
    fn mark_ready(&self, child: ChildId, incarnation: u32);

    /// Delivers nothing to the next incarnation before `until`.
    fn delay_delivery(&self, until: Instant);

    /// Returns `true` if a failure of the child delays its messages instead of its restart.
    fn delays_delivery(&self) -> bool;

    /// Returns `true` if it is set not to queue messages while its child is down.
    fn diverts(&self) -> bool;

    /// The child was started: the mailbox accepts messages for the new incarnation.
    fn reopen(&self);

    /// The current incarnation was cancelled; `for_good` if the child won't be restarted.
    fn begin_stop(&self, for_good: bool);

    /// The time for an ordered stop is over: the mailbox accepts no more messages, whatever its policy. The
    /// current incarnation, which was cancelled, receives the queued ones.
    fn force_close(&self);

    /// The incarnation has failed, was killed, or has leaked. If it had a message in hand, a dead letter
    /// reports the loss.
    fn lose(self: Arc<Self>, incarnation: u32, error: &Arc<ExitReason>, now: Instant);

    /// Closes the mailbox. Returns its messages, which become dead letters.
    fn close(self: Arc<Self>, reason: DeadLetterReason) -> Option<Box<dyn LeftMessages>>;

    /// The child is down until a message is sent. Returns the messages that become dead letters.
    fn mark_idle(self: Arc<Self>) -> Option<Box<dyn LeftMessages>>;

    /// Returns how full the mailbox is, and notes if it is nearly full.
    fn load(&self, now: Instant) -> MailboxLoad;

    /// Sets the capacity that is written for the child, if the mailbox belongs to it. `None`: the code's.
    fn set_capacity(&self, child: ChildId, written: Option<NonZeroUsize>);
}

impl fmt::Debug for dyn MailboxControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MailboxLoad { len, capacity, .. } = self.load(crate::clock::now());
        f.debug_struct("Mailbox").field("len", &len).field("capacity", &capacity).finish()
    }
}

/// The supervisor of a mailbox's child.
pub(crate) trait MailboxOwner: Send + Sync {
    fn path(&self) -> Path;

    /// Publishes a message that could not be delivered.
    ///
    /// The message may be dropped in here, so the caller must hold no lock.
    fn dead_letter(&self, undelivered: Undelivered, now: Instant);

    fn notify(&self, event: MachineEvent);
}

/// The incarnation that a mailbox is lent to.
pub(crate) trait LoanHolder: Send + Sync {
    /// Returns a span in which the incarnation handles a message of this type.
    fn message_span(&self, message_type: &'static str) -> Span;

    /// Returns `true` if the incarnation was cancelled for a reason other than its own failure.
    fn is_cancelled_without_failure(&self) -> bool;

    /// Called when the incarnation has acknowledged a message and no message is left that has failed
    /// before.
    fn on_ack(&self);

    /// Called when the incarnation has received its final message: it must not be restarted.
    fn on_final_message(&self);
}

/// Identifies a child in the whole program.
///
/// It is unique for as long as the supervisor's shared state is kept alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChildId {
    /// The address of the supervisor's shared state.
    supervisor: usize,
    key: Key,
}

impl ChildId {
    /// Identifies a child of `supervisor`, whatever trait the supervisor is seen through.
    pub(crate) fn new<T: ?Sized>(supervisor: &Arc<T>, key: Key) -> Self {
        Self { supervisor: Arc::as_ptr(supervisor).cast::<()>().addr(), key }
    }
}

/// A request to lend a mailbox to an incarnation.
pub(crate) struct MailboxLoan {
    pub(crate) holder: Arc<dyn LoanHolder>,
    pub(crate) child: ChildId,
    pub(crate) incarnation: u32,
}

/// The child that a mailbox belongs to.
pub(crate) struct ChildBinding {
    pub(crate) owner: Arc<dyn MailboxOwner>,
    pub(crate) key: Key,
    pub(crate) name: Arc<str>,
    pub(crate) serial: Option<NonZeroU64>,
    /// When queued messages are delivered to a new incarnation, unless the mailbox has its own option.
    pub(crate) drain: DefaultDrain,
    pub(crate) start_on_message: bool,
}

/// When a mailbox delivers, unless it has its own option, in a quarter of the bytes, since every mailbox has one.
#[derive(Clone, Copy)]
pub(crate) enum DefaultDrain {
    AtReady,
    AfterMicros(u16),
}

impl ChildBinding {
    pub(crate) fn path(&self) -> Path {
        self.owner.path().child(&self.name, self.serial)
    }
}

/// Messages that their mailbox no longer has, and whose dead letters are still to be published.
///
/// Dropping it publishes the rest.
pub(crate) trait LeftMessages: Send {
    /// Publishes the letters of at most `max` messages, the oldest first. Returns how many.
    fn publish(&mut self, max: usize, now: Instant) -> usize;

    fn is_empty(&self) -> bool;
}

/// Returns the span in which this incarnation of a child handles a message of this type.
pub(crate) fn message_span(
    child: impl Fn() -> Path,
    incarnation: u32,
    message_type: &'static str,
) -> Span {
    let span = subscriber::debug_span!(
        target: "verger::message",
        parent: None,
        "message",
        child = %child(),
        incarnation,
        event_type = short_type_name(message_type),
    );
    if !span.is_disabled() {
        subscriber::call(|| span.follows_from(Span::current()));
    }
    span
}

/// Returns the name of a type without the modules, as in `Option<Order>`.
fn short_type_name(name: &str) -> String {
    let mut short = String::with_capacity(name.len());
    let mut last_name = 0;
    for c in name.chars() {
        match c {
            ':' => short.truncate(last_name),
            c if c.is_alphanumeric() || c == '_' => short.push(c),
            c => {
                short.push(c);
                last_name = short.len();
            }
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use std::any::type_name;

    use super::short_type_name;

    #[test]
    fn a_short_type_name_has_no_modules() {
        let short = [
            short_type_name(type_name::<u8>()),
            short_type_name(type_name::<std::time::Duration>()),
            short_type_name(type_name::<Option<std::sync::Arc<[String; 2]>>>()),
            short_type_name(type_name::<(std::net::IpAddr, &'static str)>()),
        ];
        assert_eq!(short, ["u8", "Duration", "Option<Arc<[String; 2]>>", "(IpAddr, &str)"]);
    }
}
