//! The errors of sending a message and of asking a question.

use std::fmt;
use std::time::Duration;

use crate::dead_letter::DeadLetterReason;
use crate::path::Path;

/// Error returned by [`Address::send`] and [`Address::try_send`].
///
/// The error contains the message; [`into_message`](Self::into_message) takes it out. `Debug` prints
/// the same text as `Display`, without the message, so that `M` need not be `Debug`.
///
/// ```
/// use verger::mailbox::{Address, SendError};
///
/// /// Returns the jobs that were not accepted.
/// fn offer(address: &Address<u64>, jobs: impl Iterator<Item = u64>) -> Vec<u64> {
///     let refused = jobs.filter_map(|job| address.try_send(job).err());
///     refused.map(SendError::into_message).collect()
/// }
///
/// let (address, mailbox) = verger::mailbox_with_capacity(2);
/// assert_eq!(offer(&address, 1..=4), [3, 4]);
/// # drop(mailbox);
/// ```
///
/// [`Address::send`]: crate::mailbox::Address::send
/// [`Address::try_send`]: crate::mailbox::Address::try_send
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SendError<M> {
    /// The mailbox has no room, and its [overflow policy](crate::mailbox::Mailbox::overflow) is to reject.
    #[error(
        "the mailbox of {} is full (capacity {capacity}); wait for room with `send`, or raise the \
         capacity",
        Addressee(.child)
    )]
    Full {
        /// The message that was not sent.
        message: M,
        /// The child that the mailbox belongs to. `None` until its tree is started.
        child: Option<Path>,
        /// The capacity of the mailbox, in messages.
        capacity: usize,
    },
    /// The child is stopping, or is down and will not be restarted.
    #[error(
        "the mailbox of {} is closed: the child is stopping, or is down and will not be restarted",
        Addressee(.child)
    )]
    Closed {
        /// The message that was not sent.
        message: M,
        /// The child that the mailbox belongs to. `None` if its tree was never started.
        child: Option<Path>,
    },
}

impl<M> SendError<M> {
    /// Consumes the error and returns the message that was not sent.
    #[must_use]
    pub fn into_message(self) -> M {
        match self {
            Self::Full { message, .. } | Self::Closed { message, .. } => message,
        }
    }
}

impl<M> fmt::Debug for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Error returned by [`Address::ask`] and [`Address::ask_within`].
///
/// `Debug` prints the same text as `Display`.
///
/// ```
/// use verger::mailbox::{Address, AskError, Reply};
///
/// /// Asks once more if the child has failed while it handled the question.
/// async fn total(cart: &Address<Reply<u64>>) -> Result<u64, AskError> {
///     match cart.ask(|reply| reply).await {
///         Err(AskError::NoReply { .. }) => cart.ask(|reply| reply).await,
///         answer => answer,
///     }
/// }
/// # drop(total);
/// ```
///
/// [`Address::ask`]: crate::mailbox::Address::ask
/// [`Address::ask_within`]: crate::mailbox::Address::ask_within
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The mailbox has no room, and its [overflow policy](crate::mailbox::Mailbox::overflow) is to reject.
    #[error(
        "the mailbox of {} is full (capacity {capacity}); wait for room with `send`, or raise the \
         capacity",
        Addressee(.child)
    )]
    Full {
        /// The child that the mailbox belongs to. `None` until its tree is started.
        child: Option<Path>,
        /// The capacity of the mailbox, in messages.
        capacity: usize,
    },
    /// The child is stopping, or is down and will not be restarted.
    #[error(
        "the mailbox of {} is closed: the child is stopping, or is down and will not be restarted",
        Addressee(.child)
    )]
    Closed {
        /// The child that the mailbox belongs to. `None` if its tree was never started.
        child: Option<Path>,
    },
    /// The question became a [dead letter](crate::dead_letter::DeadLetter) before the child received it.
    #[error("the question to {} was not delivered: {reason}", Addressee(.child))]
    Undelivered {
        /// The child that the mailbox belongs to.
        child: Option<Path>,
        /// The reason of the dead letter.
        reason: DeadLetterReason,
    },
    /// The question was received, and its [`Reply`](crate::mailbox::Reply) was dropped without an answer.
    ///
    /// That happens if the child fails while it handles the question, and if a
    /// [`WhileDown::reply`](crate::mailbox::WhileDown::reply) handler drops the reply. The question may have
    /// had an effect.
    #[error("{} has read the question and dropped its `Reply` without an answer", Addressee(.child))]
    NoReply {
        /// The child that the mailbox belongs to.
        child: Option<Path>,
    },
    /// The time limit of [`ask_within`](crate::mailbox::Address::ask_within) has passed.
    ///
    /// The child may still receive the question. A later answer is dropped.
    #[error("{} did not answer within {:?}", Addressee(.child), .within)]
    TimedOut {
        /// The child that the mailbox belongs to.
        child: Option<Path>,
        /// The time limit.
        within: Duration,
    },
}

impl<M> From<SendError<M>> for AskError {
    fn from(error: SendError<M>) -> Self {
        match error {
            SendError::Full { child, capacity, .. } => Self::Full { child, capacity },
            SendError::Closed { child, .. } => Self::Closed { child },
        }
    }
}

impl fmt::Debug for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The child that a message was for, in an error text.
struct Addressee<'a>(&'a Option<Path>);

impl fmt::Display for Addressee<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(path) => write!(f, "`{path}`"),
            None => f.write_str("a child whose tree was not started"),
        }
    }
}
