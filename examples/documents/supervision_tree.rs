//! SignalPy, *Supervision trees*: components that can't be activated, a fallback, escalation, and a retry by hand.
//!
//! The listings of the document:
//!
//! ```python
//! @component("my-supervisor", version="1.0")
//! class MySupervisor:
//!
//!     @lifecycle.activate
//!     async def activate(self):
//!         await self.rt.spawn("worker-a")
//!         await self.rt.spawn("worker-b")
//!         await self.rt.spawn("worker-c")
//!
//!     @lifecycle.supervision(
//!         strategy="one_for_one",
//!         max_restarts=3,
//!         within_seconds=60,
//!         backoff="exponential",
//!         base_delay=2.0,
//!     )
//!     async def on_child_failure(self, child_name, error, attempt, context):
//!         self.rt.logger.warning(
//!             "Child %s failed (attempt %d): %s",
//!             child_name, attempt, error,
//!         )
//!         return True  # proceed with restart
//!
//!     @lifecycle.supervision(strategy="one_for_one", max_restarts=5)
//!     async def on_child_failure(self, child_name, error, attempt, context):
//!         # Influence: change child properties before restart
//!         if isinstance(error, ConnectionError) and attempt >= 2:
//!             context.update_properties({"endpoint": "fallback.example.com"})
//!         return True   # True = restart, False = give up
//! ```
//!
//! Its picture of an escalation:
//!
//! ```text
//! Root Supervisor
//!   └── Data Pipeline Supervisor    ← escalates here if workers keep failing
//!         ├── Fetcher Worker
//!         ├── Processor Worker       ← keeps failing
//!         └── Writer Worker
//!
//! If the Root Supervisor also can't handle it, the component stays ERRORED and requires manual intervention.
//! ```
//!
//! That is `kernel.retry_erroneous("name")`. "All delays are capped at 60 seconds." The document supervises failures
//! of activation, so the limits here count them.
//!
//! ```text
//! cargo run --example documents_supervision_tree
//! ```

#![expect(clippy::print_stdout, reason = "the example prints what happens")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use verger::policy::{ChildFailure, FailureDecision, Jitter, Preset};
use verger::{
    Backoff, Child, ChildSpec, Context, Exit, Lifecycle, Strategy, Supervisor, SupervisorBuilder,
    async_trait, child, worker,
};

#[path = "timeline.rs"]
mod timeline;

use timeline::Timeline;

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// The property that a callback changes.
struct Endpoint(&'static str);

/// A component that connects to its endpoint when it is activated.
struct Component {
    reachable: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    log: Timeline,
}

#[async_trait]
impl Child for Component {
    async fn activate(&mut self, ctx: &Context) -> Exit {
        let endpoint = ctx.property::<Endpoint>().map_or("api.example.com", |endpoint| endpoint.0);
        let name = ctx.path().name().to_owned();
        if !(self.reachable)(endpoint) {
            self.log.note(format_args!("{name}: no connection to {endpoint}"));
            return Err("ConnectionError".into());
        }
        self.log.note(format_args!("{name}: active with {endpoint}"));
        Ok(())
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        ctx.cancelled().await;
        Ok(())
    }
}

/// A component whose endpoint is reachable if the function says so.
fn component(
    name: &str,
    log: &Timeline,
    reachable: impl Fn(&str) -> bool + Send + Sync + 'static,
) -> ChildSpec {
    let (log, reachable) = (log.clone(), Arc::new(reachable));
    child(name, move || Component { reachable: reachable.clone(), log: log.clone() })
}

/// `@lifecycle.supervision(strategy="one_for_one", max_restarts=3, within_seconds=60, backoff="exponential",
/// base_delay=2.0)`.
fn supervision(name: &str) -> SupervisorBuilder {
    let backoff = Backoff::exponential(secs(2), secs(60)).jitter(Jitter::None);
    Supervisor::builder(name)
        .strategy(Strategy::OneForOne)
        .restarts(3, secs(60))
        .count_failed_starts(true)
        .defaults(move |child| child.backoff(backoff.clone()))
}

/// `on_child_failure` of both listings.
async fn on_child_failure(failure: ChildFailure, log: Timeline) -> FailureDecision {
    let ChildFailure { attempt, error, restarts_in_period, strategy, .. } = &failure;
    log.note(format_args!(
        "Child {} failed (attempt {attempt}): {error}; {restarts_in_period} in the window, {strategy}",
        failure.name()
    ));
    if *attempt >= 2 {
        return FailureDecision::restart().with(Endpoint("fallback.example.com"));
    }
    FailureDecision::restart()
}

/// `MySupervisor`: the second attempt of `worker-b` brings the fallback.
pub(crate) async fn fallback() -> anyhow::Result<Vec<String>> {
    let log = Timeline::new();
    let for_callback = log.clone();
    let idle = async |ctx: Context| ctx.cancelled().await;
    let my_supervisor = supervision("my-supervisor")
        .version("1.0")
        .child(worker("worker-a", idle))
        .child(component("worker-b", &log, |endpoint| endpoint.starts_with("fallback")))
        .child(worker("worker-c", idle))
        .on_child_failure(move |failure| on_child_failure(failure, for_callback.clone()));
    let kernel = my_supervisor.build()?.start().await?;
    kernel.stop("the listing is over").await?;
    Ok(log.lines())
}

/// The picture: the pipeline escalates, the root can't help, and a call brings it back.
pub(crate) async fn escalation() -> anyhow::Result<Vec<String>> {
    let log = Timeline::new();
    let model = Arc::new(AtomicBool::new(false));
    let has_model = Arc::clone(&model);
    let pipeline = supervision("data-pipeline")
        .child(component("fetcher", &log, |_| true))
        .child(component("processor", &log, move |_| has_model.load(Ordering::Relaxed)))
        .child(component("writer", &log, |_| true));
    let idle = async |ctx: Context| ctx.cancelled().await;
    // The preset's root leaves a component errored that it can't help. Its own limit is the same one.
    let root = Supervisor::builder("root").preset(Preset::signalpy()).child(worker("clock", idle));
    let root = root.child(pipeline).build()?.start().await?;
    let state = async || anyhow::Ok(root.which_child("data-pipeline").await?);
    let pipeline = state().await?;
    log.note(format_args!("data-pipeline: {}", pipeline.lifecycle.to_string().to_uppercase()));
    anyhow::ensure!(root.which_child("clock").await?.lifecycle == Lifecycle::Active);

    tokio::time::sleep(secs(3_600)).await;
    log.note(format_args!(
        "data-pipeline: {}",
        state().await?.lifecycle.to_string().to_uppercase()
    ));
    model.store(true, Ordering::Relaxed);
    log.note("kernel.retry_erroneous(\"data-pipeline\")");
    root.resume("data-pipeline").await?;
    log.note(format_args!(
        "data-pipeline: {}",
        state().await?.lifecycle.to_string().to_uppercase()
    ));
    root.stop("the listing is over").await?;
    Ok(log.lines())
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() -> anyhow::Result<()> {
    println!("{}\n", fallback().await?.join("\n"));
    println!("{}", escalation().await?.join("\n"));
    Ok(())
}
