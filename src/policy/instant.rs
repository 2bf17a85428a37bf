//! Points in time that are always there.

use std::time::{Duration, Instant};

/// `now + wait`, where a wait too long for the clock is one of a century.
pub(crate) fn later(now: Instant, wait: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    // As for each restart without a backoff: 30 instructions less.
    if wait.is_zero() {
        return now;
    }
    now.checked_add(wait.min(CENTURY)).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_added_and_one_that_is_too_long_for_the_clock_is_a_century() {
        let now = Instant::now();
        let century = Duration::from_secs(3_153_600_000);
        for (wait, expected) in [
            (Duration::ZERO, Duration::ZERO),
            (Duration::from_nanos(1), Duration::from_nanos(1)),
            (century - Duration::from_nanos(1), century - Duration::from_nanos(1)),
            (century + Duration::from_nanos(1), century),
            (Duration::MAX, century),
        ] {
            assert_eq!(later(now, wait) - now, expected, "{wait:?}");
        }
    }
}
