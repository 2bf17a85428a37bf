//! Mailboxes in a tree: their constructors, the children that have one, and how a handle finds one.

use std::any::type_name;
use std::future::Future;
use std::sync::Arc;

use super::shared::MailboxShared;
use super::{Address, Inbox, Mailbox};
use crate::child::{
    Child, ChildMeta, ChildSpec, Context, MailboxControl, TypeMeta, function_kind, value_kind,
};
use crate::error::{BuildError, ControlError};
use crate::exit::{ExitError, Outcome};
use crate::handle::SupervisorHandle;
use crate::path::Path;
use crate::runtime::request::HandleRequest;

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

/// Describes a child that is an `async fn` with a mailbox, which each incarnation borrows.
///
/// The function is called once for each incarnation, as by [`worker`](fn@crate::worker). Capture state, and clone it
/// in each call. The mailbox belongs to one child, so the spec is for one child at a time: create a
/// mailbox for each child.
///
/// ```
/// use std::sync::Arc;
/// use verger::mailbox::Inbox;
/// use verger::{Context, Exit, mailbox, worker_with_mailbox};
///
/// async fn greeter(_ctx: Context, mut inbox: Inbox<String>, greeting: Arc<str>) -> Exit {
///     while let Some(name) = inbox.recv().await {
///         println!("{greeting}, {name}");
///     }
///     Ok(())
/// }
///
/// let greeting: Arc<str> = "hello".into();
/// let (address, mailbox) = mailbox();
/// let run = move |ctx, inbox| greeter(ctx, inbox, greeting.clone());
/// let spec = worker_with_mailbox("greeter", mailbox, run);
/// # drop((address, spec));
/// ```
#[track_caller]
pub fn worker_with_mailbox<M, F, Fut, O>(
    name: impl Into<String>,
    mailbox: Mailbox<M>,
    run: F,
) -> ChildSpec
where
    M: Send + 'static,
    F: Fn(Context, Inbox<M>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = O> + Send + 'static,
    O: Outcome + 'static,
{
    let begin = move |meta: &MailboxMeta<M>, ctx: Context| {
        borrow(&meta.mailbox, &ctx).map(|inbox| run(ctx, inbox))
    };
    let meta = MailboxMeta { mailbox, of: TypeMeta::of::<F>() };
    ChildSpec::new(name.into(), function_kind(meta, begin))
}

/// Describes a child that is a value with a mailbox, made by `factory` for each incarnation.
///
/// Each incarnation borrows the mailbox. Otherwise the child behaves as described at [`child`](crate::child()). The
/// mailbox belongs to one child, so the spec is for one child at a time.
///
/// ```
/// use verger::mailbox::Inbox;
/// use verger::{Child, Context, Exit, async_trait, child_with_mailbox, mailbox};
///
/// struct Greeter {
///     inbox: Inbox<String>,
/// }
///
/// #[async_trait]
/// impl Child for Greeter {
///     async fn run(&mut self, _ctx: &Context) -> Exit {
///         while let Some(name) = self.inbox.recv().await {
///             println!("hello, {name}");
///         }
///         Ok(())
///     }
/// }
///
/// let (address, mailbox) = mailbox();
/// let spec = child_with_mailbox("greeter", mailbox, |inbox| Greeter { inbox });
/// # drop((address, spec));
/// ```
#[track_caller]
pub fn child_with_mailbox<M: Send + 'static, C: Child>(
    name: impl Into<String>,
    mailbox: Mailbox<M>,
    factory: impl Fn(Inbox<M>) -> C + Send + Sync + 'static,
) -> ChildSpec {
    let make = move |meta: &MailboxMeta<M>, ctx: &Context| {
        let inbox = borrow(&meta.mailbox, ctx)?;
        Ok(Box::new(factory(inbox)) as Box<dyn Child>)
    };
    let kind = value_kind(MailboxMeta { mailbox, of: TypeMeta::of::<C>() }, make);
    C::child_spec(ChildSpec::new(name.into(), kind)).layer()
}

/// The same for a child with a mailbox.
struct MailboxMeta<M: Send + 'static> {
    mailbox: Mailbox<M>,
    of: TypeMeta,
}

impl<M: Send + 'static> ChildMeta for MailboxMeta<M> {
    fn type_name(&self) -> Option<&'static str> {
        self.of.type_name()
    }

    fn mailbox(&self) -> Option<Arc<dyn MailboxControl>> {
        Some(self.mailbox.control())
    }

    fn check(&self, path: &dyn Fn() -> Path) -> Result<(), BuildError> {
        match self.mailbox.shared.load().1 {
            0 => Err(BuildError::ZeroCapacity { path: path() }),
            _ => Ok(()),
        }
    }
}

fn borrow<M: Send + 'static>(mailbox: &Mailbox<M>, ctx: &Context) -> Result<Inbox<M>, ExitError> {
    mailbox.lend(ctx.incarnation.loan()).map_err(|owner| {
        let owner = owner.map_or_else(|| "another child".to_owned(), |path| format!("`{path}`"));
        let path = ctx.path();
        format!("the mailbox of `{path}` belongs to {owner}; make one for each child").into()
    })
}

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
        let mailbox =
            self.call(&supervisor, |answer| HandleRequest::Mailbox { segment, answer }).await?;
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
