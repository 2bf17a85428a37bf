//! When the next run is due whose times are points of the wall clock, such as those of a cron expression.
//!
//! A *tick* is such a time. Ticks are points in time, so a time zone that is changed by an hour neither repeats nor
//! loses one. [`Ticks`] decides which ticks a local time stands for that occurs twice or never.
//!
//! # Invariants
//!
//! 1. Each tick is the planned time of at most one run, unless the wall clock goes back: by more than [`CORRECTION`], or
//!    by more than [`ON_TIME`] if the calendar [follows it](Calendar::follows_clock).
//! 2. The wall clock is read at least once in each [`LOOK`].

use std::fmt;
use std::time::{Duration, SystemTime};

use super::options::{ON_TIME, Overrun};
use super::plan::{Draw, RunStep, StepTime};
use crate::clock::later;

/// How long a child sleeps at most before it reads the wall clock again.
pub(super) const LOOK: Duration = ON_TIME;

/// A wall clock that goes back by more than this was wrong, so that the plan begins anew, as in Vixie cron.
const CORRECTION: Duration = Duration::from_secs(3 * 3600);

/// How many missed ticks are counted one by one.
const COUNTED: u64 = 1_000;

/// The ticks of a calendar.
pub(super) trait Ticks: fmt::Debug + Send + Sync {
    /// Returns the first tick after this time.
    fn after(&self, at: SystemTime) -> Option<SystemTime>;

    /// Returns the last tick before this time, or at it if that is `included`.
    fn before(&self, at: SystemTime, included: bool) -> Option<SystemTime>;
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Calendar {
    pub(super) ticks: Box<dyn Ticks>,
    /// How late a missed run may begin. `None`: it is skipped.
    pub(super) missed_within: Option<Duration>,
    pub(super) jitter: Duration,
    pub(super) overrun: Overrun,
    /// Whether ticks come again when the wall clock goes back: they are so frequent that their times mean nothing.
    pub(super) follows_clock: bool,
}

/// Where the child is in its plan.
#[derive(Debug, Default)]
pub(super) struct CalendarState {
    /// Whether there was an incarnation.
    started: bool,
    /// The next tick, with the jitter that was drawn for it.
    next: Option<(SystemTime, Duration)>,
    /// A tick whose run begins as soon as none is running.
    queued: Option<SystemTime>,
    /// The latest time that the wall clock had.
    seen: Option<SystemTime>,
}

impl CalendarState {
    /// The next tick.
    pub(super) fn next(&self) -> Option<SystemTime> {
        self.queued.or(self.next.map(|(tick, _)| tick))
    }
}

/// Ticks that have passed: how many, and the last one.
struct Passed {
    count: u64,
    last: SystemTime,
}

impl Calendar {
    /// Returns the place after this time, up to which the plan is settled.
    #[cfg(all(feature = "cron", feature = "lease"))]
    pub(super) fn after(&self, settled: SystemTime, draw: Draw<'_>) -> CalendarState {
        let seen = Some(settled);
        let mut state = CalendarState { started: true, seen, ..CalendarState::default() };
        self.plan_after(&mut state, settled, draw);
        state
    }

    /// An incarnation begins. Returns how many ticks were missed since the one before.
    pub(super) fn start(&self, state: &mut CalendarState, now: StepTime, draw: Draw<'_>) -> u64 {
        let wall_clock = self.look(state, now, draw);
        let queued = u64::from(state.queued.take().is_some());
        if !std::mem::replace(&mut state.started, true) {
            self.plan_after(state, wall_clock, draw);
            return 0;
        }
        queued + self.pass_or_queue(state, wall_clock, self.missed_within, draw)
    }

    /// Returns what to do now while this many runs are running, and how many ticks were missed before.
    pub(super) fn step(
        &self,
        state: &mut CalendarState,
        running: usize,
        now: StepTime,
        draw: Draw<'_>,
    ) -> (RunStep<SystemTime>, u64) {
        let wall_clock = self.look(state, now, draw);
        if running > 0 && self.overrun.waits_for_end() {
            return (RunStep::WaitForEnd, 0);
        }
        if let Some(tick) = state.queued.take() {
            return (RunStep::Run(tick), 0);
        }
        let mut missed = 0;
        while let Some((tick, jitter)) = state.next {
            let ahead = span(wall_clock, tick).saturating_add(jitter);
            let late = span(tick, wall_clock);
            if late < jitter || tick > wall_clock {
                let wait = ahead.saturating_sub(late).min(LOOK);
                return (RunStep::WaitUntil(later(now.instant, wait)), missed);
            }
            // The tick at this very instant is due as well.
            let Some(Passed { count, last }) = self.pass(state, wall_clock, true, draw) else {
                break;
            };
            let most = self.missed_within.unwrap_or_default().max(ON_TIME).saturating_add(jitter);
            if span(last, wall_clock) > most {
                missed += count;
            } else if self.overrun.refuses(running) {
                return (RunStep::Skip(count), missed);
            } else {
                return (RunStep::Run(last), missed + count - 1);
            }
        }
        (RunStep::WaitForEnd, missed)
    }

    /// A run has ended, and none is running. Returns how many ticks it has skipped.
    pub(super) fn end(&self, state: &mut CalendarState, now: StepTime, draw: Draw<'_>) -> u64 {
        let wall_clock = self.look(state, now, draw);
        match self.overrun {
            Overrun::Skip => self.pass_or_queue(state, wall_clock, self.missed_within, draw),
            Overrun::Queue => self.pass_or_queue(state, wall_clock, Some(Duration::MAX), draw),
            _ => 0,
        }
    }

    /// Notes the time of the wall clock, and plans anew if it was wrong before.
    fn look(&self, state: &mut CalendarState, now: StepTime, draw: Draw<'_>) -> SystemTime {
        let wall_clock = now.wall_clock;
        let back = state.seen.map_or(Duration::ZERO, |seen| span(wall_clock, seen));
        if back > CORRECTION {
            state.queued = None;
        }
        if back > CORRECTION || self.follows_clock && back > ON_TIME {
            state.seen = None;
            self.plan_after(state, wall_clock, draw);
        }
        state.seen = state.seen.max(Some(wall_clock));
        wall_clock
    }

    fn plan_after(&self, state: &mut CalendarState, at: SystemTime, draw: Draw<'_>) {
        state.next = self.ticks.after(at).map(|tick| (tick, draw(self.jitter)));
    }

    /// Passes the ticks before this time, and queues the last one if that may still run. Returns how many are
    /// skipped.
    fn pass_or_queue(
        &self,
        state: &mut CalendarState,
        now: SystemTime,
        within: Option<Duration>,
        draw: Draw<'_>,
    ) -> u64 {
        let Some(Passed { count, last }) = self.pass(state, now, false, draw) else { return 0 };
        if within.is_none_or(|within| span(last, now) > within) {
            return count;
        }
        state.queued = Some(last);
        count - 1
    }

    /// Moves on to the first tick that isn't before this time, or after it if that is `included`. Returns those that
    /// were, if there are any.
    fn pass(
        &self,
        state: &mut CalendarState,
        now: SystemTime,
        included: bool,
        draw: Draw<'_>,
    ) -> Option<Passed> {
        let is_past = |tick: &SystemTime| *tick < now || included && *tick == now;
        let (first, _) = state.next.filter(|(tick, _)| is_past(tick))?;
        let (mut count, mut last) = (1, first);
        let mut next = self.ticks.after(first);
        while let Some(tick) = next.filter(is_past) {
            if count == COUNTED {
                last = self.ticks.before(now, included).map_or(last, |before| before.max(last));
                next = self.ticks.after(last);
                break;
            }
            (count, last) = (count + 1, tick);
            next = self.ticks.after(tick);
        }
        state.next = next.map(|tick| (tick, draw(self.jitter)));
        Some(Passed { count, last })
    }
}

/// The time from `earlier` to `later`, or zero.
fn span(earlier: SystemTime, later: SystemTime) -> Duration {
    later.duration_since(earlier).unwrap_or_default()
}
