//! Health, as numbers: how often a child is checked, and how many failures make it unhealthy.
//!
//! A [`Pulse`] counts what checks come to. What a check is, who runs it and what an unhealthy child
//! is in for isn't known here.

use std::num::NonZeroU32;
use std::time::Duration;

/// How a child is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rhythm {
    /// From the beginning of one check to that of the next.
    pub(crate) every: Duration,
    pub(crate) timeout: Duration,
    /// So many in a row, and the child is unhealthy. 0 is refused when a tree is built.
    pub(crate) failures: u32,
}

impl Default for Rhythm {
    fn default() -> Self {
        Self { every: Duration::from_secs(10), timeout: Duration::from_secs(3), failures: 3 }
    }
}

/// What the checks of one incarnation have come to so far.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// In a row.
    failed: u32,
    healthy: Option<bool>,
}

impl Pulse {
    /// Takes in what a check came to. `Some` if the child is healthy or unhealthy now and was not
    /// before, or it was not known.
    pub(crate) fn take(&mut self, well: bool, failures: NonZeroU32) -> Option<bool> {
        self.failed = if well { 0 } else { self.failed.saturating_add(1) };
        let healthy = match (well, self.failed >= failures.get()) {
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

    /// What is told after each check, `+` for one that is passed.
    fn told(failures: u32, checks: &str) -> String {
        let mut pulse = Pulse::default();
        let failures = NonZeroU32::new(failures).unwrap();
        let told = checks.chars().map(|check| match pulse.take(check == '+', failures) {
            Some(true) => 'h',
            Some(false) => 'u',
            None => '.',
        });
        told.collect()
    }

    #[test]
    fn kin_54_so_many_failures_in_a_row_are_told_once() {
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
            assert_eq!(told(failures, checks), expected, "{failures} of {checks}");
        }
    }

    #[test]
    fn kin_54_a_check_comes_every_ten_seconds_has_three_and_may_fail_twice() {
        let Rhythm { every, timeout, failures } = Rhythm::default();
        assert_eq!((every.as_secs(), timeout.as_secs(), failures), (10, 3, 3));
    }
}
