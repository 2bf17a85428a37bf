//! When runs are due, by a rate or by a calendar, and where a child is in that plan.
//!
//! Pure: the time is an argument.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::calendar::{Calendar, CalendarState};
use super::options::Overrun;
use super::rate::{Rate, RateState};
use super::step::{Now, Step};

#[derive(Debug)]
pub(super) enum Plan {
    Rate(Rate),
    Calendar(Arc<Calendar>),
}

/// Where a child is in its plan.
#[derive(Debug, Default)]
pub(super) enum PlanState {
    #[default]
    New,
    Rate(RateState),
    Calendar(CalendarState),
}

impl PlanState {
    fn rate(&mut self) -> &mut RateState {
        if !matches!(self, Self::Rate(_)) {
            *self = Self::Rate(RateState::default());
        }
        match self {
            Self::Rate(state) => state,
            _ => unreachable!("it was just set"),
        }
    }

    fn calendar(&mut self) -> &mut CalendarState {
        if !matches!(self, Self::Calendar(_)) {
            *self = Self::Calendar(CalendarState::default());
        }
        match self {
            Self::Calendar(state) => state,
            _ => unreachable!("it was just set"),
        }
    }

    /// The planned time of the next run, if that is known.
    pub(super) fn next(&self, now: Now) -> Option<SystemTime> {
        match self {
            Self::New => None,
            Self::Rate(state) => state.next().map(|at| now.wall_clock_at(at)),
            Self::Calendar(state) => state.next(),
        }
    }
}

impl Plan {
    pub(super) fn overrun(&self) -> Overrun {
        match self {
            Self::Rate(rate) => rate.overrun,
            Self::Calendar(calendar) => calendar.overrun,
        }
    }

    /// An incarnation begins. Returns how many runs were missed since the one before.
    pub(super) fn start(&self, state: &mut PlanState, now: Now) -> u64 {
        match self {
            Self::Rate(rate) => rate.start(state.rate(), now.instant, &mut draw),
            Self::Calendar(calendar) => calendar.start(state.calendar(), now, &mut draw),
        }
    }

    /// Returns what to do now while this many runs are running, and how many runs were missed before.
    pub(super) fn step(
        &self,
        state: &mut PlanState,
        running: usize,
        now: Now,
    ) -> (Step<SystemTime>, u64) {
        match self {
            Self::Rate(rate) => {
                let step = match rate.step(state.rate(), running, now.instant, &mut draw) {
                    Step::Run(tick) => Step::Run(now.wall_clock_at(tick)),
                    Step::Skip(count) => Step::Skip(count),
                    Step::WaitUntil(at) => Step::WaitUntil(at),
                    Step::WaitForEnd => Step::WaitForEnd,
                };
                (step, 0)
            }
            Self::Calendar(calendar) => calendar.step(state.calendar(), running, now, &mut draw),
        }
    }

    /// A run has ended, and none is running. Returns how many runs it has skipped.
    pub(super) fn end(&self, state: &mut PlanState, now: Now) -> u64 {
        match self {
            Self::Rate(rate) => rate.end(state.rate(), now.instant, &mut draw),
            Self::Calendar(calendar) => calendar.end(state.calendar(), now, &mut draw),
        }
    }
}

fn draw(most: Duration) -> Duration {
    if most.is_zero() { Duration::ZERO } else { most.mul_f64(fastrand::f64()) }
}
