//! Child factories: how each incarnation of a child is made.
//!
//! A [`ChildFactory`] is a name and a [`FactoryKind`]. A [`ChildSpec`] adds how the child is
//! supervised; its setters are in `spec`. Both types are in one file, because a supervisor's factory
//! holds the specs of its children.

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::context::Context;
use super::health::HealthCheck;
use super::incarnation::ChildIdentity;
use super::task::ExitFuture;
use crate::error::{BuildError, BuildWarning};
use crate::mailbox::MailboxControl;
use crate::path::Trail;
use crate::policy::{ChildOptions, WrittenLimits};

/// A description of a child: the factory of its incarnations, and its options.
///
/// Created by [`worker`](fn@crate::worker), [`worker_with`](crate::worker_with),
/// [`child`](crate::child), [`component`](crate::component) or the `into_child` of a supervisor's
/// builder. A clone shares the factory and the options.
///
/// For an option that isn't set, the supervisor's
/// [`defaults`](crate::SupervisorBuilder::defaults) apply. The options are checked when the tree is
/// built, or when the child is added to a running supervisor.
#[derive(Clone)]
#[must_use = "a spec does nothing until it is given to a supervisor"]
pub struct ChildSpec {
    pub(crate) factory: Arc<ChildFactory>,
    pub(crate) options: Arc<ChildOptions>,
    pub(crate) requires: Vec<String>,
    /// Replaces the child when it exceeds a limit.
    pub(crate) fallback: Option<Arc<ChildSpec>>,
    pub(crate) health: Option<Arc<HealthCheck>>,
}

impl ChildSpec {
    pub(crate) fn new(name: String, kind: FactoryKind) -> Self {
        // Most children share one of these until an option is set.
        static OF_FUNCTION: LazyLock<Arc<ChildOptions>> = LazyLock::new(Arc::default);
        static OF_OBJECT: LazyLock<Arc<ChildOptions>> =
            LazyLock::new(|| Arc::new(ChildOptions { signals: true, ..ChildOptions::default() }));

        let options = match kind {
            FactoryKind::Function(_) => Arc::clone(&OF_FUNCTION),
            FactoryKind::Value(_) => Arc::clone(&OF_OBJECT),
            FactoryKind::Nested(_) => Arc::new(ChildOptions {
                signals: true,
                signals_itself: true,
                supervisor: Some(Duration::ZERO),
                ..ChildOptions::default()
            }),
        };
        let mut spec = Self::of(ChildFactory::new(name.into(), kind), options);
        if spec.factory.mailbox().is_some_and(|mailbox| mailbox.delays_delivery()) {
            spec.edit().delays_traffic = true;
        }
        spec
    }

    /// Creates the spec of a supervisor that is checked; `abort_bound`: how long aborting everything
    /// below it may take.
    pub(crate) fn of_supervisor(factory: ChildFactory, abort_bound: Duration) -> Self {
        Self::of(factory, Arc::default()).supervising(abort_bound)
    }

    /// Whether the child or its fallback has a mailbox, or has children.
    pub(crate) fn lends(&self) -> bool {
        self.factory.lends() || self.fallback.as_ref().is_some_and(|fallback| fallback.lends())
    }

    fn of(factory: ChildFactory, options: Arc<ChildOptions>) -> Self {
        let factory = Arc::new(factory);
        Self { factory, options, requires: Vec::new(), fallback: None, health: None }
    }

    /// Marks the limits so far as those of the child's type. Later limits take precedence.
    pub(crate) fn layer(mut self) -> Self {
        if self.options.limits != WrittenLimits::default() {
            self.edit().limits.layer();
        }
        self
    }

    /// Makes it the spec of a supervisor, which signals readiness and has children to abort.
    pub(crate) fn supervising(mut self, abort_bound: Duration) -> Self {
        let options = self.edit();
        (options.signals, options.signals_itself) = (true, true);
        options.supervisor = Some(abort_bound);
        self
    }

    pub(super) fn edit(&mut self) -> &mut ChildOptions {
        Arc::make_mut(&mut self.options)
    }
}

impl fmt::Debug for ChildSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildSpec")
            .field("name", &self.factory.name)
            .field("options", &self.options)
            .field("requires", &self.requires)
            .finish()
    }
}

/// Makes the incarnations of a child.
pub(crate) trait IncarnationFactory: Send + Sync {
    /// Returns the future of one incarnation. Code of the user runs in its first poll, and not before.
    fn life(self: Arc<Self>, ctx: Context, phases: Phases) -> ExitFuture;

    fn meta(&self) -> &dyn ChildMeta;
}

/// What the future of a child with `activate`, `run` and `deactivate` does between them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Phases {
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
