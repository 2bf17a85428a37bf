//! The receiving end of a mailbox, as one incarnation has it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::ops::{Deref, DerefMut};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker, ready};
use std::time::Instant;

use tokio::task::consume_budget;
use tokio::time::Sleep;

use super::batch::Batch;
use super::queue::Envelope;
use super::shared::Shared;
use super::slot::Borrower;
use super::state::{Next, Received};

/// The messages of a child, lent to one incarnation.
///
/// Messages come in the order in which they were sent, however many incarnations there were. What
/// one has not read the next one reads.
///
/// [`recv`](Self::recv) takes a message for good, and it is lost if the child fails over it;
/// [`deliver`](Self::deliver) lends it until it is acknowledged.
///
/// When the child is asked to stop, the messages come to an end: if it stops for good, after those
/// that are there already; if it is started again with its group, at once, and the next incarnation
/// has the rest. So `while let Some(message) = inbox.recv().await` is a whole child, which need not
/// wait for [`Context::cancelled`](crate::Context::cancelled) besides. See [`Closing`] for another
/// way.
///
/// One that is kept beyond the end of its incarnation finds the end as soon as the next one has begun.
///
/// [`Closing`]: crate::Closing
pub struct Inbox<M: Send + 'static> {
    shared: Arc<Shared<M>>,
    loan: u64,
    /// Boxed, since an inbox that waits for its first message has neither, and a child of an `async`
    /// closure keeps its inbox twice: rustc gives an argument and what it is bound to a place each.
    ahead: Option<Box<Ahead<M>>>,
}

/// What an inbox has got ahead.
struct Ahead<M> {
    /// Messages that nobody else reads any more, unless the mailbox wants them back.
    batch: Option<Arc<Batch<M>>>,
    /// Until messages are handed out that came before the start.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl<M> Default for Ahead<M> {
    fn default() -> Self {
        Self { batch: None, sleep: None }
    }
}

impl<M: Send + 'static> Inbox<M> {
    pub(super) fn new(shared: Arc<Shared<M>>, loan: u64) -> Self {
        Self { shared, loan, ahead: None }
    }

    /// The next message, for good. `None`: there will be no more for this incarnation.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped.
    pub fn recv(&mut self) -> impl Future<Output = Option<M>> + Send {
        Receiving { inbox: self }
    }

    /// The next message, if there is one already. A message that waits for the child to be ready, or
    /// for the end of a grace, is not there yet.
    pub fn try_recv(&mut self) -> Option<M> {
        let mut cx = TaskContext::from_waker(Waker::noop());
        match self.poll_recv(&mut cx) {
            Poll::Ready(next) => next,
            Poll::Pending => None,
        }
    }

    /// The next message, until it is [acknowledged](Delivery::ack). `None`: there will be no more
    /// for this incarnation.
    ///
    /// Several may be lent at once, up to the capacity of the mailbox, in which they go on to count.
    /// Those that are not acknowledged come first in the next incarnation, in their order.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped.
    pub async fn deliver(&mut self) -> Option<Delivery<M>> {
        consume_budget().await;
        let (envelope, borrower) = poll_fn(|cx| self.poll_next(true, cx)).await?;
        let shared = Arc::clone(&self.shared);
        Some(Delivery { lent: Some((envelope, borrower?)), loan: self.loan, shared })
    }

    /// The next message, until it is acknowledged, if there is one already: as
    /// [`try_recv`](Self::try_recv) is to [`recv`](Self::recv). For a child that deals with what has
    /// come in one go. If it fails, that is an attempt at each of them: see
    /// [`max_attempts`](crate::Mailbox::max_attempts).
    ///
    /// A task that has gone on for long without a wait is told `None` although there is a message, so
    /// that its next [`deliver`](Self::deliver) lets others run.
    ///
    /// ```
    /// use verger::{Delivery, Inbox};
    ///
    /// async fn some(inbox: &mut Inbox<String>) -> Vec<Delivery<String>> {
    ///     let mut some: Vec<_> = inbox.deliver().await.into_iter().collect();
    ///     while some.len() < 100 {
    ///         let Some(next) = inbox.try_deliver() else { break };
    ///         some.push(next);
    ///     }
    ///     some
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
        if let Some(ahead) = &mut self.ahead
            && let Some(slip) = Batch::next(&mut ahead.batch)
        {
            return Poll::Ready(Some(slip.message));
        }
        let mut batch = None;
        let received = self.shared.receive(self.loan, &mut batch, cx);
        if batch.is_some() {
            self.ahead.get_or_insert_default().batch = batch;
        }
        match received {
            Received::Message(slip) => Poll::Ready(Some(slip.message)),
            Received::Nothing(_stale) => Poll::Pending,
            Received::Unusual => {
                let next = ready!(self.poll_next(false, cx));
                Poll::Ready(next.map(|(envelope, _)| envelope.message))
            }
        }
    }

    fn poll_next(&mut self, lends: bool, cx: &mut TaskContext<'_>) -> Poll<Option<Taken<M>>> {
        loop {
            let (next, borrower) = self.shared.poll_next(self.loan, lends, cx);
            match next {
                Next::Message(envelope) => return Poll::Ready(Some((envelope, borrower))),
                Next::End => return Poll::Ready(None),
                Next::Nothing(None, _stale) => return Poll::Pending,
                Next::Nothing(Some(at), _stale) => match self.poll_sleep(at, cx) {
                    // The time has come meanwhile.
                    Poll::Ready(()) => self.ahead.get_or_insert_default().sleep = None,
                    Poll::Pending => return Poll::Pending,
                },
            }
        }
    }

    fn poll_sleep(&mut self, at: Instant, cx: &mut TaskContext<'_>) -> Poll<()> {
        let at = tokio::time::Instant::from_std(at);
        let ahead = self.ahead.get_or_insert_default();
        let sleep = ahead.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        if sleep.deadline() != at {
            sleep.as_mut().reset(at);
        }
        sleep.as_mut().poll(cx)
    }

    /// Takes nothing more in: who sends something gets it back. What is there can still be read, and
    /// then comes the end.
    ///
    /// The next incarnation, if there is one, has an open mailbox again.
    pub fn close(&mut self) {
        self.shared.close(self.loan);
    }

    /// How many messages there are, with those that are lent.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.load().0
    }

    /// Whether there are no messages, not even lent ones.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<M: Send + 'static> Drop for Inbox<M> {
    fn drop(&mut self) {
        self.shared.returned(self.loan);
    }
}

impl<M: Send + 'static> fmt::Debug for Inbox<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, capacity) = self.shared.load();
        f.debug_struct("Inbox").field("len", &len).field("capacity", &capacity).finish()
    }
}

/// Waits for a message. By hand, since it is a part of most children that have a mailbox, and so it
/// is one word of each.
struct Receiving<'a, M: Send + 'static> {
    inbox: &'a mut Inbox<M>,
}

impl<M: Send + 'static> Future for Receiving<'_, M> {
    type Output = Option<M>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Option<M>> {
        // Who always finds a message lets others run now and then.
        ready!(pin!(consume_budget()).poll(cx));
        self.inbox.poll_recv(cx)
    }
}

/// A message, and who is lent it, if it is lent.
type Taken<M> = (Envelope<M>, Option<Arc<dyn Borrower>>);

/// A message that is lent until it is acknowledged.
///
/// It derefs to the message. Dropped without an [`ack`](Self::ack), it goes back to its place in the
/// mailbox and is delivered again: to the next incarnation if this one ends, otherwise to this one.
/// That is an attempt that failed, unless the child was asked to stop for no fault of its own, in
/// which case it gets no more; after as many as
/// [`max_attempts`](crate::Mailbox::max_attempts) it is a dead letter, `poison`.
///
/// One that was handed to another task is that task's until it is acknowledged or dropped, also when
/// the child has ended.
///
/// ```
/// use verger::{Context, Exit, Inbox};
///
/// # async fn store(_: &str) -> std::io::Result<()> { Ok(()) }
/// async fn orders(_ctx: Context, mut inbox: Inbox<String>) -> Exit {
///     while let Some(order) = inbox.deliver().await {
///         // If this fails, the next incarnation has the order again.
///         store(&order).await?;
///         order.ack();
///     }
///     Ok(())
/// }
/// ```
pub struct Delivery<M: Send + 'static> {
    /// `None` once it is acknowledged.
    lent: Option<(Envelope<M>, Arc<dyn Borrower>)>,
    loan: u64,
    shared: Arc<Shared<M>>,
}

impl<M: Send + 'static> Delivery<M> {
    /// Says that the message has been dealt with, and gives it away.
    ///
    /// A backoff that is [reset by it](crate::Reset::OnAck) begins anew, unless a message is left
    /// that has failed before.
    pub fn ack(mut self) -> M {
        let Some((envelope, borrower)) = self.lent.take() else { unreachable!("it is lent once") };
        self.shared.acked(&envelope, &*borrower);
        envelope.message
    }

    /// Which attempt this is, from 1. Attempts that ended because the child was asked to stop count
    /// here, too.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.envelope().attempts
    }

    /// The number of the message, which no other of the same mailbox has. A later one has a larger
    /// number.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.envelope().id
    }

    fn envelope(&self) -> &Envelope<M> {
        match &self.lent {
            Some((envelope, _)) => envelope,
            None => unreachable!("it is gone once it is acknowledged"),
        }
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
        match &mut self.lent {
            Some((envelope, _)) => &mut envelope.message,
            None => unreachable!("it is gone once it is acknowledged"),
        }
    }
}

impl<M: Send + 'static> Drop for Delivery<M> {
    fn drop(&mut self) {
        if let Some((envelope, borrower)) = self.lent.take() {
            self.shared.came_back(envelope, self.loan, &*borrower);
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

#[cfg(all(test, not(verger_loom), target_pointer_width = "64"))]
mod tests {
    use super::*;

    #[test]
    fn an_inbox_takes_24_bytes() {
        assert_eq!(size_of::<Inbox<u64>>(), 24);
    }
}
