//! The sending end of a mailbox.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use super::ask::{self, Unanswered};
use super::queue::Origin;
use super::shared::Shared;
use super::state::Patience;
use super::{AskError, Reply, SendError};
use crate::path::Path;

/// Where messages for a child are sent, whichever incarnation of it reads them.
///
/// Cheap to clone. It is valid before the child is first started, while it is restarted, and after
/// its end: then the message comes back, and nothing hangs. It is made by
/// [`mailbox`](crate::mailbox()).
pub struct Address<M> {
    shared: Arc<Shared<M>>,
}

impl<M> Address<M> {
    pub(super) fn new(shared: Arc<Shared<M>>) -> Self {
        Self { shared }
    }

    pub(super) fn shared(&self) -> &Arc<Shared<M>> {
        &self.shared
    }
}

impl<M: Send + 'static> Address<M> {
    /// Sends a message, and waits for room if there is none, also while the child is down. Who waits
    /// longer is let in first.
    ///
    /// `Ok` says that the mailbox has taken the message over, and not that it was read: to know that,
    /// [`ask`](Self::ask). What the mailbox can't deliver later is a dead letter.
    ///
    /// # Errors
    ///
    /// [`SendError::Closed`] with the message, if the child is down and is not coming back, or is
    /// stopping; also if that happens while it waits.
    ///
    /// # Cancel safety
    ///
    /// A message is sent when the future is ready, and not before: if it is dropped earlier, its
    /// message is dropped with it.
    pub fn send(&self, message: M) -> impl Future<Output = Result<(), SendError<M>>> + Send {
        Sending { shared: &self.shared, message: Some(message), number: None }
    }

    /// Sends a message if there is room, and otherwise does what the mailbox says of its
    /// [overflow](crate::Mailbox::overflow).
    ///
    /// `Ok` says as much as that of [`send`](Self::send).
    ///
    /// # Errors
    ///
    /// * [`SendError::Full`] with the message, if there is no room and the mailbox
    ///   [rejects](crate::Overflow::Reject) what is too much,
    /// * [`SendError::Closed`] with the message, if the child is down and is not coming back, or is
    ///   stopping.
    pub fn try_send(&self, message: M) -> Result<(), SendError<M>> {
        self.shared.send(message, Origin::Sent, None, Patience::None)
    }

    /// Sends a question, and waits for the answer for as long as the child takes.
    ///
    /// It doesn't wait for room. A child that is down answers when it is up again, unless its mailbox
    /// says [otherwise](crate::Mailbox::while_down). A question that will not be answered fails as
    /// soon as that is known. [`ask_within`](Self::ask_within) limits the time besides.
    ///
    /// ```
    /// # use verger::{Address, AskError, Reply};
    /// enum Message {
    ///     Add(u64),
    ///     Sum(Reply<u64>),
    /// }
    ///
    /// async fn sum(address: &Address<Message>) -> Result<u64, AskError> {
    ///     address.ask(Message::Sum).await
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`AskError::Full`] and [`AskError::Closed`], as for [`try_send`](Self::try_send),
    /// * [`AskError::Undelivered`], if the message has become a dead letter,
    /// * [`AskError::NoReply`], if whoever had read it has dropped the [`Reply`], as a child does
    ///   that fails over it.
    ///
    /// # Cancel safety
    ///
    /// Nothing is sent before the future is first polled. If it is dropped later, the question may
    /// still be read; the answer vanishes.
    pub async fn ask<R: Send + 'static>(
        &self,
        question: impl FnOnce(Reply<R>) -> M,
    ) -> Result<R, AskError> {
        let (reply, answer, refuse) = ask::ask();
        let message = question(reply);
        self.shared.send(message, Origin::Sent, Some(refuse), Patience::None)?;
        answer.await.map_err(|unanswered| {
            let child = self.path();
            match unanswered {
                Unanswered::NoReply => AskError::NoReply { child },
                Unanswered::Dead(reason) => AskError::Undelivered { child, reason },
            }
        })
    }

    /// The same as [`ask`](Self::ask), with a limit.
    ///
    /// # Errors
    ///
    /// As for [`ask`](Self::ask), and [`AskError::TimedOut`]. The question may still be read then;
    /// an answer that comes too late vanishes.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime that has its timers enabled.
    ///
    /// # Cancel safety
    ///
    /// As for [`ask`](Self::ask).
    pub async fn ask_within<R: Send + 'static>(
        &self,
        within: Duration,
        question: impl FnOnce(Reply<R>) -> M,
    ) -> Result<R, AskError> {
        match tokio::time::timeout(within, self.ask(question)).await {
            Ok(answer) => answer,
            Err(_elapsed) => Err(AskError::TimedOut { child: self.path(), within }),
        }
    }

    /// Where the child is, or was last. `None` before its tree is started.
    #[must_use]
    pub fn path(&self) -> Option<Path> {
        self.shared.path()
    }

    /// How many messages there are, with those that a child has in hand and has not acknowledged.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.load().0
    }

    /// Whether there are no messages, not even unacknowledged ones.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many messages there may be.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shared.load().1
    }

    /// Whether whatever is sent just now comes back, since the child is down for good or stopping.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }
}

impl<M> Clone for Address<M> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<M> fmt::Debug for Address<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, capacity) = self.shared.load();
        f.debug_struct("Address")
            .field("path", &self.shared.path())
            .field("len", &len)
            .field("capacity", &capacity)
            .finish()
    }
}

/// A message on its way into a mailbox.
struct Sending<'a, M: Send + 'static> {
    shared: &'a Arc<Shared<M>>,
    /// `None` once it is sent, or back with the sender.
    message: Option<M>,
    /// Under which it waits for room.
    number: Option<u64>,
}

/// The message is moved in and out, and never pinned.
impl<M: Send + 'static> Unpin for Sending<'_, M> {}

impl<M: Send + 'static> Future for Sending<'_, M> {
    type Output = Result<(), SendError<M>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(message) = this.message.take() else { return Poll::Pending };
        match this.shared.poll_send(message, this.number.take(), cx.waker()) {
            Ok(None) => Poll::Ready(Ok(())),
            Ok(Some((message, number))) => {
                (this.message, this.number) = (Some(message), Some(number));
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl<M: Send + 'static> Drop for Sending<'_, M> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.shared.leave(number);
        }
    }
}
