//! The settings of a health check, and the count of its results.
//!
//! A [`HealthCounter`] counts results. It doesn't run checks, and doesn't decide what happens to an
//! unhealthy child.

use std::num::NonZeroU32;
use std::time::Duration;

/// The period, the timeout and the failure threshold of a health check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HealthSettings {
    /// The time from the start of one check to the start of the next.
    pub(crate) every: Duration,
    pub(crate) timeout: Duration,
    /// The number of consecutive failures that make the child unhealthy. `build` refuses 0.
    pub(crate) failures: u32,
}

impl Default for HealthSettings {
    fn default() -> Self {
        Self { every: Duration::from_secs(10), timeout: Duration::from_secs(3), failures: 3 }
    }
}

/// The results of the checks of one incarnation.
#[derive(Debug, Default)]
pub(crate) struct HealthCounter {
    /// Consecutive failures.
    failed: u32,
    healthy: Option<bool>,
}

impl HealthCounter {
    /// Records the result of a check. Returns whether the child is healthy, if that has changed.
    pub(crate) fn record(&mut self, passed: bool, failures: NonZeroU32) -> Option<bool> {
        self.failed = if passed { 0 } else { self.failed.saturating_add(1) };
        let healthy = match (passed, self.failed >= failures.get()) {
            (true, _) => true,
            (false, true) => false,
            (false, false) => return None,
        };
        (self.healthy.replace(healthy) != Some(healthy)).then_some(healthy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers after each check, where `+` is one that passes.
    fn answers(failures: u32, checks: &str) -> String {
        let mut counter = HealthCounter::default();
        let failures = NonZeroU32::new(failures).unwrap();
        let answers = checks.chars().map(|check| match counter.record(check == '+', failures) {
            Some(true) => 'h',
            Some(false) => 'u',
            None => '.',
        });
        answers.collect()
    }

    #[test]
    fn kin_158_consecutive_failures_up_to_the_threshold_are_reported_once() {
        let table = [
            (3, "---", "..u"),
            (3, "------", "..u..."),
            (3, "--+--+--+", "..h......"),
            (3, "+---+---", "h..uh..u"),
            (3, "---+", "..uh"),
            (1, "-", "u"),
            (1, "--+-", "u.hu"),
            (2, "+++", "h.."),
        ];
        for (failures, checks, expected) in table {
            assert_eq!(answers(failures, checks), expected, "{failures} of {checks}");
        }
    }

    #[test]
    fn the_default_is_every_ten_seconds_with_a_timeout_of_three_and_three_failures() {
        let HealthSettings { every, timeout, failures } = HealthSettings::default();
        assert_eq!((every.as_secs(), timeout.as_secs(), failures), (10, 3, 3));
    }
}
