//! The future of one incarnation of a periodic child.
//!
//! A run is polled by the child's own task, so a tick allocates nothing, and the run is cancelled, aborted and reported
//! as leaked as the child is. Only runs that may be concurrent are helper tasks, and only a run with a limit has a
//! token, which is allocated.
//!
//! # Invariants
//!
//! 1. No run begins once the child is cancelled. One that is running continues within the grace of the child.
//! 2. Two runs that follow each other without a wait are not polled in the same poll of the child.
//! 3. One timer is enough: for the next tick, and for the limit of the run that is running. During a run it is set at most
//!    [`LOOK`] ahead: if it is noticed much later, the program stood still.
//! 4. A run that is over its limit has failed as timed out, even if it returns within its grace or is replaced then.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, Instant, SystemTime};

use pin_project_lite::pin_project;
use tokio::time::Sleep;

use super::options::RunOptions;
use super::plan::{RunPlan, RunStep, StepTime};
use super::record::{BegunRun, JobPlan, JobRecord};
use super::run::{
    EndedRun, LimitStep, RunContext, RunLimit, call, count_failed, log_skipped, poll_run,
};
use crate::child::{Cancelled, Context};
use crate::clock;
use crate::exit::{Exit, Outcome};
use crate::status::RunOutcome;

/// What a periodic child runs, and when.
pub(super) struct Job<F> {
    pub(super) plan: RunPlan,
    /// The plan as the status shows it.
    pub(super) text: Arc<str>,
    pub(super) runs: RunOptions,
    pub(super) function: F,
}

impl<F> Job<F> {
    fn now(&self) -> StepTime {
        StepTime { instant: clock::now(), wall_clock: self.runs.clock.read() }
    }
}

/// The function of a periodic child.
pub(super) trait RunFunction: Send + Sync + 'static {
    type Run: Future<Output: Outcome + 'static> + Send + 'static;

    fn run(&self, ctx: RunContext) -> Self::Run;
}

impl<F, R, O> RunFunction for F
where
    F: Fn(RunContext) -> R + Send + Sync + 'static,
    R: Future<Output = O> + Send + 'static,
    O: Outcome + 'static,
{
    type Run = R;

    fn run(&self, ctx: RunContext) -> R {
        self(ctx)
    }
}

pin_project! {
    /// See the [module](self).
    pub(super) struct Life<F: RunFunction> {
        job: Arc<Job<F>>,
        ctx: Context,
        record: Arc<JobRecord>,
        cancelled: Cancelled,
        #[pin]
        timer: Sleep,
        // The instant that the timer is set to.
        timer_at: Option<Instant>,
        #[pin]
        run: Option<F::Run>,
        begun: Option<BegunRun>,
        // That of the run that is running.
        limit: Option<Box<RunLimit>>,
        // That of the child. `None` if it is infinite.
        grace: Option<Duration>,
        // Whether the program stood still since runs were skipped last.
        stood_still: bool,
    }
}

pin_project! {
    /// The future of one incarnation. It begins in its first poll, because it reads the clock of the user.
    ///
    /// An async block would keep its arguments beside the life.
    #[project = LazyLifeState]
    pub(super) enum LazyLife<F: RunFunction> {
        New { job: Arc<Job<F>>, ctx: Option<Context>, grace: Option<Duration> },
        Begun { #[pin] life: Life<F> },
    }
}

impl<F: RunFunction> Future for LazyLife<F> {
    type Output = Exit;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Exit> {
        loop {
            let life = match self.as_mut().project() {
                LazyLifeState::New { job, ctx, grace } => {
                    let ctx = ctx.take().expect("a life begins once");
                    Life::new(Arc::clone(job), ctx, *grace)
                }
                LazyLifeState::Begun { life } => return life.poll(cx),
            };
            self.set(Self::Begun { life });
        }
    }
}

impl<F: RunFunction> Life<F> {
    fn new(job: Arc<Job<F>>, ctx: Context, grace: Option<Duration>) -> Self {
        let record = ctx.property::<JobRecord>().unwrap_or_default();
        let now = job.now();
        let unhealthy_after = job.runs.unhealthy_after;
        let start = JobPlan { plan: &job.plan, text: &job.text, unhealthy_after };
        let missed = record.start(&start, now);
        count_failed(&ctx, 0);
        if missed > 0 {
            log_skipped(&ctx, missed, record.skipped(), "the child was down");
        }
        let timer = tokio::time::sleep_until(now.instant.into());
        let cancelled = ctx.cancelled();
        let timer_at = Some(now.instant);
        let (run, begun, limit) = (None, None, None);
        let stood_still = false;
        Self { job, ctx, record, cancelled, timer, timer_at, run, begun, limit, grace, stood_still }
    }

    /// Polls the run. Returns how it has ended, once it has.
    fn poll_run(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<EndedRun> {
        let mut this = self.project();
        let Some(run) = this.run.as_mut().as_pin_mut() else { return Poll::Pending };
        poll_run(this.ctx, || run.poll(cx)).map(|ended| ended.then_drop(|| this.run.set(None)))
    }

    /// Drops the run that is running.
    fn drop_run(self: Pin<&mut Self>) -> EndedRun {
        let mut this = self.project();
        EndedRun::new(Ok(())).then_drop(|| this.run.set(None))
    }

    /// Ends the run. Returns the failure of the child, if it fails with it.
    fn end_run(self: Pin<&mut Self>, ended: EndedRun) -> Exit {
        let this = self.project();
        let now = this.job.now();
        let is_over = this.limit.take().is_some_and(|limit| limit.is_over());
        let ended = this.job.runs.over_limit(is_over, ended);
        let exit = match this.begun.take() {
            Some(begun) => this.job.runs.end(this.ctx, begun, ended, now.instant),
            None => Ok(()),
        };
        let skipped = this.record.after_run(&this.job.plan, now);
        if skipped > 0 {
            let cause = if *this.stood_still { STANDSTILL } else { OVERRUN };
            log_skipped(this.ctx, skipped, this.record.skipped(), cause);
        }
        *this.stood_still = false;
        exit
    }

    /// Begins a run, in place of the one that is running if runs aren't concurrent.
    fn begin(mut self: Pin<&mut Self>, planned: SystemTime, now: StepTime) -> Exit {
        if self.run.is_some() {
            let ended = self.as_mut().drop_run();
            let this = self.as_mut().project();
            let is_over = this.limit.as_ref().is_some_and(|limit| limit.is_over());
            if let Some(begun) = this.begun.take_if(|_| ended.is_ok() && !is_over) {
                *this.limit = None;
                begun.end(RunOutcome::Replaced, None, now.instant);
            } else {
                self.as_mut().end_run(ended)?;
            }
        }
        let this = self.as_mut().project();
        let (number, begun) = this.record.begin(planned, now);
        let mut run_ctx = RunContext::new(this.ctx.clone(), planned, number, now.wall_clock);
        let limit = this.job.runs.limit(&mut run_ctx, now.instant, *this.grace);
        if this.job.plan.overrun().is_concurrent() {
            let (job, ctx) = (Arc::clone(this.job), this.ctx.clone());
            this.ctx.spawn(run_beside(job, ctx, run_ctx, begun, limit));
            return Ok(());
        }
        (*this.begun, *this.limit) = (Some(begun), limit.map(Box::new));
        match call(|| this.job.function.run(run_ctx)) {
            Ok(run) => {
                let mut slot = self.project().run;
                slot.set(Some(run));
                Ok(())
            }
            Err(ended) => self.end_run(ended),
        }
    }

    /// Returns what to do now.
    fn step(self: Pin<&mut Self>, now: StepTime) -> RunStep<SystemTime> {
        let this = self.project();
        let is_running = this.run.is_some();
        if is_running && (this.job.plan.overrun().waits_for_end() || this.ctx.is_cancelled()) {
            return RunStep::WaitForEnd;
        }
        let (step, missed) = this.record.step(&this.job.plan, now);
        // The ticks of a rate are missed for no other reason.
        let stood_still = *this.stood_still || matches!(this.job.plan, RunPlan::Rate(_));
        let missed_by = if stood_still { STANDSTILL } else { CLOCK };
        if missed > 0 {
            log_skipped(this.ctx, missed, this.record.skipped(), missed_by);
        }
        if let RunStep::Skip(count) = step {
            let cause = if *this.stood_still { STANDSTILL } else { OVERRUN };
            log_skipped(this.ctx, count, this.record.skipped(), cause);
        }
        *this.stood_still = false;
        step
    }

    /// Notes whether the timer has fired long ago.
    fn look(self: Pin<&mut Self>) {
        let this = self.project();
        if let Some(at) = this.timer_at.filter(|_| this.timer.is_elapsed()) {
            *this.stood_still |= clock::now().saturating_duration_since(at) >= LOOK;
        }
    }

    /// Polls the timer, set to this instant.
    fn poll_timer(self: Pin<&mut Self>, at: Instant, cx: &mut TaskContext<'_>) -> Poll<()> {
        let mut this = self.project();
        if this.timer_at.replace(at) != Some(at) {
            this.timer.as_mut().reset(at.into());
        }
        this.timer.poll(cx)
    }
}

/// One of several runs that may be concurrent: a helper of the child.
async fn run_beside<F: RunFunction>(
    job: Arc<Job<F>>,
    ctx: Context,
    run_ctx: RunContext,
    begun: BegunRun,
    mut limit: Option<RunLimit>,
) -> Exit {
    let ended = match call(|| job.function.run(run_ctx)) {
        Ok(run) => {
            let mut run = pin!(Some(run));
            let mut poll = poll_fn(|cx| match run.as_mut().as_pin_mut() {
                Some(run) => poll_run(&ctx, || run.poll(cx)),
                None => Poll::Pending,
            });
            let ended = loop {
                let step = limit.as_mut().map(|limit| limit.step(clock::now()));
                let until = match step {
                    Some(LimitStep::WaitUntil(at)) => at,
                    Some(LimitStep::Poll) => clock::now(),
                    Some(LimitStep::Drop) => break EndedRun::new(Ok(())),
                    Some(LimitStep::WaitForEnd) | None => break (&mut poll).await,
                };
                if let Ok(ended) = tokio::time::timeout_at(until.into(), &mut poll).await {
                    break ended;
                }
            };
            ended.then_drop(|| run.set(None))
        }
        Err(ended) => ended,
    };
    let is_over = limit.is_some_and(|limit| limit.is_over());
    job.runs.end(&ctx, begun, job.runs.over_limit(is_over, ended), clock::now())
}

/// How long the timer is set ahead at most during a run, and how late it is when the program stood still.
const LOOK: Duration = Duration::from_secs(1);

const OVERRUN: &str = "the run before takes too long";
const STANDSTILL: &str = "the program stood still";
const CLOCK: &str = "the wall clock was put forward, or the machine was suspended";

impl<F: RunFunction> Future for Life<F> {
    type Output = Exit;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Exit> {
        let mut has_run = false;
        self.as_mut().look();
        loop {
            if let Poll::Ready(ended) = self.as_mut().poll_run(cx) {
                self.as_mut().end_run(ended)?;
                has_run = true;
            }
            let is_running = self.run.is_some();
            if !is_running && Pin::new(self.as_mut().project().cancelled).poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            let now = self.job.now();
            let limit = self.as_mut().project().limit.as_mut();
            let limit = match limit.map(|limit| limit.step(now.instant)) {
                None | Some(LimitStep::WaitForEnd) => None,
                Some(LimitStep::WaitUntil(at)) => Some(at),
                Some(LimitStep::Poll) => continue,
                Some(LimitStep::Drop) => {
                    let ended = self.as_mut().drop_run();
                    self.as_mut().end_run(ended)?;
                    continue;
                }
            };
            let until = match self.as_mut().step(now) {
                RunStep::Run(planned) => {
                    self.as_mut().begin(planned, now)?;
                    if std::mem::replace(&mut has_run, true) {
                        // Other tasks are first.
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    continue;
                }
                RunStep::Skip(_) => continue,
                RunStep::WaitUntil(at) => Some(limit.map_or(at, |limit| limit.min(at))),
                RunStep::WaitForEnd if self.run.is_some() => {
                    let look = now.instant + LOOK;
                    Some(limit.map_or(look, |limit| limit.min(look)))
                }
                RunStep::WaitForEnd => limit,
            };
            let Some(until) = until else { return Poll::Pending };
            if self.as_mut().poll_timer(until, cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}
