//! A message that is lent to the child until it is acknowledged.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::message::Envelope;
use super::shared::MailboxShared;
use crate::child::LoanHolder;
use crate::clock::now;

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
    pub(super) fn new(
        envelope: Envelope<M>,
        loan: u64,
        holder: Arc<dyn LoanHolder>,
        shared: Arc<MailboxShared<M>>,
    ) -> Self {
        Self { envelope: Some(envelope), loan, holder, shared }
    }

    /// Acknowledges the message and returns it.
    ///
    /// It resets a backoff with [`Reset::OnAck`](crate::policy::Reset::OnAck), unless the mailbox still has a
    /// message that has failed before.
    pub fn ack(mut self) -> M {
        let Some(envelope) = self.envelope.take() else { unreachable!("acknowledged once") };
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
        match &self.envelope {
            Some(envelope) => envelope,
            None => unreachable!("a delivery is consumed by its acknowledgement"),
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
        match &mut self.envelope {
            Some(envelope) => &mut envelope.message,
            None => unreachable!("a delivery is consumed by its acknowledgement"),
        }
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
