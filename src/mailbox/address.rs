//! The sending end of a mailbox, and the error of sending.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};
use std::time::Duration;

use tokio::task::coop::consume_budget;

use super::ask::{self, AskError, Reply, UnansweredQuestion};
use super::queue::Envelope;
use super::shared::MailboxShared;
use super::state::{Sent, WhenFull};
use crate::child::MailboxControl;
use crate::clock::now;
use crate::dead_letter::{DeadLetterStore, EntryId, ReplayError};
use crate::path::Path;

/// Sends messages to a child.
///
/// Addresses are created by [`mailbox`](crate::mailbox()) and are cheap to clone. An address outlives
/// the incarnations of its child: it may be used before the first start, while the child restarts, and
/// after its end. Once the child is down for good, sending fails with [`SendError::Closed`].
///
/// ```
/// use verger::mailbox::{Inbox, Reply};
/// use verger::{Context, Supervisor, worker_with_mailbox};
///
/// enum Message {
///     Add(u64),
///     Sum(Reply<u64>),
/// }
///
/// async fn adder(_ctx: Context, mut inbox: Inbox<Message>) {
///     let mut sum = 0;
///     while let Some(message) = inbox.recv().await {
///         match message {
///             Message::Add(number) => sum += number,
///             Message::Sum(reply) => reply.send(sum),
///         }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (address, mailbox) = verger::mailbox();
/// let app = Supervisor::builder("app")
///     .child(worker_with_mailbox("adder", mailbox, adder))
///     .build()?
///     .start()
///     .await?;
///
/// address.send(Message::Add(2)).await?;
/// address.send(Message::Add(3)).await?;
/// assert_eq!(address.ask(Message::Sum).await?, 5);
/// # app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
pub struct Address<M> {
    pub(super) shared: Arc<MailboxShared<M>>,
}

impl<M> Address<M> {
    pub(super) fn new(shared: Arc<MailboxShared<M>>) -> Self {
        Self { shared }
    }
}

impl<M: Send + 'static> Address<M> {
    /// Returns the address of a mailbox, if it is for messages of this type.
    pub(crate) fn of(mailbox: Arc<dyn MailboxControl>) -> Option<Self> {
        (mailbox as Arc<dyn Any + Send + Sync>).downcast().ok().map(Self::new)
    }

    /// Sends a message, waiting until the mailbox has room.
    ///
    /// It also waits while the child is down and will be restarted. Senders that wait get room in the
    /// order in which they began to wait. [`try_send`](Self::try_send) and [`ask`](Self::ask) don't wait
    /// behind them: they succeed whenever there is room.
    ///
    /// `Ok` means that the mailbox has accepted the message, not that the child has received it; use
    /// [`ask`](Self::ask) to learn that. An accepted message that can't be delivered becomes a
    /// [dead letter](crate::dead_letter::DeadLetter).
    ///
    /// # Errors
    ///
    /// Returns [`SendError::Closed`] with the message if the child is stopping, or is down and will not
    /// be restarted, also if that happens while this call waits.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe. If the future is dropped before it completes, the message was not
    /// sent and is dropped.
    ///
    /// A future that was polled keeps its place among the senders that wait, but holds no room. If it is
    /// neither polled again nor dropped, senders that began to wait later wait until there is room for it
    /// as well.
    pub fn send(&self, message: M) -> impl Future<Output = Result<(), SendError<M>>> + Send {
        Sending { shared: &self.shared, message: Some(message), number: None }
    }

    /// Sends a message without waiting.
    ///
    /// If the mailbox is full, its [overflow policy](crate::mailbox::Mailbox::overflow) applies. `Ok` means the
    /// same as for [`send`](Self::send).
    ///
    /// ```
    /// use verger::mailbox::SendError;
    /// use verger::{Context, Supervisor, worker_with_mailbox};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (address, mailbox) = verger::mailbox_with_capacity(1);
    /// address.try_send("first")?;
    ///
    /// let error = address.try_send("second").unwrap_err();
    /// assert!(matches!(error, SendError::Full { .. }));
    /// assert_eq!(error.into_message(), "second");
    ///
    /// let reader = worker_with_mailbox("reader", mailbox, async |ctx: Context, _inbox| {
    ///     ctx.cancelled().await;
    /// });
    /// let app = Supervisor::builder("app").child(reader).build()?.start().await?;
    /// app.stop("the example is over").await?;
    ///
    /// assert!(matches!(address.try_send("third"), Err(SendError::Closed { .. })));
    /// assert!(matches!(address.send("third").await, Err(SendError::Closed { .. })));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`SendError::Full`] with the message, if the mailbox is full and its policy is
    ///   [`Overflow::Reject`](crate::mailbox::Overflow::Reject).
    /// * [`SendError::Closed`] with the message, if the child is stopping, or is down and will not be
    ///   restarted.
    pub fn try_send(&self, message: M) -> Result<(), SendError<M>> {
        self.shared.accept(Envelope::new(message), WhenFull::Overflow, now())
    }

    /// Sends a question and waits for the answer.
    ///
    /// The question is sent as with [`try_send`](Self::try_send): it doesn't wait for room. A child that
    /// is down answers after its restart, unless [`while_down`](crate::mailbox::Mailbox::while_down) says
    /// otherwise. The call fails as soon as it is known that the question will not be answered. There is
    /// no time limit; [`ask_within`](Self::ask_within) has one.
    ///
    /// ```
    /// # use verger::mailbox::{Address, AskError, Reply};
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
    /// A mailbox without room refuses the question, unless its overflow policy makes room. A question that is
    /// evicted is a dead letter:
    ///
    /// ```
    /// use verger::dead_letter::DeadLetterReason;
    /// use verger::mailbox::{AskError, Overflow, Reply};
    /// use verger::{Context, Supervisor, worker_with_mailbox};
    ///
    /// enum Message {
    ///     Add(u64),
    ///     Sum(Reply<u64>),
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (rejects, _mailbox) = verger::mailbox_with_capacity(1);
    /// rejects.try_send(Message::Add(1))?;
    /// let error = rejects.ask(Message::Sum).await.unwrap_err();
    /// assert!(matches!(error, AskError::Full { capacity: 1, .. }));
    ///
    /// let (evicts, mailbox) = verger::mailbox_with_capacity(1);
    /// let mailbox = mailbox.overflow(Overflow::DropOldest);
    /// let reader = worker_with_mailbox("reader", mailbox, async |ctx: Context, _inbox| {
    ///     ctx.cancelled().await;
    /// });
    /// let app = Supervisor::builder("app").child(reader).build()?.start().await?;
    /// let (answer, sent) =
    ///     tokio::join!(evicts.ask(Message::Sum), async { evicts.try_send(Message::Add(1)) });
    /// sent?;
    /// let AskError::Undelivered { reason, .. } = answer.unwrap_err() else { panic!() };
    /// assert_eq!(reason, DeadLetterReason::MailboxFull);
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// In a tree that is [watched](crate::SupervisorBuilder::self_check), as every application is, the status of a
    /// child that asks shows whose answer it waits for. A wait of 10 s is logged, and then every 30 s.
    ///
    /// # Errors
    ///
    /// * [`AskError::Full`] and [`AskError::Closed`], as for [`try_send`](Self::try_send).
    /// * [`AskError::Undelivered`], if the question became a dead letter.
    /// * [`AskError::NoReply`], if the [`Reply`] was dropped without an answer, for example because the
    ///   child has failed.
    ///
    /// # Cancel safety
    ///
    /// The question is sent by the first poll. If the future is dropped later, the child may still
    /// receive the question; its answer is dropped.
    pub async fn ask<R: Send + 'static>(
        &self,
        question: impl FnOnce(Reply<R>) -> M,
    ) -> Result<R, AskError> {
        let asked = Arc::downgrade(&self.shared);
        let (reply, answer, refuse) = ask::ask(asked);
        let question = Envelope { asker: Some(refuse), ..Envelope::new(question(reply)) };
        let sent = self.shared.accept(question, WhenFull::Overflow, now());
        let answered = match sent {
            Ok(()) => answer.await.map_err(|unanswered| {
                let child = self.path();
                match unanswered {
                    UnansweredQuestion::NoReply => AskError::NoReply { child },
                    UnansweredQuestion::DeadLetter(reason) => {
                        AskError::Undelivered { child, reason }
                    }
                }
            }),
            Err(error) => Err(error.into()),
        };
        // Not before: the first poll sends the question.
        consume_budget().await;
        answered
    }

    /// Sends a question and waits for the answer, at most for the given time.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use verger::mailbox::{AskError, Inbox, Reply};
    /// use verger::{Context, Supervisor, worker_with_mailbox};
    ///
    /// /// Answers no question, and drops all but the first.
    /// async fn silent(_ctx: Context, mut inbox: Inbox<Reply<u64>>) {
    ///     let _first = inbox.recv().await;
    ///     while inbox.recv().await.is_some() {}
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (address, mailbox) = verger::mailbox();
    /// let app = Supervisor::builder("app")
    ///     .child(worker_with_mailbox("silent", mailbox, silent))
    ///     .build()?
    ///     .start()
    ///     .await?;
    ///
    /// let error = address.ask_within(Duration::from_secs(1), |reply| reply).await.unwrap_err();
    /// assert!(matches!(error, AskError::TimedOut { .. }));
    ///
    /// let error = address.ask(|reply| reply).await.unwrap_err();
    /// assert!(matches!(error, AskError::NoReply { .. }));
    ///
    /// app.stop("the example is over").await?;
    /// let error = address.ask(|reply| reply).await.unwrap_err();
    /// assert!(matches!(error, AskError::Closed { .. }));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The same as [`ask`](Self::ask), and [`AskError::TimedOut`]. After a timeout, the child may still
    /// receive the question; its answer is dropped.
    ///
    /// # Panics
    ///
    /// Panics if it is polled outside of a tokio runtime with timers enabled.
    ///
    /// # Cancel safety
    ///
    /// The same as [`ask`](Self::ask).
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

    /// Returns the path of the child, or its last path if the child was removed.
    ///
    /// Returns `None` until the tree of the child is started.
    #[must_use]
    pub fn path(&self) -> Option<Path> {
        self.shared.path()
    }

    /// Returns the number of messages in the mailbox.
    ///
    /// It includes messages that the child holds as [deliveries](crate::mailbox::Delivery).
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.load().0
    }

    /// Returns `true` if the mailbox has no messages, not even unacknowledged ones.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the capacity of the mailbox, in messages.
    ///
    /// A configuration can change it while the program runs, with the key `mailbox`.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shared.load().1
    }

    /// Returns `true` if sending fails with [`SendError::Closed`], because the child is stopping, or is
    /// down and will not be restarted.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.state().is_closed()
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

/// The future of [`Address::send`].
struct Sending<'a, M: Send + 'static> {
    shared: &'a Arc<MailboxShared<M>>,
    /// `None` once it was sent or returned.
    message: Option<M>,
    /// The number under which the sender waits for room.
    number: Option<u64>,
}

/// The message is moved and never pinned.
impl<M: Send + 'static> Unpin for Sending<'_, M> {}

impl<M: Send + 'static> Future for Sending<'_, M> {
    type Output = Result<(), SendError<M>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.number.is_none() {
            ready!(pin!(consume_budget()).poll(cx));
        }
        let Some(message) = this.message.take() else { return Poll::Pending };
        let when_full = WhenFull::Wait { number: this.number, waker: cx.waker() };
        let sent = match this.shared.send(Envelope::new(message), when_full) {
            Ok(Sent::Waiting(message, number)) => {
                (this.message, this.number) = (Some(message), Some(number));
                return Poll::Pending;
            }
            sent => sent,
        };
        // Not before: `send` calls a function of the user's, which may panic.
        this.number = None;
        if let Sent::Undeliverable(it) = sent? {
            this.shared.dispose(it, now());
        }
        Poll::Ready(Ok(()))
    }
}

impl<M: Send + 'static> Drop for Sending<'_, M> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.shared.step(|state, fx| state.leave(number, fx));
        }
    }
}

impl DeadLetterStore {
    /// Sends the message of an entry to another mailbox than the one it was sent to.
    ///
    /// # Errors
    ///
    /// The same as [`replay`](Self::replay). If the address is for another type of message, the error is
    /// [`ReplayError::Refused`].
    pub fn replay_to<M: Send + 'static>(
        &self,
        id: EntryId,
        address: &Address<M>,
    ) -> Result<(), ReplayError> {
        self.replay_into(id, Arc::<MailboxShared<M>>::clone(&address.shared), now())
    }
}

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

/// The child that a message was for, in an error text.
pub(super) struct Addressee<'a>(pub(super) &'a Option<Path>);

impl fmt::Display for Addressee<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(path) => write!(f, "`{path}`"),
            None => f.write_str("a child whose tree was not started"),
        }
    }
}
