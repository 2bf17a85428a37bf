//! Finding the address of a child's mailbox by the child's name.

use std::any::type_name;

use super::Address;
use crate::error::ControlError;
use crate::handle::SupervisorHandle;
use crate::runtime::request::Request;

impl SupervisorHandle {
    /// Returns the address of a child's mailbox.
    ///
    /// The address outlives the incarnations of the child, so it can be kept.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use verger::mailbox::Inbox;
    /// use verger::{Context, Exit, Supervisor, worker_with_mailbox};
    ///
    /// async fn add(_: Context, mut inbox: Inbox<u32>) -> Exit {
    ///     while let Some(number) = inbox.recv().await {
    ///         println!("{number}");
    ///     }
    ///     Ok(())
    /// }
    ///
    /// let (_, mailbox) = verger::mailbox();
    /// let app = Supervisor::builder("app").child(worker_with_mailbox("adder", mailbox, add));
    /// let app = app.build()?.start().await?;
    ///
    /// let adder = app.address::<u32>("adder").await?;
    /// adder.send(7).await?;
    /// # app.stop("done").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// * [`ControlError::NoMailbox`] if the child has no mailbox,
    /// * [`ControlError::WrongMessageType`] if the mailbox is for messages of a different type,
    ///
    /// and the common errors.
    pub async fn address<M: Send + 'static>(&self, path: &str) -> Result<Address<M>, ControlError> {
        let (supervisor, segment) = self.find(path).await?;
        let mailbox = self.call(&supervisor, |answer| Request::Mailbox { segment, answer }).await?;
        let Some(mailbox) = mailbox else {
            return Err(ControlError::NoMailbox { path: self.full_path(path) });
        };
        let actual = mailbox.message_type();
        Address::of(mailbox).ok_or_else(|| ControlError::WrongMessageType {
            path: self.full_path(path),
            requested: type_name::<M>(),
            actual,
        })
    }
}
