//! The time that the polls of a child take.
//!
//! It is measured while a console or metrics show it, which `busy_guard` tells, or as a root sets it with
//! [`busy_time`](crate::SupervisorBuilder::busy_time). The parts of an incarnation run in polls of its task and of
//! its helpers, whose wall time is measured, and in closures on other threads, whose CPU time is.
//!
//! # Invariants
//!
//! 1. While no tree of the process is measured, a poll reads no clock for this and writes nothing: see `task`.
//! 2. A poll that is measured takes no lock. It allocates once for each incarnation.
//! 3. A poll is added when it returns. Until then, one of at most [`AT_A_TIME`] polls of the same incarnation is known to run.
//! 4. The metric has each whole second as soon as a poll completes it, and the rest when the incarnation exits.
//! 5. A supervisor isn't measured: it works for its children.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use super::cpu::thread_time;
use super::incarnation::{Incarnation, SUPERVISOR};
use super::task::Observers;
use crate::clock;
use crate::status::BusyTime;

/// How long a poll takes whose end is noted.
const LONG: Duration = Duration::from_secs(1);

#[cfg(feature = "metrics")]
const SECOND: u64 = 1_000_000_000;

/// How many polls of one incarnation are known to run at the same time: one of its task, and some of helpers on other threads.
const AT_A_TIME: usize = 4;

/// Whether a tree is measured.
#[derive(Debug)]
pub(crate) struct BusySwitch {
    /// How many show the times.
    pub(super) users: AtomicUsize,
    /// While the tree exists, if the builder has switched it on.
    _always: Option<Observers>,
}

impl BusySwitch {
    /// `setting`: the one of the root's builder.
    pub(crate) fn new(setting: Option<bool>) -> Self {
        let always = (setting == Some(true)).then(Observers::of_times);
        Self { users: AtomicUsize::new(always.iter().count()), _always: always }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.users.load(Ordering::Relaxed) > 0
    }
}

/// See the [module](self). Times are in nanoseconds.
pub(super) struct PollTimes {
    /// What instants are measured from.
    base: Instant,
    total: AtomicU64,
    polls: AtomicU64,
    longest: AtomicU64,
    /// When the last [long](LONG) poll has returned. 0: none has.
    long_at: AtomicU64,
    /// When each poll that runs has begun. 0: the place is free.
    running: [AtomicU64; AT_A_TIME],
}

impl PollTimes {
    fn new(base: Instant) -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            base,
            total: zero(),
            polls: zero(),
            longest: zero(),
            long_at: zero(),
            running: std::array::from_fn(|_| zero()),
        }
    }

    /// Returns an instant as a number, which isn't 0.
    fn number(&self, at: Instant) -> u64 {
        nanos(at.saturating_duration_since(self.base)).saturating_add(1)
    }

    fn instant(&self, number: &AtomicU64) -> Option<Instant> {
        let after = number.load(Ordering::Relaxed).checked_sub(1)?;
        self.base.checked_add(Duration::from_nanos(after))
    }

    fn read(&self, now: Instant, wall_clock: impl Fn(Instant) -> SystemTime) -> BusyTime {
        let duration = |nanos: &AtomicU64| Duration::from_nanos(nanos.load(Ordering::Relaxed));
        let began = self.running.iter().filter_map(|began| self.instant(began)).min();
        BusyTime {
            total: duration(&self.total),
            polls: self.polls.load(Ordering::Relaxed),
            longest: duration(&self.longest),
            long_at: self.instant(&self.long_at).map(wall_clock),
            polling: began.map(|began| now.saturating_duration_since(began)),
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A poll whose time is added when this is dropped.
pub(super) struct TimedPoll<'a> {
    incarnation: &'a Incarnation,
    times: &'a PollTimes,
    began: Instant,
    /// Where it is noted that the poll runs. `None` if no place was free.
    running: Option<&'a AtomicU64>,
}

impl<'a> TimedPoll<'a> {
    /// `None` if the child isn't measured.
    pub(super) fn new(incarnation: &'a Incarnation, began: Instant) -> Option<Self> {
        let times = incarnation.times(began)?;
        let number = times.number(began);
        // perf: budgets row "busy". Almost always the first place is free.
        let take = |place: &&AtomicU64| {
            place.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        Some(Self { incarnation, times, began, running: times.running.iter().find(take) })
    }
}

impl Drop for TimedPoll<'_> {
    fn drop(&mut self) {
        let Self { incarnation, times, began, running } = self;
        let now = clock::real();
        let took = now.saturating_duration_since(*began);
        incarnation.add_busy(times, took);
        times.polls.fetch_add(1, Ordering::Relaxed);
        if nanos(took) > times.longest.load(Ordering::Relaxed) {
            times.longest.fetch_max(nanos(took), Ordering::Relaxed);
        }
        if took > LONG {
            times.long_at.fetch_max(times.number(now), Ordering::Relaxed);
        }
        if let Some(running) = running {
            running.store(0, Ordering::Relaxed);
        }
    }
}

/// A closure on a thread that doesn't poll, whose CPU time is added when this is dropped there.
///
/// Such code may block, so its wall time shows nothing. It isn't a poll.
pub(super) struct TimedClosure<'a> {
    incarnation: &'a Incarnation,
    times: &'a PollTimes,
    /// The CPU time that the thread had used before: tokio's pool uses its threads again.
    before: Duration,
}

impl<'a> TimedClosure<'a> {
    /// `None` if the child isn't measured, or the platform doesn't tell.
    pub(super) fn new(incarnation: &'a Incarnation) -> Option<Self> {
        let times = incarnation.times(clock::real())?;
        Some(Self { incarnation, times, before: thread_time()? })
    }
}

impl Drop for TimedClosure<'_> {
    fn drop(&mut self) {
        if let Some(now) = thread_time() {
            self.incarnation.add_busy(self.times, now.saturating_sub(self.before));
        }
    }
}

impl Incarnation {
    fn is_timed(&self) -> bool {
        self.parent.tree.busy.is_on() && !self.has(SUPERVISOR)
    }

    /// Returns the times of the incarnation, which the first call creates. `None` if they aren't measured.
    fn times(&self, now: Instant) -> Option<&PollTimes> {
        let times = || Box::new(PollTimes::new(now));
        self.is_timed().then(|| &**self.poll_times.get_or_init(times))
    }

    fn add_busy(&self, times: &PollTimes, took: Duration) {
        let before = times.total.fetch_add(nanos(took), Ordering::Relaxed);
        #[cfg(feature = "metrics")]
        self.count_seconds(before / SECOND, before.saturating_add(nanos(took)) / SECOND);
        #[cfg(not(feature = "metrics"))]
        let _ = before;
    }

    /// Counts the seconds that a poll has completed.
    #[cfg(feature = "metrics")]
    fn count_seconds(&self, before: u64, after: u64) {
        if after > before {
            let seconds = Duration::from_secs(after - before);
            self.parent.dead_letters.scope.busy(&self.path(), seconds);
        }
    }

    /// Counts what no poll has counted: less than a second. The incarnation has exited.
    #[cfg(feature = "metrics")]
    pub(super) fn count_rest(&self) {
        if let Some(times) = self.poll_times.get() {
            let rest = times.total.load(Ordering::Relaxed) % SECOND;
            self.parent.dead_letters.scope.busy(&self.path(), Duration::from_nanos(rest));
        }
    }

    /// Returns the time that the polls have taken. `None` if that isn't measured.
    pub(crate) fn busy(&self) -> Option<BusyTime> {
        let wall_clock = |at| self.parent.tree.wall_clock(at);
        self.is_timed().then(|| match self.poll_times.get() {
            Some(times) => times.read(clock::real(), wall_clock),
            None => BusyTime::default(),
        })
    }
}

#[cfg(all(test, not(verger_loom)))]
mod tests;
