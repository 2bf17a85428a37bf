//! What a stop does, and how long it may take: its stages, and the hooks before and after them.
//!
//! Hooks run in steps: the hooks of one step concurrently, the steps in order. A hook that fails, panics or takes
//! too long is logged by its name, and the next step follows. Each hook runs in a separate task, so that one
//! that blocks its thread doesn't block the termination, if the runtime has another thread.
//!
//! # Invariants
//!
//! 1. The steps of a plan are in the order of their times, and their levels never fall.
//! 2. The last step aborts what is left.
//! 3. A hook runs at most once.
//! 4. A step of hooks takes at most as long as the longest bound of its hooks.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::program::Program;
use crate::child::{ExplicitGraces, StopLevel};
use crate::exit::{Exit, Outcome};
use crate::named_task::OwnedTask;
use crate::panic::CatchPanic;
use crate::spec::Supervisor;
use crate::subscriber;

/// How long before the end of a [`Stage::Closing`] the stop order no longer counts.
const LAST_ORDERS: Duration = Duration::from_secs(1);

/// A stage of a termination, and how long it may take.
///
/// A stage ends early if the whole tree has ended.
///
/// The example of [`StopStages`] sets one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// The ordered stop: children stop in reverse start order, one at a time, each within its own grace.
    Polite(Duration),
    /// All children that are left are cancelled at once, at every level, and their mailboxes are closed.
    ///
    /// Children with a higher [`stop_order`](crate::ChildSpec::stop_order) are cancelled when those with a
    /// lower one have ended, at the latest 1 s before the end of the stage. No grace outlasts the stage.
    Closing(Duration),
}

impl Stage {
    /// Returns how long the stage may take.
    #[must_use]
    pub fn length(self) -> Duration {
        match self {
            Self::Polite(length) | Self::Closing(length) => length,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Polite(_) => "polite",
            Self::Closing(_) => "closing",
        }
    }
}

/// The stages in which an [`Application`](crate::Application) stops.
///
/// | stage | default | what happens |
/// | --- | --- | --- |
/// | *drain* | 0 s | nothing stops yet; a load balancer takes the service out |
/// | *polite* | 20 s, less the drain | the ordered stop |
/// | *closing* | 5 s | all that is left is cancelled at once |
/// | *abort* | one `leak_timeout`, 1 s | all that is left is aborted; what still runs then is named as leaked |
///
/// So by default a termination takes 26 s at most, which is below the 30 s after which Kubernetes kills a
/// pod. They apply to every stop of the root, whoever requests it, but not to trees that were started with
/// [`start`](crate::Supervisor::start) or [`run`](crate::Supervisor::run), or to a supervisor below the root: those obey
/// [`stop_deadline`](crate::SupervisorBuilder::stop_deadline) only.
///
/// ```
/// use std::time::Duration;
///
/// use verger::app::{Stage, StopStages};
///
/// let behind_a_load_balancer = StopStages::default().drain(Duration::from_secs(5));
/// assert_eq!(behind_a_load_balancer.total(), Duration::from_secs(25));
///
/// let quick = StopStages::new([Stage::Polite(Duration::from_secs(3))]);
/// assert_eq!(quick.total(), Duration::from_secs(3));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopStages {
    pub(super) drain: Duration,
    stages: Vec<Stage>,
}

impl Default for StopStages {
    /// Returns 20 s *polite* and 5 s *closing*, without a drain.
    fn default() -> Self {
        Self::new([Stage::Polite(Duration::from_secs(20)), Stage::Closing(Duration::from_secs(5))])
    }
}

impl StopStages {
    /// Creates stages of your own, in their order. What is left after the last one is aborted.
    ///
    /// A stage that comes after a more urgent one doesn't take that back: it only gives more time.
    #[must_use]
    pub fn new(stages: impl IntoIterator<Item = Stage>) -> Self {
        Self { drain: Duration::ZERO, stages: stages.into_iter().collect() }
    }

    /// Returns the stages of the actor system elfo: 30 s *polite* and 15 s *closing*.
    #[must_use]
    pub fn elfo() -> Self {
        Self::new([Stage::Polite(Duration::from_secs(30)), Stage::Closing(Duration::from_secs(15))])
    }

    /// Sets for how long the tree goes on after the application has become unready. Default: 0 s.
    ///
    /// The time is taken out of the first *polite* stage. Behind a load balancer or a Kubernetes service,
    /// 5 s give it the time to send requests elsewhere.
    #[must_use]
    pub fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Returns how long all stages take at most, without the abort.
    #[must_use]
    pub fn total(&self) -> Duration {
        let stages = self.stages().map(Stage::length);
        stages.fold(self.drain, Duration::saturating_add)
    }

    /// Returns how long the tree stops in order at most: until the first closing stage.
    fn polite(&self) -> Duration {
        let polite = self.stages().take_while(|stage| matches!(stage, Stage::Polite(_)));
        polite.map(Stage::length).fold(Duration::ZERO, Duration::saturating_add)
    }

    /// The stages after the drain, which has shortened the first polite one.
    fn stages(&self) -> impl Iterator<Item = Stage> {
        let mut drain = self.drain;
        self.stages.iter().map(move |&stage| match stage {
            Stage::Polite(length) => {
                let left = length.saturating_sub(std::mem::take(&mut drain));
                Stage::Polite(left)
            }
            closing => closing,
        })
    }

    /// Returns the steps after the drain.
    pub(super) fn plan(&self) -> Vec<StopStep> {
        let (mut plan, mut after) = (Vec::new(), Duration::ZERO);
        for stage in self.stages() {
            let end = after.saturating_add(stage.length());
            match stage {
                Stage::Polite(_) => {
                    plan.push(StopStep { after, level: StopLevel::Cancel, stage: Some(stage) })
                }
                Stage::Closing(_) => {
                    plan.push(StopStep { after, level: StopLevel::Close, stage: Some(stage) });
                    let after = end.saturating_sub(LAST_ORDERS).max(after);
                    plan.push(StopStep { after, level: StopLevel::CloseAll, stage: None });
                }
            }
            after = end;
        }
        plan.push(StopStep { after, level: StopLevel::Abort, stage: None });
        plan
    }
}

impl fmt::Display for StopStages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "drain {:?}", self.drain)?;
        for stage in self.stages() {
            write!(f, ", {} {:?}", stage.name(), stage.length())?;
        }
        Ok(())
    }
}

/// A step of a termination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StopStep {
    /// When it is due, counted from the end of the drain.
    pub(super) after: Duration,
    pub(super) level: StopLevel,
    /// The stage that begins, if any.
    pub(super) stage: Option<Stage>,
}

/// How long a hook may take, unless it sets a bound of its own.
const WITHIN: Duration = Duration::from_secs(5);

type Call = Box<dyn FnOnce(Arc<str>) -> Pin<Box<dyn Future<Output = Exit> + Send>> + Send>;

/// Something that an [`Application`](crate::Application) does before its tree stops, or after.
///
/// Made by [`hook`].
///
/// The example of [`hook`] makes one.
#[must_use = "a hook does nothing until it is passed to an application"]
pub struct Hook {
    name: String,
    within: Duration,
    call: Call,
}

/// Creates a hook. Its name is logged if it fails or takes too long.
///
/// The function gets the cause of the termination, such as `SIGTERM`. It returns `()`, or a `Result` whose
/// error is logged.
///
/// ```
/// use std::time::Duration;
///
/// use verger::app::hook;
/// use verger::{Application, Supervisor};
///
/// # async fn deregister() -> Result<(), std::io::Error> { Ok(()) }
/// # fn f(tree: Supervisor) -> Application {
/// Application::new(tree)
///     .before_stop(hook("deregister", async |_cause| deregister().await).within(Duration::from_secs(2)))
/// # }
/// ```
pub fn hook<F, Fut, O>(name: impl Into<String>, call: F) -> Hook
where
    F: FnOnce(Arc<str>) -> Fut + Send + 'static,
    Fut: Future<Output = O> + Send + 'static,
    O: Outcome,
{
    let call = |cause| {
        let future = call(cause);
        Box::pin(async { future.await.into_exit() }) as Pin<Box<dyn Future<Output = Exit> + Send>>
    };
    Hook { name: name.into(), within: WITHIN, call: Box::new(call) }
}

impl Hook {
    /// Sets how long the hook may take. Default: 5 s. After that its task is aborted, and the termination
    /// goes on.
    pub fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    async fn run(self, cause: Arc<str>) {
        let Self { name, within, call } = self;
        let future = CatchPanic(Box::pin(async move { call(cause).await }));
        let mut task = OwnedTask::spawn("verger hook", future);
        let result = tokio::time::timeout(within, task.join()).await;
        let hook = name.as_str();
        let cause = match result {
            Ok(Ok(Ok(Ok(())))) => return,
            Ok(Ok(Ok(Err(error)))) => error.to_string(),
            Ok(Ok(Err(panic))) => format!("panicked: {panic}"),
            Ok(Err(ended)) => ended.to_string(),
            Err(_) => format!("took longer than {within:?}"),
        };
        subscriber::error!(target: "verger::shutdown", hook, cause, "hook failed");
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook")
            .field("name", &self.name)
            .field("within", &self.within)
            .finish_non_exhaustive()
    }
}

/// Hooks that run at once.
///
/// ```
/// use verger::app::hook;
/// use verger::{Application, Supervisor};
///
/// # async fn close_spool() {}
/// # async fn deregister() {}
/// # fn f(tree: Supervisor) -> Application {
/// // The two run at once, and `flush` after both.
/// Application::new(tree)
///     .before_stop([
///         hook("close spool", async |_cause| close_spool().await),
///         hook("deregister", async |_cause| deregister().await),
///     ])
///     .before_stop(hook("flush", async |_cause| println!("flushed")))
/// # }
/// # drop(f);
/// ```
#[derive(Debug)]
pub struct HookStep(Vec<Hook>);

impl From<Hook> for HookStep {
    fn from(hook: Hook) -> Self {
        Self(vec![hook])
    }
}

impl<const N: usize> From<[Hook; N]> for HookStep {
    fn from(hooks: [Hook; N]) -> Self {
        Self(hooks.into())
    }
}

impl From<Vec<Hook>> for HookStep {
    fn from(hooks: Vec<Hook>) -> Self {
        Self(hooks)
    }
}

/// Returns how long all steps take at most.
fn bound(steps: &[HookStep]) -> Duration {
    let longest = |step: &HookStep| step.0.iter().map(|hook| hook.within).max();
    steps.iter().filter_map(longest).fold(Duration::ZERO, Duration::saturating_add)
}

/// Runs all steps.
pub(super) async fn run_hooks(steps: Vec<HookStep>, cause: &Arc<str>) {
    for step in steps {
        let hooks = step.0.into_iter().map(|hook| Box::pin(hook.run(Arc::clone(cause))));
        all(hooks.collect()).await;
    }
}

/// Polls futures, all in one task, until each is ready.
async fn all<F: Future<Output = ()> + Unpin>(mut futures: Vec<F>) {
    std::future::poll_fn(|cx| {
        futures.retain_mut(|future| pin!(future).poll(cx).is_pending());
        if futures.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// The bounds of a termination.
pub(super) struct StopBounds {
    stages: String,
    /// All stages, the abort and the hooks.
    pub(super) total: Duration,
    /// All stages, without the hooks before them and the abort.
    in_stages: Duration,
    /// The stages before which a child is stopped in order.
    polite: Duration,
    /// The graces that were set explicitly. Of children that are started later, only the default grace of their
    /// dynamic supervisor is known.
    graces: ExplicitGraces,
}

impl StopBounds {
    pub(super) fn of(tree: &Supervisor, program: &Program) -> Self {
        let blueprint = tree.blueprint();
        let stages = &program.stages;
        let drain = stages.drain;
        let before = bound(&program.before).saturating_sub(drain);
        let after = bound(&program.after);
        let abort = blueprint.graces.leak_timeout;
        let total = [stages.total(), before, abort, after];
        Self {
            stages: format!("{stages}, abort {abort:?}"),
            total: total.into_iter().fold(Duration::ZERO, Duration::saturating_add),
            in_stages: stages.total().saturating_sub(drain),
            polite: stages.polite(),
            graces: blueprint.graces,
        }
    }

    /// Logs the bounds, if `announces`, and warns of what exceeds them.
    pub(super) fn report(&self, announces: bool, limit: Option<Duration>) {
        let Self { stages, total, in_stages, polite, graces } = self;
        // Without a polite stage, all that have the same stop order stop at the same time.
        let needed = if polite.is_zero() { graces.closing } else { graces.sum };
        // A child that is cut off has less than its grace left when the polite stages expire, at the latest.
        let is_cut = needed > *in_stages && graces.closing > in_stages.saturating_sub(*polite);
        let graces = needed;
        if announces {
            subscriber::info!(target: "verger::shutdown", at_most = ?total, stages, ?graces, "time for a stop");
        }
        if is_cut {
            subscriber::warn!(
                target: "verger::shutdown", ?graces, available = ?in_stages,
                "the graces add up to more than the stages: the children that stop last have less than theirs"
            );
        }
        if let Some(limit) = limit.filter(|limit| limit < total) {
            subscriber::warn!(
                target: "verger::shutdown", ?limit, at_most = ?total,
                "a stop may take longer than the service manager waits: it may kill the process"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn plan(stages: &StopStages) -> Vec<(u64, StopLevel)> {
        stages.plan().into_iter().map(|step| (step.after.as_secs(), step.level)).collect()
    }

    #[test]
    fn by_default_a_stop_is_polite_for_20_s_closes_for_5_and_then_aborts() {
        let stages = StopStages::default();
        assert_eq!(stages.total(), secs(25));
        assert_eq!(stages.to_string(), "drain 0ns, polite 20s, closing 5s");
        let (cancel, close) = ((0, StopLevel::Cancel), (20, StopLevel::Close));
        let (all, abort) = ((24, StopLevel::CloseAll), (25, StopLevel::Abort));
        assert_eq!(plan(&stages), [cancel, close, all, abort]);
    }

    #[test]
    fn a_drain_is_taken_out_of_the_first_polite_stage() {
        for (drain, total, closes) in [(5, 25, 15), (20, 25, 0), (30, 35, 0)] {
            let stages = StopStages::default().drain(secs(drain));
            assert_eq!(stages.total(), secs(total));
            assert_eq!(plan(&stages)[1], (closes, StopLevel::Close));
        }
    }

    #[test]
    fn seed4_47_stages_are_a_list() {
        assert_eq!(StopStages::elfo().total(), secs(45));
        assert_eq!(plan(&StopStages::elfo())[1], (30, StopLevel::Close));

        let both = [Stage::Closing(secs(2)), Stage::Polite(secs(3))];
        let (close, all) = ((0, StopLevel::Close), (1, StopLevel::CloseAll));
        let (polite, abort) = ((2, StopLevel::Cancel), (5, StopLevel::Abort));
        assert_eq!(plan(&StopStages::new(both)), [close, all, polite, abort]);

        assert_eq!(plan(&StopStages::new([])), [(0, StopLevel::Abort)]);
        let short = StopStages::new([Stage::Closing(Duration::from_millis(300))]);
        let steps: Vec<_> = short.plan().into_iter().map(|step| step.after.as_millis()).collect();
        assert_eq!(steps, [0, 0, 300]);
        let endless = StopStages::new([Stage::Polite(Duration::MAX), Stage::Closing(secs(5))]);
        assert_eq!(endless.total(), Duration::MAX);
    }
}
