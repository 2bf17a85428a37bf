//! The receiving end of a mailbox, as it is lent to one incarnation.

use std::any::type_name;
use std::fmt;
use std::future::{Future, poll_fn};
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker, ready};
use std::time::Instant;

use tokio::task::consume_budget;
use tokio::time::Sleep;
use tracing::Span;

use super::options::IsFinal;
use super::queue::Envelope;
use super::shared::MailboxShared;
use super::state::{NextMessage, Take};
use crate::child::LoanHolder;
use crate::clock::now;
use crate::dead_letter::DeadLetterReason;

/// Receives the messages of a child's mailbox, for one incarnation.
///
/// Messages arrive in the order in which they were sent, across all incarnations. Messages that an
/// incarnation has not received are received by the next one.
///
/// [`recv`](Self::recv) removes a message from the mailbox, and the message is lost if the child fails
/// while it handles it. A dead letter with the reason `lost_in_failure` then reports the loss.
/// [`deliver`](Self::deliver) lends the message until it is acknowledged.
///
/// Both return `None` once the child is cancelled, so that a `while let Some(message) =
/// inbox.recv().await` loop need not watch [`Context::cancelled`](crate::Context::cancelled). If the
/// child is stopped for good, it first receives the messages that are queued. If it is restarted with
/// its group, it receives `None` at once, and the queued messages are kept for the next incarnation.
/// [`Closing`](crate::mailbox::Closing) changes that.
///
/// [`next`](Self::next) and [`next_delivery`](Self::next_delivery) also tell the child when it is cancelled.
///
/// An inbox that is kept after the end of its incarnation receives `None` as soon as the next incarnation
/// has started.
///
/// ```
/// use verger::mailbox::Inbox;
/// use verger::{Context, Exit};
///
/// async fn writer(ctx: Context, mut inbox: Inbox<String>) -> Exit {
///     let mut lines = 0;
///     while let Some(line) = inbox.recv().await {
///         lines += 1;
///         ctx.set_status(format!("{lines} lines, the last of {} bytes", line.len()));
///     }
///     // The child was cancelled, and the queue is empty.
///     Ok(())
/// }
/// # drop(writer);
/// ```
pub struct Inbox<M: Send + 'static> {
    shared: Arc<MailboxShared<M>>,
    holder: Arc<dyn LoanHolder>,
    loan: u64,
    hold: Option<Box<HoldTimer>>,
    /// `next` has returned [`Next::Stopping`].
    stop_seen: bool,
}

/// What [`Inbox::next`] and [`Inbox::next_delivery`] return.
///
/// The example of [`Inbox::next`] matches one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Next<M> {
    /// The next message.
    Message(M),
    /// The child was cancelled. Returned once.
    ///
    /// It comes before the messages that are still queued.
    Stopping,
    /// This incarnation receives no more messages.
    Closed,
}

impl<M> Next<M> {
    fn map<T>(self, change: impl FnOnce(M) -> T) -> Next<T> {
        match self {
            Self::Message(message) => Next::Message(change(message)),
            Self::Stopping => Next::Stopping,
            Self::Closed => Next::Closed,
        }
    }

    fn into_message(self) -> Option<M> {
        match self {
            Self::Message(message) => Some(message),
            Self::Stopping | Self::Closed => None,
        }
    }
}

/// Waits until messages are no longer held back from the incarnation.
struct HoldTimer {
    until: Instant,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl HoldTimer {
    fn poll(&mut self, cx: &mut TaskContext<'_>) -> Poll<()> {
        let until = tokio::time::Instant::from_std(self.until);
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        sleep.as_mut().poll(cx)
    }
}

impl<M: Send + 'static> Inbox<M> {
    pub(super) fn new(
        shared: Arc<MailboxShared<M>>,
        holder: Arc<dyn LoanHolder>,
        loan: u64,
        held_until: Option<Instant>,
    ) -> Self {
        let hold = held_until.map(|until| Box::new(HoldTimer { until, sleep: None }));
        Self { shared, holder, loan, hold, stop_seen: false }
    }

    /// Receives the next message and removes it from the mailbox.
    ///
    /// Returns `None` if this incarnation receives no more messages.
    ///
    /// The message counts as handled once the inbox is polled again. If the child fails, is killed, leaks
    /// or is aborted with its supervisor before that, a
    /// [dead letter](crate::dead_letter::DeadLetterReason::LostInFailure) without the message reports the
    /// loss. A clean exit and a question that was answered report nothing.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe. If the future is dropped before it completes, no message was removed.
    pub fn recv(&mut self) -> impl Future<Output = Option<M>> + Send {
        poll_fn(move |cx| {
            // A child that always finds a message yields to other tasks now and then.
            ready!(pin!(consume_budget()).poll(cx));
            self.poll_recv(cx)
        })
    }

    /// Receives the next message, or learns that the child is cancelled.
    ///
    /// Returns [`Next::Stopping`] as soon as the child is cancelled, ahead of all queued messages, and only
    /// once. Otherwise it receives messages as [`recv`](Self::recv) does, and returns [`Next::Closed`] where
    /// `recv` returns `None`. The two may be mixed.
    ///
    /// It is made for [`Closing::Manually`](crate::mailbox::Closing::Manually), with which the mailbox stays
    /// open until the child closes it:
    ///
    /// ```
    /// use verger::mailbox::{Closing, Inbox, Next};
    /// use verger::{Context, Exit, mailbox, worker_with_mailbox};
    ///
    /// enum Order {
    ///     Place(u32),
    ///     Confirmed(u32),
    /// }
    ///
    /// async fn orders(_ctx: Context, mut inbox: Inbox<Order>) -> Exit {
    ///     let (mut unconfirmed, mut stopping) = (0, false);
    ///     loop {
    ///         match inbox.next().await {
    ///             Next::Message(Order::Place(_)) => unconfirmed += 1,
    ///             Next::Message(Order::Confirmed(_)) => unconfirmed -= 1,
    ///             Next::Stopping => stopping = true,
    ///             _ => return Ok(()),
    ///         }
    ///         if stopping && unconfirmed == 0 {
    ///             // The queued messages are received, then `Next::Closed`.
    ///             inbox.close();
    ///         }
    ///     }
    /// }
    ///
    /// let (address, mailbox) = mailbox();
    /// let spec = worker_with_mailbox("orders", mailbox.closing(Closing::Manually), orders);
    /// # drop((address, spec));
    /// ```
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe. If the future is dropped before it completes, no message was removed, and
    /// [`Next::Stopping`] is returned by the next call.
    #[expect(clippy::should_implement_trait, reason = "an asynchronous method")]
    pub fn next(&mut self) -> impl Future<Output = Next<M>> + Send {
        poll_fn(move |cx| {
            ready!(pin!(consume_budget()).poll(cx));
            let next = ready!(self.poll_next(Take::Receive, !self.stop_seen, cx));
            Poll::Ready(next.map(|envelope| envelope.message))
        })
    }

    /// Receives the next message if one is available.
    ///
    /// Messages that are held back, see [`Drain`](crate::mailbox::Drain), are not available.
    pub fn try_recv(&mut self) -> Option<M> {
        match self.poll_recv(&mut TaskContext::from_waker(Waker::noop())) {
            Poll::Ready(next) => next,
            Poll::Pending => None,
        }
    }

    /// Receives the next message, which stays in the mailbox until it is [acknowledged](Delivery::ack).
    ///
    /// Returns `None` if this incarnation receives no more messages. A child may hold several deliveries
    /// at once. They count towards the capacity of the mailbox. The next incarnation receives the ones
    /// that were not acknowledged first, in their order.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe. If the future is dropped before it completes, no message was lent.
    pub async fn deliver(&mut self) -> Option<Delivery<M>> {
        consume_budget().await;
        let next = poll_fn(|cx| self.poll_next(Take::Deliver, false, cx)).await;
        next.into_message().map(|envelope| self.lent(envelope))
    }

    /// Receives the next message, which stays in the mailbox until it is [acknowledged](Delivery::ack), or
    /// learns that the child is cancelled.
    ///
    /// It is to [`deliver`](Self::deliver) what [`next`](Self::next) is to [`recv`](Self::recv).
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe. If the future is dropped before it completes, no message was lent, and
    /// [`Next::Stopping`] is returned by the next call.
    pub async fn next_delivery(&mut self) -> Next<Delivery<M>> {
        consume_budget().await;
        let next = poll_fn(|cx| self.poll_next(Take::Deliver, !self.stop_seen, cx)).await;
        next.map(|envelope| self.lent(envelope))
    }

    fn lent(&self, envelope: Envelope<M>) -> Delivery<M> {
        let (holder, shared) = (Arc::clone(&self.holder), Arc::clone(&self.shared));
        Delivery { envelope: Some(envelope), loan: self.loan, holder, shared }
    }

    /// Receives the next message, until it is acknowledged, if one is available.
    ///
    /// Use it to handle several messages as a batch. A failure of the child then counts as a failed
    /// attempt for each of them: see [`max_attempts`](crate::mailbox::Mailbox::max_attempts).
    ///
    /// It also returns `None` if the task has used up its tokio budget, so that the next
    /// [`deliver`](Self::deliver) yields to other tasks.
    ///
    /// ```
    /// use verger::mailbox::{Delivery, Inbox};
    ///
    /// async fn batch(inbox: &mut Inbox<String>) -> Vec<Delivery<String>> {
    ///     let mut batch: Vec<_> = inbox.deliver().await.into_iter().collect();
    ///     while batch.len() < 100 {
    ///         let Some(next) = inbox.try_deliver() else { break };
    ///         batch.push(next);
    ///     }
    ///     batch
    /// }
    /// ```
    pub fn try_deliver(&mut self) -> Option<Delivery<M>> {
        let mut deliver = pin!(self.deliver());
        match deliver.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())) {
            Poll::Ready(delivery) => delivery,
            Poll::Pending => None,
        }
    }

    fn poll_recv(&mut self, cx: &mut TaskContext<'_>) -> Poll<Option<M>> {
        let next = ready!(self.poll_next(Take::Receive, false, cx)).into_message();
        Poll::Ready(next.map(|envelope| envelope.message))
    }

    /// Returns [`Next::Stopping`] only if `awaits_stop`.
    fn poll_next(
        &mut self,
        take: Take,
        awaits_stop: bool,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Next<Envelope<M>>> {
        if self.hold.as_ref().is_some_and(|hold| hold.until <= now()) {
            self.end_hold();
        }
        loop {
            match self.shared.next(self.loan, take, awaits_stop, cx.waker()) {
                NextMessage::Message(envelope, is_final) => {
                    let envelope = match is_final {
                        Some(is_final) => self.check_final(envelope, take, &is_final),
                        None => envelope,
                    };
                    return Poll::Ready(Next::Message(envelope));
                }
                NextMessage::Stopping => {
                    self.stop_seen = true;
                    return Poll::Ready(Next::Stopping);
                }
                NextMessage::End => return Poll::Ready(Next::Closed),
                NextMessage::None => {}
            }
            let Some(hold) = &mut self.hold else { return Poll::Pending };
            ready!(hold.poll(cx));
            self.end_hold();
        }
    }

    fn end_hold(&mut self) {
        self.hold = None;
        self.shared.step(|state, _| state.end_hold(self.loan));
    }

    /// Tells the holder if this is its final message. A panic of `is_final` is the child's, and the
    /// message is put back or becomes a dead letter.
    fn check_final(&self, envelope: Envelope<M>, take: Take, is_final: &IsFinal<M>) -> Envelope<M> {
        let check = || self.shared.is_final(&envelope.message, is_final);
        match catch_unwind(AssertUnwindSafe(check)) {
            Ok(true) => self.holder.on_final_message(),
            Ok(false) => {}
            Err(panic) => {
                match take {
                    Take::Deliver => {
                        self.shared.put_back(envelope, self.loan, &*self.holder, now());
                    }
                    Take::Receive => {
                        self.shared.step(|state, fx| fx.question = state.put_down());
                        self.shared.dead_letter(envelope, DeadLetterReason::HandlerError, now());
                    }
                }
                resume_unwind(panic);
            }
        }
        envelope
    }

    /// Returns a span for the handling of one message.
    ///
    /// The span has the target `verger::message`, the level `DEBUG`, the name `message`, and the fields `child`,
    /// `incarnation` and `event_type`, which is the type `M` without its modules. It has no parent, so that
    /// traces end with their message; it follows from the current span, which usually is the child's. Make one
    /// for each message:
    ///
    /// ```
    /// use tracing::{Instrument, debug};
    /// use verger::mailbox::Inbox;
    /// use verger::{Context, Exit};
    ///
    /// async fn orders(_ctx: Context, mut inbox: Inbox<u32>) -> Exit {
    ///     while let Some(order) = inbox.recv().await {
    ///         let span = inbox.span();
    ///         place(order).instrument(span).await;
    ///     }
    ///     Ok(())
    /// }
    ///
    /// async fn place(order: u32) {
    ///     debug!(order, "placed");
    /// }
    /// # drop(orders);
    /// ```
    ///
    /// If no subscriber enables the span, it is disabled, and a call costs one check of its level.
    #[must_use]
    pub fn span(&self) -> Span {
        self.holder.message_span(type_name::<M>())
    }

    /// Closes the mailbox for this incarnation.
    ///
    /// Sending then fails with [`SendError::Closed`](crate::mailbox::SendError::Closed). The queued messages can
    /// still be received, followed by `None`. The mailbox is open again for the next incarnation, if
    /// there is one.
    pub fn close(&mut self) {
        self.shared.step(|state, fx| state.close_inbox(self.loan, fx));
    }

    /// Returns the number of messages in the mailbox, including unacknowledged deliveries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.load().0
    }

    /// Returns `true` if the mailbox has no messages, not even unacknowledged ones.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<M: Send + 'static> Drop for Inbox<M> {
    fn drop(&mut self) {
        self.shared.end(self.loan, now());
    }
}

impl<M: Send + 'static> fmt::Debug for Inbox<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, capacity) = self.shared.load();
        f.debug_struct("Inbox").field("len", &len).field("capacity", &capacity).finish()
    }
}

/// A message that must be acknowledged; returned by [`Inbox::deliver`].
///
/// It dereferences to the message. [`ack`](Self::ack) removes the message from the mailbox. Dropping a
/// delivery without an acknowledgement puts the message back in its old place. It is then delivered
/// again, to this incarnation or, if that ends, to the next one.
///
/// Such a drop counts as a failed attempt. After [`max_attempts`](crate::mailbox::Mailbox::max_attempts) failed
/// attempts the message becomes a dead letter with the reason `poison`. If the child was cancelled for a
/// reason other than its own failure, the attempt doesn't count, and this incarnation receives no more
/// messages.
///
/// A delivery may be moved to another task. It then stays lent until that task acknowledges or drops it,
/// also after the child has ended.
///
/// ```
/// use verger::mailbox::Inbox;
/// use verger::{Context, Exit};
///
/// # async fn store(_: &str) -> std::io::Result<()> { Ok(()) }
/// async fn orders(_ctx: Context, mut inbox: Inbox<String>) -> Exit {
///     while let Some(order) = inbox.deliver().await {
///         // If this fails, the next incarnation receives the order again.
///         store(&order).await?;
///         order.ack();
///     }
///     Ok(())
/// }
/// ```
///
/// [`Inbox::deliver`]: crate::mailbox::Inbox::deliver
pub struct Delivery<M: Send + 'static> {
    /// `None` once it was acknowledged.
    envelope: Option<Envelope<M>>,
    loan: u64,
    holder: Arc<dyn LoanHolder>,
    shared: Arc<MailboxShared<M>>,
}

impl<M: Send + 'static> Delivery<M> {
    /// Acknowledges the message and returns it.
    ///
    /// It resets a backoff with [`Reset::OnAck`](crate::policy::Reset::OnAck), unless the mailbox still has a
    /// message that has failed before.
    pub fn ack(mut self) -> M {
        let envelope = self.envelope.take().expect("a delivery is acknowledged once");
        self.shared.ack(&envelope, &*self.holder);
        envelope.message
    }

    /// Returns the number of this delivery attempt, starting with 1.
    ///
    /// It includes attempts that ended because the child was cancelled.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.envelope().attempts
    }

    /// Returns the number of the message, which is unique in its mailbox and grows with each message.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.envelope().id
    }

    fn envelope(&self) -> &Envelope<M> {
        self.envelope.as_ref().expect("a delivery is consumed by its acknowledgement")
    }
}

impl<M: Send + 'static> Deref for Delivery<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.envelope().message
    }
}

impl<M: Send + 'static> DerefMut for Delivery<M> {
    fn deref_mut(&mut self) -> &mut M {
        &mut self.envelope.as_mut().expect("a delivery is consumed by its acknowledgement").message
    }
}

impl<M: Send + 'static> Drop for Delivery<M> {
    fn drop(&mut self) {
        if let Some(envelope) = self.envelope.take() {
            self.shared.put_back(envelope, self.loan, &*self.holder, now());
        }
    }
}

impl<M: Send + fmt::Debug + 'static> fmt::Debug for Delivery<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("id", &self.id())
            .field("attempt", &self.attempt())
            .field("message", &**self)
            .finish()
    }
}
