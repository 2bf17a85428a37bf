//! The checked tree, and the same tree as a child of a supervisor.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::child::{
    Child, ChildFactory, ChildMeta, ChildSpec, Context, ExplicitGraces, Resolved, function_kind,
};
use crate::error::BuildWarning;
use crate::exit::Exit;
use crate::handle::supervisor_below;
use crate::runtime::settings::Settings;
use crate::runtime::{Blueprint, EarlyEvents, End, supervise};
use crate::status::{Event, Subscription};

/// How long it may take to abort everything below a supervisor that a factory makes, so that its
/// tree isn't known in advance. Enough for ten levels with the default `leak_timeout`.
const UNKNOWN_ABORT_BOUND: Duration = Duration::from_secs(10);

/// A checked tree, ready to run.
///
/// Made by [`SupervisorBuilder::build`](crate::SupervisorBuilder::build). There are three ways to
/// run a tree:
///
/// * [`run`](Self::run) runs it until it ends by itself,
/// * [`with_graceful_shutdown`](Self::with_graceful_shutdown) runs it until a future, such as
///   `signals()`, resolves,
/// * [`start`](Self::start) starts it and returns a [`SupervisorHandle`](crate::SupervisorHandle).
///
/// A `Supervisor` is also a [`Child`]:
/// [`SupervisorBuilder::child`](crate::SupervisorBuilder::child) accepts it directly.
///
/// ```
/// use verger::{Context, Supervisor, worker};
///
/// async fn db(ctx: Context) {
///     ctx.cancelled().await;
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tree = Supervisor::builder("app").child(worker("db", db)).build()?;
/// assert!(tree.warnings().is_empty());
///
/// let app = tree.start().await?;
/// app.stop("the example is over").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a tree does nothing until it is run"]
pub struct Supervisor {
    blueprint: Arc<Blueprint>,
    warnings: Arc<[BuildWarning]>,
    /// The values at the start of each run.
    settings: Option<Arc<Settings>>,
    early_events: NextRun,
}

/// Subscriptions to the events of the next run. A clone has none.
#[derive(Default)]
struct NextRun(EarlyEvents);

impl Clone for NextRun {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Supervisor {
    pub(super) fn new(blueprint: Arc<Blueprint>, warnings: Vec<BuildWarning>) -> Self {
        Self {
            blueprint,
            warnings: warnings.into(),
            settings: None,
            early_events: NextRun::default(),
        }
    }

    /// Returns what is legal in this tree, but probably a mistake.
    ///
    /// Each warning was logged when the tree was built.
    #[must_use]
    pub fn warnings(&self) -> &[BuildWarning] {
        &self.warnings
    }

    /// Subscribes to the events of the next run of this tree, its first start included.
    ///
    /// The subscription ends with that run, or when the tree is dropped without one; also if the tree becomes a
    /// child of a supervisor. A clone of the tree has no subscriptions. To subscribe to a tree that runs, call
    /// [`SupervisorHandle::events`](crate::SupervisorHandle::events).
    ///
    /// ```
    /// use verger::{Context, Supervisor, worker};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let db = worker("db", async |ctx: Context| ctx.cancelled().await);
    /// let mut app = Supervisor::builder("app").child(db).build()?;
    /// let mut events = app.events();
    /// let app = app.start().await?;
    ///
    /// let first = events.next().await.expect("the tree runs");
    /// assert_eq!(first.to_string(), "app/db resolved");
    /// # app.stop("the example is over").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn events(&mut self) -> Subscription<Event> {
        self.early_events.0.subscribe()
    }

    /// Takes the subscriptions to the events of the next run.
    pub(crate) fn early_events(self) -> EarlyEvents {
        self.early_events.0
    }

    /// Returns the values that a run begins with.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.settings.as_ref().map(|settings| settings.fork()).unwrap_or_default().into()
    }

    /// Sets the values that each run begins with.
    pub(crate) fn set_settings(&mut self, settings: Settings) {
        self.settings = Some(Arc::new(settings));
    }

    pub(crate) fn blueprint(&self) -> Arc<Blueprint> {
        Arc::clone(&self.blueprint)
    }
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisor").field("blueprint", &self.blueprint).finish_non_exhaustive()
    }
}

/// Returns a checked supervisor as a child.
pub(super) fn resolved(blueprint: Arc<Blueprint>) -> Resolved {
    let (abort_bound, gives_up) = (blueprint.abort_bound(), blueprint.gives_up);
    let (name, defined_at) = (Arc::clone(&blueprint.name), blueprint.defined_at);
    // perf: a function instead of the `Child` below, which would box the value and each method.
    let kind = function_kind(Below(blueprint), |below, ctx| Ok(run_below(&below.0, ctx)));
    let factory = ChildFactory::new(name, kind).defined_at(defined_at);
    Resolved { factory: Arc::new(factory), abort_bound, gives_up }
}

/// The blueprint of a supervisor that is a child.
struct Below(Arc<Blueprint>);

impl ChildMeta for Below {
    fn lends(&self) -> bool {
        self.0.lends
    }

    fn levels(&self) -> usize {
        self.0.levels
    }

    fn spends(&self) -> bool {
        self.0.spends()
    }

    fn children(&self) -> &[ChildSpec] {
        &self.0.children
    }

    fn blueprint(&self) -> Option<Arc<Blueprint>> {
        Some(Arc::clone(&self.0))
    }

    fn explicit_graces(&self) -> ExplicitGraces {
        self.0.graces
    }
}

fn run_below(
    blueprint: &Arc<Blueprint>,
    ctx: Context,
) -> impl Future<Output = Exit> + Send + use<> {
    supervise(supervisor_below(&ctx, blueprint, false), Some(ctx), End::exit)
}

/// A supervisor becomes active when its first start has passed its last child.
///
/// All its work is in `run`, and its grace is for its children. Leave its shutdown at
/// [`Shutdown::Infinity`](crate::Shutdown::Infinity), the default, also if it is made by
/// [`child`](crate::child) or [`component`](crate::component).
// `do_not_recommend`: a type that lacks `Child` gains nothing from hearing of this implementation.
#[async_trait]
#[diagnostic::do_not_recommend]
impl Child for Supervisor {
    fn child_spec(spec: ChildSpec) -> ChildSpec {
        spec.supervising(UNKNOWN_ABORT_BOUND)
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        run_below(&self.blueprint, ctx.clone()).await
    }
}

impl From<Supervisor> for ChildSpec {
    fn from(tree: Supervisor) -> Self {
        let version = tree.blueprint.version.clone();
        Self::of_supervisor(resolved(tree.blueprint)).of_version(version)
    }
}
