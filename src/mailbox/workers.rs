//! Children with a mailbox, made from functions and from values that implement [`Child`].

use std::future::Future;
use std::sync::Arc;

use super::{Inbox, Mailbox};
use crate::child::{
    Child, ChildMeta, ChildSpec, Context, MailboxControl, TypeMeta, function_kind, value_kind,
};
use crate::error::BuildError;
use crate::exit::{ExitError, Outcome};
use crate::path::Path;

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
