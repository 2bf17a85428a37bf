//! Restart intensity: how many restarts a supervisor tolerates within a period.
//!
//! A [`RestartWindow`] is bookkeeping over instants that the caller passes in. It never reads a
//! clock, so a test can place restarts exactly on the edge where the answer changes.
//!
//! The window decides only *whether* a restart is allowed. *When* it happens is up to the backoff,
//! and what follows a refusal is up to the supervisor.
//!
//! # Invariants
//!
//! 1. Instants are kept oldest first, only those that were granted, and never more than `max`.
//! 2. No call looks at more than three of them, except [`count`](RestartWindow::count), which
//!    halves its way. Only a growing or shrinking buffer copies them, ever more rarely.
//! 3. There is never room for more than `max`, and after a burst the room is given back.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A buffer of this many instants isn't worth shrinking.
const SMALL: usize = 8;

/// A sliding window over granted restarts.
///
/// OTP counts in whole seconds and so keeps restarts for up to a second longer than asked; this
/// window is exact.
#[derive(Clone, Debug)]
pub(crate) struct RestartWindow {
    /// `None` is unlimited.
    max: Option<u32>,
    period: Duration,
    granted: VecDeque<Instant>,
}

impl RestartWindow {
    /// A window that grants `max` restarts within any `period`, or any number if `max` is `None`.
    pub(crate) fn new(max: Option<u32>, period: Duration) -> Self {
        Self { max, period, granted: VecDeque::new() }
    }

    /// Decides whether a restart is allowed at `now`, and records it if so.
    ///
    /// `max` restarts are granted and the next one is refused. A restart that is exactly `period`
    /// old still counts, as it does in OTP. A refusal is not recorded. A `max` of 0 never grants,
    /// an unlimited window always grants and records nothing.
    ///
    /// An instant that is earlier than one granted before is taken to be that one.
    #[must_use]
    pub(crate) fn admit(&mut self, now: Instant) -> bool {
        let Some(max) = self.max else { return true };
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        let now = self.granted.back().map_or(now, |&last| now.max(last));

        // At most one instant comes in with each call, so dropping two lets the queue shrink; what
        // is expired but still there does no harm, as only a full queue refuses.
        for _ in 0..2 {
            if self.granted.front().is_some_and(|&at| self.has_expired(at, now)) {
                self.granted.pop_front();
            }
        }
        self.give_back_room();

        if self.granted.len() >= max {
            return false;
        }
        self.make_room(max);
        self.granted.push_back(now);
        true
    }

    /// How many granted restarts count at `now`; always 0 for an unlimited window.
    pub(crate) fn count(&self, now: Instant) -> usize {
        let expired = self.granted.partition_point(|&at| self.has_expired(at, now));
        self.granted.len() - expired
    }

    /// Forgets all restarts.
    pub(crate) fn clear(&mut self) {
        self.granted = VecDeque::new();
    }

    /// The number of restarts granted within a period, `None` if there is no limit.
    pub(crate) fn max(&self) -> Option<u32> {
        self.max
    }

    /// For how long a restart counts.
    pub(crate) fn period(&self) -> Duration {
        self.period
    }

    /// When those were granted that count at `now`.
    #[cfg(test)]
    pub(crate) fn granted(&self, now: Instant) -> impl Iterator<Item = Instant> {
        self.granted.iter().copied().filter(move |&at| !self.has_expired(at, now))
    }

    fn has_expired(&self, at: Instant, now: Instant) -> bool {
        now.saturating_duration_since(at) > self.period
    }

    /// Grows a full buffer to twice its size, but not beyond `max`.
    fn make_room(&mut self, max: usize) {
        let len = self.granted.len();
        if len == self.granted.capacity() {
            self.granted.reserve_exact(len.max(SMALL / 2).min(max - len));
        }
    }

    /// Halves a buffer that is at most a quarter full.
    fn give_back_room(&mut self) {
        let room = self.granted.capacity();
        if room > SMALL && self.granted.len() <= room / 4 {
            self.granted.shrink_to(room / 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const PERIOD: Duration = Duration::from_secs(5);
    const TICK: Duration = Duration::from_nanos(1);

    fn window(max: u32) -> (RestartWindow, Instant) {
        (RestartWindow::new(Some(max), PERIOD), Instant::now())
    }

    #[test]
    fn max_restarts_are_granted_and_the_next_is_refused() {
        for max in [1, 2, 3, 100] {
            let (mut window, t0) = window(max);

            let granted = (0..2 * max).map(|_| window.admit(t0)).take_while(|&admitted| admitted);
            assert_eq!(granted.count(), max as usize);
            assert_eq!(window.count(t0), max as usize);
        }
    }

    #[test]
    fn a_restart_exactly_one_period_old_still_counts() {
        let (mut window, t0) = window(1);
        assert!(window.admit(t0));

        assert_eq!(window.count(t0 + PERIOD), 1, "on the edge: counted");
        assert!(!window.clone().admit(t0 + PERIOD), "on the edge: refused");

        assert_eq!(window.count(t0 + PERIOD + TICK), 0, "one tick later: forgotten");
        assert!(window.admit(t0 + PERIOD + TICK), "one tick later: granted");
    }

    #[test]
    fn only_the_oldest_of_the_last_max_decides() {
        let (mut window, t0) = window(2);
        assert!(window.admit(t0));
        assert!(window.admit(t0 + PERIOD));

        let t1 = t0 + PERIOD + TICK;
        assert!(window.admit(t1), "the first is forgotten, the second counts");
        assert!(!window.admit(t1), "the second and the third count");
    }

    #[test]
    fn a_refusal_is_not_recorded() {
        let (mut window, t0) = window(1);
        assert!(window.admit(t0));

        assert!(!window.admit(t0 + PERIOD));
        assert!(window.admit(t0 + PERIOD + TICK), "the refused one doesn't count");
    }

    #[test]
    fn a_max_of_zero_never_grants() {
        let (mut window, t0) = window(0);
        assert!(!window.admit(t0));
        assert!(!window.admit(t0 + 10 * PERIOD));
        assert_eq!(window.count(t0), 0);
    }

    #[test]
    fn an_unlimited_window_always_grants_and_keeps_nothing() {
        let t0 = Instant::now();
        let mut window = RestartWindow::new(None, PERIOD);

        assert!((0..1_000).all(|_| window.admit(t0)));
        assert_eq!(window.count(t0), 0);
        assert_eq!(window.granted.capacity(), 0);
    }

    #[test]
    fn a_cleared_window_begins_again() {
        let (mut window, t0) = window(1);
        assert!(window.admit(t0));

        window.clear();
        assert_eq!(window.count(t0), 0);
        assert!(window.admit(t0));
    }

    #[test]
    fn a_window_tells_its_limits() {
        let (window, _) = window(3);
        assert_eq!((window.max(), window.period()), (Some(3), PERIOD));
        assert_eq!(RestartWindow::new(None, PERIOD).max(), None);
    }

    #[test]
    fn time_that_goes_backwards_stands_still() {
        let (mut window, t0) = window(2);
        assert!(window.admit(t0 + PERIOD));
        assert!(window.admit(t0), "taken to be at `PERIOD`");

        assert!(!window.admit(t0));
        assert_eq!(window.count(t0), 2);
        assert_eq!(window.count(t0 + PERIOD + PERIOD), 2, "both are one period old");
    }

    #[test]
    fn room_is_made_when_needed_and_given_back() {
        let (mut window, t0) = window(100_000);
        assert_eq!(window.granted.capacity(), 0, "none up front");

        assert!((0..100_000).all(|_| window.admit(t0)));
        assert_eq!(window.granted.capacity(), 100_000, "never for more than `max`");

        let t1 = t0 + PERIOD + TICK;
        assert!((0..100_000).all(|n| window.admit(t1 + n * PERIOD)));
        assert!(window.granted.len() <= 2, "{}", window.granted.len());
        assert!(window.granted.capacity() <= SMALL, "{}", window.granted.capacity());
    }

    #[test]
    fn a_huge_max_costs_nothing_until_it_is_used() {
        let (mut window, t0) = window(u32::MAX);
        assert!(window.admit(t0));
        assert!(window.granted.capacity() <= SMALL);
    }

    /// The rule as it is spoken: all granted restarts, counted each time.
    struct Naive {
        max: usize,
        granted: Vec<Instant>,
    }

    impl Naive {
        fn count(&self, now: Instant) -> usize {
            self.granted.iter().filter(|&&at| now - at <= PERIOD).count()
        }

        fn admit(&mut self, now: Instant) -> bool {
            let admitted = self.count(now) < self.max;
            if admitted {
                self.granted.push(now);
            }
            admitted
        }
    }

    proptest! {
        #[test]
        fn a_window_answers_as_the_rule_does(
            max in 0_u32..8,
            // Steps that often land exactly on an edge.
            steps in vec((0_u32..6, -1_i64..=1), 0..200),
        ) {
            let (mut window, mut now) = window(max);
            let mut naive = Naive { max: max as usize, granted: Vec::new() };
            for (fifths, ticks) in steps {
                let step = PERIOD * fifths / 5;
                now += match ticks {
                    -1 => step.saturating_sub(TICK),
                    0 => step,
                    _ => step + TICK,
                };
                prop_assert_eq!(window.count(now), naive.count(now));
                prop_assert_eq!(window.admit(now), naive.admit(now));
                prop_assert_eq!(window.count(now), naive.count(now));
                prop_assert!(window.granted.iter().is_sorted(), "invariant 1");
                prop_assert!(window.granted.capacity() <= max as usize, "invariant 3");
            }
        }
    }
}
