//! The settings of a health check, and the count of its results.
//!
//! A [`HealthCounter`] counts results. It doesn't run checks, and doesn't decide what happens to an
//! unhealthy child.

use std::time::Duration;

/// The times and the thresholds of a health check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HealthSettings {
    /// The time from the start of one check to the start of the next.
    pub(crate) every: Duration,
    /// The time from the child's becoming active to its first check. `None`: one period.
    pub(crate) initial_delay: Option<Duration>,
    pub(crate) timeout: Duration,
    /// The number of consecutive failures that make the child unhealthy. `build` refuses 0.
    pub(crate) failures: u32,
    /// The number of consecutive passes that make an unhealthy child healthy. `build` refuses 0.
    pub(crate) successes: u32,
}

impl Default for HealthSettings {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(10),
            initial_delay: None,
            timeout: Duration::from_secs(3),
            failures: 3,
            successes: 1,
        }
    }
}

/// The results of the checks of one incarnation.
#[derive(Debug, Default)]
pub(crate) struct HealthCounter {
    /// The last result, and how many consecutive checks had it.
    passed: bool,
    consecutive: u32,
    healthy: Option<bool>,
}

impl HealthCounter {
    /// Records the result of a check. Returns whether the child is healthy, if that has changed.
    pub(crate) fn record(&mut self, passed: bool, settings: HealthSettings) -> Option<bool> {
        let before = if passed == self.passed { self.consecutive } else { 0 };
        (self.passed, self.consecutive) = (passed, before.saturating_add(1));
        let required = match (passed, self.healthy) {
            (false, _) => settings.failures,
            (true, Some(false)) => settings.successes,
            (true, _) => 1,
        };
        let changes = self.consecutive >= required && self.healthy != Some(passed);
        changes.then(|| *self.healthy.insert(passed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers after each check, where `+` is one that passes.
    fn answers(failures: u32, successes: u32, checks: &str) -> String {
        let mut counter = HealthCounter::default();
        let settings = HealthSettings { failures, successes, ..HealthSettings::default() };
        let answers = checks.chars().map(|check| match counter.record(check == '+', settings) {
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
            assert_eq!(answers(failures, 1, checks), expected, "{failures} of {checks}");
        }
    }

    #[test]
    fn kin_159_consecutive_successes_up_to_the_threshold_make_an_unhealthy_child_healthy() {
        let table = [
            (1, 3, "-++", "u.."),
            (1, 3, "-+++", "u..h"),
            (1, 3, "-+++++", "u..h.."),
            (1, 3, "-++-++-+++", "u........h"),
            (1, 3, "-+++-++", "u..hu.."),
            (2, 3, "--+++-+--", ".u..h...u"),
            (1, u32::MAX, "-++++", "u...."),
            // A child that was never unhealthy needs one.
            (1, 3, "+-", "hu"),
            (3, 3, "--+", "..h"),
        ];
        for (failures, successes, checks, expected) in table {
            assert_eq!(answers(failures, successes, checks), expected, "{successes} of {checks}");
        }
    }

    #[test]
    fn by_default_three_failures_ten_seconds_apart_make_unhealthy_and_one_success_healthy() {
        let HealthSettings { every, initial_delay, timeout, failures, successes } =
            HealthSettings::default();
        assert_eq!((every.as_secs(), initial_delay, timeout.as_secs()), (10, None, 3));
        assert_eq!((failures, successes), (3, 1));
    }
}
