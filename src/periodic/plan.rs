//! When runs are due, by a rate or by a calendar, and where a child is in that plan.
//!
//! Pure: the time is an argument.
//!
//! A *tick* of a rate is an instant at which a run is planned: the first one, and then one in each period.
//!
//! # Invariants
//!
//! 1. At a fixed rate, ticks are whole periods after the first one, whatever runs take.
//! 2. Each tick is the planned time of at most one run. It is counted as skipped if it is that of none.
//! 3. A tick at the very instant at which a run ends doesn't overlap with it.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::calendar::{Calendar, CalendarState};
use super::options::{Missed, ON_TIME, Overrun};
use crate::clock::later;

#[derive(Debug)]
pub(super) enum RunPlan {
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
    /// The place after this time, up to which the plan is settled.
    #[cfg(all(feature = "cron", feature = "lease"))]
    pub(super) fn after(calendar: &Calendar, settled: SystemTime) -> Self {
        Self::Calendar(calendar.after(settled, &mut draw))
    }

    fn rate(&mut self) -> &mut RateState {
        if !matches!(self, Self::Rate(_)) {
            *self = Self::Rate(RateState::default());
        }
        let Self::Rate(state) = self else { unreachable!("it was just set") };
        state
    }

    fn calendar(&mut self) -> &mut CalendarState {
        if !matches!(self, Self::Calendar(_)) {
            *self = Self::Calendar(CalendarState::default());
        }
        let Self::Calendar(state) = self else { unreachable!("it was just set") };
        state
    }

    /// The planned time of the next run, if that is known.
    pub(super) fn next(&self, now: StepTime) -> Option<SystemTime> {
        match self {
            Self::New => None,
            Self::Rate(state) => state.next().map(|at| now.wall_clock_at(at)),
            Self::Calendar(state) => state.next(),
        }
    }
}

impl RunPlan {
    pub(super) fn overrun(&self) -> Overrun {
        match self {
            Self::Rate(rate) => rate.overrun,
            Self::Calendar(calendar) => calendar.overrun,
        }
    }

    /// An incarnation begins. Returns how many runs were missed since the one before.
    pub(super) fn start(&self, state: &mut PlanState, now: StepTime) -> u64 {
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
        now: StepTime,
    ) -> (RunStep<SystemTime>, u64) {
        match self {
            Self::Rate(rate) => {
                let (step, missed) = rate.step(state.rate(), running, now.instant, &mut draw);
                let step = match step {
                    RunStep::Run(tick) => RunStep::Run(now.wall_clock_at(tick)),
                    RunStep::Skip(count) => RunStep::Skip(count),
                    RunStep::WaitUntil(at) => RunStep::WaitUntil(at),
                    RunStep::WaitForEnd => RunStep::WaitForEnd,
                };
                (step, missed)
            }
            Self::Calendar(calendar) => calendar.step(state.calendar(), running, now, &mut draw),
        }
    }

    /// A run has ended, and none is running. Returns how many runs it has skipped.
    pub(super) fn end(&self, state: &mut PlanState, now: StepTime) -> u64 {
        match self {
            Self::Rate(rate) => rate.end(state.rate(), now.instant, &mut draw),
            Self::Calendar(calendar) => calendar.end(state.calendar(), now, &mut draw),
        }
    }
}

fn draw(most: Duration) -> Duration {
    if most.is_zero() { Duration::ZERO } else { most.mul_f64(fastrand::f64()) }
}

/// Draws a random duration of at most the given one.
pub(super) type Draw<'a> = &'a mut dyn FnMut(Duration) -> Duration;

/// One reading of both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepTime {
    pub(super) instant: Instant,
    pub(super) wall_clock: SystemTime,
}

impl StepTime {
    /// The wall clock time of an instant.
    fn wall_clock_at(self, at: Instant) -> SystemTime {
        let shifted = match at.checked_duration_since(self.instant) {
            Some(ahead) => self.wall_clock.checked_add(ahead),
            None => self.wall_clock.checked_sub(self.instant.saturating_duration_since(at)),
        };
        shifted.unwrap_or(self.wall_clock)
    }
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunStep<T> {
    /// Begin the run that was planned for this time, in place of one that is running unless runs may be concurrent.
    Run(T),
    /// This many runs were due, and too many are running.
    Skip(u64),
    WaitUntil(Instant),
    /// Wait for the end of a run, or of the child.
    WaitForEnd,
}

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    pub(super) period: Duration,
    /// From the first start of the child to its first run.
    pub(super) first_after: Duration,
    /// Whether a run is due one period after the end of the run before.
    pub(super) is_delay: bool,
    pub(super) jitter: Duration,
    pub(super) overrun: Overrun,
    /// `None`: a standstill is made up for by one run, and a restart by none.
    pub(super) missed: Option<Missed>,
}

/// Where the child is in its plan.
#[derive(Debug, Default)]
pub(super) struct RateState {
    /// Whether there was an incarnation.
    started: bool,
    /// The next tick, with the jitter that was drawn for it. `None` before the first start, and at a fixed delay
    /// during a run.
    next: Option<(Instant, Duration)>,
    /// A tick whose run begins when the one before has ended.
    queued: Option<Instant>,
}

impl RateState {
    /// The next tick.
    pub(super) fn next(&self) -> Option<Instant> {
        self.queued.or(self.next.map(|(tick, _)| tick))
    }
}

impl Rate {
    /// An incarnation begins. Returns how many ticks were missed since the one before.
    pub(super) fn start(&self, state: &mut RateState, now: Instant, draw: Draw<'_>) -> u64 {
        let queued = u64::from(state.queued.take().is_some());
        let is_first = !std::mem::replace(&mut state.started, true);
        let Some((tick, _)) = state.next else {
            // Not at once, if an incarnation that has leaked has never ended its run.
            let first = later(now, if is_first { self.first_after } else { self.period });
            state.next = Some((first, draw(self.jitter)));
            return queued;
        };
        if self.is_delay {
            return queued;
        }
        queued + self.pass_or_queue(state, tick, now, self.made_up_within(), draw)
    }

    /// Returns what to do now while this many runs are running, and how many ticks were missed before.
    pub(super) fn step(
        &self,
        state: &mut RateState,
        running: usize,
        now: Instant,
        draw: Draw<'_>,
    ) -> (RunStep<Instant>, u64) {
        if running > 0 && self.overrun.waits_for_end() {
            return (RunStep::WaitForEnd, 0);
        }
        if let Some(tick) = state.queued.take() {
            return (RunStep::Run(tick), 0);
        }
        let mut missed = 0;
        while let Some((tick, jitter)) = state.next {
            let due = later(tick, jitter);
            if due > now {
                return (RunStep::WaitUntil(due), missed);
            }
            if self.is_delay {
                state.next = None;
                return (RunStep::Run(tick), 0);
            }
            // After a standstill several ticks are due. The last one stands for all of them.
            let (count, last) = self.pass_due(state, tick, now, draw);
            let most = match self.missed {
                None => Duration::MAX,
                Some(Missed::Skip) => ON_TIME.saturating_add(jitter),
                Some(Missed::OnceWithin(within)) => within.max(ON_TIME).saturating_add(jitter),
            };
            if now.saturating_duration_since(last) > most {
                missed += count;
            } else if self.overrun.refuses(running) {
                return (RunStep::Skip(count), missed);
            } else {
                return (RunStep::Run(last), missed + count - 1);
            }
        }
        (RunStep::WaitForEnd, missed)
    }

    /// Passes the ticks that are due by now, of which this is the first. Returns how many they are, and the last one.
    fn pass_due(
        &self,
        state: &mut RateState,
        tick: Instant,
        now: Instant,
        draw: Draw<'_>,
    ) -> (u64, Instant) {
        // The tick at this very instant is due.
        let count = self.pass(state, tick, later(now, Duration::from_nanos(1)), draw);
        let last = self.before_next(state, tick);
        let jitter = if count > 1 { draw(self.jitter) } else { Duration::ZERO };
        if later(last, jitter) <= now {
            return (count, last);
        }
        // Its run begins later.
        state.next = Some((last, jitter));
        (count - 1, last.checked_sub(self.period).unwrap_or(tick))
    }

    /// How late a run may begin that was missed while the child was down, or because of the run before.
    fn made_up_within(&self) -> Option<Duration> {
        match self.missed {
            Some(Missed::OnceWithin(within)) => Some(within),
            Some(Missed::Skip) | None => None,
        }
    }

    /// The tick before the next one.
    fn before_next(&self, state: &RateState, first: Instant) -> Instant {
        let before = state.next.and_then(|(next, _)| next.checked_sub(self.period));
        before.map_or(first, |before| before.max(first))
    }

    /// A run has ended, and none is running. Returns how many ticks it has skipped.
    pub(super) fn end(&self, state: &mut RateState, now: Instant, draw: Draw<'_>) -> u64 {
        match state.next {
            None => {
                state.next = Some((later(now, self.period), draw(self.jitter)));
                0
            }
            Some((tick, _)) if self.overrun.waits_for_end() => {
                let within = match self.overrun {
                    Overrun::Queue => Some(Duration::MAX),
                    _ => self.made_up_within(),
                };
                self.pass_or_queue(state, tick, now, within, draw)
            }
            Some(_) => 0,
        }
    }

    /// Passes the ticks before `now`, and queues the last one if it may still run. Returns how many are skipped.
    fn pass_or_queue(
        &self,
        state: &mut RateState,
        tick: Instant,
        now: Instant,
        within: Option<Duration>,
        draw: Draw<'_>,
    ) -> u64 {
        let passed = self.pass(state, tick, now, draw);
        let last = self.before_next(state, tick);
        if passed == 0 || within.is_none_or(|within| now.saturating_duration_since(last) > within) {
            return passed;
        }
        state.queued = Some(last);
        passed - 1
    }

    /// Moves on to the first tick that isn't before `now`. Returns how many were.
    fn pass(&self, state: &mut RateState, tick: Instant, now: Instant, draw: Draw<'_>) -> u64 {
        let late = now.saturating_duration_since(tick);
        let passed = late.as_nanos().div_ceil(self.period.as_nanos().max(1));
        if passed > 0 {
            let next = later(tick, nanos(self.period.as_nanos().saturating_mul(passed)));
            state.next = Some((next, draw(self.jitter)));
        }
        u64::try_from(passed).unwrap_or(u64::MAX)
    }
}

fn nanos(nanos: u128) -> Duration {
    const A_SECOND: u128 = 1_000_000_000;
    let secs = u64::try_from(nanos / A_SECOND).unwrap_or(u64::MAX);
    Duration::new(secs, u32::try_from(nanos % A_SECOND).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plan with a clock that the test moves, in seconds.
    struct Sim {
        rate: Rate,
        state: RateState,
        began: Instant,
        draws: Vec<u64>,
    }

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    impl Sim {
        fn new(overrun: Overrun) -> Self {
            let rate = Rate {
                period: secs(10),
                first_after: Duration::ZERO,
                is_delay: false,
                jitter: Duration::ZERO,
                overrun,
                missed: None,
            };
            Self { rate, state: RateState::default(), began: Instant::now(), draws: Vec::new() }
        }

        fn call<T>(
            &mut self,
            at: u64,
            f: impl FnOnce(&Rate, &mut RateState, Instant, Draw<'_>) -> T,
        ) -> T {
            let draws = &mut self.draws;
            let mut draw = |max: Duration| match draws.is_empty() || max.is_zero() {
                true => Duration::ZERO,
                false => secs(draws.remove(0)),
            };
            f(&self.rate, &mut self.state, self.began + secs(at), &mut draw)
        }

        fn start(&mut self, at: u64) -> u64 {
            self.call(at, |rate, state, now, draw| rate.start(state, now, draw))
        }

        fn end(&mut self, at: u64) -> u64 {
            self.call(at, |rate, state, now, draw| rate.end(state, now, draw))
        }

        /// `run 10`, `run 50 for 4`, `wait 20`, `skip 1` or `wait for the end`.
        fn step(&mut self, at: u64, running: usize) -> String {
            let began = self.began;
            let after = |at: Instant| (at - began).as_secs();
            let (step, missed) =
                self.call(at, |rate, state, now, draw| rate.step(state, running, now, draw));
            let step = match step {
                RunStep::Run(tick) => format!("run {}", after(tick)),
                RunStep::WaitUntil(due) => format!("wait {}", after(due)),
                RunStep::Skip(count) => format!("skip {count}"),
                RunStep::WaitForEnd => "wait for the end".to_owned(),
            };
            if missed == 0 { step } else { format!("{step} for {missed}") }
        }
    }

    #[test]
    fn the_plan_is_the_start_and_whole_periods_whatever_runs_take() {
        let mut sim = Sim::new(Overrun::Skip);
        assert_eq!(sim.start(0), 0);
        for planned in [0, 10, 20] {
            assert_eq!(sim.step(planned, 0), format!("run {planned}"));
            assert_eq!(sim.step(planned, 1), "wait for the end");
            assert_eq!(sim.end(planned + 3), 0);
            assert_eq!(sim.step(planned + 3, 0), format!("wait {}", planned + 10));
        }
    }

    #[test]
    fn what_follows_a_run_of_25_seconds_is_what_the_overrun_says() {
        for (overrun, skipped, then) in
            [(Overrun::Skip, 2, ["wait 30", "wait 30"]), (Overrun::Queue, 1, ["run 20", "wait 30"])]
        {
            let mut sim = Sim::new(overrun);
            sim.start(0);
            assert_eq!(sim.step(0, 0), "run 0");
            assert_eq!(sim.end(25), skipped, "{overrun:?}");
            assert_eq!([sim.step(25, 0), sim.step(25, 0)], then, "{overrun:?}");
        }
    }

    #[test]
    fn a_queued_run_that_is_too_long_skips_no_tick_twice() {
        let mut sim = Sim::new(Overrun::Queue);
        sim.start(0);
        sim.step(0, 0);
        assert_eq!(sim.end(25), 1, "10; the run at 20 is queued");
        assert_eq!(sim.step(25, 0), "run 20");
        assert_eq!(sim.end(55), 2, "30 and 40; the run at 50 is queued");
        assert_eq!(sim.step(55, 0), "run 50");
        assert_eq!(sim.end(60), 0);
        assert_eq!(sim.step(60, 0), "run 60", "not an overlap");
    }

    #[test]
    fn a_run_that_is_replaced_or_runs_beside_another_is_due_at_its_tick() {
        let mut sim = Sim::new(Overrun::Replace);
        sim.start(0);
        assert_eq!(sim.step(0, 0), "run 0");
        assert_eq!(sim.step(0, 1), "wait 10");
        assert_eq!(sim.step(10, 1), "run 10");

        let mut sim = Sim::new(Overrun::Allow(2));
        sim.start(0);
        assert_eq!(
            [sim.step(0, 0), sim.step(10, 1), sim.step(20, 2)],
            ["run 0", "run 10", "skip 1"]
        );
        assert_eq!(sim.step(20, 2), "wait 30");
        assert_eq!([sim.step(55, 2), sim.step(55, 2)], ["skip 3", "wait 60"], "30, 40 and 50");
        assert_eq!(sim.step(60, 1), "run 60");
    }

    #[test]
    fn after_a_standstill_one_run_stands_for_all_that_were_due() {
        for overrun in [Overrun::Skip, Overrun::Queue, Overrun::Replace, Overrun::Allow(2)] {
            let mut sim = Sim::new(overrun);
            sim.start(0);
            assert_eq!(sim.step(0, 0), "run 0");
            assert_eq!((sim.end(1), sim.step(1, 0)), (0, "wait 10".into()));
            assert_eq!(sim.step(10_000, 0), "run 10000 for 999", "{overrun:?}");
            assert_eq!((sim.end(10_001), sim.step(10_001, 0)), (0, "wait 10010".into()));
            assert_eq!(sim.step(10_025, 0), "run 10020 for 1", "{overrun:?}");
        }
    }

    #[test]
    fn a_run_that_was_missed_begins_as_late_as_it_may() {
        let hourly = |missed| {
            let mut sim = Sim::new(Overrun::Skip);
            (sim.rate.period, sim.rate.missed) = (secs(3600), missed);
            sim.start(0);
            assert_eq!(sim.step(0, 0), "run 0");
            sim.end(1);
            sim
        };
        assert_eq!(hourly(None).step(5_400, 0), "run 3600");
        assert_eq!(hourly(Some(Missed::Skip)).step(3_660, 0), "run 3600");
        assert_eq!(hourly(Some(Missed::Skip)).step(5_400, 0), "wait 7200 for 1");
        let within = Some(Missed::OnceWithin(secs(600)));
        assert_eq!(hourly(within).step(4_200, 0), "run 3600");
        assert_eq!(hourly(within).step(4_201, 0), "wait 7200 for 1");
        // After a restart, and after a run that took too long.
        for missed in [None, Some(Missed::Skip)] {
            let mut sim = hourly(missed);
            assert_eq!((sim.start(3_700), sim.step(3_700, 0)), (1, "wait 7200".into()));
        }
        let mut sim = hourly(within);
        assert_eq!((sim.start(3_700), sim.step(3_700, 0)), (0, "run 3600".into()));
        assert_eq!((sim.end(7_300), sim.step(7_300, 0)), (0, "run 7200".into()));
    }

    #[test]
    fn after_a_restart_the_next_run_is_at_the_next_tick() {
        let mut sim = Sim::new(Overrun::Skip);
        sim.start(0);
        sim.step(0, 0);
        assert_eq!(sim.end(3), 0);
        assert_eq!((sim.start(4), sim.step(4, 0)), (0, "wait 10".into()));
        assert_eq!((sim.start(41), sim.step(41, 0)), (4, "wait 50".into()), "10, 20, 30 and 40");
        assert_eq!((sim.start(50), sim.step(50, 0)), (0, "run 50".into()));
    }

    #[test]
    fn a_restart_drops_the_queued_run() {
        let mut sim = Sim::new(Overrun::Queue);
        sim.start(0);
        sim.step(0, 0);
        assert_eq!(sim.end(15), 0);
        assert_eq!((sim.start(16), sim.step(16, 0)), (1, "wait 20".into()));
    }

    #[test]
    fn a_fixed_delay_counts_from_the_end_also_over_a_restart() {
        let mut sim = Sim::new(Overrun::Skip);
        sim.rate.is_delay = true;
        sim.start(0);
        assert_eq!(sim.step(0, 0), "run 0");
        assert_eq!(sim.step(3, 1), "wait for the end");
        assert_eq!((sim.end(25), sim.step(25, 0)), (0, "wait 35".into()));
        assert_eq!((sim.start(26), sim.step(26, 0)), (0, "wait 35".into()));
        assert_eq!((sim.start(90), sim.step(90, 0)), (0, "run 35".into()), "at once");
    }

    #[test]
    fn the_first_run_can_wait() {
        let mut sim = Sim::new(Overrun::Skip);
        sim.rate.first_after = secs(4);
        sim.start(1);
        assert_eq!((sim.step(1, 0), sim.step(5, 0)), ("wait 5".into(), "run 5".into()));
        assert_eq!((sim.end(6), sim.step(6, 0)), (0, "wait 15".into()));
    }

    #[test]
    fn jitter_delays_a_run_and_not_the_plan() {
        let mut sim = Sim::new(Overrun::Skip);
        (sim.rate.jitter, sim.draws) = (secs(9), vec![7, 2, 9]);
        sim.start(0);
        assert_eq!([sim.step(0, 0), sim.step(7, 0)], ["wait 7", "run 0"]);
        assert_eq!((sim.end(8), sim.step(8, 0)), (0, "wait 12".into()));
        assert_eq!(sim.step(12, 0), "run 10");
        assert_eq!((sim.end(13), sim.step(13, 0)), (0, "wait 29".into()));
    }

    #[test]
    fn extreme_periods_neither_overflow_nor_run_at_once() {
        let mut sim = Sim::new(Overrun::Skip);
        sim.rate.period = Duration::MAX;
        sim.start(0);
        assert_eq!(sim.step(0, 0), "run 0");
        assert_eq!(sim.end(1_000_000), 0);
        assert!(sim.step(1_000_000, 0).starts_with("wait "));

        let mut sim = Sim::new(Overrun::Skip);
        sim.rate.period = Duration::from_nanos(1);
        sim.start(0);
        sim.step(0, 0);
        assert_eq!(sim.end(5), 4_999_999_999);
    }
}
