//! The builder of children that run periodically.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::life::{Job, LazyLife, RunFunction};
use super::options::{
    Clock, Missed, Overrun, RunOptions, ScheduleProblem, bad, positive, run_setters,
};
use super::plan::{Rate, RunPlan};
use super::record::JobRecord;
use super::run::RunContext;
use crate::child::spec::IncarnationFactory;
use crate::child::task::ExitFuture;
use crate::child::{ChildMeta, ChildSpec, Context, FactoryKind, Phases, ShownProperty};
use crate::error::{BuildError, BuildWarning};
use crate::exit::Outcome;
use crate::panic::Foreign;
use crate::path::Path;

/// Describes a child that calls a function periodically.
///
/// The first run begins with the child, as the first tick of [`tokio::time::interval`] does, and each later one a whole
/// number of periods after it: the plan doesn't shift with the time that runs take. A run that is due while the one
/// before is still running is skipped. The methods of [`Every`] change that.
///
/// Runs are polled by the child's own task, unless they may be [concurrent](Overrun::Allow).
///
/// # Failed runs
///
/// A run fails if it returns an error, panics, or is over its [limit](Every::limit_run). A failed run doesn't fail the
/// child. The log has one line with its cause and the number of failed runs in a row, and the next run begins at its
/// planned time. After three failed runs in a row ([`unhealthy_after`](Every::unhealthy_after)) the child is unhealthy
/// until a run succeeds.
///
/// [`fail_after`](Every::fail_after) fails the child after some failed runs in a row, and a
/// [fatal](crate::ExitError::fatal) error fails it immediately. Its restart type, backoff and limits then apply. The plan
/// is kept: after a restart the next run begins at the next planned time, and the count of failed runs is zero. A run
/// that returns [`ExitError::ignore`](crate::ExitError::ignore) ends the child, which isn't restarted.
///
/// # Cancellation
///
/// When the child is cancelled, it ends immediately if no run is running. A running one has the child's
/// [`shutdown`](ChildSpec::shutdown) grace, and can learn of the cancellation from its [`RunContext`].
///
/// The period is measured by the monotonic clock of tokio, which doesn't follow changes of the wall clock. On most
/// systems it stands still while the machine is suspended.
///
/// ```
/// use std::time::Duration;
///
/// use verger::periodic::{Overrun, RunContext};
/// use verger::{Exit, RestartType, Supervisor, every};
///
/// async fn sync(run: RunContext) -> Exit {
///     println!("{} is planned for {:?}", run.path(), run.planned());
///     Ok(())
/// }
///
/// let sync = every("sync", Duration::from_secs(10), sync)
///     .first_after(Duration::from_secs(5))
///     .overrun(Overrun::Queue)
///     .spec()
///     .restart(RestartType::Transient);
/// let app = Supervisor::builder("app").child(sync).build()?;
/// # drop(app);
/// # Ok::<_, verger::BuildError>(())
/// ```
#[track_caller]
pub fn every<F, R, O>(name: impl Into<String>, period: Duration, run: F) -> Every<F>
where
    F: Fn(RunContext) -> R + Send + Sync + 'static,
    R: Future<Output = O> + Send + 'static,
    O: Outcome + 'static,
{
    let plan = Rate {
        period,
        first_after: Duration::ZERO,
        is_delay: false,
        jitter: Duration::ZERO,
        overrun: Overrun::default(),
        missed: None,
    };
    let (name, runs, defined_at) = (name.into(), RunOptions::default(), Location::caller());
    Every { name, plan, runs, function: run, defined_at }
}

/// A child that calls a function periodically, made by [`every`].
///
/// Give it to a supervisor, or call [`spec`](Self::spec) to set the options that all children have. A period, a limit or a
/// number of failed runs of zero, a jitter that isn't shorter than the period, and [`Overrun::Allow(0)`](Overrun::Allow)
/// are errors when the tree is built.
///
/// The example of [`every`] sets its options.
#[must_use = "it does nothing until it is given to a supervisor"]
pub struct Every<F> {
    name: String,
    plan: Rate,
    runs: RunOptions,
    function: F,
    defined_at: &'static Location<'static>,
}

impl<F> Every<F> {
    /// Starts each run one period after the end of the one before, instead of at a fixed rate.
    ///
    /// Runs never overlap then, so [`overrun`](Self::overrun) has no effect. When the child was restarted, the next
    /// run is one period after the end of the failed one, or at once if that has passed.
    pub fn fixed_delay(mut self) -> Self {
        self.plan.is_delay = true;
        self
    }

    /// Sets the time from the child's first start to its first run. Default: zero, so that it begins at once.
    ///
    /// It applies once, and not again when the child is restarted.
    pub fn first_after(mut self, delay: Duration) -> Self {
        self.plan.first_after = delay;
        self
    }

    /// Sets what happens to a run that couldn't begin in time. Default: after a standstill of the program, the last run
    /// that was due begins, however late; runs that were due while the child was down are skipped.
    ///
    /// With [`Missed::Skip`], a run that would begin more than a minute after its planned time is skipped in each case.
    /// With [`Missed::OnceWithin`], the last one is made up for, within that time, also after a restart of the child, or
    /// when a run took too long. It has no effect with a [fixed delay](Self::fixed_delay).
    pub fn missed(mut self, missed: Missed) -> Self {
        self.plan.missed = Some(missed);
        self
    }

    run_setters!();
}

impl<F, R, O> Every<F>
where
    F: Fn(RunContext) -> R + Send + Sync + 'static,
    R: Future<Output = O> + Send + 'static,
    O: Outcome + 'static,
{
    /// Returns the spec of the child, for the options that all children have.
    pub fn spec(self) -> ChildSpec {
        let Self { name, mut plan, runs, function, defined_at } = self;
        if plan.is_delay {
            plan.overrun = Overrun::Skip;
        }
        let text = match plan.is_delay {
            true => format!("{:?} after each run", plan.period),
            false => format!("every {:?}", plan.period),
        };
        let check = move |path: &dyn Fn() -> Path, warnings: &mut Vec<BuildWarning>| {
            check(plan, path, warnings)
        };
        let check = Box::new(check);
        let plan = RunPlan::Rate(plan);
        job_spec(name, Job { plan, text: text.into(), runs, function }, check, defined_at)
    }
}

impl<F, R, O> From<Every<F>> for ChildSpec
where
    F: Fn(RunContext) -> R + Send + Sync + 'static,
    R: Future<Output = O> + Send + 'static,
    O: Outcome + 'static,
{
    fn from(every: Every<F>) -> Self {
        every.spec()
    }
}

impl<F> fmt::Debug for Every<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Every")
            .field("name", &self.name)
            .field("plan", &self.plan)
            .field("runs", &self.runs)
            .finish_non_exhaustive()
    }
}

/// tokio's timers have no finer resolution, so runs with a shorter period follow each other without a pause.
const RESOLUTION: Duration = Duration::from_millis(1);

fn check(
    plan: Rate,
    path: &dyn Fn() -> Path,
    warnings: &mut Vec<BuildWarning>,
) -> Result<(), BuildError> {
    let Rate { period, jitter, overrun, .. } = plan;
    positive(period, "period", 10, path)?;
    overrun.check(path)?;
    if jitter >= period {
        return Err(bad(path, ScheduleProblem::LongJitter { jitter, period }));
    }
    if period < RESOLUTION {
        warnings.push(BuildWarning::BusySchedule { path: path(), period });
    }
    Ok(())
}

type Check =
    dyn Fn(&dyn Fn() -> Path, &mut Vec<BuildWarning>) -> Result<(), BuildError> + Send + Sync;

/// Returns the spec of a periodic child.
pub(super) fn job_spec<F: RunFunction>(
    name: String,
    job: Job<F>,
    check: Box<Check>,
    defined_at: &'static Location<'static>,
) -> ChildSpec {
    let factory = JobFactory { job: Arc::new(job), check };
    let mut spec = ChildSpec::new(name, FactoryKind::Function(Foreign::new(Arc::new(factory))));
    Arc::make_mut(&mut spec.factory).defined_at = defined_at;
    spec
}

/// Makes the incarnations of a periodic child.
struct JobFactory<F> {
    job: Arc<Job<F>>,
    check: Box<Check>,
}

impl<F: RunFunction> IncarnationFactory for JobFactory<F> {
    fn life(self: Arc<Self>, ctx: Context, phases: Phases) -> ExitFuture {
        #[cfg(all(feature = "cron", feature = "lease"))]
        if let Some(life) = super::hand_over::life(&self.job, &ctx, phases.grace) {
            return life;
        }
        let (job, ctx, grace) = (Arc::clone(&self.job), Some(ctx), phases.grace);
        Box::pin(LazyLife::New { job, ctx, grace })
    }

    fn meta(&self) -> &dyn ChildMeta {
        self
    }
}

impl<F: RunFunction> ChildMeta for JobFactory<F> {
    fn type_name(&self) -> Option<&'static str> {
        Some(std::any::type_name::<F>())
    }

    fn check(&self, path: &dyn Fn() -> Path) -> Result<(), BuildError> {
        (self.check)(path, &mut Vec::new())?;
        self.job.runs.check(path)
    }

    fn warn(&self, path: &dyn Fn() -> Path, warnings: &mut Vec<BuildWarning>) {
        // A schedule that is refused has no warning.
        let _ = (self.check)(path, warnings);
    }

    #[cfg(feature = "lease")]
    fn keeps_memo(&self) -> bool {
        matches!(&self.job.plan, RunPlan::Calendar(calendar) if calendar.missed_within.is_some())
    }

    fn property(&self) -> Option<Arc<dyn ShownProperty>> {
        Some(Arc::new(JobRecord::default()))
    }
}
