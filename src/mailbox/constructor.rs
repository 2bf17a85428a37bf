//! The constructor of a mailbox and its address.

use std::sync::Arc;

use super::Mailbox;
use super::address::Address;
use super::shared::MailboxShared;

/// Creates a mailbox for messages of type `M`, and an address that sends to it.
///
/// The capacity counts queued messages and unacknowledged [deliveries](super::Delivery). A capacity of 0 is
/// treated as 1. If you have no better number, use 1000.
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
/// // The worker receives all queued messages before it ends.
/// app.stop("the example is over").await?;
/// assert!(greeter.is_empty() && greeter.is_closed());
/// # Ok(())
/// # }
/// ```
#[must_use = "a mailbox has to be given to a child"]
pub fn mailbox<M: Send + 'static>(capacity: usize) -> (Address<M>, Mailbox<M>) {
    let shared = Arc::new(MailboxShared::new(capacity.max(1)));
    (Address::new(Arc::clone(&shared)), Mailbox { shared })
}
