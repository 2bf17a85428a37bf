//! Why a message was not sent, or not answered.

use std::fmt;
use std::time::Duration;

use crate::dead_letter::DeadLetterReason;
use crate::path::Path;

/// Why a message was not sent. The sender has it back.
///
/// `Debug` prints the same text as `Display`, and not the message.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SendError<M> {
    /// There is no room for it.
    #[error("the mailbox of {} is full: {capacity} messages wait", Whose(.child))]
    Full {
        /// The message.
        message: M,
        /// Whose mailbox it is; `None` before its tree runs.
        child: Option<Path>,
        /// How many messages there may be.
        capacity: usize,
    },
    /// The child is down and is not coming back, or is stopping.
    #[error("the mailbox of {} is closed: it is down for good, or stopping", Whose(.child))]
    Closed {
        /// The message.
        message: M,
        /// Whose mailbox it is; `None` if its tree never ran.
        child: Option<Path>,
    },
}

impl<M> SendError<M> {
    /// The message.
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

/// Why a question was not answered.
///
/// `Debug` prints the same text as `Display`.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// There was no room for it.
    #[error("the mailbox of {} is full: {capacity} messages wait", Whose(.child))]
    Full {
        /// Whose mailbox it is; `None` before its tree runs.
        child: Option<Path>,
        /// How many messages there may be.
        capacity: usize,
    },
    /// The child is down and is not coming back, or is stopping.
    #[error("the mailbox of {} is closed: it is down for good, or stopping", Whose(.child))]
    Closed {
        /// Whose mailbox it is; `None` if its tree never ran.
        child: Option<Path>,
    },
    /// The message was not delivered. It is a dead letter.
    #[error("the question to {} was not delivered: {reason}", Whose(.child))]
    Undelivered {
        /// Whose mailbox it is.
        child: Option<Path>,
        /// Why the letter is dead.
        reason: DeadLetterReason,
    },
    /// The child has read the message, and dropped it or failed without an answer; or the function
    /// did that has it [while the child is down](crate::WhileDown::reply). It isn't known whether it
    /// had an effect.
    #[error("{} has read the question, and dropped it or failed without an answer", Whose(.child))]
    NoReply {
        /// Whose mailbox it is.
        child: Option<Path>,
    },
    /// There was no answer in time. The question may still be read; an answer that comes later
    /// vanishes.
    #[error("{} did not answer within {:?}", Whose(.child), .within)]
    TimedOut {
        /// Whose mailbox it is.
        child: Option<Path>,
        /// How long it was waited for.
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

struct Whose<'a>(&'a Option<Path>);

impl fmt::Display for Whose<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(path) => write!(f, "`{path}`"),
            None => f.write_str("a child whose tree was not started"),
        }
    }
}
