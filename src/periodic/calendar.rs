//! When the next run of [`cron`](super::cron()) is due.
//!
//! A *tick* is a time that the expression matches. Ticks are points in time, so a time zone that is changed by an hour
//! neither repeats nor loses one: `croner` decides which ticks a local time stands for that occurs twice or never.
//!
//! # Invariants
//!
//! 1. Each tick is the planned time of at most one run, unless the wall clock goes back by more than [`CORRECTION`].
//! 2. The wall clock is read at least once in each [`LOOK`].

use std::time::{Duration, SystemTime};

use croner::Cron;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::options::Overrun;
use super::problem::ScheduleProblem;
use super::step::{Draw, Now, Step};
use crate::policy::later;

/// How long a child sleeps at most before it reads the wall clock again.
pub(super) const LOOK: Duration = Duration::from_secs(60);

/// A run that begins later than this has missed its tick. A change of the wall clock may be noticed that late.
const ON_TIME: Duration = LOOK;

/// A wall clock that goes back by more than this was wrong, so that the plan begins anew, as in Vixie cron.
const CORRECTION: Duration = Duration::from_secs(3 * 3600);

/// How many missed ticks are counted one by one.
const COUNTED: u64 = 1_000;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Calendar {
    pub(super) parsed: Result<(Cron, TimeZone), ScheduleProblem>,
    /// How late a missed run may begin. `None`: it is skipped.
    pub(super) missed_within: Option<Duration>,
    pub(super) jitter: Duration,
    pub(super) overrun: Overrun,
}

/// Where the child is in its plan.
#[derive(Debug, Default)]
pub(super) struct CalendarState {
    /// Whether there was an incarnation.
    started: bool,
    /// The next tick, with the jitter that was drawn for it.
    next: Option<(Timestamp, Duration)>,
    /// A tick whose run begins as soon as none is running.
    queued: Option<Timestamp>,
    /// The latest time that the wall clock had.
    seen: Option<Timestamp>,
}

impl CalendarState {
    /// The next tick.
    pub(super) fn next(&self) -> Option<SystemTime> {
        self.queued.or(self.next.map(|(tick, _)| tick)).map(SystemTime::from)
    }
}

/// Ticks that have passed: how many, and the last one.
struct Passed {
    count: u64,
    last: Timestamp,
}

impl Calendar {
    /// Returns the first tick after this time.
    pub(super) fn after(&self, at: Timestamp) -> Option<Timestamp> {
        let (cron, zone) = self.parsed.as_ref().ok()?;
        let next = cron.find_next_occurrence(&at.to_zoned(zone.clone()), false).ok()?;
        Some(next.timestamp())
    }

    /// Returns the last tick before this time.
    fn before(&self, at: Timestamp) -> Option<Timestamp> {
        let (cron, zone) = self.parsed.as_ref().ok()?;
        let is_within_second = at.subsec_nanosecond() != 0;
        let found = cron.find_previous_occurrence(&at.to_zoned(zone.clone()), is_within_second);
        Some(found.ok()?.timestamp())
    }

    /// An incarnation begins. Returns how many ticks were missed since the one before.
    pub(super) fn start(&self, state: &mut CalendarState, now: Now, draw: Draw<'_>) -> u64 {
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
        now: Now,
        draw: Draw<'_>,
    ) -> (Step<SystemTime>, u64) {
        let wall_clock = self.look(state, now, draw);
        if running > 0 && self.overrun.waits_for_end() {
            return (Step::WaitForEnd, 0);
        }
        if let Some(tick) = state.queued.take() {
            return (Step::Run(tick.into()), 0);
        }
        let mut missed = 0;
        while let Some((tick, jitter)) = state.next {
            let ahead = span(wall_clock, tick).saturating_add(jitter);
            let late = span(tick, wall_clock);
            if late < jitter || tick > wall_clock {
                let wait = ahead.saturating_sub(late).min(LOOK);
                return (Step::WaitUntil(later(now.instant, wait)), missed);
            }
            // The tick at this very instant is due as well.
            let until = wall_clock.saturating_add(jiff::SignedDuration::from_nanos(1));
            let until = until.unwrap_or(Timestamp::MAX);
            let Some(Passed { count, last }) = self.pass(state, until, draw) else { break };
            let most = self.missed_within.unwrap_or_default().max(ON_TIME).saturating_add(jitter);
            if span(last, wall_clock) > most {
                missed += count;
            } else if self.overrun.refuses(running) {
                return (Step::Skip(count), missed);
            } else {
                return (Step::Run(last.into()), missed + count - 1);
            }
        }
        (Step::WaitForEnd, missed)
    }

    /// A run has ended, and none is running. Returns how many ticks it has skipped.
    pub(super) fn end(&self, state: &mut CalendarState, now: Now, draw: Draw<'_>) -> u64 {
        let wall_clock = self.look(state, now, draw);
        match self.overrun {
            Overrun::Skip => self.pass_or_queue(state, wall_clock, self.missed_within, draw),
            Overrun::Queue => self.pass_or_queue(state, wall_clock, Some(Duration::MAX), draw),
            _ => 0,
        }
    }

    /// Notes the time of the wall clock, and plans anew if it was wrong before.
    fn look(&self, state: &mut CalendarState, now: Now, draw: Draw<'_>) -> Timestamp {
        let wall_clock = Timestamp::try_from(now.wall_clock).unwrap_or(Timestamp::MAX);
        if state.seen.is_some_and(|seen| span(wall_clock, seen) > CORRECTION) {
            (state.seen, state.queued) = (None, None);
            self.plan_after(state, wall_clock, draw);
        }
        state.seen = state.seen.max(Some(wall_clock));
        wall_clock
    }

    fn plan_after(&self, state: &mut CalendarState, at: Timestamp, draw: Draw<'_>) {
        state.next = self.after(at).map(|tick| (tick, draw(self.jitter)));
    }

    /// Passes the ticks before this time, and queues the last one if that may still run. Returns how many are
    /// skipped.
    fn pass_or_queue(
        &self,
        state: &mut CalendarState,
        now: Timestamp,
        within: Option<Duration>,
        draw: Draw<'_>,
    ) -> u64 {
        let Some(Passed { count, last }) = self.pass(state, now, draw) else { return 0 };
        if within.is_none_or(|within| span(last, now) > within) {
            return count;
        }
        state.queued = Some(last);
        count - 1
    }

    /// Moves on to the first tick that isn't before this time. Returns those that were, if there are any.
    fn pass(&self, state: &mut CalendarState, now: Timestamp, draw: Draw<'_>) -> Option<Passed> {
        let (first, _) = state.next.filter(|(tick, _)| *tick < now)?;
        let (mut count, mut last) = (1, first);
        let mut next = self.after(first);
        while let Some(tick) = next.filter(|tick| *tick < now) {
            if count == COUNTED {
                last = self.before(now).map_or(last, |before| before.max(last));
                next = self.after(last);
                break;
            }
            (count, last) = (count + 1, tick);
            next = self.after(tick);
        }
        state.next = next.map(|tick| (tick, draw(self.jitter)));
        Some(Passed { count, last })
    }
}

/// The time from `earlier` to `later`, or zero.
fn span(earlier: Timestamp, later: Timestamp) -> Duration {
    later.duration_since(earlier).try_into().unwrap_or_default()
}
