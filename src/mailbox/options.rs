//! What a mailbox is told to do, as plain values.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Address;

/// What [`try_send`](crate::Address::try_send) and [`ask`](crate::Address::ask) do when there is no
/// room. [`send`](crate::Address::send) waits for room, whatever is said here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Overflow {
    /// The sender gets the message back. The default.
    #[default]
    Reject,
    /// The oldest message becomes a dead letter, and its room is the new one's, also if somebody
    /// waits for room. A message that a child has in hand can't be dropped.
    DropOldest,
    /// The new message becomes a dead letter.
    DropNewest,
}

/// What becomes of messages while the child is down and about to be started again.
///
/// That goes for what is sent then, and for what the last incarnation has not read. Before the first
/// start, messages are kept in any case. When the child is down for good, the sender gets the message
/// back.
///
/// ```
/// use verger::{Reply, WhileDown, mailbox};
///
/// enum Message {
///     Order(u32),
///     IsOpen(Reply<bool>),
/// }
///
/// let (shop, mailbox) = mailbox(1000);
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
    /// They wait for the next incarnation, with what the last one has not read. The default.
    #[default]
    Stash,
    /// They become dead letters that are logged at the level `DEBUG` only. For what is of no use
    /// later, such as heartbeats.
    Drop,
    /// They become dead letters.
    DeadLetter,
    /// They are given to a function instead. See [`WhileDown::reply`].
    Reply(Handler<M>),
    /// They are sent to another child instead, which answers questions in its place. What was
    /// forwarded already, or finds no room there, is a dead letter.
    Forward(Address<M>),
}

impl<M> WhileDown<M> {
    /// Gives each message to `handler`, which may answer a question.
    ///
    /// It is called by whoever sends, or by the child's own task for what that has not read, and
    /// should be quick. A [`Reply`](crate::Reply) that it drops tells the asker so. If it panics, that
    /// is a dead letter, `handler_error`, without the message.
    pub fn reply(handler: impl Fn(M) + Send + Sync + 'static) -> Self {
        Self::Reply(Handler(Arc::new(handler)))
    }
}

/// Takes the messages that a child can't; made by [`WhileDown::reply`].
pub struct Handler<M>(pub(super) Arc<dyn Fn(M) + Send + Sync>);

impl<M> Clone for Handler<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M> fmt::Debug for Handler<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler").finish_non_exhaustive()
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

/// When an incarnation gets the messages that came before it was started.
///
/// Until then they are safe from one that doesn't survive its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Drain {
    /// When it is ready. The default for children that [say so](crate::Readiness::Signal).
    AtReady,
    /// When it has lived for so long, ready or not. The default for other children: 50 ms, or the
    /// first wait of their backoff if that is shorter.
    After(Duration),
    /// At once.
    AtStart,
}

/// What becomes of a mailbox when its child is asked to stop for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Closing {
    /// Nothing more comes in. The child still reads what there is, and then the end. The default.
    #[default]
    AtOnce,
    /// It stays open, and messages go on to come, until the child [closes](crate::Inbox::close) it
    /// or ends. So the child has to look at [`Context::cancelled`](crate::Context::cancelled) itself.
    Manually,
}

/// What a failure of the child delays, if it is restarted alone and not with its group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Delay {
    /// Its next start, by the backoff. The default.
    #[default]
    Child,
    /// Its messages: it is started at once, and gets none before the wait is over, new ones
    /// included. If it fails again meanwhile, it is started once more when that wait is over.
    Traffic,
}

/// Whether a message is the last that a child is sent.
pub(super) type IsFinal<M> = Arc<dyn Fn(&M) -> bool + Send + Sync>;

/// Everything that can be said of a mailbox.
pub(super) struct Options<M> {
    pub(super) overflow: Overflow,
    pub(super) while_down: WhileDown<M>,
    pub(super) drain: Option<Drain>,
    /// New messages wait for the drain, too, when there is nothing to drain.
    pub(super) holds_all: bool,
    /// New messages don't wait for the drain.
    pub(super) overtakes: bool,
    pub(super) closing: Closing,
    pub(super) delay: Delay,
    pub(super) max_attempts: Option<NonZeroU32>,
    pub(super) final_message: Option<IsFinal<M>>,
    /// Nothing is given out before this, whoever has the mailbox. Its supervisor says it, of one that
    /// has another [`Delay`] than most.
    pub(super) traffic: Option<Instant>,
}

/// As often as a message is lent by default before it is taken for poison.
pub(super) const ATTEMPTS: NonZeroU32 = NonZeroU32::new(5).unwrap();

impl<M> Default for Options<M> {
    fn default() -> Self {
        Self {
            overflow: Overflow::default(),
            while_down: WhileDown::Stash,
            drain: None,
            holds_all: false,
            overtakes: false,
            closing: Closing::default(),
            delay: Delay::default(),
            max_attempts: Some(ATTEMPTS),
            final_message: None,
            traffic: None,
        }
    }
}
