//! The failures of one child, what its rules remember of them between two incarnations, and its restart limits as far as they are
//! used up.
//!
//! A [`LimitTracker`] counts for the child's own [`Limits`], beside the intensity of its supervisor,
//! which counts all children together. It knows neither when a child is healthy again, which is for
//! the backoff's reset rule, nor what follows when a limit is exceeded.
//!
//! # Invariants
//!
//! 1. The tracker keeps nothing for a limit that was not set at the last granted restart. (An
//!    incarnation may set its own limits, so they can differ from one exit to the next.)
//! 2. A refused restart changes nothing.
//! 3. Only the built-in limit forgets the restarts of a child that reports that it works. A written one forgets them
//!    with time alone, as documented.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{FailureSummary, PastExit};
use crate::policy::{Backoff, CurvePosition, Intensity, Limits, RestartPolicy, RestartWindow};

/// What the rules remember of a child that has failed.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct FailureHistory {
    /// Failures since the child was last healthy.
    pub(crate) consecutive_failures: u32,
    /// When the first of them occurred. For the log alone: no rule reads it.
    pub(crate) first_failure: Option<Instant>,
    /// Where the child is on its backoff's curve.
    place: CurvePosition,
    /// Since its last failure, the child was healthy by the rule of its backoff.
    was_healthy: bool,
    /// How the last incarnation ended.
    pub(crate) last: Option<PastExit>,
    /// When the next attempt is due, and the delay that was drawn for it.
    pub(crate) next: Option<(Instant, Duration)>,
    /// The restart policy that the current or last incarnation has set for itself.
    pub(crate) policy: Option<Arc<RestartPolicy>>,
    /// The child's own restart limits, as far as they are used up.
    pub(crate) tracker: LimitTracker,
}

impl FailureHistory {
    /// Counts a failure and draws the delay before the next attempt, from its position on the curve. `None`: the
    /// backoff has no more delays.
    pub(crate) fn fail(
        &mut self,
        backoff: &Backoff,
        draw: impl FnOnce(CurvePosition) -> Option<Duration>,
    ) -> Option<Duration> {
        let first = self.consecutive_failures == 0;
        self.consecutive_failures = self.consecutive_failures.saturating_add(1);
        if first && backoff.is_at_once(std::mem::take(&mut self.was_healthy)) {
            return Some(Duration::ZERO);
        }
        let wait = draw(self.place);
        match wait {
            Some(wait) => self.place.advance(wait),
            // A retry by a caller begins the curve again.
            None => self.place.reset(),
        }
        wait
    }

    /// Counts a failure whose error has asked for this delay. The place on the curve stays.
    pub(crate) fn fail_and_wait(&mut self, wait: Duration) -> Duration {
        self.consecutive_failures = self.consecutive_failures.saturating_add(1);
        self.was_healthy = false;
        wait
    }

    /// Returns for how long the child has been failing that has failed at `failed`: since its first failure in a row, or
    /// since the first of the restarts that its own limit still counts. A supervisor is healthy in between.
    pub(super) fn failing(&self, failed: Instant, now: Instant) -> Duration {
        let since = [self.first_failure, self.tracker.oldest(now)].into_iter().flatten().min();
        since.map_or(Duration::ZERO, |since| failed.saturating_duration_since(since))
    }

    /// The child is healthy: resets its failures in a row and its backoff.
    pub(crate) fn recover(&mut self) {
        (self.consecutive_failures, self.first_failure) = (0, None);
        self.place.reset();
        self.tracker.reset();
        self.was_healthy = true;
    }

    /// Forgets as many failures as the backoff's reset rule says for `life` as Active.
    pub(crate) fn decay(&mut self, backoff: &Backoff, life: Duration) {
        if has_recovered(backoff, life) {
            return self.recover();
        }
        let half_lives = half_lives(backoff, life);
        let left = self.halved(half_lives);
        if left < self.consecutive_failures {
            self.consecutive_failures = left;
            self.place.halve(half_lives);
        }
    }

    fn halved(&self, times: u32) -> u32 {
        self.consecutive_failures.checked_shr(times).unwrap_or(0)
    }

    #[cfg(test)]
    pub(super) fn place(&self) -> u32 {
        self.place.index()
    }

    /// What is visible of a child that has been Active for `life`, if it is.
    pub(crate) fn summary(&self, backoff: &Backoff, life: Option<Duration>) -> FailureSummary {
        let attempt = match life {
            Some(life) if has_recovered(backoff, life) => 0,
            Some(life) => self.halved(half_lives(backoff, life)),
            None => self.consecutive_failures,
        };
        FailureSummary { attempt, next: self.next, last: self.last.clone() }
    }
}

fn has_recovered(backoff: &Backoff, life: Duration) -> bool {
    backoff.resets_after().is_some_and(|enough| life >= enough)
}

fn half_lives(backoff: &Backoff, life: Duration) -> u32 {
    let half_lives =
        backoff.half_life().and_then(|half| life.as_nanos().checked_div(half.as_nanos()));
    u32::try_from(half_lives.unwrap_or(0)).unwrap_or(u32::MAX)
}

/// A limit that has refused a restart, and the restarts that it has granted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ExceededLimit {
    /// The intensity of the supervisor.
    Supervisor { intensity: Intensity, restarts: usize },
    /// The intensity of the child itself.
    Own { intensity: Intensity, restarts: usize },
    /// The restarts in a row.
    Consecutive { max: u32, restarts: u32 },
    /// The time since the first failure in a row.
    FailingFor { max: Duration },
    /// The backoff has no more delays.
    Delays { restarts: u32 },
}

/// The intensity of a window that refuses a restart at `now`, with the restarts in it.
pub(super) fn exceeded_window(window: &RestartWindow, now: Instant) -> Option<(Intensity, usize)> {
    let exceeded = || (window.intensity(), window.count(now));
    (!window.admits(now)).then(exceeded)
}

/// How far the limits of one child are used up.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct LimitTracker {
    /// Boxed, since few children have failed.
    window: Option<Box<RestartWindow>>,
    /// Whether the window belongs to the built-in limit.
    is_default: bool,
    /// Restarts since the child was last healthy.
    consecutive: u32,
    /// The first failure since then.
    failing_since: Option<Instant>,
}

impl LimitTracker {
    /// The limit that refuses a restart of a child that failed at `failed`, as decided at `now`.
    /// Records nothing.
    pub(crate) fn exceeded(
        &self,
        limits: &Limits,
        failed: Instant,
        now: Instant,
    ) -> Option<ExceededLimit> {
        let kept = self.window.as_ref();
        let by_window = limits.intensity.and_then(|intensity| {
            match kept.filter(|window| window.counts(intensity)) {
                Some(window) => exceeded_window(window, now),
                None => exceeded_window(&RestartWindow::new(intensity), now),
            }
        });
        let own = by_window.map(|(intensity, restarts)| ExceededLimit::Own { intensity, restarts });
        own.or_else(|| {
            let max = limits.consecutive.filter(|&max| self.consecutive >= max)?;
            Some(ExceededLimit::Consecutive { max, restarts: self.consecutive })
        })
        .or_else(|| {
            let since = self.failing_since.unwrap_or(failed);
            let failing = failed.saturating_duration_since(since);
            let max = limits.failing_for.filter(|&max| failing > max)?;
            Some(ExceededLimit::FailingFor { max })
        })
    }

    /// How many restarts the child's own intensity counts.
    pub(crate) fn restarts(&self, now: Instant) -> usize {
        self.window.as_ref().map_or(0, |window| window.count(now))
    }

    /// When the oldest restart was granted that the child's own window still counts, if the window keeps that.
    pub(crate) fn oldest(&self, now: Instant) -> Option<Instant> {
        self.window.as_ref()?.granted(now).next()
    }

    #[cfg(test)]
    fn admits(&self, limits: &Limits, failed: Instant, now: Instant) -> bool {
        self.exceeded(limits, failed, now).is_none()
    }

    /// Records a granted restart.
    pub(crate) fn record_restart(&mut self, limits: &Limits, failed: Instant, now: Instant) {
        // A default limit that doesn't count this failure keeps what it has counted.
        if limits.intensity.is_some() || !limits.is_default {
            self.window = limits.intensity.map(|intensity| {
                let kept = self.window.take().filter(|window| window.counts(intensity));
                let mut window = kept.unwrap_or_else(|| Box::new(RestartWindow::new(intensity)));
                window.record(now);
                window
            });
            self.is_default = limits.is_default;
        }
        self.consecutive = limits.consecutive.map_or(0, |_| self.consecutive.saturating_add(1));
        self.failing_since = limits.failing_for.map(|_| self.failing_since.unwrap_or(failed));
    }

    /// The limits have changed. The window goes on with the restarts that it has counted.
    pub(crate) fn set_limits(&mut self, limits: &Limits, now: Instant) {
        if let (Some(window), Some(intensity)) = (&mut self.window, limits.intensity) {
            window.set_intensity(intensity, now);
        }
    }

    /// The child is healthy: resets what is counted in a row. Restarts leave a window only with time.
    pub(crate) fn reset(&mut self) {
        (self.consecutive, self.failing_since) = (0, None);
    }

    /// The child reports that it works, so an outage isn't total: its restarts don't lead to its end as long as
    /// nothing else is written.
    pub(crate) fn forget_default(&mut self) {
        if self.is_default {
            self.window = None;
        }
    }

    /// Forgets everything, the window included.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    #[cfg(test)]
    pub(super) fn window(&self) -> Option<&RestartWindow> {
        self.window.as_deref()
    }

    #[cfg(test)]
    pub(super) fn consecutive(&self) -> (u32, Option<Instant>) {
        (self.consecutive, self.failing_since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const TICK: Duration = Duration::from_nanos(1);

    fn admit(tracker: &mut LimitTracker, limits: &Limits, at: Instant) -> bool {
        let admitted = tracker.admits(limits, at, at);
        if admitted {
            tracker.record_restart(limits, at, at);
        }
        admitted
    }

    #[test]
    fn consecutive_restarts_are_granted_up_to_the_limit_until_the_child_is_healthy() {
        let limits = Limits { consecutive: Some(2), ..Limits::default() };
        let (mut tracker, t0) = (LimitTracker::default(), Instant::now());
        let year = Duration::from_secs(365 * 24 * 3600);
        let asked = [t0, t0 + year, t0 + 2 * year, t0 + 3 * year];
        let answers = asked.map(|at| admit(&mut tracker, &limits, at));
        assert_eq!(answers, [true, true, false, false]);

        tracker.reset();
        let answers = [t0, t0, t0].map(|at| admit(&mut tracker, &limits, at + 4 * year));
        assert_eq!(answers, [true, true, false]);
    }

    #[test]
    fn a_child_may_fail_for_exactly_the_configured_time() {
        let limits = Limits { failing_for: Some(SECOND), ..Limits::default() };
        let (mut tracker, t0) = (LimitTracker::default(), Instant::now());
        assert!(admit(&mut tracker, &limits, t0));
        assert!(admit(&mut tracker, &limits, t0 + SECOND), "on the edge");
        assert!(!admit(&mut tracker, &limits, t0 + SECOND + TICK), "one tick later");

        tracker.reset();
        assert!(admit(&mut tracker, &limits, t0 + SECOND + TICK));
        assert!(admit(&mut tracker, &limits, t0 + 2 * SECOND + TICK), "it counts from then");
    }

    #[test]
    fn the_time_of_failing_counts_from_failure_to_failure() {
        let limits = Limits { failing_for: Some(SECOND), ..Limits::default() };
        let (mut tracker, t0) = (LimitTracker::default(), Instant::now());
        tracker.record_restart(&limits, t0, t0 + 9 * SECOND);
        assert!(tracker.admits(&limits, t0 + SECOND, t0 + 99 * SECOND));
        assert!(!tracker.admits(&limits, t0 + SECOND + TICK, t0 + 99 * SECOND));
    }

    #[test]
    fn a_healthy_child_does_not_reset_a_window() {
        let intensity = Some(Intensity::sliding(1, SECOND));
        let limits = Limits { intensity, ..Limits::default() };
        let (mut tracker, t0) = (LimitTracker::default(), Instant::now());
        assert!(admit(&mut tracker, &limits, t0));
        tracker.reset();
        assert!(!admit(&mut tracker, &limits, t0));
        tracker.clear();
        assert!(admit(&mut tracker, &limits, t0));
    }

    #[test]
    fn a_restart_needs_all_limits_and_a_refusal_is_not_recorded() {
        let intensity = Some(Intensity::sliding(1, SECOND));
        let failing_for = Some(9 * SECOND);
        let limits = Limits { intensity, consecutive: Some(9), failing_for, ..Limits::default() };
        let (mut tracker, t0) = (LimitTracker::default(), Instant::now());
        assert!(admit(&mut tracker, &limits, t0));
        let kept = format!("{tracker:?}");
        assert!(!admit(&mut tracker, &limits, t0), "the window refuses");
        assert_eq!(format!("{tracker:?}"), kept);

        let limits = Limits { consecutive: Some(1), ..limits };
        assert!(!admit(&mut tracker, &limits, t0 + 2 * SECOND), "one in a row it had");
        assert_eq!(format!("{tracker:?}"), kept);

        let limits = Limits { consecutive: None, failing_for: Some(SECOND), ..limits };
        assert!(!admit(&mut tracker, &limits, t0 + 2 * SECOND), "it fails for too long");
        assert_eq!(format!("{tracker:?}"), kept);
    }

    #[test]
    fn a_default_limit_keeps_its_count_when_it_does_not_count_a_failure() {
        let intensity = Some(Intensity::sliding(1, SECOND));
        let limits = Limits { intensity, is_default: true, ..Limits::default() };
        let (charged, free) = (limits.counting(true), limits.counting(false));
        let (mut tracker, t0) = (LimitTracker::default(), Instant::now());
        assert!(admit(&mut tracker, &charged, t0));
        assert!(admit(&mut tracker, &free, t0), "it isn't counted");
        assert!(!admit(&mut tracker, &charged, t0), "the first is still counted");

        let limits = Limits { is_default: false, ..limits };
        assert_eq!(limits.counting(false), limits, "an explicit limit counts every failure");
    }

    #[test]
    fn only_the_built_in_limit_forgets_the_restarts_of_a_child_that_works() {
        let intensity = Some(Intensity::sliding(1, SECOND));
        for is_default in [true, false] {
            let limits = Limits { intensity, is_default, ..Limits::default() };
            let (mut tracker, t0) = (LimitTracker::default(), Instant::now());
            assert!(admit(&mut tracker, &limits, t0));
            tracker.forget_default();
            assert_eq!(admit(&mut tracker, &limits, t0), is_default);
        }
    }

    #[test]
    fn a_limit_of_zero_refuses_the_first_restart() {
        let none = Some(Intensity::sliding(0, SECOND));
        let t0 = Instant::now();
        for limits in [
            Limits { intensity: none, ..Limits::default() },
            Limits { consecutive: Some(0), ..Limits::default() },
        ] {
            assert!(!admit(&mut LimitTracker::default(), &limits, t0), "{limits:?}");
        }
    }

    #[test]
    fn a_window_counts_only_for_its_own_intensity() {
        let within = |max, period| {
            let intensity = Some(Intensity::sliding(max, period));
            Limits { intensity, ..Limits::default() }
        };
        let (mut tracker, t0) = (LimitTracker::default(), Instant::now());
        assert!(admit(&mut tracker, &within(1, SECOND), t0));
        assert!(!tracker.admits(&within(1, SECOND), t0, t0));
        assert!(tracker.admits(&within(1, 2 * SECOND), t0, t0));
        assert!(tracker.admits(&within(2, SECOND), t0, t0));
        assert!(!tracker.admits(&within(0, SECOND), t0, t0));
        assert!(admit(&mut tracker, &within(2, SECOND), t0));
        assert!(tracker.admits(&within(2, SECOND), t0, t0), "it has counted one");
    }

    #[test]
    fn kin_29_without_a_limit_all_are_granted_and_none_is_recorded() {
        let (mut tracker, t0) = (LimitTracker::default(), Instant::now());
        assert!((0..1_000).all(|_| admit(&mut tracker, &Limits::default(), t0)));
        assert!(tracker.window.is_none());
        assert_eq!(tracker.consecutive(), (0, None));
    }
}
