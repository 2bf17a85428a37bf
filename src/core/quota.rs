//! What is left of the limits of one child.
//!
//! Counts what its own [`Limits`] speak of, beside the window of the supervisor, which counts all
//! children together. Knows neither when a child is healthy again, which is for the reset rules to
//! say, nor what follows when it has failed too often.
//!
//! # Invariants
//!
//! 1. Nothing is kept for a limit that was not set at the last restart that was granted. (The child
//!    may say so itself, so that limits differ from one end to the next.)
//! 2. What is refused leaves no trace.

use std::time::Instant;

use crate::policy::{Limits, RestartWindow};

/// See the [module](self).
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Quota {
    window: Option<RestartWindow>,
    /// Restarts since the child was last healthy.
    consecutive: u32,
    /// Its first failure since then.
    failing_since: Option<Instant>,
}

impl Quota {
    /// Whether a child that failed at `failed` may be restarted, as decided at `now`. Nothing is
    /// recorded.
    pub(crate) fn admits(&self, limits: &Limits, failed: Instant, now: Instant) -> bool {
        let in_window = limits.intensity.is_none_or(|intensity| match &self.window {
            Some(window) if window.counts(intensity) => window.admits(now),
            _ => RestartWindow::new(intensity).admits(now),
        });
        let since = self.failing_since.unwrap_or(failed);
        in_window
            && limits.consecutive.is_none_or(|max| self.consecutive < max)
            && limits.failing_for.is_none_or(|max| failed.saturating_duration_since(since) <= max)
    }

    /// Records a restart that was granted.
    pub(crate) fn record(&mut self, limits: &Limits, failed: Instant, now: Instant) {
        self.window = limits.intensity.map(|intensity| {
            let kept = self.window.take().filter(|window| window.counts(intensity));
            let mut window = kept.unwrap_or_else(|| RestartWindow::new(intensity));
            window.record(now);
            window
        });
        self.consecutive = limits.consecutive.map_or(0, |_| self.consecutive.saturating_add(1));
        self.failing_since = limits.failing_for.map(|_| self.failing_since.unwrap_or(failed));
    }

    /// The child is healthy: what is counted in a row begins anew. A window goes by its own time.
    pub(crate) fn reset(&mut self) {
        (self.consecutive, self.failing_since) = (0, None);
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    #[cfg(test)]
    pub(super) fn window(&self) -> Option<&RestartWindow> {
        self.window.as_ref()
    }

    #[cfg(test)]
    pub(super) fn in_a_row(&self) -> (u32, Option<Instant>) {
        (self.consecutive, self.failing_since)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::policy::Intensity;

    const SECOND: Duration = Duration::from_secs(1);
    const TICK: Duration = Duration::from_nanos(1);

    fn admit(quota: &mut Quota, limits: &Limits, at: Instant) -> bool {
        let admitted = quota.admits(limits, at, at);
        if admitted {
            quota.record(limits, at, at);
        }
        admitted
    }

    #[test]
    fn so_many_restarts_in_a_row_are_granted_and_then_none_until_it_is_healthy() {
        let limits = Limits { consecutive: Some(2), ..Limits::default() };
        let (mut quota, t0) = (Quota::default(), Instant::now());
        let year = Duration::from_secs(365 * 24 * 3600);
        let asked = [t0, t0 + year, t0 + 2 * year, t0 + 3 * year];
        let answers = asked.map(|at| admit(&mut quota, &limits, at));
        assert_eq!(answers, [true, true, false, false]);

        quota.reset();
        let answers = [t0, t0, t0].map(|at| admit(&mut quota, &limits, at + 4 * year));
        assert_eq!(answers, [true, true, false]);
    }

    #[test]
    fn a_child_may_fail_for_exactly_so_long() {
        let limits = Limits { failing_for: Some(SECOND), ..Limits::default() };
        let (mut quota, t0) = (Quota::default(), Instant::now());
        assert!(admit(&mut quota, &limits, t0));
        assert!(admit(&mut quota, &limits, t0 + SECOND), "on the edge");
        assert!(!admit(&mut quota, &limits, t0 + SECOND + TICK), "one tick later");

        quota.reset();
        assert!(admit(&mut quota, &limits, t0 + SECOND + TICK));
        assert!(admit(&mut quota, &limits, t0 + 2 * SECOND + TICK), "it counts from then");
    }

    #[test]
    fn the_time_of_failing_is_that_of_the_failures_and_not_of_the_decisions() {
        let limits = Limits { failing_for: Some(SECOND), ..Limits::default() };
        let (mut quota, t0) = (Quota::default(), Instant::now());
        quota.record(&limits, t0, t0 + 9 * SECOND);
        assert!(quota.admits(&limits, t0 + SECOND, t0 + 99 * SECOND));
        assert!(!quota.admits(&limits, t0 + SECOND + TICK, t0 + 99 * SECOND));
    }

    #[test]
    fn being_healthy_is_no_reason_to_forget_a_window() {
        let intensity = Some(Intensity::sliding(1, SECOND));
        let limits = Limits { intensity, ..Limits::default() };
        let (mut quota, t0) = (Quota::default(), Instant::now());
        assert!(admit(&mut quota, &limits, t0));
        quota.reset();
        assert!(!admit(&mut quota, &limits, t0));
        quota.clear();
        assert!(admit(&mut quota, &limits, t0));
    }

    #[test]
    fn all_limits_have_to_pass_and_a_refusal_is_recorded_by_none() {
        let intensity = Some(Intensity::sliding(1, SECOND));
        let limits = Limits { intensity, consecutive: Some(9), failing_for: Some(9 * SECOND) };
        let (mut quota, t0) = (Quota::default(), Instant::now());
        assert!(admit(&mut quota, &limits, t0));
        let kept = format!("{quota:?}");
        assert!(!admit(&mut quota, &limits, t0), "the window refuses");
        assert_eq!(format!("{quota:?}"), kept);

        let limits = Limits { consecutive: Some(1), ..limits };
        assert!(!admit(&mut quota, &limits, t0 + 2 * SECOND), "one in a row it had");
        assert_eq!(format!("{quota:?}"), kept);

        let limits = Limits { consecutive: None, failing_for: Some(SECOND), ..limits };
        assert!(!admit(&mut quota, &limits, t0 + 2 * SECOND), "it fails for too long");
        assert_eq!(format!("{quota:?}"), kept);
    }

    #[test]
    fn a_limit_of_none_refuses_the_first() {
        let none = Some(Intensity::sliding(0, SECOND));
        let t0 = Instant::now();
        for limits in [
            Limits { intensity: none, ..Limits::default() },
            Limits { consecutive: Some(0), ..Limits::default() },
        ] {
            assert!(!admit(&mut Quota::default(), &limits, t0), "{limits:?}");
        }
    }

    #[test]
    fn a_window_of_another_limit_says_nothing_of_this_one() {
        let within = |max, period| {
            let intensity = Some(Intensity::sliding(max, period));
            Limits { intensity, ..Limits::default() }
        };
        let (mut quota, t0) = (Quota::default(), Instant::now());
        assert!(admit(&mut quota, &within(1, SECOND), t0));
        assert!(!quota.admits(&within(1, SECOND), t0, t0));
        assert!(quota.admits(&within(1, 2 * SECOND), t0, t0));
        assert!(quota.admits(&within(2, SECOND), t0, t0));
        assert!(!quota.admits(&within(0, SECOND), t0, t0));
        assert!(admit(&mut quota, &within(2, SECOND), t0));
        assert!(quota.admits(&within(2, SECOND), t0, t0), "it has counted one");
    }

    #[test]
    fn kin_29_without_a_limit_all_are_granted_and_none_is_recorded() {
        let (mut quota, t0) = (Quota::default(), Instant::now());
        assert!((0..1_000).all(|_| admit(&mut quota, &Limits::default(), t0)));
        assert!(quota.window.is_none());
        assert_eq!(quota.in_a_row(), (0, None));
    }
}
