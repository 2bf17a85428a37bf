//! Child specs, and the factories that make each incarnation of a child.
//!
//! A [`ChildFactory`] is a name and a [`FactoryKind`]. A [`ChildSpec`] adds how the child is
//! supervised. Both are in one file, because a supervisor's factory holds the specs of its children.

use std::any::{Any, TypeId};
use std::fmt;
use std::ops::Deref;
use std::panic::Location;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::context::Context;
use super::health::HealthCheck;
use super::incarnation::ChildIdentity;
use super::mailbox::MailboxControl;
use super::task::ExitFuture;
use crate::error::{BuildError, BuildWarning};
use crate::panic::Foreign;
use crate::path::Path;
use crate::policy::{ChildOptions, FailsAfter, SpecFacts, SpecKind, WrittenLimits};
use crate::runtime::Blueprint;
use crate::status::ChildInfo;

/// A description of a child: the factory of its incarnations, and its options.
///
/// Created by [`worker`](fn@crate::worker), [`worker_with`](crate::worker_with),
/// [`child`](crate::child), [`component`](crate::component) or the `into_child` of a supervisor's
/// builder. A clone shares the factory and the options.
///
/// For an option that isn't set, the supervisor's
/// [`defaults`](crate::SupervisorBuilder::defaults) apply. The options are checked when the tree is
/// built, or when the child is added to a running supervisor.
///
/// ```
/// use std::time::Duration;
///
/// use verger::{Backoff, ChildSpec, Context, Exit, Readiness, RestartType, Shutdown, worker};
///
/// async fn importer(ctx: Context) -> Exit {
///     ctx.ready();
///     ctx.cancelled().await;
///     Ok(())
/// }
///
/// fn spec() -> ChildSpec {
///     worker("importer", importer)
///         .restart(RestartType::Transient)
///         .backoff(Backoff::constant(Duration::from_secs(1)))
///         .own_restarts(3, Duration::from_secs(60))
///         .readiness(Readiness::Signal)
///         .shutdown(Shutdown::Timeout(Duration::from_secs(10)))
///         .requires("db")
/// }
/// # drop(spec());
/// ```
#[derive(Clone)]
#[must_use = "a spec does nothing until it is given to a supervisor"]
pub struct ChildSpec {
    pub(crate) factory: Arc<ChildFactory>,
    pub(crate) options: Arc<ChildOptions>,
    pub(crate) requires: Vec<String>,
    /// Replaces the child when it exceeds a limit.
    pub(crate) fallback: Option<Arc<ChildSpec>>,
    pub(crate) health: Option<Arc<HealthCheck>>,
    #[cfg(feature = "lease")]
    pub(crate) lease: Option<Arc<crate::lease::Lease>>,
}

impl ChildSpec {
    #[track_caller]
    pub(crate) fn new(name: String, kind: FactoryKind) -> Self {
        // Most children share one of these until an option is set.
        static OF_FUNCTION: LazyLock<Arc<ChildOptions>> = LazyLock::new(Arc::default);
        static OF_VALUE: LazyLock<Arc<ChildOptions>> = LazyLock::new(|| {
            let facts = SpecFacts { signals: true, ..SpecFacts::default() };
            Arc::new(ChildOptions { facts, ..ChildOptions::default() })
        });

        let options = match kind {
            FactoryKind::Function(_) => Arc::clone(&OF_FUNCTION),
            FactoryKind::Value(_) => Arc::clone(&OF_VALUE),
            FactoryKind::Nested(_) => Arc::new(ChildOptions {
                facts: SpecFacts {
                    kind: SpecKind::Supervisor { abort_bound: Duration::ZERO },
                    signals: true,
                    signals_itself: true,
                    ..SpecFacts::default()
                },
                ..ChildOptions::default()
            }),
        };
        let mut spec = Self::of(Arc::new(ChildFactory::new(name.into(), kind)), options);
        if spec.factory.mailbox().is_some_and(|mailbox| mailbox.delays_delivery()) {
            spec.edit().delays_delivery = true;
        }
        spec
    }

    /// Creates the spec of a supervisor that is checked.
    pub(crate) fn of_supervisor(resolved: Resolved) -> Self {
        let Resolved { factory, abort_bound, gives_up } = resolved;
        let mut spec = Self::of(factory, Arc::default()).supervising(abort_bound);
        spec.edit().facts.fails_after = gives_up;
        spec
    }

    /// Whether the child, its fallback, or any child below has a mailbox.
    pub(crate) fn lends(&self) -> bool {
        self.factory.lends() || self.fallback.as_ref().is_some_and(|fallback| fallback.lends())
    }

    /// How many levels of supervisors the child or its fallback has, as far as they are declared. 0 for a
    /// worker.
    pub(crate) fn levels(&self) -> usize {
        let fallback = self.fallback.as_ref().map_or(0, |fallback| fallback.levels());
        self.factory.levels().max(fallback)
    }

    /// Moves the specs that only this one holds to `specs`: its fallback, and the children of the
    /// supervisor that it describes. Otherwise they would be dropped one inside of the other.
    pub(crate) fn take_specs(&mut self, specs: &mut Vec<Self>) {
        specs.extend(self.fallback.take().and_then(Arc::into_inner));
        if let Some(factory) = Arc::get_mut(&mut self.factory)
            && let FactoryKind::Nested(nested) = &mut factory.kind
            && let Some(nested) = Arc::get_mut(nested)
        {
            specs.append(&mut nested.take_children());
        }
    }

    /// Returns the name of the child.
    #[must_use]
    pub fn name(&self) -> &str {
        self.factory.name()
    }

    fn of(factory: Arc<ChildFactory>, options: Arc<ChildOptions>) -> Self {
        Self {
            factory,
            options,
            requires: Vec::new(),
            fallback: None,
            health: None,
            #[cfg(feature = "lease")]
            lease: None,
        }
    }

    /// Marks the limits so far as those of the child's type. Later limits take precedence.
    pub(crate) fn layer(mut self) -> Self {
        if self.options.values.policy.limits != WrittenLimits::default() {
            self.edit().values.policy.limits.layer();
        }
        self
    }

    /// Makes it the spec of a supervisor, which signals readiness and has children to abort.
    pub(crate) fn supervising(mut self, abort_bound: Duration) -> Self {
        let facts = &mut self.edit().facts;
        (facts.signals, facts.signals_itself) = (true, true);
        facts.kind = SpecKind::Supervisor { abort_bound };
        self
    }

    /// Sets where the child is described.
    #[cfg(all(feature = "process", unix))]
    pub(crate) fn described_at(mut self, location: &'static Location<'static>) -> Self {
        Arc::make_mut(&mut self.factory).defined_at = location;
        self
    }

    /// Sets the version of the supervisor that the spec describes, if that has one.
    pub(crate) fn of_version(mut self, version: Option<Arc<str>>) -> Self {
        if version.is_some() {
            self.edit().version = version;
        }
        self
    }

    pub(crate) fn edit(&mut self) -> &mut ChildOptions {
        Arc::make_mut(&mut self.options)
    }
}

impl fmt::Debug for ChildSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildSpec")
            .field("name", self.factory.name())
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
    /// The child is a supervisor of this crate.
    pub(crate) is_supervisor: bool,
    /// Sends [`Signal::Ready`](super::Signal::Ready) when `activate` has returned.
    pub(crate) signals_ready: bool,
    /// The child's shutdown grace, of which `deactivate` gets the last quarter. `None`: it is infinite, or the child is a
    /// supervisor.
    pub(crate) grace: Option<Duration>,
}

/// A property that the status of its child shows, through all incarnations.
pub(crate) trait ShownProperty: Any + fmt::Debug + Send + Sync {
    /// Adds to the status of its child, after all else has.
    fn show(&self, info: &mut ChildInfo);
}

/// What is known about a child before it runs. `()` has no information.
pub(crate) trait ChildMeta: Send + Sync + 'static {
    /// The name of the type or function, unless the child is a supervisor of this crate.
    fn type_name(&self) -> Option<&'static str> {
        None
    }

    /// The mailbox that each incarnation borrows.
    fn mailbox(&self) -> Option<Arc<dyn MailboxControl>> {
        None
    }

    /// Checks what the options of the child don't tell.
    fn check(&self, _path: &dyn Fn() -> Path) -> Result<(), BuildError> {
        Ok(())
    }

    /// Whether a child with a lease keeps something in the lease's memo.
    #[cfg(feature = "lease")]
    fn keeps_memo(&self) -> bool {
        false
    }

    /// Warns of what is valid, but probably a mistake.
    fn warn(&self, _path: &dyn Fn() -> Path, _warnings: &mut Vec<BuildWarning>) {}

    /// A property that each child of this spec gets when it is added.
    fn property(&self) -> Option<Arc<dyn ShownProperty>> {
        None
    }

    /// Whether the child, or any child below it, has a mailbox.
    fn lends(&self) -> bool {
        self.mailbox().is_some()
    }

    /// How many levels of supervisors it has, as far as they are declared.
    fn levels(&self) -> usize {
        0
    }

    /// Whether it is a supervisor which, when it is restarted, starts a child that has one incarnation.
    fn spends(&self) -> bool {
        false
    }

    /// The children that are declared below it, if it is a supervisor.
    fn children(&self) -> &[ChildSpec] {
        &[]
    }

    /// The blueprint of a supervisor whose children are declared.
    fn blueprint(&self) -> Option<Arc<Blueprint>> {
        None
    }

    /// The graces below it that were set explicitly, if it is a supervisor.
    fn explicit_graces(&self) -> ExplicitGraces {
        ExplicitGraces::default()
    }
}

impl ChildMeta for () {}

/// How each incarnation is made.
#[derive(Clone)]
pub(crate) enum FactoryKind {
    /// From an async function.
    Function(Foreign<dyn IncarnationFactory>),
    /// From a value that implements [`Child`](super::Child).
    Value(Foreign<dyn IncarnationFactory>),
    /// From a description of children that has to be checked first.
    Nested(Arc<dyn Nested>),
}

impl FactoryKind {
    fn meta(&self) -> &dyn ChildMeta {
        match self {
            Self::Function(factory) | Self::Value(factory) => factory.meta(),
            Self::Nested(_) => &(),
        }
    }
}

/// The description of a supervisor that is a child.
///
/// The description is checked in two steps with its children between them, by a caller that keeps a
/// list and doesn't recurse: a tree may be a thousand levels deep. The last name of `path` is the
/// child's, which may differ from the name given to the builder.
pub(crate) trait Nested: Send + Sync + 'static {
    fn children(&self) -> &[ChildSpec];

    /// Removes the children, so that a deep description can be dropped without recursion.
    fn take_children(&mut self) -> Vec<ChildSpec>;

    /// Checks what can be checked without the children.
    fn check(&self, path: &Path) -> Result<(), BuildError>;

    /// Checks the rest and makes the supervisor runnable. `children` are its resolved children.
    fn resolve(
        &self,
        path: &Path,
        children: Vec<ChildSpec>,
        warnings: &mut Vec<BuildWarning>,
    ) -> Result<Resolved, BuildError>;
}

/// What each child of a tree under test is made with, in place of its own factory.
#[cfg(feature = "testing")]
pub(crate) trait WrapFactory: fmt::Debug + Send + Sync {
    fn wrap(&self, factory: &ChildFactory) -> Arc<ChildFactory>;
}

/// A checked description of a supervisor.
pub(crate) struct Resolved {
    pub(crate) factory: Arc<ChildFactory>,
    /// How long it may take to abort everything below.
    pub(crate) abort_bound: Duration,
    /// How long it runs until it gives up, if it does and that is known.
    pub(crate) gives_up: Option<FailsAfter>,
}

/// Returns a location that isn't in this crate.
pub(crate) fn outside(location: &'static Location<'static>) -> Option<&'static Location<'static>> {
    let sources = file!().strip_suffix("child/spec.rs").unwrap_or("src/");
    (!location.file().starts_with(sources)).then_some(location)
}

/// See the [module](self).
#[derive(Clone)]
pub(crate) struct ChildFactory {
    pub(crate) identity: Arc<ChildIdentity>,
    pub(crate) kind: FactoryKind,
    /// Where the child is described.
    pub(crate) defined_at: &'static Location<'static>,
}

impl ChildFactory {
    #[track_caller]
    pub(crate) fn new(name: Arc<str>, kind: FactoryKind) -> Self {
        let mailbox = kind.meta().mailbox();
        let identity = Arc::new(ChildIdentity { name, mailbox, config: None });
        Self { identity, kind, defined_at: Location::caller() }
    }

    /// Returns where the child is described, unless this crate does that.
    pub(crate) fn location(&self) -> Option<&'static Location<'static>> {
        outside(self.defined_at)
    }

    /// Sets where the child is described.
    pub(crate) fn defined_at(mut self, location: &'static Location<'static>) -> Self {
        self.defined_at = location;
        self
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.identity.name
    }

    /// Returns the future of one incarnation.
    pub(crate) fn life(&self, ctx: Context, phases: Phases) -> ExitFuture {
        match &self.kind {
            FactoryKind::Function(factory) | FactoryKind::Value(factory) => {
                Arc::clone(factory.shared()).life(ctx, phases)
            }
            FactoryKind::Nested(_) => unreachable!("a description is resolved before it is run"),
        }
    }

    pub(crate) fn mailbox(&self) -> Option<&Arc<dyn MailboxControl>> {
        self.identity.mailbox.as_ref()
    }

    pub(crate) fn config(&self) -> Option<&Arc<ConfigSpec>> {
        self.identity.config.as_ref()
    }
}

/// A factory has all that is known about its child.
impl Deref for ChildFactory {
    type Target = dyn ChildMeta;

    fn deref(&self) -> &Self::Target {
        self.kind.meta()
    }
}

impl fmt::Debug for ChildFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildFactory").field("name", self.name()).finish_non_exhaustive()
    }
}

/// The configuration of a child, as far as its supervisor has to know about it.
#[derive(Debug)]
pub(crate) struct ConfigSpec {
    pub(crate) type_id: TypeId,
    pub(crate) type_name: &'static str,
    /// The path of the section that has the values, below the root. `None`: the child's own.
    pub(crate) section: Option<String>,
    /// Whether a change restarts the child.
    pub(crate) restarts: bool,
    /// What reads and checks values: a type of the module `config`.
    pub(crate) reader: Box<dyn Any + Send + Sync>,
}

/// How long children may take to stop, as far as their graces were set explicitly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExplicitGraces {
    /// All of them, one after the other as far as children stop so.
    pub(crate) sum: Duration,
    /// The longest single one.
    pub(crate) longest: Duration,
    /// All of them in the stage *closing*, in which only children with different stop orders stop one after the other.
    pub(crate) closing: Duration,
    /// The longest `leak_timeout`, which all supervisors wait for at once after an abort.
    pub(crate) leak_timeout: Duration,
}

impl ExplicitGraces {
    pub(crate) fn of(grace: Duration) -> Self {
        Self { sum: grace, longest: grace, closing: grace, leak_timeout: Duration::ZERO }
    }

    /// Adds children that stop before or after these.
    pub(crate) fn then(self, other: Self) -> Self {
        Self { sum: self.sum.saturating_add(other.sum), ..self.beside(other) }
    }

    /// Adds children that stop at the same time.
    pub(crate) fn beside(self, other: Self) -> Self {
        Self {
            sum: self.sum.max(other.sum),
            longest: self.longest.max(other.longest),
            closing: self.closing.max(other.closing),
            leak_timeout: self.leak_timeout.max(other.leak_timeout),
        }
    }
}
