//! The checked tree, and the same tree as a child of a supervisor.

use std::any::Any;
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
use crate::runtime::{Blueprint, End, supervise};

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
#[derive(Clone)]
#[must_use = "a tree does nothing until it is run"]
pub struct Supervisor {
    blueprint: Arc<Blueprint>,
    warnings: Arc<[BuildWarning]>,
    /// The values at the start of each run.
    settings: Option<Arc<Settings>>,
}

impl Supervisor {
    pub(super) fn new(blueprint: Arc<Blueprint>, warnings: Vec<BuildWarning>) -> Self {
        Self { blueprint, warnings: warnings.into(), settings: None }
    }

    /// Returns what is legal in this tree, but probably a mistake.
    ///
    /// Each warning was logged when the tree was built.
    #[must_use]
    pub fn warnings(&self) -> &[BuildWarning] {
        &self.warnings
    }

    /// Returns the values that a run begins with.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.settings.as_ref().map(|settings| settings.fork()).unwrap_or_default().into()
    }

    /// Sets the values that each run begins with.
    #[cfg(feature = "config")]
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
    let name = Arc::clone(&blueprint.name);
    // perf: a function instead of the `Child` below, which would box the value and each method.
    let kind = function_kind(Below(blueprint), |below, ctx| Ok(run_below(&below.0, ctx)));
    Resolved { factory: Arc::new(ChildFactory::new(name, kind)), abort_bound, gives_up }
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

    fn blueprint(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(Arc::clone(&self.0) as _)
    }

    fn explicit_graces(&self) -> ExplicitGraces {
        self.0.graces
    }
}

fn run_below(
    blueprint: &Arc<Blueprint>,
    ctx: Context,
) -> impl Future<Output = Exit> + Send + use<> {
    supervise(supervisor_below(&ctx, blueprint), Some(ctx), End::exit)
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
        Self::of_supervisor(resolved(tree.blueprint))
    }
}
