//! Mailboxes: queues of messages that outlive the incarnations of a child.
//!
//! [`mailbox`](fn@crate::mailbox) and [`mailbox_with_capacity`](crate::mailbox_with_capacity) create a
//! mailbox and its [`Address`]. The address sends messages, also while the child is down. The mailbox is
//! lent to one incarnation of the child after another, which receives the messages through an [`Inbox`].
//! A message that can't be delivered becomes a [dead letter](crate::dead_letter).
//!
//! The [status](crate::status::ChildInfo::mailbox) of a child shows how many messages wait:
//!
//! ```
//! use verger::{Context, Supervisor, mailbox_with_capacity, worker_with_mailbox};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (orders, mailbox) = mailbox_with_capacity(10);
//! let clerk = worker_with_mailbox("clerk", mailbox, async |ctx: Context, _inbox| ctx.cancelled().await);
//! let shop = Supervisor::builder("shop").child(clerk).build()?.start().await?;
//! orders.try_send("two apples")?;
//!
//! let mailbox = shop.which_child("clerk").await?.mailbox.unwrap();
//! assert_eq!((mailbox.len, mailbox.capacity), (1, 10));
//! # shop.stop("the example is over").await?;
//! # Ok(())
//! # }
//! ```
//!
//! # With macros
//!
//! A function under `#[worker]` with a parameter `Inbox<M>` returns the spec and the address.
//!
//! ```
//! use verger::mailbox::{Inbox, Overflow};
//! use verger::{Exit, Supervisor, worker};
//!
//! #[worker(capacity = 50, mailbox = |it| it.overflow(Overflow::DropOldest).max_attempts(3))]
//! async fn greeter(mut inbox: Inbox<String>, greeting: &'static str) -> Exit {
//!     while let Some(name) = inbox.recv().await {
//!         println!("{greeting}, {name}");
//!     }
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (greeter, address) = greeter("hello");
//! let app = Supervisor::builder("app").child(greeter).build()?.start().await?;
//! address.send("world".to_owned()).await?;
//! # assert_eq!(address.capacity(), 50);
//! # app.stop("the example is over").await?;
//! # Ok(())
//! # }
//! ```

// | file | contents |
// | --- | --- |
// | `address`, `ask` | sending messages and questions |
// | `inbox` | receiving messages |
// | `options` | what users configure |
// | `workers` | how a mailbox gets into a tree |
// | `state`, `queue` | the state: pure steps without clock and callbacks |
// | `shared`, `losses` | run the steps under a lock, and their effects and letters afterwards |
//
// The module knows neither children nor supervisors. A mailbox is lent to a `LoanHolder`, and its dead
// letters go to a `MailboxOwner`.

mod address;
mod ask;
mod inbox;
mod losses;
mod options;
mod queue;
mod shared;
mod state;
#[cfg(test)]
mod tests;
pub(crate) mod workers;

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

pub use self::address::{Address, SendError};
pub use self::ask::{AskError, Reply};
pub use self::inbox::{Delivery, Inbox, Next};
pub use self::options::{Closing, Delay, Drain, Handler, Overflow, WhileDown};
use self::shared::MailboxShared;
use crate::child::{MailboxControl, MailboxLoan};
use crate::clock::now;
use crate::panic::Foreign;
use crate::path::Path;

/// A queue of messages that is kept across restarts of its child; created by
/// [`mailbox`](crate::mailbox()) or [`mailbox_with_capacity`](crate::mailbox_with_capacity).
///
/// A mailbox belongs to one child: a spec with a mailbox can be used for one child at a time. When the
/// last clone of that spec is dropped, the mailbox is closed for good.
///
/// By default, messages are queued while the child is down, and a sender that finds no room waits or gets
/// its message back. Change that with the methods below, before the address is used and before the mailbox
/// is given to a child.
///
/// ```
/// use verger::mailbox::{Mailbox, Overflow, WhileDown};
/// use verger::mailbox_with_capacity;
///
/// struct Price(u32);
///
/// // Only the latest prices count, and none while the child is down.
/// let (prices, mailbox): (_, Mailbox<Price>) = mailbox_with_capacity(10);
/// let mailbox = mailbox.overflow(Overflow::DropOldest).while_down(WhileDown::Drop);
/// # drop((prices, mailbox));
/// ```
#[must_use = "a mailbox has to be given to a child"]
pub struct Mailbox<M: Send + 'static> {
    shared: Arc<MailboxShared<M>>,
}

impl<M: Send + 'static> Mailbox<M> {
    /// Sets what [`try_send`](Address::try_send) and [`ask`](Address::ask) do if the mailbox is full.
    /// Default: [`Overflow::Reject`].
    ///
    /// Until the tree is started, a full mailbox always rejects, since no supervisor could publish a dead
    /// letter.
    pub fn overflow(self, overflow: Overflow) -> Self {
        self.set(|options| options.overflow = overflow)
    }

    /// Sets what happens to messages while the child is down and will be restarted. Default:
    /// [`WhileDown::Stash`].
    ///
    /// It also applies to messages that the last incarnation has not received. Messages that were
    /// [delivered](Inbox::deliver) and not acknowledged are always kept for the next incarnation.
    ///
    /// It has no effect on a child that is [started by messages](crate::ChildSpec::start_on_message), which
    /// gets all messages. `build` [warns](crate::error::BuildWarning::WhileDownIgnored) of that.
    pub fn while_down(self, while_down: WhileDown<M>) -> Self {
        self.set(|options| std::mem::replace(&mut options.while_down, while_down))
    }

    /// Sets when an incarnation receives the messages that were queued before it started. Default:
    /// [`Drain::AtReady`] for a child with [`Readiness::Signal`](crate::Readiness::Signal), otherwise
    /// [`Drain::After`] 50 ms, or after the first delay of the child's backoff if that is shorter.
    ///
    /// New messages wait behind the queued ones, so that none overtakes. If no messages were queued, new
    /// ones are received at once; see [`hold_until`](Self::hold_until).
    pub fn drain(self, drain: Drain) -> Self {
        self.set(|options| options.drain = Some(drain))
    }

    /// Sets [`drain`](Self::drain), and holds back new messages even if none were queued.
    ///
    /// No message is then received by an incarnation that fails while it starts.
    pub fn hold_until(self, drain: Drain) -> Self {
        self.set(|options| (options.drain, options.hold_new) = (Some(drain), true))
    }

    /// Lets new messages overtake the ones that wait for the [drain](Self::drain).
    ///
    /// They are then received at once, also with [`hold_until`](Self::hold_until).
    pub fn allow_overtake(self) -> Self {
        self.set(|options| options.overtake = true)
    }

    /// Sets when the mailbox is closed if the child is stopped for good. Default: [`Closing::Immediately`].
    pub fn closing(self, closing: Closing) -> Self {
        self.set(|options| options.closing = closing)
    }

    /// Sets what the backoff delays after a failure: the child or its messages. Default:
    /// [`Delay::Child`].
    ///
    /// A child that is restarted as part of a group always waits for the group.
    pub fn delay(self, delay: Delay) -> Self {
        self.set(|options| options.delay = delay)
    }

    /// Sets how many [delivery](Inbox::deliver) attempts of a message may fail. Default: 5. Zero is
    /// treated as 1.
    ///
    /// The message then becomes a dead letter with the reason `poison`, and the child goes on with the
    /// next message. An attempt fails if the child exits by itself or is aborted, drops the delivery, or
    /// is stopped because it is [unhealthy](crate::HealthCheck). An attempt doesn't count if the child
    /// was cancelled for another reason.
    ///
    /// A failure counts for every message that the child holds, since the mailbox can't know which one
    /// has caused it. A child that handles batches should handle a message alone if its
    /// [`attempt`](Delivery::attempt) is above 1; otherwise one bad message poisons its batch. If all
    /// messages depend on something that may be down, check it before the child is
    /// [ready](crate::ChildSpec::readiness), so that an outage costs no attempts.
    pub fn max_attempts(self, attempts: u32) -> Self {
        let attempts = NonZeroU32::new(attempts).unwrap_or(NonZeroU32::MIN);
        self.set(|options| options.max_attempts = Some(attempts))
    }

    /// Delivers a message until it is acknowledged, without a limit of attempts.
    pub fn unlimited_attempts(self) -> Self {
        self.set(|options| options.max_attempts = None)
    }

    /// Sets which message is the child's last one.
    ///
    /// When the child has received a message for which `is_final` returns `true`, its next exit is not
    /// followed by a restart. If the child is down when such a message is sent, it is not restarted, and
    /// the message becomes a dead letter.
    ///
    /// `is_final` is called when a message is received, and when one is sent to a child that is down. It
    /// must not block. A message that it sends to this mailbox itself is not checked while the child is
    /// down: it is never the final one. A panic in it is the child's failure when the message is received,
    /// and counts as `false` when it is sent.
    pub fn final_message(self, is_final: impl Fn(&M) -> bool + Send + Sync + 'static) -> Self {
        self.set(|options| options.final_message.replace(Foreign::new(Arc::new(is_final))))
    }

    fn set<T>(self, change: impl FnOnce(&mut options::MailboxOptions<M>) -> T) -> Self {
        self.shared.set_option(change);
        self
    }

    pub(crate) fn control(&self) -> Arc<dyn MailboxControl> {
        Arc::<MailboxShared<M>>::clone(&self.shared)
    }

    /// Lends the mailbox to an incarnation.
    ///
    /// # Errors
    ///
    /// Returns the path of the child that the mailbox belongs to, if that is another one.
    pub(crate) fn lend(&self, loan: MailboxLoan) -> Result<Inbox<M>, Option<Path>> {
        let (number, held_until) = self.shared.lend(&loan, now())?;
        Ok(Inbox::new(Arc::clone(&self.shared), loan.holder, number, held_until))
    }
}

/// Closes the mailbox: no child can receive its messages any more.
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
