//! The constructors of a mailbox and its address.

use std::sync::Arc;

use super::Mailbox;
use super::address::Address;
use super::shared::MailboxShared;

/// The capacity unless one is set.
const DEFAULT_CAPACITY: usize = 1000;

/// Creates a mailbox for messages of type `M` with a capacity of 1000, and an address that sends to it.
///
/// To set the capacity, call [`mailbox_with_capacity`].
///
/// Give the mailbox to a child with [`worker_with_mailbox`](crate::worker_with_mailbox) or
/// [`child_with_mailbox`](crate::child_with_mailbox). It is kept across restarts of the child. The
/// address may be used at once.
///
/// ```
/// use verger::{Exit, Supervisor, mailbox, worker_with_mailbox};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (greeter, mailbox) = mailbox::<String>();
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
/// // The worker receives all queued messages before it ends.
/// app.stop("the example is over").await?;
/// assert!(greeter.is_empty() && greeter.is_closed());
/// # Ok(())
/// # }
/// ```
#[must_use = "a mailbox has to be given to a child"]
pub fn mailbox<M: Send + 'static>() -> (Address<M>, Mailbox<M>) {
    mailbox_with_capacity(DEFAULT_CAPACITY)
}

/// Creates a mailbox for messages of type `M` with the given capacity, and an address that sends to it.
///
/// The capacity counts queued messages and unacknowledged [deliveries](super::Delivery). Memory is
/// allocated as messages arrive, not up front. A capacity of 0 is refused when the tree is built, with
/// [`BuildError::ZeroCapacity`](crate::BuildError::ZeroCapacity).
///
/// ```
/// use verger::mailbox_with_capacity;
/// use verger::mailbox::{Mailbox, SendError};
///
/// let (address, mailbox): (_, Mailbox<u32>) = mailbox_with_capacity(2);
/// address.try_send(1)?;
/// address.try_send(2)?;
/// assert!(matches!(address.try_send(3), Err(SendError::Full { capacity: 2, .. })));
/// # drop(mailbox);
/// # Ok::<(), SendError<u32>>(())
/// ```
#[must_use = "a mailbox has to be given to a child"]
pub fn mailbox_with_capacity<M: Send + 'static>(capacity: usize) -> (Address<M>, Mailbox<M>) {
    let shared = Arc::new(MailboxShared::new(capacity));
    (Address::new(Arc::clone(&shared)), Mailbox { shared })
}
