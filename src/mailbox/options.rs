//! The options of a mailbox.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use super::address::Address;
use crate::panic::Foreign;

/// What [`try_send`](crate::mailbox::Address::try_send) and [`ask`](crate::mailbox::Address::ask) do with a message if
/// the mailbox is full.
///
/// [`send`](crate::mailbox::Address::send) waits for room, whatever the policy.
///
/// ```
/// use verger::mailbox::{Overflow, SendError};
///
/// let (address, mailbox) = verger::mailbox_with_capacity(1);
/// let mailbox = mailbox.overflow(Overflow::Reject);
///
/// assert!(address.try_send("first").is_ok());
/// assert!(matches!(address.try_send("second"), Err(SendError::Full { capacity: 1, .. })));
/// # drop(mailbox);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Overflow {
    /// Returns the message to the sender as [`SendError::Full`](crate::mailbox::SendError::Full). The default.
    #[default]
    Reject,
    /// Turns the oldest queued message into a dead letter and queues the new one.
    ///
    /// The new message is queued ahead of senders that wait for room. A message that the child holds
    /// as a [`Delivery`](crate::mailbox::Delivery) is never dropped: if only such messages are left, the new one
    /// is rejected.
    DropOldest,
    /// Turns the new message into a dead letter.
    DropNewest,
}

/// When an incarnation receives the messages that were queued before it started.
///
/// Until then the messages can't be lost to an incarnation that fails while it starts.
///
/// ```
/// use std::time::Duration;
///
/// use verger::mailbox;
/// use verger::mailbox::Drain;
///
/// // The connection has a second to settle before it receives what was queued.
/// let (orders, mailbox) = mailbox::<u32>();
/// let mailbox = mailbox.drain(Drain::After(Duration::from_secs(1)));
/// # drop((orders, mailbox));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Drain {
    /// When the child is ready. The default for children with
    /// [`Readiness::Signal`](crate::Readiness::Signal).
    AtReady,
    /// When the child has run for this long, ready or not.
    ///
    /// The default for children without a readiness signal: 50 ms, or the first delay of the child's
    /// backoff if that is shorter.
    After(Duration),
    /// At once.
    AtStart,
}

/// When a mailbox is closed if its child is stopped for good.
///
/// Whatever is set, a mailbox is closed in the [closing stage](crate::app::Stage::Closing) of a termination:
/// the child receives the queued messages, then the end.
///
/// The example of [`Inbox::next`](crate::mailbox::Inbox::next) sets one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Closing {
    /// When the stop begins. The child still receives the queued messages, then `None`. The default.
    #[default]
    Immediately,
    /// When the child calls [`Inbox::close`](crate::mailbox::Inbox::close) or exits.
    ///
    /// Until then the mailbox accepts messages, and [`recv`](crate::mailbox::Inbox::recv) doesn't return `None`.
    /// [`Inbox::next`](crate::mailbox::Inbox::next) tells the child that it is cancelled.
    Manually,
}

/// What the backoff delays if a child has failed and is restarted on its own.
///
/// ```
/// use verger::mailbox;
/// use verger::mailbox::Delay;
///
/// // After a failure, the child starts at once and only its messages wait for the backoff.
/// let (orders, mailbox) = mailbox::<u32>();
/// let mailbox = mailbox.delay(Delay::Delivery);
/// # drop((orders, mailbox));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Delay {
    /// The restart of the child. The default.
    #[default]
    Child,
    /// The delivery of messages.
    ///
    /// The child is restarted at once and receives no message, old or new, until the delay is over. If
    /// it fails again meanwhile, its next restart waits for the end of that delay.
    Delivery,
}

/// Takes a message in place of a child that is down; created by
/// [`WhileDown::reply`](crate::mailbox::WhileDown::reply).
///
/// The example of [`WhileDown`](crate::mailbox::WhileDown) sets one.
pub struct Handler<M>(pub(super) Foreign<dyn Fn(M) + Send + Sync>);

impl<M> Clone for Handler<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<M> fmt::Debug for Handler<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler").finish_non_exhaustive()
    }
}

/// Decides whether a message is the child's last one.
pub(super) type IsFinal<M> = Foreign<dyn Fn(&M) -> bool + Send + Sync>;

/// All options of a mailbox.
pub(super) struct MailboxOptions<M> {
    pub(super) overflow: Overflow,
    pub(super) while_down: WhileDown<M>,
    /// `None`: the default of the child.
    pub(super) drain: Option<Drain>,
    /// New messages wait for the drain even if no older ones are queued.
    pub(super) hold_new: bool,
    /// New messages don't wait for the drain.
    pub(super) overtake: bool,
    pub(super) closing: Closing,
    pub(super) delay: Delay,
    /// `None`: without limit.
    pub(super) max_attempts: Option<NonZeroU32>,
    pub(super) final_message: Option<IsFinal<M>>,
}

impl<M: 'static> MailboxOptions<M> {
    pub(super) const NEW: Self = Self {
        overflow: Overflow::Reject,
        while_down: WhileDown::Stash,
        drain: None,
        hold_new: false,
        overtake: false,
        closing: Closing::Immediately,
        delay: Delay::Child,
        max_attempts: NonZeroU32::new(5),
        final_message: None,
    };

    /// The options of a mailbox that sets none.
    pub(super) const DEFAULT: &'static Self = &Self::NEW;
}

/// What happens to messages while the child is down and will be restarted.
///
/// It applies to messages sent during that time, and to messages that the last incarnation has not
/// received. Before the first start, messages are always queued. Once the child is down for good,
/// sending fails with [`SendError::Closed`](crate::mailbox::SendError::Closed). It has no effect on a child that is
/// [started by messages](crate::ChildSpec::start_on_message), which gets all messages.
///
/// ```
/// use verger::mailbox::{Reply, WhileDown};
/// use verger::mailbox;
///
/// enum Message {
///     Order(u32),
///     IsOpen(Reply<bool>),
/// }
///
/// let (shop, mailbox) = mailbox();
/// let mailbox = mailbox.while_down(WhileDown::reply(|message| {
///     if let Message::IsOpen(reply) = message {
///         reply.send(false);
///     }
/// }));
/// # drop((shop, mailbox, Message::Order(1)));
/// ```
#[derive(Default)]
#[non_exhaustive]
pub enum WhileDown<M> {
    /// Queues them for the next incarnation. The default.
    #[default]
    Stash,
    /// Turns them into dead letters that are logged at `DEBUG` only.
    ///
    /// For messages that are worthless later, such as heartbeats.
    Drop,
    /// Turns them into dead letters.
    DeadLetter,
    /// Passes them to a function. See [`WhileDown::reply`].
    Reply(Handler<M>),
    /// Sends them to another child, which also answers questions.
    ///
    /// A message is forwarded once. If it was forwarded before, or if the other mailbox refuses it, it
    /// becomes a dead letter.
    Forward(Address<M>),
}

impl<M> WhileDown<M> {
    /// Passes each message to `handler`, which may answer questions.
    ///
    /// The handler is called in the task of the sender, or in the child's own task for messages that
    /// the child has not received. It must not block. Dropping a [`Reply`](crate::mailbox::Reply) in the handler
    /// fails the question with [`AskError::NoReply`](crate::mailbox::AskError::NoReply). If the handler panics,
    /// the loss is reported as a dead letter with the reason `handler_error` and without the message.
    ///
    /// If the handler itself sends a message to this mailbox, it isn't called for that message, which
    /// becomes a dead letter with the reason `dropped_while_down`. The same goes for two mailboxes whose
    /// handlers send to the other one.
    pub fn reply(handler: impl Fn(M) + Send + Sync + 'static) -> Self {
        Self::Reply(Handler(Foreign::new(Arc::new(handler))))
    }
}

impl<M> Clone for WhileDown<M> {
    fn clone(&self) -> Self {
        match self {
            Self::Stash => Self::Stash,
            Self::Drop => Self::Drop,
            Self::DeadLetter => Self::DeadLetter,
            Self::Reply(handler) => Self::Reply(handler.clone()),
            Self::Forward(address) => Self::Forward(address.clone()),
        }
    }
}

impl<M> fmt::Debug for WhileDown<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stash => f.write_str("Stash"),
            Self::Drop => f.write_str("Drop"),
            Self::DeadLetter => f.write_str("DeadLetter"),
            Self::Reply(_) => f.write_str("Reply"),
            Self::Forward(address) => f.debug_tuple("Forward").field(address).finish(),
        }
    }
}
