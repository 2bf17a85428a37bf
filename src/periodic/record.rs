//! What is kept of a periodic child over its incarnations: its place in the plan, and what the status shows.
//!
//! # Invariants
//!
//! 1. Each run that has begun ends once, and is counted then, even if it is dropped.
//! 2. The failed runs in a row are those of the current incarnation. A run of an earlier one, which has leaked, changes
//!    nothing in that count.
//! 3. Only a run that succeeds or fails changes that count. One that was replaced or aborted shows neither.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

#[cfg(all(feature = "cron", feature = "lease"))]
use super::calendar::Calendar;
use super::plan::{PlanState, RunPlan, RunStep, StepTime};
use crate::child::ShownProperty;
use crate::lifecycle::Lifecycle;
use crate::status::{ChildInfo, LastRun, RunOutcome, ScheduleInfo};
use crate::sync::Mutex;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct JobRecord(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    place: PlanState,
    plan: Option<Arc<str>>,
    next: Option<SystemTime>,
    begun: u64,
    running: usize,
    runs: u64,
    failed: u64,
    skipped: u64,
    last: Option<LastRun>,
    /// The number of incarnations so far, which tells the runs of the current one from those that have leaked.
    starts: u64,
    /// After how many failed runs in a row the child is unhealthy.
    unhealthy_after: u64,
    streak: u64,
    /// Why the last run of the streak has failed.
    cause: Option<Arc<str>>,
}

impl JobRecord {
    /// An incarnation begins. Returns how many runs were missed since the one before.
    pub(super) fn start(&self, job: &JobPlan<'_>, now: StepTime) -> u64 {
        let state = &mut *self.0.lock();
        let JobPlan { plan, text, unhealthy_after } = *job;
        state.plan = Some(Arc::clone(text));
        state.starts += 1;
        (state.unhealthy_after, state.streak, state.cause) = (unhealthy_after.into(), 0, None);
        let missed = plan.start(&mut state.place, now);
        state.skip(missed);
        state.look_ahead(now);
        missed
    }

    /// The plan continues after this time, up to which another process may have carried it out.
    #[cfg(all(feature = "cron", feature = "lease"))]
    pub(super) fn continue_after(&self, calendar: &Calendar, settled: SystemTime) {
        self.0.lock().place = PlanState::after(calendar, settled);
    }

    /// Returns what to do now, and how many runs were missed before.
    pub(super) fn step(&self, plan: &RunPlan, now: StepTime) -> (RunStep<SystemTime>, u64) {
        let state = &mut *self.0.lock();
        let (step, missed) = plan.step(&mut state.place, state.running, now);
        state.skip(missed);
        if let RunStep::Skip(count) = step {
            state.skip(count);
        }
        if missed > 0 || matches!(step, RunStep::Skip(_) | RunStep::Run(_)) {
            state.look_ahead(now);
        }
        (step, missed)
    }

    /// A run begins. Returns its number, and the guard with which it ends.
    pub(super) fn begin(self: &Arc<Self>, planned: SystemTime, now: StepTime) -> (u64, BegunRun) {
        let mut state = self.0.lock();
        (state.begun, state.running) = (state.begun + 1, state.running + 1);
        let (number, start) = (state.begun, state.starts);
        drop(state);
        let record = Arc::clone(self);
        (number, BegunRun { record, start, planned, began: now, has_ended: false })
    }

    /// The run is over that was the only one. Returns how many runs it has skipped.
    pub(super) fn after_run(&self, plan: &RunPlan, now: StepTime) -> u64 {
        let state = &mut *self.0.lock();
        let skipped = plan.end(&mut state.place, now);
        state.skip(skipped);
        state.look_ahead(now);
        skipped
    }

    /// How many runs were skipped in all.
    pub(super) fn skipped(&self) -> u64 {
        self.0.lock().skipped
    }
}

impl ShownProperty for JobRecord {
    fn show(&self, info: &mut ChildInfo) {
        let state = self.0.lock();
        info.schedule = state.info().map(Box::new);
        // As with a health check, only an active child is healthy or not.
        if info.lifecycle == Lifecycle::Active
            && let Some(problem) = state.problem()
        {
            info.healthy = Some(false);
            info.problem.get_or_insert(problem);
        }
    }
}

impl State {
    fn skip(&mut self, count: u64) {
        self.skipped = self.skipped.saturating_add(count);
    }

    fn look_ahead(&mut self, now: StepTime) {
        self.next = self.place.next(now);
    }

    /// Returns what the status shows, once the child was started.
    fn info(&self) -> Option<ScheduleInfo> {
        Some(ScheduleInfo {
            plan: Arc::clone(self.plan.as_ref()?),
            next: self.next,
            running: self.running,
            runs: self.runs,
            failed: self.failed,
            failed_in_a_row: self.streak,
            skipped: self.skipped,
            last: self.last.clone(),
        })
    }

    fn is_unhealthy(&self) -> bool {
        self.streak > 0 && self.streak >= self.unhealthy_after
    }

    fn problem(&self) -> Option<Arc<str>> {
        let cause = self.cause.as_ref().filter(|_| self.is_unhealthy())?;
        let cause = cause.strip_prefix("failed: ").unwrap_or(cause);
        Some(match self.streak {
            1 => format!("the last run has failed: {cause}").into(),
            streak => format!("{streak} runs in a row have failed: {cause}").into(),
        })
    }
}

/// What an incarnation of a periodic child starts with.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobPlan<'a> {
    pub(super) plan: &'a RunPlan,
    /// The plan as the status shows it.
    pub(super) text: &'a Arc<str>,
    pub(super) unhealthy_after: u32,
}

/// What the end of a run has changed.
pub(super) struct RunEnd {
    /// How many runs of the incarnation in a row have failed, this one included.
    pub(super) streak: u64,
    pub(super) health: HealthChange,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum HealthChange {
    None,
    Healthy,
    Unhealthy(Arc<str>),
}

/// A run that has begun, and ends when this is dropped.
pub(super) struct BegunRun {
    record: Arc<JobRecord>,
    /// The incarnation that it belongs to.
    start: u64,
    planned: SystemTime,
    began: StepTime,
    has_ended: bool,
}

impl BegunRun {
    pub(super) fn end(
        mut self,
        outcome: RunOutcome,
        problem: Option<Arc<str>>,
        now: Instant,
    ) -> RunEnd {
        self.record_end(outcome, problem, now)
    }

    fn record_end(
        &mut self,
        outcome: RunOutcome,
        problem: Option<Arc<str>>,
        now: Instant,
    ) -> RunEnd {
        self.has_ended = true;
        let took = now.saturating_duration_since(self.began.instant);
        let (planned, began) = (self.planned, self.began.wall_clock);
        let state = &mut *self.record.0.lock();
        (state.running, state.runs) = (state.running - 1, state.runs + 1);
        state.failed += u64::from(outcome == RunOutcome::Failed);
        let was_unhealthy = state.is_unhealthy();
        match outcome {
            _ if self.start != state.starts => {}
            RunOutcome::Done => (state.streak, state.cause) = (0, None),
            RunOutcome::Failed => {
                (state.streak, state.cause) = (state.streak + 1, problem.clone());
            }
            RunOutcome::Replaced | RunOutcome::Aborted => {}
        }
        state.last = Some(LastRun { planned, began, took, outcome, problem });
        let health = match state.problem() {
            Some(problem) if !was_unhealthy => HealthChange::Unhealthy(problem),
            None if was_unhealthy => HealthChange::Healthy,
            _ => HealthChange::None,
        };
        RunEnd { streak: state.streak, health }
    }
}

impl Drop for BegunRun {
    fn drop(&mut self) {
        if !self.has_ended {
            self.record_end(RunOutcome::Aborted, None, crate::clock::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::periodic::Overrun;
    use crate::periodic::plan::Rate;

    #[test]
    fn a_run_of_an_earlier_incarnation_changes_nothing_in_the_count_of_failed_runs() {
        let now = StepTime { instant: crate::clock::now(), wall_clock: SystemTime::UNIX_EPOCH };
        let plan = RunPlan::Rate(Rate {
            period: Duration::from_secs(1),
            first_after: Duration::ZERO,
            is_delay: false,
            jitter: Duration::ZERO,
            overrun: Overrun::Skip,
            missed: None,
        });
        let record = Arc::new(JobRecord::default());
        let start =
            || record.start(&JobPlan { plan: &plan, text: &"".into(), unhealthy_after: 1 }, now);
        let begin = || record.begin(now.wall_clock, now).1;
        let fail = |run: BegunRun| run.end(RunOutcome::Failed, Some("no".into()), now.instant);
        start();
        let [failing, succeeding, own] = [begin(), begin(), begin()];
        assert_eq!(fail(own).streak, 1);
        start();
        let end = fail(failing);
        assert_eq!((end.streak, end.health), (0, HealthChange::None));
        let end = fail(begin());
        let problem = HealthChange::Unhealthy("the last run has failed: no".into());
        assert_eq!((end.streak, end.health), (1, problem));
        let end = succeeding.end(RunOutcome::Done, None, now.instant);
        assert_eq!((end.streak, end.health), (1, HealthChange::None));
        assert_eq!(record.0.lock().failed, 3);
    }
}
