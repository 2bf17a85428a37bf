//! What is kept of a periodic child over its incarnations: its place in the plan, and what the status shows.
//!
//! # Invariants
//!
//! 1. Each run that has begun ends once, and is counted then: also one that is dropped.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use super::plan::{Plan, PlanState};
use super::step::{Now, Step};
use crate::status::{LastRun, RunOutcome, ScheduleInfo};
use crate::sync::Mutex;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct JobRecord(Mutex<State>);

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
}

impl JobRecord {
    /// An incarnation begins. Returns how many runs were missed since the one before.
    pub(super) fn start(&self, plan: &Plan, text: &Arc<str>, now: Now) -> u64 {
        let state = &mut *self.0.lock();
        state.plan = Some(Arc::clone(text));
        let missed = plan.start(&mut state.place, now);
        state.skip(missed);
        state.look_ahead(now);
        missed
    }

    /// Returns what to do now, and how many runs were missed before.
    pub(super) fn step(&self, plan: &Plan, now: Now) -> (Step<SystemTime>, u64) {
        let state = &mut *self.0.lock();
        let (step, missed) = plan.step(&mut state.place, state.running, now);
        state.skip(missed);
        if let Step::Skip(count) = step {
            state.skip(count);
        }
        if missed > 0 || matches!(step, Step::Skip(_) | Step::Run(_)) {
            state.look_ahead(now);
        }
        (step, missed)
    }

    /// A run begins. Returns its number, and the guard with which it ends.
    pub(super) fn begin(self: &Arc<Self>, planned: SystemTime, now: Now) -> (u64, BegunRun) {
        let mut state = self.0.lock();
        (state.begun, state.running) = (state.begun + 1, state.running + 1);
        let number = state.begun;
        drop(state);
        let record = Arc::clone(self);
        (number, BegunRun { record, planned, began: now, outcome: None })
    }

    /// The run is over that was the only one. Returns how many runs it has skipped.
    pub(super) fn after_run(&self, plan: &Plan, now: Now) -> u64 {
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

    /// Returns what the status shows, once the child was started.
    pub(crate) fn info(&self) -> Option<ScheduleInfo> {
        let state = self.0.lock();
        Some(ScheduleInfo {
            plan: Arc::clone(state.plan.as_ref()?),
            next: state.next,
            running: state.running,
            runs: state.runs,
            failed: state.failed,
            skipped: state.skipped,
            last: state.last.clone(),
        })
    }
}

impl State {
    fn skip(&mut self, count: u64) {
        self.skipped = self.skipped.saturating_add(count);
    }

    fn look_ahead(&mut self, now: Now) {
        self.next = self.place.next(now);
    }
}

/// A run that has begun, and ends when this is dropped.
#[derive(Debug)]
pub(super) struct BegunRun {
    record: Arc<JobRecord>,
    planned: SystemTime,
    began: Now,
    outcome: Option<(RunOutcome, Option<Arc<str>>, Instant)>,
}

impl BegunRun {
    pub(super) fn began(&self) -> Instant {
        self.began.instant
    }

    pub(super) fn end(mut self, outcome: RunOutcome, problem: Option<Arc<str>>, now: Instant) {
        self.outcome = Some((outcome, problem, now));
    }
}

impl Drop for BegunRun {
    fn drop(&mut self) {
        let aborted = || (RunOutcome::Aborted, None, crate::clock::now());
        let (outcome, problem, now) = self.outcome.take().unwrap_or_else(aborted);
        let took = now.saturating_duration_since(self.began.instant);
        let (planned, began) = (self.planned, self.began.wall_clock);
        let state = &mut *self.record.0.lock();
        (state.running, state.runs) = (state.running - 1, state.runs + 1);
        state.failed += u64::from(outcome == RunOutcome::Failed);
        state.last = Some(LastRun { planned, began, took, outcome, problem });
    }
}
