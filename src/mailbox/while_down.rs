//! What happens to messages while the child is down.

use std::fmt;
use std::sync::Arc;

use super::address::Address;
use super::options::{Diversion, ForwardTarget, Handler};
use super::shared::MailboxShared;

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
        Self::Reply(Handler::new(handler))
    }
}

impl<M: Send + 'static> From<WhileDown<M>> for Diversion<M> {
    fn from(while_down: WhileDown<M>) -> Self {
        match while_down {
            WhileDown::Stash => Self::Stash,
            WhileDown::Drop => Self::Drop,
            WhileDown::DeadLetter => Self::DeadLetter,
            WhileDown::Reply(handler) => Self::Handler(handler),
            WhileDown::Forward(address) => {
                let target = Arc::<MailboxShared<M>>::clone(address.shared());
                Self::Forward(target as Arc<dyn ForwardTarget<M>>)
            }
        }
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
