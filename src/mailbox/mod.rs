//! Mailboxes: messages that outlive whoever reads them.
//!
//! A mailbox is one queue, which belongs to the child's place in the tree and is lent to one
//! incarnation after the other. [`Address`] puts messages in, [`Inbox`] takes them out, and
//! [`Slot`] is what the supervisor does with it. Order and room are the [`queue`]'s business; who has
//! it and what becomes of a message is decided in [`state`], and carried out in [`shared`].
//!
//! Nothing here knows what a child or a supervisor is: it is lent to a [`Borrower`], and its letters
//! go to an [`Owner`](crate::dead_letter::Owner).

mod address;
mod ask;
mod batch;
mod error;
mod inbox;
mod options;
mod queue;
mod replay;
mod senders;
mod shared;
mod slip;
mod slot;
mod state;
#[cfg(test)]
mod tests;

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

pub use self::address::Address;
pub use self::ask::Reply;
pub use self::error::{AskError, SendError};
pub use self::inbox::{Delivery, Inbox};
pub use self::options::{Closing, Delay, Drain, Handler, Overflow, WhileDown};
use self::shared::Shared;
pub(crate) use self::slot::{At, Borrower, Grace, Loan, Slot, Spot, spot};
use crate::path::Path;

/// A mailbox for messages of type `M`, and the address that sends to it.
///
/// At most `capacity` messages wait or are in the child's hands; 1000 is a good number if there is no
/// better one, and zero is taken for 1. The mailbox is given to a child, by
/// [`worker_with_mailbox`](crate::worker_with_mailbox) or
/// [`child_with_mailbox`](crate::child_with_mailbox), and stays when that is restarted; the address
/// is for whoever sends, and may be used at once.
///
/// ```
/// use verger::{Exit, Supervisor, mailbox, worker_with_mailbox};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (greeter, mailbox) = mailbox::<String>(1000);
/// let spec = worker_with_mailbox("greeter", mailbox, async |_ctx, mut inbox| -> Exit {
///     while let Some(name) = inbox.recv().await {
///         println!("hello, {name}");
///     }
///     Ok(())
/// });
///
/// greeter.try_send("early bird".to_owned())?;
/// let app = Supervisor::builder("app").child(spec).build()?.start().await?;
/// greeter.send("world".to_owned()).await?;
///
/// // It reads what there is, and then ends.
/// app.stop("the example is over").await?;
/// assert!(greeter.is_empty() && greeter.is_closed());
/// # Ok(())
/// # }
/// ```
#[must_use = "a mailbox has to be given to a child"]
pub fn mailbox<M: Send + 'static>(capacity: usize) -> (Address<M>, Mailbox<M>) {
    let shared = Arc::new(Shared::new(capacity.max(1)));
    (Address::new(Arc::clone(&shared)), Mailbox { shared })
}

/// A queue of messages that survives whoever reads it; made by [`mailbox`](crate::mailbox()).
///
/// It belongs to one child: the spec that it is given to may be used for one child at a time. When
/// the last clone of that spec is dropped, the mailbox is closed for good.
///
/// Its methods say what becomes of messages; without them, they wait for whoever reads them, and a
/// sender that finds no room waits or has its message back. Say it before the address is used, and
/// before the mailbox is given to a child.
///
/// ```
/// use verger::{Mailbox, Overflow, WhileDown, mailbox};
///
/// struct Price(u32);
///
/// // Only the latest counts, and none while the child is away.
/// let (prices, mailbox): (_, Mailbox<Price>) = mailbox(10);
/// let mailbox = mailbox.overflow(Overflow::DropOldest).while_down(WhileDown::Drop);
/// # drop((prices, mailbox));
/// ```
#[must_use = "a mailbox has to be given to a child"]
pub struct Mailbox<M: Send + 'static> {
    shared: Arc<Shared<M>>,
}

impl<M: Send + 'static> Mailbox<M> {
    /// What [`try_send`](Address::try_send) and [`ask`](Address::ask) do when there is no room.
    /// Default: [`Overflow::Reject`].
    ///
    /// Before the tree runs they always reject, since there is nobody yet to tell of a dead letter.
    pub fn overflow(self, overflow: Overflow) -> Self {
        self.edit(|options| options.overflow = overflow)
    }

    /// What becomes of messages while the child is down and about to be started again, and of those
    /// that it has not read when it goes down. Default: [`WhileDown::Stash`].
    ///
    /// Messages that were [delivered](Inbox::deliver) and not acknowledged wait for the next
    /// incarnation in any case. A child that is
    /// [started by messages](crate::ChildSpec::start_on_message) gets all of them.
    pub fn while_down(self, while_down: WhileDown<M>) -> Self {
        self.edit(|options| std::mem::replace(&mut options.while_down, while_down))
    }

    /// When an incarnation gets the messages that came before it was started. Default:
    /// [`Drain::AtReady`] for a child that says when it is ready, otherwise [`Drain::After`] 50 ms,
    /// or after the first wait of its backoff if that is shorter.
    ///
    /// New messages wait behind them, so that none overtakes another. If there was nothing when the
    /// incarnation began, new ones are handed out at once: see [`hold_until`](Self::hold_until).
    pub fn drain(self, drain: Drain) -> Self {
        self.edit(|options| options.drain = Some(drain))
    }

    /// The same as [`drain`](Self::drain), and keeps new messages back as well when there are no
    /// others, so that nothing is given to an incarnation that doesn't survive its start.
    pub fn hold_until(self, drain: Drain) -> Self {
        self.edit(|options| (options.drain, options.holds_all) = (Some(drain), true))
    }

    /// Hands new messages out at once, also while older ones wait for the [drain](Self::drain), and
    /// also with [`hold_until`](Self::hold_until).
    pub fn allow_overtake(self) -> Self {
        self.edit(|options| options.overtakes = true)
    }

    /// What becomes of the mailbox when the child is asked to stop for good. Default:
    /// [`Closing::AtOnce`].
    pub fn closing(self, closing: Closing) -> Self {
        self.edit(|options| options.closing = closing)
    }

    /// What the backoff delays when the child has failed: the child or its messages. Default:
    /// [`Delay::Child`]. A child that is restarted together with others waits in any case.
    pub fn delay(self, delay: Delay) -> Self {
        self.edit(|options| options.delay = delay)
    }

    /// How often a message may be [delivered](Inbox::deliver) and fail before it is a dead letter,
    /// `poison`, and the others go on without it. Default: 5. One of zero is taken for one of 1.
    ///
    /// An attempt has failed if the child has ended by itself or was aborted, has put the message
    /// back, or was stopped because it was found [unhealthy](crate::HealthCheck). One that ends
    /// because the child was asked to stop for another reason is not counted.
    ///
    /// It is an attempt at every message that the child has in hand, since nobody can know over which
    /// of them it has failed. A child that takes several should deal with one alone if its
    /// [`attempt`](Delivery::attempt) is above 1, or the others become poison with the bad one. And
    /// while something is down that every message needs, all of them fail: let the child find that
    /// out before it is [ready](crate::ChildSpec::readiness), so that it costs no message.
    pub fn max_attempts(self, attempts: u32) -> Self {
        let attempts = NonZeroU32::new(attempts).unwrap_or(NonZeroU32::MIN);
        self.edit(|options| options.max_attempts = Some(attempts))
    }

    /// Delivers a message as often as it takes: no message is ever poison.
    pub fn unlimited_attempts(self) -> Self {
        self.edit(|options| options.max_attempts = None)
    }

    /// Ends the child with the message that `is_final` says is its last: once it has read that, its
    /// next end is not answered by a restart. If it is down when the message comes, it stays down,
    /// and the message is a dead letter. Pekko's `withFinalStopMessage`.
    ///
    /// `is_final` is called when a message is read, and when one is sent to a child that is down. It
    /// should be quick.
    pub fn final_message(self, is_final: impl Fn(&M) -> bool + Send + Sync + 'static) -> Self {
        self.edit(|options| options.final_message.replace(Arc::new(is_final)))
    }

    fn edit<T>(self, change: impl FnOnce(&mut options::Options<M>) -> T) -> Self {
        self.shared.edit(change);
        self
    }

    pub(crate) fn slot(&self) -> Arc<dyn Slot> {
        Arc::<Shared<M>>::clone(&self.shared)
    }

    /// Lends it to an incarnation. The error says whose it is.
    pub(crate) fn lend(&self, loan: Loan) -> Result<Inbox<M>, Option<Path>> {
        let loan = self.shared.lend(loan)?;
        Ok(Inbox::new(Arc::clone(&self.shared), loan))
    }
}

/// Nobody can read it any more.
impl<M: Send + 'static> Drop for Mailbox<M> {
    fn drop(&mut self) {
        self.shared.abandon();
    }
}

impl<M: Send + 'static> fmt::Debug for Mailbox<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, capacity) = self.shared.load();
        f.debug_struct("Mailbox").field("len", &len).field("capacity", &capacity).finish()
    }
}
