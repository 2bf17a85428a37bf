//! Child factories: how each incarnation of a child is made.
//!
//! A [`ChildFactory`] is a name and a [`FactoryKind`]. How the child is supervised is part of its
//! spec.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::context::Context;
use super::incarnation::ChildIdentity;
use super::spec::ChildSpec;
use super::task::ExitFuture;
use crate::error::{BuildError, BuildWarning};
use crate::mailbox::MailboxControl;
use crate::path::Trail;

/// Makes the incarnations of a child.
pub(crate) trait IncarnationFactory: Send + Sync {
    /// Returns the future of one incarnation. Code of the user runs in its first poll, and not before.
    fn life(self: Arc<Self>, ctx: Context, phases: Phases) -> ExitFuture;

    fn meta(&self) -> &dyn ChildMeta;
}

/// What the future of a child with `activate`, `run` and `deactivate` does between them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Phases {
    /// The child is a supervisor of this crate.
    pub(crate) is_supervisor: bool,
    /// Sends [`Signal::Ready`](super::Signal::Ready) when `activate` has returned.
    pub(crate) signals_ready: bool,
    /// The child's shutdown grace, of which `deactivate` gets the last quarter.
    pub(crate) grace: Option<Duration>,
}

/// What is known of a child before it runs. `()` knows nothing.
pub(crate) trait ChildMeta: Send + Sync + 'static {
    /// The name of the type or function, unless the child is a supervisor of this crate.
    fn type_name(&self) -> Option<&'static str> {
        None
    }

    /// The mailbox that each incarnation borrows.
    fn mailbox(&self) -> Option<Arc<dyn MailboxControl>> {
        None
    }

    /// Whether the child, or any child below it, has a mailbox.
    fn lends(&self) -> bool {
        self.mailbox().is_some()
    }

    /// The children that are declared below it, if it is a supervisor.
    fn children(&self) -> &[ChildSpec] {
        &[]
    }
}

impl ChildMeta for () {}

/// How each incarnation is made.
#[derive(Clone)]
pub(crate) enum FactoryKind {
    /// From an async function.
    Function(Arc<dyn IncarnationFactory>),
    /// From a value that implements [`Child`](super::Child).
    Value(Arc<dyn IncarnationFactory>),
    /// From a description of children that has to be checked first.
    Nested(Arc<dyn Nested>),
}

/// The description of a supervisor that is a child.
///
/// The description is checked in two steps with its children between them, by a caller that keeps a
/// list and doesn't recurse: a tree may be a thousand levels deep. The last name of `path` is the
/// child's, which may differ from the name given to the builder.
pub(crate) trait Nested: Send + Sync + 'static {
    fn children(&self) -> &[ChildSpec];

    /// Checks what can be checked without the children.
    fn check(&self, path: &Trail) -> Result<(), BuildError>;

    /// Checks the rest and makes the supervisor runnable. `children` are its resolved children.
    fn resolve(
        &self,
        path: &Trail,
        children: Vec<ChildSpec>,
        warnings: &mut Vec<BuildWarning>,
    ) -> Result<Resolved, BuildError>;

    /// Returns the same description with each child replaced by `change(child)`.
    #[cfg(feature = "testing")]
    fn map(&self, change: &dyn Fn(ChildSpec) -> ChildSpec) -> Arc<dyn Nested>;
}

/// A checked description of a supervisor.
pub(crate) struct Resolved {
    pub(crate) factory: Arc<ChildFactory>,
    /// How long it may take to abort everything below.
    pub(crate) abort_bound: Duration,
}

/// See the [module](self).
#[derive(Clone)]
pub(crate) struct ChildFactory {
    pub(crate) name: Arc<str>,
    pub(crate) kind: FactoryKind,
}

impl ChildFactory {
    pub(crate) fn new(name: Arc<str>, kind: FactoryKind) -> Self {
        Self { name, kind }
    }

    /// Returns the future of one incarnation.
    pub(crate) fn life(&self, ctx: Context, phases: Phases) -> ExitFuture {
        match &self.kind {
            FactoryKind::Function(factory) | FactoryKind::Value(factory) => {
                Arc::clone(factory).life(ctx, phases)
            }
            FactoryKind::Nested(_) => unreachable!("a description is resolved before it is run"),
        }
    }

    fn meta(&self) -> &dyn ChildMeta {
        match &self.kind {
            FactoryKind::Function(factory) | FactoryKind::Value(factory) => factory.meta(),
            FactoryKind::Nested(_) => &(),
        }
    }

    pub(crate) fn type_name(&self) -> Option<&'static str> {
        self.meta().type_name()
    }

    pub(crate) fn mailbox(&self) -> Option<Arc<dyn MailboxControl>> {
        self.meta().mailbox()
    }

    pub(crate) fn lends(&self) -> bool {
        self.meta().lends()
    }

    pub(crate) fn children(&self) -> &[ChildSpec] {
        self.meta().children()
    }
}

impl ChildIdentity for ChildFactory {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn mailbox(&self) -> Option<Arc<dyn MailboxControl>> {
        self.meta().mailbox()
    }
}

impl fmt::Debug for ChildFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildFactory").field("name", &self.name).finish_non_exhaustive()
    }
}
