//! Sources: what a child is made from, besides how.
//!
//! A [`Recipe`](super::seed::Recipe) has its source, so that what is known of it is neither kept
//! nor said a second time: each child that has a spec of its own would pay for it.

use std::marker::PhantomData;
use std::sync::Arc;

use super::ChildSpec;
use crate::mailbox::{Mailbox, MailboxControl};

/// See the [module](self). `()` is one that says nothing.
pub(crate) trait Source: Send + Sync + 'static {
    /// The name of the type or the function, if that says more than that it is a supervisor.
    fn type_name(&self) -> Option<&'static str> {
        None
    }

    /// The mailbox that is lent to each incarnation.
    fn mailbox(&self) -> Option<Arc<dyn MailboxControl>> {
        None
    }

    /// Whether it has a mailbox, or anything below it has.
    fn lends(&self) -> bool {
        self.mailbox().is_some()
    }

    /// Who is declared below it, if it is a supervisor.
    fn children(&self) -> &[ChildSpec] {
        &[]
    }
}

impl Source for () {}

/// A type or a function.
pub(super) struct Of<T: ?Sized>(PhantomData<fn(&T)>);

impl<T: ?Sized> Of<T> {
    pub(super) const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: ?Sized + 'static> Source for Of<T> {
    fn type_name(&self) -> Option<&'static str> {
        Some(std::any::type_name::<T>())
    }
}

/// The same with a mailbox.
pub(super) struct WithMailbox<M: Send + 'static, T: ?Sized> {
    pub(super) mailbox: Mailbox<M>,
    pub(super) of: Of<T>,
}

impl<M: Send + 'static, T: ?Sized + 'static> Source for WithMailbox<M, T> {
    fn type_name(&self) -> Option<&'static str> {
        self.of.type_name()
    }

    fn mailbox(&self) -> Option<Arc<dyn MailboxControl>> {
        Some(self.mailbox.control())
    }
}
